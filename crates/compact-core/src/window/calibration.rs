//! Calibration: the provider's own count of the last prompt, plus an estimate of what came since.
//!
//! It corrects *pressure* only. Budgets stay in the estimator's raw units, so that the same input
//! gives the same view whatever a provider reported. The report is added to, not scaled by: what a
//! log leaves out (a system prompt, tool schemas) is a constant, not a factor.

use crate::message::Conversation;
use crate::token::{Account, Estimator, EstimatorExt, Tokens, Units};

/// A report below this share of the estimate measured another prompt.
const PLAUSIBLE: f64 = 0.5;

/// What the next request would cost. Only reports of entries from `since` on count: those before
/// it measured a prompt that no longer exists, as entries kept by a compaction do.
pub fn calibrated(
    conversation: &Conversation,
    account: &Account,
    estimator: &dyn Estimator,
    since: usize,
) -> Tokens {
    let estimate = |units| estimator.tokens(units);
    let reported = conversation
        .entries
        .iter()
        .enumerate()
        .skip(since)
        .rev()
        .find_map(|(i, entry)| {
            let reported = Tokens(entry.meta.reported_prompt_tokens.filter(|n| *n > 0)?);
            let end = prompt_end(conversation, i);
            let prompt: Units = account.entries.iter().take(end).copied().sum();
            let growth: Units = account.entries.iter().skip(end).copied().sum();
            let least = (estimate(prompt) + account.tools).0 as f64 * PLAUSIBLE;
            (reported.0 as f64 >= least).then(|| reported + estimate(growth))
        });
    reported.unwrap_or_else(|| account.total())
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
