//! What every store of transcripts must do. Call [`suite`] with an empty store from the adapter's
//! tests. Torn lines, permissions and full disks stay with the adapter.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Artifact, TranscriptStore};

/// Session ids that must not meet, or escape from where they are kept.
pub const ODD_SESSIONS: [&str; 12] = [
    "s1",
    "S1",
    "s1 ",
    "",
    ".",
    "..",
    "../s1",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "nul\0\n",
    "ünï\u{2028}",
];

/// Runs every check against a store that is empty.
pub async fn suite(store: &dyn TranscriptStore) {
    an_unknown_session_has_no_events(store).await;
    events_come_back_as_they_were(store).await;
    odd_sessions_stay_apart(store).await;
    concurrent_events_keep_each_senders_order(store).await;
    artifacts_never_replace_each_other(store).await;
}

async fn an_unknown_session_has_no_events(store: &dyn TranscriptStore) {
    assert_eq!(
        store.read("nobody").await.unwrap(),
        super::Transcript::default()
    );
    store
        .flush("nobody")
        .await
        .expect("nothing to write is no failure");
}

/// Raw JSON, whatever it is.
async fn events_come_back_as_they_were(store: &dyn TranscriptStore) {
    let events = vec![
        json!({"type": "user_message", "content": "line\nbreaks\r\n and \u{2028}"}),
        json!({"zeta": 1, "alpha": {"nested": [1.5, null, "ü"]}}),
        json!({}),
        json!({"type": "tool_result", "result": "x".repeat(300_000)}),
    ];
    for event in &events {
        store.append("raw", event);
    }
    store.flush("raw").await.unwrap();
    let read = store.read("raw").await.unwrap();
    assert_eq!((read.events, read.damaged), (events, 0));
}

async fn odd_sessions_stay_apart(store: &dyn TranscriptStore) {
    for session in ODD_SESSIONS {
        store.append(session, &json!({ "session": session }));
    }
    for session in ODD_SESSIONS {
        store.flush(session).await.unwrap();
        let read = store.read(session).await.unwrap();
        assert_eq!(read.events, [json!({ "session": session })], "{session:?}");
        let at = Timestamp::UNIX_EPOCH;
        store
            .keep_artifact(session, Artifact::Summary, at, session)
            .await
            .unwrap();
    }
    let places: BTreeSet<String> = ODD_SESSIONS.iter().map(|s| store.location(s)).collect();
    assert_eq!(places.len(), ODD_SESSIONS.len());
}

async fn concurrent_events_keep_each_senders_order(store: &dyn TranscriptStore) {
    std::thread::scope(|scope| {
        for sender in 0..8 {
            scope.spawn(move || {
                for n in 0..500 {
                    store.append("many", &json!({"sender": sender, "n": n}));
                }
            });
        }
    });
    store.flush("many").await.unwrap();
    let read = store.read("many").await.unwrap();
    assert_eq!((read.events.len(), read.damaged), (4_000, 0));
    for sender in 0..8 {
        let mine = read.events.iter().filter(|e| e["sender"] == sender);
        let order: Vec<u64> = mine.filter_map(|e| e["n"].as_u64()).collect();
        assert_eq!(order, (0..500).collect::<Vec<u64>>());
    }
}

async fn artifacts_never_replace_each_other(store: &dyn TranscriptStore) {
    let at = Timestamp::UNIX_EPOCH;
    let mut places = BTreeSet::new();
    for artifact in [Artifact::SummarizerInput, Artifact::Summary] {
        for text in ["one", "two", "three"] {
            places.insert(
                store
                    .keep_artifact("artful", artifact, at, text)
                    .await
                    .unwrap(),
            );
        }
    }
    assert_eq!(places.len(), 6);
    let events: Vec<Value> = store.read("artful").await.unwrap().events;
    assert_eq!(events, Vec::<Value>::new());
}
