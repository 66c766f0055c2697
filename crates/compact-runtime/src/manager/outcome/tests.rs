use std::sync::Arc;

use compact_core::message::{Entry, Role};
use compact_core::policy::Policy;
use compact_core::redact::{RedactionBoundary, RedactionRules};
use compact_core::summarize::Style;
use compact_core::wire::WireRules;
use serde_json::json;

use super::*;
use crate::manager::restore::VerifiedBy;
use crate::manager::session_state::SessionState;
use crate::manager::tests::{exchange, manager};
use crate::port::catalog::{MemoryCatalog, SessionCatalog};

/// A session that was compacted several times, with its records.
async fn compacted(manager: &Manager, name: &str) -> (SessionState, Vec<CompactionRecord>) {
    let mut session = SessionState::new(name, &WireRules::LENIENT);
    session.append([Entry::from_text(
        "u0",
        Role::User,
        "Never touch table_7. Go.",
    )]);
    for i in 0..60 {
        session.append(exchange(i, 25));
        manager.preflight(&mut session).await.unwrap();
    }
    let chain = manager.catalog.session_records(name).await.unwrap();
    assert!(chain.len() >= 3);
    (session, chain)
}

/// The same manager over records that another version of the engine made.
async fn of_another_engine(
    manager: &Manager,
    chain: &[CompactionRecord],
    change: impl Fn(&mut CompactionRecord),
) -> Manager {
    let catalog = MemoryCatalog::default();
    for record in chain {
        let mut record = record.clone();
        record.receipt["engine"] = json!("compact 0.0.1");
        change(&mut record);
        catalog.save_record(&record).await.unwrap();
    }
    Manager {
        catalog: Arc::new(catalog),
        ..manager.clone()
    }
}

#[tokio::test]
async fn a_receipt_of_another_engine_is_held_against_its_view() {
    let (manager, _) = manager(3_000);
    let (_, chain) = compacted(&manager, "old").await;
    let old = of_another_engine(&manager, &chain, |_| {}).await;
    for record in &chain {
        let now = manager.verify_receipt(&record.receipt_id).await.unwrap();
        assert_eq!((now.by, now.mismatches), (VerifiedBy::Engine, vec![]));
        let then = old.verify_receipt(&record.receipt_id).await.unwrap();
        assert_eq!((then.by, then.mismatches), (VerifiedBy::View, vec![]));
    }
    for (field, value) in [
        ("tokens_before", json!(1)),
        ("tokens_after", json!(1)),
        ("pruned_count", json!(0)),
        ("source_hash", json!("00")),
    ] {
        let lied = |record: &mut CompactionRecord| record.receipt[field] = value.clone();
        let lying = of_another_engine(&manager, &chain, lied).await;
        let found = lying
            .verify_receipt(&chain[0].receipt_id)
            .await
            .unwrap()
            .mismatches;
        let fields: Vec<&str> = found.iter().map(|m| &*m.field).collect();
        assert_eq!(fields, [field]);
    }
    let without_view = |record: &mut CompactionRecord| {
        let archive = record.receipt["archive"].as_object_mut().unwrap();
        archive.remove("view");
    };
    let older = of_another_engine(&manager, &chain, without_view).await;
    let found = older.verify_receipt(&chain[0].receipt_id).await.unwrap();
    assert_eq!((found.by, found.mismatches), (VerifiedBy::Original, vec![]));
}

/// No engine of this process would make these views, and still they are shown as they were.
#[tokio::test]
async fn what_another_version_made_is_shown_as_it_was_archived() {
    let (manager, _) = manager(3_000);
    let (session, chain) = compacted(&manager, "both").await;
    let mut other = of_another_engine(&manager, &chain, |_| {}).await;
    other.policy = Policy {
        strategy: Style::Brief,
        ..manager.policy.clone()
    };
    let mut late = SessionState::new("both", &WireRules::LENIENT);
    late.append(session.history().entries.iter().cloned());
    let decision = other.load_and_decide(&mut late).await;
    assert!(other.catch_up(&mut late, &decision).await.unwrap());
    assert_eq!(late.view(), session.view());
    let latest = chain.last().unwrap();
    let (ours, theirs) = (
        manager.memory_layers(latest).await.unwrap(),
        other.memory_layers(latest).await.unwrap(),
    );
    assert_eq!(ours.summary, theirs.summary);
    assert_eq!(ours.recent, theirs.recent);
}

#[tokio::test]
async fn the_archive_knows_what_the_catalog_knows() {
    let (manager, _) = manager(3_000);
    // The same history in two sessions: the same packs, and two names.
    let (_, one) = compacted(&manager, "one").await;
    let (_, two) = compacted(&manager, "two").await;
    let archive = manager.archive.clone().unwrap();
    let mut kept = Vec::new();
    for address in archive.list_records().await.unwrap() {
        kept.push(read_record(&*archive, &address).await.unwrap());
    }
    for known in one.iter().chain(&two) {
        assert!(kept.contains(known), "{}", known.receipt_id);
    }
    assert_eq!(kept.len(), one.len() + two.len());
}

/// A record is believed under its own address, and in a form that is known.
#[tokio::test]
async fn a_record_in_the_wrong_place_or_of_a_later_form_is_refused() {
    let (manager, _) = manager(3_000);
    let (_, chain) = compacted(&manager, "one").await;
    let archive = manager.archive.clone().unwrap();
    let address = chain[0].address();
    let bytes = archive.get_record(&address).await.unwrap();
    let other = PackId::of_record("other", &chain[0].receipt_id);
    archive.put_record(&other, bytes.clone()).await.unwrap();
    let refused = read_record(&*archive, &other).await.unwrap_err();
    assert!(matches!(refused, Error::Archive(ArchiveError::Damaged { pack, .. }) if pack == other));
    let mut later: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    later["form"] = json!(2);
    let later = Bytes::from(later.to_string());
    archive.put_record(&address, later).await.unwrap();
    let refused = read_record(&*archive, &address).await.unwrap_err();
    assert!(matches!(
        refused,
        Error::Archive(ArchiveError::Newer { found: 2, .. })
    ));
}

#[tokio::test]
async fn a_redacted_archive_keeps_no_secret_in_a_view() {
    let (mut manager, _) = manager(3_000);
    let mut rules = RedactionRules::default();
    rules.sinks.archive = true;
    let redactor = rules.redactor(RedactionBoundary::Archive).unwrap();
    manager.storing = ArchiveMode::Redacted(Arc::new(redactor));
    let secret = "AKIAIOSFODNN7EXAMPLE";
    let mut session = SessionState::new("secret", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "go")]);
    session.append((0..30).flat_map(|i| exchange(i, 25)));
    session.append([Entry::from_text(
        "u1",
        Role::User,
        format!("the key is {secret}"),
    )]);
    let made = manager.preflight(&mut session).await.unwrap();
    let record = manager
        .catalog
        .latest_record("secret")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(made.receipt.unwrap().receipt_id, record.receipt_id);
    let archive = manager.archive.clone().unwrap();
    for pack in record.packs() {
        let bytes = archive.get(&pack).await.unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(
        read_record(&*archive, &record.address()).await.unwrap(),
        record
    );
}
