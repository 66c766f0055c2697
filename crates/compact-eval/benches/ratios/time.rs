//! Timing a candidate against the baseline, in turns.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;

use crate::ROUNDS;

/// What candidate and baseline took in each round, in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timing {
    rounds: Vec<(f64, f64)>,
}

impl Timing {
    /// Adds a round.
    pub(crate) fn add(&mut self, candidate: f64, baseline: f64) {
        self.rounds.push((candidate, baseline));
    }

    /// The median of the rounds' ratios. What slows a machine down slows both runs of a round.
    pub(crate) fn ratio(&self) -> f64 {
        self.median(|(candidate, baseline)| candidate / baseline)
    }

    /// The largest of the rounds' ratios.
    pub(crate) fn worst_ratio(&self) -> f64 {
        let ratios = self
            .rounds
            .iter()
            .map(|(candidate, baseline)| candidate / baseline);
        ratios.fold(0.0, f64::max)
    }

    /// The median time of the candidate.
    pub(crate) fn candidate(&self) -> f64 {
        self.median(|(candidate, _)| candidate)
    }

    /// The median time of the baseline.
    pub(crate) fn baseline(&self) -> f64 {
        self.median(|(_, baseline)| baseline)
    }

    fn median(&self, value: impl Fn((f64, f64)) -> f64) -> f64 {
        let mut values: Vec<f64> = self.rounds.iter().copied().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Runs both in turns. `prepare` makes the input of a round and is not timed.
pub(crate) fn in_turns<I, O>(
    baseline: impl Fn() -> u64,
    mut prepare: impl FnMut() -> I,
    mut candidate: impl FnMut(I) -> Result<O>,
) -> Result<Timing> {
    let mut timing = Timing::default();
    // The first run of each loads what later ones find in memory.
    candidate(prepare())?;
    black_box(baseline());
    for _ in 0..ROUNDS {
        let (_, counting) = timed(|| Ok(baseline()))?;
        let input = prepare();
        let (output, making) = timed(|| candidate(input))?;
        timing.add(making, counting);
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
