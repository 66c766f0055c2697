//! What is told of a run while it goes on: its events, and beside them what the agent says and does.

use compact_core::event::{
    CheckpointSource, Event, EventKind, EventScope, PolicyBrief, RunReport, RunStep,
};
use compact_core::token::Tokens;
use compact_core::usage::Usage;
use serde::Serialize;

use super::Runner;

/// What an agent says and does: its conversation, which is shown and kept with the run, and never exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentWords {
    /// The agent said something.
    Message {
        /// Its words.
        text: String,
    },
    /// The agent called a tool.
    ToolCalled {
        /// The tool.
        name: String,
        /// What with, shortened.
        arguments: String,
    },
    /// The agent printed something that is not of its stream.
    Noise {
        /// Its beginning.
        line: String,
    },
}

/// One line of a run's story: an event, or words with when and in which session they were said.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StoryLine {
    /// Something happened.
    Event(Box<Event>),
    /// Somebody said or did something.
    Words {
        /// When, as ISO-8601 with Z.
        ts: String,
        /// The session.
        session_id: String,
        /// The run.
        run_id: String,
        /// What was said or done.
        #[serde(flatten)]
        words: AgentWords,
    },
}

impl StoryLine {
    /// Returns the line as a person reads it; nothing for an event that is not of runs.
    pub fn describe(&self) -> Option<String> {
        match self {
            StoryLine::Event(event) => match &event.kind {
                EventKind::Run(report) => Some(describe_step(event, report)),
                _ => None,
            },
            StoryLine::Words { words, .. } => Some(match words {
                AgentWords::Message { text } => text.clone(),
                AgentWords::ToolCalled { name, arguments } => format!("{name} {arguments}"),
                AgentWords::Noise { line } => format!("Not of the stream: {line}"),
            }),
        }
    }

    /// Returns what happened in the run, where this is an event of it.
    pub fn step(&self) -> Option<&RunStep> {
        match self {
            StoryLine::Event(event) => match &event.kind {
                EventKind::Run(report) => Some(&report.step),
                _ => None,
            },
            StoryLine::Words { .. } => None,
        }
    }
}

impl Runner<'_> {
    /// Tells that something happened in the session that is at work.
    pub(super) fn report_step(&mut self, step: RunStep) {
        let run_id = self.state.run_id.clone();
        self.report_event(EventKind::Run(RunReport { run_id, step }));
    }

    /// Tells an event of any kind.
    pub(super) fn report_event(&mut self, kind: EventKind) {
        let mut event = self
            .event_scope()
            .event(kind, &self.terms.clock.timestamp());
        event.redact(self.terms.redactor);
        self.record.append_story(&StoryLine::Event(Box::new(event)));
    }

    /// Tells what the agent said or did; its texts are redacted already.
    pub(super) fn report_words(&mut self, words: AgentWords) {
        self.record.append_story(&StoryLine::Words {
            ts: self.terms.clock.timestamp(),
            session_id: self.session_name(),
            run_id: self.state.run_id.clone(),
            words,
        });
    }

    fn event_scope(&self) -> EventScope {
        let about = &self.about;
        let model = about.model.as_deref().or(self.terms.model);
        EventScope {
            session_id: self.session_name(),
            call: Some(self.call.clone()),
            model: model.map(str::to_owned),
            tokens: self.gauge.tokens(self.terms.estimator),
            window: self.terms.window(about),
            policy: PolicyBrief {
                trigger_pct: self.terms.policy.trigger_pct,
                buffer: self.terms.policy.hard_cap_buffer,
            },
            cause: None,
        }
    }

    /// The agent's name of the session, or the run's until there is one.
    fn session_name(&self) -> String {
        let named = self.about.id.clone();
        named.unwrap_or_else(|| self.state.run_id.clone())
    }
}

fn counted(usage: &Usage) -> String {
    format!(
        "input={} output={} cache_read={}",
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens
    )
}

/// Returns one line for a log.
fn describe_step(event: &Event, report: &RunReport) -> String {
    let (run, id) = (&report.run_id, &event.scope.session_id);
    match &report.step {
        RunStep::RunStarted { agent, .. } => format!("Run {run} with {agent}"),
        RunStep::SessionStarted {
            number, resumed, ..
        } => match resumed {
            Some(id) => format!("Session {number} goes on as {id}"),
            None => format!("Session {number} begins"),
        },
        RunStep::SessionNamed => {
            let model = event.scope.model.as_deref().unwrap_or("unknown model");
            format!("Session {id}: {model}, window {}", event.scope.window.0)
        }
        RunStep::ContextUsage {
            turn,
            cumulative,
            limit,
            pressure_ratio,
        } => describe_usage([turn, cumulative], *limit, *pressure_ratio),
        RunStep::UsageMissing => format!(
            "Session {id}: the agent did not provide token usage, context tracking disabled"
        ),
        RunStep::ContextPressure { pressure_ratio, .. } => {
            format!("Context pressure: {:.1}%", pressure_ratio * 100.0)
        }
        RunStep::PromptTooLong => {
            format!("Session {id}: the provider refused the prompt as too long")
        }
        RunStep::CheckpointRequested => format!("Session {id}: asked for a checkpoint"),
        RunStep::Checkpoint {
            source,
            reason,
            anchors,
            noted,
            shown,
            ..
        } => describe_checkpoint(*source, reason.as_deref(), (*anchors, *noted, *shown)),
        RunStep::ContextRestart {
            continuation_count,
            pressure_ratio,
            ..
        } => describe_restart(run, *continuation_count, *pressure_ratio),
        RunStep::UsageReset { continuation_count } => {
            format!("Resetting context usage for restart (continuation #{continuation_count})")
        }
        RunStep::RunFinished(totals) => format!(
            "Run {run} finished after {} restarts and {:.1} s",
            totals.continuation_count, totals.seconds
        ),
        RunStep::RunStopped(_) => format!("Run {run} was stopped"),
        RunStep::RunFailed { error, .. } => format!("Run {run} failed: {error}"),
    }
}

fn describe_usage([turn, cumulative]: [&Usage; 2], limit: Tokens, ratio: f64) -> String {
    format!(
        "Context usage: turn=({}) cumulative=({}) limit={} pressure={:.1}%",
        counted(turn),
        counted(cumulative),
        limit.0,
        ratio * 100.0
    )
}

fn describe_restart(run: &str, nth: u32, ratio: Option<f64>) -> String {
    let why = ratio.map_or("after a refused prompt".to_owned(), |ratio| {
        format!("at {:.1}%", ratio * 100.0)
    });
    format!("Session {run}: context restart #{nth} {why}")
}

fn describe_checkpoint(
    source: CheckpointSource,
    reason: Option<&str>,
    (anchors, noted, shown): (usize, usize, usize),
) -> String {
    let source = match source {
        CheckpointSource::Tagged => "written by the agent",
        CheckpointSource::Raw => "the agent's answer as it is",
        CheckpointSource::Built => "drawn from the ledger",
    };
    let reason = reason
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    format!(
        "Checkpoint {source}{reason}: {noted} of {anchors} anchors noted, {shown} told to the next session"
    )
}
