//! What the manager emits: events, each as part of the call that it happened in.
//!
//! Secrets are taken out of every event before a sink sees it. Which sinks there are, and what else
//! must not reach them, is decided where they are put together.

use std::time::Duration;

use compact_core::event::{
    CallOutcome, CategoryTokens, Event, EventKind, EventScope, ReceiptBrief,
};
use compact_core::receipt::Receipt;
use compact_core::redact::RedactionBoundary;
use compact_core::trigger::TriggerDecision;
use tokio::time::Instant;

use super::{Manager, Preflight, SessionState};
use crate::error::Error;
use crate::port::event::call_within;

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

/// Milliseconds, to the microsecond.
pub(crate) fn milliseconds(took: Duration) -> f64 {
    took.as_micros() as f64 / 1000.0
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
            Ok(ready) if ready.receipt.is_some() => CallOutcome::Compacted,
            Ok(_) => CallOutcome::Unchanged,
            Err(_) => CallOutcome::Failed,
        };
        self.emit_call_ended(&self.session_scope(session, &decision), began, outcome);
        session.call = None;
    }

    /// Emits how a call ended, and how long it took.
    pub(crate) fn emit_call_ended(
        &self,
        scope: &EventScope,
        began: &CallStart,
        outcome: CallOutcome,
    ) {
        let ended = EventKind::CallEnded {
            call: began.name.to_owned(),
            outcome,
            duration_ms: milliseconds(began.at.elapsed()),
        };
        self.emit(scope, ended);
    }

    /// Emits a decision where nothing is to be done, so that nobody counted by category.
    pub(crate) fn emit_bare_decision(&self, session: &SessionState, decision: &TriggerDecision) {
        let scope = self.session_scope(session, decision);
        self.emit_decision(&scope, None, decision, ReceiptBrief::default());
    }

    /// Emits what was counted, decided and planned, before anything is done about it.
    pub(super) fn emit_decision(
        &self,
        scope: &EventScope,
        tokens: Option<CategoryTokens>,
        decision: &TriggerDecision,
        planned: ReceiptBrief,
    ) {
        if self.redactor.is_off() {
            let boundary = RedactionBoundary::Summary;
            self.emit(scope, EventKind::RedactionDisabled { boundary });
        }
        self.emit(scope, EventKind::TokenEstimate { tokens });
        let decided = EventKind::TriggerDecision {
            verdict: decision.verdict,
            reason: decision.reason.clone(),
            pressure: decision.pressure,
        };
        let mut event = scope.event(decided, &self.clock.timestamp());
        event.receipt = planned;
        self.send_event(event);
    }

    /// Emits what happened in a scope, now.
    pub(crate) fn emit(&self, scope: &EventScope, kind: EventKind) {
        self.send_event(scope.event(kind, &self.clock.timestamp()));
    }

    /// Emits what happened to the compaction of a receipt.
    pub(crate) fn emit_of_receipt(&self, scope: &EventScope, receipt: &Receipt, kind: EventKind) {
        self.send_event(
            scope
                .event(kind, &self.clock.timestamp())
                .with_receipt(receipt),
        );
    }

    fn send_event(&self, mut event: Event) {
        event.redact(&self.redactor);
        self.sink.emit(&event);
    }
}
