use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use compact_core::event::{Event, EventKind, TraceContext};
use compact_core::message::{Block, EntryId, EntryKind, EntryMeta, Role};
use compact_core::policy::Policy;
use compact_core::profile::Profile;
use compact_core::redact::Redactor;
use compact_core::token::Chars4;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::record::PATIENCE;
use super::*;
use crate::manager::ArchiveMode;
use crate::manager::tests::{Faulty, Heard};
use crate::port::catalog::MemoryCatalog;
use crate::port::event::EventSink;
use crate::port::summarizer::{ScriptedAnswer, ScriptedSummarizer, SummarizerError};
use crate::port::transcript::{Artifact, MemoryTranscripts, Transcript, TranscriptError};

const WINDOW: u64 = 8_000;

struct Scene {
    session: HardReset,
    heard: Arc<Heard>,
    archive: Arc<Faulty>,
    files: Arc<MemoryTranscripts>,
}

fn manager(heard: &Arc<Heard>, archive: &Arc<Faulty>) -> Manager {
    let redactor = Arc::new(Redactor::new(&Default::default()).unwrap());
    let catalog = Arc::new(MemoryCatalog::default());
    Manager::new(catalog, Arc::new(Chars4), redactor, Tokens(WINDOW))
        .with_archive(Some(archive.clone()))
        .with_sink(heard.clone())
        .with_policy(Profile::HardReset.policy())
}

fn base() -> Conversation {
    Conversation {
        model: Some("gpt-4o".to_owned()),
        entries: vec![Entry::from_text("s", Role::System, "You are Qbit.")],
        ..Conversation::default()
    }
}

impl Scene {
    fn new() -> Scene {
        let files = Arc::new(MemoryTranscripts::default());
        let mut scene = Scene::with(Some(files.clone()));
        scene.files = files;
        scene
    }

    fn with(store: Option<Arc<dyn TranscriptStore>>) -> Scene {
        let heard = Arc::new(Heard::default());
        let archive = Arc::new(Faulty::default());
        let manager = manager(&heard, &archive);
        Scene {
            session: HardReset::new("s-1", base(), &WireRules::LENIENT, manager, store),
            heard,
            archive,
            files: Arc::default(),
        }
    }

    /// Begins a turn.
    async fn ask(&mut self, text: &str) -> Result<ResetCheck, Error> {
        self.session.begin_turn(user(text)).await
    }

    /// Grows the history to about so many tokens, in finished exchanges.
    fn grow(&mut self, tokens: u64) {
        let mut n = self.session.messages().entries.len();
        while self.session.account().total().0 < tokens {
            let missing = tokens - self.session.account().total().0;
            self.session.append(exchange(n, missing.min(400)));
            n += 1;
        }
    }

    fn fail(&self, fails: bool) {
        self.archive.fails.store(fails, Ordering::Relaxed);
    }

    async fn transcript(&self) -> Vec<Value> {
        self.files.read("s-1").await.unwrap().events
    }
}

fn user(text: &str) -> Entry {
    Entry::from_text(text, Role::User, text)
}

fn exchange(n: usize, tokens: u64) -> [Entry; 2] {
    let entry = |name: &str, role, block| Entry {
        id: EntryId(format!("{name}{n}")),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    };
    let call = Block::ToolCall {
        id: format!("call{n}"),
        name: "read_file".to_owned(),
        arguments: format!("{{\"path\":\"src/module_{n}.rs\"}}"),
    };
    let result = Block::ToolResult {
        call: format!("call{n}"),
        content: format!("pub fn handler_{n}() {{}} // ").repeat(tokens as usize * 4 / 30 + 1),
        is_error: false,
    };
    [
        entry("c", Role::Assistant, call),
        entry("r", Role::Tool, result),
    ]
}

fn compacted(checked: Result<ResetCheck, Error>) -> FinishedReset {
    match checked.unwrap() {
        ResetCheck::Compacted(reset) => *reset,
        other => panic!("{other:?}"),
    }
}

fn failed(checked: Result<ResetCheck, Error>) {
    assert!(matches!(checked.unwrap(), ResetCheck::Failed(_)));
}

fn unchanged(checked: Result<ResetCheck, Error>) {
    assert!(matches!(checked.unwrap(), ResetCheck::Unchanged));
}

#[tokio::test]
async fn history_is_cleared_and_the_prompt_ends_with_the_summary() {
    let mut scene = Scene::new();
    unchanged(scene.ask("Port the parser, keep the public API.").await);
    scene.grow(6_500);
    compacted(scene.ask("Now the lexer.").await);
    let messages = &scene.session.messages().entries;
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert_eq!(messages[0], base().entries[0]);
    assert_eq!(messages[1].role, Role::System);
    let prompt = messages[1].plain_text();
    assert!(prompt.starts_with(
        "## Continuation\nThis is a continuation of a previous session. The conversation so far \
         has been compacted into the summary below.\n\n<summary>\n"
    ));
    assert!(prompt.ends_with("\n</summary>"), "{prompt}");
    assert!(
        prompt.contains("Port the parser, keep the public API."),
        "{prompt}"
    );
    assert_eq!(messages[2], user("Now the lexer."));
}

#[tokio::test]
async fn it_fires_above_four_fifths_and_not_at_them() {
    for (reported, fires) in [(6_400 - 2, false), (6_400 - 1, true)] {
        let mut scene = Scene::new();
        unchanged(scene.ask("go").await);
        scene.grow(3_000);
        scene.session.report_usage(Usage::of_turn(reported, 100, 0));
        // Two tokens more, and the count stands at the threshold or above it.
        let checked = scene.session.begin_turn(user("and on?")).await.unwrap();
        assert_eq!(
            matches!(checked, ResetCheck::Compacted(_)),
            fires,
            "{reported}"
        );
    }
}

#[tokio::test]
async fn the_providers_count_triggers_before_the_next_turn() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(3_000);
    scene.session.report_usage(Usage::of_turn(10, 100, 6_990));
    // Not in the middle of the turn.
    unchanged(scene.session.before_call().await);
    compacted(scene.ask("next").await);
    let event = scene.heard.last("context_compacted").unwrap();
    assert_eq!(event["trigger_reason"], "provider_usage");
    assert_eq!(event["tokens_before"], 7_001);
    // The count of the old context says nothing about the new one.
    assert_eq!(scene.session.state().last_input_tokens, None);
    unchanged(scene.ask("again").await);
}

#[tokio::test]
async fn without_usage_the_estimate_triggers() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(6_500);
    compacted(scene.ask("next").await);
    let event = scene.heard.last("context_compacted").unwrap();
    assert_eq!(event["trigger_reason"], "heuristic");
    assert!(event["tokens_before"].as_u64().unwrap() >= 6_500);
}

#[tokio::test]
async fn the_limit_is_that_of_the_current_model() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.session.report_usage(Usage::of_turn(110_000, 0, 0));
    scene.session.set_model("claude-3-opus", None);
    scene.grow(3_000);
    unchanged(scene.ask("200,000 is room enough").await);
    scene.session.set_model("gpt-4o", None);
    compacted(scene.ask("128,000 is not").await);
    let event = scene.heard.last("context_compacted").unwrap();
    assert_eq!(
        (&event["model"], &event["max"]),
        (&json!("gpt-4o"), &json!(128_000))
    );
    // What is configured wins.
    scene.session.set_model("gpt-4o", Some(Tokens(1_000)));
    assert_eq!(scene.session.manager.window, Tokens(1_000));
}

#[tokio::test]
async fn a_turn_is_interrupted_only_when_the_call_would_be_refused() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(7_000);
    unchanged(scene.session.before_call().await);
    scene.grow(8_200);
    let [call, result] = exchange(999, 10);
    scene.session.append([call]);
    unchanged(scene.session.before_call().await);
    scene.session.append([result]);
    compacted(scene.session.before_call().await);
    assert_eq!(scene.session.messages().entries.last(), Some(&user("go")));
}

#[tokio::test]
async fn the_steps_of_a_reset() {
    let mut scene = Scene::new();
    unchanged(scene.ask("Port the parser.").await);
    scene
        .session
        .record_event(&json!({"type": "tool_denied", "request_id": "r9", "reason": "no"}));
    scene.grow(6_500);
    let reset = compacted(scene.ask("Now the lexer.").await);
    let input = scene
        .files
        .artifact_text(reset.summarizer_input.as_ref().unwrap())
        .unwrap();
    assert!(input.starts_with("[turn 001] USER:\nPort the parser.\n\n[turn 001] TOOL_DENIED:\n"));
    assert!(
        input.ends_with("[turn 002] USER:\nNow the lexer.\n"),
        "{input}"
    );
    let summary = scene
        .files
        .artifact_text(reset.summary.as_ref().unwrap())
        .unwrap();
    assert!(summary.contains("Port the parser."), "{summary}");
    assert!(!summary.contains("<COMPACT-SUMMARY"), "{summary}");
    let told = scene.heard.last("context_compacted").unwrap();
    for (field, value) in [
        ("type", json!("context_compacted")),
        ("session_id", json!("s-1")),
        ("model", json!("gpt-4o")),
        ("transcript_path", json!("memory:transcript-s-1")),
        ("summarizer_input_path", json!(reset.summarizer_input)),
        ("summary_path", json!(reset.summary)),
        ("compaction_count", json!(1)),
    ] {
        assert_eq!(told[field], value, "{field}");
    }
    assert!(!scene.session.state().attempted_this_turn);
    assert_eq!(*scene.session.input_state().borrow(), InputState::Open);
    let names: Vec<Value> = scene
        .transcript()
        .await
        .iter()
        .map(|e| e["type"].clone())
        .collect();
    assert_eq!(names.first(), Some(&json!("user_message")));
    let end = [
        json!("user_message"),
        json!("context_compaction_started"),
        json!("context_compacted"),
    ];
    assert_eq!(names.get(names.len() - 3..), Some(end.as_slice()));
}

#[tokio::test]
async fn a_reset_is_one_span_with_tokens_before_and_after() {
    let mut scene = Scene::new();
    let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    scene.session.trace_within(TraceContext::parse(caller));
    unchanged(scene.ask("Port the parser.").await);
    scene.grow(6_500);
    compacted(scene.ask("Now the lexer.").await);
    let done = scene.heard.last("context_compacted").unwrap();
    let after = scene.session.account().total().0;
    assert_eq!(done["tokens_after"], after);
    assert!(
        after * 4 < done["tokens_before"].as_u64().unwrap(),
        "{done}"
    );
    assert_eq!(done["max_tokens"], WINDOW);
    assert_eq!(done["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(done["parent_span_id"], "b7ad6b7169203331");
    let began = scene.heard.last("context_compaction_started").unwrap();
    assert_eq!(began["span_id"], done["span_id"]);
    // The compaction itself is a span within the reset's.
    let inner = scene.heard.last("compact.completed").unwrap();
    assert_eq!(inner["parent_span_id"], done["span_id"]);
    let ended = scene.heard.last("compact.call_ended").unwrap();
    assert_eq!(
        (&ended["call"], &ended["outcome"], &ended["span_id"]),
        (&json!("hard_reset"), &json!("compacted"), &done["span_id"])
    );
}

#[tokio::test]
async fn a_dead_session_is_an_error_with_its_reason_and_another_attempt_a_warning() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(6_500);
    scene.fail(true);
    assert!(matches!(scene.ask("next").await, Ok(ResetCheck::Failed(_))));
    let failed = scene.heard.last("context_compaction_failed").unwrap();
    assert_eq!(failed["severity"], "warning");
    scene.grow(8_200);
    assert!(scene.ask("more").await.is_err());
    let dead = scene.heard.last("context_compaction_failed").unwrap();
    assert_eq!(dead["severity"], "error");
    assert!(!dead["error"].as_str().unwrap().is_empty());
    assert_eq!(dead["trace_id"].as_str().unwrap().len(), 32);
}

#[tokio::test]
async fn a_further_reset_replaces_the_continuation_and_remembers_the_first() {
    let mut scene = Scene::new();
    unchanged(
        scene
            .ask("Port the parser to src/port_9417.rs, never touch the API.")
            .await,
    );
    for round in 1..=4 {
        scene.grow(6_500);
        let reset = compacted(scene.ask(&format!("part {round}")).await);
        let messages = &scene.session.messages().entries;
        let continuations = messages
            .iter()
            .filter(|e| e.plain_text().contains("## Continuation"));
        assert_eq!(continuations.count(), 1);
        let prompt = messages[1].plain_text();
        assert!(
            prompt.contains("src/port_9417.rs"),
            "round {round}: {prompt}"
        );
        assert_eq!(
            messages[1].meta.kind,
            EntryKind::Summary {
                version: round,
                receipt: reset.receipt.as_json()["receipt_id"]
                    .as_str()
                    .map(str::to_owned),
            }
        );
        // Each input starts where the last reset was, behind the summary that it left.
        let input = scene
            .files
            .artifact_text(&reset.summarizer_input.unwrap())
            .unwrap();
        let first = if round == 1 {
            "[turn 001] USER:"
        } else {
            "PREVIOUS_SUMMARY:"
        };
        assert!(input.lines().next().unwrap().ends_with(first), "{input}");
        assert_eq!(scene.session.state().compaction_count, round);
    }
}

#[tokio::test]
async fn a_failure_changes_nothing_and_is_not_repeated_in_the_turn() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(6_500);
    scene.fail(true);
    let mut before = scene.session.messages().clone();
    failed(scene.ask("next").await);
    before.entries.push(user("next"));
    assert_eq!(scene.session.messages(), &before);
    let event = scene.heard.last("context_compaction_failed").unwrap();
    assert_eq!(event["context_exceeded"], false);
    assert_eq!(event["error"], "cannot store the original");
    assert_eq!(event["max_tokens"], WINDOW);
    assert!(event["tokens_current"].as_u64().unwrap() >= 6_500);
    assert!(event["summarizer_input_path"].is_string());
    assert!(scene.session.state().attempted_this_turn);
    assert_eq!(*scene.session.input_state().borrow(), InputState::Open);
    // Tool iterations of the same turn are not turns (the mistake of an earlier attempt).
    scene.fail(false);
    for _ in 0..3 {
        unchanged(scene.session.before_call().await);
    }
    assert_eq!(scene.heard.count("context_compaction_started"), 1);
    assert_eq!(scene.heard.count("compact.failed"), 1);
}

#[tokio::test]
async fn the_next_turn_tries_again() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(6_500);
    scene.fail(true);
    failed(scene.ask("next").await);
    failed(scene.ask("and next").await);
    scene.fail(false);
    compacted(scene.ask("and next").await);
}

#[tokio::test]
async fn a_manual_retry_is_a_new_attempt() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(6_500);
    scene.fail(true);
    failed(scene.ask("next").await);
    failed(scene.session.retry().await);
    scene.fail(false);
    compacted(scene.session.retry().await);
    assert_eq!(scene.session.messages().entries.last(), Some(&user("next")));
    // The next turn does not compact once more.
    unchanged(scene.ask("go on").await);
}

#[tokio::test]
async fn over_the_limit_a_failure_ends_the_session() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(8_100);
    scene.fail(true);
    let error = scene.ask("next").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Context limit exceeded and compaction failed. Please start a new session."
    );
    assert_eq!(
        scene.heard.last("context_compaction_failed").unwrap()["context_exceeded"],
        true
    );
    assert_eq!(*scene.session.input_state().borrow(), InputState::Dead);
    // No more input, and nothing is taken that is not answered.
    let before = scene.session.messages().clone();
    assert!(matches!(scene.ask("hello?").await, Err(Error::SessionDead)));
    assert!(matches!(
        scene.session.before_call().await,
        Err(Error::SessionDead)
    ));
    assert_eq!(scene.session.messages(), &before);
    // The transcript is still there, and a new session is one call away.
    assert!(scene.transcript().await.len() > 20);
    scene.session.start_new("s-2");
    assert_eq!(scene.session.messages(), &base());
    assert_eq!(scene.session.state(), &CompactionState::default());
    unchanged(scene.ask("a new start").await);
    assert_eq!(scene.files.read("s-2").await.unwrap().events.len(), 1);
}

#[tokio::test]
async fn growing_over_the_limit_after_a_failure_ends_the_session_too() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(7_900);
    scene.fail(true);
    failed(scene.ask("next").await);
    scene.grow(8_050);
    assert!(matches!(
        scene.session.before_call().await,
        Err(Error::SessionDead)
    ));
    assert_eq!(scene.heard.count("context_compaction_started"), 1);
    assert_eq!(
        scene.heard.last("context_compaction_failed").unwrap()["context_exceeded"],
        true
    );
}

#[tokio::test]
async fn growth_re_arms_and_a_dead_session_may_be_retried() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(7_500);
    scene.fail(true);
    failed(scene.ask("next").await);
    scene.grow(8_100);
    // Five per cent more is another context, and now it is over the limit.
    assert!(scene.session.before_call().await.is_err());
    assert_eq!(scene.heard.count("context_compaction_started"), 2);
    assert!(scene.session.retry().await.is_err());
    assert_eq!(*scene.session.input_state().borrow(), InputState::Dead);
    scene.fail(false);
    compacted(scene.session.retry().await);
    assert_eq!(*scene.session.input_state().borrow(), InputState::Open);
    unchanged(scene.ask("on we go").await);
}

/// A store that does what it is told to.
enum Broken {
    Fails,
    Hangs,
}

#[async_trait]
impl TranscriptStore for Broken {
    fn append(&self, _session: &str, _event: &Value) {}
    async fn flush(&self, session: &str) -> Result<(), TranscriptError> {
        self.answer(session).await
    }
    async fn read(&self, session: &str) -> Result<Transcript, TranscriptError> {
        self.answer(session).await.map(|()| Transcript::default())
    }
    async fn keep_artifact(
        &self,
        session: &str,
        _artifact: Artifact,
        _at: Timestamp,
        _text: &str,
    ) -> Result<String, TranscriptError> {
        self.answer(session).await.map(|()| String::new())
    }
    fn location(&self, session: &str) -> String {
        session.to_owned()
    }
}

impl Broken {
    async fn answer(&self, session: &str) -> Result<(), TranscriptError> {
        if matches!(self, Broken::Hangs) {
            std::future::pending::<()>().await;
        }
        Err(TranscriptError::Lost {
            session: session.to_owned(),
            events: 3,
            place: "here".to_owned(),
            reason: "no space left".to_owned(),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_or_hangs_costs_its_files_alone() {
    for (broken, says) in [
        (Broken::Fails, "no space left"),
        (Broken::Hangs, "did not answer"),
    ] {
        let mut scene = Scene::with(Some(Arc::new(broken)));
        unchanged(scene.ask("go").await);
        scene.grow(6_500);
        let started = Instant::now();
        let reset = compacted(scene.ask("next").await);
        assert!(started.elapsed() <= 3 * PATIENCE);
        assert_eq!((reset.summarizer_input, reset.summary), (None, None));
        assert_eq!(scene.session.messages().entries.len(), 3);
        assert_eq!(scene.heard.count("compact.transcript_failed"), 3);
        let event = scene.heard.last("compact.transcript_failed").unwrap();
        assert!(event["error"].as_str().unwrap().contains(says), "{event}");
        assert_eq!(event["severity"], "warning");
        let event = scene.heard.last("context_compacted").unwrap();
        assert_eq!(event["summary_path"], Value::Null);
    }
}

#[tokio::test]
async fn input_is_closed_while_it_compacts() {
    #[derive(Default)]
    struct Watching {
        input: Mutex<Option<watch::Receiver<InputState>>>,
        seen: Mutex<Vec<(String, InputState)>>,
    }
    impl EventSink for Watching {
        fn emit(&self, event: &Event) {
            let input = self.input.lock().unwrap();
            if let (Some(input), EventKind::Reset(_)) = (&*input, &event.kind) {
                let mut seen = self.seen.lock().unwrap();
                seen.push((event.kind.name(), *input.borrow()));
            }
        }
    }
    let watching = Arc::new(Watching::default());
    let mut scene = Scene::new();
    scene.session.manager.sink = watching.clone();
    *watching.input.lock().unwrap() = Some(scene.session.input_state());
    unchanged(scene.ask("go").await);
    scene.grow(6_500);
    compacted(scene.ask("next").await);
    assert_eq!(
        *watching.seen.lock().unwrap(),
        [
            (
                "context_compaction_started".to_owned(),
                InputState::Compacting
            ),
            ("context_compacted".to_owned(), InputState::Compacting),
        ]
    );
    assert_eq!(*scene.session.input_state().borrow(), InputState::Open);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_attempt_leaves_everything_as_it_was_but_counts() {
    let mut scene = Scene::with(Some(Arc::new(Broken::Hangs)));
    unchanged(scene.ask("go").await);
    scene.grow(6_500);
    let before = scene.session.messages().entries.len();
    let abandoned = tokio::time::timeout(Duration::from_millis(20), scene.ask("next")).await;
    assert!(abandoned.is_err());
    assert_eq!(scene.session.messages().entries.len(), before + 1);
    assert_eq!(*scene.session.input_state().borrow(), InputState::Open);
    assert!(scene.session.state().attempted_this_turn);
}

#[tokio::test]
async fn the_transcript_has_messages_tools_and_approvals_and_no_fragments() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene
        .session
        .record_event(&json!({"type": "text_delta", "delta": "D"}));
    let approvals = [
        json!({"type": "tool_approval_request", "request_id": "call1", "risk_level": "high"}),
        json!({"type": "tool_approved", "request_id": "call1"}),
        json!({"type": "tool_denied", "request_id": "call2"}),
    ];
    let [call, result] = exchange(1, 1);
    scene.session.append([call]);
    approvals
        .iter()
        .for_each(|event| scene.session.record_event(event));
    scene
        .session
        .append([result, Entry::from_text("a", Role::Assistant, "Done.")]);
    scene.session.flush().await.unwrap();
    let names: Vec<String> = scene
        .transcript()
        .await
        .iter()
        .map(|e| e["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "user_message",
            "tool_request",
            "tool_approval_request",
            "tool_approved",
            "tool_denied",
            "tool_result",
            "completed",
        ]
    );
}

#[tokio::test]
async fn secrets_reach_no_summarizer_and_no_redacted_transcript() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
    for redacted in [false, true] {
        let mut scene = Scene::new();
        if redacted {
            let redactor = Redactor::new(&Default::default()).unwrap();
            scene.session.manager.archive_mode = ArchiveMode::Redacted(Arc::new(redactor));
        }
        unchanged(scene.ask(&format!("use the token {secret}")).await);
        scene.grow(6_500);
        let reset = compacted(scene.ask("next").await);
        for place in [reset.summarizer_input, reset.summary] {
            let text = scene.files.artifact_text(&place.unwrap()).unwrap();
            assert!(!text.contains(secret), "{text}");
        }
        let first = scene.transcript().await.remove(0).to_string();
        assert_eq!(first.contains(secret), !redacted, "{first}");
    }
}

#[tokio::test]
async fn disabled_means_never() {
    let mut scene = Scene::new();
    scene.session.manager.policy = Policy {
        trigger_pct: 1.1,
        ..Profile::HardReset.policy()
    };
    unchanged(scene.ask("go").await);
    scene.grow(9_000);
    unchanged(scene.ask("next").await);
}

#[tokio::test]
async fn a_large_request_is_left_whole_when_there_is_room() {
    let mut scene = Scene::new();
    // Nothing was said before it that a summary could stand for.
    unchanged(scene.ask(&"x ".repeat(13_200)).await);
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(5_500);
    let large = "look at this log ".repeat(380);
    compacted(scene.ask(&large).await);
    assert_eq!(scene.session.messages().entries.last(), Some(&user(&large)));
}

fn conversation_of(question: &crate::port::summarizer::ModelQuestion) -> Option<&str> {
    let (_, rest) = question.prompt.split_once("<conversation>\n")?;
    Some(rest.split_once("\n</conversation>")?.0)
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[tokio::test]
async fn a_model_is_asked_by_itself_for_the_summary() {
    let mut scene = Scene::new();
    let says = "- goal: port the parser\n- module_3 is read";
    let scripted = Arc::new(ScriptedSummarizer::new([ScriptedAnswer::Says(
        says.to_owned(),
    )]));
    scene.session.manager.summarizer = Some(scripted.clone());
    unchanged(scene.ask("Port the parser.").await);
    scene.grow(6_500);
    let reset = compacted(scene.ask("Now the lexer.").await);
    let asked = scripted.asked_questions();
    assert!(!asked.is_empty());
    for question in &asked {
        // A question of its own: fixed instructions, no conversation to go on with, nobody to ask,
        // and no tools, for which a question has no place.
        assert!(!question.system.is_empty());
        assert_eq!(question.conversation, None);
        assert_eq!(question.model.as_deref(), Some("gpt-4o"));
    }
    // What it read is the artifact, word for word.
    let read: Vec<&str> = asked.iter().filter_map(conversation_of).collect();
    let input = scene
        .files
        .artifact_text(&reset.summarizer_input.clone().unwrap())
        .unwrap();
    assert_eq!(squeezed(&read.concat()), squeezed(&input));
    assert!(input.contains("[turn 001] TOOL_REQUEST (tool=read_file, request_id=call"));
    assert!(
        scene.session.messages().entries[1]
            .plain_text()
            .contains("module_3 is read")
    );
    let summary = scene.files.artifact_text(&reset.summary.unwrap()).unwrap();
    assert!(summary.contains("module_3 is read"), "{summary}");
}

#[tokio::test]
async fn a_summarizer_that_fails_costs_nothing_but_the_attempt() {
    let mut scene = Scene::new();
    let fails =
        || ScriptedAnswer::Fails(SummarizerError::Interrupted("connection reset".to_owned()));
    let script = [
        fails(),
        ScriptedAnswer::Says("- goal: port the parser".to_owned()),
    ];
    scene.session.manager.summarizer = Some(Arc::new(ScriptedSummarizer::new(script)));
    unchanged(scene.ask("Port the parser.").await);
    scene.grow(6_500);
    let mut before = scene.session.messages().clone();
    let Ok(ResetCheck::Failed(error)) = scene.ask("Now the lexer.").await else {
        panic!("it should have failed");
    };
    assert!(error.to_string().contains("connection reset"), "{error}");
    before.entries.push(user("Now the lexer."));
    assert_eq!(scene.session.messages(), &before);
    let event = scene.heard.last("context_compaction_failed").unwrap();
    // The server's own words are for the host, not for whoever listens to events.
    assert_eq!(event["error"], "the summarizer scripted failed");
    // What it was given is there to look at, and to try again with.
    let input = event["summarizer_input_path"].as_str().unwrap();
    assert!(
        scene
            .files
            .artifact_text(input)
            .unwrap()
            .contains("Now the lexer.")
    );
    unchanged(scene.session.before_call().await);
    compacted(scene.session.retry().await);
}

#[tokio::test]
async fn nothing_is_dropped_without_a_summary() {
    let mut scene = Scene::new();
    unchanged(scene.ask("go").await);
    scene.grow(6_500);
    let before = scene.session.messages().entries.len() as u64;
    let reset = compacted(scene.ask("next").await);
    // All but the instructions and the pending request, each accounted for.
    assert_eq!(reset.receipt.as_json()["pruned_count"], before - 1);
    let spans: Vec<(u64, u64)> =
        serde_json::from_value(reset.receipt.as_json()["summarized_spans"].clone()).unwrap();
    assert_eq!(spans, [(1, before - 1)]);
    assert!(reset.receipt.as_json()["summary_tokens"].as_u64().unwrap() > 0);
    assert_eq!(scene.heard.count("context_pruned"), 0);
}

#[tokio::test]
async fn usage_of_every_provider_is_the_size_of_its_prompt() {
    use compact_formats::usage::UsageSource;
    let reports = [
        (
            UsageSource::Anthropic,
            json!({"input_tokens": 500, "output_tokens": 40, "cache_read_input_tokens": 6_500}),
        ),
        (
            UsageSource::OpenAiChat,
            json!({"prompt_tokens": 7_000, "completion_tokens": 40, "total_tokens": 7_040}),
        ),
        (
            UsageSource::Gemini,
            json!({"promptTokenCount": 7_000, "candidatesTokenCount": 40}),
        ),
    ];
    for (source, report) in reports {
        let mut scene = Scene::new();
        unchanged(scene.ask("go").await);
        scene.grow(3_000);
        let usage = source.read(&report).unwrap().usage;
        assert_eq!(usage.output_tokens, 40);
        scene.session.report_usage(usage);
        assert_eq!(
            scene.session.state().last_input_tokens,
            Some(7_000),
            "{report}"
        );
        compacted(scene.ask("next").await);
    }
}

#[tokio::test]
async fn limits_beyond_one_vendor_are_known() {
    let mut scene = Scene::new();
    for (model, limit) in [
        ("claude-3-5-sonnet-20241022", 200_000),
        ("gpt-4o", 128_000),
        ("gpt-4-turbo", 128_000),
        ("gpt-4.1", 1_047_576),
        ("o1", 200_000),
        ("o3", 200_000),
        ("nobody-knows-this-one", 128_000),
    ] {
        scene.session.set_model(model, None);
        assert_eq!(scene.session.manager.window, Tokens(limit), "{model}");
    }
    scene.session.set_model("gemini-1.5-pro", None);
    assert!(scene.session.manager.window >= Tokens(1_000_000));
}

#[tokio::test]
async fn sessions_have_states_of_their_own() {
    let (mut one, two) = (Scene::new(), Scene::new());
    unchanged(one.ask("go").await);
    one.grow(6_500);
    compacted(one.ask("next").await);
    assert_eq!(one.session.state().compaction_count, 1);
    assert_eq!(two.session.state(), &CompactionState::default());
}

#[tokio::test]
async fn a_session_of_many_windows_never_overflows_and_is_seldom_reset() {
    let mut scene = Scene::new();
    let (mut resets, mut said, mut last) = (0, 0, false);
    for turn in 0..120 {
        let checked = scene
            .ask(&format!("step {turn} of the migration"))
            .await
            .unwrap();
        let reset = matches!(checked, ResetCheck::Compacted(_));
        assert!(!(reset && last), "reset twice in a row at {turn}");
        last = reset;
        resets += u64::from(reset);
        assert!(
            scene.session.account().total() <= Tokens(WINDOW),
            "turn {turn}"
        );
        scene
            .session
            .append(exchange(turn, 300 + turn as u64 % 7 * 50));
        said += 300 + turn as u64 % 7 * 50;
    }
    assert!(said > 5 * WINDOW);
    assert!((5..=12).contains(&resets), "{resets} resets");
}
