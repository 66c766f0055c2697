//! What every door gets from this crate, over stores in a folder.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use compact::Compact;
use compact::hook::{HOOKS_FOLDER, HookStore, HookTranscript};
use compact::recall::SecretDisplay;
use compact::redact::Redactor;
use serde_json::{Value, json};

fn history(subject: &str) -> Vec<Value> {
    let turn = |n: u32| {
        [
            json!({"role": "user", "content": format!("Measure {subject} {n}.")}),
            json!({"role": "assistant", "content": format!("{subject} {n} took {n} ms. ").repeat(60)}),
        ]
    };
    (0..40).flat_map(turn).collect()
}

#[tokio::test]
async fn retention_holds_after_each_compaction_of_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let settings = r#"{"storage": {"retention": {"max_bytes": 1}}}"#;
    let compact = Compact::builder()
        .config_json(settings)
        .data_directory(folder.path())
        .window(20_000)
        .build()
        .unwrap();
    let mut session = compact.session("s");
    let first = session.compact(&history("parser"), None).await.unwrap();
    // Another history: nothing in its view points at the first compaction.
    let second = session.compact(&history("lexer"), None).await.unwrap();
    let catalog = compact.store_as_is().unwrap().catalog;
    let records = catalog.session_records("s").await.unwrap();
    let left: Vec<&str> = records.iter().map(|r| &*r.receipt_id).collect();
    assert_eq!(left, [second.receipt().unwrap().receipt_id.as_str()]);
    let gone = compact.restore(&first.receipt().unwrap().receipt_id).await;
    assert_eq!(gone.unwrap_err().kind(), compact::ErrorKind::NotFound);
}

#[tokio::test]
async fn recall_finds_what_a_hook_archived() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = folder.path().join("transcript.json");
    let said = json!([{"role": "user", "content": "The metrics are served on port 9464."}]);
    std::fs::write(&transcript, said.to_string()).unwrap();
    let hooks = folder.path().join(HOOKS_FOLDER);
    HookStore::for_session(&hooks, Some(folder.path()), "hooked")
        .archive(
            &HookTranscript::File(transcript),
            jiff::Timestamp::UNIX_EPOCH,
            &Redactor::default(),
        )
        .unwrap();
    let compact = Compact::builder()
        .data_directory(folder.path())
        .build()
        .unwrap();
    let hits = compact.recall("metrics port").await.unwrap();
    let found: Vec<&str> = hits.iter().map(|hit| &*hit.session_id).collect();
    assert_eq!(found, ["hooked"]);
    let found = compact.expand(&hits[0].pointer, SecretDisplay::Redacted);
    let entry = found.await.unwrap();
    assert_eq!(entry.text(), "The metrics are served on port 9464.");
    let verified = compact.verify(&hits[0].receipt_id).await.unwrap();
    assert_eq!(verified.mismatches, []);
}

#[tokio::test]
async fn another_process_restores_verifies_and_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let builder = Compact::builder().data_directory(folder.path());
        builder.window(20_000).build().unwrap()
    };
    let messages = history("parser");
    let prompt = open().session("s").compact(&messages, None).await.unwrap();
    assert!(prompt.messages().unwrap().len() < messages.len());
    let restored = open().restore("s").await.unwrap();
    let restored: Vec<Value> = serde_json::from_slice(&restored.bytes).unwrap();
    assert_eq!(restored, messages);
    let receipt = &prompt.receipt().unwrap().receipt_id;
    assert_eq!(open().verify(receipt).await.unwrap().mismatches, []);
    assert!(!open().remember("s").await.unwrap().summary.is_empty());
}

#[test]
fn a_folder_without_an_archive_is_an_error_with_a_hint_and_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    let compact = Compact::builder().data_directory(folder.path()).build();
    let error = compact.unwrap().open_recall().map(drop).unwrap_err();
    assert_eq!(error.kind(), compact::ErrorKind::NotFound);
    assert_eq!(
        error.hint().as_deref(),
        Some("compact something first, with an archive")
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
