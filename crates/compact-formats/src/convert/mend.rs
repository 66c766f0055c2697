//! What providers insist on, done to entries that are to be written for one.
//!
//! Transcripts hold what no provider was sent: calls that were interrupted, results whose call is
//! gone, words between the two. A call gets a result that says there is none, a result a call that
//! says nothing, and both stand together. Only the calls with which a session ends are left waiting.

use std::collections::{HashMap, HashSet, VecDeque};

use compact_core::message::{Block, Entry, EntryKind, EntryMeta, Role};

use super::ConversionLoss;
use crate::special_text::OPENING;

/// What stands for a result that never came.
const NO_RESULT: &str = "[no result: the call was never answered]";

/// The tool of a call that only its result tells of.
const UNKNOWN_TOOL: &str = "unknown_tool";

/// Providers take no longer ids.
const LONGEST_ID: usize = 64;

/// Returns an id of the letters that every provider takes.
pub(super) fn legal_id(id: &str) -> String {
    let letter = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    let legal: String = id.chars().map(letter).take(LONGEST_ID).collect();
    if legal.is_empty() {
        "call".to_owned()
    } else {
        legal
    }
}

/// Results by the call that they answer, with the entry that they stand in.
type ResultsByCall = HashMap<String, VecDeque<(usize, Block)>>;

/// Puts every result right behind its call, in the order of the calls, and makes up what is missing
/// of a pair. Answers what was made up.
pub(super) fn mend_pairs(entries: &mut Vec<Entry>) -> Vec<ConversionLoss> {
    entries.iter_mut().for_each(set_caller_role);
    *entries = entries.drain(..).flat_map(split_results).collect();
    let mut results = collect_results(entries);
    let waiting = find_waiting(entries);
    let called: HashSet<String> = entries
        .iter()
        .flat_map(Entry::call_ids)
        .map(Into::into)
        .collect();
    let mut made_up = Vec::new();
    let mut out: Vec<Entry> = Vec::with_capacity(entries.len());
    let answers: Vec<Vec<Block>> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| take_results(at, entry, waiting, &mut results, &mut made_up))
        .collect();
    for ((at, mut entry), answers) in entries.drain(..).enumerate().zip(answers) {
        if entry.role == Role::Tool {
            let left = take_leftover_results(at, &entry, &called, &mut results);
            let orphans = pair_orphans(&entry, left, &mut made_up);
            out.extend(orphans);
            continue;
        }
        name_tools(&mut entry);
        let answer = entry_beside(&entry, "answers", Role::Tool, answers);
        out.push(entry);
        out.extend(answer);
    }
    *entries = out;
    made_up
}

/// Results are a tool's words, whoever the transcript says spoke them.
fn split_results(mut entry: Entry) -> impl Iterator<Item = Entry> {
    let is_result = |block: &mut Block| matches!(block, Block::ToolResult { .. });
    let answer = match entry.role {
        Role::Tool => None,
        _ => {
            let results = entry.blocks.extract_if(.., is_result).collect();
            entry_beside(&entry, "results", Role::Tool, results)
        }
    };
    let rest = (!entry.blocks.is_empty() || answer.is_none()).then_some(entry);
    rest.into_iter().chain(answer)
}

/// Makes the model the author of an entry with calls, whatever role the transcript names.
fn set_caller_role(entry: &mut Entry) {
    if entry.call_ids().next().is_some() {
        entry.role = Role::Assistant;
    }
}

/// Returns the message whose calls may still run: the last one, with at most some of its results behind it.
fn find_waiting(entries: &[Entry]) -> Option<usize> {
    let at = entries.iter().rposition(|entry| entry.role != Role::Tool)?;
    let (asked, answers) = entries.split_at_checked(at + 1)?;
    let asked = asked.last()?;
    let is_asked = |id: &str| asked.call_ids().any(|call| call == id);
    let mut answered = answers.iter().flat_map(Entry::result_ids);
    answered.all(is_asked).then_some(at)
}

fn collect_results(entries: &[Entry]) -> ResultsByCall {
    let mut results = ResultsByCall::new();
    for (at, entry) in entries.iter().enumerate() {
        for block in &entry.blocks {
            if let Block::ToolResult { call, .. } = block {
                let known = results.entry(call.clone()).or_default();
                known.push_back((at, block.clone()));
            }
        }
    }
    results
}

/// Returns the results of an entry's calls.
fn take_results(
    at: usize,
    entry: &Entry,
    waiting: Option<usize>,
    results: &mut ResultsByCall,
    made_up: &mut Vec<ConversionLoss>,
) -> Vec<Block> {
    let mut answer = |call: &str| {
        let known = results.get_mut(call);
        let later = known.filter(|known| known.front().is_some_and(|(from, _)| *from > at));
        if let Some((_, result)) = later.and_then(VecDeque::pop_front) {
            return Some(result);
        }
        if waiting == Some(at) {
            return None;
        }
        made_up.push(ConversionLoss {
            entry: None,
            what: format!("call {call} without a result; one that says so was written"),
        });
        Some(Block::ToolResult {
            call: call.to_owned(),
            content: NO_RESULT.to_owned(),
            is_error: true,
        })
    };
    entry.call_ids().filter_map(&mut answer).collect()
}

/// Returns what an answer holds beyond the calls before it, under names that no call has.
fn take_leftover_results(
    at: usize,
    entry: &Entry,
    called: &HashSet<String>,
    results: &mut ResultsByCall,
) -> Vec<Block> {
    let mut left = Vec::new();
    for call in entry.result_ids() {
        let known = results.get_mut(call);
        let own = known.filter(|known| known.front().is_some_and(|(from, _)| *from == at));
        left.extend(own.and_then(VecDeque::pop_front).map(|(_, result)| result));
    }
    for block in &mut left {
        if let Block::ToolResult { call, .. } = block
            && called.contains(call)
        {
            call.push_str(&format!("-{at}"));
        }
    }
    left
}

/// Results behind calls of their own.
fn pair_orphans(entry: &Entry, left: Vec<Block>, made_up: &mut Vec<ConversionLoss>) -> Vec<Entry> {
    let mut calls = Vec::with_capacity(left.len());
    for block in &left {
        let Block::ToolResult { call, .. } = block else {
            continue;
        };
        made_up.push(ConversionLoss {
            entry: None,
            what: format!("the result of {call} without a call; one of {UNKNOWN_TOOL} was written"),
        });
        calls.push(Block::ToolCall {
            id: call.clone(),
            name: UNKNOWN_TOOL.to_owned(),
            arguments: "{}".to_owned(),
        });
    }
    let asked = entry_beside(entry, "calls", Role::Assistant, calls);
    let answered = entry_beside(entry, "answers", Role::Tool, left);
    asked.into_iter().chain(answered).collect()
}

/// Returns an entry beside another; nothing when it says nothing.
fn entry_beside(beside: &Entry, name: &str, role: Role, blocks: Vec<Block>) -> Option<Entry> {
    let mut entry = Entry {
        id: beside.id.clone(),
        role,
        blocks,
        meta: EntryMeta::default(),
    };
    entry.id.0.push_str(&format!("-{name}"));
    (!entry.blocks.is_empty()).then_some(entry)
}

fn name_tools(entry: &mut Entry) {
    for block in &mut entry.blocks {
        if let Block::ToolCall { name, .. } = block
            && name.is_empty()
        {
            UNKNOWN_TOOL.clone_into(name);
        }
    }
}

/// Lets the user open the conversation.
pub(super) fn add_opening(entries: &mut Vec<Entry>) {
    let first = entries
        .iter()
        .position(|entry| !entry.role.is_instruction());
    let at = first.unwrap_or(entries.len());
    if entries.is_empty() || entries.get(at).is_some_and(|e| e.role == Role::User) {
        return;
    }
    let mut opening = Entry::from_text("opening", Role::User, OPENING);
    opening.meta.kind = EntryKind::Injected;
    entries.insert(at, opening);
}
