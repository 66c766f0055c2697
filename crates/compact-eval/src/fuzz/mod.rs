//! Mutations of small sessions, thrown at every reader: none may panic, hang or lose a byte.
//!
//! The mutator knows JSON, so most of what it makes is still JSON with something odd in it, where a
//! reader's own decisions are. What leads to a new outcome joins the pool that later mutations start
//! from. There is no instrumentation, so this finds what can be reached by small steps from good
//! seeds and no more.

mod end;
mod exercise;
mod json;
mod mutate;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use compact_formats::Format;

pub use self::end::HistoryEnd;
pub use self::exercise::exercise;
use self::mutate::Mutator;
use crate::random::Random;

/// The pool grows no larger than this.
const POOL: usize = 2_000;

/// Inputs above so many bytes are tried and not mutated further: they would grow from step to step, and each take its time.
const POOLED: usize = 1 << 12;

/// An input may take no longer than this.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often an input that took longer is tried.
const ATTEMPTS: usize = 4;

/// How much of a reader's inputs is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuzzEffort {
    /// As many as there is time for.
    Time(Duration),
    /// So many: the same on every machine.
    Inputs(u64),
}

impl FuzzEffort {
    fn is_spent(self, inputs: u64, start: Instant) -> bool {
        match self {
            FuzzEffort::Time(time) => start.elapsed() >= time,
            FuzzEffort::Inputs(wanted) => inputs >= wanted,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct FuzzRun {
    /// How many inputs were tried.
    pub inputs: u64,
    /// How many different outcomes they had.
    pub outcomes: usize,
    /// The input that broke a promise, and which one.
    pub failure: Option<(Vec<u8>, String)>,
}

/// Tries mutations of the seeds as documents of a format until the effort is spent or one fails.
/// `before` gets every input before it is tried, for those that end the process.
pub fn fuzz_format(
    format: Format,
    seeds: &[Vec<u8>],
    seed: u64,
    effort: FuzzEffort,
    before: &mut dyn FnMut(&[u8]),
) -> FuzzRun {
    let target = |input: &[u8]| exercise(format, input);
    search_for_failure(&target, seeds, seed, effort, before)
}

/// A function under test: returns the outcome in short, or the promise that was broken.
type FuzzTarget<'t> = dyn Fn(&[u8]) -> Result<String, String> + 't;

fn search_for_failure(
    target: &FuzzTarget<'_>,
    seeds: &[Vec<u8>],
    seed: u64,
    effort: FuzzEffort,
    before: &mut dyn FnMut(&[u8]),
) -> FuzzRun {
    let mut mutator = Mutator::new(Random::new(seed));
    let mut pool = seeds.to_vec();
    let mut seen: HashSet<String> = HashSet::new();
    let mut run = FuzzRun::default();
    let start = Instant::now();
    let mut fresh = seeds.to_vec();
    while !effort.is_spent(run.inputs, start) {
        let input = fresh.pop().unwrap_or_else(|| mutator.mutate(&pool));
        before(&input);
        run.inputs += 1;
        match try_input(target, &input) {
            Ok(outcome) => {
                let is_new = seen.insert(outcome);
                if is_new && pool.len() < POOL && input.len() <= POOLED {
                    pool.push(input);
                }
            }
            Err(broken) => {
                run.failure = Some((input, broken));
                break;
            }
        }
    }
    run.outcomes = seen.len();
    run
}

/// Tries one input; a panic is a broken promise, and so is taking long. A busy machine is not: an
/// input must take long every time.
fn try_input(target: &FuzzTarget<'_>, input: &[u8]) -> Result<String, String> {
    let mut shortest = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| target(input)));
        let result =
            result.unwrap_or_else(|panic| Err(format!("panic: {}", panic_message(&*panic))));
        shortest = shortest.min(start.elapsed());
        if shortest <= PATIENCE {
            return result;
        }
    }
    Err(format!("took {:.1} s", shortest.as_secs_f64()))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests;
