//! A summarizer whose server misbehaves, seen through the manager: the right fallback for each
//! policy, a truthful event, and a history that is untouched where nothing else will do.

use std::sync::{Arc, Mutex};

use compact_core::event::{Event, EventKind, FailedModel, Substitute};
use compact_core::message::{Entry, Role};
use compact_core::policy::{OnSummaryFailure, Policy};
use compact_core::profile::Profile;
use compact_core::redact::Redactor;
use compact_core::token::Chars4;
use compact_core::view::View;
use compact_core::wire::WireRules;
use compact_runtime::port::archive::MemoryArchive;
use compact_runtime::port::catalog::MemoryCatalog;
use compact_runtime::port::event::EventSink;
use compact_runtime::{Error, Manager, Session};

use super::*;

#[derive(Default)]
struct Events(Mutex<Vec<Event>>);

impl EventSink for Events {
    fn emit(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Events {
    /// What each event of some kind has to tell, as far as `read` knows the kind.
    fn read<T>(&self, read: impl Fn(&EventKind) -> Option<T>) -> Vec<T> {
        let events = self.0.lock().unwrap();
        events
            .iter()
            .filter_map(|event| read(&event.kind))
            .collect()
    }

    fn fallbacks(&self) -> Vec<(FailedModel, String, Substitute)> {
        self.read(|kind| match kind.clone() {
            EventKind::Fallback {
                failed,
                reason,
                fallback,
            } => Some((failed, reason, fallback)),
            _ => None,
        })
    }
}

fn manager(server: &Server, policy: Policy) -> (Manager, Arc<Events>) {
    let events = Arc::new(Events::default());
    let summarizer = summarizer(SummarizerWire::Chat, server);
    let redactor = Arc::new(Redactor::new(&Default::default()).unwrap());
    let catalog = Arc::new(MemoryCatalog::default());
    let manager = Manager::new(catalog, Arc::new(Chars4), redactor, Tokens(4_000))
        .with_archive(Some(Arc::new(MemoryArchive::default())))
        .with_sink(events.clone())
        .with_policy(policy)
        .with_summarizer(Some(Arc::new(summarizer)));
    (manager, events)
}

/// The same for a fault: whoever waits for a server that hangs should not wait for long.
fn manager_for(act: &Act, server: &Server, policy: Policy) -> (Manager, Arc<Events>) {
    let (mut manager, events) = manager(server, policy);
    if matches!(act, Act::Hangs) {
        let mut summarizer = summarizer(SummarizerWire::Chat, server);
        summarizer.endpoint.timeout = Duration::from_millis(1_500);
        manager = manager.with_summarizer(Some(Arc::new(summarizer)));
    }
    (manager, events)
}

fn session(manager: Manager) -> Session {
    let mut session = empty_session(manager, "faulty");
    session.append(entries()).unwrap();
    session
}

fn empty_session(manager: Manager, name: &str) -> Session {
    Session::new(Arc::new(manager), name, &WireRules::LENIENT).without_background()
}

fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for i in 0..40 {
        let (user, model) = (
            format!(
                "Please look at src/part_{i}.rs, never touch config_{i}.toml. {}",
                "It matters. ".repeat(8)
            ),
            format!(
                "part_{i} defines Widget{i} and fails with E{i:04}. {}",
                "I looked closely. ".repeat(12)
            ),
        );
        entries.extend([
            Entry::from_text(format!("u{i}"), Role::User, user),
            Entry::from_text(format!("a{i}"), Role::Assistant, model),
        ]);
    }
    entries
}

fn under(on_summary_failure: OnSummaryFailure) -> Policy {
    Policy {
        on_summary_failure,
        ..Policy::default()
    }
}

fn chat(content: &str, finish: &str) -> Act {
    let body = json!({"choices": [{"finish_reason": finish, "message": {"content": content}}]});
    Act::Answers(200, "", body.to_string())
}

/// Every fault, with what the event says of it.
fn faults() -> Vec<(Act, &'static str)> {
    vec![
        (Act::Dies, "the connection ended before the answer did"),
        (
            Act::DiesMidway,
            "the connection ended before the answer did",
        ),
        (refuses(500, "boom"), "status 500 after "),
        (
            Act::Answers(429, "retry-after: 30\r\n", "{}".into()),
            "status 429 after 1 attempts",
        ),
        (Act::Hangs, "no answer within 1.5 s"),
        (
            chat("I'm sorry, but I can't help with that.", "stop"),
            "the model refused",
        ),
        (chat("", "content_filter"), "the model refused"),
        (chat("", "stop"), "the answer was empty"),
        (chat("- the goal is", "length"), "the answer was cut off"),
        (
            chat(&"and so on ".repeat(9_000), "stop"),
            "is larger than its source",
        ),
        (
            Act::Answers(200, "content-type: text/event-stream\r\n", String::new()),
            "the answer cannot be read",
        ),
        (
            Act::Answers(200, "content-type: text/html\r\n", "<h1>proxy</h1>".into()),
            "the answer cannot be read",
        ),
        (refuses(404, "no such model"), "status 404"),
    ]
}

fn is_told(told: &str, reason: &str) {
    assert!(told.contains(reason), "{told} is not {reason}");
    assert!(
        !told.contains("boom") && !told.contains("such model"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_ends_in_the_deterministic_summary() {
    let plain = {
        let (manager, _) = manager(&Server::start([]).await, Policy::default());
        session(manager.without_models())
            .preflight()
            .await
            .unwrap()
            .view
    };
    let tried = faults().into_iter().map(|(act, reason)| {
        let plain = plain.clone();
        async move {
            let server = Server::start([act.clone()]).await;
            let policy = under(OnSummaryFailure::Deterministic);
            let (manager, events) = manager_for(&act, &server, policy);
            let made = session(manager).preflight().await.unwrap();
            assert_eq!(made.view, plain, "{reason}");
            let [(failed, told, fallback)] = &events.fallbacks()[..] else {
                panic!("{reason}: one fallback");
            };
            assert_eq!(*failed, FailedModel::Summarizer("openai m".to_owned()));
            assert_eq!(*fallback, Substitute::Deterministic);
            is_told(told, reason);
        }
    });
    futures::future::join_all(tried).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_leaves_the_history_where_the_profile_says_fail() {
    let tried = faults().into_iter().map(|(act, reason)| async move {
        let server = Server::start([act.clone()]).await;
        let (manager, events) = manager_for(&act, &server, Profile::HardReset.policy());
        let mut session = session(manager.clone());
        let error = session.preflight().await.unwrap_err();
        assert!(matches!(error, Error::Summary { .. }), "{error}");
        let failed = events.read(|kind| match kind {
            EventKind::Failed { error } => Some(error.clone()),
            _ => None,
        });
        is_told(&failed[0], reason);
        let is_end = |kind: &EventKind| matches!(kind, EventKind::Completed { .. }).then_some(());
        assert_eq!(events.read(is_end), []);
        assert!(
            manager
                .catalog()
                .session_records("faulty")
                .await
                .unwrap()
                .is_empty()
        );
        let asked = server.heard().len();
        let next = session.preflight().await.unwrap();
        assert_eq!(next.view, View::identity(session.state().history()));
        assert_eq!(
            server.heard().len(),
            asked,
            "{reason}: asked again in the same turn"
        );
    });
    futures::future::join_all(tried).await;
}

#[tokio::test]
async fn other_profiles_fall_back_as_they_say() {
    for (profile, fallback) in [
        (Profile::CheckpointRestart, Substitute::MinimalPrompt),
        (Profile::NativeArchive, Substitute::Host),
    ] {
        let server = Server::start([refuses(400, "no")]).await;
        let (manager, events) = manager(&server, profile.policy());
        let made = session(manager).manual_compact(None).await.unwrap();
        assert_eq!(made.receipt.is_none(), fallback == Substitute::Host);
        let taken: Vec<Substitute> = events.fallbacks().into_iter().map(|f| f.2).collect();
        assert_eq!(taken, [fallback]);
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let server = Server::start([
        Act::Answers(429, "retry-after: 1\r\n", "{}".into()),
        refuses(503, "later"),
        says("- Widget1 fails"),
    ])
    .await;
    let summarizer = summarizer(SummarizerWire::Chat, &server);
    assert_eq!(
        summarizer.answer(&sample_question()).await.unwrap().text,
        "- Widget1 fails"
    );
    let heard = server.heard();
    assert_eq!(heard.len(), 3);
    assert!(heard[1].at - heard[0].at >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_server_that_was_killed_is_asked_again() {
    let server = Server::start([Act::Dies, Act::DiesMidway, says("- Widget1 fails")]).await;
    let answer = summarizer(SummarizerWire::Chat, &server)
        .answer(&sample_question())
        .await;
    assert_eq!(answer.unwrap().text, "- Widget1 fails");
}

#[tokio::test]
async fn nobody_there_is_told_with_the_place() {
    let server = Server::start([]).await;
    let url = server.url.clone();
    let gone = summarizer(SummarizerWire::Chat, &server);
    drop(server);
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = gone.answer(&sample_question()).await.unwrap_err();
    assert!(
        matches!(&error, SummarizerError::Unreachable { place, .. } if *place == url),
        "{error}"
    );
}

#[tokio::test]
async fn a_request_that_is_too_long_is_told_apart() {
    let body = r#"{"error":{"code":400,"message":"request (4031 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4031,"n_ctx":2048}}"#;
    let server = Server::start([Act::Answers(400, "", body.into())]).await;
    let error = summarizer(SummarizerWire::Chat, &server)
        .answer(&sample_question())
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            SummarizerError::TooLong {
                limit: Some(Tokens(2048)),
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn secrets_in_the_transcript_are_not_in_the_bytes_that_are_sent() {
    let server = Server::start([says("- Widget1 fails with E0001, see src/part_1.rs")]).await;
    let (manager, events) = manager(&server, Policy::default());
    let secrets = [
        ["ghp", "_", &"a1B2".repeat(9)].concat(),
        ["AKIA", "ABCDEFGHIJKLMNOP"].concat(),
        ["password: ", "hunter2-hunter2"].concat(),
    ];
    let mut session = empty_session(manager, "secret");
    let use_of = |(i, s): (usize, &String)| {
        Entry::from_text(format!("s{i}"), Role::User, format!("use {s} for it"))
    };
    let said = secrets.iter().enumerate().map(use_of);
    session.append(said.chain(entries())).unwrap();
    let made = session.preflight().await.unwrap();
    assert_eq!(made.receipt.unwrap().summarizer, "openai m");
    assert_eq!(events.fallbacks(), []);
    let sent = server.heard();
    assert!(sent.iter().any(|h| h.body.contains("REDACTED")));
    for heard in &sent {
        let bytes = format!("{}{}", heard.head, heard.body);
        assert!(
            !bytes.contains("a1B2a1B2")
                && !bytes.contains("ABCDEFGHIJKLMNOP")
                && !bytes.contains("hunter2")
        );
    }
}

#[tokio::test]
async fn abandoning_a_compaction_abandons_the_request_and_changes_nothing() {
    let server = Server::start([Act::Hangs]).await;
    let (manager, _) = manager(&server, Policy::default());
    let mut session = session(manager.clone());
    let asked = async {
        while server.heard().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = session.preflight() => panic!("nobody answered"),
        () = asked => {}
    }
    assert_eq!(server.heard().len(), 1);
    assert!(
        manager
            .catalog()
            .session_records("faulty")
            .await
            .unwrap()
            .is_empty()
    );
    assert!(manager.archive().unwrap().list().await.unwrap().is_empty());
}
