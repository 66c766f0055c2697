//! Who tells what texts are about: a model that turns each into a vector.
//!
//! Only the angles between the vectors of one call matter. Texts are redacted before they get here.

pub mod conformance;

use async_trait::async_trait;

use crate::port::summarizer::SummarizerError;

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Its wire and model.
    fn name(&self) -> String;

    /// One vector for each text, in order, all of one length.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, SummarizerError>;
}
