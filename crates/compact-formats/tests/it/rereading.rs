//! A body of which the beginning was read before is read as if nothing had been.

use compact_core::message::EntryKind;
use compact_formats::{Format, ParsedTranscript, TranscriptScope, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::growth::{seen_of, split};
use crate::sample::{Step, steps};

const BODIES: [Format; 5] = [
    Format::OpenAiChat,
    Format::Messages,
    Format::Anthropic,
    Format::OpenAiResponses,
    Format::Gemini,
];

/// A body with some members before its list and others behind it.
fn write_body(members: &Value, key: Option<&str>, messages: &[String], more: &Value) -> String {
    let list = messages.join(",");
    let inner = |value: &Value| {
        let text = value.to_string();
        let inner = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        inner.unwrap_or_default().to_owned()
    };
    let Some(key) = key else {
        return format!("[{list}]");
    };
    let parts = [inner(members), format!("\"{key}\":[{list}]"), inner(more)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{{{}}}", parts.join(","))
}

fn read(source: &str, format: Format) -> Option<ParsedTranscript> {
    parse(source.to_owned(), Some(format), TranscriptScope::Live).ok()
}

/// Reads a body after another; what comes out is what a reader of all of it gets, if anything does.
fn reread(before: &ParsedTranscript, source: &str) -> bool {
    let format = before.document.format();
    let source = source.to_owned().into();
    let Some(read_again) = before.document.reread(&before.conversation, &source) else {
        return false;
    };
    // A reader of all of it reads it too.
    let whole = parse(source, Some(format), TranscriptScope::Live).unwrap();
    assert_eq!(seen_of(&read_again.parsed), seen_of(&whole));
    true
}

proptest! {
    #[test]
    fn what_begins_alike_is_read_as_if_nothing_were_known(
        shared in steps(),
        one in steps(),
        other in steps(),
        marked in 0_usize..99,
        version in 0..3,
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        format in prop::sample::select(&BODIES[..]),
    ) {
        let all = |rest: &[Step]| [shared.as_slice(), rest].concat();
        let (body, key, first) = split(format, &all(&one));
        let (_, _, mut second) = split(format, &all(&other));
        if version > 0 && !second.is_empty() {
            let at = marked % second.len();
            second[at] = second[at].replacen('{', "{\"cache_control\":{}, ", 1);
        }
        let more = json!({"store": false, "stream": true});
        let later = match version {
            2 => json!({"store": false, "temperature": 1, "system": "Be brief."}),
            _ => more.clone(),
        };
        let first = write_body(&body, key, &first, &more);
        let mut second = write_body(&body, key, &second, &later).into_bytes();
        if let Some((at, byte)) = change {
            let at = at.index(second.len());
            second[at] = byte;
        }
        if let (Some(before), Ok(second)) = (read(&first, format), String::from_utf8(second)) {
            reread(&before, &second);
        }
    }
}

/// A turn that is added, marks of caches that move, and members that change: none makes the beginning be read again.
#[test]
fn what_clients_change_between_two_requests_leaves_the_beginning_known() {
    let message = |n: usize, mark: &str| {
        let role = ["user", "assistant"][n % 2];
        format!(r#"{{"role":"{role}","content":[{{"type":"text","text":"said {n}"{mark}}}]}}"#)
    };
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let body = |count: usize, system: &str| {
        let list: Vec<String> = (0..count)
            .map(|n| message(n, if n + 1 == count { mark } else { "" }))
            .collect();
        let more = json!({"system": system, "max_tokens": 10 * count, "stream": count > 3});
        write_body(&json!({"model": "m"}), Some("messages"), &list, &more)
    };
    let before = read(&body(3, "first"), Format::Anthropic).unwrap();
    for (count, system) in [(5, "first"), (5, "second"), (3, "first"), (2, "first")] {
        assert!(reread(&before, &body(count, system)), "{count} {system}");
    }
}

/// What its holder found out of a summary is not what a reader finds.
#[test]
fn an_entry_is_what_it_says_of_itself() {
    let frame = "<COMPACT-SUMMARY v=1 receipt=r1>\\nwords\\n</COMPACT-SUMMARY>";
    let body = |rest: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"{frame}"}},{{"role":"assistant","content":"yes"}}{rest}]}}"#
        )
    };
    for kind in [
        EntryKind::ForeignSummary,
        EntryKind::Summary {
            version: 1,
            receipt: None,
        },
    ] {
        let mut before = read(&body(""), Format::OpenAiChat).unwrap();
        before.conversation.entries[0].meta.kind = kind;
        let longer = body(r#",{"role":"user","content":"go on"}"#);
        assert!(reread(&before, &longer));
    }
}

#[test]
fn what_is_no_list_any_more_is_left_to_a_reader_of_all() {
    let first =
        r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#;
    let before = read(first, Format::OpenAiChat).unwrap();
    let rows = [
        r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},]}"#,
        r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}}"#,
        r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},7]}"#,
        r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"messages":[]}"#,
        r#"{"messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"x","content":"b"}]}"#,
        r#"{"messages":[{"role":"user","content":"c"}]}"#,
        r#"{"messages":[]}"#,
        r#"{"messages":[{"role":"user","content":"a"}"#,
        "",
    ];
    for row in rows {
        assert!(!reread(&before, row), "{row}");
    }
}
