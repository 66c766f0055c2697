//! What every format promises of every input, be it good or not.

use compact_core::message::{Block, Conversation};
use compact_core::view::{BlockEdit, View, ViewItem};
use compact_formats::validate::{Provider, Strictness, check};
use compact_formats::{
    BoundaryStamp, Format, FormatError, ParsedTranscript, TranscriptScope, convert, detect, parse,
    sessions,
};
use serde_json::Value;

use super::HistoryEnd;

const STAMP: BoundaryStamp<'static> = BoundaryStamp {
    timestamp: "2026-01-01T00:00:00.000Z",
    receipt: "r",
    tokens_before: 1,
    tokens_after: 1,
};

/// Reads an input in every way and writes what was read; answers the outcome in short.
pub fn exercise(format: Format, input: &[u8]) -> Result<String, String> {
    let told = detect(input).map_or("nothing", Format::name);
    let held = sessions(input, Some(format)).map_or(0, |sessions| sessions.len());
    let mut outcome = format!("{told} {}", held.min(3));
    for provider in Provider::ALL {
        let found = check(provider, Strictness::Strict, input);
        outcome.push(if found.is_ok() { '+' } else { '-' });
    }
    for scope in [TranscriptScope::Live, TranscriptScope::Whole] {
        match parse(input.to_vec(), Some(format), scope) {
            Ok(parsed) => {
                outcome.push_str(&outcome_shape(&parsed));
                check_writing(&parsed, input)?;
            }
            Err(error) => outcome.push_str(&error_kind(&error)),
        }
    }
    Ok(outcome)
}

/// Checks everything that can be written from what was read.
fn check_writing(parsed: &ParsedTranscript, input: &[u8]) -> Result<(), String> {
    let (document, conversation) = (&parsed.document, &parsed.conversation);
    let emit = |view: &View, what: &str| {
        let out = document.emit(conversation, view);
        out.map_err(|error| format!("{what} cannot be written: {error}"))
    };
    if emit(&View::identity(conversation), "the identity")? != input {
        return Err("the identity view is not the input".to_owned());
    }
    for (what, view) in sample_views(conversation) {
        let out = emit(&view, what)?;
        check_readable(out, document.format(), what)?;
        if let Ok(out) = document.append(conversation, &view, &STAMP) {
            if !out.starts_with(input) {
                return Err("append changed what was there".to_owned());
            }
            check_readable(out, document.format(), "an appended view")?;
        }
    }
    let half = conversation.entries.len() / 2;
    let joined = document.extend(document, conversation, half);
    joined.map_err(|error| format!("extend: {error}"))?;
    for to in [Format::ClaudeCode, Format::OpenCode] {
        convert(conversation, to).map_err(|error| format!("convert to {to}: {error}"))?;
    }
    Provider::ALL
        .into_iter()
        .try_for_each(|provider| check_accepted(conversation, provider))
}

/// Checks that the provider accepts what is written for it.
fn check_accepted(conversation: &Conversation, provider: Provider) -> Result<(), String> {
    let failed = |error: FormatError| format!("convert to {provider}: {error}");
    let body = convert(conversation, provider.format())
        .map_err(failed)?
        .bytes;
    // What is nested too deep to be judged is not judged.
    let Ok(found) = check(provider, Strictness::Vendor, &body) else {
        return Ok(());
    };
    let messages = count_messages(&body);
    let read = parse(body, Some(provider.format()), TranscriptScope::Live).map_err(failed)?;
    let end = HistoryEnd::of_conversation(&read.conversation);
    let broken = found.iter().find(|v| !end.excuses(v, messages));
    match broken.filter(|_| messages > 0) {
        Some(v) => Err(format!("converted, {} refuses {}", provider, v.message)),
        None => Ok(()),
    }
}

/// Returns how many messages a body has.
fn count_messages(body: &[u8]) -> usize {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut lists = ["messages", "input", "contents"].into_iter();
    let list = lists.find_map(|key| body.get(key)?.as_array());
    list.map_or(0, Vec::len)
}

/// Checks that what was written can be read; output without content may be unreadable.
fn check_readable(out: Vec<u8>, format: Format, what: &str) -> Result<(), String> {
    match parse(out, Some(format), TranscriptScope::Live) {
        Ok(_) | Err(FormatError::Empty | FormatError::Unrecognised { .. }) => Ok(()),
        Err(error) => Err(format!("{what} cannot be read again: {error}")),
    }
}

/// Returns the second half, every other entry, and everything with its texts replaced.
fn sample_views(conversation: &Conversation) -> [(&'static str, View); 3] {
    let entries = conversation.entries.len();
    let kept = |range: &mut dyn Iterator<Item = usize>| View {
        items: range.map(|entry| ViewItem::Kept { entry }).collect(),
    };
    let edited = |(entry, whole): (usize, &compact_core::message::Entry)| ViewItem::Edited {
        entry,
        edits: whole.blocks.iter().map(edit_block).enumerate().collect(),
    };
    let items = conversation.entries.iter().enumerate().map(edited);
    [
        ("half a view", kept(&mut (entries / 2..entries))),
        ("every other entry", kept(&mut (0..entries).step_by(2))),
        (
            "an edited view",
            View {
                items: items.collect(),
            },
        ),
    ]
}

fn edit_block(block: &Block) -> BlockEdit {
    match block {
        Block::ToolCall { .. } => BlockEdit::SetText("{\"clipped\":true}".to_owned()),
        Block::Text(_) | Block::ToolResult { .. } => BlockEdit::SetText("cut \" \\ \n".to_owned()),
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => BlockEdit::Drop,
    }
}

/// Returns the kinds of blocks in order, as far as they tell inputs apart.
fn outcome_shape(parsed: &ParsedTranscript) -> String {
    let letter = |block: &Block| match block {
        Block::Text(_) => 't',
        Block::ToolCall { .. } => 'c',
        Block::ToolResult { .. } => 'r',
        Block::Reasoning { .. } => 'h',
        Block::Media { .. } => 'm',
        Block::Opaque { .. } => 'o',
    };
    let entries = parsed.conversation.entries.iter().take(12);
    let blocks: String = entries
        .map(|e| {
            format!("{}{:?} ", e.role, e.meta.kind)
                + &e.blocks.iter().map(letter).collect::<String>()
        })
        .collect();
    format!("{blocks}!{}", parsed.problems.len().min(4))
}

/// Returns an error without the place and the words of the input.
fn error_kind(error: &FormatError) -> String {
    let text = error.to_string();
    let words = text
        .split_once(": ")
        .map_or(text.as_str(), |(_, words)| words);
    words
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .take(80)
        .collect()
}
