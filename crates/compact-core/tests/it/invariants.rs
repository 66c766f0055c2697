//! Every line of *Definitions* and *Invariants* that speaks of one compaction.

use compact_core::engine::{Compaction, CompactionOutcome};
use compact_core::error::CompactError;
use compact_core::identity::EntryHash;
use compact_core::message::{Block, Conversation, Entry, EntryKind, Role};
use compact_core::outline::{Outline, UnitHealth, UnitKind};
use compact_core::policy::{KeepRecent, Policy};
use compact_core::receipt::ReceiptNote;
use compact_core::token::{EstimatorExt, Tokens, Units};
use compact_core::view::ViewItem;
use compact_core::wire::ReasoningRule;
use proptest::prelude::*;

use crate::scene::{self, Setting};

fn budget(conversation: &Conversation, share: f64, setting: Setting) -> Tokens {
    let all = scene::history_tokens(conversation, setting).0 as f64;
    Tokens(((all * share) as u64).max(150))
}

/// The compaction of a random case, when there is something to do and room to do it.
fn made(
    conversation: &Conversation,
    policy: &Policy,
    share: f64,
    setting: Setting,
) -> Result<Option<Compaction>, TestCaseError> {
    match scene::compact(
        conversation,
        policy,
        budget(conversation, share, setting),
        setting,
        None,
    ) {
        Ok(CompactionOutcome::Compacted(made)) => Ok(Some(*made)),
        Ok(CompactionOutcome::Unchanged) | Err(CompactError::InsufficientBudget { .. }) => Ok(None),
        // A loop that waits for results cannot always be cut; that is said, not worked around.
        Err(CompactError::InvalidView(why)) if why.contains("once the calls are answered") => {
            Ok(None)
        }
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

fn leading(conversation: &Conversation) -> usize {
    conversation.leading_instructions()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_view_is_within_the_budget(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
        setting in scene::setting(),
    ) {
        let budget = budget(&conversation, share, setting);
        let Some(made) = made(&conversation, &policy, share, setting)? else { return Ok(()) };
        let estimator = setting.estimator();
        let cost: Units = made
            .view
            .items
            .iter()
            .filter(|i| i.entry_index().is_none_or(|e| e >= leading(&conversation)))
            .filter_map(|i| i.shown_entry(&conversation))
            .map(|e| estimator.count_entry(&e))
            .sum();
        prop_assert!(estimator.to_tokens(cost) <= budget);
        prop_assert_eq!(made.receipt.tokens_after, estimator.to_tokens(cost));
        prop_assert!(made.receipt.tokens_after < made.receipt.tokens_before);
    }

    #[test]
    fn calls_and_results_are_never_separated(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
        setting in scene::setting(),
    ) {
        let Some(made) = made(&conversation, &policy, share, setting)? else { return Ok(()) };
        let shown = Conversation {
            entries: made.view.shown_entries(&conversation),
            ..Conversation::default()
        };
        for unit in Outline::from_conversation(&shown).units {
            prop_assert_ne!(unit.health, UnitHealth::Broken);
        }
    }

    #[test]
    fn protected_entries_are_never_changed_or_dropped(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
        setting in scene::setting(),
    ) {
        let Some(made) = made(&conversation, &policy, share, setting)? else { return Ok(()) };
        let protected = |e: &Entry| e.role.is_instruction() || e.meta.flags.contains("protected");
        for (i, entry) in conversation.entries.iter().enumerate().filter(|(_, e)| protected(e)) {
            let newest = conversation.entries.iter().rposition(
                |e| protected(e) && EntryHash::from_entry(e) == EntryHash::from_entry(entry)
            );
            let at = if i < leading(&conversation) { Some(i) } else { newest };
            let kept = at.map(|entry| ViewItem::Kept { entry });
            prop_assert!(made.view.items.iter().any(|item| Some(item) == kept.as_ref()));
        }
    }

    #[test]
    fn exactly_one_rolling_summary(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
        setting in scene::setting(),
    ) {
        let Some(made) = made(&conversation, &policy, share, setting)? else { return Ok(()) };
        let summaries = made.view.shown_entries(&conversation);
        let ours = summaries
            .iter()
            .filter(|e| matches!(e.meta.kind, EntryKind::Summary { .. }))
            .count();
        prop_assert_eq!(ours, 1);
    }

    #[test]
    fn order_is_chronological_and_requests_survive(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
        setting in scene::setting(),
    ) {
        let budget = budget(&conversation, share, setting);
        let Some(made) = made(&conversation, &policy, share, setting)? else { return Ok(()) };
        let order: Vec<usize> = made.view.items.iter().filter_map(ViewItem::entry_index).collect();
        prop_assert!(order.is_sorted());
        let outline = Outline::from_conversation(&conversation);
        let estimator = setting.estimator();
        let first = outline.first_user().filter(|_| policy.keep_recent != KeepRecent::None);
        for unit in [first, outline.last_user()].into_iter().flatten() {
            let unit = &outline.units[unit];
            prop_assert_eq!(unit.kind, UnitKind::User);
            let entry = unit.entries.start;
            let quarter = Units(estimator.to_units(budget).0 / 4);
            let cost = estimator.count_entry(&conversation.entries[entry]);
            // Of protected messages that are equal the newest stands for all.
            let says = |entry: usize| &conversation.entries[entry].blocks;
            let is_it = |shown: usize| says(shown) == says(entry);
            let whole = made.view.items.iter().any(|i| matches!(i, ViewItem::Kept { entry } if is_it(*entry)));
            prop_assert!(order.iter().any(|shown| is_it(*shown)));
            let tight = made.receipt.notes.iter().any(|n| matches!(n, ReceiptNote::NewestCut | ReceiptNote::RequestCut(_)));
            prop_assert!(whole || cost > quarter || tight);
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
        setting in scene::setting(),
    ) {
        let first = made(&conversation, &policy, share, setting)?;
        let again = made(&conversation, &policy, share, setting)?;
        prop_assert_eq!(first, again);
    }

    #[test]
    fn on_a_strict_wire_people_and_the_model_alternate(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
    ) {
        let setting = Setting { strict: true, ..Setting::PLAIN };
        let Some(made) = made(&conversation, &policy, share, setting)? else { return Ok(()) };
        let shown = Conversation {
            entries: made.view.shown_entries(&conversation),
            ..Conversation::default()
        };
        let turns: Vec<(Role, bool)> = Outline::from_conversation(&shown)
            .units
            .iter()
            .filter_map(|unit| shown.entries.get(unit.entries.start))
            .filter(|e| !e.role.is_instruction())
            .map(|e| (e.role, e.call_ids().next().is_some()))
            .collect();
        prop_assert!(turns.first().is_none_or(|(role, _)| *role == Role::User));
        for pair in turns.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            // An exchange ends with its results, which are not the model's words.
            let ends_as = if before.1 { Role::User } else { before.0 };
            prop_assert_ne!(ends_as, after.0);
        }
        // A call that waits for its results is the model's turn to stay last.
        let spoke_last = |entries: &[Entry]| {
            entries.last().is_some_and(|e| e.role == Role::Assistant && e.call_ids().next().is_none())
        };
        let was_last = conversation.entries.last().is_some_and(|e| e.role == Role::Assistant);
        prop_assert!(!spoke_last(&shown.entries) || was_last);
    }

    #[test]
    fn bound_reasoning_never_stands_after_an_edit(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
    ) {
        let setting = Setting { reasoning: ReasoningRule::StripAfterEdit, ..Setting::PLAIN };
        let Some(made) = made(&conversation, &policy, share, setting)? else { return Ok(()) };
        let edited = made
            .view
            .items
            .iter()
            .enumerate()
            .skip_while(|(i, item)| **item == ViewItem::Kept { entry: *i });
        for entry in edited.filter_map(|(_, item)| item.shown_entry(&conversation)) {
            let thinks = entry.blocks.iter().any(|b| matches!(b, Block::Reasoning { .. }));
            prop_assert!(!thinks);
        }
    }

    #[test]
    fn retention_adds_up(
        conversation in scene::conversation(),
        share in 0.02f64..0.9,
        setting in scene::setting(),
    ) {
        let Some(made) = made(&conversation, &Policy::default(), share, setting)? else { return Ok(()) };
        let r = made.receipt.retention;
        prop_assert_eq!(r.anchors, r.kept + r.recoverable + r.lost + r.redacted);
        prop_assert!(r.repaired <= r.kept);
        prop_assert_eq!(r.score, (r.anchors > 0).then(|| r.kept as f64 / r.anchors as f64));
    }

    #[test]
    fn every_entry_is_in_exactly_one_unit(conversation in scene::conversation()) {
        let mut next = 0;
        for unit in Outline::from_conversation(&conversation).units {
            prop_assert_eq!(unit.entries.start, next);
            prop_assert!(unit.entries.end > unit.entries.start);
            next = unit.entries.end;
        }
        prop_assert_eq!(next, conversation.entries.len());
    }

    #[test]
    fn kept_and_summarized_cover_the_history(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.02f64..0.9,
        setting in scene::setting(),
    ) {
        let Some(made) = made(&conversation, &policy, share, setting)? else { return Ok(()) };
        let count = |spans: &[(u64, u64)]| spans.iter().map(|(a, b)| b - a + 1).sum::<u64>();
        prop_assert_eq!(
            count(&made.receipt.kept_spans) + count(&made.receipt.summarized_spans),
            conversation.entries.len() as u64
        );
        prop_assert_eq!(count(&made.receipt.summarized_spans), made.receipt.pruned_count);
    }
}

#[test]
fn within_the_budget_nothing_changes() {
    let conversation = Conversation {
        entries: vec![Entry::from_text("u", Role::User, "hello")],
        ..Conversation::default()
    };
    let setting = Setting::PLAIN;
    let outcome = scene::compact(
        &conversation,
        &Policy::default(),
        Tokens(100),
        setting,
        None,
    );
    assert_eq!(outcome, Ok(CompactionOutcome::Unchanged));
}

#[test]
fn pinned_entries_that_do_not_fit_fail_closed() {
    let mut pinned = Entry::from_text("p", Role::User, "word ".repeat(400));
    pinned.meta.flags.insert("protected".to_owned());
    let conversation = Conversation {
        entries: vec![Entry::from_text("u", Role::User, "go"), pinned],
        ..Conversation::default()
    };
    let setting = Setting::PLAIN;
    let outcome = scene::compact(
        &conversation,
        &Policy::default(),
        Tokens(300),
        setting,
        None,
    );
    match outcome {
        Err(CompactError::InsufficientBudget {
            pinned_tokens,
            needed,
            budget,
        }) => {
            assert_eq!(pinned_tokens, Tokens(501));
            assert!(needed > budget);
        }
        other => panic!("{other:?}"),
    }
}
