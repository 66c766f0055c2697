//! `/messages`.

use compact_core::prompt::{AnswerFinish, SummarizerAnswer};
use compact_runtime::port::summarizer::{ModelQuestion, SummarizerError};
use serde_json::{Value, json};

use super::{continued_body, malformed_answer, number_at, push_element, set_field, text_at};

/// The version of the interface that the bodies are written for.
pub(super) const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

pub(super) fn request_body(
    question: &ModelQuestion,
    model: &str,
) -> Result<Value, SummarizerError> {
    let user = json!({"role": "user", "content": question.prompt});
    if let Some(mut body) = continued_body(question, "messages", model)? {
        // Another choice of tools, thinking or temperature would make the provider forget its cache.
        push_element(&mut body, "messages", user);
        let thinking = number_at(&body, "/thinking/budget_tokens").unwrap_or(0);
        set_field(&mut body, "max_tokens", question.limit.0 + thinking);
        return Ok(body);
    }
    Ok(json!({
        "model": model,
        "system": question.system,
        "messages": [user],
        "max_tokens": question.limit.0,
        "temperature": 0,
    }))
}

pub(super) fn parse_answer(answer: &Value) -> Result<SummarizerAnswer, SummarizerError> {
    let blocks = answer
        .get("content")
        .and_then(Value::as_array)
        .ok_or_else(|| malformed_answer("it has no content"))?;
    let of_text = |b: &&Value| b.get("type").is_some_and(|t| t == "text");
    Ok(SummarizerAnswer {
        text: blocks
            .iter()
            .filter(of_text)
            .filter_map(|b| text_at(b, "/text"))
            .collect(),
        ..parse_answer_metadata(answer)?
    })
}

/// Returns everything about an answer but its words.
pub(super) fn parse_answer_metadata(answer: &Value) -> Result<SummarizerAnswer, SummarizerError> {
    let finish = match text_at(answer, "/stop_reason").as_deref() {
        Some("max_tokens") => AnswerFinish::CutOff,
        Some("refusal") => AnswerFinish::Refused,
        Some("model_context_window_exceeded") => {
            return Err(SummarizerError::TooLong {
                limit: None,
                message: "the answer filled the window".to_owned(),
            });
        }
        _ => AnswerFinish::Complete,
    };
    let count = |field: &str| number_at(answer, &format!("/usage/{field}"));
    let (fresh, read) = (count("input_tokens"), count("cache_read_input_tokens"));
    let cached = read.unwrap_or(0) + count("cache_creation_input_tokens").unwrap_or(0);
    Ok(SummarizerAnswer {
        text: String::new(),
        finish,
        model: text_at(answer, "/model"),
        prompt_tokens: fresh.map(|fresh| fresh + cached),
        cached_tokens: read,
    })
}
