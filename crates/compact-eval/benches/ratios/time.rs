//! Timing a candidate against the baseline, in turns.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;

use crate::ROUNDS;

/// The fastest run of each, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) candidate: f64,
    pub(crate) baseline: f64,
}

impl Timing {
    pub(crate) fn ratio(self) -> f64 {
        self.candidate / self.baseline
    }
}

/// Runs both in turns. `prepare` makes the input of a round and is not timed.
pub(crate) fn in_turns<I, O>(
    baseline: impl Fn() -> u64,
    mut prepare: impl FnMut() -> I,
    mut candidate: impl FnMut(I) -> Result<O>,
) -> Result<Timing> {
    let mut timing = Timing {
        candidate: f64::INFINITY,
        baseline: f64::INFINITY,
    };
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(baseline());
        timing.baseline = timing.baseline.min(start.elapsed().as_secs_f64());
        let input = prepare();
        let start = Instant::now();
        let output = black_box(candidate(input)?);
        timing.candidate = timing.candidate.min(start.elapsed().as_secs_f64());
        drop(output);
    }
    Ok(timing)
}

/// Runs something once and tells how long it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = Instant::now();
    let output = black_box(work()?);
    Ok((output, start.elapsed().as_secs_f64()))
}
