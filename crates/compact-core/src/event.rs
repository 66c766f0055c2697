//! Events: what happened, as values that carry counts and ids and never content.
//!
//! An [`Event`] is when, in which call and session, and what: an [`EventKind`] with the numbers of its
//! kind. Its `Serialize` is the one mapping to the documented JSON. Time is an argument; where events
//! go is the runtime's business.

mod hook;
mod kind;
mod run;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod typescript;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::policy::Policy;
use crate::receipt::{KeptCounts, Receipt};
use crate::redact::{RedactionCounts, Redactor};
use crate::token::Tokens;
use crate::trigger::{CompactionCause, TriggerDecision};

pub use hook::{HookReport, HookStep};
pub use kind::{
    CacheMiss, CallOutcome, CategoryTokens, EventKind, FailedModel, MissOrigin, OverflowAnswer,
    PromptChange, PromptPart, RecallCounts, Substitute, UsageReport,
};
pub use run::{CheckpointSource, RunCounters, RunReport, RunStep, RunTotals};

/// How much a reader should care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Ordinary.
    Info,
    /// Something took a lesser path.
    Warning,
    /// Something needs a person.
    High,
    /// Something is over: a session that cannot go on, a task that was given up.
    Error,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Event {
    /// When, as ISO-8601 with Z.
    pub ts: String,
    /// What, with its numbers. It is read before the scope, which takes `model` out of the JSON.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Where: the call and its session.
    #[serde(flatten)]
    pub scope: EventScope,
    /// What the compaction counted that the event is about; nothing where there is none.
    #[serde(flatten)]
    pub receipt: ReceiptBrief,
}

/// What every event of one call shares.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct EventScope {
    /// The session.
    pub session_id: String,
    /// The call.
    #[serde(flatten)]
    pub call: Option<TraceContext>,
    /// The model, when known.
    pub model: Option<String>,
    /// The estimate of the whole context.
    #[serde(rename = "t_est")]
    pub tokens: Tokens,
    /// The window.
    #[serde(rename = "max")]
    pub window: Tokens,
    /// Trigger and buffer.
    pub policy: PolicyBrief,
    /// Why there is a compaction, if there is one.
    pub cause: Option<CompactionCause>,
}

/// Trigger and buffer: the two numbers of a policy that readers ask for first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyBrief {
    /// The trigger ratio.
    pub trigger_pct: f64,
    /// The reserve.
    pub buffer: u64,
}

/// The counts of a receipt that readers ask for first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ReceiptBrief {
    /// What stayed.
    pub kept: KeptCounts,
    /// How many entries left.
    pub pruned_count: u64,
    /// What the summary costs.
    pub summary_tokens: Tokens,
    /// The receipt.
    pub receipt_id: Option<String>,
}

/// A call, by the names that tracing has for it: 32 and 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceContext {
    /// The trace: the caller's own, where it told it.
    pub trace_id: String,
    /// The call itself.
    pub span_id: String,
    /// The caller's span, within which the call was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
}

/// What every event says, whatever its kind.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventBase")]
struct EventJson<'a> {
    /// When, as ISO-8601 with Z.
    ts: &'a str,
    /// The session.
    session_id: &'a str,
    #[schemars(skip)]
    event: String,
    /// How much a reader should care.
    severity: Severity,
    #[serde(flatten)]
    call: &'a Option<TraceContext>,
    /// The model, when known.
    model: &'a Option<String>,
    /// The estimate of the whole context.
    t_est: Tokens,
    /// The window.
    max: Tokens,
    /// Trigger and buffer.
    policy: PolicyBrief,
    /// What stayed.
    kept: KeptCounts,
    /// How many entries left.
    pruned_count: u64,
    /// What the summary costs.
    summary_tokens: Tokens,
    /// Why there is a compaction, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<CompactionCause>,
    /// The receipt, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_id: &'a Option<String>,
    #[schemars(skip)]
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (scope, receipt) = (&self.scope, &self.receipt);
        EventJson {
            ts: &self.ts,
            session_id: &scope.session_id,
            event: self.kind.name(),
            severity: self.kind.severity(),
            call: &scope.call,
            model: &scope.model,
            t_est: scope.tokens,
            max: scope.window,
            policy: scope.policy,
            kept: receipt.kept,
            pruned_count: receipt.pruned_count,
            summary_tokens: receipt.summary_tokens,
            cause: scope.cause,
            receipt_id: &receipt.receipt_id,
            fields: self.kind.fields(),
        }
        .serialize(serializer)
    }
}

/// The JSON of an event: what every event says, and what its kind does.
impl JsonSchema for Event {
    fn schema_name() -> Cow<'static, str> {
        "Event".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let base = generator.subschema_for::<EventJson<'static>>();
        let kind = generator.subschema_for::<EventKind>();
        json_schema!({ "allOf": [base, kind] })
    }
}

impl Event {
    /// Adds what a receipt counted.
    #[must_use]
    pub fn with_receipt(mut self, receipt: &Receipt) -> Event {
        self.receipt = ReceiptBrief {
            kept: receipt.kept,
            pruned_count: receipt.pruned_count,
            summary_tokens: receipt.summary_tokens,
            receipt_id: Some(receipt.receipt_id.clone()),
        };
        self
    }

    /// Takes out of the event's texts what a redactor finds. Ids that we make ourselves stay: random
    /// digits may look like a card's number, and a trace whose name was replaced is no trace. So do the
    /// digits of a session's name.
    pub fn redact(&mut self, redactor: &Redactor) {
        let scope = &mut self.scope;
        let mut counts = RedactionCounts::new();
        for name in self
            .kind
            .names_mut()
            .into_iter()
            .chain([&mut scope.session_id])
        {
            if let Cow::Owned(redacted) = redactor.redact_id(name, &mut counts) {
                *name = redacted;
            }
        }
        for text in scope.model.iter_mut().chain(self.kind.texts_mut()) {
            if let Cow::Owned(redacted) = redactor.redact(text, &mut counts) {
                *text = redacted;
            }
        }
    }
}

impl EventScope {
    /// The scope of what was decided about a session, outside of any call.
    pub fn new(
        session_id: &str,
        model: Option<&str>,
        decision: &TriggerDecision,
        policy: &Policy,
    ) -> EventScope {
        EventScope {
            session_id: session_id.to_owned(),
            call: None,
            model: model.map(str::to_owned),
            tokens: decision.tokens,
            window: decision.window,
            policy: PolicyBrief {
                trigger_pct: policy.trigger_pct,
                buffer: policy.hard_cap_buffer,
            },
            cause: decision.cause,
        }
    }

    /// An event of this scope.
    pub fn event(&self, kind: EventKind, ts: &str) -> Event {
        Event {
            ts: ts.to_owned(),
            kind,
            scope: self.clone(),
            receipt: ReceiptBrief::default(),
        }
    }
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
