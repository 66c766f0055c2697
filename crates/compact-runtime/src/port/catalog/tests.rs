use super::*;

#[tokio::test]
async fn memory_conforms() {
    conformance::suite(&MemoryCatalog::default()).await;
}

#[test]
fn a_record_survives_json() {
    let record = conformance::sample("s", "r");
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<CompactionRecord>(&json).unwrap(),
        record
    );
}
