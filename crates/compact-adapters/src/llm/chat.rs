//! `/chat/completions`: OpenAI, and every server that speaks like it.

use compact_core::prompt::{AnswerFinish, SummarizerAnswer};
use compact_runtime::port::summarizer::{ModelQuestion, SummarizerError};
use serde_json::{Value, json};

use super::{SEED, continued_body, malformed_answer, number_at, push_element, set_field, text_at};

pub(super) fn request_body(
    question: &ModelQuestion,
    model: &str,
) -> Result<Value, SummarizerError> {
    let mut body = match continued_body(question, "messages", model)? {
        Some(mut body) => {
            push_element(
                &mut body,
                "messages",
                json!({"role": "user", "content": question.prompt}),
            );
            if body.get("tools").is_some_and(|t| !t.is_null()) {
                set_field(&mut body, "tool_choice", "none");
            }
            if let Some(fields) = body.as_object_mut() {
                fields.remove("max_completion_tokens");
            }
            body
        }
        None => json!({
            "model": model,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.prompt},
            ],
        }),
    };
    set_field(&mut body, "max_tokens", question.limit.0);
    set_field(&mut body, "temperature", 0);
    set_field(&mut body, "seed", SEED);
    Ok(body)
}

pub(super) fn parse_answer(answer: &Value) -> Result<SummarizerAnswer, SummarizerError> {
    let message = answer
        .pointer("/choices/0/message")
        .ok_or_else(|| malformed_answer("it has no choices[0].message"))?;
    let refused = message.get("refusal").is_some_and(|r| !r.is_null());
    let finish = match text_at(answer, "/choices/0/finish_reason").as_deref() {
        Some("length") => AnswerFinish::CutOff,
        Some("content_filter") => AnswerFinish::Refused,
        _ if refused => AnswerFinish::Refused,
        _ => AnswerFinish::Complete,
    };
    Ok(SummarizerAnswer {
        text: content_text(message.get("content")),
        finish,
        model: text_at(answer, "/model"),
        prompt_tokens: number_at(answer, "/usage/prompt_tokens"),
        cached_tokens: number_at(answer, "/usage/prompt_tokens_details/cached_tokens"),
    })
}

/// Returns the text of a content that is a string or a list of parts.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|p| text_at(p, "/text")).collect(),
        _ => String::new(),
    }
}
