//! Request bodies: a list of messages, and the instructions beside it.
//!
//! Messages are written into the list by [`list`]; a member beside the list is
//! replaced or added in place. Nothing else of a body is touched.

pub(crate) mod messages;

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, EntryMeta, Role};
use compact_core::view::{View, ViewItem};

use serde_json::value::RawValue;

use self::messages::MessageDialect;
use crate::Document;
use crate::edit::{self, BlockPiece, EntryEdits, Holder};
use crate::error::FormatError;
use crate::json::{ItemContext, Patch, is_string};
use crate::list;
use crate::parts;
use crate::source::{self, EntryDraft, EntryPlace};
use crate::surrogate::readable_text;
use crate::wire::{DocumentContext, ShownItem};

/// The line of an entry that stands beside the list.
const BESIDE: usize = usize::MAX;

/// A member of the body with its new value.
pub(crate) struct BodyMember {
    pub(crate) key: &'static str,
    pub(crate) json: String,
}

/// Returns the place of a value beside the list; `part` says which one of several.
pub(crate) fn place_beside(source: &[u8], value: &RawValue, part: Option<usize>) -> EntryPlace {
    let start = (value.get().as_ptr() as usize).wrapping_sub(source.as_ptr() as usize);
    EntryPlace {
        line: BESIDE,
        span: start..start + value.get().len(),
        part,
    }
}

/// Returns true for an entry that stands beside the list.
pub(crate) fn is_beside(place: &EntryPlace) -> bool {
    place.line == BESIDE
}

/// Returns the text of a body, without a byte order mark.
pub(crate) fn read_text(source: &[u8]) -> Result<(&str, ItemContext<'_>), FormatError> {
    let offset = source::start_offset(source);
    let text = source::span_text(source, offset..source.len())?;
    if text.trim_ascii().is_empty() {
        return Err(FormatError::Empty);
    }
    Ok((text, ItemContext { source, offset }))
}

/// Returns the body with these messages, and with a member changed.
pub(crate) fn emit(
    document: &Document,
    messages: &[Cow<'_, str>],
    member: Option<BodyMember>,
) -> Result<Vec<u8>, FormatError> {
    let body = list::emit(document, messages);
    let Some(BodyMember { key, json }) = member else {
        return Ok(body);
    };
    let offset = source::start_offset(&body);
    let text = source::span_text(&body, offset..body.len())?;
    let mut patch = Patch::new(text);
    patch.set_member(text.trim_ascii(), key, json);
    let mut out = body.get(..offset).unwrap_or_default().to_vec();
    out.extend_from_slice(patch.finish().as_bytes());
    Ok(out)
}

/// Returns the first document followed by the messages of the later one from the entry on.
pub(crate) fn extend(
    dialect: &dyn MessageDialect,
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let items: Vec<ViewItem> = (from..later.document.places.len())
        .map(|entry| ViewItem::Kept { entry })
        .collect();
    let added = messages::write_messages(dialect, later, &items)?;
    let added: Vec<&str> = added.iter().map(AsRef::as_ref).collect();
    Ok(list::extend(first, &added))
}

/// Returns the parts of the instructions beside the list, when the view changes them.
pub(crate) fn changed_instructions(
    dialect: &dyn MessageDialect,
    page: &DocumentContext<'_>,
    view: &View,
) -> Result<Option<Vec<String>>, FormatError> {
    let at = ItemContext {
        source: page.bytes(),
        offset: 0,
    };
    let as_part = |item: &str| match serde_json::from_str::<String>(&readable_text(item)) {
        Ok(text) => dialect.text_part(&text),
        Err(_) => item.to_owned(),
    };
    let mut parts = Vec::new();
    let mut untouched = 0;
    for item in &view.items {
        match page.resolve_item(item)? {
            ShownItem::New(entry) if entry.role.is_instruction() => {
                let texts = entry.blocks.iter().filter_map(|block| match block {
                    Block::Text(text) => Some(text),
                    _ => None,
                });
                parts.extend(texts.map(|text| dialect.text_part(text)));
            }
            ShownItem::Kept { place, item } if is_beside(place) => {
                untouched += 1;
                parts.push(as_part(item));
            }
            ShownItem::Edited { place, item, edits } if is_beside(place) => {
                let edited = edit_part(at, item, edits)?;
                parts.extend(edited.map(|item| as_part(&item)));
            }
            _ => {}
        }
    }
    let all = page.document.places.iter().filter(|p| is_beside(p)).count();
    let is_same = untouched == all && parts.len() == all;
    Ok((!is_same).then_some(parts))
}

/// Returns the one piece of instructions: a string, or a part with a text.
pub(crate) fn instruction_pieces<'a>(
    at: ItemContext<'_>,
    field: &str,
    raw: &'a RawValue,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    if is_string(raw) {
        let text = at.read_string(field, raw)?;
        return Ok(vec![parts::text_piece(text, Holder::Item, raw)]);
    }
    let piece = parts::read_part(at, field, raw, raw)?;
    Ok(vec![BlockPiece {
        holder: Holder::Item,
        ..piece
    }])
}

/// Instructions beside the list as an entry; `kind` says of which.
pub(crate) fn read_instruction(
    at: ItemContext<'_>,
    field: &str,
    raw: &RawValue,
    place: EntryPlace,
    kind: fn(Role, &[Block]) -> EntryKind,
) -> Result<EntryDraft, FormatError> {
    let blocks = edit::into_blocks(instruction_pieces(at, field, raw)?);
    let id = match place.part {
        None => "system".to_owned(),
        Some(part) => format!("system.{part}"),
    };
    Ok(EntryDraft {
        id: Some(id),
        role: Role::System,
        meta: EntryMeta {
            kind: kind(Role::System, &blocks),
            ..EntryMeta::default()
        },
        blocks,
        place,
    })
}

fn edit_part(
    at: ItemContext<'_>,
    item: &str,
    edits: EntryEdits<'_>,
) -> Result<Option<String>, FormatError> {
    let item = &*readable_text(item);
    let raw: &RawValue = at.read(item)?;
    let pieces = instruction_pieces(at, "instructions", raw)?;
    Ok(edit::apply_edits(item, &pieces, edits, &|text| {
        crate::json::quote(text)
    }))
}
