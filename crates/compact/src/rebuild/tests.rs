use compact_runtime::port::catalog::{InputRelation, MemoryCatalog};
use serde_json::Value;

use super::*;

fn record(receipt: &str, previous: Option<&str>, second: u32) -> CompactionRecord {
    CompactionRecord {
        receipt_id: receipt.to_owned(),
        session_id: "s".to_owned(),
        created_at: format!("2026-01-02T03:04:{second:02}.000Z"),
        summary_version: 1,
        previous: previous.map(str::to_owned),
        input_pack: None,
        format: "messages".to_owned(),
        receipt: Value::Null.into(),
        entry_hashes: Vec::new(),
        view_hashes: Vec::new(),
        new_from: 0,
        continues: InputRelation::View,
        source_chain: None,
    }
}

/// Clocks of two machines differ, and the record in the middle is the one that the catalog lost.
#[tokio::test]
async fn records_come_back_in_the_order_in_which_they_build_on_each_other() {
    let (a, b, c) = (
        record("a", None, 9),
        record("b", Some("a"), 1),
        record("c", Some("b"), 5),
    );
    let catalog = MemoryCatalog::default();
    for known in [&a, &c] {
        catalog.save_record(known).await.unwrap();
    }
    let mut done = RebuildReport::default();
    let records = vec![c.clone(), b.clone(), a.clone()];
    for (session, records) in group_by_session(records) {
        add_missing(&catalog, &session, records, &mut done)
            .await
            .unwrap();
    }
    assert_eq!(catalog.session_records("s").await.unwrap(), vec![a, b, c]);
    assert_eq!((done.receipts, done.added), (1, 1));
}

#[test]
fn records_that_build_on_each_other_in_a_circle_are_kept() {
    let circle = vec![record("a", Some("b"), 1), record("b", Some("a"), 2)];
    assert_eq!(sort_by_previous(circle).len(), 2);
}
