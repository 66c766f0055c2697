//! What one line says to the model.

use compact_core::message::{Block, EntryKind, Meta, Role};
use serde_json::value::RawValue;

use crate::edit::{self, Edits, Piece};
use crate::frame;
use crate::json::{Patch, is_string, quote};
use crate::source::{Draft, Line};

/// Who says what in a line.
pub(crate) struct Said<'a> {
    pub(crate) role: Role,
    pub(crate) kind: EntryKind,
    pub(crate) pieces: Vec<Piece<'a>>,
    /// Values that repeat a block's text.
    pub(crate) echoes: Vec<(usize, &'a RawValue)>,
}

impl<'a> Said<'a> {
    /// What is said, of this kind unless it is a summary of ours.
    pub(crate) fn new(role: Role, kind: EntryKind, pieces: Vec<Piece<'a>>) -> Said<'a> {
        let ours = pieces.iter().find_map(|piece| match &piece.block {
            Block::Text(text) => frame::summary(text),
            _ => None,
        });
        Said {
            role,
            kind: ours.unwrap_or(kind),
            pieces,
            echoes: Vec::new(),
        }
    }

    /// The line with its edits; what repeats a changed text changes with it or goes.
    pub(crate) fn edited(
        &self,
        json: &str,
        edits: Edits<'_>,
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
        edit::apply_with(json, &self.pieces, edits, part, &repeat)
    }

    /// The entry of a line.
    pub(crate) fn draft<T>(self, id: Option<String>, line: &Line<'_, T>) -> Draft {
        Draft {
            id,
            role: self.role,
            blocks: edit::blocks(self.pieces),
            meta: Meta {
                kind: self.kind,
                ..Meta::default()
            },
            place: line.place(),
        }
    }
}
