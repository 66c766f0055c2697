//! Entries as every wire can write them: one entry per message, results together, words apart.

use std::collections::{HashMap, HashSet, VecDeque};

use compact_core::message::{Block, Conversation, Entry, EntryKind, Role};

use crate::special_text::OPENING;

/// Returns the entries of a conversation: lines of one message become one entry, the results of parallel
/// calls one answer, and words beside results an entry of their own. What says nothing is left out.
/// A model that has asked for tools says no more before they answer, so what it says is one message.
pub(super) fn writable_entries(conversation: &Conversation) -> Vec<Entry> {
    let mut out: Vec<Entry> = Vec::with_capacity(conversation.entries.len());
    let mut groups: HashMap<&str, usize> = HashMap::new();
    for entry in &conversation.entries {
        let group = entry.meta.group.as_deref();
        let waits = |last: &Entry| last.role == Role::Assistant && last.call_ids().next().is_some();
        let waiting = out.len().checked_sub(1);
        let waiting = waiting.filter(|at| out.get(*at).is_some_and(waits));
        let first = group
            .and_then(|group| groups.get(group).copied())
            .or(waiting);
        match first.and_then(|at| out.get_mut(at)) {
            Some(said) if entry.role == Role::Assistant => {
                said.blocks.extend(writable_blocks(entry).cloned());
            }
            _ => {
                let before = out.len();
                push_entry(&mut out, entry);
                if let Some(group) = group.filter(|_| out.len() > before) {
                    groups.insert(group, before);
                }
            }
        }
    }
    out
}

fn push_entry(out: &mut Vec<Entry>, entry: &Entry) {
    let is_result = |block: &&Block| matches!(block, Block::ToolResult { .. });
    let results: Vec<Block> = writable_blocks(entry).filter(is_result).cloned().collect();
    let words: Vec<Block> = writable_blocks(entry)
        .filter(|b| !is_result(b))
        .cloned()
        .collect();
    let with = |role, blocks| Entry {
        role,
        blocks,
        ..entry.clone()
    };
    if !results.is_empty() {
        let is_answer = |last: &&mut Entry| last.role == Role::Tool;
        match out.last_mut().filter(is_answer) {
            Some(last) => last.blocks.extend(results),
            None => out.push(with(Role::Tool, results)),
        }
    }
    if words.is_empty() {
        return;
    }
    if entry.role == Role::Tool {
        let mut aside = with(Role::User, words);
        aside.id.0.push_str("-words");
        aside.meta.kind = EntryKind::Injected;
        out.push(aside);
    } else {
        out.push(with(entry.role, words));
    }
}

/// Returns the texts, calls and results of an entry, which any format can write.
fn writable_blocks(entry: &Entry) -> impl Iterator<Item = &Block> {
    entry.blocks.iter().filter(|block| match block {
        Block::Text(text) => !text.trim().is_empty() && text != OPENING,
        Block::ToolCall { .. } | Block::ToolResult { .. } => true,
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => false,
    })
}

/// A call that goes by another id than it did.
pub(super) struct RenamedCall {
    pub(super) entry: usize,
    pub(super) from: String,
    pub(super) to: String,
}

/// Gives a call whose id was used before, or that its target cannot have, an id of its own, and its
/// result with it. `legal` makes an id that the target can have.
pub(super) fn make_call_ids_unique(
    conversation: &mut Conversation,
    legal: fn(&str) -> String,
) -> Vec<RenamedCall> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut open: HashMap<String, VecDeque<String>> = HashMap::new();
    let mut renamed = Vec::new();
    for (entry, whole) in conversation.entries.iter_mut().enumerate() {
        for block in &mut whole.blocks {
            match block {
                Block::ToolCall { id, .. } => {
                    let to = unused_id(&mut taken, &legal(id));
                    open.entry(id.clone()).or_default().push_back(to.clone());
                    if to != *id {
                        let from = std::mem::replace(id, to.clone());
                        renamed.push(RenamedCall { entry, from, to });
                    }
                }
                Block::ToolResult { call, .. } => {
                    let made = open.get_mut(call).and_then(VecDeque::pop_front);
                    *call = made.unwrap_or_else(|| unused_id(&mut taken, &legal(call)));
                }
                _ => {}
            }
        }
    }
    renamed
}

fn unused_id(taken: &mut HashSet<String>, id: &str) -> String {
    let mut name = id.to_owned();
    let mut uses = 1;
    while !taken.insert(name.clone()) {
        uses += 1;
        name = format!("{id}_{uses}");
    }
    name
}
