//! The engine as a method among others: events and a budget in, the text of the view out.
//!
//! In memory and on code points by four, so that a run measures what the engine keeps and nothing
//! of the machine.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use compact_core::engine::{self, CompactionInput, CompactionOutcome, Originals, Prior};
use compact_core::error::CompactError;
use compact_core::identity::EntryHash;
use compact_core::message::Conversation;
use compact_core::policy::Policy;
use compact_core::prompt::SummaryContent;
use compact_core::redact::{RedactionBoundary, RedactionRules, Redactor};
use compact_core::token::{Chars4, TokenAccount, TokenCache, Tokens};
use compact_core::wire::WireRules;
use compact_formats::{FormatError, TranscriptScope};
use compact_runtime::port::summarizer::Summarizer;
use compact_runtime::replay::play::PlaySettings;
use serde_json::Value;

use crate::chat;
use crate::event;
use crate::metric::{EventVoice, MetricEvent};
use crate::probe::live_events;
use crate::prose::ProseWriter;

pub use crate::prose::ProseCounts;

/// Compacts what it is given.
#[derive(Debug)]
pub struct EvalEngine {
    policy: Policy,
    redactor: Arc<Redactor>,
    teller: Option<ProseWriter>,
}

/// Why there is no view.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The engine refused the compaction.
    #[error(transparent)]
    Compact(#[from] CompactError),
    /// The request could not be read or the view not be written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The driver of a played session could not start.
    #[error("cannot start the driver")]
    AsyncRuntime(#[from] std::io::Error),
    /// The runtime could not search what it had archived.
    #[error(transparent)]
    Runtime(#[from] compact_runtime::Error),
    /// The redaction rules are wrong.
    #[error(transparent)]
    Redact(#[from] compact_core::redact::RedactError),
}

impl EvalEngine {
    /// Returns an engine under a policy, with the redaction rules of every default configuration.
    pub fn new(policy: Policy) -> Result<EvalEngine, EvalError> {
        Ok(EvalEngine {
            policy,
            redactor: Arc::new(RedactionRules::default().redactor(RedactionBoundary::Summary)?),
            teller: None,
        })
    }

    /// Builds an engine that asks a model for prose.
    pub fn with_summarizer(
        mut self,
        summarizer: Arc<dyn Summarizer>,
    ) -> Result<EvalEngine, EvalError> {
        self.teller = Some(ProseWriter::new(summarizer)?);
        Ok(self)
    }

    /// Returns what asking the model came to, if there is one.
    pub fn prose_counts(&self) -> Option<ProseCounts> {
        self.teller.as_ref().map(ProseWriter::counts)
    }

    /// Returns the user's decisions.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns how a session is played in a window of this size.
    pub(crate) fn play_settings(&self, window: Tokens) -> PlaySettings {
        PlaySettings {
            policy: self.policy.clone(),
            window,
            estimator: Arc::new(Chars4),
            redactor: Arc::clone(&self.redactor),
        }
    }

    /// Returns the text of the view of these events. System prompts are left out: the host re-sends them
    /// and a budget does not count them.
    pub fn compact(&self, events: &[MetricEvent], budget: usize) -> Result<String, EvalError> {
        self.view_text(events, budget, None)
    }

    /// Returns the text of the view of a transcript, compacted in its own format: what the model sees of it
    /// when its agent goes on.
    pub fn compact_transcript(&self, bytes: &[u8], budget: usize) -> Result<String, EvalError> {
        let bytes = Bytes::copy_from_slice(bytes);
        let parsed = compact_formats::parse(bytes.clone(), None, TranscriptScope::Live)?;
        let step = CompactionStep {
            conversation: &parsed.conversation,
            rules: parsed.document.rules(),
            prior: None,
            budget: Tokens(budget as u64),
        };
        let written = match self.compact_step(&step)?.0 {
            CompactionOutcome::Unchanged => bytes.to_vec(),
            CompactionOutcome::Compacted(made) => {
                parsed.document.emit(&parsed.conversation, &made.view)?
            }
        };
        let sessions = event::read_transcript(&written)?.into_iter();
        let shown = sessions.flat_map(live_events).map(|event| event.text);
        Ok(shown.collect::<Vec<_>>().join("\n\n"))
    }

    /// Compacts with a model's words in the summary, or with our own if it does not answer.
    pub fn compact_with_prose(
        &self,
        events: &[MetricEvent],
        budget: usize,
    ) -> Result<String, EvalError> {
        self.view_text(events, budget, self.teller.as_ref())
    }

    fn view_text(
        &self,
        events: &[MetricEvent],
        budget: usize,
        teller: Option<&ProseWriter>,
    ) -> Result<String, EvalError> {
        let spoken = events.iter().filter(|e| e.voice != EventVoice::System);
        let spoken: Vec<MetricEvent> = spoken.cloned().collect();
        let body = Bytes::from(chat::build_request(&spoken).to_string());
        let parsed = compact_formats::parse(body.clone(), None, TranscriptScope::Live)?;
        let step = CompactionStep {
            conversation: &parsed.conversation,
            rules: parsed.document.rules(),
            prior: None,
            budget: Tokens(budget as u64),
        };
        let written = match self.step_with_prose(&step, teller)? {
            (CompactionOutcome::Unchanged, _) => body.to_vec(),
            (CompactionOutcome::Compacted(made), _) => {
                parsed.document.emit(&parsed.conversation, &made.view)?
            }
        };
        let request: Value = serde_json::from_slice(&written).unwrap_or_default();
        Ok(chat::request_text(&request))
    }

    /// Returns one compaction, and what the next one needs of it.
    pub fn compact_step(
        &self,
        step: &CompactionStep<'_>,
    ) -> Result<(CompactionOutcome, Option<Prior>), CompactError> {
        self.step_with_prose(step, None)
    }

    fn step_with_prose(
        &self,
        step: &CompactionStep<'_>,
        teller: Option<&ProseWriter>,
    ) -> Result<(CompactionOutcome, Option<Prior>), CompactError> {
        let hashes = EntryHash::from_entries(&step.conversation.entries);
        let account = TokenAccount::count_conversation(
            step.conversation,
            &hashes,
            &Chars4,
            &mut TokenCache::default(),
        );
        let ledger = engine::session_ledger(step.conversation, &hashes, step.prior, &self.redactor);
        let input = CompactionInput::new(
            step.conversation,
            &hashes,
            &account,
            &ledger,
            &Chars4,
            step.budget,
        )
        .session_id("eval")
        .prior(step.prior)
        .policy(&self.policy)
        .rules(step.rules)
        .redactor(&self.redactor)
        .originals(Originals::Archived);
        let content = match teller {
            Some(teller) if account.history > step.budget => {
                teller.request_prose(&input, self.policy.strategy, step.budget)
            }
            _ => SummaryContent::Ledger,
        };
        let outcome = engine::compact(&input.content(&content))?;
        let prior = match &outcome {
            CompactionOutcome::Compacted(made) => Some(Prior::from_compaction(made, ledger)),
            CompactionOutcome::Unchanged => None,
        };
        Ok((outcome, prior))
    }
}

/// Waits for what the runtime answers.
pub(crate) fn block_on<T>(
    work: impl Future<Output = Result<T, compact_runtime::Error>>,
) -> Result<T, EvalError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(work)?)
}

/// The input of one compaction.
#[derive(Clone, Copy)]
pub struct CompactionStep<'a> {
    /// The live context that is compacted.
    pub conversation: &'a Conversation,
    /// What its wire accepts.
    pub rules: &'a WireRules,
    /// The previous compaction, which this one continues.
    pub prior: Option<&'a Prior>,
    /// What the view may cost.
    pub budget: Tokens,
}

impl fmt::Debug for CompactionStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
