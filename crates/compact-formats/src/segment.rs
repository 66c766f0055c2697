//! Messages that hold several entries: what the model said and what its tools answered, in one
//! object of a list.
//!
//! Such a message is read as segments, one entry each, at the same place. A view that shows all of
//! them as they are gets the message's bytes; otherwise the message is written once with the
//! segments that are shown. Calls and results stand in one object, so a result whose call is not
//! shown is not shown either; no legal view asks for that.

use compact_core::usage::Usage;
use std::borrow::Cow;
use std::collections::HashMap;

use compact_core::message::{Block, Entry, EntryKind, Meta, Role};
use compact_core::view::{Edit, View, ViewItem};
use serde_json::value::RawValue;

use crate::body;
use crate::edit::{self, Edits, Piece};
use crate::error::FormatError;
use crate::json::{At, Members, quote};
use crate::list;
use crate::source::{Draft, Layout, Place, Reading};
use crate::wire::{Page, Shown};
use crate::{Document, Scope};

/// One entry of a message.
pub(crate) struct Segment<'a> {
    pub(crate) role: Role,
    pub(crate) pieces: Vec<Piece<'a>>,
}

/// A message as its segments.
#[derive(Default)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<String>,
    pub(crate) kind: EntryKind,
    pub(crate) usage: Option<Usage>,
    pub(crate) segments: Vec<Segment<'a>>,
    /// What a new text changes beyond the value that holds it.
    pub(crate) echoes: Vec<Echo<'a>>,
}

/// A value that repeats or wraps the text of a block.
pub(crate) struct Echo<'a> {
    pub(crate) segment: usize,
    pub(crate) block: usize,
    pub(crate) value: &'a RawValue,
    pub(crate) with: With,
}

/// What takes the place of an echo when its block's text changes.
pub(crate) enum With {
    /// The same JSON whatever the text.
    Fixed(&'static str),
    /// The new text between two pieces of JSON.
    Text { before: String, after: String },
}

/// A wire of such messages.
pub(crate) trait Segmented {
    /// The segments of a message; nothing for one that is never sent to the model.
    fn message<'a>(&self, at: At<'_>, json: &'a str) -> Result<Option<Message<'a>>, FormatError>;

    /// A text as a part of a message.
    fn text_part(&self, text: &str) -> String;

    /// Entries that have no message yet as messages; `before` is the one that they follow.
    fn compose(&self, page: &Page<'_>, before: Option<&str>, entries: &[&Entry]) -> Vec<String>;

    /// The session's id, from the members around the messages.
    fn session_id(&self, head: &Members<'_>) -> Option<String>;

    /// The model that a message names.
    fn model(&self, json: &str) -> Option<String>;

    /// The message with which the context begins.
    fn live_from(&self, _messages: &[&RawValue]) -> usize {
        0
    }
}

/// Reads a document whose messages are the list under `messages`.
pub(crate) fn read(
    wire: &dyn Segmented,
    source: &[u8],
    scope: Scope,
) -> Result<Reading, FormatError> {
    let (text, at) = body::text(source)?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(at.missing("messages", "in an object"));
    }
    let head: Members<'_> = at.read(text)?;
    let messages = head.get("messages");
    let messages = messages.ok_or_else(|| at.missing("messages", "a list"))?;
    let (elements, layout) = list::elements(source, text, messages, "messages")?;
    let mut reading = Reading::new(layout);
    reading.session_id = wire.session_id(&head);
    let raws: Vec<&RawValue> = elements.iter().map(|(raw, _)| *raw).collect();
    let live = match scope {
        Scope::Live => wire.live_from(&raws),
        Scope::Whole => 0,
    };
    for (raw, place) in elements.into_iter().skip(live) {
        let at = At {
            source,
            offset: place.span.start,
        };
        if let Some(message) = wire.message(at, raw.get())? {
            reading.model = wire.model(raw.get()).or(reading.model.take());
            reading.drafts.extend(drafts(message, &place));
        }
    }
    Ok(reading)
}

/// The entries of a message at its place.
pub(crate) fn drafts(message: Message<'_>, place: &Place) -> Vec<Draft> {
    let Message {
        id,
        kind,
        usage,
        segments,
        ..
    } = message;
    let last_said = segments.iter().rposition(|s| s.role == Role::Assistant);
    let draft = |(part, segment): (usize, Segment<'_>)| Draft {
        id: id.as_ref().map(|id| match part {
            0 => id.clone(),
            part => format!("{id}.{part}"),
        }),
        role: segment.role,
        blocks: edit::blocks(segment.pieces),
        meta: Meta {
            kind: if segment.role == Role::Tool {
                EntryKind::Message
            } else {
                kind.clone()
            },
            usage: usage.filter(|_| last_said == Some(part)),
            ..Meta::default()
        },
        place: Place {
            part: Some(part),
            ..place.clone()
        },
    };
    segments.into_iter().enumerate().map(draft).collect()
}

/// The view as a document of the same layout.
pub(crate) fn emit(
    wire: &dyn Segmented,
    page: &Page<'_>,
    view: &View,
) -> Result<Vec<u8>, FormatError> {
    Ok(list::emit(page.document, &elements(wire, page, view)?))
}

/// The view as messages.
pub(crate) fn elements<'p>(
    wire: &dyn Segmented,
    page: &'p Page<'p>,
    view: &'p View,
) -> Result<Vec<Cow<'p, str>>, FormatError> {
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    for place in &page.document.places {
        *sizes.entry(place.line).or_default() += 1;
    }
    let mut out: Vec<Cow<'_, str>> = Vec::with_capacity(view.items.len());
    let mut rest = view.items.as_slice();
    while !rest.is_empty() {
        let (run, after) = rest
            .split_at_checked(run_length(page, rest))
            .unwrap_or((rest, &[]));
        rest = after;
        let new: Vec<&Entry> = run.iter().filter_map(new_entry).collect();
        if new.is_empty() {
            out.extend(shown(wire, page, run, &sizes)?);
        } else {
            let made = wire.compose(page, out.last().map(AsRef::as_ref), &new);
            out.extend(made.into_iter().map(Cow::Owned));
        }
    }
    Ok(out)
}

fn new_entry(item: &ViewItem) -> Option<&Entry> {
    match item {
        ViewItem::New(entry) => Some(entry),
        _ => None,
    }
}

/// How many items at the front are new text, or segments of one message.
fn run_length(page: &Page<'_>, items: &[ViewItem]) -> usize {
    let line = |item: &ViewItem| {
        let place = item.entry().and_then(|i| page.document.places.get(i));
        place.map(|place| place.line)
    };
    let part = |item: &ViewItem| {
        let place = item.entry().and_then(|i| page.document.places.get(i));
        place.and_then(|place| place.part)
    };
    let belongs = |pair: &[ViewItem]| match pair {
        [a, b] => line(a) == line(b) && (line(a).is_none() || part(a) < part(b)),
        _ => false,
    };
    1 + items.windows(2).take_while(|pair| belongs(pair)).count()
}

/// One message with the segments that are shown.
fn shown<'p>(
    wire: &dyn Segmented,
    page: &'p Page<'p>,
    run: &'p [ViewItem],
    sizes: &HashMap<usize, usize>,
) -> Result<Option<Cow<'p, str>>, FormatError> {
    let mut json = "";
    let mut line = 0;
    let mut segments: Vec<(usize, Option<Edits<'_>>)> = Vec::with_capacity(run.len());
    for item in run {
        match page.shown(item)? {
            Shown::Kept { place, item } => {
                (json, line) = (item, place.line);
                segments.push((place.part.unwrap_or(0), None));
            }
            Shown::Edited { place, item, edits } => {
                (json, line) = (item, place.line);
                segments.push((place.part.unwrap_or(0), Some(edits)));
            }
            Shown::New(_) => {}
        }
    }
    let is_whole = sizes.get(&line) == Some(&segments.len());
    if is_whole && segments.iter().all(|(_, edits)| edits.is_none()) {
        return Ok(Some(Cow::Borrowed(json)));
    }
    Ok(rewritten(wire, page.bytes(), json, &segments)?.map(Cow::Owned))
}

fn rewritten(
    wire: &dyn Segmented,
    source: &[u8],
    json: &str,
    shown: &[(usize, Option<Edits<'_>>)],
) -> Result<Option<String>, FormatError> {
    let at = At { source, offset: 0 };
    let Some(message) = wire.message(at, json)? else {
        return Ok(None);
    };
    let mut pieces = Vec::new();
    let mut edits: Vec<(usize, Edit)> = Vec::new();
    let mut echoes: Vec<(usize, &Echo<'_>)> = Vec::new();
    for (part, segment) in message.segments.into_iter().enumerate() {
        let first = pieces.len();
        let fate = shown.iter().find(|(at, _)| *at == part);
        for block in 0..segment.pieces.len() {
            let edit = match fate {
                None => Some(&Edit::Drop),
                Some((_, edits)) => edits.and_then(|edits| edits.of(block)),
            };
            edits.extend(edit.map(|edit| (first + block, edit.clone())));
        }
        let of_segment = message.echoes.iter().filter(|e| e.segment == part);
        echoes.extend(of_segment.map(|echo| (first + echo.block, echo)));
        pieces.extend(segment.pieces);
    }
    let more = |patch: &mut crate::json::Patch<'_>, block: usize, text: &str| {
        for (_, echo) in echoes.iter().filter(|(at, _)| *at == block) {
            patch.replace(echo.value, echo.with.json(text));
        }
    };
    let part = |text: &str| wire.text_part(text);
    Ok(edit::apply_with(json, &pieces, Edits(&edits), &part, &more))
}

impl With {
    fn json(&self, text: &str) -> String {
        match self {
            With::Fixed(json) => (*json).to_owned(),
            With::Text { before, after } => format!("{before}{}{after}", quote(text)),
        }
    }
}

/// A document followed by the later one's messages. A message that has grown since takes the place
/// of its earlier self.
pub(crate) fn extend(
    first: &Document,
    later: &Page<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let (place, _) = later.entry(from)?;
    let grown = place.part.is_some_and(|part| part > 0);
    let Layout::List { messages, .. } = &later.document.layout else {
        return Ok(first.source.to_vec());
    };
    let mut added = Vec::new();
    for span in messages.iter().skip(place.line) {
        added.push(crate::source::text(later.bytes(), span.clone())?);
    }
    let Layout::List { messages, .. } = &first.layout else {
        return Ok(first.source.to_vec());
    };
    if !grown || messages.is_empty() {
        return Ok(list::extend(first, &added));
    }
    let kept = messages.len() - 1;
    let mut all = Vec::with_capacity(kept + added.len());
    for span in messages.iter().take(kept) {
        all.push(Cow::Borrowed(crate::source::text(
            &first.source,
            span.clone(),
        )?));
    }
    all.extend(added.into_iter().map(Cow::Borrowed));
    Ok(list::emit(first, &all))
}

/// A reply with the results that follow it, as one message holds them.
pub(crate) struct Reply<'e> {
    pub(crate) entry: &'e Entry,
    pub(crate) results: Vec<&'e Block>,
}

impl<'e> Reply<'e> {
    /// The result of a call.
    pub(crate) fn result(&self, id: &str) -> Option<(&'e str, bool)> {
        self.results.iter().find_map(|block| match block {
            Block::ToolResult {
                call,
                content,
                is_error,
            } if call == id => Some((content.as_str(), *is_error)),
            _ => None,
        })
    }
}

/// Entries as replies: a result joins the entry that made its call, or stands alone.
pub(crate) fn replies<'e>(entries: &[&'e Entry]) -> Vec<Reply<'e>> {
    let mut replies: Vec<Reply<'e>> = Vec::new();
    for &entry in entries {
        let calls = |reply: &Reply<'_>, id: &str| reply.entry.calls().any(|call| call == id);
        let answered = entry
            .results()
            .next()
            .and_then(|id| replies.iter().rposition(|reply| calls(reply, id)));
        let results = entry
            .blocks
            .iter()
            .filter(|b| matches!(b, Block::ToolResult { .. }));
        match answered.and_then(|at| replies.get_mut(at)) {
            Some(reply) => reply.results.extend(results),
            None => replies.push(Reply {
                entry,
                results: Vec::new(),
            }),
        }
    }
    replies
}
