//! A list that grew: its new messages are read alone, behind those that were read before.
//!
//! A client that goes on with its conversation adds a few messages between two requests; to read all of it again would
//! cost what all of it costs. Some messages mean what they do because of others far before them. Whatever is not
//! certain to be read as in the whole list is left to a reader of the whole list.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use compact_core::message::{Block, Conversation, Entry, Role};
use serde_json::value::RawValue;

use crate::list::{self, ListElements};
use crate::source::{EntryDraft, EntryPlace, SourceLayout, TranscriptReading};
use crate::surrogate::readable_json;
use crate::{Document, flag, pairing, special_text};

/// What a call of the older kind, and an answer to one, are named by: such names depend on what came before.
const NAMED_BY_ORDER: [&str; 2] = ["function_", "response-"];

/// What messages add to a document.
struct Addition {
    /// The messages with what stands between and before them.
    bytes: String,
    /// The messages in `bytes`.
    spans: Vec<Range<usize>>,
}

impl Document {
    /// Takes messages in that follow those of the list, and returns the entries that they add to its conversation.
    /// `None` where the longer list must be read as a whole; the document is then as it was.
    pub fn grow(&mut self, conversation: &Conversation, added: &[&str]) -> Option<Vec<Entry>> {
        let read = self.format.wire().read_elements?;
        let SourceLayout::List { open, messages } = &self.layout else {
            return None;
        };
        let end = messages.last()?.end;
        let is_list = self.source.get(open.checked_sub(1)?) == Some(&b'[');
        let is_last = self.places.last().map(|place| place.line) == Some(messages.len() - 1);
        if !is_list || !is_last {
            return None;
        }
        let addition = Addition::new(self, added)?;
        let bytes = addition.bytes.as_bytes();
        let elements = list_elements(bytes, &addition.spans, messages.len())?;
        let mut reading = read(bytes, elements).ok()?;
        flag::note_flags(bytes, &mut reading);
        let last = conversation.entries.last();
        special_text::note_speakers_after(last.map(|entry| entry.role), &mut reading.drafts);
        let is_plain = !self.names_storage() || !names_reasoning(drafted_blocks(&reading));
        if !is_plain || !is_certain(&conversation.entries, &reading) {
            return None;
        }
        let (entries, places) = pairing::name_entries(reading.drafts);
        if is_name_taken(&conversation.entries, &entries) {
            return None;
        }
        self.append_messages(end, &addition, places);
        Some(entries)
    }

    /// Returns whether the body beside the list says if the provider keeps what was said.
    fn names_storage(&self) -> bool {
        let SourceLayout::List { open, messages } = &self.layout else {
            return false;
        };
        let end = messages.last().map_or(*open, |last| last.end);
        let around = [self.source.get(..*open), self.source.get(end..)];
        let says = |bytes: &[u8]| memchr::memmem::find(bytes, b"\"store\"").is_some();
        around.into_iter().flatten().any(says)
    }

    fn append_messages(&mut self, end: usize, addition: &Addition, places: Vec<EntryPlace>) {
        let moved = |span: &Range<usize>| end + span.start..end + span.end;
        // Nobody else holds the bytes as a rule: then only what is new is copied.
        let source = std::mem::take(&mut self.source);
        let mut source = source
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(&*shared));
        let tail = source.get(end..).unwrap_or_default().to_vec();
        source.truncate(end);
        source.extend_from_slice(addition.bytes.as_bytes());
        source.extend_from_slice(&tail);
        self.source = Bytes::from(source);
        if let SourceLayout::List { messages, .. } = &mut self.layout {
            messages.extend(addition.spans.iter().map(moved));
        }
        let places = places.into_iter().map(|place| EntryPlace {
            span: moved(&place.span),
            ..place
        });
        self.places.extend(places);
    }
}

impl Addition {
    fn new(document: &Document, added: &[&str]) -> Option<Addition> {
        let separator = std::str::from_utf8(list::separator(document)).ok()?;
        let mut bytes = String::new();
        let mut spans = Vec::with_capacity(added.len());
        for message in added {
            bytes.push_str(separator);
            spans.push(bytes.len()..bytes.len() + message.len());
            bytes.push_str(message);
        }
        let is_readable = matches!(
            readable_json(bytes.as_bytes()),
            std::borrow::Cow::Borrowed(_)
        );
        is_readable.then_some(Addition { bytes, spans })
    }
}

/// Returns messages with their places, the first of which is the list's `first`.
pub(crate) fn list_elements<'a>(
    source: &'a [u8],
    spans: &[Range<usize>],
    first: usize,
) -> Option<ListElements<'a>> {
    let element = |(nth, span): (usize, &Range<usize>)| {
        let text = source.get(span.clone())?;
        let raw: &RawValue = serde_json::from_slice(text).ok()?;
        let place = EntryPlace {
            line: first + nth,
            span: span.clone(),
            part: None,
        };
        (raw.get().len() == text.len()).then_some((raw, place))
    };
    let elements: Option<Vec<_>> = spans.iter().enumerate().map(element).collect();
    let layout = SourceLayout::List {
        open: 0,
        messages: spans.to_vec(),
    };
    Some((elements?, layout))
}

/// Returns whether messages that were read alone are read alike behind the entries before them.
pub(crate) fn is_certain(before: &[Entry], reading: &TranscriptReading) -> bool {
    let drafts = &reading.drafts;
    let follows_group = before
        .last()
        .is_some_and(|entry| entry.meta.group.is_some());
    let continues_group = drafts
        .first()
        .is_some_and(|draft| draft.meta.group.is_some());
    let splits_group = follows_group && continues_group;
    let has_unnamed = before.iter().any(is_unnamed_answer)
        || drafts
            .iter()
            .any(|draft| is_unnamed(draft.role, &draft.blocks));
    reading.problems.is_empty()
        && !reading.names_users
        && !splits_group
        && !has_unnamed
        && answers_open_calls(before, drafts)
}

fn drafted_blocks(reading: &TranscriptReading) -> impl Iterator<Item = &Block> {
    reading.drafts.iter().flat_map(|draft| &draft.blocks)
}

/// Returns whether reasoning is named by its id alone, which may change what the provider accepts.
pub(crate) fn names_reasoning<'a>(mut blocks: impl Iterator<Item = &'a Block>) -> bool {
    blocks.any(|b| {
        matches!(
            b,
            Block::Reasoning {
                replay_bytes: 0,
                ..
            }
        )
    })
}

fn is_unnamed_answer(entry: &Entry) -> bool {
    is_unnamed(entry.role, &entry.blocks)
}

/// Returns whether a tool speaks without naming the call that it answers.
fn is_unnamed(role: Role, blocks: &[Block]) -> bool {
    role == Role::Tool && !blocks.iter().any(|b| matches!(b, Block::ToolResult { .. }))
}

/// Returns whether every result names a call that waits for it.
fn answers_open_calls(before: &[Entry], drafts: &[EntryDraft]) -> bool {
    let mut open: HashMap<&str, usize> = HashMap::new();
    for block in drafts.iter().flat_map(|draft| &draft.blocks) {
        if let Block::ToolResult { call, .. } = block {
            if NAMED_BY_ORDER.iter().any(|name| call.starts_with(name)) || call.is_empty() {
                return false;
            }
            open.insert(call, 0);
        }
    }
    if open.is_empty() {
        return true;
    }
    let mut is_answered = true;
    let blocks = before.iter().flat_map(|entry| &entry.blocks);
    let added = drafts.iter().flat_map(|draft| &draft.blocks);
    for block in blocks.chain(added) {
        match block {
            Block::ToolCall { id, .. } => {
                if let Some(calls) = open.get_mut(id.as_str()) {
                    *calls += 1;
                }
            }
            Block::ToolResult { call, .. } => {
                if let Some(calls) = open.get_mut(call.as_str()) {
                    is_answered &= *calls > 0;
                    *calls = calls.saturating_sub(1);
                }
            }
            _ => {}
        }
    }
    is_answered
}

pub(crate) fn is_name_taken(before: &[Entry], entries: &[Entry]) -> bool {
    let names: HashSet<&str> = entries.iter().map(|entry| entry.id.0.as_str()).collect();
    match entries {
        [one] => before.iter().any(|entry| entry.id == one.id),
        _ => before
            .iter()
            .any(|entry| names.contains(entry.id.0.as_str())),
    }
}
