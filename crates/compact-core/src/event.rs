//! Events: what the engine tells the world, in the schema of the product document (S2 §9).
//!
//! Events carry counts and ids, never content. Time is an argument; where they go is the runtime's
//! business.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::policy::Policy;
use crate::receipt::{KeptCounts, Receipt};
use crate::token::Tokens;
use crate::trigger::{CompactionCause, TriggerDecision};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum EventKind {
    /// The context was counted.
    #[serde(rename = "compact.token_estimate")]
    TokenEstimate,
    /// A verdict was reached.
    #[serde(rename = "compact.trigger_decision")]
    TriggerDecision,
    /// A summary was written.
    #[serde(rename = "compact.summary_created")]
    SummaryCreated,
    /// Entries left the view.
    #[serde(rename = "compact.pruned_messages")]
    PrunedMessages,
    /// A policy decided what stays.
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
    /// Something archived was asked for.
    #[serde(rename = "compact.recalled")]
    Recalled,
    /// A call ended, such as `before_model_call`: how, and how long it took. The other events of the
    /// call carry the same `span_id`.
    #[serde(rename = "compact.call_ended")]
    CallEnded,
    /// An original was not archived because there is no archive.
    #[serde(rename = "compact.not_archived")]
    NotArchived,
    /// Malformed tool messages were left out of a view.
    #[serde(rename = "compact.repaired")]
    Repaired,
    /// What was said last did not fit the window and was cut.
    #[serde(rename = "compact.newest_cut")]
    NewestCut,
    /// Redaction is off.
    #[serde(rename = "compact.redaction_disabled")]
    RedactionDisabled,
    /// A transcript or an artifact of a reset could not be written or read.
    #[serde(rename = "compact.transcript_failed")]
    TranscriptFailed,
    /// A reset began: no input is taken until it has ended.
    #[serde(rename = "context_compaction_started")]
    ContextCompactionStarted,
    /// The history was reset onto its summary.
    #[serde(rename = "context_compacted")]
    ContextCompacted,
    /// A reset failed; nothing changed.
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
    /// A provider reported its usage.
    #[serde(rename = "compact.usage")]
    Usage,
    /// A provider reported no usage.
    #[serde(rename = "compact.usage_missing")]
    UsageMissing,
    /// Usage is counted from zero, because the context is a new one.
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
            | EventKind::NewestCut
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
    /// The call that it belongs to.
    #[serde(flatten)]
    pub call: Option<TraceContext>,
    /// The model, when known.
    pub model: Option<String>,
    /// The estimate of the whole context.
    pub t_est: Tokens,
    /// The window.
    pub max: Tokens,
    /// The policy's two numbers that readers ask for first.
    pub policy: PolicyBrief,
    /// What stayed.
    pub kept: KeptCounts,
    /// How many entries left.
    pub pruned_count: u64,
    /// What the summary costs.
    pub summary_tokens: Tokens,
    /// More, by kind of event: counts and ids only.
    #[serde(flatten)]
    pub detail: Map<String, Value>,
}

/// A call, by the names that tracing has for it: 32 and 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceContext {
    /// The trace: the caller's own, where it told it.
    pub trace_id: String,
    /// The call itself.
    pub span_id: String,
    /// The caller's span, within which the call was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
}

impl TraceContext {
    /// The call that a `traceparent` header names: whoever takes part in its trace is its child.
    /// `None` for anything but a W3C trace context of version 00.
    pub fn parse(traceparent: &str) -> Option<TraceContext> {
        let mut parts = traceparent.trim().split('-');
        let mut hex = |length: usize| {
            let part = parts.next()?;
            let fits = part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit());
            fits.then(|| part.to_ascii_lowercase())
        };
        let (version, trace_id, span_id, _flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        let is_set = |id: &str| id.bytes().any(|b| b != b'0');
        let valid = version == "00" && is_set(&trace_id) && is_set(&span_id);
        (valid && parts.next().is_none()).then_some(TraceContext {
            trace_id,
            span_id,
            parent_span_id: None,
        })
    }
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
pub struct EventScope {
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
    /// Why there is a compaction, if there is one.
    pub cause: Option<CompactionCause>,
    /// The call.
    pub call: Option<TraceContext>,
}

impl EventScope {
    /// The scope of one call.
    pub fn new(
        session_id: &str,
        model: Option<&str>,
        decision: &TriggerDecision,
        policy: &Policy,
    ) -> EventScope {
        EventScope {
            session_id: session_id.to_owned(),
            model: model.map(str::to_owned),
            window: decision.window,
            policy: PolicyBrief {
                trigger_pct: policy.trigger_pct,
                buffer: policy.hard_cap_buffer,
            },
            tokens: decision.tokens,
            cause: decision.cause,
            call: None,
        }
    }

    /// The same as part of a call.
    #[must_use]
    pub fn with_call(mut self, call: Option<TraceContext>) -> EventScope {
        self.call = call;
        self
    }

    /// An event of this scope.
    pub fn event(&self, kind: EventKind, ts: &str) -> Event {
        let cause = self
            .cause
            .map(|cause| ("cause".to_owned(), cause.as_str().into()));
        Event {
            call: self.call.clone(),
            ts: ts.to_owned(),
            session_id: self.session_id.clone(),
            event: kind,
            severity: kind.severity(),
            model: self.model.clone(),
            t_est: self.tokens,
            max: self.window,
            policy: self.policy,
            kept: KeptCounts::default(),
            pruned_count: 0,
            summary_tokens: Tokens(0),
            detail: cause.into_iter().collect(),
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
    pub fn with_receipt(mut self, receipt: &Receipt) -> Event {
        self.kept = receipt.kept;
        self.pruned_count = receipt.pruned_count;
        self.summary_tokens = receipt.summary_tokens;
        self.with("receipt_id", receipt.receipt_id.clone())
    }
}

#[cfg(test)]
mod tests;
