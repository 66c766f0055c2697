//! Everything a compaction is a function of.

use std::sync::LazyLock;

use crate::identity::EntryHash;
use crate::ledger::Ledger;
use crate::message::Conversation;
use crate::policy::Policy;
use crate::prompt::SummaryContent;
use crate::prune::meaning::MeaningVector;
use crate::redact::{self, Redactor};
use crate::token::{Estimator, TokenAccount, Tokens};
use crate::wire::{Placement, WireRules};

use super::{Preparation, Prior};

static DEFAULT_POLICY: LazyLock<Policy> = LazyLock::new(Policy::default);
static NO_REDACTION: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// Everything a compaction is a function of: a measured history, a budget, and what is asked of the view.
#[derive(Clone, Copy)]
pub struct CompactionInput<'a> {
    pub(super) conversation: &'a Conversation,
    pub(super) session_id: &'a str,
    pub(super) hashes: &'a [EntryHash],
    pub(super) account: &'a TokenAccount,
    pub(super) prior: Option<&'a Prior>,
    pub(super) ledger: &'a Ledger,
    pub(super) policy: &'a Policy,
    pub(super) budget: Tokens,
    pub(super) summary_limit: Option<Tokens>,
    pub(super) original: &'a str,
    pub(super) estimator: &'a dyn Estimator,
    pub(super) rules: &'a WireRules,
    pub(super) redactor: &'a Redactor,
    pub(super) originals: Originals<'a>,
    pub(super) note: Option<&'a str>,
    pub(super) meaning: Option<&'a [MeaningVector]>,
    pub(super) content: &'a SummaryContent,
    pub(super) prepared: Option<&'a Preparation>,
}

/// Where the originals are after the compaction.
#[derive(Clone, Copy, Debug)]
pub enum Originals<'a> {
    /// In an archive, byte for byte: recoverable.
    Archived,
    /// In an archive, without what this takes out: the rest is recoverable.
    Redacted(&'a Redactor),
    /// Nowhere: what the view does not show is lost.
    Gone,
}

impl<'a> Originals<'a> {
    /// What is taken out of them, if they are archived without it.
    pub fn redactor(self) -> Option<&'a Redactor> {
        match self {
            Originals::Redacted(redactor) => Some(redactor),
            Originals::Archived | Originals::Gone => None,
        }
    }
}

impl<'a> CompactionInput<'a> {
    /// Asks for a view of a history that costs at most `budget`.
    ///
    /// `hashes` are the identities of the entries ([`EntryHash::from_entries`]), `account` their costs as
    /// `estimator` counts them, and `ledger` the session's facts up to the last entry
    /// ([`session_ledger`](super::session_ledger)). All else has a default, which the method that sets it
    /// names.
    ///
    /// ```
    /// use compact_core::engine::{self, CompactionInput, CompactionOutcome, Originals};
    /// use compact_core::identity::EntryHash;
    /// use compact_core::message::{Conversation, Entry, Role};
    /// use compact_core::redact::Redactor;
    /// use compact_core::token::{Heuristic, TokenAccount, TokenCache, Tokens};
    ///
    /// let said = |i: usize| {
    ///     let role = if i % 2 == 0 { Role::User } else { Role::Assistant };
    ///     Entry::from_text(format!("e{i}"), role, "We fixed src/parser.rs. ".repeat(50))
    /// };
    /// let conversation = Conversation { entries: (0..40).map(said).collect(), ..Conversation::default() };
    /// let hashes = EntryHash::from_entries(&conversation.entries);
    /// let cache = &mut TokenCache::default();
    /// let account = TokenAccount::count_conversation(&conversation, &hashes, &Heuristic, cache);
    /// let ledger = engine::session_ledger(&conversation, &hashes, None, &Redactor::default());
    ///
    /// let budget = Tokens(2_000);
    /// let input = CompactionInput::new(&conversation, &hashes, &account, &ledger, &Heuristic, budget)
    ///     .originals(Originals::Archived);
    /// let CompactionOutcome::Compacted(made) = engine::compact(&input)? else {
    ///     panic!("the history is larger than its budget");
    /// };
    /// assert!(made.receipt.tokens_after <= budget);
    /// assert_eq!(made.receipt.retention.lost, 0);
    /// # Ok::<(), compact_core::error::CompactError>(())
    /// ```
    pub fn new(
        conversation: &'a Conversation,
        hashes: &'a [EntryHash],
        account: &'a TokenAccount,
        ledger: &'a Ledger,
        estimator: &'a dyn Estimator,
        budget: Tokens,
    ) -> Self {
        CompactionInput {
            conversation,
            session_id: "",
            hashes,
            account,
            prior: None,
            ledger,
            policy: &DEFAULT_POLICY,
            budget,
            summary_limit: None,
            original: "",
            estimator,
            rules: &WireRules::LENIENT,
            redactor: &NO_REDACTION,
            originals: Originals::Gone,
            note: None,
            meaning: None,
            content: &SummaryContent::Ledger,
            prepared: None,
        }
    }

    /// Sets the session's name, for the receipt. Default: none.
    #[must_use]
    pub fn session_id(self, session_id: &'a str) -> Self {
        CompactionInput { session_id, ..self }
    }

    /// Sets the compaction before. Default: none, so the history begins the session.
    #[must_use]
    pub fn prior(self, prior: Option<&'a Prior>) -> Self {
        CompactionInput { prior, ..self }
    }

    /// Sets the user's decisions. Default: [`Policy::default`].
    #[must_use]
    pub fn policy(self, policy: &'a Policy) -> Self {
        CompactionInput { policy, ..self }
    }

    /// Sets what the history of the view may cost instead.
    #[must_use]
    pub fn budget(self, budget: Tokens) -> Self {
        CompactionInput { budget, ..self }
    }

    /// Sets what the summary may take before earlier turns are kept beside it. A policy that keeps nothing
    /// but the summary takes it for a limit. Default: all that the recent part leaves.
    #[must_use]
    pub fn summary_limit(self, summary_limit: Option<Tokens>) -> Self {
        CompactionInput {
            summary_limit,
            ..self
        }
    }

    /// Sets a digest of the bytes that the conversation was read from, so that two files with the same
    /// words have two receipts and each is restored as itself. Default: empty.
    #[must_use]
    pub fn original(self, digest: &'a str) -> Self {
        CompactionInput {
            original: digest,
            ..self
        }
    }

    /// Sets what the wire accepts. Default: [`WireRules::LENIENT`].
    #[must_use]
    pub fn rules(self, rules: &'a WireRules) -> Self {
        CompactionInput { rules, ..self }
    }

    /// Sets what is taken out of the summary. Default: nothing.
    #[must_use]
    pub fn redactor(self, redactor: &'a Redactor) -> Self {
        CompactionInput { redactor, ..self }
    }

    /// Sets where the originals of what the view does not show are. Default: [`Originals::Gone`].
    #[must_use]
    pub fn originals(self, originals: Originals<'a>) -> Self {
        CompactionInput { originals, ..self }
    }

    /// Sets a person's wish for this compaction. Default: none.
    #[must_use]
    pub fn note(self, note: Option<&'a str>) -> Self {
        CompactionInput { note, ..self }
    }

    /// Sets an embedding of each unit of the outline, for a policy that prunes by meaning. Default: units
    /// are compared by their words.
    #[must_use]
    pub fn meaning(self, meaning: Option<&'a [MeaningVector]>) -> Self {
        CompactionInput { meaning, ..self }
    }

    /// Sets what the summary is made of. Default: [`SummaryContent::Ledger`].
    #[must_use]
    pub fn content(self, content: &'a SummaryContent) -> Self {
        CompactionInput { content, ..self }
    }

    /// Sets what calls with the same conversation, ledger, estimator, policy and note found, and where this one keeps what it
    /// finds. Default: nowhere, each call does all of it.
    #[must_use]
    pub fn prepared(self, prepared: &'a Preparation) -> Self {
        let prepared = Some(prepared);
        CompactionInput { prepared, ..self }
    }

    /// Names what redaction does to the summary and to what is archived.
    pub(super) fn redaction_fingerprint(&self) -> String {
        redact::fingerprint(self.redactor, self.originals.redactor())
    }

    /// Where the summary stands: as the policy wants it, if the wire allows that.
    pub(super) fn summary_placement(&self) -> Placement {
        self.rules.allowed_placement(self.policy.placement)
    }
}
