use std::time::Instant;

use compact_core::message::{Block, Role};
use compact_core::policy::EconomyMode;
use compact_core::token::{Chars4, EstimatorExt};
use compact_core::usage::{Formula, OnMissing, Semantics, Usage, UsagePolicy};
use compact_core::view::{View, ViewItem};
use compact_core::wire::ReasoningRule;
use jiff::SignedDuration;
use serde_json::Value;

use super::*;
use crate::manager::tests::{Faulty, Heard, exchange, manager};
use crate::port::catalog::MemoryCatalog;
use crate::port::clock::ManualClock;
use crate::port::summarizer::{ScriptedAnswer, ScriptedSummarizer};

const WINDOW: u64 = 8_000;
const LONG: Duration = Duration::from_secs(60);

struct Scene {
    live: Session,
    heard: Arc<Heard>,
    next: usize,
}

impl Scene {
    fn new(change: impl FnOnce(&mut Manager)) -> Scene {
        Scene::on(&WireRules::LENIENT, change)
    }

    fn on(rules: &WireRules, change: impl FnOnce(&mut Manager)) -> Scene {
        let (mut manager, heard) = manager(WINDOW);
        manager.policy.soft_pct = Some(0.5);
        change(&mut manager);
        let mut live = Session::new(Arc::new(manager), "life", rules);
        live.append([Entry::from_text("u0", Role::User, "Port the parser.")])
            .unwrap();
        Scene {
            live,
            heard,
            next: 0,
        }
    }

    /// Says more until the live context has grown by about so many tokens.
    fn grow(&mut self, tokens: usize) {
        for _ in 0..tokens.div_ceil(200) {
            self.live.append(exchange(self.next, 32)).unwrap();
            self.next += 1;
        }
    }

    async fn preflight(&mut self) -> Preflight {
        self.live.preflight().await.unwrap()
    }

    fn heard(&self, name: &str) -> Vec<Value> {
        let events = self.heard.0.lock().unwrap();
        let named = |e: &&Value| e["event"] == format!("compact.{name}");
        events.iter().filter(named).cloned().collect()
    }

    fn tokens(&self, view: &View) -> u64 {
        let entries = view.shown_entries(self.live.session.history());
        Chars4
            .to_tokens(entries.iter().map(|e| Chars4.count_entry(e)).sum())
            .0
    }

    fn is_whole(&self, view: &View) -> bool {
        *view == View::identity(self.live.session.history())
    }

    async fn records(&self) -> usize {
        let catalog = &self.live.manager.catalog;
        catalog.session_records("life").await.unwrap().len()
    }
}

#[tokio::test]
async fn the_soft_threshold_compacts_beside_the_session() {
    let mut scene = Scene::new(|_| {});
    scene.grow(5_000);
    let first = scene.preflight().await;
    assert_eq!(first.decision.verdict, Verdict::CompactSoon);
    assert!(first.receipt.is_none() && scene.is_whole(&first.view));
    let receipt = scene.live.wait_for_background(LONG).await.unwrap();
    let second = scene.preflight().await;
    assert!(scene.tokens(&second.view) < scene.tokens(&first.view));
    assert!(second.view.summary().is_some());
    assert_eq!(scene.heard("swapped")[0]["receipt_id"], receipt.receipt_id);
    assert_eq!(scene.heard("scheduled")[0]["cause"], "soft_threshold");
}

#[tokio::test]
async fn a_background_compaction_delays_no_call() {
    let archive = Faulty::shut();
    let gated = Arc::clone(&archive);
    let mut scene = Scene::new(|m| m.archive = Some(gated));
    scene.grow(5_000);
    let started = Instant::now();
    for _ in 0..5 {
        let ready = scene.preflight().await;
        assert_eq!(ready.decision.verdict, Verdict::CompactSoon);
        assert!(scene.is_whole(&ready.view));
        scene.grow(200);
    }
    assert!(scene.live.is_compacting());
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(scene.heard("scheduled").len(), 1);
    archive.open.add_permits(1);
    // What was said meanwhile stands behind the view.
    let said = scene.live.session.history().entries.len();
    scene.live.wait_for_background(LONG).await.unwrap();
    let after = scene.preflight().await;
    let tail: Vec<ViewItem> = (said - 10..said)
        .map(|entry| ViewItem::Kept { entry })
        .collect();
    assert_eq!(after.view.items[after.view.items.len() - 10..], tail);
    assert_eq!(scene.heard("swapped")[0]["appended"], 10);
}

#[tokio::test]
async fn a_hanging_summarizer_delays_no_call_and_is_not_waited_for_beyond_the_limit() {
    let mut scene = Scene::new(|m| {
        m.summarizer = Some(Arc::new(ScriptedSummarizer::new([ScriptedAnswer::Hangs])));
        m.policy.wait_seconds = 1;
    });
    scene.grow(5_000);
    assert!(scene.preflight().await.receipt.is_none());
    scene.grow(2_500);
    let started = Instant::now();
    let now = scene.preflight().await;
    assert!(started.elapsed() >= Duration::from_secs(1));
    // The trigger was reached: the view is made of the ledger alone.
    assert_eq!(now.receipt.unwrap().summarizer, "extractive");
    assert_eq!(scene.heard("discarded")[0]["reason"], "it took too long");
    assert!(!scene.live.is_compacting());
    assert_eq!(scene.records().await, 1);
}

#[tokio::test]
async fn a_late_summary_fails_where_a_summary_is_a_condition() {
    let mut scene = Scene::new(|m| {
        m.summarizer = Some(Arc::new(ScriptedSummarizer::new([ScriptedAnswer::Hangs])));
        m.policy.wait_seconds = 0;
        m.policy.on_summary_failure = OnSummaryFailure::Fail;
    });
    scene.grow(5_000);
    scene.preflight().await;
    scene.grow(2_500);
    let now = scene.preflight().await;
    assert!(now.receipt.is_none() && scene.is_whole(&now.view));
    assert_eq!(scene.records().await, 0);
}

#[tokio::test]
async fn the_trigger_waits_for_what_runs() {
    let archive = Faulty::shut();
    let gated = Arc::clone(&archive);
    let mut scene = Scene::new(|m| m.archive = Some(gated));
    scene.grow(5_000);
    scene.preflight().await;
    scene.grow(2_500);
    // It runs once the call waits.
    let opener = tokio::spawn(async move { archive.open.add_permits(100) });
    let now = scene.preflight().await;
    opener.await.unwrap();
    assert!(
        now.decision.verdict <= Verdict::CompactSoon,
        "{:?}",
        now.decision
    );
    assert!(now.receipt.is_some());
    assert_eq!(scene.heard("swapped").len(), 1);
    assert_eq!(scene.records().await, 1);
}

#[tokio::test]
async fn what_is_swapped_in_and_full_again_is_compacted_at_once() {
    let archive = Faulty::shut();
    let gated = Arc::clone(&archive);
    let mut scene = Scene::new(|m| m.archive = Some(gated));
    scene.grow(5_000);
    scene.preflight().await;
    scene.grow(7_000);
    archive.open.add_permits(100);
    let now = scene.preflight().await;
    assert_eq!(scene.heard("swapped").len(), 1);
    assert_eq!(scene.records().await, 2);
    assert!(scene.tokens(&now.view) < WINDOW / 2);
}

#[tokio::test]
async fn an_edited_prefix_throws_the_finished_view_away() {
    let mut scene = Scene::new(|_| {});
    scene.grow(5_000);
    scene.preflight().await;
    let mut edited = scene.live.session.history().clone();
    edited.entries[0] = Entry::from_text("u0", Role::User, "Port the lexer instead.");
    scene.live.replace(edited).unwrap();
    assert!(scene.live.wait_for_background(LONG).await.is_none());
    assert_eq!(
        scene.heard("discarded")[0]["reason"],
        "the history before it was edited"
    );
    assert_eq!(scene.records().await, 0);
    assert!(scene.heard("swapped").is_empty());
}

#[tokio::test]
async fn a_rewound_history_throws_the_finished_view_away() {
    let mut scene = Scene::new(|_| {});
    scene.grow(5_000);
    scene.preflight().await;
    let mut rewound = scene.live.session.history().clone();
    rewound.entries.truncate(3);
    scene.live.replace(rewound).unwrap();
    assert!(scene.live.wait_for_background(LONG).await.is_none());
    let next = scene.preflight().await;
    assert!(scene.is_whole(&next.view));
}

#[tokio::test]
async fn what_was_reasoned_before_the_swap_is_stripped_where_it_is_bound() {
    let rules = WireRules {
        reasoning: ReasoningRule::StripAfterEdit,
        ..WireRules::LENIENT
    };
    let mut scene = Scene::on(&rules, |_| {});
    scene.grow(5_000);
    scene.preflight().await;
    let mut thought = Entry::from_text("a", Role::Assistant, "Done with the lexer.");
    thought.blocks.insert(
        0,
        Block::Reasoning {
            text: "bound to the old prefix".into(),
            replay_bytes: 64,
        },
    );
    scene.live.append([thought.clone()]).unwrap();
    scene.live.wait_for_background(LONG).await.unwrap();
    let after = scene.preflight().await;
    let shown = after.view.shown_entries(scene.live.session.history());
    assert_eq!(shown.last().unwrap().blocks, thought.blocks[1..]);
    // What is reasoned under the new prefix stays.
    scene.live.append([thought.clone()]).unwrap();
    let next = scene.preflight().await;
    let shown = next.view.shown_entries(scene.live.session.history());
    assert_eq!(shown.last().unwrap().blocks, thought.blocks);
}

#[tokio::test]
async fn input_during_a_compaction_is_queued_or_refused() {
    for (during, is_admitted) in [
        (DuringCompaction::Queue, true),
        (DuringCompaction::Reject, false),
    ] {
        let archive = Faulty::shut();
        let gated = Arc::clone(&archive);
        let mut scene = Scene::new(|m| {
            m.archive = Some(gated);
            m.policy.during_compaction = during;
        });
        scene.grow(5_000);
        scene.preflight().await;
        let words = || [Entry::from_text("u1", Role::User, "And the tests?")];
        assert_eq!(scene.live.append(words()).is_ok(), is_admitted);
        // A tool's answer is no input.
        scene.grow(200);
        archive.open.add_permits(1);
        scene.live.wait_for_background(LONG).await.unwrap();
        assert!(!scene.live.is_compacting());
        assert!(scene.live.append(words()).is_ok());
    }
}

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let archive = Faulty::shut();
    let mut scene = Scene::new(|m| {
        m.archive = Some(archive);
        m.policy.during_compaction = DuringCompaction::Reject;
    });
    scene.grow(5_000);
    scene.preflight().await;
    let mut longer = scene.live.session.history().clone();
    longer
        .entries
        .push(Entry::from_text("u1", Role::User, "And the tests?"));
    let error = scene.live.replace(longer).unwrap_err().to_string();
    assert!(
        error.contains("'life' is being compacted") && error.contains("try again"),
        "{error}"
    );
}

#[tokio::test]
async fn an_idle_session_is_compacted_when_the_policy_says_so() {
    let quiet = Duration::from_secs(300);
    let mut never = Scene::new(|_| {});
    never.grow(5_000);
    assert!(!never.live.report_idle(quiet).await);
    let mut scene = Scene::new(|m| {
        m.policy.soft_pct = None;
        m.policy.idle_seconds = Some(300);
    });
    scene.grow(2_000);
    assert!(!scene.live.report_idle(quiet).await, "there is room");
    scene.grow(3_000);
    assert!(
        !scene.live.report_idle(Duration::from_secs(299)).await,
        "not yet"
    );
    assert!(scene.live.report_idle(quiet).await);
    assert!(!scene.live.report_idle(quiet).await, "it runs already");
    assert!(scene.live.wait_for_background(LONG).await.is_some());
    assert!(!scene.live.report_idle(quiet).await, "the view is fresh");
    assert_eq!(scene.heard("scheduled")[0]["cause"], "idle");
}

fn said(tokens: Option<u64>, limit: Option<u64>) -> Overflow {
    Overflow {
        tokens: tokens.map(Tokens),
        limit: limit.map(Tokens),
        sign: OverflowSign::Said,
    }
}

#[tokio::test]
async fn a_refused_prompt_is_made_smaller_once_without_asking_a_model() {
    let mut scene = Scene::new(|m| {
        m.policy.soft_pct = None;
        m.summarizer = Some(Arc::new(ScriptedSummarizer::new([ScriptedAnswer::Hangs])));
    });
    scene.grow(6_000);
    let sent = scene.preflight().await;
    let retry = scene
        .live
        .overflowed(said(None, None))
        .await
        .unwrap()
        .unwrap();
    assert!(scene.tokens(&retry.view) * 2 <= scene.tokens(&sent.view));
    assert_eq!(retry.receipt.unwrap().summarizer, "extractive");
    assert!(
        scene
            .live
            .overflowed(said(None, None))
            .await
            .unwrap()
            .is_none()
    );
    let overflowed = scene.heard("overflowed");
    let told: Vec<&str> = overflowed
        .iter()
        .filter_map(|e| e["answer"].as_str())
        .collect();
    assert_eq!(told, ["smaller", "given_up"]);
    // Another request may be refused again.
    scene.grow(3_000);
    scene.preflight().await;
    assert!(
        scene
            .live
            .overflowed(said(None, None))
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn what_a_refusal_tells_is_learned() {
    let mut scene = Scene::new(|m| m.policy.soft_pct = None);
    scene.grow(6_000);
    let sent = scene.preflight().await;
    let ours = scene.tokens(&sent.view);
    // The provider counts twice as many tokens, and takes half of what was configured.
    let overflow = said(Some(ours * 2), Some(WINDOW / 2));
    let retry = scene.live.overflowed(overflow).await.unwrap().unwrap();
    assert!(
        scene.tokens(&retry.view) * 2 <= WINDOW / 2,
        "{}",
        scene.tokens(&retry.view)
    );
    assert_eq!(scene.live.manager.window, Tokens(WINDOW / 2));
    scene.grow(3_000);
    assert!(
        scene.preflight().await.receipt.is_some(),
        "the smaller window counts"
    );
}

/// A provider that refuses a prompt gets the same smaller one from every process that is asked anew.
#[tokio::test]
async fn a_prompt_that_is_refused_again_after_a_restart_is_made_as_small_and_no_smaller() {
    let mut scene = Scene::new(|m| m.policy.soft_pct = None);
    scene.grow(6_000);
    let said_before = scene.live.session.history().entries.clone();
    let mut shown = Vec::new();
    for _ in 0..4 {
        let manager = Arc::clone(&scene.live.manager);
        scene.live = Session::new(manager, "life", &WireRules::LENIENT);
        scene.live.append(said_before.clone()).unwrap();
        let sent = scene.preflight().await;
        assert!(scene.is_whole(&sent.view));
        let overflow = said(Some(scene.tokens(&sent.view)), Some(WINDOW / 2));
        let retry = scene.live.overflowed(overflow).await.unwrap().unwrap();
        shown.push(retry.view.shown_entries(scene.live.session.history()));
        scene.live.set_window(Tokens(WINDOW));
    }
    assert!(shown.iter().all(|view| *view == shown[0]));
    assert_eq!(scene.records().await, 1);
}

#[tokio::test]
async fn an_empty_stream_of_a_small_prompt_is_no_overflow() {
    let silent = Overflow {
        sign: OverflowSign::Silent,
        ..said(None, None)
    };
    let mut scene = Scene::new(|_| {});
    scene.grow(1_000);
    scene.preflight().await;
    assert!(scene.live.overflowed(silent).await.unwrap().is_none());
    scene.grow(4_000);
    scene.preflight().await;
    assert!(scene.live.overflowed(silent).await.unwrap().is_some());
}

#[tokio::test]
async fn pinned_content_that_fills_the_window_makes_no_loop() {
    let mut scene = Scene::new(|m| m.policy.hard_cap_buffer = 0);
    let mut pinned = Entry::from_text("p", Role::User, "rule ".repeat(5_700));
    pinned.meta.flags.insert("protected".into());
    scene.live.append([pinned]).unwrap();
    scene.grow(1_000);
    let mut made = 0;
    for _ in 0..10 {
        made += usize::from(scene.preflight().await.receipt.is_some());
        scene
            .live
            .append([Entry::from_text("a", Role::Assistant, "ok")])
            .unwrap();
    }
    assert_eq!(
        made, 1,
        "the trigger is still reached, and no second view would help"
    );
}

#[tokio::test]
async fn a_failure_is_remembered_across_restarts() {
    let mut scene = Scene::new(|m: &mut Manager| {
        m.summarizer = Some(Arc::new(ScriptedSummarizer::new([ScriptedAnswer::Says(
            String::new(),
        )])));
        m.policy.on_summary_failure = OnSummaryFailure::Fail;
        m.policy.soft_pct = None;
    });
    scene.grow(9_000);
    assert!(scene.live.preflight().await.is_err());
    let mut restarted = Session::new(Arc::clone(&scene.live.manager), "life", &WireRules::LENIENT);
    restarted
        .append(scene.live.session.history().entries.clone())
        .unwrap();
    let next = restarted.preflight().await.unwrap();
    assert!(next.receipt.is_none());
    assert_eq!(scene.heard("failed").len(), 1);
    // A person may insist, and a new turn may try.
    assert!(restarted.manual_compact(None).await.is_err());
    restarted
        .append([Entry::from_text("u9", Role::User, "Go on.")])
        .unwrap();
    assert!(restarted.preflight().await.is_err());
    assert_eq!(scene.heard("failed").len(), 3);
}

#[tokio::test]
async fn a_failure_beside_the_session_is_told_and_not_repeated() {
    let mut scene = Scene::new(|m| {
        m.summarizer = Some(Arc::new(ScriptedSummarizer::new([ScriptedAnswer::Says(
            String::new(),
        )])));
        m.policy.on_summary_failure = OnSummaryFailure::Fail;
    });
    scene.grow(5_000);
    for _ in 0..4 {
        let ready = scene.preflight().await;
        assert!(scene.is_whole(&ready.view));
        scene.live.wait_for_background(LONG).await;
    }
    assert_eq!(scene.heard("failed").len(), 1);
    assert_eq!(scene.heard("scheduled").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_leaves_the_session_as_it_was() {
    let archive = Faulty::shut();
    let gated = Arc::clone(&archive);
    let mut scene = Scene::new(|m| {
        m.policy.soft_pct = None;
        m.archive = Some(gated);
    });
    scene.grow(7_500);
    let given_up = tokio::time::timeout(Duration::from_millis(50), scene.live.preflight()).await;
    assert!(given_up.is_err());
    assert_eq!(scene.records().await, 0);
    assert!(scene.is_whole(&scene.live.session.view()));
    archive.open.add_permits(1);
    assert!(scene.preflight().await.receipt.is_some());
}

#[tokio::test]
async fn a_call_that_is_given_up_while_it_waits_loses_nothing_that_runs() {
    let archive = Faulty::shut();
    let gated = Arc::clone(&archive);
    let mut scene = Scene::new(|m| m.archive = Some(gated));
    scene.grow(5_000);
    scene.preflight().await;
    scene.grow(2_500);
    let given_up = tokio::time::timeout(Duration::from_millis(50), scene.live.preflight()).await;
    assert!(given_up.is_err() && scene.live.is_compacting());
    archive.open.add_permits(100);
    scene.preflight().await;
    assert_eq!(scene.heard("scheduled").len(), 1);
    assert_eq!(scene.heard("swapped").len(), 1);
}

#[tokio::test]
async fn what_was_recorded_and_not_shown_is_taken_over() {
    let mut scene = Scene::new(|m| m.policy.soft_pct = None);
    scene.grow(7_500);
    assert!(scene.preflight().await.receipt.is_some());
    scene.grow(3_500);
    let manager = Arc::clone(&scene.live.manager);
    let decision = manager.load_and_decide(&mut scene.live.session).await;
    let snapshot = scene.live.session.snapshot(&decision, &*manager.estimator);
    let unseen = manager
        .compact_snapshot(snapshot, &Default::default(), None)
        .await;
    assert!(unseen.unwrap().is_some());
    scene.grow(2_500);
    let ready = scene.preflight().await;
    assert!(scene.tokens(&ready.view) <= WINDOW);
    assert_eq!(scene.records().await, 2, "it is not made again");
    let whole = manager.restore("life").await.unwrap();
    let lines = whole.bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    let restored: Vec<Entry> = lines.map(|l| serde_json::from_slice(l).unwrap()).collect();
    let source = &scene.live.session.history().entries;
    assert!(restored.len() > 1 && source.starts_with(&restored));
}

#[tokio::test]
async fn a_session_that_ends_gives_up_what_runs() {
    let archive = Faulty::shut();
    let gated = Arc::clone(&archive);
    let mut scene = Scene::new(|m| m.archive = Some(gated));
    scene.grow(5_000);
    scene.preflight().await;
    let catalog = Arc::clone(&scene.live.manager.catalog);
    let in_use = Arc::downgrade(&scene.live.manager);
    drop(scene);
    archive.open.add_permits(1);
    while in_use.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(catalog.session_records("life").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_session_of_many_windows_lives_on_background_compactions_alone() {
    let mut scene = Scene::new(|m| m.policy.wait_seconds = 10);
    let (mut swapped, mut sent) = (0, 0);
    for call in 0..120 {
        scene.grow(200);
        let ready = scene.preflight().await;
        assert!(scene.tokens(&ready.view) <= WINDOW, "call {call}");
        swapped += usize::from(ready.receipt.is_some());
        sent += scene.tokens(&ready.view);
        tokio::task::yield_now().await;
    }
    assert!(swapped >= 3, "{swapped}");
    assert!(sent > 10 * WINDOW);
    assert!(scene.heard("failed").is_empty());
    let whole = scene.live.manager.restore("life").await.unwrap();
    let lines = whole.bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    let restored: Vec<Entry> = lines.map(|l| serde_json::from_slice(l).unwrap()).collect();
    let source = &scene.live.session.history().entries;
    assert_eq!(restored, source[..restored.len()]);
    assert!(restored.len() * 2 > source.len());
}

#[tokio::test]
async fn growth_that_outruns_the_budget_is_forecast() {
    let mut scene = Scene::new(|m| m.policy.soft_pct = None);
    for _ in 0..5 {
        scene.grow(1_000);
        scene.preflight().await;
    }
    let told: Vec<u64> = scene
        .heard("forecast")
        .iter()
        .map(|e| e["calls_left"].as_u64().unwrap())
        .collect();
    assert_eq!(told, [3, 2]);
    assert_eq!(scene.heard("forecast")[0]["outruns_budget"], false);
    let mut steep = Scene::new(|m| m.policy.soft_pct = None);
    steep.preflight().await;
    steep.grow(4_200);
    steep.preflight().await;
    let told = &steep.heard("forecast")[0];
    assert_eq!(
        (&told["calls_left"], &told["outruns_budget"]),
        (&0.into(), &true.into())
    );
}

fn reported(input: i64, output: i64, cache_read: i64) -> Option<ReportedUsage> {
    Some(ReportedUsage {
        usage: Usage::of_turn(input, output, cache_read),
        semantics: Semantics::LastRequest,
    })
}

#[tokio::test]
async fn a_report_counts_and_what_was_said_since_is_added() {
    let mut scene = Scene::new(|_| {});
    scene.grow(1_000);
    let before = scene.preflight().await.decision.tokens;
    scene.live.observe(reported(100, 50, 3_000));
    scene.grow(200);
    let after = scene.preflight().await.decision.tokens;
    let growth = scene.tokens(&View::identity(scene.live.session.history())) - before.0;
    assert!(after.0.abs_diff(3_100 + growth) <= 1, "{after} {growth}");
    let told = &scene.heard("usage")[0];
    assert_eq!(told["turn_input"], 100);
    assert_eq!(told["cache_read_tokens"], 3_000);
    assert_eq!(told["max"], WINDOW);
    assert_eq!(told["pressure"], 3_100.0 / WINDOW as f64);
}

#[tokio::test]
async fn a_new_context_counts_from_zero() {
    let mut scene = Scene::new(|m| {
        m.policy.soft_pct = None;
        m.policy.usage = UsagePolicy {
            semantics: Some(Semantics::PerTurnDelta),
            formula: Formula::InputOutput,
            ..UsagePolicy::default()
        };
    });
    scene.grow(3_000);
    scene.preflight().await;
    for _ in 0..2 {
        scene.live.observe(reported(2_000, 1_500, 0));
    }
    let pressed = scene.preflight().await;
    assert_eq!(pressed.decision.verdict, Verdict::CompactNow);
    assert_eq!(pressed.decision.tokens, Tokens(7_000));
    // The estimator alone would have seen no need.
    assert!(scene.tokens(&pressed.view) * 7_000 < 3_400 * 3_000);
    assert!(pressed.receipt.is_some());
    assert_eq!(scene.live.session.usage().totals(), Usage::default());
    assert_eq!(scene.heard("usage_reset").len(), 1);
    scene.live.observe(reported(10, 5, 0));
    assert!(scene.preflight().await.decision.tokens < Tokens(7_000));
    assert_eq!(scene.live.session.usage().input_tokens, 10);
}

#[tokio::test]
async fn missing_usage_disables_guesses_or_estimates() {
    let tokens = |on_missing| async move {
        let mut scene = Scene::new(|m| m.policy.usage.on_missing = on_missing);
        scene.grow(7_500);
        scene.preflight().await;
        scene.live.observe(reported(6_000, 0, 0));
        scene.live.observe(None);
        assert_eq!(scene.heard("usage_missing").len(), 1);
        assert_eq!(scene.heard("usage_missing")[0]["severity"], "warning");
        scene.live.manager.decide_pressure(&mut scene.live.session)
    };
    let off = tokens(OnMissing::Disable).await;
    assert_eq!((off.verdict, off.tokens), (Verdict::Stay, Tokens(0)));
    assert!(off.reason.contains("not tracked"), "{}", off.reason);
    let (guess, estimate) = (
        tokens(OnMissing::Heuristic).await,
        tokens(OnMissing::Estimator).await,
    );
    assert!(
        guess.tokens > estimate.tokens,
        "framing counts in the guess"
    );
    assert!(estimate.tokens.0 > 0);
}

#[tokio::test]
async fn a_report_switches_tracking_on_only_where_the_policy_says_so() {
    for reenable in [false, true] {
        let mut scene = Scene::new(|m| {
            m.policy.usage.on_missing = OnMissing::Disable;
            m.policy.usage.reenable_on_usage = reenable;
        });
        scene.grow(1_000);
        scene.preflight().await;
        scene.live.observe(None);
        scene.live.observe(reported(2_000, 0, 0));
        assert_eq!(scene.live.session.usage().is_tracking_enabled(), reenable);
        assert_eq!(scene.preflight().await.decision.tokens.0 > 0, reenable);
    }
}

#[tokio::test]
async fn a_report_about_a_view_that_is_gone_does_not_count() {
    let mut scene = Scene::new(|m| m.policy.soft_pct = None);
    scene.grow(6_000);
    scene.preflight().await;
    scene.live.observe(reported(6_100, 0, 0));
    scene.live.manual_compact(None).await.unwrap();
    let after = scene.preflight().await;
    assert_eq!(after.decision.tokens.0, scene.tokens(&after.view));
}

/// A session whose model and prices are known, and a clock to pass the time.
fn priced_scene(mode: EconomyMode) -> (Scene, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let shared = Arc::clone(&clock);
    let mut scene = Scene::new(move |m| {
        m.policy.soft_pct = None;
        m.policy.target_of_trigger = 0.25;
        m.policy.economy.mode = Some(mode);
        m.clock = shared;
    });
    let mut priced = scene.live.session.history().clone();
    priced.model = Some("claude-sonnet-4-5".to_owned());
    scene.live.replace(priced).unwrap();
    (scene, clock)
}

fn cached_report(tokens: u64) -> Option<ReportedUsage> {
    let usage = Usage {
        cache_read_tokens: tokens - 10,
        input_tokens: 10,
        ..Usage::default()
    };
    let semantics = Semantics::LastRequest;
    Some(ReportedUsage { usage, semantics })
}

/// With a warm cache a compaction waits until enough requests are expected to pay for it.
#[tokio::test]
async fn a_warm_cache_is_compacted_when_it_pays_and_a_cold_one_at_once() {
    let (mut scene, clock) = priced_scene(EconomyMode::Act);
    scene.grow(4_500);
    assert!(
        scene.preflight().await.receipt.is_none(),
        "nothing is known yet"
    );
    scene.live.observe(cached_report(4_500));
    let early = scene.preflight().await;
    assert!(early.receipt.is_none());
    let told = &early.decision.reason;
    assert!(
        told.contains("does not pay: n* = ") && told.contains("n = 1 "),
        "{told}"
    );
    clock.advance(SignedDuration::from_secs(301));
    let cold = scene.preflight().await;
    let told = &cold.decision.reason;
    assert!(
        told.contains("pays: n* = 0.0") && told.contains("cold cache"),
        "{told}"
    );
    assert_eq!(cold.decision.cause, Some(CompactionCause::Economy));
    assert!(cold.receipt.is_some());

    let (mut scene, _) = priced_scene(EconomyMode::Act);
    scene.grow(4_500);
    let mut asked = 0;
    while scene.preflight().await.receipt.is_none() && asked < 40 {
        scene.live.observe(cached_report(4_500));
        asked += 1;
    }
    assert!((5..40).contains(&asked), "after {asked} requests");
}

#[tokio::test]
async fn an_economy_that_only_observes_changes_nothing() {
    let (mut scene, clock) = priced_scene(EconomyMode::Observe);
    scene.grow(4_500);
    scene.preflight().await;
    scene.live.observe(cached_report(4_500));
    clock.advance(SignedDuration::from_secs(301));
    let ready = scene.preflight().await;
    assert!(ready.receipt.is_none() && scene.is_whole(&ready.view));
    let told = &ready.decision.reason;
    assert!(told.contains("a compaction pays: n* = 0.0"), "{told}");
}

/// Sessions of a project measure how long the next one will go on, in whatever process it is.
#[tokio::test]
async fn how_long_a_session_goes_on_is_measured_by_those_before_it() {
    let catalog = Arc::new(MemoryCatalog::default());
    let scene_of = |mode, folder: &str| {
        let (mut scene, _) = priced_scene(mode);
        let mut manager = Manager::clone(&scene.live.manager);
        manager.catalog = Arc::clone(&catalog) as Arc<_>;
        scene.live.manager = Arc::new(manager);
        let mut history = scene.live.session.history().clone();
        let environment = format!("<cwd>{folder}</cwd>");
        history
            .entries
            .insert(0, Entry::from_text("env", Role::System, environment));
        scene.live.replace(history).unwrap();
        scene
    };
    for _ in 0..6 {
        let mut scene = scene_of(EconomyMode::Observe, "/home/a/ledger");
        for _ in 0..32 {
            scene.preflight().await;
            scene.live.observe(cached_report(400));
        }
        scene.preflight().await;
    }
    let reason_in = async |folder: &str| {
        let mut scene = scene_of(EconomyMode::Act, folder);
        scene.grow(4_500);
        scene.preflight().await;
        scene.live.observe(cached_report(4_500));
        scene.preflight().await.decision.reason
    };
    let known = reason_in("/home/a/ledger").await;
    assert!(
        known.contains("a compaction pays") && known.contains("n = 29 "),
        "{known}"
    );
    let unknown = reason_in("/home/a/other").await;
    assert!(
        unknown.contains("does not pay") && unknown.contains("n = 1 "),
        "{unknown}"
    );
}
