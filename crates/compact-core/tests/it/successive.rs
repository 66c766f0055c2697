//! Promises over several compactions: one rolling summary, ordinals that stay, views that compose.

use compact_core::engine::CompactionOutcome;
use compact_core::identity::EntryHash;
use compact_core::message::{Conversation, EntryKind};
use compact_core::policy::Policy;
use compact_core::token::Tokens;
use compact_core::view::View;
use proptest::prelude::*;

use crate::scene::{self, Setting};

const SETTING: Setting = Setting::PLAIN;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn one_summary_that_counts_up(
        first in prop::collection::vec(scene::step(), 10..30),
        more in prop::collection::vec(prop::collection::vec(scene::step(), 5..15), 1..5),
    ) {
        let mut live = Conversation { entries: scene::lived(&first, 0), ..Conversation::default() };
        let mut prior = None;
        let mut version = 0;
        for (round, steps) in more.iter().enumerate() {
            live.entries.extend(scene::lived(steps, 1000 * (round + 1)));
            let budget = Tokens((scene::history_tokens(&live, SETTING).0 / 2).max(200));
            let Ok(CompactionOutcome::Compacted(made)) =
                scene::compact(&live, &Policy::default(), budget, SETTING, prior.as_ref())
            else { continue };
            version += 1;
            prop_assert_eq!(made.receipt.summary_version, version);
            let ordinals: Vec<u64> = made.view_identity.iter().map(|(_, o)| *o).collect();
            let next = scene::prior_of(&made, &live, prior.as_ref());
            prop_assert!(ordinals.iter().all(|o| *o <= next.ledger.next));
            live.entries = made.view.shown_entries(&live);
            let ours = live
                .entries
                .iter()
                .filter(|e| matches!(e.meta.kind, EntryKind::Summary { .. }))
                .count();
            prop_assert_eq!(ours, 1);
            prop_assert_eq!(
                made.view_identity.iter().map(|(h, _)| *h).collect::<Vec<_>>(),
                EntryHash::from_entries(live.entries.get(live.leading_instructions()..).unwrap_or_default())
            );
            prior = Some(next);
        }
    }

    #[test]
    fn a_view_of_a_view_is_a_view(
        conversation in scene::conversation(),
        setting in scene::setting(),
    ) {
        let budget = |c: &Conversation| Tokens((scene::history_tokens(c, setting).0 / 2).max(150));
        let policy = Policy::default();
        let Ok(CompactionOutcome::Compacted(first)) =
            scene::compact(&conversation, &policy, budget(&conversation), setting, None)
        else { return Ok(()) };
        let shown = Conversation { entries: first.view.shown_entries(&conversation), ..Conversation::default() };
        let Ok(CompactionOutcome::Compacted(second)) =
            scene::compact(&shown, &policy, budget(&shown), setting, None)
        else { return Ok(()) };
        let composed = first.view.compose_with(&second.view, &conversation);
        prop_assert_eq!(composed.shown_entries(&conversation), second.view.shown_entries(&shown));
        let identity = View::identity(&conversation);
        prop_assert_eq!(identity.compose_with(&first.view, &conversation), first.view);
    }
}
