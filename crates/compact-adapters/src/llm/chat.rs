//! `/chat/completions`: OpenAI, and every server that speaks like it.

use compact_core::prompt::{AnswerFinish, SummarizerAnswer};
use compact_runtime::port::summarizer::{ModelQuestion, SummarizerError};
use serde_json::{Value, json};

use super::{
    SEED, continued_body, malformed_answer, number_at, push_element, reasoning, set_field, text_at,
};

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
                for limit in ["max_tokens", "max_completion_tokens"] {
                    fields.remove(limit);
                }
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
    limit_answer(&mut body, question, model);
    Ok(body)
}

/// Bounds the answer and asks for the least random one, in the fields that this model takes.
fn limit_answer(body: &mut Value, question: &ModelQuestion, model: &str) {
    let limit = reasoning::answer_limit(question.limit, model);
    if reasoning::thinks_first(model) {
        set_field(body, "max_completion_tokens", limit);
        if question.conversation.is_none() {
            set_field(body, "reasoning_effort", reasoning::EFFORT);
        }
        return;
    }
    set_field(body, "max_tokens", limit);
    set_field(body, "temperature", 0);
    set_field(body, "seed", SEED);
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
