//! What the manager says: events, each as part of the call that it happened in.
//!
//! Secrets are taken out of every event before a sink sees it. Which sinks there are, and what else
//! must not reach them, is decided where they are put together.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use compact_core::event::{Call, Event, EventKind, Scope};
use compact_core::token::Account;
use compact_core::trigger::Decision;
use serde_json::{Value, json};

use super::{Manager, Preflight, Session, now};
use crate::error::Error;
use crate::port::event;

/// A call that began.
pub(crate) struct Began {
    name: &'static str,
    pub(crate) at: Instant,
}

impl Began {
    pub(crate) fn now(name: &'static str) -> Began {
        Began {
            name,
            at: Instant::now(),
        }
    }
}

/// A call within `parent`'s trace, or in one of its own.
pub(crate) fn call_within(parent: Option<&Call>) -> Call {
    let random = || RandomState::new().hash_one(0) | 1;
    Call {
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
pub(super) fn categories(account: &Account) -> Value {
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
    pub(crate) fn begin(&self, session: &mut Session, name: &'static str) -> Began {
        session.call = Some(call_within(session.parent.as_ref()));
        Began::now(name)
    }

    /// The call ends.
    pub(crate) fn end(
        &self,
        session: &mut Session,
        began: &Began,
        result: &Result<Preflight, Error>,
    ) {
        let decision = match result {
            Ok(ready) => ready.decision.clone(),
            Err(_) => self.judge(session),
        };
        let outcome = match result {
            Ok(ready) if ready.receipt.is_some() => "compacted",
            Ok(_) => "unchanged",
            Err(_) => "failed",
        };
        self.ended(&self.scope(session, &decision), began, outcome);
        session.call = None;
    }

    /// Says how a call ended, and how long it took.
    pub(crate) fn ended(&self, scope: &Scope, began: &Began, outcome: &str) {
        self.emit(
            scope
                .event(EventKind::CallEnded, &now())
                .with("call", began.name)
                .with("outcome", outcome)
                .with("duration_ms", milliseconds(began.at.elapsed())),
        );
    }

    /// What was counted and decided, before anything is done about it.
    pub(super) fn announce(&self, scope: &Scope, account: &Account, decision: &Decision) {
        let mut estimate = scope.event(EventKind::TokenEstimate, &now());
        if let Value::Object(tokens) = categories(account) {
            estimate.detail.extend(tokens);
        }
        self.announced(scope, estimate, decision);
    }

    /// The same where nothing is to be done, so that nobody counted by category.
    pub(crate) fn announce_room(&self, session: &Session, decision: &Decision) {
        let scope = self.scope(session, decision);
        let estimate = scope.event(EventKind::TokenEstimate, &now());
        self.announced(&scope, estimate, decision);
    }

    fn announced(&self, scope: &Scope, estimate: Event, decision: &Decision) {
        if self.redactor.is_off() {
            let event = scope.event(EventKind::RedactionDisabled, &now());
            self.emit(event.with("boundary", "summary"));
        }
        self.emit(estimate);
        let verdict = serde_json::to_value(decision.verdict).unwrap_or(Value::Null);
        self.emit(
            scope
                .event(EventKind::TriggerDecision, &now())
                .with("verdict", verdict)
                .with("reason", decision.reason.clone())
                .with("pressure", decision.pressure),
        );
    }

    /// Tells the sinks, without secrets.
    pub(crate) fn emit(&self, event: Event) {
        if let Ok(mut value) = serde_json::to_value(event) {
            event::redact(&mut value, &self.redactor);
            self.sink.emit(&value);
        }
    }
}
