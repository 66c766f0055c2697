//! What is ours fails or falls silent: the request goes out as it came, and an upstream that refuses it as too long is
//! still answered with a smaller prompt where one can be had.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::response::Response;
use bytes::Bytes;
use compact::Compact;
use compact::store::{ArchiveError, ArchiveStore, PackId, PackInfo, StorePair};
use serde_json::{Value, json};

use crate::scene::{Scene, SentRequest, chat_answer, json_reply, long_dialogue};

/// How a store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It never answers.
    Silent,
    /// It says once that it is full, and then works.
    FullOnce,
}

/// An archive that fails where something is put into it.
struct FaultyArchive {
    inner: Arc<dyn ArchiveStore>,
    fault: Fault,
    has_failed: AtomicBool,
}

#[async_trait]
impl ArchiveStore for FaultyArchive {
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError> {
        match self.fault {
            Fault::Silent => pending().await,
            Fault::FullOnce if !self.has_failed.swap(true, Ordering::Relaxed) => {
                Err(ArchiveError::Damaged {
                    pack: PackId([0; 32]),
                    reason: "the disk is full".to_owned(),
                })
            }
            Fault::FullOnce => self.inner.put(plain, base).await,
        }
    }

    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        self.inner.get(id).await
    }

    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        self.inner.info(id).await
    }

    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.inner.list().await
    }

    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.inner.remove(id).await
    }

    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.inner.put_record(id, plain).await
    }

    async fn get_record(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        self.inner.get_record(id).await
    }

    async fn list_records(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.inner.list_records().await
    }

    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.inner.remove_record(id).await
    }
}

/// A gateway with a window of 6,000 tokens over an archive that fails; the upstream takes as many. Events come out of
/// the other end.
async fn faulty_scene(fault: Fault) -> (Scene, Receiver<Value>) {
    let store = StorePair::in_memory();
    let archive = FaultyArchive {
        inner: store.archive,
        fault,
        has_failed: AtomicBool::new(false),
    };
    let (sender, events) = channel();
    let compact = Compact::builder()
        .archive(Arc::new(archive))
        .catalog(store.catalog)
        .window(6_000)
        .events(move |event| drop(sender.send(json!(event))));
    let compact = compact.build().unwrap();
    let scene = Scene::with(compact, |config| config.store_timeout_seconds = 1, limited).await;
    (scene, events)
}

fn limited(request: &SentRequest) -> Response {
    let tokens = request.body.len() / 4;
    if tokens <= 6_000 {
        return chat_answer(request);
    }
    let message = format!("prompt is too long: {tokens} tokens > 6000 maximum");
    json_reply(
        400,
        &json!({"error": {"message": message, "code": "context_length_exceeded"}}),
    )
}

fn long_body() -> String {
    json!({"model": "gpt-5", "messages": long_dialogue(40)}).to_string()
}

#[tokio::test]
async fn an_archive_that_is_silent_holds_a_request_for_its_limit_alone() {
    let (scene, events) = faulty_scene(Fault::Silent).await;
    let began = Instant::now();
    let named = [("x-compact-session", "held")];
    let answer = scene
        .post("/v1/chat/completions", &named, long_body())
        .await;
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(scene.sent()[0].body, long_body());
    assert_eq!(answer.status, 400, "the upstream's own refusal");
    let metrics = scene.get("/metrics").await;
    let counted = "compact_gateway_failed_open_total{reason=\"store_timeout\"} 1\n";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
    let mut events = events.try_iter();
    let event = events.find(|event| event["event"] == "compact.failed_open");
    let event = event.expect("an event says so");
    assert_eq!(
        [&event["session_id"], &event["model"], &event["detail"]],
        [
            "held",
            "gpt-5",
            "the store did not answer within gateway.store_timeout_seconds"
        ]
    );
}

#[tokio::test]
async fn requests_that_wait_for_a_silent_archive_hold_no_other() {
    let (scene, _events) = faulty_scene(Fault::Silent).await;
    let scene = Arc::new(scene);
    let held: Vec<_> = (0..24)
        .map(|n| {
            let scene = Arc::clone(&scene);
            tokio::spawn(async move {
                let name = format!("held-{n}");
                let named = [("x-compact-session", &*name)];
                scene
                    .post("/v1/chat/completions", &named, long_body())
                    .await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    let short = json!({"model": "gpt-5", "messages": long_dialogue(1)}).to_string();
    let answer = scene.post(
        "/v1/chat/completions",
        &[("x-compact-session", "free")],
        short,
    );
    assert_eq!(answer.await.status, 200);
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    for held in held {
        held.await.unwrap();
    }
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_refusal_after_a_failure_of_ours_is_answered_with_a_smaller_prompt() {
    let (scene, events) = faulty_scene(Fault::FullOnce).await;
    let answer = scene.post("/v1/chat/completions", &[], long_body()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent = scene.sent();
    assert_eq!((sent.len(), &*sent[0].body), (2, long_body().as_bytes()));
    assert!(sent[1].body.len() < sent[0].body.len());
    assert!(answer.headers.contains_key("x-compact-receipt"));
    let event = events
        .try_iter()
        .find(|event| event["event"] == "compact.failed_open")
        .expect("an event says so");
    let detail = event["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("the disk is full"), "{event}");
    assert_eq!(
        event["session_id"],
        answer.headers["x-compact-session"].to_str().unwrap()
    );
}
