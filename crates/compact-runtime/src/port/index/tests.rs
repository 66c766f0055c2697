use super::*;

#[tokio::test]
async fn memory_conforms() {
    conformance::suite(&MemoryIndex::default()).await;
}

#[test]
fn a_rarer_term_weighs_more_and_none_weighs_nothing() {
    let weights: Vec<f64> = [1, 10, 100].map(|n| term_weight(n, 100)).into();
    assert!(weights.is_sorted_by(|a, b| a > b));
    assert!(weights.iter().all(|w| *w > 0.0));
}
