//! What a hook tells those who watch: events, beside the lines of its log.
//!
//! They are gathered while the agent waits and leave after it has its answer, for as long as that is
//! bearable: a collector that hangs costs a fraction of a second and the events, never a compaction.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use compact::clock::Clock;
use compact::event::{
    CallOutcome, Event, EventKind, EventScope, EventSink, FanoutSink, HookReport, HookStep,
    PolicyBrief, RedactingSink, TraceContext, call_within, open_exporter,
};
use compact::hook::HookPayload;
use compact::redact::RedactionBoundary;
use compact::token::Tokens;

use super::hook_log::{HookLog, LogLevel};
use crate::app::HookConfig;
use crate::telemetry::{self, StderrLog};

/// How long the end of a hook waits for a collector.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(300);

/// The events of one call.
pub(crate) struct HookEvents<'a> {
    clock: &'a dyn Clock,
    began: Instant,
    span: TraceContext,
    gathered: RefCell<Vec<Event>>,
}

impl<'a> HookEvents<'a> {
    /// Begins a call within the caller's span, if there is one.
    pub(crate) fn new(clock: &'a dyn Clock, caller: Option<&TraceContext>) -> HookEvents<'a> {
        HookEvents {
            clock,
            began: Instant::now(),
            span: call_within(caller),
            gathered: RefCell::default(),
        }
    }

    /// Gathers what a hook did for an agent's session, whose context costs so much now.
    pub(super) fn add_step(&self, call: &HookPayload, tokens: Option<Tokens>, step: HookStep) {
        let scope = EventScope {
            session_id: call.session.clone(),
            call: Some(self.span.clone()),
            tokens: tokens.unwrap_or_default(),
            ..EventScope::default()
        };
        let kind = EventKind::Hook(HookReport {
            agent: call.agent.name().to_owned(),
            moment: call.event.clone(),
            step,
        });
        let event = scope.event(kind, &self.clock.timestamp());
        self.gathered.borrow_mut().push(event);
    }

    /// Passes on what was gathered, to whoever the configuration names.
    pub(crate) fn export(self, found: &HookConfig, journal: &HookLog) {
        let Some(ended) = self.call_ended() else {
            return;
        };
        let policy = &found.config.policy;
        let policy = PolicyBrief {
            trigger_pct: policy.trigger_pct,
            buffer: policy.hard_cap_buffer,
        };
        let Ok(redactor) = found.config.redaction.redactor(RedactionBoundary::Export) else {
            return;
        };
        let queue = open_exporter(&found.config.telemetry).unwrap_or_else(|error| {
            journal.write_line(LogLevel::Warning, &format!("hook: {error}"));
            None
        });
        let queue = queue.map(Arc::new);
        let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
        sinks.extend(
            queue
                .clone()
                .map(|queue| Box::new(queue) as Box<dyn EventSink>),
        );
        if let StderrLog::Events(_) = found.log {
            sinks.push(Box::new(telemetry::stderr_sink(&found.config, found.log)));
        }
        let sink = RedactingSink::new(Arc::new(redactor), Arc::new(FanoutSink(sinks)));
        for mut event in self.gathered.into_inner().into_iter().chain([ended]) {
            event.scope.policy = policy;
            sink.emit(&event);
        }
        if let Some(queue) = queue {
            let lost = queue.flush(FLUSH_TIMEOUT) + queue.dropped();
            if lost > 0 {
                let line = format!("hook: {lost} events were not exported");
                journal.write_line(LogLevel::Warning, &line);
            }
            // To drop it would wait again; the process ends now.
            std::mem::forget((queue, sink));
        }
    }

    /// How the call ended; `None` where there is nothing to tell.
    fn call_ended(&self) -> Option<Event> {
        let gathered = self.gathered.borrow();
        let last = gathered.last()?;
        let has = |wanted: fn(&HookStep) -> bool| {
            let mut kinds = gathered.iter().map(|event| &event.kind);
            kinds.any(|kind| matches!(kind, EventKind::Hook(report) if wanted(&report.step)))
        };
        let outcome = if has(|step| matches!(step, HookStep::HookFailed { .. })) {
            CallOutcome::Failed
        } else if has(|step| matches!(step, HookStep::HookCompacted { .. })) {
            CallOutcome::Compacted
        } else {
            CallOutcome::Unchanged
        };
        let kind = EventKind::CallEnded {
            call: "hook".to_owned(),
            outcome,
            duration_ms: self.began.elapsed().as_micros() as f64 / 1000.0,
        };
        Some(last.scope.event(kind, &self.clock.timestamp()))
    }
}
