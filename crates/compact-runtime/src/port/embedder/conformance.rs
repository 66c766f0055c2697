//! What every embedder must do. Call [`suite`] from the adapter's tests.

#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use super::Embedder;

/// Embeds none, few and many texts.
pub async fn suite(embedder: &dyn Embedder) {
    assert!(!embedder.name().is_empty(), "an embedder has a name");
    for number in [0, 1, 3, 200] {
        let texts: Vec<String> = (0..number).map(|i| format!("text number {i}")).collect();
        let vectors = embedder.embed(&texts).await.expect("vectors");
        assert_eq!(vectors.len(), texts.len(), "one vector for each text");
        let mut lengths: Vec<usize> = vectors.iter().map(Vec::len).collect();
        lengths.dedup();
        assert!(lengths.len() <= 1, "all vectors are of one length");
        assert!(lengths.iter().all(|l| *l > 0), "a vector has numbers");
    }
}
