//! Who gets the room of a view: the newest before all, in a budget that somebody names too, and nothing is
//! left empty while there is something to tell.

use compact_core::engine::{Compaction, CompactionOutcome};
use compact_core::message::{Block, Conversation, Entry, EntryId, EntryMeta, Role};
use compact_core::policy::Policy;
use compact_core::receipt::ReceiptNote;
use compact_core::token::{EstimatorExt, Tokens, Units};
use compact_core::view::ViewItem;
use proptest::prelude::*;

use crate::scene::{self, Setting};

const WINDOW: Tokens = Tokens(16_000);

fn entry(id: String, role: Role, blocks: Vec<Block>) -> Entry {
    Entry {
        id: EntryId(id),
        role,
        blocks,
        meta: EntryMeta::default(),
    }
}

/// Prose of about so many tokens that names things of its own.
fn prose(seed: usize, tokens: usize) -> String {
    let sentence = |i: usize| {
        let n = seed * 1009 + i;
        format!(
            "The handler of ticket TK-{n:05} writes {} rows to shard_{} then. ",
            n % 97,
            n % 31
        )
    };
    (0..tokens.div_ceil(16)).map(sentence).collect()
}

fn exchange(i: usize, tokens: usize) -> [Entry; 2] {
    let call = Block::ToolCall {
        id: format!("call{i}"),
        name: "read".into(),
        arguments: format!("{{\"path\":\"src/part_{i}.rs\"}}"),
    };
    let result = Block::ToolResult {
        call: format!("call{i}"),
        content: prose(i, tokens),
        is_error: false,
    };
    [
        entry(format!("c{i}"), Role::Assistant, vec![call]),
        entry(format!("r{i}"), Role::Tool, vec![result]),
    ]
}

/// A turn: a request, three calls, and what the model concluded.
fn turn(i: usize) -> Vec<Entry> {
    let mut entries = vec![Entry::from_text(
        format!("u{i}"),
        Role::User,
        format!("Mend part {i}: the export of TK-{i:05} must stay sorted."),
    )];
    entries.extend((0..3).flat_map(|n| exchange(i * 10 + n, 150)));
    let done = format!("Part {i} is fixed because the cache of part_{i} was stale.");
    entries.push(Entry::from_text(format!("a{i}"), Role::Assistant, done));
    entries
}

/// A dense history that takes the whole window.
fn dense(turns: usize) -> Vec<Entry> {
    (0..turns).flat_map(turn).collect()
}

/// What comes last.
#[derive(Clone, Copy, Debug)]
enum Last {
    Words,
    Answer,
    Result,
    Media,
}

fn newest(last: Last, tokens: usize) -> Vec<Entry> {
    match last {
        Last::Words => vec![Entry::from_text("last", Role::User, prose(7, tokens))],
        Last::Answer => vec![
            Entry::from_text("ask", Role::User, "Now write the design, in full."),
            Entry::from_text("last", Role::Assistant, prose(7, tokens)),
        ],
        Last::Result => exchange(9_999, tokens).into(),
        Last::Media => {
            let [call, mut result] = exchange(9_999, 4);
            let (label, tokens) = ("file report.pdf".into(), tokens as u64);
            result.blocks.push(Block::Media { label, tokens });
            vec![call, result]
        }
    }
}

fn conversation(entries: Vec<Entry>) -> Conversation {
    Conversation {
        entries,
        ..Conversation::default()
    }
}

fn compacted(conversation: &Conversation, policy: &Policy) -> (Tokens, Compaction) {
    match scene::compact_in(WINDOW, conversation, policy, Setting::PLAIN, None) {
        (budget, Ok(CompactionOutcome::Compacted(made))) => (budget, *made),
        other => panic!("{other:?}"),
    }
}

fn stays(made: &Compaction, at: usize) -> bool {
    made.view.items.contains(&ViewItem::Kept { entry: at })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_said_last_is_whole_while_it_fits(
        last in prop_oneof![Just(Last::Words), Just(Last::Answer), Just(Last::Result), Just(Last::Media)],
        share in 0.02f64..0.8,
        turns in 22usize..40,
    ) {
        let mut entries = dense(turns);
        let old = entries.len();
        entries.extend(newest(last, (WINDOW.0 as f64 * share) as usize));
        let conversation = conversation(entries);
        let (budget, made) = compacted(&conversation, &Policy::default());
        prop_assert!(made.receipt.tokens_after <= budget);
        prop_assert!(budget <= WINDOW - Tokens(Policy::default().hard_cap_buffer));
        prop_assert_eq!(made.receipt.kept.newest_cut, 0, "{:?} {}", last, share);
        for at in old..conversation.entries.len() {
            prop_assert!(stays(&made, at));
        }
    }

    #[test]
    fn what_alone_does_not_fit_is_cut_the_least_and_said_so(
        last in prop_oneof![Just(Last::Words), Just(Last::Answer), Just(Last::Result)],
        share in 1.1f64..6.0,
    ) {
        let mut entries = dense(8);
        entries.extend(newest(last, (WINDOW.0 as f64 * share) as usize));
        let conversation = conversation(entries);
        let (budget, made) = compacted(&conversation, &Policy::default());
        prop_assert_eq!(made.receipt.kept.newest_cut, 1);
        prop_assert!(made.receipt.notes.contains(&ReceiptNote::NewestCut));
        let shown = made.view.shown_entries(&conversation);
        let left = shown.last().map_or(0, |e| scene::history_tokens(&self::conversation(vec![e.clone()]), Setting::PLAIN).0);
        prop_assert!(left * 10 >= budget.0 * 8, "{} of {}", left, budget);
    }
}

/// The smallest summary beside fresh answers in a budget of so many tokens that somebody names.
fn beside_answers(budget: Tokens) -> Tokens {
    Tokens(8_192.min(budget.0 * 4 / 5))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Whatever came last: words of a person beside the user's rules, answers of tools beside a small summary.
    #[test]
    fn in_a_named_budget_too_what_was_said_last_is_whole_while_it_fits(
        conversation in scene::conversation(),
        policy in scene::policy(),
        share in 0.1f64..0.95,
        setting in scene::setting(),
    ) {
        let estimator = setting.estimator();
        let all = scene::history_tokens(&conversation, setting);
        let budget = Tokens(((all.0 as f64 * share) as u64).max(150));
        let Ok(CompactionOutcome::Compacted(made)) =
            scene::compact(&conversation, &policy, budget, setting, None)
        else {
            return Ok(());
        };
        let claims = scene::claims(&conversation, &policy, setting).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let has_answers = conversation.entries.iter().skip(conversation.newest_start()).any(Entry::has_results);
        let summary = match has_answers {
            true => estimator.to_units(beside_answers(budget)),
            false => claims.summary.min(Units(estimator.to_units(budget).0 / 8)),
        };
        let beside = match has_answers {
            true => claims.requests.max(summary),
            false => claims.requests + summary,
        };
        let needed = claims.pinned + claims.newest + beside;
        let cut = made.receipt.kept.newest_cut;
        if needed <= estimator.to_units(budget) {
            prop_assert_eq!(cut, 0, "{:?} in {}", claims, budget);
        }
        let notes = [ReceiptNote::NewestCut, ReceiptNote::AnswersCut].map(|note| made.receipt.notes.contains(&note));
        prop_assert_eq!(notes.contains(&true), cut > 0);
        // The note tells the true reason: answers alone give way where all would fit. The claims are counted with the longer
        // frame, which a small view does without.
        let is_small = budget < Tokens(600);
        let least = claims.summary.min(Units(estimator.to_units(budget).0 / 8));
        let fits = claims.total() + least <= estimator.to_units(budget);
        prop_assert!(is_small || cut == 0 || notes == [!fits, fits]);
        prop_assert!(cut == 0 || !fits || has_answers);
    }
}

/// A long message beside a summary that would like all of the room.
#[test]
fn a_message_that_takes_most_of_a_named_budget_is_whole() {
    let budget = Tokens(3_000);
    let lasts = [Last::Words, Last::Answer].into_iter();
    let cases = lasts.flat_map(|last| [100, 700, 1_500, 2_500].map(|tokens| (last, tokens)));
    for (last, tokens) in cases {
        let mut entries = dense(40);
        entries.extend(newest(last, tokens));
        let conversation = conversation(entries);
        let made = scene::compact(
            &conversation,
            &Policy::default(),
            budget,
            Setting::PLAIN,
            None,
        );
        let Ok(CompactionOutcome::Compacted(made)) = made else {
            panic!("{made:?}")
        };
        assert!(stays(&made, conversation.entries.len() - 1), "{tokens}");
        assert_eq!(made.receipt.notes, Vec::<ReceiptNote>::new(), "{tokens}");
        let used = made.receipt.tokens_after;
        assert!(used <= budget && used.0 * 10 >= budget.0 * 8, "{used}");
    }
}

/// Exchanges at once, of which each result has so many tokens.
fn parallel(results: usize, tokens: usize) -> Vec<Entry> {
    let exchanges = (0..results).map(|n| exchange(9_990 + n, tokens));
    let (calls, results): (Vec<Entry>, Vec<Entry>) =
        exchanges.map(|[call, result]| (call, result)).unzip();
    let blocks = calls.into_iter().flat_map(|call| call.blocks).collect();
    let mut all = vec![entry("calls".into(), Role::Assistant, blocks)];
    all.extend(results);
    all
}

/// The results of the newest exchange as a view of this budget shows them.
fn newest_results(conversation: &Conversation, budget: u64) -> Vec<String> {
    let (policy, budget) = (Policy::default(), Tokens(budget));
    let made = scene::compact(conversation, &policy, budget, Setting::PLAIN, None);
    let Ok(CompactionOutcome::Compacted(made)) = made else {
        panic!("{made:?}")
    };
    let shown = made.view.shown_entries(conversation);
    let blocks = shown.iter().flat_map(|entry| &entry.blocks);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult { call, content, .. } if call.starts_with("call999") => {
            Some(content.clone())
        }
        _ => None,
    });
    results.collect()
}

/// However small a budget is that somebody names: the newest exchange is told before what is older.
#[test]
fn a_small_named_budget_shows_what_the_newest_calls_came_to() {
    for (results, budget) in [(1, 400), (1, 1_000), (1, 3_000), (3, 1_300), (3, 3_000)] {
        let mut entries = dense(40);
        let short = entries.len();
        entries.extend(parallel(results, 80));
        let whole = conversation(entries);
        let said: Vec<String> = whole.entries[short + 1..]
            .iter()
            .flat_map(|entry| &entry.blocks)
            .map(|block| block.text_parts()[0].to_owned())
            .collect();
        assert_eq!(
            newest_results(&whole, budget),
            said,
            "{results} short in {budget}"
        );

        let mut entries = dense(40);
        entries.extend(parallel(results, 3_000));
        let shown = newest_results(&conversation(entries), budget);
        assert_eq!(shown.len(), results, "{results} long in {budget}");
        for result in shown {
            let (head, rest) = result.split_once(" […").unwrap();
            let (_, tail) = rest.split_once("…] ").unwrap();
            let chars = head.chars().count() + tail.chars().count();
            assert!(
                chars >= 300 && !head.is_empty() && !tail.is_empty(),
                "{results} in {budget}: {result}"
            );
        }
    }
}

/// A log that was pasted between two sentences, which fits no view: the user's rules and the short task have their
/// room before it, and the sentences around it stay.
#[test]
fn a_pasted_log_gives_way_to_the_rules_and_the_task() {
    let rules = [
        "Never touch src/legacy.rs, finance freezes it.",
        "The cleanup must always run at 03:30 UTC.",
        "Do not push, I will push myself on Friday.",
    ];
    let task = "Move the checkout service to the new API. Keep the public paths as they are.";
    let (opening, question) = ("Please review this log:", "Which shard is the slowest?");
    let log = format!("{opening}\n{}\n{question}", prose(7, 9_000));
    let mut entries = vec![Entry::from_text("u", Role::User, task)];
    entries.extend(rules.map(|rule| Entry::from_text("u", Role::User, rule)));
    entries.extend((0..12).flat_map(|i| exchange(i, 150)));
    entries.push(Entry::from_text("a", Role::Assistant, "All read."));
    entries.push(Entry::from_text("u", Role::User, log));
    let conversation = conversation(entries);
    for budget in [1_000, 1_500, 4_000, 8_000].map(Tokens) {
        let policy = Policy::default();
        let made = scene::compact(&conversation, &policy, budget, Setting::PLAIN, None);
        let Ok(CompactionOutcome::Compacted(made)) = made else {
            panic!("{made:?}")
        };
        let shown = made.view.shown_entries(&conversation);
        let said: Vec<String> = shown.iter().map(Entry::plain_text).collect();
        assert_eq!(said[0], task, "{budget}");
        let newest = said.last().unwrap();
        assert!(
            newest.starts_with(opening) && newest.ends_with(question),
            "{budget}: {newest}"
        );
        for rule in rules {
            assert!(
                said.iter().any(|text| text.contains(rule)),
                "{budget}: {rule}"
            );
        }
        assert_eq!(made.receipt.notes, [ReceiptNote::NewestCut], "{budget}");
    }
}

#[test]
fn a_view_of_a_dense_history_uses_its_room() {
    for turns in [30, 60, 120] {
        let conversation = conversation(dense(turns));
        let (budget, made) = compacted(&conversation, &Policy::default());
        assert_eq!(budget, Tokens(6_800));
        let used = made.receipt.tokens_after;
        assert!(used.0 * 10 >= budget.0 * 8, "{used} of {budget} at {turns}");
    }
}

#[test]
fn an_earlier_turn_never_takes_the_room_of_a_later_one() {
    let entries = dense(40);
    let conversation = conversation(entries);
    for share in [0.2, 0.35, 0.5, 0.8] {
        let policy = Policy {
            target_of_trigger: share,
            ..Policy::default()
        };
        let (_, made) = compacted(&conversation, &policy);
        // The first request has a place of its own.
        let kept: Vec<usize> = made
            .view
            .items
            .iter()
            .filter_map(ViewItem::entry_index)
            .collect();
        let rest: Vec<usize> = kept.into_iter().filter(|at| *at > 0).collect();
        let first = rest.first().copied().unwrap();
        let messages = |at: &usize| {
            !matches!(
                conversation.entries[*at].blocks[0],
                Block::ToolCall { .. } | Block::ToolResult { .. }
            )
        };
        let missing = (first..conversation.entries.len())
            .filter(messages)
            .filter(|at| !rest.contains(at));
        assert_eq!(
            missing.collect::<Vec<usize>>(),
            Vec::<usize>::new(),
            "at {share}"
        );
    }
}

#[test]
fn five_compactions_in_one_window_keep_what_they_kept() {
    let mut live = conversation(dense(24));
    let mut all = live.clone();
    let mut prior = None;
    for round in 0..5 {
        let made = |conversation: &Conversation, prior| {
            let policy = Policy::default();
            let made = scene::compact_in(WINDOW, conversation, &policy, Setting::PLAIN, prior);
            match made.1 {
                Ok(CompactionOutcome::Compacted(made)) => made,
                other => panic!("{other:?}"),
            }
        };
        let at_once = made(&all, None).receipt.retention.score.unwrap();
        let made = made(&live, prior.as_ref());
        let score = made.receipt.retention.score.unwrap();
        assert!(at_once >= 0.96, "{at_once} at once in round {round}");
        assert!(
            score >= 0.95 * at_once,
            "{score} of {at_once} in round {round}"
        );
        let next = scene::prior_of(&made, &live, prior.as_ref());
        live.entries = made.view.shown_entries(&live);
        let later: Vec<Entry> = (0..10).flat_map(|i| turn(100 * (round + 1) + i)).collect();
        live.entries.extend(later.iter().cloned());
        all.entries.extend(later);
        prior = Some(next);
    }
}

/// Statements of the user among small talk, one of which replaces another right after it.
fn statements() -> Conversation {
    let stated = [
        "Never restart box-17 by hand.",
        "The staging key is in slot seven.",
        "I prefer small commits over large ones.",
        "FACT: the deadline is 2031-04-05.",
        "FACT: the deadline is 2031-06-07.",
        "Reports go to the desk of Ada Perle.",
    ];
    let mut entries = Vec::new();
    for (n, words) in stated.iter().enumerate() {
        let talk = format!(
            "Looking at part {} of the layout now, no surprise so far.",
            n % 3
        );
        for (role, text) in [
            (Role::User, talk.as_str()),
            (Role::Assistant, "Acknowledged. Continuing with the plan."),
            (Role::User, words),
            (Role::Assistant, "Noted and recorded for later."),
        ] {
            let id = format!("m{}", entries.len());
            entries.push(Entry::from_text(id, role, text));
        }
    }
    conversation(entries)
}

fn view_in(window: u64) -> String {
    let policy = Policy {
        trigger_pct: 1.0,
        target_of_trigger: 0.99,
        hard_cap_buffer: 0,
        ..Policy::default()
    };
    let conversation = statements();
    let window = Tokens(window);
    let (_, made) = scene::compact_in(window, &conversation, &policy, Setting::PLAIN, None);
    let Ok(CompactionOutcome::Compacted(made)) = made else {
        panic!("{made:?}");
    };
    let shown = made.view.shown_entries(&conversation);
    format!("{shown:?}")
}

#[test]
fn a_small_window_holds_what_the_user_stated_before_turns() {
    let text = view_in(170);
    for stated in [
        "box-17",
        "slot seven",
        "small commits",
        "2031-06-07",
        "Ada Perle",
    ] {
        assert!(text.contains(stated), "{stated}: {text}");
    }
}

#[test]
fn a_turn_whose_words_were_replaced_is_not_kept() {
    for window in [150, 170, 200] {
        let text = view_in(window);
        assert!(text.contains("2031-06-07"), "{window}: {text}");
        assert!(!text.contains("2031-04-05"), "{window}: {text}");
    }
}
