//! `/responses`.

use compact_core::prompt::{Answer, Finish};
use compact_runtime::port::summarizer::{Question, SummarizerError};
use serde_json::{Value, json};

use super::{continued, malformed, number, push, set, text};

pub(super) fn body(question: &Question, model: &str) -> Result<Value, SummarizerError> {
    let user = json!({"role": "user", "content": question.prompt});
    let mut body = match continued(question, "input", model)? {
        Some(mut body) => {
            push(&mut body, "input", user);
            if body.get("tools").is_some_and(|t| !t.is_null()) {
                set(&mut body, "tool_choice", "none");
            }
            body
        }
        None => json!({"model": model, "instructions": question.system, "input": [user]}),
    };
    set(&mut body, "max_output_tokens", question.limit.0);
    set(&mut body, "temperature", 0);
    // Nothing of a summary is kept by the provider.
    set(&mut body, "store", false);
    Ok(body)
}

pub(super) fn answer(answer: &Value) -> Result<Answer, SummarizerError> {
    let items = answer
        .get("output")
        .and_then(Value::as_array)
        .ok_or_else(|| malformed("it has no output"))?;
    let parts: Vec<&Value> = items
        .iter()
        .filter_map(|item| item.get("content").and_then(Value::as_array))
        .flatten()
        .collect();
    let of = |part: &&&Value, kind: &str| part.get("type").is_some_and(|t| t == kind);
    let texts = parts.iter().filter(|p| of(p, "output_text"));
    let refused = parts.iter().any(|p| of(&p, "refusal"));
    let finish = match text(answer, "/incomplete_details/reason").as_deref() {
        Some("content_filter") => Finish::Refused,
        Some(_) => Finish::CutOff,
        None if refused => Finish::Refused,
        None => Finish::Complete,
    };
    Ok(Answer {
        text: texts.filter_map(|p| text(p, "/text")).collect(),
        finish,
        model: text(answer, "/model"),
        prompt_tokens: number(answer, "/usage/input_tokens"),
        cached_tokens: number(answer, "/usage/input_tokens_details/cached_tokens"),
    })
}
