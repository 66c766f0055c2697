//! The gauge: what the next request would cost. A provider's count of a prompt, plus an estimate of
//! what was said since.
//!
//! It corrects *pressure* only. Budgets stay in the estimator's raw units, so that the same input
//! gives the same view whatever a provider reported. The report is added to, not scaled by: what a
//! log leaves out (a system prompt, tool schemas) is a constant, not a factor.

use crate::message::{Entry, Role};
use crate::token::{Estimator, EstimatorExt, Tokens, Units};

use super::{ContextUsage, Formula, Semantics, Usage};

/// A report below this share of the estimate measured another prompt.
const PLAUSIBLE: f64 = 0.5;

/// What the next request carries, counted here.
pub struct LiveContext<'a> {
    /// Its entries with their units.
    pub entries: &'a [(&'a Entry, Units)],
    /// Its tool schemas.
    pub tools: Tokens,
    /// Everything together.
    pub estimate: Tokens,
    /// How units become tokens.
    pub estimator: &'a dyn Estimator,
}

/// Usage together with how much of the live context it measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageReading {
    /// The counters.
    pub usage: ContextUsage,
    /// The prompt that was measured: so many entries.
    pub prompt: usize,
}

impl LiveContext<'_> {
    /// What the next request would cost by a reading, else by the reports that entries carry, else
    /// by the estimate. Reports of entries before `since` measured a prompt that is no more.
    pub fn next_request(
        &self,
        reading: Option<UsageReading>,
        since: usize,
        formula: Formula,
    ) -> Tokens {
        if formula == Formula::Estimate {
            return self.estimate;
        }
        let reported = match reading {
            Some(reading) => self.tokens_by_reading(&reading),
            None => self.reports_since(since).find_map(|(prompt, usage)| {
                self.tokens_by_reading(&last_request(usage, prompt, formula))
            }),
        };
        let reported = reported.unwrap_or(self.estimate);
        match formula {
            Formula::Max => reported.max(self.estimate),
            _ => reported,
        }
    }

    /// Reports of entries from `since` on, the latest first, with the prompt that each measured.
    fn reports_since(&self, since: usize) -> impl Iterator<Item = (usize, Usage)> {
        let entries = self.entries.iter().enumerate().skip(since).rev();
        entries.filter_map(|(at, (entry, _))| {
            let usage = entry.meta.usage.filter(|u| u.prompt_tokens().0 > 0)?;
            Some((self.prompt_end(at), usage))
        })
    }

    /// A reading with the growth since; nothing when it cannot have measured this prompt.
    fn tokens_by_reading(&self, reading: &UsageReading) -> Option<Tokens> {
        let usage = &reading.usage;
        let grown_from = match usage.formula() {
            Formula::InputOutput => self.answered(reading.prompt),
            _ => reading.prompt,
        };
        let live = usage.live_tokens();
        (self.is_plausible(usage.formula(), live, reading.prompt))
            .then(|| live + self.sum_tokens(self.entries.iter().skip(grown_from)))
    }

    /// Formulas that leave cached tokens out say nothing of the size of a prompt.
    fn is_plausible(&self, formula: Formula, live: Tokens, prompt: usize) -> bool {
        let is_whole = matches!(formula, Formula::Prompt | Formula::Max);
        let measured = self.sum_tokens(self.entries.iter().take(prompt)) + self.tools;
        !is_whole || live.0 as f64 >= measured.0 as f64 * PLAUSIBLE
    }

    fn sum_tokens<'e>(&self, entries: impl Iterator<Item = &'e (&'e Entry, Units)>) -> Tokens {
        self.estimator
            .to_tokens(entries.map(|(_, units)| *units).sum())
    }

    /// Where the answer to a prompt ends.
    fn answered(&self, prompt: usize) -> usize {
        let answer = self.entries.iter().skip(prompt);
        prompt
            + answer
                .take_while(|(e, _)| e.role == Role::Assistant)
                .count()
    }

    /// The prompt of an answer ends where the answer begins; one answer may span several entries.
    fn prompt_end(&self, answer: usize) -> usize {
        let group = |at: usize| {
            self.entries
                .get(at)
                .and_then(|(e, _)| e.meta.group.as_deref())
        };
        let Some(own) = group(answer) else {
            return answer;
        };
        let pieces = (0..answer).rev().take_while(|at| group(*at) == Some(own));
        pieces.last().unwrap_or(answer)
    }
}

/// The reading of one request: what entries of a transcript carry.
fn last_request(usage: Usage, prompt: usize, formula: Formula) -> UsageReading {
    let mut counted = ContextUsage::new(Semantics::LastRequest, formula);
    counted.add_turn(usage);
    UsageReading {
        usage: counted,
        prompt,
    }
}
