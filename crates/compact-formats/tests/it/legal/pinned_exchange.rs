//! Parallel calls, of which one entry is protected by its name, as any format writes them: the view shows what was said
//! there byte for byte, or there is no view. None is ever made and then rejected.

use compact_core::identity::EntryHash;
use compact_core::message::{Block, Entry};
use compact_core::pin::{is_nameable, naming_hashes};
use compact_core::policy::Policy;
use compact_formats::{Format, ParsedTranscript, TranscriptScope, parse};
use proptest::prelude::*;
use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::compacted;
use crate::sample::{Step, format, steps, transcript};

/// What a view may cost, in shares of its history.
const SHARES: [f64; 3] = [0.25, 0.5, 0.8];

/// Results that a view has no room for, so that there is something to leave out.
fn busy_turn(turn: usize) -> Vec<Step> {
    let output = |n: usize| format!("row {n} of table {turn} is written\n").repeat(30);
    vec![
        Step::User(format!("Please go on with table {turn}.")),
        Step::Exchange {
            thought: format!("table {turn} has two halves"),
            results: vec![output(1), output(2)],
        },
        Step::Assistant(format!("Table {turn} is done.")),
    ]
}

fn session(steps: &[Step]) -> Vec<Step> {
    let before = (0..2).flat_map(busy_turn);
    let after = (2..4).flat_map(busy_turn);
    before.chain(steps.to_vec()).chain(after).collect()
}

/// The transcript of these steps, with arguments of its own in each call: what is alike has one name.
fn written(format: Format, steps: &[Step]) -> Vec<u8> {
    let text = String::from_utf8(transcript(format, steps)).unwrap();
    let arguments = Regex::new(r#"(a\\?":\s?)1\b"#).unwrap();
    let mut count = 0;
    let numbered = arguments.replace_all(&text, |found: &Captures<'_>| {
        count += 1;
        format!("{}1{count:04}", &found[1])
    });
    numbered.into_owned().into_bytes()
}

/// Lines of Claude Code with each result in a line of its own, as it writes what ran side by side.
fn results_apart(lines: &[u8]) -> Vec<u8> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|l| !l.is_empty());
    let read = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    let mut apart: Vec<Value> = Vec::new();
    let mut parent = Value::Null;
    for line in read.flat_map(|line| one_result_each(&line)) {
        let mut line = line;
        if line.get("uuid").is_some() {
            let uuid = json!(format!("v{}", apart.len()));
            line["parentUuid"] = std::mem::replace(&mut parent, uuid.clone());
            line["uuid"] = uuid;
        }
        apart.push(line);
    }
    let lines: Vec<String> = apart.iter().map(Value::to_string).collect();
    lines.join("\n").into_bytes()
}

fn one_result_each(line: &Value) -> Vec<Value> {
    let blocks = line["message"]["content"].as_array().cloned();
    let blocks = blocks.unwrap_or_default();
    let is_result = |block: &Value| block["type"] == "tool_result";
    if blocks.len() < 2 || !blocks.iter().all(is_result) {
        return vec![line.clone()];
    }
    let with = |block: Value| {
        let mut line = line.clone();
        line["message"]["content"] = json!([block]);
        line
    };
    blocks.into_iter().map(with).collect()
}

/// What an entry says: reasoning is bound to what stood before it.
fn said(entry: &Entry) -> Vec<&Block> {
    let blocks = entry.blocks.iter();
    blocks
        .filter(|block| !matches!(block, Block::Reasoning { .. }))
        .collect()
}

fn read(bytes: Vec<u8>, format: Format) -> ParsedTranscript {
    parse(bytes, Some(format), TranscriptScope::Live).unwrap()
}

/// Compacts with one entry protected and looks for it in the view; says how many views were made.
fn keep_pinned(bytes: &[u8], format: Format, at: usize) -> Result<usize, TestCaseError> {
    let parsed = read(bytes.to_vec(), format);
    let entries = &parsed.conversation.entries;
    let hashes = EntryHash::from_entries(entries);
    let pinned = &entries[at];
    let names = naming_hashes(entries, &hashes, |entry| std::ptr::eq(entry, pinned));
    let policy = Policy {
        protected_entries: names.into_iter().collect(),
        ..Policy::default()
    };
    let mut made = 0;
    for share in SHARES {
        let view = compacted(&parsed, parsed.document.rules(), &policy, share)
            .map_err(|why| TestCaseError::fail(format!("{format} #{at} {share}: {why}")))?;
        let Some(view) = view else { continue };
        let view = read(view, format);
        let mut shown = view.conversation.entries.iter();
        let is_there = shown.any(|entry| said(entry) == said(pinned));
        prop_assert!(is_there, "{} #{} {}", format, at, share);
        made += 1;
    }
    Ok(made)
}

fn nameable(bytes: &[u8], format: Format) -> Vec<usize> {
    let entries = read(bytes.to_vec(), format).conversation.entries;
    let named = entries.iter().enumerate().filter(|(_, e)| is_nameable(e));
    named.map(|(at, _)| at).collect()
}

/// As many views as entries at least: the test looked at something.
#[test]
fn any_entry_of_parallel_calls_may_be_protected() {
    for format in Format::ALL.iter().copied() {
        let bytes = written(format, &session(&[]));
        let mut all = vec![bytes.clone()];
        if format == Format::ClaudeCode {
            all.push(results_apart(&bytes));
        }
        for bytes in all {
            let entries = nameable(&bytes, format);
            let tried = entries.iter().map(|at| keep_pinned(&bytes, format, *at));
            let made: usize = tried.map(Result::unwrap).sum();
            assert!(made >= entries.len(), "{format}: {made} views");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_protected_entry_never_costs_the_view(
        format in format(),
        steps in steps(),
        apart in any::<bool>(),
        chosen in any::<prop::sample::Index>(),
    ) {
        let mut bytes = written(format, &session(&steps));
        if apart && format == Format::ClaudeCode {
            bytes = results_apart(&bytes);
        }
        let entries = nameable(&bytes, format);
        keep_pinned(&bytes, format, *chosen.get(&entries))?;
    }
}
