//! The engine as a method among others: events and a budget in, the text of the view out.
//!
//! In memory and on code points by four, so that a run measures what the engine keeps and nothing
//! of the machine.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use compact_core::engine::{self, Beyond, Compaction, Input, Outcome, Prior};
use compact_core::error::CompactError;
use compact_core::identity::EntryHash;
use compact_core::message::Conversation;
use compact_core::policy::Policy;
use compact_core::prompt::Words;
use compact_core::redact::{Boundary, RedactionRules, Redactor};
use compact_core::token::{Account, Chars4, TokenCache, Tokens};
use compact_core::wire::WireRules;
use compact_formats::{FormatError, Scope};
use compact_runtime::port::summarizer::Summarizer;
use serde_json::Value;

use crate::chat;
use crate::metric::{Event, Voice};
use crate::telling::Teller;

pub use crate::telling::Tally;

/// Compacts what it is given.
#[derive(Debug)]
pub struct Engine {
    policy: Policy,
    redactor: Redactor,
    teller: Option<Teller>,
}

/// Why there is no view.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine refused.
    #[error(transparent)]
    Compact(#[from] CompactError),
    /// The request could not be read or the view not be written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The driver of a played session could not start.
    #[error("cannot start the driver")]
    Driver(#[from] std::io::Error),
    /// The runtime could not search what it had archived.
    #[error(transparent)]
    Runtime(#[from] compact_runtime::Error),
    /// The redaction rules are wrong.
    #[error(transparent)]
    Redact(#[from] compact_core::redact::RedactError),
}

impl Engine {
    /// An engine under a policy, with the redaction rules of every default configuration.
    pub fn new(policy: Policy) -> Result<Engine, EngineError> {
        Ok(Engine {
            policy,
            redactor: RedactionRules::default().redactor(Boundary::Summary)?,
            teller: None,
        })
    }

    /// The same with a model to ask for prose.
    pub fn with_summarizer(
        mut self,
        summarizer: Arc<dyn Summarizer>,
    ) -> Result<Engine, EngineError> {
        self.teller = Some(Teller::new(summarizer)?);
        Ok(self)
    }

    /// What asking the model came to, if there is one.
    pub fn told(&self) -> Option<Tally> {
        self.teller.as_ref().map(Teller::tally)
    }

    /// The user's decisions.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The text of the view of these events. System prompts are left out: the host re-sends them
    /// and a budget does not count them.
    pub fn compact(&self, events: &[Event], budget: usize) -> Result<String, EngineError> {
        self.text(events, budget, None)
    }

    /// The same with a model's words in the summary; without an answer, with our own alone.
    pub fn compact_told(&self, events: &[Event], budget: usize) -> Result<String, EngineError> {
        self.text(events, budget, self.teller.as_ref())
    }

    fn text(
        &self,
        events: &[Event],
        budget: usize,
        teller: Option<&Teller>,
    ) -> Result<String, EngineError> {
        let spoken = events.iter().filter(|e| e.voice != Voice::System);
        let spoken: Vec<Event> = spoken.cloned().collect();
        let body = Bytes::from(chat::request(&spoken).to_string());
        let parsed = compact_formats::parse(body.clone(), None, Scope::Live)?;
        let step = Step {
            conversation: &parsed.conversation,
            rules: parsed.document.rules(),
            prior: None,
            budget: Tokens(budget as u64),
        };
        let written = match self.step_told(&step, teller)? {
            (Outcome::Unchanged, _) => body.to_vec(),
            (Outcome::Compacted(made), _) => {
                parsed.document.emit(&parsed.conversation, &made.view)?
            }
        };
        let request: Value = serde_json::from_slice(&written).unwrap_or_default();
        Ok(chat::text_of(&request))
    }

    /// One compaction, and what the next one needs of it.
    pub fn step(&self, step: &Step<'_>) -> Result<(Outcome, Option<Prior>), CompactError> {
        self.step_told(step, None)
    }

    fn step_told(
        &self,
        step: &Step<'_>,
        teller: Option<&Teller>,
    ) -> Result<(Outcome, Option<Prior>), CompactError> {
        let hashes = EntryHash::all(&step.conversation.entries);
        let account = Account::of(
            step.conversation,
            &hashes,
            &Chars4,
            &mut TokenCache::default(),
        );
        let ledger = engine::session_ledger(step.conversation, &hashes, step.prior, &self.redactor);
        let input = Input {
            conversation: step.conversation,
            session_id: "eval",
            hashes: &hashes,
            account: &account,
            prior: step.prior,
            ledger: &ledger,
            policy: &self.policy,
            budget: step.budget,
            summary_limit: None,
            original: "",
            estimator: &Chars4,
            rules: step.rules,
            redactor: &self.redactor,
            beyond: Beyond::Archived,
            note: None,
            meaning: None,
            words: &Words::Ledger,
        };
        let words = teller.map_or(Words::Ledger, |teller| teller.words(&input));
        let outcome = engine::compact(&Input {
            words: &words,
            ..input
        })?;
        let prior = match &outcome {
            Outcome::Compacted(made) => Some(prior(made, ledger)),
            Outcome::Unchanged => None,
        };
        Ok((outcome, prior))
    }
}

/// What one compaction is a function of.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The live context.
    pub conversation: &'a Conversation,
    /// What its wire accepts.
    pub rules: &'a WireRules,
    /// The compaction before.
    pub prior: Option<&'a Prior>,
    /// What the view may cost.
    pub budget: Tokens,
}

fn prior(made: &Compaction, ledger: compact_core::ledger::Ledger) -> Prior {
    Prior {
        receipt_id: made.receipt.receipt_id.clone(),
        summary_version: made.receipt.summary_version,
        view: made.view_identity.clone(),
        ledger,
    }
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
