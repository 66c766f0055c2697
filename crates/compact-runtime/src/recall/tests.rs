use compact_core::message::Entry;

use super::*;
use crate::port::archive::MemoryArchive;
use crate::port::catalog::MemoryCatalog;
use crate::port::index::{IndexAddition, MemoryIndex};

/// An index with one receipt per text, each later than the one before.
async fn holding(entries: &[(Role, &str)]) -> Recall {
    let recall = Recall {
        archive: Arc::new(MemoryArchive::default()),
        catalog: Arc::new(MemoryCatalog::default()),
        index: Arc::new(MemoryIndex::default()),
        redactor: Arc::default(),
    };
    for (n, (role, text)) in entries.iter().enumerate() {
        let entry = Entry::from_text(format!("e{n}"), *role, *text);
        let indexed = passage::index_entry(&entry, placed(n as u64), &Default::default());
        let addition = IndexAddition {
            session_id: format!("s{n}"),
            receipt_id: format!("receipt-{n}-of-many"),
            created_at: format!("2026-01-{:02}T00:00:00.000Z", n + 1),
            entries: Box::new(indexed.into_iter().map(Ok)),
        };
        recall.index.add(addition).await.unwrap();
    }
    recall
}

fn placed(ordinal: u64) -> passage::EntryPlacement {
    passage::EntryPlacement {
        ordinal: Some(ordinal),
        ..Default::default()
    }
}

async fn found(recall: &Recall, text: &str) -> Vec<String> {
    let query = RecallQuery {
        text,
        limit: 10,
        ..RecallQuery::default()
    };
    let answer = recall.search(&query).await.unwrap();
    answer.hits.into_iter().map(|hit| hit.entry_id.0).collect()
}

use Role::{Assistant, Tool, User};

#[tokio::test]
async fn the_whole_question_counts_more_than_one_loud_word() {
    let recall = holding(&[
        (
            Assistant,
            "The metrics endpoint listens on port 9187 from now on.",
        ),
        (
            Assistant,
            "The admin endpoint listens on port 8443 from now on.",
        ),
        (
            Tool,
            "metrics metrics metrics metrics metrics metrics metrics",
        ),
        (User, "Which port should the metrics endpoint listen on?"),
    ])
    .await;
    let hits = found(&recall, "which port does the metrics endpoint listen on").await;
    assert_eq!(hits.first().map(String::as_str), Some("e0"), "{hits:?}");
}

#[tokio::test]
async fn a_name_is_worth_more_whole_than_in_parts() {
    let recall = holding(&[
        (Assistant, "config is read, then we parse it"),
        (Assistant, "call parse_config first"),
        (Assistant, "a parse of the config"),
    ])
    .await;
    let hits = found(&recall, "parse_config").await;
    assert_eq!(hits.first().map(String::as_str), Some("e1"), "{hits:?}");
    assert_eq!(found(&recall, "parsing configs").await.len(), 3);
}

#[tokio::test]
async fn an_everyday_verb_decides_nothing() {
    let recall = holding(&[
        (Assistant, "The replica count of billing-api is 3."),
        (Assistant, "billing-api runs with a batch size of 70."),
        (Assistant, "The replica count of search-api is 4."),
        (Assistant, "The replica count of fraud-api is 5."),
    ])
    .await;
    let hits = found(&recall, "how many replicas of billing-api do we run").await;
    assert_eq!(hits.first().map(String::as_str), Some("e0"), "{hits:?}");
}

#[tokio::test]
async fn people_are_heard_before_tools() {
    let recall = holding(&[
        (User, "retries stop after four attempts"),
        (Tool, "retries stop after five attempts"),
    ])
    .await;
    let hits = found(&recall, "when do retries stop").await;
    assert_eq!(hits, ["e0", "e1"]);
}

#[tokio::test]
async fn of_entries_that_say_the_same_the_newest_is_shown() {
    let recall = holding(&[
        (User, "the cache lives in Redis"),
        (User, "The cache lives in redis!"),
        (User, "the cache lives in memory"),
    ])
    .await;
    assert_eq!(
        found(&recall, "where does the redis cache live").await,
        ["e1", "e2"]
    );
}

#[tokio::test]
async fn of_entries_that_contradict_each_other_the_newer_comes_first() {
    let recall = holding(&[
        (User, "the importer runs at six"),
        (User, "the importer runs at nine"),
    ])
    .await;
    assert_eq!(
        found(&recall, "when does the importer run").await,
        ["e1", "e0"]
    );
}

#[tokio::test]
async fn a_question_without_terms_or_with_an_unknown_session_is_refused() {
    let recall = holding(&[(User, "words")]).await;
    let query = |text, session_id| RecallQuery {
        text,
        session_id,
        limit: 1,
        ..RecallQuery::default()
    };
    let empty = recall.search(&query("what is it?", None)).await;
    assert!(matches!(empty, Err(Error::EmptyQuery)));
    let unknown = recall.search(&query("words", Some("nobody"))).await;
    assert!(matches!(unknown, Err(Error::NotFound(name)) if name == "nobody"));
}
