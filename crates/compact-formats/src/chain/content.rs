//! What one line says to the model.

use compact_core::message::{Block, EntryKind, EntryMeta, Role};
use serde_json::value::RawValue;

use crate::edit::{self, BlockPiece, EntryEdits};
use crate::json::{Patch, is_string, quote};
use crate::source::{EntryDraft, SourceLine};
use crate::special_text;

/// The role and content of a line.
pub(crate) struct LineContent<'a> {
    pub(crate) role: Role,
    pub(crate) kind: EntryKind,
    pub(crate) pieces: Vec<BlockPiece<'a>>,
    /// Values that repeat a block's text.
    pub(crate) echoes: Vec<(usize, &'a RawValue)>,
}

impl<'a> LineContent<'a> {
    /// Returns what is said, of this kind unless it is a summary of ours.
    pub(crate) fn new(role: Role, kind: EntryKind, pieces: Vec<BlockPiece<'a>>) -> LineContent<'a> {
        let ours = pieces.iter().find_map(|piece| match &piece.block {
            Block::Text(text) => special_text::summary_kind(text),
            _ => None,
        });
        LineContent {
            role,
            kind: ours.unwrap_or(kind),
            pieces,
            echoes: Vec::new(),
        }
    }

    /// Returns the line with its edits; what repeats a changed text changes with it or goes.
    pub(crate) fn apply_edits(
        &self,
        json: &str,
        edits: EntryEdits<'_>,
        part: &dyn Fn(&str) -> String,
    ) -> Option<String> {
        let repeat = |patch: &mut Patch<'_>, block: usize, text: &str| {
            for (_, value) in self.echoes.iter().filter(|(at, _)| *at == block) {
                let json = match is_string(value) {
                    true => quote(text),
                    false => "null".to_owned(),
                };
                patch.replace(value, json);
            }
        };
        edit::apply_edits_with(json, &self.pieces, edits, part, &repeat)
    }

    /// Returns the entry of a line.
    pub(crate) fn into_draft<T>(self, id: Option<String>, line: &SourceLine<'_, T>) -> EntryDraft {
        EntryDraft {
            id,
            role: self.role,
            blocks: edit::into_blocks(self.pieces),
            meta: EntryMeta {
                kind: self.kind,
                ..EntryMeta::default()
            },
            place: line.entry_place(),
        }
    }
}
