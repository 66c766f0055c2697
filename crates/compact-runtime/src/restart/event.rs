//! What is told of a run while it goes on.

use std::fmt;

use compact_core::usage::{ContextPressure, Usage};
use serde::Serialize;

use super::state::RunCounters;

/// Where a checkpoint came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointSource {
    /// The agent wrote it, in tags.
    Tagged,
    /// The agent answered without tags: its whole answer.
    Raw,
    /// The agent gave none: it was drawn from the ledger.
    Built,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// A run began, or goes on.
    RunStarted {
        /// The run.
        run_id: String,
        /// Its agent.
        agent: String,
        /// Restarts so far.
        continuation_count: u32,
    },
    /// A session is opened.
    SessionStarted {
        /// Which, from 1.
        number: u32,
        /// The session that it takes up again, where it is not a fresh one.
        resumed: Option<String>,
        /// What its first prompt costs.
        prompt_tokens: u64,
    },
    /// More is known about the session.
    SessionNamed {
        /// The agent's name for it.
        session_id: String,
        /// The model.
        model: Option<String>,
        /// What the model takes.
        window: u64,
    },
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
    /// A request was counted.
    ContextUsage {
        /// This report.
        turn: Usage,
        /// The context so far.
        cumulative: Usage,
        /// The window.
        limit: u64,
        /// How full that makes it.
        pressure_ratio: f64,
    },
    /// The agent reports no usage.
    UsageMissing {
        /// The session.
        session_id: String,
    },
    /// The context is full.
    ContextPressure {
        /// The session.
        session_id: String,
        /// Fresh prompt tokens of the context.
        input_tokens: u64,
        /// Answered tokens.
        output_tokens: u64,
        /// Tokens read from a cache.
        cache_read_tokens: u64,
        /// How full it is.
        pressure_ratio: f64,
    },
    /// The provider refused a prompt because of its size.
    PromptTooLong {
        /// The session.
        session_id: String,
    },
    /// The session is asked for its checkpoint.
    CheckpointRequested {
        /// The session.
        session_id: String,
    },
    /// There is a checkpoint.
    Checkpoint {
        /// Where it came from.
        source: CheckpointSource,
        /// Why not from the agent.
        reason: Option<String>,
        /// What the continuation costs.
        prompt_tokens: u64,
        /// What was worth keeping.
        anchors: usize,
        /// Of those, what the agent's own words show.
        noted: usize,
        /// Of those, what the continuation shows.
        shown: usize,
    },
    /// A fresh session goes on.
    ContextRestart {
        /// The run.
        run_id: String,
        /// Which restart, from 1.
        continuation_count: u32,
        /// How full the last session was; unknown when the provider refused it.
        pressure_ratio: Option<f64>,
    },
    /// Usage is counted from zero.
    UsageReset {
        /// Which restart.
        continuation_count: u32,
    },
    /// The agent printed something that is not of its stream.
    Noise {
        /// Its beginning.
        line: String,
    },
    /// The task is finished.
    RunFinished {
        /// The run.
        run_id: String,
        /// Restarts.
        continuation_count: u32,
        /// How long all sessions took.
        seconds: f64,
        /// What was counted.
        counters: RunCounters,
        /// The agent's last words.
        text: String,
    },
}

impl RunEvent {
    pub(super) fn from_pressure(pressure: &ContextPressure) -> RunEvent {
        RunEvent::ContextPressure {
            session_id: pressure.session_id.clone(),
            input_tokens: pressure.input_tokens,
            output_tokens: pressure.output_tokens,
            cache_read_tokens: pressure.cache_read_tokens,
            pressure_ratio: pressure.pressure_ratio,
        }
    }
}

fn counted(usage: &Usage) -> String {
    format!(
        "input={} output={} cache_read={}",
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens
    )
}

/// One line for a log.
impl fmt::Display for RunEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunEvent::RunStarted { run_id, agent, .. } => write!(f, "Run {run_id} with {agent}"),
            RunEvent::SessionStarted {
                number, resumed, ..
            } => match resumed {
                Some(id) => write!(f, "Session {number} goes on as {id}"),
                None => write!(f, "Session {number} begins"),
            },
            RunEvent::SessionNamed {
                session_id,
                model,
                window,
            } => {
                let model = model.as_deref().unwrap_or("unknown model");
                write!(f, "Session {session_id}: {model}, window {window}")
            }
            RunEvent::Message { text } => f.write_str(text),
            RunEvent::ToolCalled { name, arguments } => write!(f, "{name} {arguments}"),
            RunEvent::ContextUsage {
                turn,
                cumulative,
                limit,
                pressure_ratio,
            } => write_usage(f, [turn, cumulative], *limit, *pressure_ratio),
            RunEvent::UsageMissing { session_id } => write!(
                f,
                "Session {session_id}: the agent did not provide token usage, context tracking disabled"
            ),
            RunEvent::ContextPressure { pressure_ratio, .. } => {
                write!(f, "Context pressure: {:.1}%", pressure_ratio * 100.0)
            }
            RunEvent::PromptTooLong { session_id: id } => {
                write!(
                    f,
                    "Session {id}: the provider refused the prompt as too long"
                )
            }
            RunEvent::CheckpointRequested { session_id: id } => {
                write!(f, "Session {id}: asked for a checkpoint")
            }
            RunEvent::Checkpoint {
                source,
                reason,
                anchors,
                noted,
                shown,
                ..
            } => write_checkpoint(f, *source, reason.as_deref(), (*anchors, *noted, *shown)),
            RunEvent::ContextRestart {
                run_id,
                continuation_count,
                pressure_ratio,
            } => write_restart(f, run_id, *continuation_count, *pressure_ratio),
            RunEvent::UsageReset {
                continuation_count: nth,
            } => {
                write!(
                    f,
                    "Resetting context usage for restart (continuation #{nth})"
                )
            }
            RunEvent::Noise { line } => write!(f, "Not of the stream: {line}"),
            RunEvent::RunFinished {
                run_id,
                continuation_count,
                seconds,
                ..
            } => {
                write!(
                    f,
                    "Run {run_id} finished after {continuation_count} restarts and {seconds:.1} s"
                )
            }
        }
    }
}

fn write_usage(
    f: &mut fmt::Formatter<'_>,
    [turn, cumulative]: [&Usage; 2],
    limit: u64,
    ratio: f64,
) -> fmt::Result {
    write!(
        f,
        "Context usage: turn=({}) cumulative=({}) limit={limit} pressure={:.1}%",
        counted(turn),
        counted(cumulative),
        ratio * 100.0
    )
}

fn write_restart(
    f: &mut fmt::Formatter<'_>,
    run: &str,
    nth: u32,
    ratio: Option<f64>,
) -> fmt::Result {
    let why = ratio.map_or("after a refused prompt".to_owned(), |ratio| {
        format!("at {:.1}%", ratio * 100.0)
    });
    write!(f, "Session {run}: context restart #{nth} {why}")
}

fn write_checkpoint(
    f: &mut fmt::Formatter<'_>,
    source: CheckpointSource,
    reason: Option<&str>,
    (anchors, noted, shown): (usize, usize, usize),
) -> fmt::Result {
    let source = match source {
        CheckpointSource::Tagged => "written by the agent",
        CheckpointSource::Raw => "the agent's answer as it is",
        CheckpointSource::Built => "drawn from the ledger",
    };
    let reason = reason
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    write!(
        f,
        "Checkpoint {source}{reason}: {noted} of {anchors} anchors noted, {shown} told to the next session"
    )
}
