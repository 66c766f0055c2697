//! `/messages`.

use compact_core::prompt::{Answer, Finish};
use compact_runtime::port::summarizer::{Question, SummarizerError};
use serde_json::{Value, json};

use super::{continued, malformed, number, push, set, text};

/// The version of the interface that the bodies are written for.
pub(super) const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

pub(super) fn body(question: &Question, model: &str) -> Result<Value, SummarizerError> {
    let user = json!({"role": "user", "content": question.prompt});
    if let Some(mut body) = continued(question, "messages", model)? {
        // Another choice of tools, thinking or temperature would make the provider forget its cache.
        push(&mut body, "messages", user);
        let thinking = number(&body, "/thinking/budget_tokens").unwrap_or(0);
        set(&mut body, "max_tokens", question.limit.0 + thinking);
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

pub(super) fn answer(answer: &Value) -> Result<Answer, SummarizerError> {
    let blocks = answer
        .get("content")
        .and_then(Value::as_array)
        .ok_or_else(|| malformed("it has no content"))?;
    let of_text = |b: &&Value| b.get("type").is_some_and(|t| t == "text");
    Ok(Answer {
        text: blocks
            .iter()
            .filter(of_text)
            .filter_map(|b| text(b, "/text"))
            .collect(),
        ..ending(answer)?
    })
}

/// Everything about an answer but its words.
pub(super) fn ending(answer: &Value) -> Result<Answer, SummarizerError> {
    let finish = match text(answer, "/stop_reason").as_deref() {
        Some("max_tokens") => Finish::CutOff,
        Some("refusal") => Finish::Refused,
        Some("model_context_window_exceeded") => {
            return Err(SummarizerError::TooLong {
                limit: None,
                message: "the answer filled the window".to_owned(),
            });
        }
        _ => Finish::Complete,
    };
    let count = |field: &str| number(answer, &format!("/usage/{field}"));
    let (fresh, read) = (count("input_tokens"), count("cache_read_input_tokens"));
    let cached = read.unwrap_or(0) + count("cache_creation_input_tokens").unwrap_or(0);
    Ok(Answer {
        text: String::new(),
        finish,
        model: text(answer, "/model"),
        prompt_tokens: fresh.map(|fresh| fresh + cached),
        cached_tokens: read,
    })
}
