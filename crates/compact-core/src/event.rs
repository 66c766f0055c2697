//! Events: what the engine tells the world, in the schema of the product document (S2 §9).
//!
//! Events carry counts and ids, never content. Time is an argument; where they go is the runtime's
//! business.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::policy::Policy;
use crate::receipt::{Kept, Receipt};
use crate::token::Tokens;
use crate::trigger::Decision;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum EventKind {
    /// The context was counted (S2-46).
    #[serde(rename = "compact.token_estimate")]
    TokenEstimate,
    /// A verdict was reached (S2-47).
    #[serde(rename = "compact.trigger_decision")]
    TriggerDecision,
    /// A summary was written (S2-48).
    #[serde(rename = "compact.summary_created")]
    SummaryCreated,
    /// Entries left the view (S2-49).
    #[serde(rename = "compact.pruned_messages")]
    PrunedMessages,
    /// A policy decided what stays (S2-50).
    #[serde(rename = "compact.policy_applied")]
    PolicyApplied,
    /// A compaction began.
    #[serde(rename = "compact.started")]
    Started,
    /// A compaction ended with a new view.
    #[serde(rename = "compact.completed")]
    Completed,
    /// A compaction ended without one; nothing changed.
    #[serde(rename = "compact.failed")]
    Failed,
    /// A summarizer failed and another took its place.
    #[serde(rename = "compact.fallback")]
    Fallback,
    /// The original is in the archive.
    #[serde(rename = "compact.archived")]
    Archived,
    /// An original was not archived because there is no archive (C-29).
    #[serde(rename = "compact.not_archived")]
    NotArchived,
    /// Malformed tool messages were left out of a view (S2-163).
    #[serde(rename = "compact.repaired")]
    Repaired,
    /// Redaction is off (S2-164).
    #[serde(rename = "compact.redaction_disabled")]
    RedactionDisabled,
    /// A transcript or an artifact of a reset could not be written or read.
    #[serde(rename = "compact.transcript_failed")]
    TranscriptFailed,
    /// A reset began: no input is taken until it has ended (S1-67).
    #[serde(rename = "context_compaction_started")]
    ContextCompactionStarted,
    /// The history was reset onto its summary (S1-102).
    #[serde(rename = "context_compacted")]
    ContextCompacted,
    /// A reset failed; nothing changed (S1-103).
    #[serde(rename = "context_compaction_failed")]
    ContextCompactionFailed,
    /// A compaction began beside the session.
    #[serde(rename = "compact.scheduled")]
    Scheduled,
    /// A view that was made beside the session took its place.
    #[serde(rename = "compact.swapped")]
    Swapped,
    /// A view that was made beside the session came too late and was thrown away.
    #[serde(rename = "compact.discarded")]
    Discarded,
    /// A provider refused a prompt because of its size.
    #[serde(rename = "compact.overflowed")]
    Overflowed,
    /// The window will be full in a few calls.
    #[serde(rename = "compact.forecast")]
    Forecast,
    /// A provider reported its usage (S3-39).
    #[serde(rename = "compact.usage")]
    Usage,
    /// A provider reported no usage (S3-40).
    #[serde(rename = "compact.usage_missing")]
    UsageMissing,
    /// Usage is counted from zero, because the context is a new one (S3-50).
    #[serde(rename = "compact.usage_reset")]
    UsageReset,
}

/// How much a reader should care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Ordinary.
    Info,
    /// Something took a lesser path.
    Warning,
    /// Something needs a person.
    High,
}

impl EventKind {
    /// How much a reader should care.
    pub fn severity(self) -> Severity {
        match self {
            EventKind::RedactionDisabled => Severity::High,
            EventKind::Failed
            | EventKind::Fallback
            | EventKind::NotArchived
            | EventKind::TranscriptFailed
            | EventKind::ContextCompactionFailed
            | EventKind::Discarded
            | EventKind::Overflowed
            | EventKind::Forecast
            | EventKind::UsageMissing
            | EventKind::Repaired => Severity::Warning,
            _ => Severity::Info,
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// When, as ISO-8601 with Z.
    pub ts: String,
    /// Where.
    pub session_id: String,
    /// What.
    pub event: EventKind,
    /// How much it matters.
    pub severity: Severity,
    /// The model, when known.
    pub model: Option<String>,
    /// The estimate of the whole context.
    pub t_est: Tokens,
    /// The window.
    pub max: Tokens,
    /// The policy's two numbers that readers ask for first.
    pub policy: PolicyBrief,
    /// What stayed.
    pub kept: Kept,
    /// How many entries left.
    pub pruned_count: u64,
    /// What the summary costs.
    pub summary_tokens: Tokens,
    /// More, by kind of event: counts and ids only.
    #[serde(flatten)]
    pub detail: Map<String, Value>,
}

/// Trigger and buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PolicyBrief {
    /// The trigger ratio.
    pub trigger_pct: f64,
    /// The reserve.
    pub buffer: u64,
}

/// What every event of one call shares.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The session.
    pub session_id: String,
    /// The model.
    pub model: Option<String>,
    /// The window.
    pub window: Tokens,
    /// Trigger and buffer.
    pub policy: PolicyBrief,
    /// The estimate of the whole context.
    pub tokens: Tokens,
}

impl Scope {
    /// The scope of one call.
    pub fn new(
        session_id: &str,
        model: Option<&str>,
        decision: &Decision,
        policy: &Policy,
    ) -> Scope {
        Scope {
            session_id: session_id.to_owned(),
            model: model.map(str::to_owned),
            window: decision.window,
            policy: PolicyBrief {
                trigger_pct: policy.trigger_pct,
                buffer: policy.hard_cap_buffer,
            },
            tokens: decision.tokens,
        }
    }

    /// An event of this scope.
    pub fn event(&self, kind: EventKind, ts: &str) -> Event {
        Event {
            ts: ts.to_owned(),
            session_id: self.session_id.clone(),
            event: kind,
            severity: kind.severity(),
            model: self.model.clone(),
            t_est: self.tokens,
            max: self.window,
            policy: self.policy,
            kept: Kept::default(),
            pruned_count: 0,
            summary_tokens: Tokens(0),
            detail: Map::new(),
        }
    }
}

impl Event {
    /// Adds one detail.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Event {
        self.detail.insert(key.to_owned(), value.into());
        self
    }

    /// Adds what a receipt counted.
    pub fn of(mut self, receipt: &Receipt) -> Event {
        self.kept = receipt.kept;
        self.pruned_count = receipt.pruned_count;
        self.summary_tokens = receipt.summary_tokens;
        self.with("receipt_id", receipt.receipt_id.clone())
    }
}
