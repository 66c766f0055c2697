//! Payloads as agents send them, and what is remembered and told of a session.

use std::path::PathBuf;

use compact_core::redact::Redactor;
use serde_json::json;

use super::*;

/// What each agent sends, and what it is taken for.
const PAYLOADS: &str = include_str!("payloads.jsonl");

/// The payloads that the agents were seen to send.
#[test]
fn payloads_of_every_agent_are_understood() {
    let mut seen = Vec::new();
    for line in PAYLOADS.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let call = HookPayload::read(row["payload"].to_string().as_bytes(), None).unwrap();
        let found = json!({
            "agent": call.agent.name(), "moment": format!("{:?}", call.moment),
            "trigger": call.trigger, "summary": call.summary,
        });
        assert_eq!(found, row["means"], "{line}");
        assert_eq!(call.session, "5e551040");
        assert_eq!(
            call.transcript,
            HookTranscript::File(PathBuf::from("/t/s.jsonl"))
        );
        assert_eq!(call.folder, Some(PathBuf::from("/src/shop")));
        seen.push(call.agent);
    }
    for agent in [
        HookAgent::ClaudeCode,
        HookAgent::Codex,
        HookAgent::GeminiCli,
    ] {
        assert!(seen.contains(&agent), "{agent} sends nothing");
    }
}

#[test]
fn anything_may_be_missing_or_of_another_type() {
    let bare = HookPayload::read(br#"{"hook_event_name":"PreCompact"}"#, None).unwrap();
    let expected = HookPayload {
        agent: HookAgent::ClaudeCode,
        event: "PreCompact".into(),
        moment: HookMoment::BeforeCompaction,
        session: "unknown".into(),
        transcript: HookTranscript::Missing,
        folder: None,
        trigger: "unknown".into(),
        summary: None,
    };
    assert_eq!(bare, expected);
    let odd = json!({
        "hook_event_name": "PreCompact", "session_id": 7, "transcript_path": ["x"], "cwd": null,
        "trigger": {}, "compact_summary": false, "source": 1, "transcript": "text",
    });
    assert_eq!(
        HookPayload::read(odd.to_string().as_bytes(), None),
        Ok(expected)
    );
}

#[test]
fn what_is_no_payload_is_refused_with_a_reason() {
    let refused = |bytes: &[u8]| HookPayload::read(bytes, None).unwrap_err();
    assert!(matches!(refused(b""), PayloadError::NotJson(_)));
    assert!(matches!(
        refused(b"{\"hook_event_name\":"),
        PayloadError::NotJson(_)
    ));
    assert!(matches!(refused(b"\xff\xfe"), PayloadError::NotJson(_)));
    assert_eq!(refused(b"[]"), PayloadError::NotAnObject);
    assert_eq!(refused(b"{\"hook_event_name\":3}"), PayloadError::NoEvent);
}

/// What an agent cannot use is not printed.
#[test]
fn each_agent_is_answered_in_its_own_shape() {
    let shapes = HookAgent::ALL.map(|agent| {
        (
            agent.format_instructions("keep".into()),
            agent.format_context("SessionStart", "lost".into()),
        )
    });
    let wrapped =
        r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"lost"}}"#;
    let expected = [
        ("keep", wrapped),
        ("", wrapped),
        ("", wrapped),
        ("keep", "lost"),
    ];
    assert_eq!(shapes, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

fn line(nth: usize, role: &str, text: &str) -> String {
    let parent = nth.checked_sub(1).map(|n| format!("u{n}"));
    let message = json!({ "role": role, "content": text });
    json!({
        "parentUuid": parent, "isSidechain": false, "sessionId": "s", "type": role,
        "uuid": format!("u{nth}"), "message": message, "cwd": "/src", "version": "2.1.325",
    })
    .to_string()
        + "\n"
}

fn session() -> String {
    [
        line(0, "user", "Add paging to the order list in src/orders/list.rs. Never change the schema of the orders table."),
        line(1, "assistant", "I decided to use keyset paging with the cursor column placed_at_id."),
        line(2, "user", "Good. Still to do later: the export in src/orders/export.rs."),
        line(3, "assistant", "The list is done; the tests in tests/order_list.rs pass."),
    ]
    .concat()
}

#[test]
fn a_ledger_is_carried_on_from_where_it_was_left() {
    let text = session();
    let half: String = text.split_inclusive('\n').take(2).collect();
    let (before, more) = text.as_bytes().split_at(half.len());
    let mut at_once = HookMemory::default();
    at_once
        .read_more(text.as_bytes(), &Redactor::default())
        .unwrap();
    let mut in_steps = HookMemory::default();
    in_steps.read_more(before, &Redactor::default()).unwrap();
    assert_eq!(in_steps.read, half.len() as u64);
    let stored = serde_json::to_string(&in_steps).unwrap();
    let mut in_steps: HookMemory = serde_json::from_str(&stored).unwrap();
    assert!(in_steps.is_continued_by(before, more));
    assert!(!in_steps.is_continued_by(before.split_last().unwrap().1, more));
    assert!(!HookMemory::default().is_continued_by(b"", more));
    // The person went back to before the answer.
    let rewound = line(7, "user", "Rather not.").replace("\"u6\"", "\"u0\"");
    assert!(!in_steps.is_continued_by(before, rewound.as_bytes()));
    in_steps.read_more(more, &Redactor::default()).unwrap();
    assert_eq!(in_steps, at_once);
}

#[test]
fn a_line_that_is_half_written_waits_for_the_next_call() {
    let text = session();
    let (most, _) = text.as_bytes().split_at(text.len() - 20);
    let mut memory = HookMemory::default();
    memory.read_more(most, &Redactor::default()).unwrap();
    assert!(memory.read < most.len() as u64);
    let rest = text.as_bytes().get(memory.read as usize..).unwrap();
    memory.read_more(rest, &Redactor::default()).unwrap();
    let mut at_once = HookMemory::default();
    at_once
        .read_more(text.as_bytes(), &Redactor::default())
        .unwrap();
    assert_eq!(memory.ledger, at_once.ledger);
}

/// A session whose tools named twice as much as is remembered.
fn long_session() -> String {
    let call = json!({
        "parentUuid": "u3", "isSidechain": false, "sessionId": "s", "type": "assistant", "uuid": "u4",
        "message": { "role": "assistant", "content": [
            { "type": "tool_use", "id": "t1", "name": "Grep", "input": { "pattern": "order_list" } },
        ] },
    });
    let found: Vec<String> = (0..2 * UNUSED_NAMES)
        .map(|n| format!("row_{n}_checked_by_column_{n}"))
        .collect();
    let answer = json!({
        "parentUuid": "u4", "isSidechain": false, "sessionId": "s", "type": "user", "uuid": "u5",
        "message": { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t1", "content": found.join("\n") },
        ] },
    });
    format!(
        "{}{call}\n{answer}\n{}",
        session(),
        line(6, "assistant", "I have seen them all.")
    )
}

#[test]
fn of_names_that_only_tools_said_so_many_are_remembered() {
    let text = long_session();
    let mut whole = HookMemory::default();
    whole
        .read_more(text.as_bytes(), &Redactor::default())
        .unwrap();
    let mut less = whole.clone();
    less.shed_names();
    let (used, unused): (Vec<_>, Vec<_>) = less
        .ledger
        .entities
        .iter()
        .partition(|e| e.spoken_count() > 0);
    assert_eq!(unused.len(), UNUSED_NAMES);
    assert!(used.iter().any(|e| &*e.text == "src/orders/export.rs"));
    let bytes = |memory: &HookMemory| {
        memory
            .ledger
            .excerpts
            .iter()
            .map(|e| e.text.len())
            .sum::<usize>()
    };
    assert!(bytes(&less) * 10 < bytes(&whole) * 9);
    // The summarizer is told the same, but for how many of the names fit, and the session goes on.
    let told = |memory: &HookMemory| must_keep(&memory.ledger, CharCount(6_000)).unwrap();
    let (less_told, told) = (told(&less), told(&whole));
    let shared = less_told
        .bytes()
        .zip(told.bytes())
        .take_while(|(a, b)| a == b);
    assert!(shared.count() * 10 > told.len() * 8, "{less_told}");
    let (before, _) = text.as_bytes().split_at(less.read as usize);
    let more = line(7, "user", "Now the export.");
    assert!(less.is_continued_by(before, more.as_bytes()));
    let once = less.clone();
    less.shed_names();
    assert_eq!(less, once);
}

fn ledger() -> compact_core::ledger::Ledger {
    let mut memory = HookMemory::default();
    memory
        .read_more(session().as_bytes(), &Redactor::default())
        .unwrap();
    memory.ledger
}

const RULE: &str = "Never change the schema of the orders table.";

/// Where the agent lets us, its summarizer is told what to keep, and no more than agreed.
#[test]
fn the_summarizer_is_told_rules_in_their_words_within_the_budget() {
    let text = must_keep(&ledger(), CharCount(2_000)).unwrap();
    for needle in [
        RULE,
        "src/orders/list.rs",
        "src/orders/export.rs",
        "placed_at_id",
    ] {
        assert!(text.contains(needle), "{needle} is not in {text}");
    }
    assert_eq!(must_keep(&Default::default(), CharCount(2_000)), None);
}

#[test]
fn every_text_for_an_agent_stays_within_its_limit() {
    let (session, archive) = (long_session(), "/archive/".repeat(20));
    let mut memory = HookMemory::default();
    memory
        .read_more(session.as_bytes(), &Redactor::default())
        .unwrap();
    let known = [ledger(), memory.ledger];
    for most in [0, 60, 300, 600, 2_000, 6_000] {
        for ledger in &known {
            let texts = [
                must_keep(ledger, CharCount(most)),
                still_known(ledger, &archive, CharCount(most)),
                find_loss(ledger, "", &archive, CharCount(most)).text,
            ];
            for text in texts.into_iter().flatten() {
                let length = text.chars().count() as u64;
                assert!(length <= most, "{length} > {most}: {text}");
            }
        }
    }
}

#[test]
fn every_rule_comes_before_what_else_a_long_session_did() {
    let rules: Vec<String> = (0..12)
        .map(|n| format!("Never run the migration of table_{n}_of_the_ledger before anybody of team_{n} has read and signed it."))
        .collect();
    // Said twice, told once.
    let said = line(0, "user", &rules.join(" ")) + &line(1, "user", &rules.join(" "));
    let mut memory = HookMemory::default();
    let text = said + &long_session();
    memory
        .read_more(text.as_bytes(), &Redactor::default())
        .unwrap();
    for text in [
        still_known(&memory.ledger, "/archive", CharCount(4_000)).unwrap(),
        must_keep(&memory.ledger, CharCount(4_000)).unwrap(),
    ] {
        let (instructions, data) = text.split_once("~~~").unwrap();
        for rule in &rules {
            assert_eq!(instructions.matches(rule).count(), 1, "{rule} in {text}");
            assert!(!data.contains(rule), "{rule} in {text}");
        }
    }
}

#[test]
fn what_a_summary_lost_is_told_and_nothing_else() {
    let good = session();
    assert_eq!(
        find_loss(
            &ledger(),
            &live_text(good.as_bytes()).unwrap(),
            "/a",
            CharCount(2_000)
        )
        .text,
        None
    );
    let summary = format!("Paging in src/orders/list.rs by placed_at_id. {RULE}");
    let loss = find_loss(&ledger(), &summary, "/archive/s.jsonl", CharCount(2_000));
    let text = loss.text.unwrap();
    assert!(loss.shown > 0 && loss.shown < loss.anchors);
    assert!(text.contains("src/orders/export.rs"), "{text}");
    assert!(text.contains("/archive/s.jsonl"), "{text}");
    assert!(!text.contains(RULE), "{text}");
    let loss = find_loss(&ledger(), "Paging was added.", "/a", CharCount(2_000));
    assert!(loss.text.unwrap().contains(RULE));
}
