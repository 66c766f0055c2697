//! Entries without secrets, for whatever is drawn from their texts.
//!
//! Redaction comes before anything is cut: a line from the middle of a private key, or a token that
//! lost the word before it, gives nothing away that a rule could know it by.

use std::borrow::Cow;

use super::{RedactionCounts, Redactor};
use crate::message::{Block, Entry};

impl Redactor {
    /// The entries without what the rules find; borrowed where nothing is found.
    pub fn redact_entries<'e>(&self, entries: &'e [Entry]) -> Vec<Cow<'e, Entry>> {
        let redacted = |entry| match self.is_off() {
            true => Cow::Borrowed(entry),
            false => self.redact_entry(entry),
        };
        entries.iter().map(redacted).collect()
    }

    /// The entry without what the rules find; borrowed where nothing is found.
    pub fn redact_entry<'e>(&self, entry: &'e Entry) -> Cow<'e, Entry> {
        let mut out = Cow::Borrowed(entry);
        for (at, block) in entry.blocks.iter().enumerate() {
            let Some(redacted) = self.redacted_block(block) else {
                continue;
            };
            if let Some(place) = out.to_mut().blocks.get_mut(at) {
                *place = redacted;
            }
        }
        out
    }

    /// The block without what the rules find, if they find something.
    fn redacted_block(&self, block: &Block) -> Option<Block> {
        let counts = &mut RedactionCounts::new();
        let mut found = |text| match self.redact(text, counts) {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        };
        match block {
            Block::ToolCall {
                id,
                name,
                arguments,
            } => self.redacted_call(id, name, arguments),
            Block::Text(text) => Some(Block::Text(found(text)?)),
            Block::Reasoning { text, replay_bytes } => Some(Block::Reasoning {
                text: found(text)?,
                replay_bytes: *replay_bytes,
            }),
            Block::ToolResult {
                call,
                content,
                is_error,
            } => Some(Block::ToolResult {
                content: found(content)?,
                call: call.clone(),
                is_error: *is_error,
            }),
            Block::Media { .. } | Block::Opaque { .. } => None,
        }
    }

    /// A model chooses the name, too.
    fn redacted_call(&self, id: &str, name: &str, arguments: &str) -> Option<Block> {
        let counts = &mut RedactionCounts::new();
        let name = self.redact(name, counts);
        let arguments = self.redact_json(arguments, counts);
        let is_found = matches!(name, Cow::Owned(_)) || matches!(arguments, Cow::Owned(_));
        is_found.then(|| Block::ToolCall {
            id: id.to_owned(),
            name: name.into_owned(),
            arguments: arguments.into_owned(),
        })
    }
}
