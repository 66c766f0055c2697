//! Views to lines, chained so that the client can load them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::View;
use serde_json::value::RawValue;

use super::line::{ClaudeCodeLine, ClaudeCodeLineKind};
use crate::edit::{self, EntryEdits};
use crate::error::FormatError;
use crate::fresh;
use crate::json::{ItemContext, Members, Patch, quote, string_value};
use crate::source::{SourceLayout, line_spans};
use crate::surrogate::readable_text;
use crate::wire::{DocumentContext, LineWriter, ShownItem};
use crate::{BoundaryStamp, Document};

/// Returns the view's lines. Furniture stays where all that it refers to stays; boundaries go, because the
/// whole of the result is the context.
pub(super) fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let SourceLayout::Lines { lines, live_from } = &page.document.layout else {
        return Ok(page.bytes().to_vec());
    };
    let said: HashSet<usize> = page
        .document
        .places
        .iter()
        .map(|place| place.line)
        .collect();
    let mut weaver = ClaudeCodeWriter::new(page, view);
    let mut next = *live_from;
    for (i, item) in view.items.iter().enumerate() {
        match page.resolve_item(item)? {
            ShownItem::New(entry) => weaver.write_new_line(i, entry),
            ShownItem::Kept { place, item, .. } => {
                weaver.write_bookkeeping(lines.get(next..place.line), next, &said);
                next = next.max(place.line + 1);
                weaver.write_line(item);
            }
            ShownItem::Edited {
                place, item, edits, ..
            } => {
                weaver.write_bookkeeping(lines.get(next..place.line), next, &said);
                next = next.max(place.line + 1);
                if let Some(line) = edit_line(page, item, edits)? {
                    weaver.write_line(&line);
                }
            }
        }
    }
    weaver.write_bookkeeping(lines.get(next..), next, &said);
    Ok(weaver.writer.finish(page.bytes()))
}

/// Writes lines and keeps their chain whole.
struct ClaudeCodeWriter<'a> {
    page: &'a DocumentContext<'a>,
    skeleton: LineTemplate<'a>,
    /// Uuids of the entries that the view shows.
    shown: HashSet<&'a str>,
    writer: LineWriter,
    /// Where each line was written.
    written: HashMap<String, usize>,
    last: Option<String>,
    /// Where the latest line of our own was written: what follows it hangs on it or later.
    inserted: usize,
    timestamp: String,
}

impl<'a> ClaudeCodeWriter<'a> {
    fn new(page: &'a DocumentContext<'a>, view: &View) -> Self {
        let entries = &page.conversation.entries;
        let shown = view
            .items
            .iter()
            .filter_map(|item| entries.get(item.entry_index()?));
        let skeleton = LineTemplate::from_source(page.bytes());
        ClaudeCodeWriter {
            page,
            shown: shown.map(|entry| entry.id.0.as_str()).collect(),
            writer: LineWriter::new(page.bytes()),
            written: HashMap::new(),
            last: None,
            inserted: 0,
            timestamp: skeleton.timestamp.to_owned(),
            skeleton,
        }
    }

    /// Writes a line of the session, with another parent if its own is gone.
    fn write_line(&mut self, json: &str) {
        let line: ClaudeCodeLine<'_> = serde_json::from_str(json).unwrap_or_default();
        if let Some(timestamp) = line.timestamp {
            timestamp.get().clone_into(&mut self.timestamp);
        }
        let Some(uuid) = line.uuid() else {
            return self.writer.write_line(json.as_bytes());
        };
        let parent = line.parent();
        let stays = match &parent {
            Some(parent) => self
                .written
                .get(parent.as_ref())
                .is_some_and(|at| *at >= self.inserted),
            None => self.last.is_none(),
        };
        if stays {
            self.writer.write_line(json.as_bytes());
        } else {
            let mut patch = Patch::new(json);
            patch.set_member(json, "parentUuid", quote_or_null(self.last.as_deref()));
            self.writer.write_line(patch.finish().as_bytes());
        }
        self.record_uuid(uuid.into_owned());
    }

    fn record_uuid(&mut self, uuid: String) {
        self.written.insert(uuid.clone(), self.written.len() + 1);
        self.last = Some(uuid);
    }

    fn write_new_line(&mut self, index: usize, entry: &Entry) {
        let uuid = fresh::stable_uuid(&entry.id.0, index);
        if let Some(moment) = self.page.moment_of(entry) {
            moment.clone_into(&mut self.timestamp);
        }
        let line = self.skeleton.build_line(
            self.page,
            entry,
            &ChainPosition {
                uuid: &uuid,
                parent: self.last.as_deref(),
                timestamp: &self.timestamp,
            },
        );
        self.writer.write_line(line.as_bytes());
        self.record_uuid(uuid);
        self.inserted = self.written.len();
    }

    /// Writes the furniture among some lines: what belongs to no message that is gone.
    fn write_bookkeeping(
        &mut self,
        lines: Option<&[std::ops::Range<usize>]>,
        first: usize,
        said: &HashSet<usize>,
    ) {
        for (i, span) in lines.unwrap_or_default().iter().enumerate() {
            if said.contains(&(first + i)) {
                continue;
            }
            let bytes = self.page.bytes().get(span.clone()).unwrap_or_default();
            let Ok(json) = std::str::from_utf8(bytes) else {
                continue;
            };
            let Ok(line) = serde_json::from_str::<ClaudeCodeLine<'_>>(json) else {
                continue;
            };
            let parent = line.parent();
            let hangs = match (line.uuid(), &parent) {
                (None, _) => true,
                (Some(_), Some(parent)) => self.written.contains_key(parent.as_ref()),
                (Some(_), None) => self.last.is_none(),
            };
            let known = line
                .referenced_uuids()
                .all(|uuid| self.shown.contains(uuid.as_ref()));
            if line.kind() == ClaudeCodeLineKind::Bookkeeping && hangs && known {
                self.write_line(json);
            }
        }
    }
}

/// What repeats the words of a line beside them: the tool's result, and an attachment as it was sent.
const REPEATING: [&str; 2] = ["toolUseResult", "rendered"];

/// Returns a line with its edits, without what would repeat the words that were changed.
fn edit_line(
    page: &DocumentContext<'_>,
    json: &str,
    edits: EntryEdits<'_>,
) -> Result<Option<String>, FormatError> {
    let at = ItemContext {
        source: page.bytes(),
        offset: 0,
    };
    let json = &*readable_text(json);
    let line: ClaudeCodeLine<'_> = at.read(json)?;
    let (_, pieces, _) = line.read_pieces(at)?;
    let Some(edited) = edit::apply_edits(json, &pieces, edits, &text_part) else {
        return Ok(None);
    };
    let mut patch = Patch::new(&edited);
    patch.remove_members(&Members::from_json(&edited), |member| {
        REPEATING.contains(&member.key.as_ref())
    });
    Ok(Some(patch.finish()))
}

fn text_part(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

fn quote_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quote)
}

/// The members that every line of a session repeats.
struct LineTemplate<'a> {
    members: Vec<(&'static str, Cow<'a, str>)>,
    /// The latest timestamp, as JSON.
    timestamp: &'a str,
    /// The uuid of the last line in the chain.
    last: Option<Cow<'a, str>>,
}

/// The names of what every line repeats, and what stands there if no line says.
const REPEATED: [(&str, &str); 6] = [
    ("isSidechain", "false"),
    ("userType", "\"external\""),
    ("cwd", "\"\""),
    ("sessionId", "\"\""),
    ("version", "\"\""),
    ("gitBranch", "\"\""),
];

impl<'a> LineTemplate<'a> {
    fn from_source(source: &'a [u8]) -> LineTemplate<'a> {
        let last = line_spans(source).into_iter().rev().find_map(|span| {
            let json = std::str::from_utf8(source.get(span)?).ok()?;
            let members = Members::from_json(json);
            let in_chain = members
                .get("isSidechain")
                .is_none_or(|raw| raw.get() != "true");
            (members.get("uuid").is_some() && members.get("sessionId").is_some() && in_chain)
                .then_some(members)
        });
        let member = |key| last.as_ref().and_then(|members| members.get(key));
        LineTemplate {
            members: REPEATED
                .map(|(key, default)| {
                    (
                        key,
                        Cow::Borrowed(member(key).map_or(default, RawValue::get)),
                    )
                })
                .to_vec(),
            timestamp: member("timestamp").map_or("\"1970-01-01T00:00:00.000Z\"", RawValue::get),
            last: string_value(member("uuid")),
        }
    }

    /// Returns a line of our own around `body`, the members that make it what it is.
    fn wrap(&self, link: &ChainPosition<'_>, body: &str) -> String {
        let repeated: String = self
            .members
            .iter()
            .map(|(key, json)| format!("{}:{json},", quote(key)))
            .collect();
        format!(
            "{{\"parentUuid\":{},{repeated}{body},\"uuid\":{},\"timestamp\":{}}}",
            quote_or_null(link.parent),
            quote(link.uuid),
            link.timestamp,
        )
    }

    /// Returns a new entry as a line.
    fn build_line(
        &self,
        page: &DocumentContext<'_>,
        entry: &Entry,
        link: &ChainPosition<'_>,
    ) -> String {
        let content = render_content(entry);
        if entry.role == Role::Assistant {
            let model = page.conversation.model.as_deref().unwrap_or("<synthetic>");
            let message = format!(
                "{{\"id\":{},\"type\":\"message\",\"role\":\"assistant\",\"model\":{},\"content\":{content},\
                 \"stop_reason\":null,\"stop_sequence\":null,\"usage\":{NO_USAGE}}}",
                quote(&format!("msg_{}", link.uuid)),
                quote(model),
            );
            return self.wrap(
                link,
                &format!("\"type\":\"assistant\",\"message\":{message}"),
            );
        }
        let flags = match (&entry.meta.kind, entry.role) {
            (EntryKind::Summary { .. } | EntryKind::ForeignSummary, _) => {
                ",\"isVisibleInTranscriptOnly\":true,\"isCompactSummary\":true"
            }
            (EntryKind::Injected, _) | (_, Role::System | Role::Developer) => ",\"isMeta\":true",
            _ => "",
        };
        self.wrap(
            link,
            &format!(
                "\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{content}}}{flags}"
            ),
        )
    }
}

/// A count that measured another context is worse than none.
const NO_USAGE: &str = "{\"input_tokens\":0,\"cache_creation_input_tokens\":0,\
                        \"cache_read_input_tokens\":0,\"output_tokens\":0}";

/// The place of a line in the chain.
struct ChainPosition<'a> {
    uuid: &'a str,
    parent: Option<&'a str>,
    /// The time of new lines, as a JSON string.
    timestamp: &'a str,
}

/// Returns a new entry's content: a string where one text says it all.
fn render_content(entry: &Entry) -> String {
    if let ([Block::Text(text)], false) = (entry.blocks.as_slice(), entry.role == Role::Assistant) {
        return quote(text);
    }
    let blocks: Vec<String> = entry.blocks.iter().filter_map(render_block).collect();
    format!("[{}]", blocks.join(","))
}

fn render_block(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) => Some(text_part(text)),
        Block::ToolCall {
            id,
            name,
            arguments,
        } => Some(format!(
            "{{\"type\":\"tool_use\",\"id\":{},\"name\":{},\"input\":{}}}",
            quote(id),
            quote(name),
            edit::to_arguments_object(arguments)
        )),
        Block::ToolResult {
            call,
            content,
            is_error,
        } => Some(format!(
            "{{\"tool_use_id\":{},\"type\":\"tool_result\",\"content\":{},\"is_error\":{is_error}}}",
            quote(call),
            quote(content)
        )),
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => None,
    }
}

/// Returns a boundary, and the view as lines after it.
pub(super) fn append(
    page: &DocumentContext<'_>,
    view: &View,
    stamp: &BoundaryStamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    let mut copies = CopiedLines::after_boundary(page, stamp);
    for (i, item) in view.items.iter().enumerate() {
        let uuid = fresh::stable_uuid(stamp.receipt, i + 1);
        match page.resolve_item(item)? {
            ShownItem::New(entry) => copies.write_new_line(page, entry, uuid),
            ShownItem::Kept { item, .. } => copies.write_copy(item, uuid),
            ShownItem::Edited { item, edits, .. } => {
                if let Some(line) = edit_line(page, item, edits)? {
                    copies.write_copy(&line, uuid);
                }
            }
        }
    }
    Ok(copies.writer.into_lines())
}

/// Lines repeated after a boundary, as lines and messages of their own.
///
/// The client walks from the last line up the parents, and then adds every line whose message has the
/// id of one that it met, wherever that line stands: copies that shared an id with the line before
/// the boundary would bring it back.
struct CopiedLines<'a> {
    writer: LineWriter,
    skeleton: LineTemplate<'a>,
    timestamp: String,
    /// New uuids of lines by old ones.
    uuids: HashMap<String, String>,
    /// New ids of messages by old ones.
    messages: HashMap<String, String>,
    last: String,
}

impl<'a> CopiedLines<'a> {
    fn after_boundary(page: &DocumentContext<'a>, stamp: &BoundaryStamp<'_>) -> Self {
        let mut copies = CopiedLines {
            writer: LineWriter::following(page.bytes()),
            skeleton: LineTemplate::from_source(page.bytes()),
            timestamp: quote(stamp.timestamp),
            uuids: HashMap::new(),
            messages: HashMap::new(),
            last: fresh::stable_uuid(stamp.receipt, 0),
        };
        let boundary = format!(
            "\"logicalParentUuid\":{},\"type\":\"system\",\"subtype\":\"compact_boundary\",\
             \"content\":\"Conversation compacted\",\"isMeta\":false,\"level\":\"info\",\
             \"compactMetadata\":{{\"trigger\":\"manual\",\"preTokens\":{},\"postTokens\":{},\"receipt\":{}}}",
            quote_or_null(copies.skeleton.last.as_deref()),
            stamp.tokens_before,
            stamp.tokens_after,
            quote(stamp.receipt),
        );
        let link = ChainPosition {
            uuid: &copies.last,
            parent: None,
            timestamp: &copies.timestamp,
        };
        let boundary = copies.skeleton.wrap(&link, &boundary);
        copies.writer.write_line(boundary.as_bytes());
        copies
    }

    fn write_new_line(&mut self, page: &DocumentContext<'_>, entry: &Entry, uuid: String) {
        let link = ChainPosition {
            uuid: &uuid,
            parent: Some(&self.last),
            timestamp: &self.timestamp,
        };
        let line = self.skeleton.build_line(page, entry, &link);
        self.writer.write_line(line.as_bytes());
        self.last = uuid;
    }

    fn write_copy(&mut self, json: &str, uuid: String) {
        let members = Members::from_json(json);
        let old = string_value(members.get("uuid"))
            .unwrap_or_default()
            .into_owned();
        let mut patch = Patch::new(json);
        patch.remove_members(&members, |member| member.key == "toolUseResult");
        patch.set_member(json, "parentUuid", quote(&self.last));
        patch.set_member(json, "uuid", quote(&uuid));
        patch.set_member(json, "timestamp", self.timestamp.clone());
        patch.set_member(json, "compactedFrom", quote(&old));
        if let Some(source) = members.get("sourceToolAssistantUUID") {
            let new = string_value(Some(source)).and_then(|old| self.uuids.get(old.as_ref()));
            patch.replace(source, quote_or_null(new.map(String::as_str)));
        }
        if let Some(message) = members.get("message") {
            self.rename_message(&mut patch, message, &uuid);
        }
        self.writer.write_line(patch.finish().as_bytes());
        self.uuids.insert(old, uuid.clone());
        self.last = uuid;
    }

    /// Gives the copy of a message an id of its own, the same in all its lines, and no usage.
    fn rename_message(&mut self, patch: &mut Patch<'_>, message: &RawValue, uuid: &str) {
        let members = Members::from_json(message.get());
        if let Some(id) = members.get("id") {
            let old = string_value(Some(id)).unwrap_or_default().into_owned();
            let new = self.messages.entry(old);
            let new = new.or_insert_with(|| format!("msg_{uuid}"));
            patch.replace(id, quote(new));
        }
        if let Some(usage) = members.get("usage") {
            patch.replace(usage, NO_USAGE.to_owned());
        }
    }
}

/// Returns the first session and the later one's lines from the entry on, hung on the first one's end.
pub(super) fn extend(
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let SourceLayout::Lines { lines: spans, .. } = &later.document.layout else {
        return Ok(first.source.to_vec());
    };
    let mut known: HashSet<String> = uuids(&first.source).collect();
    let mut last = LineTemplate::from_source(&first.source)
        .last
        .map(String::from);
    let mut writer = LineWriter::starting_with(&first.source);
    let start = later.entry_source(from)?.0.line;
    for span in spans.iter().skip(start) {
        let bytes = later.bytes().get(span.clone()).unwrap_or_default();
        let json = std::str::from_utf8(bytes).unwrap_or_default();
        let line: ClaudeCodeLine<'_> = serde_json::from_str(json).unwrap_or_default();
        let hangs = line
            .parent()
            .is_none_or(|parent| known.contains(parent.as_ref()));
        match line.uuid() {
            Some(uuid) if !hangs => {
                let mut patch = Patch::new(json);
                patch.set_member(json, "parentUuid", quote_or_null(last.as_deref()));
                writer.write_line(patch.finish().as_bytes());
                known.insert(uuid.clone().into_owned());
                last = Some(uuid.into_owned());
            }
            uuid => {
                writer.write_line(bytes);
                if let Some(uuid) = uuid {
                    known.insert(uuid.clone().into_owned());
                    last = Some(uuid.into_owned());
                }
            }
        }
    }
    Ok(writer.finish(later.bytes()))
}

fn uuids(source: &[u8]) -> impl Iterator<Item = String> {
    line_spans(source).into_iter().filter_map(move |span| {
        let json = std::str::from_utf8(source.get(span)?).ok()?;
        let line: ClaudeCodeLine<'_> = serde_json::from_str(json).ok()?;
        line.uuid().map(String::from)
    })
}
