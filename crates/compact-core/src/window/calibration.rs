//! Calibration: what a provider counted against what the estimator counted for the same prompt.
//!
//! It corrects *pressure* only. Budgets stay in the estimator's raw units, so that the same input
//! gives the same view whatever a provider reported.

use crate::message::Conversation;
use crate::token::{Account, Estimator, EstimatorExt, Tokens, Units};

/// A factor from estimated to real tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration(f64);

impl Default for Calibration {
    fn default() -> Self {
        Calibration(1.0)
    }
}

/// No estimator is further off than this; a report beyond it measured another prompt.
const RANGE: std::ops::RangeInclusive<f64> = 0.5..=4.0;

impl Calibration {
    /// The factor that one report gives, kept within reason; neutral when either count is missing.
    pub fn from_report(reported: Tokens, estimated: Tokens) -> Calibration {
        if reported.0 == 0 || estimated.0 == 0 {
            return Calibration::default();
        }
        let ratio = reported.0 as f64 / estimated.0 as f64;
        Calibration(ratio.clamp(*RANGE.start(), *RANGE.end()))
    }

    /// The factor of the last report among the entries from `since` on. Reports before it measured
    /// a prompt that no longer exists, as those of entries kept by a compaction do.
    pub fn of(
        conversation: &Conversation,
        account: &Account,
        estimator: &dyn Estimator,
        since: usize,
    ) -> Calibration {
        let entries = &conversation.entries;
        let last = entries
            .iter()
            .enumerate()
            .skip(since)
            .rev()
            .find_map(|(i, entry)| {
                let reported = entry.meta.reported_prompt_tokens.filter(|n| *n > 0)?;
                let end = prompt_end(conversation, i);
                let units: Units = account.entries.iter().take(end).copied().sum();
                let estimated = estimator.tokens(units) + account.tools;
                (estimated.0 > 0).then(|| Calibration::from_report(Tokens(reported), estimated))
            });
        last.unwrap_or_default()
    }

    /// The estimate in real tokens, rounded up.
    pub fn apply(self, estimate: Tokens) -> Tokens {
        Tokens((estimate.0 as f64 * self.0).ceil() as u64)
    }

    /// The factor itself.
    pub fn ratio(self) -> f64 {
        self.0
    }
}

/// The prompt of an answer ends where the answer begins; one answer may span several entries.
fn prompt_end(conversation: &Conversation, answer: usize) -> usize {
    let group = |i: usize| {
        conversation
            .entries
            .get(i)
            .and_then(|e| e.meta.group.as_deref())
    };
    let Some(own) = group(answer) else {
        return answer;
    };
    (0..answer)
        .rev()
        .take_while(|i| group(*i) == Some(own))
        .last()
        .unwrap_or(answer)
}
