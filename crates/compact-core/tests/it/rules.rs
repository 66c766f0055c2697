//! No rule of the user's is gone without a word: each is in the view, or the receipt counts it as gone.

use compact_core::engine::CompactionOutcome;
use compact_core::message::{Block, Conversation, Entry, Role};
use compact_core::policy::Policy;
use compact_core::receipt::ReceiptNote;
use compact_core::token::Tokens;
use proptest::prelude::*;

use crate::scene::{self, Setting};

/// A prohibition whose subject is a name, a number, or a name with a number in it.
fn prohibition() -> impl Strategy<Value = String> {
    let opening = prop_oneof![
        Just("Never restart"),
        Just("Do not touch"),
        Just("You must not open"),
        Just("Don't send anything to"),
        Just("Actually, never use"),
    ];
    let subject = prop_oneof![
        (1u32..30).prop_map(|n| format!("host db{n}")),
        (1u32..30).prop_map(|n| format!("port {n}")),
        (1u32..30).prop_map(|n| format!("/data/shard{n}/log")),
        (1u32..30).prop_map(|n| format!("order NO-300{n}")),
        (1u32..30).prop_map(|n| format!("migrations/000{n}_x.sql")),
        (1u32..30).prop_map(|n| format!("room {n} after {n}:30")),
        "[a-e]{3,5}".prop_map(|word| format!("the {word} service")),
    ];
    let ending = prop_oneof![Just("."), Just(" any more."), Just("")];
    (opening, subject, ending).prop_map(|(a, b, c)| format!("{a} {b}{c}"))
}

/// The rules in this order, each answered, and enough talk behind them to be compacted.
fn session(rules: &[String]) -> Conversation {
    let ruled = rules.iter().flat_map(|rule| {
        let answer = "Understood, I keep to that.";
        [
            (Role::User, rule.clone()),
            (Role::Assistant, answer.to_owned()),
        ]
    });
    let talk = (0..24).flat_map(|i| {
        let found = format!("Part {i} of the walk leads along the river. ").repeat(6);
        [
            (Role::User, format!("What is in part {i}?")),
            (Role::Assistant, found),
        ]
    });
    let entries = ruled.chain(talk).enumerate();
    Conversation {
        entries: entries
            .map(|(i, (role, text))| Entry::from_text(i.to_string(), role, text))
            .collect(),
        ..Conversation::default()
    }
}

/// Whether a text shows a rule, and no longer one that only begins like it.
fn shows(text: &str, rule: &str) -> bool {
    text.match_indices(rule).any(|(at, _)| {
        // Said once with a full stop and once without, it is one rule.
        let rest = text.get(at + rule.len()..).unwrap_or("");
        let rest = rest.trim_start_matches('.');
        rest.is_empty() || rest.starts_with(['"', '\n'])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_prohibition_is_in_the_view_or_counted_as_gone(
        rules in prop::collection::btree_set(prohibition(), 1..40)
            .prop_map(|set| set.into_iter().collect::<Vec<_>>()).prop_shuffle(),
        budget in 300u64..2500,
    ) {
        let conversation = session(&rules);
        let made = scene::compact(&conversation, &Policy::default(), Tokens(budget), Setting::PLAIN, None);
        let Ok(CompactionOutcome::Compacted(made)) = made else { return Ok(()) };
        let shown = made.view.items.iter().filter_map(|item| item.shown_entry(&conversation));
        let parts = shown.flat_map(|e| {
            let parts = e.blocks.iter().flat_map(Block::text_parts);
            parts.map(|part| format!("{part}\n")).collect::<Vec<_>>()
        });
        let text: String = parts.collect();
        let gone = rules.iter().filter(|rule| !shows(&text, rule)).count() as u64;
        let retention = &made.receipt.retention;
        prop_assert!(
            gone <= retention.recoverable + retention.lost,
            "{gone} rules are gone, {retention:?}\n{text}"
        );
        prop_assert!(gone == 0 || retention.score.is_some_and(|score| score < 1.0));
    }
}

#[test]
fn rules_beyond_what_the_ledger_holds_are_noted() {
    let rules: Vec<String> = (0..1_030)
        .map(|n| format!("Never restart host db{n}."))
        .collect();
    let notes = |rules: &[String]| {
        let conversation = session(rules);
        let policy = Policy::default();
        match scene::compact(&conversation, &policy, Tokens(2_000), Setting::PLAIN, None) {
            Ok(CompactionOutcome::Compacted(made)) => made.receipt.notes,
            other => panic!("{other:?}"),
        }
    };
    assert!(notes(&rules).contains(&ReceiptNote::RulesLeftOut { count: 6 }));
    let is_left_out = |note: &ReceiptNote| matches!(note, ReceiptNote::RulesLeftOut { .. });
    assert!(!notes(&rules[..1_024]).iter().any(is_left_out));
}
