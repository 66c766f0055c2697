//! What the manager says: events, each as part of the call that it happened in.
//!
//! Secrets are taken out of every event before a sink sees it. Which sinks there are, and what else
//! must not reach them, is decided where they are put together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use compact_core::event::{Event, EventKind, EventScope, TraceContext};
use compact_core::token::TokenAccount;
use compact_core::trigger::TriggerDecision;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Manager, Preflight, SessionState};
use crate::error::Error;
use crate::port::event;

/// A call that began.
pub(crate) struct CallStart {
    name: &'static str,
    at: Instant,
}

impl CallStart {
    pub(crate) fn now(name: &'static str) -> CallStart {
        CallStart::since(name, Instant::now())
    }

    /// A call that began at `at`.
    pub(super) fn since(name: &'static str, at: Instant) -> CallStart {
        CallStart { name, at }
    }
}

/// A call within `parent`'s trace, or in one of its own.
pub(crate) fn call_within(parent: Option<&TraceContext>) -> TraceContext {
    let random = || RandomState::new().hash_one(0) | 1;
    TraceContext {
        trace_id: parent.map_or_else(
            || format!("{:016x}{:016x}", random(), random()),
            |p| p.trace_id.clone(),
        ),
        span_id: format!("{:016x}", random()),
        parent_span_id: parent.map(|p| p.span_id.clone()),
    }
}

/// Milliseconds, to the microsecond.
pub(crate) fn milliseconds(took: Duration) -> f64 {
    took.as_micros() as f64 / 1000.0
}

/// Tokens by category; memory, user input and tool results are parts of the history.
pub(super) fn categories(account: &TokenAccount) -> Value {
    json!({
        "system": account.system.0,
        "tools": account.tools.0,
        "history": account.history.0,
        "memory": account.memory.0,
        "user_input": account.user_input.0,
        "tool_results": account.tool_results.0,
    })
}

impl Manager {
    /// A call begins: what is said of the session from now on belongs to it.
    pub(crate) fn begin_call(&self, session: &mut SessionState, name: &'static str) -> CallStart {
        session.call = Some(call_within(session.parent.as_ref()));
        CallStart::now(name)
    }

    /// The call ends.
    pub(crate) fn end_call(
        &self,
        session: &mut SessionState,
        began: &CallStart,
        result: &Result<Preflight, Error>,
    ) {
        let decision = match result {
            Ok(ready) => ready.decision.clone(),
            Err(_) => self.decide_pressure(session),
        };
        let outcome = match result {
            Ok(ready) if ready.receipt.is_some() => "compacted",
            Ok(_) => "unchanged",
            Err(_) => "failed",
        };
        self.emit_call_ended(&self.session_scope(session, &decision), began, outcome);
        session.call = None;
    }

    /// Says how a call ended, and how long it took.
    pub(crate) fn emit_call_ended(&self, scope: &EventScope, began: &CallStart, outcome: &str) {
        self.emit(
            scope
                .event(EventKind::CallEnded, &self.clock.timestamp())
                .with("call", began.name)
                .with("outcome", outcome)
                .with("duration_ms", milliseconds(began.at.elapsed())),
        );
    }

    /// What was counted and decided, before anything is done about it.
    pub(super) fn emit_estimate(
        &self,
        scope: &EventScope,
        account: &TokenAccount,
        decision: &TriggerDecision,
    ) {
        let mut estimate = scope.event(EventKind::TokenEstimate, &self.clock.timestamp());
        if let Value::Object(tokens) = categories(account) {
            estimate.detail.extend(tokens);
        }
        self.emit_with_decision(scope, estimate, decision);
    }

    /// The same where nothing is to be done, so that nobody counted by category.
    pub(crate) fn emit_bare_estimate(&self, session: &SessionState, decision: &TriggerDecision) {
        let scope = self.session_scope(session, decision);
        let estimate = scope.event(EventKind::TokenEstimate, &self.clock.timestamp());
        self.emit_with_decision(&scope, estimate, decision);
    }

    fn emit_with_decision(&self, scope: &EventScope, estimate: Event, decision: &TriggerDecision) {
        if self.redactor.is_off() {
            let event = scope.event(EventKind::RedactionDisabled, &self.clock.timestamp());
            self.emit(event.with("boundary", "summary"));
        }
        self.emit(estimate);
        let verdict = serde_json::to_value(decision.verdict).unwrap_or(Value::Null);
        self.emit(
            scope
                .event(EventKind::TriggerDecision, &self.clock.timestamp())
                .with("verdict", verdict)
                .with("reason", decision.reason.clone())
                .with("pressure", decision.pressure),
        );
    }

    /// Tells the sinks, without secrets.
    pub(crate) fn emit(&self, event: Event) {
        if let Ok(mut value) = serde_json::to_value(event) {
            event::redact_event(&mut value, &self.redactor);
            self.sink.emit(&value);
        }
    }
}
