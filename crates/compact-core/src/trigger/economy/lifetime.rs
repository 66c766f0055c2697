//! How long sessions go on: measured, not guessed.
//!
//! Counted is how many sessions made 1, 2, 4, 8 … requests. That is little to keep, whatever the number of sessions, and
//! says how many requests are ahead of one that made so many: sessions that ended between two steps are taken to be
//! spread evenly between them. Those that still go on count as if they ended where they are, so the answer is rather too
//! small.

use serde::{Deserialize, Serialize};

/// Fewer sessions than this say nothing of the next.
const LEAST_SESSIONS: u64 = 4;

/// The largest step: sessions of more requests are as those of two to this power.
const LAST_STEP: u32 = 20;

/// How many sessions came to so many requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionLifetimes(Vec<u64>);

impl SessionLifetimes {
    /// Returns the last step that a session with so many requests has come to; `None` before the first.
    pub fn find_step(requests: u64) -> Option<u32> {
        requests.checked_ilog2().map(|step| step.min(LAST_STEP))
    }

    /// Counts sessions that came to a step.
    pub fn add(&mut self, step: u32, sessions: u64) {
        let step = step.min(LAST_STEP) as usize;
        if self.0.len() <= step {
            self.0.resize(step + 1, 0);
        }
        if let Some(reached) = self.0.get_mut(step) {
            *reached = reached.saturating_add(sessions);
        }
    }

    /// Returns the steps with the sessions that came to them.
    pub fn steps(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(self.0.iter().copied())
    }

    /// Returns how many requests are ahead of a session that made so many and is counted itself; `None` where too few
    /// other sessions came so far.
    pub fn further_requests(&self, made: u64) -> Option<f64> {
        let step = SessionLifetimes::find_step(made)?;
        let others = self.reached(step).saturating_sub(1);
        if others < LEAST_SESSIONS {
            return None;
        }
        let start = (1_u64 << step) as f64;
        let past = (made as f64 - start).min(start) / start;
        let ended = others.saturating_sub(self.reached(step + 1)) as f64;
        // Of those that ended within this step, some did before they came so far.
        let alive = others as f64 - ended * past;
        let left = start * (1.0 - past);
        let within = ended * (1.0 - past) * left / 2.0;
        let beyond: f64 = (step + 1..=LAST_STEP)
            .map(|later| {
                let ended = self.reached(later).saturating_sub(self.reached(later + 1));
                let middle = (1_u64 << later) as f64 * 1.5;
                ended as f64 * (middle - made as f64)
            })
            .sum();
        Some(if alive > 0.0 {
            (within + beyond) / alive
        } else {
            0.0
        })
    }

    fn reached(&self, step: u32) -> u64 {
        self.0.get(step as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sessions of these lengths, and one that has made a request more than `made`.
    fn lifetimes(lengths: &[u64], made: u64) -> SessionLifetimes {
        let mut lifetimes = SessionLifetimes::default();
        for length in lengths.iter().chain([&made]) {
            for step in 0..=SessionLifetimes::find_step(*length).unwrap() {
                lifetimes.add(step, 1);
            }
        }
        lifetimes
    }

    #[test]
    fn what_is_ahead_follows_from_what_others_did() {
        let lengths = [[100; 10], [3; 10]].concat();
        let after = |made| lifetimes(&lengths, made).further_requests(made).unwrap();
        assert!((35.0..65.0).contains(&after(1)), "{}", after(1));
        assert!((80.0..100.0).contains(&after(10)), "{}", after(10));
        assert!(after(120) < 10.0, "{}", after(120));
    }

    #[test]
    fn few_sessions_say_nothing() {
        assert_eq!(lifetimes(&[50; 3], 1).further_requests(1), None);
        assert_eq!(lifetimes(&[50; 9], 900).further_requests(900), None);
        assert_eq!(SessionLifetimes::default().further_requests(0), None);
    }

    proptest! {
        /// The answer lies within what any session did, give or take the width of a step.
        #[test]
        fn it_is_finite_and_no_more_than_any_session_made(
            lengths in proptest::collection::vec(1_u64..5_000, 1..60), made in 1_u64..5_000,
        ) {
            let longest = lengths.iter().max().unwrap();
            if let Some(further) = lifetimes(&lengths, made).further_requests(made) {
                prop_assert!(further >= 0.0 && further <= 2.0 * *longest as f64, "{further}");
            }
        }
    }
}
