//! What one conversation says that another does not.

use std::collections::HashMap;

use compact_core::message::{Block, Conversation, Entry, Role};

use crate::special_text::OPENING;

/// Something that did not come along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionLoss {
    /// The entry of the source, unless it is the session as a whole.
    pub entry: Option<usize>,
    /// What was lost, in words.
    pub what: String,
}

/// Returns what `before` says that `after` does not.
pub(super) fn find_losses(before: &Conversation, after: &Conversation) -> Vec<ConversionLoss> {
    let mut heard = RemainingContent::from_conversation(after);
    let mut losses = session_losses(before, after);
    for (i, entry) in before.entries.iter().enumerate() {
        let mut lose = |what: String| {
            losses.push(ConversionLoss {
                entry: Some(i),
                what,
            });
        };
        for block in &entry.blocks {
            if let Some(what) = heard.find_missing(entry, block) {
                lose(what);
            }
        }
        if let Some(flags) = flags_of(entry) {
            lose(flags);
        }
    }
    losses
}

/// Returns what callers said about entries, which no provider is told.
pub(super) fn flag_losses(conversation: &Conversation) -> Vec<ConversionLoss> {
    let entries = conversation.entries.iter().enumerate();
    entries
        .filter_map(|(i, entry)| {
            Some(ConversionLoss {
                entry: Some(i),
                what: flags_of(entry)?,
            })
        })
        .collect()
}

fn flags_of(entry: &Entry) -> Option<String> {
    let flags: Vec<&str> = entry.meta.flags.iter().map(String::as_str).collect();
    (!flags.is_empty()).then(|| format!("flags: {}", flags.join(", ")))
}

/// Returns what the session as a whole loses.
fn session_losses(before: &Conversation, after: &Conversation) -> Vec<ConversionLoss> {
    let lost = |what: &str, before: &Option<String>, after: &Option<String>| {
        (before.is_some() && before != after).then(|| ConversionLoss {
            entry: None,
            what: what.to_owned(),
        })
    };
    let all = [
        lost("the session's id", &before.session_id, &after.session_id),
        lost("the model's name", &before.model, &after.model),
        lost("the tool schemas", &before.tools, &after.tools),
    ];
    all.into_iter().flatten().collect()
}

/// Everything that is said, to be crossed off one by one.
#[derive(Default)]
struct RemainingContent<'a> {
    texts: HashMap<&'a str, Vec<Role>>,
    calls: HashMap<&'a str, Vec<(&'a str, &'a str)>>,
    results: HashMap<&'a str, Vec<(&'a str, bool)>>,
    thoughts: HashMap<&'a str, usize>,
}

impl<'a> RemainingContent<'a> {
    fn from_conversation(conversation: &'a Conversation) -> RemainingContent<'a> {
        let mut heard = RemainingContent::default();
        for entry in &conversation.entries {
            for block in &entry.blocks {
                heard.add_block(entry.role, block);
            }
        }
        heard
    }

    fn add_block(&mut self, role: Role, block: &'a Block) {
        match block {
            Block::Text(text) => self.texts.entry(text).or_default().push(role),
            Block::ToolCall {
                id,
                name,
                arguments,
            } => self.calls.entry(id).or_default().push((name, arguments)),
            Block::ToolResult {
                call,
                content,
                is_error,
            } => {
                let results = self.results.entry(call).or_default();
                results.push((content, *is_error));
            }
            Block::Reasoning { text, replay_bytes } if *replay_bytes == 0 => {
                *self.thoughts.entry(text).or_default() += 1;
            }
            Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => {}
        }
    }

    /// Returns what of a block was not heard, if anything.
    fn find_missing(&mut self, entry: &Entry, block: &Block) -> Option<String> {
        match block {
            Block::Text(text) if text.trim().is_empty() || text == OPENING => None,
            Block::Text(text) => self.find_missing_text(entry.role, text),
            Block::ToolCall {
                id,
                name,
                arguments,
            } => match take_first(self.calls.get_mut(id.as_str())) {
                None => Some(format!("call {id}")),
                Some((_, heard)) if !is_same_json(heard, arguments) => {
                    Some(format!("the wording of the arguments of call {id}"))
                }
                Some((heard, _)) if heard != name => Some(format!("the tool's name in call {id}")),
                Some(_) => None,
            },
            Block::ToolResult {
                call,
                content,
                is_error,
            } => match take_first(self.results.get_mut(call.as_str())) {
                None => Some(format!("the result of call {call}")),
                Some((heard, _)) if heard != content => {
                    Some(format!("the wording of the result of call {call}"))
                }
                Some((_, heard)) if heard != *is_error => {
                    Some(format!("the error mark of the result of call {call}"))
                }
                Some(_) => None,
            },
            Block::Reasoning { text, replay_bytes } => {
                self.find_missing_reasoning(text, *replay_bytes)
            }
            Block::Media { label, .. } => Some(format!("media: {label}")),
            Block::Opaque { kind, bytes } => Some(format!("{kind}: {bytes} bytes of its own kind")),
        }
    }

    fn find_missing_text(&mut self, role: Role, text: &str) -> Option<String> {
        let Some(heard) = take_first(self.texts.get_mut(text)) else {
            let length = text.chars().count();
            return Some(format!("a text of {length} characters"));
        };
        let is_order = role.is_instruction() && !heard.is_instruction();
        is_order.then(|| format!("the role {role}, written as {heard}"))
    }

    fn find_missing_reasoning(&mut self, text: &str, replay_bytes: usize) -> Option<String> {
        let left = self.thoughts.get_mut(text).filter(|left| **left > 0);
        match (left, replay_bytes) {
            (Some(left), 0) => {
                *left -= 1;
                None
            }
            (_, 0) => Some("reasoning".to_owned()),
            (_, bytes) => Some(format!("reasoning with a signature of {bytes} bytes")),
        }
    }
}

/// Returns whether two texts are equal as JSON, where white space between tokens means nothing.
fn is_same_json(a: &str, b: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    a == b || value(a).is_some() && value(a) == value(b)
}

/// Returns the first that is left.
fn take_first<T>(left: Option<&mut Vec<T>>) -> Option<T> {
    let left = left.filter(|left| !left.is_empty())?;
    Some(left.remove(0))
}
