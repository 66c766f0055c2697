//! `/embeddings`, as OpenAI and every compatible server has it.

use async_trait::async_trait;
use compact_runtime::port::embedder::Embedder;
use compact_runtime::port::summarizer::SummarizerError;
use serde_json::{Value, json};

use super::{Endpoint, http, malformed_answer};

/// A model that embeds, behind HTTP.
#[derive(Debug)]
pub struct HttpEmbedder {
    /// The server, its key and its timeouts.
    pub endpoint: Endpoint,
    /// The name of the model.
    pub model: String,
}

/// Texts of one request: few enough for every server that is known.
const BATCH: usize = 64;

#[async_trait]
impl Embedder for HttpEmbedder {
    fn name(&self) -> String {
        format!("openai {}", self.model)
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, SummarizerError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let call = http::RequestTarget {
                path: "embeddings",
                headers: &[],
                key: http::KeyHeader::Bearer,
            };
            let body = json!({"model": self.model, "input": batch, "encoding_format": "float"});
            let answer = http::post_json(&self.endpoint, &call, &body).await?;
            vectors.extend(vectors_in_order(&answer, batch.len())?);
        }
        let length = vectors.first().map(Vec::len);
        match vectors
            .iter()
            .all(|v| Some(v.len()) == length && !v.is_empty())
        {
            true => Ok(vectors),
            false => Err(malformed_answer("its vectors have different lengths")),
        }
    }
}

/// Returns the vectors by their `index`, which servers need not keep.
fn vectors_in_order(answer: &Value, number: usize) -> Result<Vec<Vec<f32>>, SummarizerError> {
    let data = answer.get("data").and_then(Value::as_array);
    let mut vectors = vec![None; number];
    for (place, item) in data.into_iter().flatten().enumerate() {
        let index = item.get("index").and_then(Value::as_u64);
        let slot = vectors.get_mut(index.map_or(place, |i| i as usize));
        if let (Some(slot), Some(vector)) = (slot, parse_vector(item)) {
            *slot = Some(vector);
        }
    }
    let all: Option<Vec<Vec<f32>>> = vectors.into_iter().collect();
    all.ok_or_else(|| malformed_answer("some texts have no vector"))
}

fn parse_vector(item: &Value) -> Option<Vec<f32>> {
    let numbers = item.get("embedding")?.as_array()?.iter();
    numbers.map(|n| n.as_f64().map(|n| n as f32)).collect()
}
