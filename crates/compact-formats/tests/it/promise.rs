//! Identity, views and boundaries.

use std::fs;
use std::path::Path;

use compact_core::frame::{self, Frame};
use compact_core::message::{Block, Conversation, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use compact_formats::{
    BoundaryStamp, Format, TranscriptScope, convert, detect, parse, readable_json,
};
use proptest::prelude::*;

use crate::sample::{format, joins_results, steps, text, transcript};

const STAMP: BoundaryStamp<'static> = BoundaryStamp {
    timestamp: "2026-02-02T00:00:00.000Z",
    receipt: "c0ffee",
    tokens_before: 900,
    tokens_after: 90,
};

fn summary() -> ViewItem {
    let frame = Frame::new(2, "c0ffee");
    let mut entry = Entry::from_text(
        "summary-c0ffee",
        Role::User,
        frame::wrap(&frame, "what was"),
    );
    entry.meta.kind = EntryKind::Summary {
        version: 2,
        receipt: frame.receipt,
    };
    ViewItem::New(entry)
}

/// One choice per entry, and where the summary goes.
#[derive(Clone, Debug)]
struct Choices {
    fates: Vec<u8>,
    summary_at: usize,
    text: String,
}

fn choices() -> impl Strategy<Value = Choices> {
    (prop::collection::vec(0u8..5, 60), 0usize..20, text()).prop_map(|(fates, summary_at, text)| {
        Choices {
            fates,
            summary_at,
            text,
        }
    })
}

fn view(format: Format, conversation: &Conversation, choices: &Choices) -> View {
    let mut together = 0;
    let leading = conversation.leading_instructions();
    let mut items: Vec<ViewItem> = (0..leading).map(|entry| ViewItem::Kept { entry }).collect();
    for (entry, whole) in conversation.entries.iter().enumerate().skip(leading) {
        let follows = joins_results(format) && whole.has_results();
        if entry == leading + choices.summary_at && !follows {
            items.push(summary());
        }
        // Where both stand in one object, a result shares the fate of its call.
        if !(joins_results(format) && whole.has_results()) {
            together = entry;
        }
        match choices.fates[together % choices.fates.len()] {
            0 => {}
            1 => items.push(ViewItem::Edited {
                entry,
                edits: edits(whole, &choices.text),
            }),
            2 => items.push(ViewItem::Edited {
                entry,
                edits: drops(format, whole),
            }),
            _ => items.push(ViewItem::Kept { entry }),
        }
    }
    View { items }
}

fn edits(entry: &Entry, text: &str) -> Vec<(usize, BlockEdit)> {
    let edit = |block: &Block| match block {
        Block::ToolCall { .. } => BlockEdit::SetText("{\"clipped\":true}".to_owned()),
        Block::Reasoning { .. } => BlockEdit::Drop,
        // A text among a result's parts would be a part of the result.
        Block::Media { .. } if entry.has_results() => BlockEdit::Drop,
        _ => BlockEdit::SetText(text.to_owned()),
    };
    entry.blocks.iter().map(edit).enumerate().collect()
}

/// Drops every other block, results only when they are alone.
fn drops(format: Format, entry: &Entry) -> Vec<(usize, BlockEdit)> {
    let droppable = |(i, block): (usize, &Block)| match block {
        Block::ToolResult { .. } => None,
        Block::ToolCall { .. } if joins_results(format) => None,
        _ => (i % 2 == 0 || matches!(block, Block::Media { .. })).then_some((i, BlockEdit::Drop)),
    };
    entry
        .blocks
        .iter()
        .enumerate()
        .filter_map(droppable)
        .collect()
}

/// What was said: entries that say nothing are not part of it.
fn said(entries: &[Entry]) -> Vec<(EntryKind, Vec<Block>)> {
    let speaks = entries.iter().filter(|entry| !entry.blocks.is_empty());
    speaks
        .map(|entry| (kind(entry), entry.blocks.clone()))
        .collect()
}

/// What an entry is, but for a frame: who reads one back cannot know whose it is.
fn kind(entry: &Entry) -> EntryKind {
    match is_framed(entry) {
        true => EntryKind::ForeignSummary,
        false => entry.meta.kind.clone(),
    }
}

fn is_framed(entry: &Entry) -> bool {
    frame::find_frame(&entry.blocks).is_some()
}

/// What a client shows of a view that stands behind a boundary: some put the summary first.
fn behind_boundary(format: Format, mut entries: Vec<Entry>) -> Vec<Entry> {
    if matches!(format, Format::Pi | Format::Copilot) {
        let rank = |entry: &Entry| match is_framed(entry) {
            _ if entry.is_leading() => 0,
            true => 1,
            false => 2,
        };
        entries.sort_by_key(rank);
    }
    entries
}

/// What is left of an emoji when a text is cut within it.
const HALF: &str = "\\ud83d";

/// A transcript in whose texts every smile was cut.
fn cut_emoji(source: &[u8], half: &str) -> String {
    String::from_utf8_lossy(source).replace('🙂', half)
}

fn has_half(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains(HALF)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_transcript_is_told_apart(format in format(), steps in steps()) {
        let told = detect(&transcript(format, &steps)).unwrap();
        let calls_tools = told == Format::OpenAiChat;
        prop_assert!(told == format || calls_tools && matches!(format, Format::Messages | Format::MessagesJsonl));
    }

    #[test]
    fn the_identity_view_is_the_input(format in format(), steps in steps()) {
        let source = transcript(format, &steps);
        for scope in [TranscriptScope::Live, TranscriptScope::Whole] {
            let parsed = parse(source.clone(), Some(format), scope).unwrap();
            let identity = View::identity(&parsed.conversation);
            prop_assert_eq!(parsed.document.emit(&parsed.conversation, &identity).unwrap(), source.clone());
            prop_assert_eq!(parsed.document.original(), source.as_slice());
            prop_assert_eq!(parsed.problems, vec![]);
        }
    }

    #[test]
    fn a_view_reads_back_as_itself(format in format(), steps in steps(), choices in choices()) {
        let parsed = parse(transcript(format, &steps), Some(format), TranscriptScope::Live).unwrap();
        let view = view(format, &parsed.conversation, &choices);
        let mut shown = said(&view.shown_entries(&parsed.conversation));
        prop_assume!(!shown.is_empty());
        let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
        let again = parse(out, Some(format), TranscriptScope::Whole).unwrap();
        let mut read = said(&again.conversation.entries);
        // Which message of a trajectory is the request depends on what stands before it.
        if format == Format::SweAgent {
            let plain = |(kind, _): &mut (EntryKind, Vec<Block>)| {
                if *kind == EntryKind::Injected {
                    *kind = EntryKind::Message;
                }
            };
            shown.iter_mut().chain(&mut read).for_each(plain);
        }
        prop_assert_eq!(read, shown);
    }

    #[test]
    fn an_appended_view_is_the_live_context(steps in steps(), choices in choices()) {
        for format in [Format::ClaudeCode, Format::CodexRollout, Format::Pi, Format::Copilot] {
            let source = transcript(format, &steps);
            let parsed = parse(source.clone(), Some(format), TranscriptScope::Live).unwrap();
            let view = view(format, &parsed.conversation, &choices);
            let out = parsed.document.append(&parsed.conversation, &view, &STAMP).unwrap();
            prop_assert!(out.starts_with(&source));
            let live = parse(out.clone(), None, TranscriptScope::Live).unwrap();
            let shown = behind_boundary(format, view.shown_entries(&parsed.conversation));
            prop_assert_eq!(said(&live.conversation.entries), said(&shown));
            // Over the whole, the view says nothing new but its summary.
            let whole = parse(out, None, TranscriptScope::Whole).unwrap().conversation.entries;
            let others: Vec<Entry> = whole.iter().filter(|entry| !is_framed(entry)).cloned().collect();
            prop_assert_eq!(said(&others), said(&parsed.conversation.entries));
        }
    }

    #[test]
    fn a_session_is_its_first_input_and_what_came_after(format in format(), steps in steps(), at in 0usize..40) {
        let later = parse(transcript(format, &steps), Some(format), TranscriptScope::Live).unwrap();
        let leading = later.conversation.leading_instructions();
        let at = leading + at % (later.conversation.entries.len() + 1 - leading);
        let head = View { items: (0..at).map(|entry| ViewItem::Kept { entry }).collect() };
        let first = later.document.emit(&later.conversation, &head).unwrap();
        if let Ok(first) = parse(first, Some(format), TranscriptScope::Live) {
            let joined = first.document.extend(&later.document, &later.conversation, at).unwrap();
            let joined = parse(joined, Some(format), TranscriptScope::Live).unwrap();
            prop_assert_eq!(said(&joined.conversation.entries), said(&later.conversation.entries));
        }
    }

    #[test]
    fn half_a_pair_of_surrogates_is_read_and_kept(format in format(), steps in steps(), choices in choices()) {
        let source = cut_emoji(&transcript(format, &steps), HALF);
        let mended = cut_emoji(&transcript(format, &steps), "\\ufffd");
        let parsed = parse(source.clone(), Some(format), TranscriptScope::Live).unwrap();
        let other = parse(mended.clone(), Some(format), TranscriptScope::Live).unwrap();
        prop_assert_eq!(&parsed.conversation, &other.conversation);
        prop_assert_eq!(detect(source.as_bytes()).unwrap(), detect(mended.as_bytes()).unwrap());
        let identity = View::identity(&parsed.conversation);
        let emitted = parsed.document.emit(&parsed.conversation, &identity).unwrap();
        prop_assert_eq!(emitted, source.as_bytes());
        let view = view(format, &parsed.conversation, &choices);
        let emitted = parsed.document.emit(&parsed.conversation, &view).unwrap();
        let expected = other.document.emit(&other.conversation, &view).unwrap();
        prop_assert_eq!(&*readable_json(&emitted), expected);
        let kept = view.items.iter().filter(|item| matches!(item, ViewItem::Kept { .. }));
        let kept = kept.filter_map(|item| parsed.document.entry_bytes(item.entry_index()?));
        // Where an object holds several entries, one of which is changed, it is written anew.
        let is_shared = joins_results(format) || matches!(format, Format::Anthropic | Format::Gemini);
        if !is_shared && kept.into_iter().any(has_half) {
            prop_assert!(has_half(&emitted));
        }
    }

    #[test]
    fn half_a_pair_can_be_appended_to(steps in steps(), choices in choices()) {
        for format in [Format::ClaudeCode, Format::CodexRollout, Format::Pi, Format::Copilot] {
            let source = cut_emoji(&transcript(format, &steps), HALF);
            let parsed = parse(source.clone(), Some(format), TranscriptScope::Live).unwrap();
            let view = view(format, &parsed.conversation, &choices);
            let out = parsed.document.append(&parsed.conversation, &view, &STAMP).unwrap();
            prop_assert!(out.starts_with(source.as_bytes()));
            let live = parse(out, None, TranscriptScope::Live).unwrap();
            let shown = behind_boundary(format, view.shown_entries(&parsed.conversation));
            prop_assert_eq!(said(&live.conversation.entries), said(&shown));
        }
    }

    #[test]
    fn the_same_view_gives_the_same_bytes(format in format(), steps in steps(), choices in choices()) {
        let parsed = parse(transcript(format, &steps), Some(format), TranscriptScope::Live).unwrap();
        let view = view(format, &parsed.conversation, &choices);
        let emit = || parsed.document.emit(&parsed.conversation, &view).unwrap();
        prop_assert_eq!(emit(), emit());
    }
}

#[test]
fn formats_without_a_boundary_say_what_to_do() {
    let parsed = parse(
        "[{\"role\":\"user\",\"content\":\"hi\"}]",
        None,
        TranscriptScope::Live,
    )
    .unwrap();
    let view = View::identity(&parsed.conversation);
    let error = parsed
        .document
        .append(&parsed.conversation, &view, &STAMP)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "messages has no compaction boundary to append; write the view as a transcript of its own"
    );
}

#[test]
fn a_view_of_another_conversation_is_an_error() {
    let parsed = parse(
        "[{\"role\":\"user\",\"content\":\"hi\"}]",
        None,
        TranscriptScope::Live,
    )
    .unwrap();
    let view = View {
        items: vec![ViewItem::Kept { entry: 7 }],
    };
    assert!(parsed.document.emit(&parsed.conversation, &view).is_err());
}

#[test]
fn names_of_formats_read_back() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), *format);
    }
    assert!(
        "openai"
            .parse::<Format>()
            .unwrap_err()
            .to_string()
            .contains("openai-chat")
    );
}

#[test]
fn every_format_has_a_seed_in_the_corpus_that_is_recognised() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for format in Format::ALL {
        let folder = corpus.join(format.name());
        let files = fs::read_dir(&folder).unwrap_or_else(|error| {
            panic!(
                "{} needs a session of its format: {error}",
                folder.display()
            )
        });
        let mut seeds = files.map(|file| fs::read(file.unwrap().path()).unwrap());
        assert!(
            seeds.any(|seed| detect(&seed).is_ok_and(|found| found == *format)),
            "the wire needs signs (`recognised_by`) that are in a file of {}",
            folder.display()
        );
    }
}

/// Texts, calls and results, each kind in its order: a message may put its calls after its words.
pub(crate) fn kept_by_conversion(conversation: &Conversation) -> [Vec<Block>; 3] {
    let all = conversation.entries.iter().flat_map(|e| &e.blocks);
    // Where a provider wants the user to open, these words do.
    let is_opening =
        |block: &&Block| **block == Block::Text("[the conversation begins here]".to_owned());
    let all = all.filter(|block| !is_opening(block));
    let mut kept = [vec![], vec![], vec![]];
    for block in all.cloned() {
        match block {
            Block::Text(_) => kept[0].push(block),
            // White space is free, and free text becomes an object where a format wants one.
            Block::ToolCall {
                id,
                name,
                arguments,
            } => kept[1].push(Block::ToolCall {
                id,
                name,
                arguments: match serde_json::from_str::<serde_json::Value>(&arguments) {
                    Ok(object @ serde_json::Value::Object(_)) => object.to_string(),
                    _ => serde_json::json!({ "input": arguments }).to_string(),
                },
            }),
            // Some formats do not say whether a tool failed.
            Block::ToolResult { call, content, .. } => kept[2].push(Block::ToolResult {
                call,
                content,
                is_error: false,
            }),
            _ => {}
        }
    }
    kept
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn there_and_back_keeps_texts_calls_and_results(from in format(), to in format(), steps in steps()) {
        let source = parse(transcript(from, &steps), Some(from), TranscriptScope::Whole).unwrap().conversation;
        let there = convert(&source, to).unwrap_or_else(|e| panic!("{to}: {e}"));
        let Ok(read) = parse(there.bytes, Some(to), TranscriptScope::Live) else {
            // Nothing said is nothing to read.
            prop_assert!(kept_by_conversion(&source).concat().is_empty());
            return Ok(());
        };
        let expected = kept_by_conversion(&source);
        prop_assert_eq!(&kept_by_conversion(&read.conversation), &expected);
        let back = convert(&read.conversation, from).unwrap();
        let back = parse(back.bytes, Some(from), TranscriptScope::Live).map(|p| p.conversation).unwrap_or_default();
        prop_assert_eq!(kept_by_conversion(&back), expected);
    }
}
