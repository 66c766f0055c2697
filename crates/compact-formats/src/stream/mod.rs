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

use compact_core::message::{Block, Entry, EntryId, Meta, Role};
use compact_core::token::Tokens;
use compact_core::usage::{Semantics, Usage};
use serde_json::Value;

pub use codex::token_count;

use crate::usage::Reported;

/// How an agent tells what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Claude Code with `--output-format stream-json`.
    ClaudeCode,
    /// Codex with `exec --json`.
    Codex,
    /// Any program that speaks the small protocol of `docs/run.md`.
    Lines,
}

/// One thing that an agent told.
#[derive(Clone, Debug, PartialEq)]
pub enum Activity {
    /// More is known about the session.
    Session(About),
    /// Something was said, called or answered.
    Said(Entry),
    /// A model was asked, and this is what it cost.
    Used(Report),
    /// The agent's turn is over.
    Ended(End),
}

/// What is known about a session; each field as far as it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The name under which the agent can take it up again.
    pub id: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What the model takes, as the agent believes.
    pub window: Option<Tokens>,
}

/// Numbers with what they measure; `None` where the agent does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The counters.
    pub usage: Usage,
    /// What they measure.
    pub measures: Option<Semantics>,
}

impl From<Reported> for Report {
    fn from(reported: Reported) -> Report {
        Report {
            usage: reported.usage,
            measures: Some(reported.semantics),
        }
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
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
pub struct Unreadable(pub String);

/// Reads the lines of one session, in order.
#[derive(Clone, Debug)]
pub struct Reader {
    dialect: Dialect,
    entries: u64,
    /// Calls that were told and not answered yet.
    open: HashSet<String>,
}

/// How much of a line an error shows.
const SHOWN: usize = 120;

impl Reader {
    /// A reader of a new session.
    pub fn new(dialect: Dialect) -> Reader {
        Reader {
            dialect,
            entries: 0,
            open: HashSet::new(),
        }
    }

    /// What a line tells.
    pub fn read(&mut self, line: &str) -> Result<Vec<Activity>, Unreadable> {
        let value = serde_json::from_str::<Value>(line).ok();
        let value = value.filter(|value| kind(value).is_some());
        let Some(value) = value else {
            return Err(Unreadable(line.chars().take(SHOWN).collect()));
        };
        let told = match self.dialect {
            Dialect::ClaudeCode => claude_code::read(&value),
            Dialect::Codex => codex::read(&value, &self.open),
            Dialect::Lines => lines::read(&value),
        };
        told.iter().for_each(|activity| self.follow(activity));
        Ok(self.numbered(told))
    }

    fn follow(&mut self, activity: &Activity) {
        match activity {
            Activity::Said(entry) => {
                self.open.extend(entry.calls().map(str::to_owned));
                for call in entry.results() {
                    self.open.remove(call);
                }
            }
            Activity::Ended(_) => self.open.clear(),
            Activity::Session(_) | Activity::Used(_) => {}
        }
    }

    fn numbered(&mut self, mut told: Vec<Activity>) -> Vec<Activity> {
        for activity in &mut told {
            if let Activity::Said(entry) = activity {
                entry.id = EntryId(self.entries.to_string());
                self.entries += 1;
            }
        }
        told
    }
}

fn kind(value: &Value) -> Option<&str> {
    value.get("type")?.as_str()
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn owned(value: &Value, key: &str) -> Option<String> {
    text(value, key).map(str::to_owned)
}

fn said(role: Role, blocks: Vec<Block>) -> Activity {
    Activity::Said(Entry {
        id: EntryId(String::new()),
        role,
        blocks,
        meta: Meta::default(),
    })
}

/// Arguments as a wire carries them: a text as it is, anything else as JSON.
fn arguments(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// The words of a content that is a text, or a list of blocks some of which are.
fn words(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|block| text(block, "text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// How a failed turn ended, going by what the agent says of it.
fn failed(value: &Value, message: &str) -> End {
    match crate::overflow::in_event(value) {
        Some(_) => End::TooLong,
        None => End::Failed(message.to_owned()),
    }
}
