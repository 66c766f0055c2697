//! `/chat/completions`: OpenAI, and every server that speaks like it.

use compact_core::prompt::{Answer, Finish};
use compact_runtime::port::summarizer::{Question, SummarizerError};
use serde_json::{Value, json};

use super::{SEED, continued, malformed, number, push, set, text};

pub(super) fn body(question: &Question, model: &str) -> Result<Value, SummarizerError> {
    let mut body = match continued(question, "messages", model)? {
        Some(mut body) => {
            push(
                &mut body,
                "messages",
                json!({"role": "user", "content": question.prompt}),
            );
            if body.get("tools").is_some_and(|t| !t.is_null()) {
                set(&mut body, "tool_choice", "none");
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
    set(&mut body, "max_tokens", question.limit.0);
    set(&mut body, "temperature", 0);
    set(&mut body, "seed", SEED);
    Ok(body)
}

pub(super) fn answer(answer: &Value) -> Result<Answer, SummarizerError> {
    let message = answer
        .pointer("/choices/0/message")
        .ok_or_else(|| malformed("it has no choices[0].message"))?;
    let refused = message.get("refusal").is_some_and(|r| !r.is_null());
    let finish = match text(answer, "/choices/0/finish_reason").as_deref() {
        Some("length") => Finish::CutOff,
        Some("content_filter") => Finish::Refused,
        _ if refused => Finish::Refused,
        _ => Finish::Complete,
    };
    Ok(Answer {
        text: content(message.get("content")),
        finish,
        model: text(answer, "/model"),
        prompt_tokens: number(answer, "/usage/prompt_tokens"),
        cached_tokens: number(answer, "/usage/prompt_tokens_details/cached_tokens"),
    })
}

/// Content is a text, or a list of parts.
fn content(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|p| text(p, "/text")).collect(),
        _ => String::new(),
    }
}
