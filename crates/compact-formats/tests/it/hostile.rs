//! Input that nobody should send: an error that names the place, never a panic.

use compact_core::view::{View, ViewItem};
use compact_formats::{BoundaryStamp, Format, TranscriptScope, detect, parse};
use proptest::prelude::*;

use crate::sample::{format, steps, transcript};

#[derive(Clone, Debug)]
enum Harm {
    Truncate(usize),
    Flip(usize, u8),
    Insert(usize, Vec<u8>),
    Cut(usize, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let bytes = prop::sample::select(vec![
        b"\0".to_vec(),
        b"\xff\xfe".to_vec(),
        b"\\ud800".to_vec(),
        b"\"".to_vec(),
        b"\n".to_vec(),
        b"\r\n".to_vec(),
        b"null".to_vec(),
        b"}{".to_vec(),
        vec![b'['; 300],
        b"{\"a\":".repeat(300),
    ]);
    prop_oneof![
        any::<usize>().prop_map(Harm::Truncate),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Harm::Flip(at, byte)),
        (any::<usize>(), bytes).prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (any::<usize>(), 0usize..50).prop_map(|(at, length)| Harm::Cut(at, length)),
    ]
}

fn harmed(mut source: Vec<u8>, harms: &[Harm]) -> Vec<u8> {
    for harm in harms {
        let size = source.len().max(1);
        match harm {
            Harm::Truncate(at) => source.truncate(at % size),
            Harm::Flip(at, byte) => {
                if let Some(place) = source.get_mut(at % size) {
                    *place = *byte;
                }
            }
            Harm::Insert(at, bytes) => {
                let at = (at % size).min(source.len());
                source.splice(at..at, bytes.iter().copied());
            }
            Harm::Cut(at, length) => {
                let at = (at % size).min(source.len());
                let end = (at + length).min(source.len());
                source.drain(at..end);
            }
        }
    }
    source
}

/// Reads and writes in every way; what can be read must be writable.
fn exercise(source: &[u8], format: Option<Format>) {
    let stamp = BoundaryStamp {
        timestamp: "t",
        receipt: "r",
        tokens_before: 1,
        tokens_after: 1,
    };
    for scope in [TranscriptScope::Live, TranscriptScope::Whole] {
        let Ok(parsed) = parse(source.to_vec(), format, scope) else {
            continue;
        };
        let conversation = &parsed.conversation;
        let identity = View::identity(conversation);
        assert_eq!(
            parsed.document.emit(conversation, &identity).unwrap(),
            source
        );
        let entries = conversation.entries.len();
        let half = View {
            items: (entries / 2..entries)
                .map(|entry| ViewItem::Kept { entry })
                .collect(),
        };
        parsed.document.emit(conversation, &half).unwrap();
        if let Ok(out) = parsed.document.append(conversation, &half, &stamp) {
            parse(out, Some(parsed.document.format()), TranscriptScope::Live).unwrap();
        }
        parsed
            .document
            .extend(&parsed.document, conversation, entries / 2)
            .unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn harmed_input_never_panics(
        format in format(),
        steps in steps(),
        harms in prop::collection::vec(harm(), 1..4),
    ) {
        let source = harmed(transcript(format, &steps), &harms);
        exercise(&source, None);
        exercise(&source, Some(format));
    }

    #[test]
    fn noise_never_panics(source in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = detect(&source);
        Format::ALL.iter().for_each(|format| exercise(&source, Some(*format)));
    }
}

fn message_of(source: impl Into<Vec<u8>>, format: Format) -> String {
    parse(source.into(), Some(format), TranscriptScope::Live)
        .unwrap_err()
        .to_string()
}

#[test]
fn errors_name_the_line_and_the_field() {
    let claude = |content: &str| {
        format!(
            "{{\"type\":\"summary\"}}\n{{\"type\":\"user\",\"uuid\":\"a\",\"message\":{content}}}\n"
        )
    };
    let cases = [
        (
            claude("{\"content\":7}"),
            Format::ClaudeCode,
            "line 2: `message.content` must be a string, a list of parts or null, found a number",
        ),
        (
            claude("7"),
            Format::ClaudeCode,
            "line 2: `message` must be an object, found a number",
        ),
        (
            claude("{\"content\":[{\"type\":\"text\",\"text\":{}}]}"),
            Format::ClaudeCode,
            "line 2: `message.content[].text` must be a string, found an object",
        ),
        (
            "[{\"role\":\"user\",\n\"content\":{}}]".to_owned(),
            Format::Messages,
            "line 1, column 2: `content` must be a string, a list of parts or null, found an object",
        ),
        (
            "[{\"content\":\"x\"}]".to_owned(),
            Format::Messages,
            "line 1, column 2: `role` must be a string, found nothing",
        ),
        (
            "[7]".to_owned(),
            Format::Messages,
            "line 1, column 2: `role` must be in an object with `role` and `content`, found nothing",
        ),
        (
            "{\"messages\":{}}".to_owned(),
            Format::OpenAiChat,
            "line 1: `messages` must be a list, found an object",
        ),
        (
            "{\"role\":\"user\"}\n{\"role\":4}\n".to_owned(),
            Format::MessagesJsonl,
            "line 2: `role` must be a string, found a number",
        ),
        (
            "{\"type\":\"response_item\",\"payload\":[]}\n".to_owned(),
            Format::CodexRollout,
            "line 1: `payload` must be an object, found a list",
        ),
        (
            "{\"type\":\"turn_context\",\"payload\":{}}\n{\"type\":\n{}\n".to_owned(),
            Format::CodexRollout,
            "line 2, column 8: not valid JSON: EOF while parsing a value; fix or remove it",
        ),
    ];
    for (source, format, expected) in cases {
        assert_eq!(message_of(source, format), expected);
    }
}

#[test]
fn bytes_that_are_no_text_are_named() {
    assert_eq!(
        message_of(
            b"{\"role\":\"user\"}\n{\"role\":\"\xff\"}\n".to_vec(),
            Format::MessagesJsonl
        ),
        "line 2, column 10: not valid UTF-8; re-encode the file as UTF-8"
    );
    assert!(
        message_of(
            b"[{\"role\":\"user\",\"content\":\"\0\"}]".to_vec(),
            Format::Messages
        )
        .contains("not valid JSON")
    );
    let cut = "[{\"role\":\"user\",\"content\":\"\\ud8 \"}]";
    assert!(message_of(cut, Format::Messages).contains("not valid JSON"));
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    for source in ["", " \n\t", "\u{feff}\n"] {
        assert!(
            detect(source.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("empty")
        );
    }
    let message = detect(b"hello").unwrap_err().to_string();
    let hint = format!("name it, one of {}", Format::names());
    assert!(message.ends_with(&hint), "{message}");
}

#[test]
fn a_file_that_is_no_text_is_told_so() {
    let utf16 = "[{}]".encode_utf16().flat_map(u16::to_le_bytes);
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(utf16).collect();
    for source in [utf16.as_slice(), b"\x1f\x8b\x08\x00compressed"] {
        let told = detect(source).unwrap_err().to_string();
        assert!(told.contains("re-encode the file as UTF-8"), "{told}");
    }
}

#[test]
fn a_hundred_thousand_levels_are_copied_or_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let chat = format!("[{{\"role\":\"user\",\"content\":\"x\",\"deep\":{deep}}}]");
    exercise(chat.as_bytes(), None);
    assert!(parse(chat, None, TranscriptScope::Live).is_ok());
    let content = format!("[{{\"role\":\"user\",\"content\":{deep}}}]");
    assert!(message_of(content, Format::Messages).contains("`content[]` must be an object"));
    let input = format!(
        "{{\"type\":\"assistant\",\"uuid\":\"a\",\"message\":{{\"content\":[{{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"n\",\"input\":{deep}}}]}}}}"
    );
    exercise(input.as_bytes(), Some(Format::ClaudeCode));
    for source in [deep, "[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        Format::ALL
            .iter()
            .for_each(|format| exercise(source.as_bytes(), Some(*format)));
        let _ = detect(source.as_bytes());
    }
}

#[test]
fn a_line_of_ten_megabytes_is_a_line() {
    let long = "x\\n".repeat(3_500_000);
    let source = format!(
        "{{\"role\":\"user\",\"content\":\"{long}\"}}\n{{\"role\":\"assistant\",\"content\":\"ok\"}}\n"
    );
    exercise(source.as_bytes(), None);
    assert_eq!(
        parse(source, None, TranscriptScope::Live)
            .unwrap()
            .conversation
            .entries
            .len(),
        2
    );
}
