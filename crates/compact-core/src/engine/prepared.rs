//! What is found of a history once for all calls of a compaction: it is planned before models are asked, and made with what
//! they said.
//!
//! Everything here follows from the conversation, its ledger, the estimator, the style of the policy and a person's note.

use std::sync::OnceLock;

use crate::clip::CutEntries;
use crate::identity::Chain;
use crate::summarize::{self, NameRanking, NameWeight};
use crate::token::Units;

use super::CompactionInput;

/// What was found for a compaction, for its next call.
#[derive(Debug, Default)]
pub struct Preparation {
    /// Texts that were cut.
    pub(super) cuts: CutEntries,
    source: OnceLock<Chain>,
    shape: OnceLock<u64>,
    least_summary: OnceLock<Units>,
    names: OnceLock<Vec<NameWeight>>,
}

impl Preparation {
    /// The chain over the history.
    pub(super) fn source(&self, input: &CompactionInput<'_>) -> Chain {
        *self.source.get_or_init(|| Chain::from_hashes(input.hashes))
    }

    /// The digest of a history's shape, where no model said what its units are about.
    pub(super) fn shape_or(&self, find: impl FnOnce() -> u64) -> u64 {
        *self.shape.get_or_init(find)
    }

    /// What the body of the smallest summary costs.
    pub(super) fn least_summary(&self, input: &CompactionInput<'_>) -> Units {
        let count = || summarize::least_body_cost(input.ledger, input.estimator);
        *self.least_summary.get_or_init(count)
    }

    /// The names of the ledger by their worth.
    pub(super) fn rank_names<'a>(&self, input: &CompactionInput<'a>) -> NameRanking<'a> {
        let (ledger, style, note) = (input.ledger, input.policy.strategy, input.note);
        match self.names.get() {
            Some(weights) => NameRanking::from_weights(ledger, weights),
            None => {
                let ranking = NameRanking::from_ledger(ledger, style, note);
                self.names.get_or_init(|| ranking.weights());
                ranking
            }
        }
    }

    /// Whether the names were weighed.
    pub(super) fn knows_names(&self) -> bool {
        self.names.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{self, session_ledger};
    use crate::identity::EntryHash;
    use crate::message::{Conversation, Entry, Role};
    use crate::redact::Redactor;
    use crate::token::{Chars4, TokenAccount, TokenCache, Tokens};

    #[test]
    fn a_compaction_is_the_same_with_what_its_plan_found() {
        let said = |nth: usize| match nth % 2 {
            0 => format!("Step {nth}: never touch src/old{nth}.rs, at most {nth} retries."),
            _ => format!("I fixed parse_step{nth} in src/new{nth}.rs. ").repeat(20),
        };
        let entry = |nth: usize| {
            let role = [Role::User, Role::Assistant][nth % 2];
            Entry::from_text(format!("e{nth}"), role, said(nth))
        };
        let conversation = Conversation {
            entries: (0..60).map(entry).collect(),
            ..Conversation::default()
        };
        let hashes = EntryHash::from_entries(&conversation.entries);
        let cache = &mut TokenCache::default();
        let account = TokenAccount::count_conversation(&conversation, &hashes, &Chars4, cache);
        let ledger = session_ledger(&conversation, &hashes, None, &Redactor::default());
        let alone = CompactionInput::new(
            &conversation,
            &hashes,
            &account,
            &ledger,
            &Chars4,
            Tokens(1_500),
        );
        let prepared = Preparation::default();
        let input = alone.prepared(&prepared);
        let planned = engine::planned_counts(&input).unwrap();
        assert_eq!(planned, engine::planned_counts(&alone).unwrap());
        assert!(prepared.knows_names());
        assert_eq!(
            engine::compact(&input).unwrap(),
            engine::compact(&alone).unwrap()
        );
    }
}
