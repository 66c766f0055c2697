//! Blocks and where they stand: one walk over an item serves both reading and editing.
//!
//! A wire lists the pieces of an item in order. Reading takes the blocks; editing takes the places,
//! replaces the strings that changed and leaves out what was dropped. Everything else is copied.

use compact_core::message::Block;
use compact_core::view::BlockEdit;
use serde_json::value::RawValue;

use crate::json::{Members, Patch, is_object, is_string, quote, span_in};

/// One block of an item with its place in the item's JSON.
pub(crate) struct BlockPiece<'a> {
    pub(crate) block: Block,
    pub(crate) holder: Holder<'a>,
    /// The values that hold the block's text: the first takes a new text, the others go or fall
    /// silent.
    pub(crate) texts: Vec<TextSite<'a>>,
}

/// The part of an item that is removed with a block.
#[derive(Clone, Copy)]
pub(crate) enum Holder<'a> {
    /// The whole item.
    Item,
    /// A member of the item's object.
    Member(&'a RawValue),
    /// An element of a list.
    Element {
        list: &'a RawValue,
        element: &'a RawValue,
    },
    /// A value that must stay: it is emptied, and this is how that is written.
    Value {
        value: &'a RawValue,
        empty: &'static str,
    },
}

/// A value that holds text.
#[derive(Clone, Copy)]
pub(crate) struct TextSite<'a> {
    pub(crate) value: &'a RawValue,
    /// The list and the element that the value belongs to, when the text is spread over a list.
    pub(crate) part: Option<(&'a RawValue, &'a RawValue)>,
}

impl<'a> TextSite<'a> {
    pub(crate) fn in_value(value: &'a RawValue) -> Vec<TextSite<'a>> {
        vec![TextSite { value, part: None }]
    }
}

/// Returns the blocks of pieces. Collecting them in place would keep the room of the pieces.
pub(crate) fn into_blocks(pieces: Vec<BlockPiece<'_>>) -> Vec<Block> {
    let mut blocks = Vec::with_capacity(pieces.len());
    blocks.extend(pieces.into_iter().map(|piece| piece.block));
    blocks
}

/// The edits of one entry.
#[derive(Clone, Copy)]
pub(crate) struct EntryEdits<'e>(pub(crate) &'e [(usize, BlockEdit)]);

impl<'e> EntryEdits<'e> {
    pub(crate) fn for_block(self, block: usize) -> Option<&'e BlockEdit> {
        self.0
            .iter()
            .find(|(at, _)| *at == block)
            .map(|(_, edit)| edit)
    }

    /// Returns whether nothing is left of an item: all blocks are dropped, or the one that is the item.
    fn removes_all(self, pieces: &[BlockPiece<'_>]) -> bool {
        let is_dropped = |i: usize| matches!(self.for_block(i), Some(BlockEdit::Drop));
        let is_item = |piece: &BlockPiece<'_>| matches!(piece.holder, Holder::Item);
        let mut indexed = pieces.iter().enumerate();
        !pieces.is_empty() && (0..pieces.len()).all(is_dropped)
            || indexed.any(|(i, piece)| is_item(piece) && is_dropped(i))
    }
}

/// Returns the item with its edits, or nothing when no block of it is left.
///
/// `part` writes a text where the block was something else.
pub(crate) fn apply_edits(
    item: &str,
    pieces: &[BlockPiece<'_>],
    edits: EntryEdits<'_>,
    part: &dyn Fn(&str) -> String,
) -> Option<String> {
    apply_edits_with(item, pieces, edits, part, &|_, _, _| {})
}

/// Applies edits like [`apply_edits`], and calls `more` with each changed block and its new text.
pub(crate) fn apply_edits_with(
    item: &str,
    pieces: &[BlockPiece<'_>],
    edits: EntryEdits<'_>,
    part: &dyn Fn(&str) -> String,
    more: &dyn Fn(&mut Patch<'_>, usize, &str),
) -> Option<String> {
    if edits.removes_all(pieces) {
        return None;
    }
    let mut patch = Patch::new(item);
    let mut gone = RemovedParts::default();
    for (i, piece) in pieces.iter().enumerate() {
        match edits.for_block(i) {
            None => {}
            Some(BlockEdit::Drop) => gone.add_holder(piece.holder),
            Some(BlockEdit::SetText(text)) => {
                set_text(&mut patch, &mut gone, piece, text, part);
                more(&mut patch, i, text);
            }
        }
    }
    gone.remove(item, &mut patch);
    Some(patch.finish())
}

fn set_text<'a>(
    patch: &mut Patch<'_>,
    gone: &mut RemovedParts<'a>,
    piece: &BlockPiece<'a>,
    text: &str,
    part: &dyn Fn(&str) -> String,
) {
    let Some((first, others)) = piece.texts.split_first() else {
        return match (piece.holder, &piece.block) {
            (Holder::Element { element, .. }, Block::ToolResult { .. }) => {
                patch.set_member(element.get(), "content", quote(text));
            }
            // A call without arguments has nothing that could be shorter.
            (_, Block::ToolCall { .. }) => {}
            (Holder::Element { element, .. }, _) => patch.replace(element, part(text)),
            (Holder::Value { .. }, _) => {}
            (Holder::Item | Holder::Member(_), _) => {
                patch.set_member(patch.source(), "content", quote(text))
            }
        };
    };
    patch.replace(first.value, encode(&piece.block, first.value, text, part));
    for site in others {
        match site.part {
            Some(part) => gone.elements.push(part),
            None => patch.replace(site.value, quote("")),
        }
    }
}

/// Returns a new text as the value's own type: arguments that are an object stay one, a list stays a list.
fn encode(block: &Block, value: &RawValue, text: &str, part: &dyn Fn(&str) -> String) -> String {
    if is_string(value) {
        return quote(text);
    }
    match block {
        Block::ToolCall { .. } => to_arguments_object(text),
        Block::ToolResult { .. } if value.get().starts_with('[') => format!("[{}]", part(text)),
        Block::ToolResult { .. } if is_object(value) => format!("{{\"output\":{}}}", quote(text)),
        _ => quote(text),
    }
}

/// Arguments where the wire wants an object.
pub(crate) fn to_arguments_object(text: &str) -> String {
    match serde_json::from_str::<&RawValue>(text) {
        // Only white space may hold a line break, and a line of JSON must not.
        Ok(raw) if is_object(raw) => raw.get().replace(['\n', '\r'], " "),
        _ => format!("{{\"input\":{}}}", quote(text)),
    }
}

/// The parts that are removed from an item.
#[derive(Default)]
struct RemovedParts<'a> {
    members: Vec<&'a RawValue>,
    elements: Vec<(&'a RawValue, &'a RawValue)>,
    values: Vec<(&'a RawValue, &'static str)>,
}

impl<'a> RemovedParts<'a> {
    fn add_holder(&mut self, holder: Holder<'a>) {
        match holder {
            Holder::Item => {}
            Holder::Member(value) => self.members.push(value),
            Holder::Element { list, element } => self.elements.push((list, element)),
            Holder::Value { value, empty } => self.values.push((value, empty)),
        }
    }

    fn remove(mut self, item: &str, patch: &mut Patch<'_>) {
        for (value, empty) in &self.values {
            patch.replace(value, (*empty).to_owned());
        }
        let mut lists: Vec<&RawValue> = Vec::new();
        for (list, _) in &self.elements {
            if !lists.iter().any(|known| is_same_value(known, list)) {
                lists.push(list);
            }
        }
        for list in lists {
            let elements: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
            let gone: Vec<bool> = elements
                .iter()
                .map(|e| {
                    self.elements
                        .iter()
                        .any(|(_, element)| is_same_value(element, e))
                })
                .collect();
            if gone.contains(&false) {
                patch.remove_elements(&elements, &gone);
            } else {
                self.members.push(list);
            }
        }
        self.remove_members(item, patch);
    }

    /// Removes members, except `content`, which becomes null.
    fn remove_members(&self, item: &str, patch: &mut Patch<'_>) {
        let members = Members::from_json(item);
        let is_gone = |value: &RawValue| self.members.iter().any(|gone| is_same_value(gone, value));
        for value in &self.members {
            let own = members.0.iter().find(|m| is_same_value(m.value, value));
            match own.map(|m| m.key.as_ref()) {
                Some("content") => patch.replace(value, "null".to_owned()),
                Some(_) => {}
                None => patch.replace(value, "[]".to_owned()),
            }
        }
        patch.remove_members(&members, |m| m.key != "content" && is_gone(m.value));
    }
}

fn is_same_value(a: &RawValue, b: &RawValue) -> bool {
    !span_in(a.get(), b.get()).is_empty()
        && a.get().as_ptr() == b.get().as_ptr()
        && a.get().len() == b.get().len()
}
