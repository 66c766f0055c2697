use std::sync::Arc;

use compact_core::message::{Entry, Role};
use compact_core::policy::Policy;
use compact_core::redact::{RedactionBoundary, RedactionRules};
use compact_core::summarize::Style;
use compact_core::token::Tokens;
use compact_core::wire::WireRules;
use serde_json::{Value, json};

use super::*;
use crate::manager::restore::{RerunObstacle, VerifiedBy};
use crate::manager::session_state::{ENTRIES_FORMAT, SessionState, serialize_entries};
use crate::manager::tests::{exchange, manager};
use crate::manager::{CommittedCompaction, CompactionRequest, RequestOutcome};
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

fn change_json(record: &mut CompactionRecord, change: impl FnOnce(&mut Value)) {
    let mut json = record.receipt.as_json().clone();
    change(&mut json);
    record.receipt = json.into();
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
        change_json(&mut record, |json| json["engine"] = json!("compact 0.0.1"));
        change(&mut record);
        catalog.save_record(&record).await.unwrap();
    }
    manager.clone().with_catalog(Arc::new(catalog))
}

#[tokio::test]
async fn a_receipt_of_another_engine_is_held_against_its_view() {
    let (manager, _) = manager(3_000);
    let (_, chain) = compacted(&manager, "old").await;
    // Receipts did not always name their redaction.
    let old = of_another_engine(&manager, &chain, |record| {
        change_json(record, |json| {
            let fields = json.as_object_mut().unwrap();
            fields.remove("redaction_fingerprint").unwrap();
        });
    });
    let old = old.await;
    let by_view = VerifiedBy::View(RerunObstacle::OtherEngine);
    for record in &chain {
        let now = manager.verify_receipt(&record.receipt_id).await.unwrap();
        assert_eq!((now.by, now.mismatches), (VerifiedBy::Engine, vec![]));
        let then = old.verify_receipt(&record.receipt_id).await.unwrap();
        assert_eq!((then.by, then.mismatches), (by_view, vec![]));
    }
    for (field, value) in [
        ("tokens_before", json!(1)),
        ("tokens_after", json!(1)),
        ("pruned_count", json!(0)),
        ("source_hash", json!("00")),
    ] {
        let lied = |record: &mut CompactionRecord| {
            change_json(record, |json| json[field] = value.clone());
        };
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
        change_json(record, |json| {
            json["archive"].as_object_mut().unwrap().remove("view");
        });
    };
    let older = of_another_engine(&manager, &chain, without_view).await;
    let found = older.verify_receipt(&chain[0].receipt_id).await.unwrap();
    let by_original = VerifiedBy::Original(RerunObstacle::OtherEngine);
    assert_eq!((found.by, found.mismatches), (by_original, vec![]));
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
    assert!(other.catch_up(&mut late).await.unwrap());
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
    manager.archive_mode = ArchiveMode::Redacted(Arc::new(redactor));
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

/// A manager over the same store whose summaries, or whose archive, are redacted otherwise.
fn redacting(manager: &Manager, rules: &RedactionRules) -> Manager {
    let at = |boundary| Arc::new(rules.redactor(boundary).unwrap());
    let mode = match rules.sinks.archive {
        true => ArchiveMode::Redacted(at(RedactionBoundary::Archive)),
        false => ArchiveMode::Exact,
    };
    let manager = manager.clone().with_archive_mode(mode);
    manager.with_redactor(at(RedactionBoundary::Summary))
}

fn hiding(pattern: &str) -> RedactionRules {
    RedactionRules {
        patterns: vec![pattern.to_owned()],
        ..RedactionRules::default()
    }
}

fn redacted_archive() -> RedactionRules {
    let mut rules = RedactionRules::default();
    rules.sinks.archive = true;
    rules
}

/// A conversation of one session, with a secret in its middle.
fn sample_conversation() -> Conversation {
    let key = "the key is AKIAIOSFODNN7EXAMPLE, never touch table_7";
    let mut entries = vec![Entry::from_text("u0", Role::User, "go")];
    entries.extend((0..20).flat_map(|i| exchange(i, 25)));
    entries.push(Entry::from_text("u1", Role::User, key));
    entries.extend((20..40).flat_map(|i| exchange(i, 25)));
    Conversation {
        entries,
        ..Conversation::default()
    }
}

async fn compact(manager: &Manager, conversation: &Conversation) -> CommittedCompaction {
    let original = serialize_entries(&conversation.entries);
    let request =
        CompactionRequest::new(conversation, &WireRules::LENIENT, ENTRIES_FORMAT, original)
            .with_session("told")
            .with_budget(Tokens(2_000));
    match manager.compact(&request).await.unwrap() {
        RequestOutcome::Done(made) => *made,
        other => panic!("{other:?}"),
    }
}

async fn verified(manager: &Manager, receipt: &str) -> VerifiedBy {
    let report = manager.verify_receipt(receipt).await.unwrap();
    assert_eq!(report.mismatches, []);
    report.by
}

/// The second report must not promise an original that no record names.
#[tokio::test]
async fn an_original_that_was_first_archived_redacted_is_archived_exact_as_well() {
    let (exact, _) = manager(8_000);
    let redacted = redacting(&exact, &redacted_archive());
    let (conversation, original) = (
        sample_conversation(),
        serialize_entries(&sample_conversation().entries),
    );
    let first = compact(&redacted, &conversation).await;
    let second = compact(&exact, &conversation).await;
    let id = |made: &CommittedCompaction| made.compaction.receipt.receipt_id.clone();
    assert_ne!(id(&first), id(&second));
    for (made, is_exact) in [(&first, false), (&second, true)] {
        assert_eq!(made.receipt.is_exact(), is_exact);
        let record = exact.catalog.find_record(&id(made)).await.unwrap();
        assert_eq!(record.unwrap().receipt, made.receipt);
        let restored = exact.restore(&id(made)).await.unwrap();
        assert_eq!(
            (restored.exact, restored.bytes == original),
            (is_exact, is_exact)
        );
    }
    // Nobody can run the engine on an original that is gone, under whatever rules.
    let (first, second) = (id(&first), id(&second));
    let view = VerifiedBy::View;
    assert_eq!(
        verified(&redacted, &first).await,
        view(RerunObstacle::RedactedOriginal)
    );
    assert_eq!(
        verified(&exact, &first).await,
        view(RerunObstacle::OtherRedaction)
    );
    assert_eq!(verified(&exact, &second).await, VerifiedBy::Engine);
    assert_eq!(
        verified(&redacted, &second).await,
        view(RerunObstacle::OtherRedaction)
    );
}

/// The same words without an archive and with one are not the same promise.
#[tokio::test]
async fn an_original_that_was_kept_nowhere_is_archived_by_the_next_who_keeps_it() {
    let (keeping, _) = manager(8_000);
    let fleeting = keeping.clone().with_archive(None);
    let first = compact(&fleeting, &sample_conversation())
        .await
        .compaction
        .receipt;
    let second = compact(&keeping, &sample_conversation())
        .await
        .compaction
        .receipt;
    assert_eq!((first.retention.recoverable, second.retention.lost), (0, 0));
    assert_eq!(
        verified(&keeping, &second.receipt_id).await,
        VerifiedBy::Engine
    );
}

/// Whoever makes a compaction again that a killed process put into the catalog archives it as the catalog has it.
#[tokio::test]
async fn a_record_that_only_the_catalog_has_is_archived_as_it_is_there() {
    let (manager, _) = manager(8_000);
    compact(&manager, &sample_conversation()).await;
    let listed = manager
        .catalog
        .latest_record("told")
        .await
        .unwrap()
        .unwrap();
    let archive = manager.archive.clone().unwrap();
    archive.remove_record(&listed.address()).await.unwrap();
    compact(&manager, &sample_conversation()).await;
    let archived = read_record(&*archive, &listed.address()).await.unwrap();
    assert!(listed.agrees_with(&archived), "{listed:?} {archived:?}");
    let other = CompactionRecord {
        new_from: 3,
        ..listed
    };
    assert!(!other.agrees_with(&archived));
}

#[tokio::test]
async fn other_redaction_makes_another_receipt_and_the_chain_goes_on_from_it() {
    let (open, _) = manager(8_000);
    let hidden = redacting(&open, &hiding("table_7"));
    let first = compact(&open, &sample_conversation()).await.compaction;
    let second = compact(&hidden, &sample_conversation()).await.compaction;
    let summary = |made: &Compaction| made.view.summary().unwrap().plain_text();
    assert!(summary(&first).contains("table_7") && !summary(&second).contains("table_7"));
    assert_ne!(first.receipt.receipt_id, second.receipt.receipt_id);
    assert_ne!(
        first.receipt.redaction_fingerprint,
        second.receipt.redaction_fingerprint
    );
    for made in [first, second] {
        let mut going_on = shown_conversation(&made.view, &sample_conversation());
        going_on
            .entries
            .extend((40..60).flat_map(|i| exchange(i, 25)));
        // Whoever goes on, whatever they hide: what was said is known.
        let next = compact(&hidden, &going_on).await.compaction.receipt;
        assert_eq!(next.previous.as_ref(), Some(&made.receipt.receipt_id));
        assert_eq!((next.summary_version, next.carried), (2, 0));
        for (receipt, other) in [(&next, &open), (&made.receipt, &hidden)] {
            let by = verified(other, &receipt.receipt_id).await;
            let is_hidden = receipt.redaction_fingerprint == next.redaction_fingerprint;
            match is_hidden == std::ptr::eq(other, &hidden) {
                true => assert_eq!(by, VerifiedBy::Engine),
                false => assert_eq!(by, VerifiedBy::View(RerunObstacle::OtherRedaction)),
            }
        }
    }
}

/// Another process's view shows what this one was told to hide.
#[tokio::test]
async fn a_view_made_under_other_rules_is_not_taken_over() {
    let open = redacting(&manager(6_000).0, &RedactionRules::default());
    let history = sample_conversation().entries;
    let mut session = SessionState::new("both", &WireRules::LENIENT);
    session.append(history.clone());
    let first = open.preflight(&mut session).await.unwrap().receipt.unwrap();
    for (pattern, is_same) in [(None, true), (Some("table_7"), false)] {
        let other = pattern.map_or(open.clone(), |pattern| redacting(&open, &hiding(pattern)));
        let mut late = SessionState::new("both", &WireRules::LENIENT);
        late.append(history.clone());
        let made = other.preflight(&mut late).await.unwrap();
        // What was taken over has no receipt of this call.
        let receipt = made.receipt.map(|receipt| receipt.receipt_id);
        assert_eq!(receipt.is_none(), is_same);
        assert_ne!(receipt.as_ref(), Some(&first.receipt_id));
        let shown = made.view.shown_entries(late.history());
        let summary = shown.iter().map(Entry::plain_text);
        let summary = summary.filter(|text| text.contains("<COMPACT-SUMMARY"));
        let summary: Vec<bool> = summary.map(|text| text.contains("table_7")).collect();
        assert_eq!(summary, [is_same]);
    }
    let chain = open.catalog.session_records("both").await.unwrap();
    assert_eq!(chain.len(), 2, "the first was shown, not made again");
}

#[tokio::test]
async fn what_is_remembered_is_hidden_by_the_rules_in_force() {
    let (open, _) = manager(8_000);
    let mut conversation = sample_conversation();
    let last = Entry::from_text("u2", Role::User, "and look at table_7 again");
    conversation.entries.push(last);
    let made = compact(&open, &conversation).await;
    let record = open.catalog.latest_record("told").await.unwrap().unwrap();
    assert_eq!(record.receipt, made.receipt);
    let before = open.memory_layers(&record).await.unwrap();
    assert!(before.summary.contains("table_7"));
    let hidden = redacting(&open, &hiding("table_7"));
    let memory = hidden.memory_layers(&record).await.unwrap();
    assert_eq!(memory.recent.len(), before.recent.len());
    assert!(memory.summary.contains("[REDACTED:pattern-1:"));
    assert!(!format!("{memory:?}").contains("table_7"), "{memory:?}");
}
