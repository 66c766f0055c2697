use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use compact_core::event::Event;
use compact_core::message::{Block, Entry, EntryId, EntryMeta, Role};
use compact_core::policy::Policy;
use compact_core::redact::Redactor;
use compact_core::token::{Chars4, Estimator, EstimatorExt, Tokens, Units};
use compact_core::trigger;
use compact_core::wire::WireRules;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::session_driver::BEFORE_MODEL_CALL;
use super::*;
use crate::port::archive::{ArchiveError, ArchiveStore, MemoryArchive, PackId, PackInfo};
use crate::port::catalog::MemoryCatalog;
use crate::port::clock::ManualClock;
use crate::port::event::EventSink;

impl Manager {
    /// The call that a session makes where nothing runs beside it.
    pub(crate) async fn preflight(&self, session: &mut SessionState) -> Result<Preflight, Error> {
        let began = self.begin_call(session, BEFORE_MODEL_CALL);
        let ready = self.run_preflight(session).await;
        self.end_call(session, &began, &ready);
        ready
    }
}

/// What a reader sees: the JSON of every event.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<Value>>);

impl EventSink for Heard {
    fn emit(&self, event: &Event) {
        let json = serde_json::to_value(event).unwrap();
        self.0.lock().unwrap().push(json);
    }
}

impl Heard {
    pub(crate) fn names(&self) -> Vec<String> {
        let events = self.0.lock().unwrap();
        events
            .iter()
            .filter_map(|e| Some(e.get("event")?.as_str()?.to_owned()))
            .collect()
    }

    /// The last event of a name.
    pub(crate) fn last(&self, name: &str) -> Option<Value> {
        let events = self.0.lock().unwrap();
        events.iter().rfind(|e| e["event"] == name).cloned()
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.names().iter().filter(|n| *n == name).count()
    }
}

/// An archive that takes nothing in while it is shut, and fails when it is told to.
pub(crate) struct Faulty {
    archive: MemoryArchive,
    pub(crate) open: Semaphore,
    pub(crate) fails: AtomicBool,
    /// How many packs were read.
    reads: AtomicUsize,
}

impl Default for Faulty {
    fn default() -> Self {
        Faulty {
            archive: MemoryArchive::default(),
            open: Semaphore::new(Semaphore::MAX_PERMITS),
            fails: AtomicBool::new(false),
            reads: AtomicUsize::new(0),
        }
    }
}

impl Faulty {
    pub(crate) fn shut() -> Arc<Faulty> {
        Arc::new(Faulty {
            open: Semaphore::new(0),
            ..Faulty::default()
        })
    }
}

#[async_trait::async_trait]
impl ArchiveStore for Faulty {
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError> {
        let _open = self.open.acquire().await.unwrap();
        if self.fails.load(Ordering::Relaxed) {
            return Err(ArchiveError::Store {
                action: "store the original".to_owned(),
                source: "out of order".into(),
            });
        }
        self.archive.put(plain, base).await
    }
    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.archive.get(id).await
    }
    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        self.archive.info(id).await
    }
    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.archive.list().await
    }
    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.archive.remove(id).await
    }
    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.archive.put_record(id, plain).await
    }
    async fn get_record(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        self.archive.get_record(id).await
    }
    async fn list_records(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.archive.list_records().await
    }
    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.archive.remove_record(id).await
    }
    async fn put_derived(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.archive.put_derived(id, plain).await
    }
    async fn get_derived(&self, id: &PackId) -> Result<Option<Bytes>, ArchiveError> {
        self.archive.get_derived(id).await
    }
}

pub(crate) fn manager(window: u64) -> (Manager, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let redactor = Arc::new(Redactor::new(&Default::default()).unwrap());
    let catalog = Arc::new(MemoryCatalog::default());
    let manager = Manager::new(catalog, Arc::new(Chars4), redactor, Tokens(window))
        .with_archive(Some(Arc::new(MemoryArchive::default())))
        .with_sink(heard.clone());
    (manager, heard)
}

pub(crate) fn exchange(i: usize, size: usize) -> [Entry; 2] {
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
                name: "read_file".into(),
                arguments: format!("{{\"path\":\"src/module_{i}.rs\"}}"),
            },
        ),
        entry(
            "r",
            Role::Tool,
            Block::ToolResult {
                call: format!("call{i}"),
                content: format!("pub fn handler_{i}() {{}}\n").repeat(size),
                is_error: false,
            },
        ),
    ]
}

fn shown(preflight: &Preflight, session: &SessionState) -> Tokens {
    let units = preflight
        .view
        .shown_entries(session.history())
        .iter()
        .map(|e| Chars4.count_entry(e))
        .sum();
    Chars4.to_tokens(units)
}

#[tokio::test]
async fn a_session_of_many_windows_never_overflows() {
    let window = 8_000;
    let (manager, _) = manager(window);
    let mut session = SessionState::new("long", &WireRules::LENIENT);
    session.append([Entry::from_text(
        "u0",
        Role::User,
        "Port the parser, keep the public API.",
    )]);
    let (mut compactions, mut said, mut last) = (0, 0, false);
    for i in 0..200 {
        session.append(exchange(i, 20 + i % 30));
        if i % 25 == 24 {
            session.append([Entry::from_text(
                format!("u{i}"),
                Role::User,
                format!("next: part {i}"),
            )]);
        }
        let preflight = manager.preflight(&mut session).await.unwrap();
        assert!(shown(&preflight, &session) <= Tokens(window), "call {i}");
        let compacted = preflight.receipt.is_some();
        assert!(!(compacted && last), "compacted twice in a row at {i}");
        last = compacted;
        compactions += u32::from(compacted);
        said = session.history().entries.len();
    }
    let all: Units = session
        .history()
        .entries
        .iter()
        .map(|e| Chars4.count_entry(e))
        .sum();
    assert!(Chars4.to_tokens(all).0 >= 3 * window, "{} entries", said);
    assert!(compactions >= 3, "{compactions}");
}

#[tokio::test]
async fn the_same_history_gives_the_same_view_between_compactions() {
    let (manager, _) = manager(6_000);
    let mut session = SessionState::new("frozen", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    let mut history = session.history().clone();
    let mut frozen: Option<Vec<Entry>> = None;
    for i in 0..60 {
        history.entries.extend(exchange(i, 25));
        // The client passes its whole, uncompacted history every time.
        session.replace(history.clone());
        let preflight = manager.preflight(&mut session).await.unwrap();
        let entries = preflight.view.shown_entries(session.history());
        if preflight.receipt.is_none()
            && let Some(before) = &frozen
        {
            assert_eq!(
                entries.get(..before.len()),
                Some(before.as_slice()),
                "call {i}"
            );
        }
        frozen = Some(entries);
    }
}

#[tokio::test]
async fn a_changed_prefix_drops_the_view_and_the_ledger_behind_it() {
    let (manager, _) = manager(4_000);
    let mut session = SessionState::new("rewound", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..20).flat_map(|i| exchange(i, 30)));
    let first = manager.preflight(&mut session).await.unwrap();
    assert_eq!(first.receipt.unwrap().summary_version, 1);
    let mut rewound = session.history().clone();
    rewound.entries.truncate(9);
    session.replace(rewound);
    let after = manager.preflight(&mut session).await.unwrap();
    assert_eq!(
        after.view,
        compact_core::view::View::identity(session.history())
    );
    let again = manager
        .manual_compact(&mut session, Some("user-command"))
        .await
        .unwrap();
    let words = again.view.shown_entries(session.history());
    let words = serde_json::to_string(&words).unwrap();
    assert!(again.receipt.is_none_or(|r| r.previous.is_none()));
    assert!(!words.contains("module_19"), "{words}");
}

/// What a client cleared in place stays known; what it took back does not.
#[tokio::test]
async fn results_that_were_cleared_in_place_are_no_other_history() {
    let (manager, _) = manager(4_000);
    let mut session = SessionState::new("cleared", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..20).flat_map(|i| exchange(i, 30)));
    let first = manager.preflight(&mut session).await.unwrap();
    let mut cleared = session.history().clone();
    let last = cleared.entries.len() - 1;
    for entry in cleared.entries.iter_mut().take(last) {
        for block in &mut entry.blocks {
            if let Block::ToolResult { content, .. } = block {
                "[cleared]".clone_into(content);
            }
        }
    }
    session.replace(cleared);
    let after = manager.preflight(&mut session).await.unwrap();
    assert_eq!(after.view, first.view);
    session.append((20..40).flat_map(|i| exchange(i, 30)));
    let again = manager.preflight(&mut session).await.unwrap();
    let receipt = again.receipt.unwrap();
    assert_eq!(receipt.summary_version, 2);
    assert_eq!(receipt.previous, first.receipt.map(|r| r.receipt_id));
}

#[tokio::test]
async fn a_compaction_tells_its_story_in_order() {
    let (manager, heard) = manager(2_000);
    let mut session = SessionState::new("told", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    manager.preflight(&mut session).await.unwrap();
    assert_eq!(
        heard.names(),
        [
            "compact.token_estimate",
            "compact.trigger_decision",
            "compact.started",
            "compact.archived",
            "compact.policy_applied",
            "compact.summary_created",
            "compact.pruned_messages",
            "compact.completed",
            "compact.call_ended",
        ]
    );
    let events = heard.0.lock().unwrap();
    let told = events
        .iter()
        .find(|e| e["event"] == "compact.trigger_decision")
        .unwrap();
    // Every event has the fields of the documented schema.
    for field in [
        "ts",
        "session_id",
        "model",
        "t_est",
        "max",
        "pruned_count",
        "summary_tokens",
    ] {
        assert!(told.get(field).is_some(), "{field}");
    }
    assert_eq!(told["policy"]["trigger_pct"], 0.85);
    assert_eq!(told["policy"]["buffer"], 1024);
    let pruned = events
        .iter()
        .find(|e| e["event"] == "compact.pruned_messages")
        .unwrap();
    assert!(pruned["pruned_count"].as_u64().unwrap() > 0);
    assert!(pruned["kept"]["tool_pairs"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn records_receipts_and_events_are_dated_by_the_clock_that_is_passed_in() {
    let (manager, heard) = manager(3_000);
    let clock = ManualClock::new("2026-03-01T12:00:00Z".parse().unwrap());
    let manager = manager.with_clock(Arc::new(clock));
    let mut session = SessionState::new("dated", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    (0..40).for_each(|i| session.append(exchange(i, 25)));
    manager.preflight(&mut session).await.unwrap();
    let record = manager.catalog.latest_record("dated").await.unwrap();
    let record = record.unwrap();
    let time = "2026-03-01T12:00:00.000Z";
    assert_eq!(record.created_at, time);
    assert_eq!(record.receipt.created_at(), Some(time));
    let events = heard.0.lock().unwrap();
    assert!(events.len() > 5 && events.iter().all(|event| event["ts"] == time));
}

#[tokio::test]
async fn every_call_tells_its_decision_within_one_span() {
    let (manager, heard) = manager(20_000);
    let mut session = SessionState::new("quiet", &WireRules::LENIENT);
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    session.trace_within(compact_core::event::TraceContext::parse(&format!(
        "00-{trace}-{parent}-01"
    )));
    session.append([Entry::from_text("u0", Role::User, "go")]);
    manager.preflight(&mut session).await.unwrap();
    manager.preflight(&mut session).await.unwrap();
    let told = [
        "compact.token_estimate",
        "compact.trigger_decision",
        "compact.call_ended",
    ];
    assert_eq!(heard.names(), [told, told].concat());
    let events = heard.0.lock().unwrap();
    let field = |name: &str| -> Vec<Value> { events.iter().map(|e| e[name].clone()).collect() };
    let spans = field("span_id");
    assert_eq!(spans[0], spans[1]);
    assert_eq!(spans[0], spans[2]);
    assert_ne!(spans[0], spans[3]);
    assert!(field("trace_id").iter().all(|id| id == trace));
    assert!(field("parent_span_id").iter().all(|id| id == parent));
    assert_eq!(events[1]["verdict"], "stay");
    assert_eq!(events[2]["call"], "before_model_call");
    assert_eq!(events[2]["outcome"], "unchanged");
    assert!(
        events[2]["duration_ms"]
            .as_f64()
            .is_some_and(|ms| ms >= 0.0)
    );
}

#[tokio::test]
async fn a_compaction_says_why_it_is_and_what_it_made_of_the_tokens() {
    let (manager, heard) = manager(2_000);
    let mut session = SessionState::new("why", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    manager.preflight(&mut session).await.unwrap();
    session.append([Entry::from_text("u1", Role::User, "on")]);
    manager.manual_compact(&mut session, None).await.unwrap();
    let events = heard.0.lock().unwrap();
    let of = |name: &str| -> Vec<&Value> { events.iter().filter(|e| e["event"] == name).collect() };
    let causes: Vec<&Value> = of("compact.trigger_decision")
        .iter()
        .map(|e| &e["cause"])
        .collect();
    assert_eq!(causes, ["exceeded", "asked"]);
    let done = of("compact.completed")[0];
    assert_eq!(done["cause"], "exceeded");
    assert_eq!(done["before"]["history"], done["tokens_before"]);
    assert_eq!(done["after"]["history"], done["tokens_after"]);
    assert_eq!(done["after"]["memory"], done["summary_tokens"]);
    assert!(done["duration_ms"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn a_secret_in_a_persons_note_is_in_no_event_and_no_receipt() {
    let (manager, heard) = manager(2_000);
    let mut session = SessionState::new("noted", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    let note = "keep the database, password=hunter2";
    let made = manager
        .manual_compact(&mut session, Some(note))
        .await
        .unwrap();
    let receipt = made.receipt.unwrap();
    let kept = serde_json::to_string(&receipt).unwrap();
    assert!(kept.contains("keep the database") && !kept.contains("hunter2"));
    let told = serde_json::to_string(&*heard.0.lock().unwrap()).unwrap();
    assert!(told.contains("keep the database") && !told.contains("hunter2"));
    let mismatches = manager
        .verify_receipt(&receipt.receipt_id)
        .await
        .unwrap()
        .mismatches;
    assert_eq!(mismatches, []);
}

#[tokio::test]
async fn a_failed_attempt_is_not_repeated_until_the_context_grows() {
    let (manager, heard) = manager(2_000);
    let mut session = SessionState::new("stuck", &WireRules::LENIENT);
    let mut pinned = Entry::from_text("p", Role::User, "rule ".repeat(1_500));
    pinned.meta.flags.insert("protected".into());
    session.append([pinned]);
    assert!(manager.preflight(&mut session).await.is_err());
    let failures = |heard: &Heard| {
        heard
            .names()
            .iter()
            .filter(|n| *n == "compact.failed")
            .count()
    };
    assert_eq!(failures(&heard), 1);
    let second = manager.preflight(&mut session).await;
    assert!(second.is_err(), "what does not fit is never handed out");
    assert_eq!(failures(&heard), 1, "and nothing is tried again");
    let mut elsewhere = SessionState::new("stuck", &WireRules::LENIENT);
    elsewhere.append(session.history().entries.clone());
    assert!(manager.preflight(&mut elsewhere).await.is_err());
    assert_eq!(failures(&heard), 2, "another process finds it out itself");
    session.append([Entry::from_text("a", Role::Assistant, "x".repeat(1_000))]);
    assert!(manager.preflight(&mut session).await.is_err());
    assert_eq!(failures(&heard), 3);
    assert!(
        manager
            .catalog
            .last_attempt("stuck")
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn switching_redaction_off_is_said_before_anything_else() {
    let (mut manager, heard) = manager(2_000);
    let rules = compact_core::redact::RedactionRules {
        enabled: false,
        ..Default::default()
    };
    manager.redactor = Arc::new(Redactor::new(&rules).unwrap());
    let mut session = SessionState::new("bare", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    manager.preflight(&mut session).await.unwrap();
    let events = heard.0.lock().unwrap();
    assert_eq!(events[0]["event"], "compact.redaction_disabled");
    assert_eq!(events[0]["severity"], "high");
}

#[tokio::test]
async fn without_an_archive_a_compaction_says_so() {
    let (mut manager, heard) = manager(2_000);
    manager.archive = None;
    let mut session = SessionState::new("fleeting", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    let preflight = manager.preflight(&mut session).await.unwrap();
    assert!(heard.names().contains(&"compact.not_archived".to_owned()));
    assert_eq!(preflight.receipt.unwrap().retention.recoverable, 0);
}

#[tokio::test]
async fn a_live_session_restores_everything_that_was_said() {
    let (manager, _) = manager(3_000);
    let mut session = SessionState::new("whole", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    let (mut receipts, mut said) = (Vec::new(), 0);
    for i in 0..80 {
        session.append(exchange(i, 25));
        let preflight = manager.preflight(&mut session).await.unwrap();
        if let Some(receipt) = preflight.receipt {
            receipts.push(receipt.receipt_id);
            said = session.history().entries.len();
        }
    }
    assert!(receipts.len() >= 3);
    let whole = manager.restore("whole").await.unwrap();
    let restored: Vec<Entry> = serde_json::Deserializer::from_slice(&whole.bytes)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(restored, session.history().entries[..said]);
    assert_eq!(
        manager
            .verify_receipt(&receipts[0])
            .await
            .unwrap()
            .mismatches,
        []
    );
}

#[tokio::test]
async fn an_unknown_name_is_an_error_that_says_what_to_name() {
    let (manager, _) = manager(3_000);
    let error = manager.restore("nobody").await.unwrap_err().to_string();
    let words = "'nobody' is neither a receipt nor a session on record; name a session that was \
                 compacted, or one of its receipts";
    assert_eq!(error, words);
}

#[tokio::test]
async fn preflight_compacts_only_under_pressure() {
    let (manager, _) = manager(10_000);
    let mut session = SessionState::new("calm", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..10).flat_map(|i| exchange(i, 30)));
    let calm = manager.preflight(&mut session).await.unwrap();
    assert_eq!(
        calm.view,
        compact_core::view::View::identity(session.history())
    );
    session.append((10..55).flat_map(|i| exchange(i, 30)));
    let pressed = manager.preflight(&mut session).await.unwrap();
    assert!(pressed.decision.verdict.is_now());
    assert!(pressed.receipt.is_some());
}

#[tokio::test]
async fn a_program_may_compact_at_any_time() {
    let (manager, _) = manager(100_000);
    let mut session = SessionState::new("asked", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..300).flat_map(|i| exchange(i, 30)));
    let before = shown(
        &Preflight {
            decision: trigger::decide(Tokens(0), Tokens(1), &Policy::default()),
            view: compact_core::view::View::identity(session.history()),
            receipt: None,
        },
        &session,
    );
    let made = manager
        .manual_compact(&mut session, Some("user-command"))
        .await
        .unwrap();
    let receipt = made.receipt.as_ref().unwrap();
    assert_eq!(receipt.note.as_deref(), Some("user-command"));
    assert!(shown(&made, &session).0 * 10 <= before.0 * 6);
}

#[tokio::test]
async fn the_archive_holds_the_exact_original_before_anything_is_pruned() {
    let (manager, _) = manager(2_000);
    let mut session = SessionState::new("kept", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    let receipt = manager
        .preflight(&mut session)
        .await
        .unwrap()
        .receipt
        .unwrap();
    let original = manager.restore(&receipt.receipt_id).await.unwrap();
    assert!(original.exact);
    let lines = original
        .bytes
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty());
    let entries: Vec<Entry> = lines.map(|l| serde_json::from_slice(l).unwrap()).collect();
    assert_eq!(entries, session.history().entries);
}

#[tokio::test]
async fn an_archive_that_fails_leaves_the_conversation_untouched() {
    let (mut manager, _) = manager(2_000);
    let full = Faulty::default();
    full.fails.store(true, Ordering::Relaxed);
    manager.archive = Some(Arc::new(full));
    let mut session = SessionState::new("full", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..10).flat_map(|i| exchange(i, 30)));
    assert!(manager.preflight(&mut session).await.is_err());
    let records = manager.catalog.session_records("full").await;
    assert!(records.unwrap().is_empty());
    // What fits the window is passed on as it is by the next call.
    let next = manager.preflight(&mut session).await.unwrap();
    assert_eq!(
        next.view,
        compact_core::view::View::identity(session.history())
    );
}

/// Nobody is handed what no model takes because the store is away: the call fails until it is back.
#[tokio::test]
async fn what_is_larger_than_the_window_is_never_handed_out_while_the_archive_fails() {
    let (mut manager, _) = manager(2_000);
    let full = Arc::new(Faulty::default());
    full.fails.store(true, Ordering::Relaxed);
    manager.archive = Some(full.clone());
    let mut session = SessionState::new("full", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    for _ in 0..3 {
        let refused = manager.preflight(&mut session).await.unwrap_err();
        assert!(matches!(refused, Error::Archive(_)), "{refused}");
    }
    // Another process knows that an attempt failed, and no more than that.
    let mut elsewhere = SessionState::new("full", &WireRules::LENIENT);
    elsewhere.append(session.history().entries.clone());
    assert!(manager.preflight(&mut elsewhere).await.is_err());
    full.fails.store(false, Ordering::Relaxed);
    let back = manager.preflight(&mut session).await.unwrap();
    assert!(back.receipt.is_some());
}

#[tokio::test]
async fn a_redacted_archive_says_that_it_is_not_exact() {
    let (mut manager, _) = manager(2_000);
    manager.archive_mode =
        ArchiveMode::Redacted(Arc::new(Redactor::new(&Default::default()).unwrap()));
    let secret = ["ghp", "_", &"a1B2".repeat(9)].concat();
    let mut session = SessionState::new("redacted", &WireRules::LENIENT);
    session.append([Entry::from_text(
        "u0",
        Role::User,
        format!("the token is {secret}"),
    )]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    let receipt = manager
        .preflight(&mut session)
        .await
        .unwrap()
        .receipt
        .unwrap();
    let original = manager.restore(&receipt.receipt_id).await.unwrap();
    assert!(!original.exact);
    let text = String::from_utf8(original.bytes.to_vec()).unwrap();
    assert!(!text.contains(&secret));
    assert!(text.contains("[REDACTED:"));
}

#[tokio::test]
async fn large_pinned_content_may_use_the_window_less_the_buffer() {
    let (manager, _) = manager(6_000);
    let mut session = SessionState::new("pinned", &WireRules::LENIENT);
    let mut pinned = Entry::from_text("p", Role::User, "rule ".repeat(3_000));
    pinned.meta.flags.insert("protected".into());
    session.append([pinned]);
    session.append((0..8).flat_map(|i| exchange(i, 30)));
    let made = manager.preflight(&mut session).await.unwrap();
    assert_eq!(made.receipt.as_ref().unwrap().budget, Tokens(6_000 - 1_024));
    assert!(shown(&made, &session) <= Tokens(6_000 - 1_024));
}

#[tokio::test]
async fn a_thousand_random_sessions_stay_within_their_window() {
    let window = 3_000;
    let mut seed = 42_u64;
    let mut random = move |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for run in 0..1_000 {
        let (manager, _) = manager(window);
        let mut session = SessionState::new(format!("run-{run}"), &WireRules::LENIENT);
        session.append([Entry::from_text("u0", Role::User, "go")]);
        for i in 0..8 {
            match random(4) {
                0 => session.append([Entry::from_text(
                    format!("u{i}"),
                    Role::User,
                    "and then? ".repeat(random(60) as usize),
                )]),
                _ => session.append(exchange(i, random(120) as usize)),
            }
            let made = manager.preflight(&mut session).await.unwrap();
            assert!(
                shown(&made, &session) <= Tokens(window),
                "run {run}, step {i}"
            );
        }
    }
}

#[tokio::test]
async fn a_compaction_that_nobody_explains_is_manual() {
    let (manager, _) = manager(20_000);
    let mut session = SessionState::new("unexplained", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..60).flat_map(|i| exchange(i, 30)));
    let made = manager.manual_compact(&mut session, None).await.unwrap();
    assert_eq!(made.receipt.unwrap().note.as_deref(), Some("manual"));
}

#[tokio::test]
async fn events_carry_counts_and_ids_and_no_words() {
    let (manager, heard) = manager(2_000);
    let mut session = SessionState::new("private", &WireRules::LENIENT);
    session.append([Entry::from_text(
        "u0",
        Role::User,
        "my address is jane@example.org, call Xanthippe",
    )]);
    session.append((0..12).flat_map(|i| exchange(i, 30)));
    manager.preflight(&mut session).await.unwrap();
    let told = serde_json::to_string(&*heard.0.lock().unwrap()).unwrap();
    for word in ["jane", "Xanthippe", "handler_3", "module_7"] {
        assert!(!told.contains(word), "{word} left the process");
    }
}

/// An estimator that says how many texts it was given.
#[derive(Default)]
struct CountedCalls(AtomicUsize);

impl CountedCalls {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Estimator for CountedCalls {
    fn name(&self) -> &str {
        "chars4"
    }
    fn count_units(&self, text: &str) -> Units {
        self.0.fetch_add(1, Ordering::Relaxed);
        Chars4.count_units(text)
    }
    fn units_per_token(&self) -> u64 {
        Chars4.units_per_token()
    }
    fn joint_units(&self) -> Units {
        Chars4.joint_units()
    }
}

fn said(number: usize) -> Entry {
    Entry::from_text(format!("e{number}"), Role::User, format!("word {number}"))
}

#[tokio::test]
async fn a_call_counts_only_what_is_new() {
    let calls = Arc::new(CountedCalls::default());
    let manager = manager(100_000).0.with_estimator(calls.clone());
    let mut session = SessionState::new("s", &WireRules::LENIENT);
    let mut told = Conversation {
        entries: (0..300).map(said).collect(),
        tools: Some("[{\"name\":\"read\"}]".to_owned()),
        ..Conversation::default()
    };
    session.replace(told.clone());
    manager.preflight(&mut session).await.unwrap();
    assert_eq!(calls.take(), 301, "every entry, and the tools");
    manager.preflight(&mut session).await.unwrap();
    assert_eq!(calls.take(), 0);
    session.append([said(300)]);
    manager.preflight(&mut session).await.unwrap();
    assert_eq!(calls.take(), 1);
    told.entries.extend([said(300), said(301)]);
    session.replace(told);
    manager.preflight(&mut session).await.unwrap();
    assert_eq!(calls.take(), 1, "the last one alone");
}

/// Whatever a client does to its history, it costs what it would cost somebody who never saw it before.
#[tokio::test]
async fn what_is_remembered_of_a_count_is_true_of_the_history() {
    let (manager, _) = manager(4_000);
    let filler = "the tests are green again ".repeat(6);
    let said = |n: usize| {
        let role = [Role::User, Role::Assistant][n % 2];
        Entry::from_text(format!("e{n}"), role, format!("{n} {filler}"))
    };
    let mut session = SessionState::new("s", &WireRules::LENIENT);
    let mut told: Vec<Entry> = Vec::new();
    for step in 0..120 {
        told.extend([said(2 * step), said(2 * step + 1)]);
        match step % 10 {
            3 => told.truncate(told.len() - 1),
            5 => told[step / 2].blocks = vec![Block::Text(format!("edited in {step}"))],
            7 => told.insert(
                0,
                Entry::from_text("s", Role::System, format!("rule {step}")),
            ),
            8 => drop(told.remove(0)),
            _ => {}
        }
        session.replace(Conversation {
            entries: told.clone(),
            ..Conversation::default()
        });
        manager.preflight(&mut session).await.unwrap();
        let remembered = manager.next_request_tokens(&mut session);
        session.counted.clear();
        session.cache = Default::default();
        assert_eq!(
            remembered,
            manager.next_request_tokens(&mut session),
            "{step}"
        );
    }
}

/// The history of a client that keeps views, taken up by a session that knows nothing each time.
async fn compact_chain(manager: &Manager, archive: &Faulty, times: usize) -> Vec<usize> {
    let mut told: Vec<Entry> = Vec::new();
    let mut reads = Vec::new();
    for step in 0..times {
        told.extend((0..12).flat_map(|n| exchange(100 * step + n, 400)));
        let mut session = SessionState::new("chain", &WireRules::LENIENT);
        session.append(told.drain(..));
        archive.reads.store(0, Ordering::Relaxed);
        manager.resume(&mut session).await.unwrap();
        reads.push(archive.reads.load(Ordering::Relaxed));
        let made = manager.manual_compact(&mut session, None).await.unwrap();
        told = made.view.shown_entries(session.history());
    }
    reads
}

#[tokio::test]
async fn taking_up_a_session_does_not_read_what_led_to_it() {
    let archive = Arc::new(Faulty::default());
    let manager = manager(50_000).0.with_archive(Some(archive.clone()));
    let reads = compact_chain(&manager, &archive, 8).await;
    assert_eq!(reads, [0; 8], "the ledger of the last compaction is kept");
    let records = manager.catalog.session_records("chain").await.unwrap();
    assert_eq!(records.len(), 8);
    for record in &records {
        let proof = manager.verify_receipt(&record.receipt_id).await.unwrap();
        assert_eq!(
            proof.mismatches,
            [],
            "drawn from the archive it is the same"
        );
    }
}

#[tokio::test]
async fn a_record_that_a_killed_process_left_out_is_kept_by_who_goes_on() {
    let archive = Arc::new(Faulty::default());
    let manager = manager(50_000).0.with_archive(Some(archive.clone()));
    let mut session = SessionState::new("killed", &WireRules::LENIENT);
    for step in 0..2 {
        session.append((0..12).flat_map(|n| exchange(100 * step + n, 400)));
        manager.manual_compact(&mut session, None).await.unwrap();
        if step == 0 {
            let kept = archive.list_records().await.unwrap();
            archive.remove_record(&kept[0]).await.unwrap();
        }
    }
    let records = manager.catalog.session_records("killed").await.unwrap();
    assert!(records[1].previous.as_ref() == Some(&records[0].receipt_id));
    for record in &records {
        let kept = read_record(&*archive, &record.address()).await.unwrap();
        assert!(kept.agrees_with(record));
    }
}

#[tokio::test]
async fn a_ledger_is_drawn_again_where_it_is_not_kept() {
    let archive = Arc::new(Faulty::default());
    let forgetful = || manager(50_000).0.with_archive(Some(archive.clone()));
    let first = forgetful();
    compact_chain(&first, &archive, 3).await;
    let latest = first.catalog.latest_record("chain").await.unwrap().unwrap();
    let second = forgetful().with_catalog(first.catalog.clone());
    assert!(first.kept_ledger(&latest).await.is_some());
    assert!(second.kept_ledger(&latest).await.is_none());
    archive.remove(&latest.input_pack.unwrap()).await.unwrap();
    assert!(
        first.kept_ledger(&latest).await.is_none(),
        "its original is gone"
    );
}

#[tokio::test]
async fn the_ledger_of_a_long_chain_is_kept_for_another_process() {
    let archive = Arc::new(Faulty::default());
    let forgetful = || manager(50_000).0.with_archive(Some(archive.clone()));
    let first = forgetful();
    compact_chain(&first, &archive, 6).await;
    let records = first.catalog.session_records("chain").await.unwrap();
    let latest = first.catalog.latest_record("chain").await.unwrap().unwrap();
    let second = || forgetful().with_catalog(first.catalog.clone());
    let kept = first.kept_ledger(&latest).await;
    assert!(kept.is_some());
    assert_eq!(second().kept_ledger(&latest).await, kept);
    let earlier = records.iter().filter(|r| r.receipt_id != latest.receipt_id);
    for record in earlier.clone() {
        let found = second().kept_ledger(record).await;
        assert_eq!(found, None, "only that of the last is kept");
    }
    let pack = earlier.clone().find_map(|r| r.input_pack).unwrap();
    archive.remove(&pack).await.unwrap();
    assert_eq!(
        second().kept_ledger(&latest).await,
        None,
        "it tells of what is gone"
    );
}
