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

use compact_core::message::{Block, Entry, EntryKind, EntryMeta, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use serde_json::value::RawValue;

use crate::body;
use crate::edit::{self, BlockPiece, EntryEdits};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, quote};
use crate::list;
use crate::source::{EntryDraft, EntryPlace, SourceLayout, TranscriptReading};
use crate::surrogate::readable_text;
use crate::wire::{DocumentContext, ShownItem};
use crate::{Document, TranscriptScope};

/// One entry of a message.
pub(crate) struct MessageSegment<'a> {
    pub(crate) role: Role,
    pub(crate) kind: EntryKind,
    pub(crate) pieces: Vec<BlockPiece<'a>>,
}

/// A message as its segments.
#[derive(Default)]
pub(crate) struct SegmentedMessage<'a> {
    pub(crate) id: Option<String>,
    pub(crate) usage: Option<Usage>,
    pub(crate) segments: Vec<MessageSegment<'a>>,
    /// What a new text changes beyond the value that holds it.
    pub(crate) echoes: Vec<TextEcho<'a>>,
}

/// A value that repeats or wraps the text of a block.
pub(crate) struct TextEcho<'a> {
    pub(crate) segment: usize,
    pub(crate) block: usize,
    pub(crate) value: &'a RawValue,
    pub(crate) with: EchoReplacement,
}

/// What replaces an echo when its block's text changes.
pub(crate) enum EchoReplacement {
    /// The same JSON whatever the text.
    Fixed(&'static str),
    /// The new text between two pieces of JSON.
    Text { before: String, after: String },
}

/// A wire of such messages.
pub(crate) trait SegmentedWire {
    /// Returns the segments of a message; nothing for one that is never sent to the model.
    fn read_message<'a>(
        &self,
        at: ItemContext<'_>,
        json: &'a str,
    ) -> Result<Option<SegmentedMessage<'a>>, FormatError>;

    /// Returns a text as a part of a message.
    fn text_part(&self, text: &str) -> String;

    /// Returns entries that have no message yet as messages; `before` is the one that they follow.
    fn compose_messages(
        &self,
        page: &DocumentContext<'_>,
        before: Option<&str>,
        entries: &[&Entry],
    ) -> Vec<String>;

    /// Returns the session's id, from the members around the messages.
    fn session_id(&self, head: &Members<'_>) -> Option<String>;

    /// Returns the model that a message names.
    fn model_name(&self, json: &str) -> Option<String>;

    /// Returns the message with which the context begins.
    fn live_from(&self, _messages: &[&RawValue]) -> usize {
        0
    }
}

/// Reads a document whose messages are the list under `messages`.
pub(crate) fn read(
    wire: &dyn SegmentedWire,
    source: &[u8],
    scope: TranscriptScope,
) -> Result<TranscriptReading, FormatError> {
    let (text, at) = body::read_text(source)?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(at.missing_field("messages", "in an object"));
    }
    let head: Members<'_> = at.read(text)?;
    let messages = head.get("messages");
    let messages = messages.ok_or_else(|| at.missing_field("messages", "a list"))?;
    let (elements, layout) = list::find_elements(source, text, messages, "messages")?;
    let mut reading = TranscriptReading::new(layout);
    reading.session_id = wire.session_id(&head);
    let raws: Vec<&RawValue> = elements.iter().map(|(raw, _)| *raw).collect();
    let live = match scope {
        TranscriptScope::Live => wire.live_from(&raws),
        TranscriptScope::Whole => 0,
    };
    for (raw, place) in elements.into_iter().skip(live) {
        let at = ItemContext {
            source,
            offset: place.span.start,
        };
        if let Some(message) = wire.read_message(at, raw.get())? {
            reading.model = wire.model_name(raw.get()).or(reading.model.take());
            reading.drafts.extend(draft_segments(message, &place));
        }
    }
    Ok(reading)
}

/// Returns the entries of a message at its place.
pub(crate) fn draft_segments(message: SegmentedMessage<'_>, place: &EntryPlace) -> Vec<EntryDraft> {
    let SegmentedMessage {
        id,
        usage,
        segments,
        ..
    } = message;
    let last_said = segments.iter().rposition(|s| s.role == Role::Assistant);
    let draft = |(part, segment): (usize, MessageSegment<'_>)| EntryDraft {
        id: id.as_ref().map(|id| match part {
            0 => id.clone(),
            part => format!("{id}.{part}"),
        }),
        role: segment.role,
        blocks: edit::into_blocks(segment.pieces),
        meta: EntryMeta {
            kind: segment.kind,
            usage: usage.filter(|_| last_said == Some(part)),
            ..EntryMeta::default()
        },
        place: EntryPlace {
            part: Some(part),
            ..place.clone()
        },
    };
    segments.into_iter().enumerate().map(draft).collect()
}

/// Returns the view as a document of the same layout.
pub(crate) fn emit(
    wire: &dyn SegmentedWire,
    page: &DocumentContext<'_>,
    view: &View,
) -> Result<Vec<u8>, FormatError> {
    Ok(list::emit(page.document, &view_messages(wire, page, view)?))
}

/// Returns the view as messages.
pub(crate) fn view_messages<'p>(
    wire: &dyn SegmentedWire,
    page: &'p DocumentContext<'p>,
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
            out.extend(shown_message(wire, page, run, &sizes)?);
        } else {
            let made = wire.compose_messages(page, out.last().map(AsRef::as_ref), &new);
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

/// Returns how many items at the front are new text, or segments of one message.
fn run_length(page: &DocumentContext<'_>, items: &[ViewItem]) -> usize {
    let line = |item: &ViewItem| {
        let place = item.entry_index().and_then(|i| page.document.places.get(i));
        place.map(|place| place.line)
    };
    let part = |item: &ViewItem| {
        let place = item.entry_index().and_then(|i| page.document.places.get(i));
        place.and_then(|place| place.part)
    };
    let belongs = |pair: &[ViewItem]| match pair {
        [a, b] => line(a) == line(b) && (line(a).is_none() || part(a) < part(b)),
        _ => false,
    };
    1 + items.windows(2).take_while(|pair| belongs(pair)).count()
}

/// Returns one message with the segments that are shown.
fn shown_message<'p>(
    wire: &dyn SegmentedWire,
    page: &'p DocumentContext<'p>,
    run: &'p [ViewItem],
    sizes: &HashMap<usize, usize>,
) -> Result<Option<Cow<'p, str>>, FormatError> {
    let mut json = "";
    let mut line = 0;
    let mut segments: Vec<(usize, Option<EntryEdits<'_>>)> = Vec::with_capacity(run.len());
    for item in run {
        match page.resolve_item(item)? {
            ShownItem::Kept { place, item } => {
                (json, line) = (item, place.line);
                segments.push((place.part.unwrap_or(0), None));
            }
            ShownItem::Edited { place, item, edits } => {
                (json, line) = (item, place.line);
                segments.push((place.part.unwrap_or(0), Some(edits)));
            }
            ShownItem::New(_) => {}
        }
    }
    let is_whole = sizes.get(&line) == Some(&segments.len());
    if is_whole && segments.iter().all(|(_, edits)| edits.is_none()) {
        return Ok(Some(Cow::Borrowed(json)));
    }
    Ok(rewrite_message(wire, page.bytes(), json, &segments)?.map(Cow::Owned))
}

fn rewrite_message(
    wire: &dyn SegmentedWire,
    source: &[u8],
    json: &str,
    shown: &[(usize, Option<EntryEdits<'_>>)],
) -> Result<Option<String>, FormatError> {
    let json = &*readable_text(json);
    let at = ItemContext { source, offset: 0 };
    let Some(message) = wire.read_message(at, json)? else {
        return Ok(None);
    };
    let mut pieces = Vec::new();
    let mut edits: Vec<(usize, BlockEdit)> = Vec::new();
    let mut echoes: Vec<(usize, &TextEcho<'_>)> = Vec::new();
    for (part, segment) in message.segments.into_iter().enumerate() {
        let first = pieces.len();
        let fate = shown.iter().find(|(at, _)| *at == part);
        for block in 0..segment.pieces.len() {
            let edit = match fate {
                None => Some(&BlockEdit::Drop),
                Some((_, edits)) => edits.and_then(|edits| edits.for_block(block)),
            };
            edits.extend(edit.map(|edit| (first + block, edit.clone())));
        }
        let of_segment = message.echoes.iter().filter(|e| e.segment == part);
        echoes.extend(of_segment.map(|echo| (first + echo.block, echo)));
        pieces.extend(segment.pieces);
    }
    let more = |patch: &mut crate::json::Patch<'_>, block: usize, text: &str| {
        for (_, echo) in echoes.iter().filter(|(at, _)| *at == block) {
            patch.replace(echo.value, echo.with.to_json(text));
        }
    };
    let part = |text: &str| wire.text_part(text);
    Ok(edit::apply_edits_with(
        json,
        &pieces,
        EntryEdits(&edits),
        &part,
        &more,
    ))
}

impl EchoReplacement {
    fn to_json(&self, text: &str) -> String {
        match self {
            EchoReplacement::Fixed(json) => (*json).to_owned(),
            EchoReplacement::Text { before, after } => format!("{before}{}{after}", quote(text)),
        }
    }
}

/// Returns a document followed by the later one's messages. A message that has grown since takes the place
/// of its earlier self.
pub(crate) fn extend(
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let (place, _) = later.entry_source(from)?;
    let grown = place.part.is_some_and(|part| part > 0);
    let SourceLayout::List { messages, .. } = &later.document.layout else {
        return Ok(first.source.to_vec());
    };
    let mut added = Vec::new();
    for span in messages.iter().skip(place.line) {
        added.push(crate::source::span_text(later.bytes(), span.clone())?);
    }
    let SourceLayout::List { messages, .. } = &first.layout else {
        return Ok(first.source.to_vec());
    };
    if !grown || messages.is_empty() {
        return Ok(list::extend(first, &added));
    }
    let kept = messages.len() - 1;
    let mut all = Vec::with_capacity(kept + added.len());
    for span in messages.iter().take(kept) {
        all.push(Cow::Borrowed(crate::source::span_text(
            &first.source,
            span.clone(),
        )?));
    }
    all.extend(added.into_iter().map(Cow::Borrowed));
    Ok(list::emit(first, &all))
}

/// A reply with the results that follow it, as one message holds them.
pub(crate) struct ReplyWithResults<'e> {
    pub(crate) entry: &'e Entry,
    pub(crate) results: Vec<&'e Block>,
}

impl<'e> ReplyWithResults<'e> {
    /// Returns the result of a call.
    pub(crate) fn result_of(&self, id: &str) -> Option<(&'e str, bool)> {
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

/// Returns entries as replies: a result joins the entry that made its call, or stands alone.
pub(crate) fn group_replies<'e>(entries: &[&'e Entry]) -> Vec<ReplyWithResults<'e>> {
    let mut replies: Vec<ReplyWithResults<'e>> = Vec::new();
    for &entry in entries {
        let calls =
            |reply: &ReplyWithResults<'_>, id: &str| reply.entry.call_ids().any(|call| call == id);
        let answered = entry
            .result_ids()
            .next()
            .and_then(|id| replies.iter().rposition(|reply| calls(reply, id)));
        let results = entry
            .blocks
            .iter()
            .filter(|b| matches!(b, Block::ToolResult { .. }));
        match answered.and_then(|at| replies.get_mut(at)) {
            Some(reply) => reply.results.extend(results),
            None => replies.push(ReplyWithResults {
                entry,
                results: Vec::new(),
            }),
        }
    }
    replies
}
