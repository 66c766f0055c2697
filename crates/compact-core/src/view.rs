//! The view: what the model is to see, as a list of items that point back at the conversation.
//!
//! A view never owns what it keeps. Kept entries are named by index, so a format can copy their
//! bytes; edited ones say which block changed; only the summary and synthetic results are new text.

use serde::{Deserialize, Serialize};

use crate::message::{Block, Conversation, Entry, EntryKind};

/// The view of a conversation, in the order it is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The items, leading instructions first.
    pub items: Vec<ViewItem>,
}

/// One place in a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewItem {
    /// An entry, byte for byte.
    Kept {
        /// Its index in the conversation.
        entry: usize,
    },
    /// An entry of which some blocks changed.
    Edited {
        /// Its index in the conversation.
        entry: usize,
        /// Changed blocks by index, ascending; every other block stays as it is.
        edits: Vec<(usize, BlockEdit)>,
    },
    /// Text that the engine wrote: the summary, or a repair.
    New(Entry),
}

/// What happens to one block of an edited entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockEdit {
    /// The block is left out.
    Drop,
    /// The block's text (a text, a result's content, a call's arguments) is replaced.
    SetText(String),
}

impl ViewItem {
    /// The same item of a conversation whose entry `from` is its entry `to` now.
    #[must_use]
    pub fn reindex_entry(mut self, from: usize, to: usize) -> ViewItem {
        if let ViewItem::Kept { entry } | ViewItem::Edited { entry, .. } = &mut self {
            *entry = (*entry + to).saturating_sub(from);
        }
        self
    }

    /// The index of the entry that this item shows, if it shows one.
    pub fn entry_index(&self) -> Option<usize> {
        match self {
            ViewItem::Kept { entry } | ViewItem::Edited { entry, .. } => Some(*entry),
            ViewItem::New(_) => None,
        }
    }
}

impl View {
    /// The view that shows everything as it is.
    pub fn identity(conversation: &Conversation) -> View {
        View {
            items: (0..conversation.entries.len())
                .map(|entry| ViewItem::Kept { entry })
                .collect(),
        }
    }

    /// The entries that the model would see, edits applied.
    pub fn shown_entries(&self, conversation: &Conversation) -> Vec<Entry> {
        self.items
            .iter()
            .filter_map(|item| item.shown_entry(conversation))
            .collect()
    }

    /// The summary that the view carries, if it carries one of ours.
    pub fn summary(&self) -> Option<&Entry> {
        self.items.iter().find_map(|item| match item {
            ViewItem::New(entry) if matches!(entry.meta.kind, EntryKind::Summary { .. }) => {
                Some(entry)
            }
            _ => None,
        })
    }
}

impl ViewItem {
    /// The entry as the model would see it; `None` when the index points nowhere.
    pub fn shown_entry(&self, conversation: &Conversation) -> Option<Entry> {
        match self {
            ViewItem::Kept { entry } => conversation.entries.get(*entry).cloned(),
            ViewItem::Edited { entry, edits } => conversation
                .entries
                .get(*entry)
                .map(|e| apply_edits(e, edits)),
            ViewItem::New(entry) => Some(entry.clone()),
        }
    }
}

/// An entry with its edits applied.
pub fn apply_edits(entry: &Entry, edits: &[(usize, BlockEdit)]) -> Entry {
    let blocks = entry
        .blocks
        .iter()
        .enumerate()
        .filter_map(|(i, block)| match edits.iter().find(|(at, _)| *at == i) {
            None => Some(block.clone()),
            Some((_, BlockEdit::Drop)) => None,
            Some((_, BlockEdit::SetText(text))) => Some(with_text(block, text)),
        })
        .collect();
    let mut edited = Entry {
        blocks,
        ..entry.clone()
    };
    // No wire takes a tool of its own with other words: they stand as a message.
    let is_set = |(_, edit): &(usize, BlockEdit)| matches!(edit, BlockEdit::SetText(_));
    if edited.meta.kind == EntryKind::HostedTool && edits.iter().any(is_set) {
        edited.meta.kind = EntryKind::Message;
    }
    edited
}

fn with_text(block: &Block, text: &str) -> Block {
    let text = text.to_owned();
    match block {
        Block::ToolCall { id, name, .. } => Block::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: text,
        },
        Block::ToolResult { call, is_error, .. } => Block::ToolResult {
            call: call.clone(),
            content: text,
            is_error: *is_error,
        },
        Block::Reasoning { replay_bytes, .. } => Block::Reasoning {
            text,
            replay_bytes: *replay_bytes,
        },
        Block::Text(_) | Block::Media { .. } | Block::Opaque { .. } => Block::Text(text),
    }
}

impl View {
    /// The view of the original that looking at `self` through `later` gives: `later`'s items point
    /// into what `self` shows, the answer's items point where `self`'s do.
    pub fn compose_with(&self, later: &View, conversation: &Conversation) -> View {
        let items = later
            .items
            .iter()
            .filter_map(|item| match item {
                ViewItem::New(entry) => Some(ViewItem::New(entry.clone())),
                ViewItem::Kept { entry } => self.items.get(*entry).cloned(),
                ViewItem::Edited { entry, edits } => {
                    Some(edit_again(self.items.get(*entry)?, edits, conversation))
                }
            })
            .collect();
        View { items }
    }
}

/// An item with further edits, given by block index of what the item shows.
fn edit_again(
    item: &ViewItem,
    later: &[(usize, BlockEdit)],
    conversation: &Conversation,
) -> ViewItem {
    match item {
        ViewItem::New(entry) => ViewItem::New(apply_edits(entry, later)),
        ViewItem::Kept { entry } => ViewItem::Edited {
            entry: *entry,
            edits: later.to_vec(),
        },
        ViewItem::Edited { entry, edits } => {
            let blocks = conversation
                .entries
                .get(*entry)
                .map_or(0, |e| e.blocks.len());
            let shown: Vec<usize> = (0..blocks)
                .filter(|i| !edits.iter().any(|(at, e)| at == i && *e == BlockEdit::Drop))
                .collect();
            let mut all = edits.clone();
            for (at, edit) in later {
                let Some(original) = shown.get(*at) else {
                    continue;
                };
                all.retain(|(i, _)| i != original);
                all.push((*original, edit.clone()));
            }
            all.sort_by_key(|(at, _)| *at);
            ViewItem::Edited {
                entry: *entry,
                edits: all,
            }
        }
    }
}
