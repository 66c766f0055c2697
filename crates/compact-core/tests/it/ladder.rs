//! The demotion ladder and the layers of memory, on conversations shaped like real trouble.

use std::collections::BTreeSet;

use compact_core::engine::{Compaction, CompactionOutcome};
use compact_core::identity::EntryHash;
use compact_core::message::{Block, Conversation, Entry, EntryId, EntryKind, EntryMeta, Role};
use compact_core::pin::naming_hashes;
use compact_core::policy::{KeepRecent, Policy};
use compact_core::receipt::ReceiptNote;
use compact_core::token::Tokens;
use compact_core::view::ViewItem;
use compact_core::wire::Placement;

use crate::scene::{self, Setting};

const SETTING: Setting = Setting::PLAIN;

fn exchange(i: usize, size: usize) -> [Entry; 2] {
    let entry = |name: &str, role, block| Entry {
        id: EntryId(format!("{name}{i}")),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    };
    [
        entry(
            "c",
            Role::Assistant,
            Block::ToolCall {
                id: format!("call{i}"),
                name: "grep".into(),
                arguments: format!("{{\"pattern\":\"symbol_{i}\"}}"),
            },
        ),
        entry(
            "r",
            Role::Tool,
            Block::ToolResult {
                call: format!("call{i}"),
                content: format!("src/file_{i}.rs:{i}: symbol_{i}\n").repeat(size),
                is_error: false,
            },
        ),
    ]
}

fn compact(entries: Vec<Entry>, policy: &Policy, budget: u64) -> (Conversation, Compaction) {
    let conversation = Conversation {
        entries,
        ..Conversation::default()
    };
    match scene::compact(&conversation, policy, Tokens(budget), SETTING, None) {
        Ok(CompactionOutcome::Compacted(made)) => (conversation, *made),
        other => panic!("{other:?}"),
    }
}

fn user(i: usize) -> Entry {
    Entry::from_text(format!("u{i}"), Role::User, format!("please do part {i}"))
}

/// `turns` turns, each with one exchange of `size` lines and one closing sentence.
fn turns(turns: usize, size: usize) -> Vec<Entry> {
    (0..turns)
        .flat_map(|i| {
            let said = Entry::from_text(
                format!("a{i}"),
                Role::Assistant,
                format!("part {i} is done"),
            );
            [user(i)].into_iter().chain(exchange(i, size)).chain([said])
        })
        .collect()
}

#[test]
fn the_policys_counts_stay_when_they_fit() {
    let (_, made) = compact(turns(30, 40), &Policy::default(), 6000);
    assert_eq!(made.receipt.rung, "policy");
    // The first request's own turn, and the last six; and as many earlier ones as the room holds.
    let kept = made.receipt.kept;
    assert!(kept.tool_pairs >= 4 && kept.recent_turns >= 7, "{kept:?}");
    assert!(
        made.receipt.tokens_after >= Tokens(4800),
        "{:?}",
        made.receipt.tokens_after
    );
}

#[test]
fn turns_reduce_before_pairs() {
    let rungs: Vec<(String, u64, u64)> = [6000, 1500, 1000, 800, 600, 500]
        .into_iter()
        .map(|budget| {
            let (_, made) = compact(turns(30, 40), &Policy::default(), budget);
            let kept = made.receipt.kept;
            (made.receipt.rung, kept.recent_turns, kept.tool_pairs)
        })
        .collect();
    // Pairs only go on the rungs below fewer turns; what is left empty is filled with earlier turns.
    for (rung, _, pairs) in &rungs {
        assert!(*pairs >= 4 || rung == "fewer_pairs", "{rungs:?}");
    }
    assert_eq!(rungs.first().map(|r| r.0.as_str()), Some("policy"));
    assert_eq!(rungs.last().map(|r| r.0.as_str()), Some("fewer_pairs"));
}

#[test]
fn one_turn_of_five_hundred_exchanges_fits() {
    let mut entries = vec![user(0)];
    entries.extend((0..500).flat_map(|i| exchange(i, 30)));
    let (_, made) = compact(entries, &Policy::default(), 2000);
    assert!(made.receipt.tokens_after <= Tokens(2000));
    assert!(made.receipt.kept.tool_pairs >= 1);
}

#[test]
fn one_giant_result_is_clipped_and_points_to_the_whole() {
    let mut entries = turns(3, 5);
    entries.push(user(3));
    entries.extend(exchange(3, 20_000));
    let (conversation, made) = compact(entries, &Policy::default(), 3000);
    let shown = made.view.shown_entries(&conversation);
    let clipped = shown
        .iter()
        .flat_map(|e| &e.blocks)
        .find_map(|b| match b {
            Block::ToolResult { content, .. } if content.contains("chars cut") => Some(content),
            _ => None,
        })
        .expect("the giant result is still there, clipped");
    assert!(clipped.starts_with("src/file_3.rs:3: symbol_3"));
    assert!(clipped.contains(made.receipt.receipt_id.get(..12).unwrap()));
    // Its neighbours were not pushed out by it.
    assert!(made.receipt.kept.recent_turns >= 4);
}

/// One answer to each of eight calls made at once.
fn parallel(i: usize) -> Vec<Entry> {
    let pairs: Vec<[Entry; 2]> = (0..8).map(|n| exchange(i * 10 + n, 60)).collect();
    let (mut calls, answers): (Vec<Entry>, Vec<Entry>) = pairs
        .into_iter()
        .map(|[call, answer]| (call, answer))
        .unzip();
    let blocks = calls
        .iter_mut()
        .flat_map(|call| std::mem::take(&mut call.blocks));
    let blocks: Vec<Block> = blocks.collect();
    let mut all = calls.split_off(7);
    all.iter_mut().for_each(|call| call.blocks = blocks.clone());
    all.extend(answers);
    all
}

#[test]
fn what_would_be_pointers_alone_is_left_to_the_summary() {
    let mut entries = vec![user(0)];
    entries.extend((1..4).flat_map(parallel));
    let (conversation, made) = compact(entries, &Policy::default(), 1500);
    let shown = made.view.shown_entries(&conversation);
    let answered: Vec<&str> = shown.iter().flat_map(Entry::result_ids).collect();
    // The newest unit is there, so that the model sees what it did last.
    assert!(
        answered.iter().all(|call| call.starts_with("call3")),
        "{answered:?}"
    );
    assert_eq!(answered.len(), 8);
    let summary = made.view.summary().unwrap().plain_text();
    assert!(summary.contains("symbol_15"), "{summary}");
}

#[test]
fn a_short_request_stays_whole_in_a_small_budget() {
    let request = "Review the changes against the base branch `main`, whose merge base is 368750cee35f31935640a34ad199e889fc60f1a8, and list findings by how much they matter, the worst first, each with its file and line.";
    let mut entries = vec![Entry::from_text("u0", Role::User, request)];
    entries.extend((0..40).flat_map(|i| exchange(i, 30)));
    let (conversation, made) = compact(entries, &Policy::default(), 500);
    assert_eq!(
        made.view.shown_entries(&conversation)[0].plain_text(),
        request
    );
}

#[test]
fn a_request_larger_than_a_quarter_of_the_budget_is_cut_and_said_so() {
    let mut entries = vec![Entry::from_text(
        "u0",
        Role::User,
        "spec line\n".repeat(3000),
    )];
    entries.extend((0..20).flat_map(|i| exchange(i, 30)));
    let (conversation, made) = compact(entries, &Policy::default(), 2000);
    assert!(matches!(
        made.view.items.first(),
        Some(ViewItem::Edited { entry: 0, .. })
    ));
    assert!(
        made.receipt
            .notes
            .iter()
            .any(|n| matches!(n, ReceiptNote::RequestCut(_)))
    );
    assert!(
        made.view.shown_entries(&conversation)[0]
            .plain_text()
            .contains("chars cut")
    );
}

#[test]
fn malformed_tool_messages_leave_the_view_and_are_reported() {
    let mut entries = turns(10, 30);
    entries.insert(5, {
        let [_, orphan] = exchange(999, 1);
        orphan
    });
    let (conversation, made) = compact(entries, &Policy::default(), 2000);
    let repair = ReceiptNote::MalformedToolMessages { count: 1 };
    assert!(made.receipt.notes.contains(&repair));
    let shown = made.view.shown_entries(&conversation);
    assert!(
        shown
            .iter()
            .all(|e| e.result_ids().all(|id| id != "call999"))
    );
}

#[test]
fn an_open_tool_loop_stays() {
    let mut entries = turns(10, 30);
    entries.push(user(10));
    let [call, _] = exchange(10, 1);
    entries.push(call);
    let open = entries.len() - 1;
    let (_, made) = compact(entries, &Policy::default(), 1500);
    assert!(made.view.items.contains(&ViewItem::Kept { entry: open }));
}

#[test]
fn pinned_by_role_flag_and_pattern() {
    let policy = Policy {
        protected_patterns: vec!["(?i)acceptance criteria".to_owned()],
        protected_flag: "keep".to_owned(),
        ..Policy::default()
    };
    let mut entries = turns(20, 30);
    entries.insert(
        7,
        Entry::from_text("x1", Role::Developer, "policy: no force pushes"),
    );
    entries.insert(
        12,
        Entry::from_text("x2", Role::Assistant, "Acceptance criteria: all green"),
    );
    let mut flagged = Entry::from_text("x3", Role::User, "budget is 40 EUR");
    flagged.meta.flags.insert("keep".into());
    entries.insert(22, flagged);
    let named = EntryHash::from_entry(&entries[16]);
    let policy = Policy {
        protected_entries: vec![named],
        ..policy
    };
    let (_, made) = compact(entries, &policy, 2000);
    for entry in [7, 12, 16, 22] {
        assert!(
            made.view.items.contains(&ViewItem::Kept { entry }),
            "{entry}"
        );
    }
    assert_eq!(made.receipt.policy.protected_entries, [named]);
}

/// Many results are alike; what asked for them is not.
#[test]
fn a_result_is_named_by_its_call_and_what_says_nothing_not_at_all() {
    let [call, result] = exchange(1, 30);
    let mut image = user(2);
    image.blocks = vec![Block::Media {
        label: "image".to_owned(),
        tokens: 9,
    }];
    let entries = [user(1), call, result, image];
    let hashes = EntryHash::from_entries(&entries);
    let name = |entry: &Entry| {
        let wanted = entry.clone();
        naming_hashes(&entries, &hashes, |e| *e == wanted)
    };
    let made: Vec<_> = entries.iter().map(name).collect();
    let call = BTreeSet::from([hashes[1]]);
    let expected = [
        BTreeSet::from([hashes[0]]),
        call.clone(),
        call,
        BTreeSet::new(),
    ];
    assert_eq!(made, expected);
    let alone = naming_hashes(&entries[2..3], &hashes[2..3], |_| true);
    assert_eq!(alone, BTreeSet::from([hashes[2]]));
}

#[test]
fn identical_later_injections_collapse_to_the_newest() {
    let mut entries = turns(20, 30);
    for at in [3, 30, 50] {
        entries.insert(
            at,
            Entry::from_text(format!("i{at}"), Role::Developer, "reminder: be brief"),
        );
    }
    let (_, made) = compact(entries, &Policy::default(), 2000);
    assert!(made.view.items.contains(&ViewItem::Kept { entry: 50 }));
    assert!(
        !made
            .view
            .items
            .iter()
            .any(|i| matches!(i.entry_index(), Some(3 | 30)))
    );
}

#[test]
fn hard_reset_keeps_nothing_but_the_pending_request() {
    let policy = Policy {
        keep_recent: KeepRecent::None,
        placement: Placement::SystemSuffix,
        ..Policy::default()
    };
    let mut entries = vec![Entry::from_text("s", Role::System, "You are Qbit.")];
    entries.extend(turns(20, 30));
    let (conversation, made) = compact(entries, &policy, 1500);
    let shown = made.view.shown_entries(&conversation);
    assert_eq!(shown[0].plain_text(), "You are Qbit.");
    // The summary closes the system prompt; only the pending request follows.
    assert_eq!(shown[1].role, Role::System);
    assert!(shown[1].plain_text().starts_with("## Continuation\n"));
    assert!(shown[1].plain_text().ends_with("</summary>"));
    let pending = conversation.entries.iter().rfind(|e| e.is_user_message());
    assert_eq!(
        shown.get(2..),
        pending.cloned().as_ref().map(std::slice::from_ref)
    );
}

#[test]
fn placements_put_the_summary_where_they_say() {
    for (placement, role) in [
        (Placement::AssistantMessage, Role::Assistant),
        (Placement::UserMessage, Role::User),
        (Placement::NewSessionPrompt, Role::User),
        (Placement::ToolPair, Role::Tool),
    ] {
        let policy = Policy {
            placement,
            ..Policy::default()
        };
        let (_, made) = compact(turns(20, 30), &policy, 2000);
        let summary = made.view.summary().expect("a summary");
        assert_eq!(summary.role, role, "{placement:?}");
        assert!(matches!(
            summary.meta.kind,
            EntryKind::Summary { version: 1, .. }
        ));
    }
}

#[test]
fn a_bad_pattern_is_named() {
    let policy = Policy {
        protected_patterns: vec!["(".to_owned()],
        ..Policy::default()
    };
    let conversation = Conversation {
        entries: turns(20, 30),
        ..Conversation::default()
    };
    let error = scene::compact(&conversation, &policy, Tokens(500), SETTING, None).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("policy.protected_patterns: '('"),
        "{error}"
    );
}
