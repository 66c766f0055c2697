//! What every recall index must do. Call [`suite`] with an empty index from the adapter's tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use compact_core::identity::EntryHash;
use compact_core::message::{Entry, EntryId, Role};

use super::{
    EntrySpeaker, IndexAddition, IndexLookup, IndexedEntry, IndexedPassage, LookupResult,
    RecallIndex,
};
use crate::port::catalog::conformance::ODD_SESSION_IDS;
use crate::recall::term;

/// Runs every check against an index that is empty.
pub async fn suite(index: &dyn RecallIndex) {
    an_empty_index_answers(index).await;
    what_was_added_is_found(index).await;
    places_are_known(index).await;
    adding_twice_is_once(index).await;
    an_entry_is_held_once_per_session(index).await;
    passages_are_found_by_themselves(index).await;
    rare_terms_decide(index).await;
    any_text_is_a_session_id(index).await;
    any_term_is_only_a_term(index).await;
    concurrent_additions_all_arrive(index).await;
    forgetting_leaves_nothing(index).await;
}

/// When every sample was said.
const SAID_AT: &str = "2026-01-02T03:00:00Z";

/// An entry of one passage.
pub fn sample_entry(n: u64, text: &str) -> IndexedEntry {
    let terms = term::distinct_terms(text);
    IndexedEntry {
        hash: EntryHash::from_entry(&Entry::from_text("", Role::User, text)),
        entry_id: EntryId(format!("e{n}")),
        ordinal: Some(n),
        partner: Some(n + 1),
        said_at: Some(SAID_AT.to_owned()),
        role: Role::User,
        voice: EntrySpeaker::User,
        text: text.to_owned(),
        passages: vec![IndexedPassage {
            span: 0..text.len(),
            terms,
        }],
    }
}

/// What a receipt adds.
pub fn sample_addition(session: &str, receipt: &str, entries: Vec<IndexedEntry>) -> IndexAddition {
    IndexAddition {
        session_id: session.to_owned(),
        receipt_id: receipt.to_owned(),
        created_at: "2026-01-02T03:04:05.678Z".to_owned(),
        entries: Box::new(entries.into_iter().map(Ok)),
    }
}

async fn find_words(index: &dyn RecallIndex, words: &str, session: Option<&str>) -> LookupResult {
    let lookup = IndexLookup {
        terms: term::distinct_terms(words),
        session_id: session.map(str::to_owned),
        limit: 50,
        ..IndexLookup::default()
    };
    index.find(&lookup).await.unwrap()
}

async fn find_texts(index: &dyn RecallIndex, words: &str, session: Option<&str>) -> Vec<String> {
    let found = find_words(index, words, session).await;
    let mut texts: Vec<String> = found
        .candidates
        .iter()
        .map(|c| c.passage_text().to_owned())
        .collect();
    texts.sort_unstable();
    texts
}

async fn an_empty_index_answers(index: &dyn RecallIndex) {
    assert_eq!(
        index.receipts().await.unwrap(),
        vec![],
        "the suite needs an empty index"
    );
    let found = find_words(index, "anything else", None).await;
    let want = LookupResult {
        frequencies: vec![0, 0],
        ..LookupResult::default()
    };
    assert_eq!(found, want);
    assert_eq!(find_words(index, "", None).await, LookupResult::default());
    index.forget("nobody").await.expect("no error");
}

async fn what_was_added_is_found(index: &dyn RecallIndex) {
    let entries = vec![
        sample_entry(7, "the metrics port is 9187"),
        sample_entry(8, "the admin port is 8443"),
    ];
    index
        .add(sample_addition("a", "r1", entries))
        .await
        .unwrap();
    assert_eq!(
        index.receipts().await.unwrap(),
        [("a".to_owned(), "r1".to_owned())]
    );
    let found = find_words(index, "metrics port", None).await;
    assert_eq!((found.passages, &*found.frequencies), (2, &[1, 2][..]));
    let first = found
        .candidates
        .iter()
        .find(|c| c.text.contains("metrics"))
        .unwrap();
    assert_eq!(
        (&*first.session_id, &*first.receipt_id, first.ordinal),
        ("a", "r1", Some(7))
    );
    assert_eq!((first.role, first.voice), (Role::User, EntrySpeaker::User));
    assert_eq!(first.entry_id, EntryId("e7".to_owned()));
    assert_eq!(first.hash, sample_entry(7, "the metrics port is 9187").hash);
    assert_eq!(first.created_at, "2026-01-02T03:04:05.678Z");
    assert_eq!(
        (first.partner, first.said_at.as_deref()),
        (Some(8), Some(SAID_AT))
    );
}

/// An entry is had by its place, and a search may begin behind one.
async fn places_are_known(index: &dyn RecallIndex) {
    let found = index.entries_at("a", &[8, 99]).await.unwrap();
    let texts: Vec<&str> = found.iter().map(|c| c.passage_text()).collect();
    assert_eq!(texts, ["the admin port is 8443"]);
    assert_eq!(index.entries_at("nobody", &[8]).await.unwrap(), vec![]);
    assert_eq!(index.entries_at("a", &[]).await.unwrap(), vec![]);
    for (after, want) in [(6, 2), (7, 1), (8, 0)] {
        let lookup = IndexLookup {
            terms: vec!["port".to_owned()],
            session_id: Some("a".to_owned()),
            after: Some(after),
            limit: 50,
        };
        let found = index.find(&lookup).await.unwrap();
        assert_eq!(found.candidates.len(), want, "after {after}");
        let everywhere = IndexLookup {
            session_id: None,
            ..lookup
        };
        let found = index.find(&everywhere).await.unwrap();
        assert_eq!(found.candidates.len(), want, "after {after}, everywhere");
    }
}

async fn adding_twice_is_once(index: &dyn RecallIndex) {
    let again = vec![sample_entry(9, "other words entirely")];
    index.add(sample_addition("a", "r1", again)).await.unwrap();
    assert_eq!(find_words(index, "entirely", None).await.passages, 2);
    assert_eq!(index.receipts().await.unwrap().len(), 1);
}

async fn an_entry_is_held_once_per_session(index: &dyn RecallIndex) {
    let same = vec![sample_entry(70, "the metrics port is 9187")];
    index
        .add(sample_addition("a", "r2", same.clone()))
        .await
        .unwrap();
    let found = find_words(index, "metrics", None).await;
    let places: Vec<_> = found.candidates.iter().map(|c| c.ordinal).collect();
    assert_eq!(places, [Some(70)], "the newest place counts");
    assert_eq!(found.candidates[0].receipt_id, "r2");
    let mut nowhere = same.clone();
    nowhere[0].ordinal = None;
    index
        .add(sample_addition("a", "r3", nowhere))
        .await
        .unwrap();
    let found = find_words(index, "metrics", None).await;
    let places: Vec<_> = found.candidates.iter().map(|c| c.ordinal).collect();
    assert_eq!(places, [Some(70)], "no place is no better one");
    index.add(sample_addition("b", "r2", same)).await.unwrap();
    assert_eq!(find_texts(index, "metrics", None).await.len(), 2);
    assert_eq!(find_texts(index, "metrics", Some("b")).await.len(), 1);
}

async fn passages_are_found_by_themselves(index: &dyn RecallIndex) {
    let text = "first about walruses\nthen about penguins";
    let mut long = sample_entry(1, text);
    long.passages = [0..21, 21..text.len()]
        .map(|span| IndexedPassage {
            terms: term::distinct_terms(&text[span.clone()]),
            span,
        })
        .into();
    index
        .add(sample_addition("long", "r", vec![long]))
        .await
        .unwrap();
    assert_eq!(
        find_texts(index, "penguins", None).await,
        ["then about penguins"]
    );
    assert_eq!(find_texts(index, "walruses penguins", None).await.len(), 2);
}

/// Many passages hold the common words; the few candidates are those with the rare one.
async fn rare_terms_decide(index: &dyn RecallIndex) {
    let mut entries: Vec<IndexedEntry> = (0..300)
        .map(|n| sample_entry(n, &format!("common words in case {n}")))
        .collect();
    entries.push(sample_entry(300, "common words about a quokka"));
    index
        .add(sample_addition("many", "r", entries))
        .await
        .unwrap();
    let lookup = IndexLookup {
        terms: term::distinct_terms("common words quokka"),
        limit: 3,
        ..IndexLookup::default()
    };
    let found = index.find(&lookup).await.unwrap();
    assert_eq!(found.candidates.len(), 3);
    assert!(found.candidates.iter().any(|c| c.text.contains("quokka")));
}

async fn any_text_is_a_session_id(index: &dyn RecallIndex) {
    for (n, id) in ODD_SESSION_IDS.into_iter().enumerate() {
        let words = vec![sample_entry(n as u64, &format!("platypus {n}"))];
        index.add(sample_addition(id, "odd", words)).await.unwrap();
    }
    for (n, id) in ODD_SESSION_IDS.into_iter().enumerate() {
        let found = find_texts(index, "platypus", Some(id)).await;
        assert_eq!(found, [format!("platypus {n}")], "{id:?}");
    }
    assert_eq!(find_texts(index, "platypus", None).await.len(), 8);
    assert!(
        find_texts(index, "platypus", Some("nobody"))
            .await
            .is_empty()
    );
}

/// What a query language would read as an operator, as terms that callers may well pass.
async fn any_term_is_only_a_term(index: &dyn RecallIndex) {
    let odd = [
        "AND", "OR", "NOT", "near", "quo\"te", "'", "*", "(", ")", "a*", "^a", "{x}:", "col:x",
        "#1", "-", "", "\0", "--", ";", "ünï", "設定",
    ];
    for term in odd {
        let lookup = IndexLookup {
            terms: vec![term.to_owned(), "platypus".to_owned()],
            limit: 50,
            ..IndexLookup::default()
        };
        let found = index.find(&lookup).await;
        let found = found.unwrap_or_else(|error| panic!("{term:?}: {error}"));
        assert!(found.candidates.len() >= 8, "{term:?}");
    }
}

async fn concurrent_additions_all_arrive(index: &dyn RecallIndex) {
    let add = |receipt: &'static str, text: &'static str| {
        index.add(sample_addition(
            "parallel",
            receipt,
            vec![sample_entry(1, text)],
        ))
    };
    let done = tokio::join!(add("p1", "aardvark one"), add("p2", "aardvark two"));
    assert!(matches!(done, (Ok(()), Ok(()))));
    assert_eq!(find_texts(index, "aardvark", None).await.len(), 2);
}

async fn forgetting_leaves_nothing(index: &dyn RecallIndex) {
    index.forget("a").await.unwrap();
    assert_eq!(
        find_texts(index, "metrics", None).await.len(),
        1,
        "b holds it still"
    );
    let mut sessions: Vec<String> = index
        .receipts()
        .await
        .unwrap()
        .into_iter()
        .map(|r| r.0)
        .collect();
    sessions.dedup();
    for session in sessions {
        index.forget(&session).await.unwrap();
    }
    assert_eq!(index.receipts().await.unwrap(), vec![]);
    let found = find_words(index, "metrics", None).await;
    assert_eq!((found.passages, found.candidates), (0, vec![]));
    let again = vec![sample_entry(1, "the metrics port is 9187")];
    index.add(sample_addition("a", "r1", again)).await.unwrap();
    assert_eq!(find_texts(index, "metrics", None).await.len(), 1);
    index.forget("a").await.unwrap();
}
