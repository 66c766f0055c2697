use super::*;
use crate::message::{EntryId, EntryMeta};

fn call(i: usize, ids: &[&str]) -> Entry {
    Entry {
        id: EntryId(format!("e{i}")),
        role: Role::Assistant,
        blocks: ids
            .iter()
            .map(|id| Block::ToolCall {
                id: (*id).to_owned(),
                name: "run".to_owned(),
                arguments: "{}".to_owned(),
            })
            .collect(),
        meta: EntryMeta::default(),
    }
}

fn result(i: usize, id: &str) -> Entry {
    Entry {
        id: EntryId(format!("e{i}")),
        role: Role::Tool,
        blocks: vec![Block::ToolResult {
            call: id.to_owned(),
            content: "ok".to_owned(),
            is_error: false,
        }],
        meta: EntryMeta::default(),
    }
}

fn shape(entries: Vec<Entry>) -> Vec<(UnitKind, UnitHealth, usize, Range<usize>)> {
    let conversation = Conversation {
        entries,
        ..Conversation::default()
    };
    Outline::from_conversation(&conversation)
        .units
        .into_iter()
        .map(|u| (u.kind, u.health, u.turn, u.entries))
        .collect()
}

#[test]
fn parallel_calls_and_their_results_are_one_unit() {
    let got = shape(vec![
        Entry::from_text("s", Role::System, "be brief"),
        Entry::from_text("u", Role::User, "go"),
        call(2, &["a", "b"]),
        result(3, "b"),
        result(4, "a"),
        Entry::from_text("x", Role::Assistant, "done"),
    ]);
    assert_eq!(
        got,
        [
            (UnitKind::Leading, UnitHealth::Whole, 0, 0..1),
            (UnitKind::User, UnitHealth::Whole, 1, 1..2),
            (UnitKind::Exchange, UnitHealth::Whole, 1, 2..5),
            (UnitKind::Message, UnitHealth::Whole, 1, 5..6),
        ]
    );
}

#[test]
fn a_waiting_call_is_open_and_a_forgotten_one_broken() {
    let open = shape(vec![
        Entry::from_text("u", Role::User, "go"),
        call(1, &["a"]),
    ]);
    assert_eq!(open[1].1, UnitHealth::Open);
    let broken = shape(vec![
        call(0, &["a"]),
        Entry::from_text("u", Role::User, "go on"),
        result(2, "zzz"),
    ]);
    assert_eq!(broken[0].1, UnitHealth::Broken);
    assert_eq!(broken[2].1, UnitHealth::Broken);
}

#[test]
fn a_reused_call_id_pairs_with_the_nearest_call() {
    let got = shape(vec![
        call(0, &["x"]),
        result(1, "x"),
        call(2, &["x"]),
        result(3, "x"),
    ]);
    assert_eq!(
        got.iter().map(|u| u.3.clone()).collect::<Vec<_>>(),
        [0..2, 2..4]
    );
}

#[test]
fn lines_of_one_message_and_its_reasoning_stay_together() {
    let mut thought = call(1, &[]);
    thought.blocks = vec![Block::Reasoning {
        text: "hm".to_owned(),
        replay_bytes: 3,
    }];
    thought.meta.group = Some("msg_1".to_owned());
    let mut said = Entry::from_text("t", Role::Assistant, "I will look");
    said.meta.group = Some("msg_1".to_owned());
    let mut asked = call(3, &["a"]);
    asked.meta.group = Some("msg_1".to_owned());
    let got = shape(vec![
        Entry::from_text("u", Role::User, "go"),
        thought,
        said,
        asked,
        result(4, "a"),
    ]);
    assert_eq!(got.len(), 2);
    assert_eq!(got[1].3, 1..5);
}

#[test]
fn words_in_the_message_of_the_results_leave_the_loop_running() {
    let ends_in_loop = |later: Vec<Entry>| {
        let mut entries = vec![
            Entry::from_text("u", Role::User, "go"),
            call(1, &["a"]),
            result(2, "a"),
        ];
        entries.extend(later);
        let conversation = Conversation {
            entries,
            ..Conversation::default()
        };
        Outline::from_conversation(&conversation).ends_in_loop
    };
    let says = |text: &str| Entry::from_text("more", Role::User, text);
    let beside = |kind: EntryKind, text: &str| {
        let mut entry = says(text);
        entry.meta.continues = true;
        entry.meta.kind = kind;
        entry
    };
    let wish = beside(EntryKind::Message, "Update the docs, too.");
    let note = beside(EntryKind::Injected, "[Request interrupted by user]");
    let reply = Entry::from_text("r", Role::Assistant, "Done.");
    assert!(ends_in_loop(vec![]));
    assert!(ends_in_loop(vec![wish.clone()]));
    assert!(ends_in_loop(vec![note, wish.clone()]));
    assert!(!ends_in_loop(vec![says("And now the docs.")]));
    assert!(!ends_in_loop(vec![reply.clone()]));
    assert!(!ends_in_loop(vec![wish, reply]));
}
