//! Entries as every wire can write them: one entry per message, results together, words apart.

use std::collections::HashMap;

use compact_core::message::{Block, Conversation, Entry, EntryKind, Role};

/// The entries of a conversation: lines of one message become one entry, the results of parallel
/// calls one answer, and words beside results an entry of their own. What says nothing is left out.
/// A model that has asked for tools says no more before they answer, so what it says is one message.
pub(super) fn entries(conversation: &Conversation) -> Vec<Entry> {
    let mut out: Vec<Entry> = Vec::with_capacity(conversation.entries.len());
    let mut groups: HashMap<&str, usize> = HashMap::new();
    for entry in &conversation.entries {
        let group = entry.meta.group.as_deref();
        let waits = |last: &Entry| last.role == Role::Assistant && last.calls().next().is_some();
        let waiting = out.len().checked_sub(1);
        let waiting = waiting.filter(|at| out.get(*at).is_some_and(waits));
        let first = group
            .and_then(|group| groups.get(group).copied())
            .or(waiting);
        match first.and_then(|at| out.get_mut(at)) {
            Some(said) if entry.role == Role::Assistant => {
                said.blocks.extend(sayable(entry).cloned());
            }
            _ => {
                let before = out.len();
                add(&mut out, entry);
                if let Some(group) = group.filter(|_| out.len() > before) {
                    groups.insert(group, before);
                }
            }
        }
    }
    out
}

fn add(out: &mut Vec<Entry>, entry: &Entry) {
    let is_result = |block: &&Block| matches!(block, Block::ToolResult { .. });
    let results: Vec<Block> = sayable(entry).filter(is_result).cloned().collect();
    let words: Vec<Block> = sayable(entry).filter(|b| !is_result(b)).cloned().collect();
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

/// Texts, calls and results: what a format can be told anew.
fn sayable(entry: &Entry) -> impl Iterator<Item = &Block> {
    entry.blocks.iter().filter(|block| match block {
        Block::Text(text) => !text.is_empty(),
        Block::ToolCall { .. } | Block::ToolResult { .. } => true,
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => false,
    })
}

/// Gives a call whose id was used before an id of its own, and its result with it.
///
/// Answers the entry and the two ids of each.
pub(super) fn tell_calls_apart(conversation: &mut Conversation) -> Vec<(usize, String, String)> {
    let mut uses: HashMap<String, usize> = HashMap::new();
    let mut open: HashMap<String, Vec<String>> = HashMap::new();
    let mut renamed = Vec::new();
    for (i, entry) in conversation.entries.iter_mut().enumerate() {
        for block in &mut entry.blocks {
            match block {
                Block::ToolCall { id, .. } => {
                    let uses = uses.entry(id.clone()).or_default();
                    *uses += 1;
                    let name = if *uses == 1 {
                        id.clone()
                    } else {
                        format!("{id}_{uses}")
                    };
                    open.entry(id.clone()).or_default().insert(0, name.clone());
                    if name != *id {
                        renamed.push((i, std::mem::replace(id, name.clone()), name));
                    }
                }
                Block::ToolResult { call, .. } => {
                    if let Some(name) = open.get_mut(call).and_then(Vec::pop) {
                        *call = name;
                    }
                }
                _ => {}
            }
        }
    }
    renamed
}
