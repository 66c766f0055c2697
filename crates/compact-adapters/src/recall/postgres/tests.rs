use compact_runtime::port::index::conformance;

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
    use compact_runtime::port::index::conformance::{addition, entry};
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
        let entries = (0..200)
            .map(|n| entry(n as u64, &text(n)))
            .collect::<Vec<_>>();
        let added = addition(session, "r", entries);
        embedded.add(added.clone()).await.unwrap();
        shared.add(added).await.unwrap();
    }
    for (question, session) in [("metrics port", None), ("parse config timeout", Some("b"))] {
        let lookup = Lookup {
            terms: compact_runtime::recall::term::distinct(question),
            session_id: session.map(str::to_owned),
            limit: 400,
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
