//! What agents print while they work, line by line, in one vocabulary.
//!
//! Each dialect is a stream of JSON objects. What a reader does not know says nothing; a line that
//! is no object with a `type` is an error, because then it is not the stream that was expected.
//! Nothing here starts an agent or decides when it has said enough.

mod claude_code;
mod codex;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use compact_core::message::{Block, Entry, EntryId, EntryMeta, Role};
use compact_core::token::Tokens;
use compact_core::usage::{Semantics, Usage};
use serde_json::Value;

pub use codex::read_token_count;

use crate::usage::ReportedUsage;

/// The format in which an agent reports what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamDialect {
    /// Claude Code with `--output-format stream-json`.
    ClaudeCode,
    /// Codex with `exec --json`.
    Codex,
    /// Any program that speaks the small protocol of `docs/run.md`.
    Lines,
}

/// One thing that an agent told.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentActivity {
    /// More is known about the session.
    Session(SessionDetails),
    /// Something was said, called or answered.
    Said(Entry),
    /// A model was asked, and this is what it cost.
    Used(UsageReport),
    /// The agent's turn is over.
    Ended(TurnEnd),
}

/// The details of a session, as far as the agent reported them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDetails {
    /// The name under which the agent can take it up again.
    pub id: Option<String>,
    /// The name of the model, if it is reported.
    pub model: Option<String>,
    /// What the model takes, as the agent believes.
    pub window: Option<Tokens>,
}

/// Numbers with what they measure; `None` where the agent does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageReport {
    /// The reported counters.
    pub usage: Usage,
    /// What the counters measure, if that is reported.
    pub measures: Option<Semantics>,
}

impl From<ReportedUsage> for UsageReport {
    fn from(reported: ReportedUsage) -> UsageReport {
        UsageReport {
            usage: reported.usage,
            measures: Some(reported.semantics),
        }
    }
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The agent had nothing more to do; its last words, where it repeats them.
    Done(Option<String>),
    /// The provider refused the prompt because of its size.
    TooLong,
    /// Something else went wrong.
    Failed(String),
}

/// A line that belongs to no stream of this dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent printed {0:?} where a JSON object with a `type` was expected")]
pub struct UnreadableLine(pub String);

/// Reads the lines of one session, in order.
#[derive(Clone, Debug)]
pub struct StreamReader {
    dialect: StreamDialect,
    entries: u64,
    /// Calls that were told and not answered yet.
    open: HashSet<String>,
}

/// How much of a line an error shows.
const SHOWN_CHARS: usize = 120;

impl StreamReader {
    /// Returns a reader of a new session.
    pub fn new(dialect: StreamDialect) -> StreamReader {
        StreamReader {
            dialect,
            entries: 0,
            open: HashSet::new(),
        }
    }

    /// Returns what a line tells.
    pub fn read_line(&mut self, line: &str) -> Result<Vec<AgentActivity>, UnreadableLine> {
        let value = serde_json::from_str::<Value>(line).ok();
        let value = value.filter(|value| event_type(value).is_some());
        let Some(value) = value else {
            return Err(UnreadableLine(line.chars().take(SHOWN_CHARS).collect()));
        };
        let told = match self.dialect {
            StreamDialect::ClaudeCode => claude_code::read(&value),
            StreamDialect::Codex => codex::read(&value, &self.open),
            StreamDialect::Lines => lines::read(&value),
        };
        told.iter().for_each(|activity| self.track_calls(activity));
        Ok(self.number_entries(told))
    }

    fn track_calls(&mut self, activity: &AgentActivity) {
        match activity {
            AgentActivity::Said(entry) => {
                self.open.extend(entry.call_ids().map(str::to_owned));
                for call in entry.result_ids() {
                    self.open.remove(call);
                }
            }
            AgentActivity::Ended(_) => self.open.clear(),
            AgentActivity::Session(_) | AgentActivity::Used(_) => {}
        }
    }

    fn number_entries(&mut self, mut told: Vec<AgentActivity>) -> Vec<AgentActivity> {
        for activity in &mut told {
            if let AgentActivity::Said(entry) = activity {
                entry.id = EntryId(self.entries.to_string());
                self.entries += 1;
            }
        }
        told
    }
}

fn event_type(value: &Value) -> Option<&str> {
    value.get("type")?.as_str()
}

fn string_member<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn owned_member(value: &Value, key: &str) -> Option<String> {
    string_member(value, key).map(str::to_owned)
}

fn message_activity(role: Role, blocks: Vec<Block>) -> AgentActivity {
    AgentActivity::Said(Entry {
        id: EntryId(String::new()),
        role,
        blocks,
        meta: EntryMeta::default(),
    })
}

/// Arguments as a wire carries them: a text as it is, anything else as JSON.
fn arguments_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// Returns the words of a content that is a text, or a list of blocks some of which are.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks
                .iter()
                .filter_map(|block| string_member(block, "text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns how a failed turn ended, going by what the agent says of it.
fn failed_end(value: &Value, message: &str) -> TurnEnd {
    match crate::overflow::find_in_event(value) {
        Some(_) => TurnEnd::TooLong,
        None => TurnEnd::Failed(message.to_owned()),
    }
}
