use compact_core::token::{Chars4, Tokens};
use compact_formats::TranscriptScope;
use compact_runtime::manager::{CompactionRequest, RequestOutcome};
use compact_runtime::port::archive::MemoryArchive;
use compact_runtime::port::catalog::MemoryCatalog;
use compact_runtime::port::index::conformance;
use compact_runtime::recall::RecallQuery;
use compact_runtime::{Manager, Recall};

use super::*;
use crate::postgres::tests::Database;

#[tokio::test]
async fn postgres_conforms() {
    let Some(database) = Database::new().await else {
        return;
    };
    let index = PostgresIndex::new(database.server());
    conformance::suite(&index).await;
}

/// The same entries and questions give the same passages with the same frequencies.
#[tokio::test]
async fn it_answers_as_the_embedded_index_does() {
    use compact_runtime::port::index::conformance::{sample_addition, sample_entry};
    let Some(database) = Database::new().await else {
        return;
    };
    let dir = tempfile::TempDir::new().unwrap();
    let embedded = crate::recall::SqliteIndex::open(&dir.path().join("recall.db")).unwrap();
    let shared = PostgresIndex::new(database.server());
    let words = [
        "port",
        "metrics",
        "parse_config",
        "timeout",
        "retry",
        "cache",
    ];
    let text = |n: usize| {
        let word = |k: usize| words[(n * 7 + k * k * 3) % words.len()];
        format!("note {n}: {} {} {}", word(n), word(n + 1), word(n / 3))
    };
    for session in ["a", "b"] {
        let entries = || (0..200).map(|n| sample_entry(n as u64, &text(n)));
        for index in [&embedded as &dyn RecallIndex, &shared] {
            let added = sample_addition(session, "r", entries().collect());
            index.add(added).await.unwrap();
        }
    }
    for (question, session) in [("metrics port", None), ("parse config timeout", Some("b"))] {
        let lookup = IndexLookup {
            terms: compact_runtime::recall::term::distinct_terms(question),
            session_id: session.map(str::to_owned),
            limit: 400,
            ..IndexLookup::default()
        };
        let (mut one, mut two) = (
            embedded.find(&lookup).await.unwrap(),
            shared.find(&lookup).await.unwrap(),
        );
        for found in [&mut one, &mut two] {
            found
                .candidates
                .sort_by(|a, b| (&a.session_id, a.ordinal).cmp(&(&b.session_id, b.ordinal)));
        }
        assert_eq!(one, two, "{question}");
        assert!(!one.candidates.is_empty());
    }
}

/// The facts of a generated session, asked for in their own words and in parts of them: the same
/// entries in the same order with the same scores, whichever index is asked.
#[tokio::test]
async fn it_ranks_as_the_embedded_index_does() {
    let Some(database) = Database::new().await else {
        return;
    };
    let dir = tempfile::TempDir::new().unwrap();
    let embedded = crate::recall::SqliteIndex::open(&dir.path().join("recall.db")).unwrap();
    let shared = PostgresIndex::new(database.server());
    let manager = archived("research-session.jsonl").await;
    let [embedded, shared] = [Arc::new(embedded) as Arc<dyn RecallIndex>, Arc::new(shared)]
        .map(|index| recall(&manager, index));
    let followed = (
        embedded.update_index().await.unwrap(),
        shared.update_index().await.unwrap(),
    );
    assert_eq!(followed.0, followed.1);
    let questions = questions("research-session.facts.json");
    assert!(questions.len() > 80, "{}", questions.len());
    let mut found = 0;
    for text in &questions {
        let query = RecallQuery {
            text,
            limit: 5,
            ..RecallQuery::default()
        };
        let answer = embedded.search(&query).await.unwrap();
        assert_eq!(shared.search(&query).await.unwrap(), answer, "{text}");
        found += usize::from(!answer.hits.is_empty());
    }
    // Every second word of some is a small one, which nothing is found by.
    assert!(found > 100, "{found} of {}", questions.len());
}

fn example(name: &str) -> Vec<u8> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::fs::read(root.join(name)).unwrap()
}

/// What each fact says, and every second word of it.
fn questions(name: &str) -> Vec<String> {
    let facts: serde_json::Value = serde_json::from_slice(&example(name)).unwrap();
    let texts = facts["facts"].as_array().unwrap().iter();
    let texts = texts.map(|fact| fact["text"].as_str().unwrap().to_owned());
    let asked = texts.flat_map(|text| {
        let half: Vec<&str> = text.split(' ').step_by(2).collect();
        [half.join(" "), text]
    });
    asked.step_by(2).collect()
}

/// A manager that compacted an example.
async fn archived(name: &str) -> Manager {
    let catalog = Arc::new(MemoryCatalog::default());
    let manager = Manager::new(catalog, Arc::new(Chars4), Arc::default(), Tokens(100_000))
        .with_archive(Some(Arc::new(MemoryArchive::default())));
    let bytes = bytes::Bytes::from(example(name));
    let parsed = compact_formats::parse(bytes.clone(), None, TranscriptScope::Live).unwrap();
    let request = CompactionRequest::from_transcript(&parsed, bytes).with_budget(Tokens(10_000));
    let compacted = manager.compact(&request).await.unwrap();
    assert!(matches!(compacted, RequestOutcome::Done(_)));
    manager
}

fn recall(manager: &Manager, index: Arc<dyn RecallIndex>) -> Recall {
    Recall {
        archive: manager.archive().cloned().unwrap(),
        catalog: Arc::clone(manager.catalog()),
        index,
        redactor: Arc::default(),
    }
}
