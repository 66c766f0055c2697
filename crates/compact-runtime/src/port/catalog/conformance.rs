//! What every catalog must do. Call [`suite`] with an empty catalog from the adapter's tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use std::time::{Duration, Instant};

use compact_core::identity::{Chain, EntryHash};
use serde_json::{Value, json};

use super::{
    Attempt, CatalogError, CompactionRecord, InputRelation, Lease, SessionCatalog, SessionInfo,
};
use crate::port::archive::PackId;

/// Runs every check against a catalog that is empty.
pub async fn suite(catalog: &dyn SessionCatalog) {
    an_empty_catalog_answers(catalog).await;
    any_text_is_a_session_id(catalog).await;
    a_chain_is_in_order(catalog).await;
    recording_twice_is_one_record(catalog).await;
    absent_packs_are_filled_in(catalog).await;
    sessions_may_share_a_receipt(catalog).await;
    histories_find_their_sessions(catalog).await;
    prefixes_find_one_receipt(catalog).await;
    events_come_back_in_order(catalog).await;
    the_last_attempt_counts(catalog).await;
    concurrent_records_all_arrive(catalog).await;
    a_lease_is_granted_to_one(catalog).await;
    removal_forgets(catalog).await;
}

/// Checks what must happen when time passes, against an empty catalog; `wait` lets so much of the
/// catalog's time pass.
pub async fn lease_suite(catalog: &dyn SessionCatalog, wait: impl AsyncFn(Duration)) {
    let time = catalog.lease_time();
    let dead = a_renewed_lease_lasts(catalog, &wait).await;
    wait(time).await;
    // Late, but nobody else came: what was made is as good as ever.
    let record = sample_record("lease", "late-but-alone");
    catalog.save_record_under(&dead, &record).await.unwrap();
    let next = catalog.claim("lease").await.unwrap().unwrap();
    assert!(next.fence > dead.fence);
    a_late_writer_changes_nothing(catalog, &dead).await;
    let record = sample_record("lease", "of-the-holder");
    catalog.save_record_under(&next, &record).await.unwrap();
    catalog.release(&next).await.unwrap();
    a_late_writer_changes_nothing(catalog, &dead).await;
    a_late_writer_changes_nothing(catalog, &next).await;
    assert_eq!(catalog.session_records("lease").await.unwrap().len(), 2);
}

/// Checks that no lease blocks its session for long after the clock of an empty catalog was set back;
/// `set_back` sets it back by so much.
pub async fn set_back_suite(catalog: &dyn SessionCatalog, set_back: impl AsyncFn(Duration)) {
    let time = catalog.lease_time();
    let held = catalog.claim("lease").await.unwrap().unwrap();
    set_back(time).await;
    let other = catalog.claim("lease").await.unwrap();
    assert_eq!(other, None, "it ends within two lease times");
    set_back(time + Duration::from_millis(1)).await;
    let next = catalog.claim("lease").await.unwrap();
    let next = next.expect("no lease ends as late as that");
    assert!(next.fence > held.fence);
    a_late_writer_changes_nothing(catalog, &held).await;
    assert!(catalog.renew(&next).await.unwrap());
}

/// Returns the lease. A machine that is too busy to ask in time shows nothing, and is asked again.
async fn a_renewed_lease_lasts(
    catalog: &dyn SessionCatalog,
    wait: &impl AsyncFn(Duration),
) -> Lease {
    let time = catalog.lease_time();
    for _ in 0..50 {
        let lease = catalog.claim("lease").await.unwrap().unwrap();
        wait(time / 2).await;
        let renewed = Instant::now();
        assert!(catalog.renew(&lease).await.unwrap());
        wait(time * 3 / 4).await;
        let other = catalog.claim("lease").await.unwrap();
        if renewed.elapsed() < time {
            assert_eq!(other, None, "it was renewed");
            return lease;
        }
        catalog.release(&other.unwrap_or(lease)).await.unwrap();
    }
    panic!("nothing here is ever done within {time:?}");
}

async fn a_late_writer_changes_nothing(catalog: &dyn SessionCatalog, late: &Lease) {
    let record = sample_record(&late.session_id, "too-late");
    let refused = catalog.save_record_under(late, &record).await;
    assert!(matches!(refused, Err(CatalogError::Fenced { session }) if session == late.session_id));
    assert!(!catalog.renew(late).await.unwrap());
    catalog.release(late).await.unwrap();
    assert_eq!(catalog.find_record("too-late").await.unwrap(), None);
}

async fn a_lease_is_granted_to_one(catalog: &dyn SessionCatalog) {
    for id in ODD_SESSION_IDS {
        let claim = || catalog.claim(id);
        let (a, b, c, d) = tokio::join!(claim(), claim(), claim(), claim());
        let granted: Vec<Lease> = [a, b, c, d]
            .into_iter()
            .filter_map(Result::unwrap)
            .collect();
        let [lease] = granted.as_slice() else {
            panic!("{} of four have the lease of {id:?}", granted.len());
        };
        let other = catalog.claim("another session").await.unwrap();
        let other = other.expect("every session has its own");
        assert!(other.fence > lease.fence);
        assert!(catalog.renew(lease).await.unwrap());
        let record = sample_record(id, "under-a-lease");
        catalog.save_record_under(lease, &record).await.unwrap();
        assert_eq!(catalog.latest_record(id).await.unwrap(), Some(record));
        for lease in [lease, &other] {
            catalog.release(lease).await.unwrap();
        }
        let again = catalog.claim(id).await.unwrap().expect("it was given back");
        a_late_writer_changes_nothing(catalog, lease).await;
        catalog.release(&again).await.unwrap();
        catalog.remove_session(id).await.unwrap();
    }
}

/// A record with every field filled, different for every `receipt_id`.
pub fn sample_record(session_id: &str, receipt_id: &str) -> CompactionRecord {
    let hash = |n: u8| EntryHash([n; 16]);
    CompactionRecord {
        receipt_id: receipt_id.to_owned(),
        session_id: session_id.to_owned(),
        created_at: "2026-01-02T03:04:05.678Z".to_owned(),
        summary_version: 7,
        previous: Some(format!("before-{receipt_id}")),
        input_pack: Some(PackId::of(receipt_id.as_bytes(), None)),
        format: "openai_chat".to_owned(),
        receipt: json!({"outcome": "compacted", "n": 1.5, "deep": [null, {"ключ": "\u{0}\n"}],
            "archive": {"advice": advice_pack_id(receipt_id), "view": view_pack_id(receipt_id)}})
        .into(),
        entry_hashes: (0..40).map(hash).collect(),
        view_hashes: vec![hash(0), hash(200), hash(39)],
        new_from: 12,
        continues: InputRelation::View,
        source_chain: Some(history_chain(receipt_id)),
    }
}

/// What was made, in a pack of its own.
fn view_pack_id(receipt_id: &str) -> PackId {
    PackId::of(format!("view of {receipt_id}").as_bytes(), None)
}

/// A history that only this receipt is a compaction of.
fn history_chain(receipt_id: &str) -> Chain {
    let bytes = receipt_id.bytes().chain(std::iter::repeat(0)).take(16);
    let hashes: Vec<EntryHash> = bytes.map(|byte| EntryHash([byte; 16])).collect();
    Chain::from_hashes(&hashes)
}

/// What models said, in a pack of its own.
fn advice_pack_id(receipt_id: &str) -> PackId {
    PackId::of(format!("advice on {receipt_id}").as_bytes(), None)
}

/// Session ids that a host may well use, and that must never be more than a key.
pub const ODD_SESSION_IDS: [&str; 8] = [
    "",
    " ",
    "../../etc/passwd",
    "/abs/olute",
    "C:\\windows\\nul",
    "nul\0byte",
    "日本語 🦀\u{202e}",
    "'; DROP TABLE sessions; --",
];

async fn an_empty_catalog_answers(catalog: &dyn SessionCatalog) {
    assert_eq!(
        catalog.sessions().await.unwrap(),
        vec![],
        "the suite needs an empty catalog"
    );
    assert_eq!(catalog.latest_record("nobody").await.unwrap(), None);
    assert_eq!(catalog.session_records("nobody").await.unwrap(), vec![]);
    assert_eq!(catalog.find_record("0123456789abcdef").await.unwrap(), None);
    assert_eq!(catalog.events("nobody").await.unwrap(), Vec::<Value>::new());
    assert_eq!(catalog.last_attempt("nobody").await.unwrap(), None);
    assert_eq!(catalog.referenced_packs().await.unwrap(), vec![]);
    catalog
        .remove_session("nobody")
        .await
        .expect("forgetting nobody is no error");
    catalog
        .remove_receipt("nobody", "nothing")
        .await
        .expect("nor is forgetting nothing");
}

async fn any_text_is_a_session_id(catalog: &dyn SessionCatalog) {
    let long = "x".repeat(10_000);
    for id in ODD_SESSION_IDS.into_iter().chain([long.as_str()]) {
        let record = sample_record(id, "receipt-of-an-odd-session");
        catalog.save_record(&record).await.unwrap();
        assert_eq!(
            catalog.latest_record(id).await.unwrap(),
            Some(record),
            "session {id:?}"
        );
        catalog.remove_session(id).await.unwrap();
        assert_eq!(
            catalog.latest_record(id).await.unwrap(),
            None,
            "session {id:?}"
        );
    }
}

async fn a_chain_is_in_order(catalog: &dyn SessionCatalog) {
    // Neither ids nor times are in order: what counts is when a record came in.
    let records: Vec<_> = ["c-first", "a-second", "b-third"]
        .map(|id| sample_record("chain", id))
        .into();
    for record in &records {
        catalog.save_record(record).await.unwrap();
    }
    assert_eq!(catalog.session_records("chain").await.unwrap(), records);
    assert_eq!(
        catalog.latest_record("chain").await.unwrap().as_ref(),
        records.last()
    );
    let info = SessionInfo {
        session_id: "chain".to_owned(),
        compactions: 3,
        last_receipt: Some("b-third".to_owned()),
        last_at: Some("2026-01-02T03:04:05.678Z".to_owned()),
        format: Some("openai_chat".to_owned()),
    };
    assert_eq!(catalog.sessions().await.unwrap(), vec![info]);
}

async fn recording_twice_is_one_record(catalog: &dyn SessionCatalog) {
    let first = sample_record("twice", "twice-receipt");
    catalog.save_record(&first).await.unwrap();
    let later = CompactionRecord {
        created_at: "2027-01-01T00:00:00Z".to_owned(),
        ..first.clone()
    };
    catalog.save_record(&later).await.unwrap();
    assert_eq!(
        catalog.session_records("twice").await.unwrap(),
        vec![first],
        "a decision is frozen"
    );
}

async fn absent_packs_are_filled_in(catalog: &dyn SessionCatalog) {
    let whole = sample_record("packs", "packs-receipt");
    let bare = CompactionRecord {
        input_pack: None,
        ..whole.clone()
    };
    catalog.save_record(&bare).await.unwrap();
    assert_eq!(
        catalog.latest_record("packs").await.unwrap(),
        Some(bare.clone())
    );
    catalog.save_record(&whole).await.unwrap();
    assert_eq!(
        catalog.latest_record("packs").await.unwrap(),
        Some(whole.clone())
    );
    catalog.save_record(&bare).await.unwrap();
    assert_eq!(
        catalog.latest_record("packs").await.unwrap(),
        Some(whole.clone())
    );
    let packs = catalog.referenced_packs().await.unwrap();
    assert!(whole.input_pack.is_some_and(|pack| packs.contains(&pack)));
    assert!(
        packs.contains(&advice_pack_id("packs-receipt")),
        "{packs:?}"
    );
    assert!(packs.is_sorted_by(|a, b| a < b), "sorted, without doubles");
}

async fn sessions_may_share_a_receipt(catalog: &dyn SessionCatalog) {
    let (one, two) = (
        sample_record("one", "shared-receipt"),
        sample_record("two", "shared-receipt"),
    );
    catalog.save_record(&one).await.unwrap();
    catalog.save_record(&two).await.unwrap();
    assert_eq!(catalog.latest_record("two").await.unwrap(), Some(two));
    assert_eq!(
        catalog.find_record("shared-receipt").await.unwrap(),
        Some(one.clone())
    );
    assert_eq!(catalog.find_record("shared-r").await.unwrap(), Some(one));
}

async fn histories_find_their_sessions(catalog: &dyn SessionCatalog) {
    let (one, two) = (
        sample_record("line-a", "line-1"),
        sample_record("line-b", "line-1"),
    );
    let other = sample_record("line-b", "line-2");
    let bare = CompactionRecord {
        source_chain: None,
        ..sample_record("line-c", "line-3")
    };
    for record in [&one, &two, &other, &bare] {
        catalog.save_record(record).await.unwrap();
    }
    let found = |histories: Vec<Chain>| async move {
        let mut found = catalog.find_sessions(&histories).await.unwrap();
        found.sort();
        found
    };
    let named = |name: &str, receipt: &str| (name.to_owned(), history_chain(receipt));
    let mut many: Vec<Chain> = (0..3_000)
        .map(|n| history_chain(&format!("none-{n}")))
        .collect();
    assert_eq!(found(many.clone()).await, []);
    assert_eq!(found(Vec::new()).await, []);
    many.push(history_chain("line-1"));
    let both = [named("line-a", "line-1"), named("line-b", "line-1")];
    assert_eq!(found(many).await, both);
    assert_eq!(
        found(vec![history_chain("line-2"), history_chain("line-3")]).await,
        [named("line-b", "line-2")]
    );
    for session in ["line-a", "line-b", "line-c"] {
        catalog.remove_session(session).await.unwrap();
    }
    assert_eq!(found(vec![history_chain("line-1")]).await, []);
}

async fn prefixes_find_one_receipt(catalog: &dyn SessionCatalog) {
    let (a, b) = (
        sample_record("prefix", "0123456789aa"),
        sample_record("prefix", "0123456789ab"),
    );
    catalog.save_record(&a).await.unwrap();
    catalog.save_record(&b).await.unwrap();
    assert_eq!(catalog.find_record("0123456789aa").await.unwrap(), Some(a));
    let ambiguous = catalog.find_record("01234567").await;
    assert!(matches!(ambiguous, Err(CatalogError::Ambiguous { prefix }) if prefix == "01234567"));
    assert_eq!(
        catalog.find_record("0123456").await.unwrap(),
        None,
        "shorter than MIN_PREFIX"
    );
    assert_eq!(
        catalog.find_record("0123456%").await.unwrap(),
        None,
        "a prefix is no pattern"
    );
    let longer = sample_record("prefix", "0123456789aaff");
    catalog.save_record(&longer).await.unwrap();
    let exact = catalog.find_record("0123456789aa").await.unwrap();
    assert_eq!(exact.map(|r| r.receipt_id).as_deref(), Some("0123456789aa"));
}

async fn events_come_back_in_order(catalog: &dyn SessionCatalog) {
    let events: Vec<Value> = (0..20)
        .map(|n| json!({"event": "compact.token_estimate", "t_est": n, "odd": "\u{0}\"\n"}))
        .collect();
    for event in &events {
        catalog.save_event("events", event).await.unwrap();
    }
    catalog
        .save_event("others", &json!({"event": "compact.warning"}))
        .await
        .unwrap();
    assert_eq!(catalog.events("events").await.unwrap(), events);
}

async fn the_last_attempt_counts(catalog: &dyn SessionCatalog) {
    for (n, outcome) in ["failed", "compacted"].into_iter().enumerate() {
        let attempt = Attempt {
            at: "2026-01-02T03:04:05Z".to_owned(),
            turn: format!("turn-{n}"),
            outcome: outcome.to_owned(),
            tokens: u64::from(u32::MAX) + n as u64,
        };
        catalog.save_attempt("attempts", &attempt).await.unwrap();
        assert_eq!(
            catalog.last_attempt("attempts").await.unwrap(),
            Some(attempt)
        );
    }
    assert_eq!(catalog.latest_record("attempts").await.unwrap(), None);
}

async fn concurrent_records_all_arrive(catalog: &dyn SessionCatalog) {
    let ids = ["parallel-0", "parallel-1", "parallel-2", "parallel-3"];
    let [a, b, c, d] = ids.map(|id| sample_record("parallel", id));
    let results = tokio::join!(
        catalog.save_record(&a),
        catalog.save_record(&b),
        catalog.save_record(&c),
        catalog.save_record(&d),
    );
    assert!(matches!(results, (Ok(()), Ok(()), Ok(()), Ok(()))));
    let mut chain: Vec<_> = catalog.session_records("parallel").await.unwrap();
    chain.sort_by(|a, b| a.receipt_id.cmp(&b.receipt_id));
    assert_eq!(chain, vec![a, b, c, d]);
}

async fn removal_forgets(catalog: &dyn SessionCatalog) {
    catalog.remove_receipt("chain", "b-third").await.unwrap();
    assert_eq!(catalog.find_record("b-third").await.unwrap(), None);
    let last = catalog.latest_record("chain").await.unwrap();
    assert_eq!(
        last.map(|record| record.receipt_id).as_deref(),
        Some("a-second")
    );
    for session in catalog.sessions().await.unwrap() {
        catalog.remove_session(&session.session_id).await.unwrap();
    }
    assert_eq!(catalog.sessions().await.unwrap(), vec![]);
    assert_eq!(catalog.referenced_packs().await.unwrap(), vec![]);
    assert_eq!(catalog.events("events").await.unwrap(), Vec::<Value>::new());
    assert_eq!(catalog.last_attempt("attempts").await.unwrap(), None);
    assert_eq!(catalog.find_record("a-second").await.unwrap(), None);
}
