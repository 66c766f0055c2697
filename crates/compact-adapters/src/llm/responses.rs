//! `/responses`.

use compact_core::prompt::{AnswerFinish, SummarizerAnswer};
use compact_runtime::port::summarizer::{ModelQuestion, SummarizerError};
use serde_json::{Value, json};

use super::{
    continued_body, malformed_answer, number_at, push_element, reasoning, set_field, text_at,
};

pub(super) fn request_body(
    question: &ModelQuestion,
    model: &str,
) -> Result<Value, SummarizerError> {
    let user = json!({"role": "user", "content": question.prompt});
    let mut body = match continued_body(question, "input", model)? {
        Some(mut body) => {
            push_element(&mut body, "input", user);
            if body.get("tools").is_some_and(|t| !t.is_null()) {
                set_field(&mut body, "tool_choice", "none");
            }
            body
        }
        None => json!({"model": model, "instructions": question.system, "input": [user]}),
    };
    limit_answer(&mut body, question, model);
    // Nothing of a summary is kept by the provider.
    set_field(&mut body, "store", false);
    Ok(body)
}

/// Bounds the answer and asks for the least random one, in the fields that this model takes.
fn limit_answer(body: &mut Value, question: &ModelQuestion, model: &str) {
    let limit = reasoning::answer_limit(question.limit, model);
    if reasoning::thinks_first(model) {
        set_field(body, "max_output_tokens", limit);
        if question.conversation.is_none() {
            set_field(body, "reasoning", json!({"effort": reasoning::EFFORT}));
        }
        return;
    }
    set_field(body, "max_output_tokens", limit);
    set_field(body, "temperature", 0);
}

pub(super) fn parse_answer(answer: &Value) -> Result<SummarizerAnswer, SummarizerError> {
    let items = answer
        .get("output")
        .and_then(Value::as_array)
        .ok_or_else(|| malformed_answer("it has no output"))?;
    let parts: Vec<&Value> = items
        .iter()
        .filter_map(|item| item.get("content").and_then(Value::as_array))
        .flatten()
        .collect();
    let of = |part: &&&Value, kind: &str| part.get("type").is_some_and(|t| t == kind);
    let texts = parts.iter().filter(|p| of(p, "output_text"));
    let refused = parts.iter().any(|p| of(&p, "refusal"));
    let finish = match text_at(answer, "/incomplete_details/reason").as_deref() {
        Some("content_filter") => AnswerFinish::Refused,
        Some(_) => AnswerFinish::CutOff,
        None if refused => AnswerFinish::Refused,
        None => AnswerFinish::Complete,
    };
    Ok(SummarizerAnswer {
        text: texts.filter_map(|p| text_at(p, "/text")).collect(),
        finish,
        model: text_at(answer, "/model"),
        prompt_tokens: number_at(answer, "/usage/input_tokens"),
        cached_tokens: number_at(answer, "/usage/input_tokens_details/cached_tokens"),
    })
}
