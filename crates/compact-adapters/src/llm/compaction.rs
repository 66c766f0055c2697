//! The providers' own compaction, as a source of prose.
//!
//! What comes of it is read out as text and quoted like any model's words: an item that only the
//! provider can read could be neither verified nor repaired.

use compact_core::prompt::SummarizerAnswer;
use compact_runtime::port::summarizer::{ModelQuestion, SummarizerError};
use serde_json::{Value, json};

use super::{anthropic, continued_body, malformed_answer, reasoning, set_field, text_at};

/// Switches compaction on demand on.
pub(super) const BETA: (&str, &str) = ("anthropic-beta", "compact-2026-09-04");

/// Returns the conversation as input items, for `/responses/compact`.
pub(super) fn compact_request(
    question: &ModelQuestion,
    model: &str,
) -> Result<Value, SummarizerError> {
    let body = continued_body(question, "input", model)?;
    let field = |name: &str| body.as_ref().and_then(|b| b.get(name)).cloned();
    let mut request = json!({
        "model": model,
        "input": field("input")
            .unwrap_or_else(|| json!([{"role": "user", "content": question.prompt}])),
    });
    if let Some(instructions) = field("instructions") {
        set_field(&mut request, "instructions", instructions);
    }
    Ok(request)
}

/// Asks for the compacted items in words.
pub(super) fn read_out_request(
    compacted: &Value,
    question: &ModelQuestion,
    model: &str,
) -> Result<Value, SummarizerError> {
    let items = compacted
        .get("output")
        .and_then(Value::as_array)
        .filter(|items| !items.is_empty())
        .ok_or_else(|| malformed_answer("the compaction has no output"))?;
    let mut input = items.clone();
    input.push(json!({"role": "user", "content": question.prompt}));
    Ok(json!({
        "model": model,
        "instructions": question.system,
        "input": input,
        "max_output_tokens": reasoning::answer_limit(question.limit, model),
        "store": false,
    }))
}

/// Returns the conversation with the wish that it be compacted.
pub(super) fn on_demand_request(
    question: &ModelQuestion,
    model: &str,
) -> Result<Value, SummarizerError> {
    let mut body = continued_body(question, "messages", model)?.unwrap_or_else(
        || json!({"model": model, "messages": [{"role": "user", "content": question.prompt}]}),
    );
    if let Some(fields) = body.as_object_mut() {
        // Neither goes together with it.
        for other in ["context_management", "stop_sequences", "tool_choice"] {
            fields.remove(other);
        }
    }
    let instructions = match question.system.is_empty() {
        true => &question.prompt,
        false => &question.system,
    };
    let wish = json!({"type": "summarize", "instructions": instructions});
    set_field(&mut body, "compaction", wish);
    set_field(&mut body, "max_tokens", question.limit.0);
    Ok(body)
}

/// Returns the words of a compaction block; without words the provider says that it failed.
pub(super) fn parse_answer(answer: &Value) -> Result<SummarizerAnswer, SummarizerError> {
    let blocks = answer.get("content").and_then(Value::as_array);
    let block = blocks
        .into_iter()
        .flatten()
        .find(|b| b.get("type").is_some_and(|t| t == "compaction"))
        .ok_or_else(|| malformed_answer("it has no compaction block"))?;
    Ok(SummarizerAnswer {
        text: text_at(block, "/content").unwrap_or_default(),
        ..anthropic::parse_answer_metadata(answer)?
    })
}
