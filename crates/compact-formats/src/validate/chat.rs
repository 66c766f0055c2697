//! OpenAI chat completions, and what servers that speak the same protocol add to it.

use std::collections::HashSet;

use serde_json::Value;

use super::request::{CheckedRequest, json_type, list_member, present_member, text_member};
use super::{Provider, ProviderRule, RuleCheck, RuleFindings, own_members};

const fn rule(
    id: &'static str,
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    check: RuleCheck,
) -> ProviderRule {
    ProviderRule::new(Provider::OpenAiChat, id, name, summary, source, check)
}

pub(super) static RULES: &[ProviderRule] = &[
    rule(
        "C0a",
        "messages-list",
        "`messages` is a list with at least one message",
        "openai 3.49.0 types/chat/completion_create_params.py; \"[] is too short - 'messages'\"",
        messages_list,
    ),
    rule(
        "C0b",
        "message-shape",
        "every message is an object with a known `role`",
        "openai 3.49.0 types/chat/chat_completion_message_param.py",
        message_shape,
    ),
    rule(
        "C0c",
        "content-shape",
        "`content` is a string or a list of the parts that the role may have",
        "openai 3.49.0 types/chat/chat_completion_*_message_param.py",
        content_shape,
    ),
    rule(
        "C0d",
        "call-shape",
        "`tool_calls` is a list with at least one call, each with an id, a type and a name",
        "openai 3.49.0 types/chat/chat_completion_message_tool_call_param.py; \"[] is too short - 'messages.1.tool_calls'\"",
        call_shape,
    ),
    rule(
        "C0e",
        "known-members",
        "no message carries `meta` or `protected`, which are for Compact to read",
        "\"Additional properties are not allowed ('id' was unexpected) - 'messages.0'\": transitive-bullshit/agentic#531, openai/openai-node#1161",
        own_members,
    ),
    rule(
        "C1",
        "result-needs-call",
        "a tool message follows an assistant message that holds its call, with only tool messages between",
        "\"messages with role 'tool' must be a response to a preceeding message with 'tool_calls'\": BerriAI/litellm#4931, microsoft/semantic-kernel#12708",
        result_needs_call,
    ),
    rule(
        "C1b",
        "one-result-per-call",
        "no call is answered twice, and no two calls of a message share an id",
        "\"Duplicate value for 'tool_call_id'\": agno-agi/agno#5116, anomalyco/opencode#1211",
        one_result_per_call,
    ),
    rule(
        "C2",
        "call-needs-result",
        "every call is answered right after its message, before any other role",
        "\"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'\": agno-agi/agno#3105, BerriAI/litellm#10083",
        call_needs_result,
    ),
    rule(
        "C3",
        "assistant-needs-content",
        "an assistant message has content unless it has tool_calls, function_call, refusal or audio",
        "openai 3.49.0 types/chat/chat_completion_assistant_message_param.py",
        assistant_needs_content,
    ),
    rule(
        "C4a",
        "arguments-string",
        "the arguments of a call are a string",
        "openai 3.49.0 types/chat/chat_completion_message_function_tool_call_param.py",
        arguments_string,
    ),
    rule(
        "C4b",
        "result-text",
        "the content of a tool message is a string or text parts",
        "openai 3.49.0 types/chat/chat_completion_tool_message_param.py",
        result_text,
    ),
    rule(
        "C4c",
        "arguments-json",
        "the arguments of a function call hold a JSON object",
        "chat templates and proxies that parse them: Qwen and Mistral templates, litellm's Anthropic translation",
        arguments_json,
    )
    .strict(),
    rule(
        "C5a",
        "last-role",
        "the last message is of the user or a tool",
        "Mistral, Azure AI: \"Expected last role to be one of: [tool, user] but got assistant\": BerriAI/litellm#4931",
        last_role,
    )
    .strict(),
    rule(
        "C5b",
        "alternation",
        "user and assistant messages alternate, tool loops aside, and the user begins",
        "Hugging Face chat templates: \"Conversation roles must alternate user/assistant/user/assistant/...\"",
        alternation,
    )
    .strict(),
    rule(
        "C5c",
        "system-first",
        "system and developer messages stand at the head only",
        "Hugging Face chat templates: \"System message must be at the beginning\"",
        system_first,
    )
    .strict(),
    rule(
        "C5d",
        "reasoning-with-calls",
        "with thinking on, messages with calls carry their `reasoning_content` in the current turn",
        "DeepSeek: pydantic-ai 2.66.0 models/openai.py",
        reasoning_with_calls,
    )
    .strict()
    .unseen("only where the body turns `thinking` on by name"),
    rule(
        "C6",
        "gemini-signature",
        "for Gemini 3 the first call of every message of the current turn keeps its thought signature",
        "pydantic-ai 2.66.0 models/openai.py; ai.google.dev/gemini-api/docs/thought-signatures",
        gemini_signature,
    )
    .unseen("only where the body names the model"),
    rule(
        "C7",
        "cache-ttl",
        "`prompt_cache_options.ttl` is not `12h`, which only Responses take",
        "pydantic-ai 2.66.0 models/openai.py",
        cache_ttl,
    ),
];

const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

fn messages_list(request: &CheckedRequest, findings: &mut RuleFindings) {
    if !request.has_list() {
        findings.note_request("there is no list of `messages`");
    } else if request.entries().is_empty() {
        findings.note_request("`messages` is empty");
    }
}

fn message_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        match message.get("role") {
            _ if !message.is_object() => {
                let found = json_type(Some(message));
                findings.note_entry(i, format!("messages.{i} must be an object, found {found}"));
            }
            Some(Value::String(role)) if ROLES.contains(&role.as_str()) => {}
            Some(Value::String(role)) => {
                findings.note_entry(
                    i,
                    format!("messages.{i}.role is `{role}`, which is no role"),
                );
            }
            role => {
                let found = json_type(role);
                findings.note_entry(
                    i,
                    format!("messages.{i}.role must be a string, found {found}"),
                );
            }
        }
    }
}

fn role(message: &Value) -> &str {
    text_member(message, "role").unwrap_or_default()
}

fn is_instruction(message: &Value) -> bool {
    matches!(role(message), "system" | "developer")
}

/// Returns the parts that the content of a role may have.
fn parts_of(role: &str) -> &'static [&'static str] {
    match role {
        "user" => &["text", "image_url", "input_audio", "file"],
        "assistant" => &["text", "refusal"],
        _ => &["text"],
    }
}

/// Checks the shape of contents. Tool messages have a rule of their own, and an assistant may have no
/// content at all.
fn content_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        let role = role(message);
        if !ROLES.contains(&role) || role == "tool" {
            continue;
        }
        let content = message.get("content");
        let may_lack = matches!(role, "assistant" | "function");
        let message = match content {
            Some(Value::String(_)) => continue,
            Some(Value::Null) | None if may_lack => continue,
            // Frameworks send it with calls, and servers take it.
            Some(Value::Array(parts)) if parts.is_empty() && !message_calls(message).is_empty() => {
                continue;
            }
            Some(Value::Array(parts)) if parts.is_empty() => {
                Some(format!("messages.{i}.content has no parts"))
            }
            Some(Value::Array(parts)) => parts
                .iter()
                .enumerate()
                .find_map(|(j, part)| bad_part(part, role).map(|why| (j, why)))
                .map(|(j, why)| format!("messages.{i}.content.{j} {why}")),
            other => Some(format!(
                "messages.{i}.content must be a string or a list of parts, found {}",
                json_type(other)
            )),
        };
        if let Some(message) = message {
            findings.note_entry(i, message);
        }
    }
}

/// Returns why a part may not stand in a message of a role.
fn bad_part(part: &Value, role: &str) -> Option<String> {
    let Some(part_type) = text_member(part, "type") else {
        return Some("has no `type`".to_owned());
    };
    if !parts_of(role).contains(&part_type) {
        return Some(format!(
            "is `{part_type}`, which {role} messages cannot have"
        ));
    }
    let inside = present_member(part, part_type);
    let is_whole = match part_type {
        "text" | "refusal" => inside.is_some_and(Value::is_string),
        "image_url" => inside.is_some_and(|image| text_member(image, "url").is_some()),
        _ => inside.is_some_and(Value::is_object),
    };
    (!is_whole).then(|| format!("is `{part_type}` without what it names"))
}

fn message_calls(message: &Value) -> &[Value] {
    match role(message) {
        "assistant" => list_member(message, "tool_calls"),
        _ => &[],
    }
}

fn call_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        match present_member(message, "tool_calls") {
            None => {}
            Some(Value::Array(calls)) if calls.is_empty() => {
                findings.note_entry(i, format!("messages.{i}.tool_calls is empty; leave it out"));
            }
            Some(Value::Array(calls)) => {
                for (j, why) in calls.iter().map(bad_call).enumerate() {
                    if let Some(why) = why {
                        findings.note_entry(i, format!("messages.{i}.tool_calls.{j} {why}"));
                    }
                }
            }
            other => {
                let found = json_type(other);
                findings.note_entry(
                    i,
                    format!("messages.{i}.tool_calls must be a list, found {found}"),
                );
            }
        }
    }
}

fn bad_call(call: &Value) -> Option<&'static str> {
    if text_member(call, "id").is_none_or(str::is_empty) {
        return Some("has no `id`");
    }
    let body = match text_member(call, "type") {
        Some("function") => call.get("function"),
        Some("custom") => call.get("custom"),
        _ => return Some("has no `type` of function or custom"),
    };
    match body.and_then(|body| text_member(body, "name")) {
        None | Some("") => Some("names no tool"),
        Some(_) => None,
    }
}

/// Returns the ids of a message's calls.
fn call_ids(message: &Value) -> impl Iterator<Item = &str> {
    message_calls(message)
        .iter()
        .filter_map(|call| text_member(call, "id"))
}

/// Returns tool messages with the message that should hold their calls.
fn results_with_caller(entries: &[Value]) -> impl Iterator<Item = (usize, &str, Option<&Value>)> {
    let mut caller = None;
    entries.iter().enumerate().filter_map(move |(i, message)| {
        if role(message) != "tool" {
            caller = Some(message);
            return None;
        }
        Some((
            i,
            text_member(message, "tool_call_id").unwrap_or_default(),
            caller,
        ))
    })
}

fn result_needs_call(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, id, caller) in results_with_caller(request.entries()) {
        let is_held = caller.is_some_and(|caller| call_ids(caller).any(|call| call == id));
        if !is_held {
            findings.note_entry(
                i,
                format!(
                    "messages.{i} answers call `{id}`, which the message before it does not make"
                ),
            );
        }
    }
}

fn one_result_per_call(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut before = None;
    for (i, message) in request.entries().iter().enumerate() {
        let mut ids = HashSet::new();
        for id in call_ids(message).filter(|id| !ids.insert(*id)) {
            findings.note_entry(i, format!("messages.{i} makes two calls with id `{id}`"));
        }
        if role(message) != "tool" {
            seen.clear();
            before = Some(message);
            continue;
        }
        let id = text_member(message, "tool_call_id").unwrap_or_default();
        // A repeat of a call that is not there is the business of `result-needs-call`.
        let is_held = before.is_some_and(|caller| call_ids(caller).any(|call| call == id));
        if !seen.insert(id) && is_held {
            findings.note_entry(i, format!("messages.{i} answers call `{id}` again"));
        }
    }
}

fn call_needs_result(request: &CheckedRequest, findings: &mut RuleFindings) {
    let entries = request.entries();
    let callers = entries.iter().enumerate();
    for (i, message) in callers.filter(|(_, message)| !message_calls(message).is_empty()) {
        let results: HashSet<&str> = entries
            .iter()
            .skip(i + 1)
            .take_while(|message| role(message) == "tool")
            .filter_map(|message| text_member(message, "tool_call_id"))
            .collect();
        for id in call_ids(message).filter(|id| !results.contains(id)) {
            findings.note_entry(
                i,
                format!("messages.{i}: call `{id}` has no result after it"),
            );
        }
    }
}

fn assistant_needs_content(request: &CheckedRequest, findings: &mut RuleFindings) {
    let others = ["tool_calls", "function_call", "refusal", "audio"];
    for (i, message) in request.entries().iter().enumerate() {
        let has = |field: &&str| present_member(message, field).is_some();
        if role(message) == "assistant" && !has(&"content") && !others.iter().any(has) {
            findings.note_entry(i, format!("messages.{i} says nothing and calls nothing"));
        }
    }
}

/// Returns the bodies of a message's function calls, with their paths.
fn function_calls(i: usize, message: &Value) -> impl Iterator<Item = (String, &Value)> {
    let named = message_calls(message)
        .iter()
        .enumerate()
        .filter_map(move |(j, call)| {
            let body = call.get("function")?;
            Some((
                format!("messages.{i}.tool_calls.{j}.function.arguments"),
                body,
            ))
        });
    let legacy = present_member(message, "function_call");
    named.chain(legacy.map(|body| (format!("messages.{i}.function_call.arguments"), body)))
}

fn arguments_string(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        for (path, body) in function_calls(i, message) {
            let arguments = body.get("arguments");
            if !arguments.is_some_and(Value::is_string) {
                let found = json_type(arguments);
                findings.note_entry(i, format!("{path} must be a string, found {found}"));
            }
        }
    }
}

fn arguments_json(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        for (path, body) in function_calls(i, message) {
            let is_object = |text: &str| {
                serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
            };
            if text_member(body, "arguments").is_some_and(|arguments| !is_object(arguments)) {
                findings.note_entry(i, format!("{path} is not a JSON object"));
            }
        }
    }
}

fn result_text(request: &CheckedRequest, findings: &mut RuleFindings) {
    let tools = request.entries().iter().enumerate();
    for (i, message) in tools.filter(|(_, message)| role(message) == "tool") {
        let content = message.get("content");
        let is_text = match content {
            Some(Value::String(_)) => true,
            Some(Value::Array(parts)) => {
                !parts.is_empty() && parts.iter().all(|part| bad_part(part, "tool").is_none())
            }
            _ => false,
        };
        if !is_text {
            let found = json_type(content);
            findings.note_entry(
                i,
                format!("messages.{i}.content must be a string or text parts, found {found}"),
            );
        }
    }
}

fn last_role(request: &CheckedRequest, findings: &mut RuleFindings) {
    let Some((i, last)) = request.entries().iter().enumerate().next_back() else {
        return;
    };
    let role = role(last);
    if role == "assistant" || is_instruction(last) {
        findings.note_entry(i, format!("the last message is of role {role}"));
    }
}

/// Checks that roles alternate as templates count: messages with calls and their results are part of the
/// answer that follows.
fn alternation(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut expected = "user";
    for (i, message) in request.entries().iter().enumerate() {
        let role = role(message);
        let counts = role == "user" || (role == "assistant" && message_calls(message).is_empty());
        if !counts {
            continue;
        }
        if role != expected {
            findings.note_entry(
                i,
                format!("messages.{i} is of role {role} where {expected} is due"),
            );
        }
        expected = if role == "user" { "assistant" } else { "user" };
    }
}

fn system_first(request: &CheckedRequest, findings: &mut RuleFindings) {
    let late = request
        .entries()
        .iter()
        .enumerate()
        .skip_while(|(_, message)| is_instruction(message))
        .filter(|(_, message)| is_instruction(message));
    for (i, message) in late {
        let role = role(message);
        findings.note_entry(
            i,
            format!("messages.{i} is of role {role} in mid-conversation"),
        );
    }
}

/// Returns messages with calls since the user last spoke.
fn current_calls(entries: &[Value]) -> impl Iterator<Item = (usize, &Value)> {
    let start = entries.iter().rposition(|message| role(message) == "user");
    let turn = entries.iter().enumerate().skip(start.unwrap_or(0));
    turn.filter(|(_, message)| !message_calls(message).is_empty())
}

fn reasoning_with_calls(request: &CheckedRequest, findings: &mut RuleFindings) {
    let thinking = request.field("thinking");
    if thinking.and_then(|thinking| text_member(thinking, "type")) != Some("enabled") {
        return;
    }
    for (i, message) in current_calls(request.entries()) {
        let reasons = ["reasoning_content", "reasoning"];
        if !reasons
            .iter()
            .any(|field| present_member(message, field).is_some())
        {
            findings.note_entry(
                i,
                format!("messages.{i} makes calls without its `reasoning_content`"),
            );
        }
    }
}

fn gemini_signature(request: &CheckedRequest, findings: &mut RuleFindings) {
    if !request
        .text("model")
        .is_some_and(|model| model.contains("gemini-3"))
    {
        return;
    }
    for (i, message) in current_calls(request.entries()) {
        let signature = message_calls(message)
            .first()
            .and_then(|call| call.pointer("/extra_content/google/thought_signature"));
        if !signature.is_some_and(Value::is_string) {
            findings.note_entry(
                i,
                format!(
                    "messages.{i}.tool_calls.0 has lost extra_content.google.thought_signature"
                ),
            );
        }
    }
}

fn cache_ttl(request: &CheckedRequest, findings: &mut RuleFindings) {
    let options = request.field("prompt_cache_options");
    if options.and_then(|options| text_member(options, "ttl")) == Some("12h") {
        findings.note_request("prompt_cache_options.ttl is `12h`, which only Responses take");
    }
}
