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
            false => self.redacted_entry(entry),
        };
        entries.iter().map(redacted).collect()
    }

    fn redacted_entry<'e>(&self, entry: &'e Entry) -> Cow<'e, Entry> {
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
        let redacted = match block {
            Block::ToolCall { arguments, .. } => self.redact_json(arguments, counts),
            Block::Text(text) | Block::Reasoning { text, .. } => self.redact(text, counts),
            Block::ToolResult { content, .. } => self.redact(content, counts),
            Block::Media { .. } | Block::Opaque { .. } => return None,
        };
        let Cow::Owned(redacted) = redacted else {
            return None;
        };
        let mut block = block.clone();
        match &mut block {
            Block::ToolCall {
                arguments: text, ..
            }
            | Block::ToolResult { content: text, .. }
            | Block::Reasoning { text, .. }
            | Block::Text(text) => *text = redacted,
            Block::Media { .. } | Block::Opaque { .. } => {}
        }
        Some(block)
    }
}
