//! Gemini generateContent. Fields are accepted as the API does, in camelCase and in snake_case.

use serde_json::Value;

use super::request::{CheckedRequest, json_type, list_member, text_member};
use super::{Provider, ProviderRule, RuleCheck, RuleFindings, own_members};

const fn rule(
    id: &'static str,
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    check: RuleCheck,
) -> ProviderRule {
    ProviderRule::new(Provider::Gemini, id, name, summary, source, check)
}

pub(super) static RULES: &[ProviderRule] = &[
    rule(
        "G0a",
        "contents-list",
        "`contents` is a list with at least one content",
        "google-genai 3.1.0 types.py; \"contents is not specified\"",
        contents_list,
    ),
    rule(
        "G0b",
        "content-shape",
        "every content is an object whose role is user or model",
        "google-genai 3.1.0 types.py: \"Must be either 'user' or 'model'\"",
        content_shape,
    ),
    rule(
        "G0c",
        "parts-shape",
        "every content has parts, and every part holds one thing",
        "google-genai 3.1.0 types.py: \"Exactly one field within a Part should be set\"",
        parts_shape,
    ),
    rule(
        "G0d",
        "text-not-empty",
        "text parts hold text",
        "\"Unable to submit request because it has an empty text parameter\": Portkey-AI/gateway#462",
        text_not_empty,
    )
    .strict(),
    rule(
        "G0e",
        "known-members",
        "no content carries `meta` or `protected`, which are for Compact to read",
        "\"Unknown name \"role\" at 'contents[0].parts': Cannot find field\": gera2ld/ai.nvim#13",
        own_members,
    ),
    rule(
        "G1",
        "call-after-user",
        "a turn with functionCall comes right after the user's or a functionResponse",
        "\"function call turn comes immediately after a user turn or after a function response turn\": google-gemini/gemini-cli#26486",
        call_after_user,
    ),
    rule(
        "G2",
        "response-count",
        "the turn after calls holds as many functionResponse parts as there were calls",
        "\"number of function response parts is equal to the number of function call parts\": google-gemini/gemini-cli#5443, #17208",
        response_count,
    ),
    rule(
        "G2b",
        "response-needs-call",
        "a turn with functionResponse comes right after one with functionCall",
        "\"function response turn comes immediately after a function call turn\": langchain-ai/langchain#27799",
        response_needs_call,
    ),
    rule(
        "G3a",
        "alternation",
        "user and model alternate",
        "@google/gemini-cli-core 0.61.0 historyHardening",
        alternation,
    ),
    rule(
        "G3b",
        "first-user",
        "the first content is the user's",
        "@google/gemini-cli-core 0.61.0 historyHardening",
        first_user,
    ),
    rule(
        "G3c",
        "last-user",
        "the last content is the user's or functionResponse",
        "@google/gemini-cli-core 0.61.0 historyHardening; a history at rest ends with the model",
        last_user,
    )
    .strict(),
    rule(
        "G4a",
        "responses-first",
        "functionResponse parts stand before other parts",
        "@google/gemini-cli-core 0.61.0 historyHardening; anomalyco/opencode#43479",
        responses_first,
    ),
    rule(
        "G4b",
        "response-order",
        "responses stand in the order of their calls",
        "@google/gemini-cli-core 0.61.0 historyHardening",
        response_order,
    ),
    rule(
        "G4c",
        "response-match",
        "a response has the name and, where given, the id of its call",
        "@google/gemini-cli-core 0.61.0 historyHardening",
        response_match,
    ),
    rule(
        "G5",
        "thought-signature",
        "since the user last spoke, the first functionCall of every turn carries its thoughtSignature",
        "\"Function call is missing a thought_signature\": ai.google.dev/gemini-api/docs/thought-signatures",
        thought_signature,
    )
    .unseen("asked of Gemini 3, and where no model is named of histories that carry signatures"),
    rule(
        "G6",
        "signature-usable",
        "a thoughtSignature is base64, `skip_thought_signature_validator` included",
        "gemini-cli, google-adk 2.13.0, litellm 1.106.2, pydantic-ai 2.66.0",
        signature_usable,
    )
    .unseen("whether the server made it"),
    rule(
        "G7",
        "signature-in-place",
        "signed parts are the model's",
        "ai.google.dev/gemini-api/docs/thought-signatures",
        signature_in_place,
    )
    .unseen("whether signed parts were merged or moved within the model's turns"),
    rule(
        "G8a",
        "known-part-fields",
        "parts have no fields that the API does not know",
        "@google/gemini-cli-core 0.61.0 scrubHistory; google-genai 3.1.0 types.py",
        known_part_fields,
    ),
    rule(
        "G8b",
        "no-thought-parts",
        "thought parts are not sent back",
        "@google/gemini-cli-core 0.61.0 scrubHistory",
        no_thought_parts,
    )
    .strict(),
    rule(
        "G9",
        "objects",
        "functionCall.args and functionResponse.response are objects",
        "google-genai 3.1.0 types.py",
        objects,
    ),
    rule(
        "G10",
        "cached-content-alone",
        "`cachedContent` stands without systemInstruction, tools and toolConfig",
        "\"CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config\": BerriAI/litellm#17304, googleapis/python-genai#348",
        cached_content_alone,
    )
    .unseen("whether the contents continue what was cached"),
];

/// What a part may hold, of which it holds one.
const DATA: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// What may stand beside it.
const BESIDE: &[&str] = &[
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
    "audioTranscription",
    "mediaProcessing",
    "speechMetadata",
];

/// Returns the camelCase of a field that may be written in snake_case.
fn to_camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut out, word| {
        let mut letters = word.chars();
        out.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(letters.as_str());
        out
    })
}

/// Returns a field in either spelling.
fn field_value<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let found = value.get(name).or_else(|| {
        let fields = value.as_object()?.iter();
        let mut same = fields.filter(|(key, _)| key.contains('_') && to_camel_case(key) == name);
        same.next().map(|(_, value)| value)
    });
    found.filter(|value| !value.is_null())
}

fn role(content: &Value) -> &str {
    match text_member(content, "role") {
        Some("model") => "model",
        _ => "user",
    }
}

fn parts(content: &Value) -> &[Value] {
    list_member(content, "parts")
}

fn function_calls(content: &Value) -> impl Iterator<Item = &Value> {
    parts(content)
        .iter()
        .filter_map(|part| field_value(part, "functionCall"))
}

fn responses(content: &Value) -> impl Iterator<Item = &Value> {
    parts(content)
        .iter()
        .filter_map(|part| field_value(part, "functionResponse"))
}

fn has_calls(content: &Value) -> bool {
    function_calls(content).next().is_some()
}

fn has_responses(content: &Value) -> bool {
    responses(content).next().is_some()
}

fn contents(request: &CheckedRequest) -> impl Iterator<Item = (usize, &Value)> {
    request.entries().iter().enumerate()
}

/// Returns each content with the one before it.
fn contents_with_previous(
    request: &CheckedRequest,
) -> impl Iterator<Item = (usize, Option<&Value>, &Value)> {
    let before = |i: usize| i.checked_sub(1).and_then(|i| request.entries().get(i));
    contents(request).map(move |(i, content)| (i, before(i), content))
}

/// Calls `visit` with every part, its path and its content.
fn each_part<'r>(request: &'r CheckedRequest, mut visit: impl FnMut(usize, String, &'r Value)) {
    for (i, content) in contents(request) {
        for (j, part) in parts(content).iter().enumerate() {
            visit(i, format!("contents.{i}.parts.{j}"), part);
        }
    }
}

fn contents_list(request: &CheckedRequest, findings: &mut RuleFindings) {
    if !request.has_list() {
        findings.note_request("there is no list of `contents`");
    } else if request.entries().is_empty() {
        findings.note_request("`contents` is empty");
    }
}

fn content_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, content) in contents(request) {
        match content.get("role") {
            _ if !content.is_object() => {
                let found = json_type(Some(content));
                findings.note_entry(i, format!("contents.{i} must be an object, found {found}"));
            }
            None => {}
            Some(Value::String(role)) if matches!(role.as_str(), "user" | "model" | "function") => {
            }
            Some(Value::String(role)) => {
                findings.note_entry(
                    i,
                    format!("contents.{i}.role is `{role}`, which is no role"),
                );
            }
            role => {
                let found = json_type(role);
                findings.note_entry(
                    i,
                    format!("contents.{i}.role must be a string, found {found}"),
                );
            }
        }
    }
}

fn parts_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, content) in contents(request).filter(|(_, content)| content.is_object()) {
        match content.get("parts") {
            Some(Value::Array(parts)) if !parts.is_empty() => {}
            Some(Value::Array(_)) => findings.note_entry(i, format!("contents.{i} has no parts")),
            other => {
                let found = json_type(other);
                findings.note_entry(
                    i,
                    format!("contents.{i}.parts must be a list, found {found}"),
                );
            }
        }
    }
    each_part(request, |i, path, part| {
        let held = DATA
            .iter()
            .filter(|name| field_value(part, name).is_some())
            .count();
        let is_text = field_value(part, "text").is_none_or(Value::is_string);
        if held != 1 || !is_text {
            findings.note_entry(
                i,
                format!("{path} holds {held} things that a part may hold, not one"),
            );
        }
    });
}

fn text_not_empty(request: &CheckedRequest, findings: &mut RuleFindings) {
    each_part(request, |i, path, part| {
        // A signature may travel on an empty text.
        let is_signed = field_value(part, "thoughtSignature").is_some();
        if text_member(part, "text") == Some("") && !is_signed {
            findings.note_entry(i, format!("{path} is an empty text"));
        }
    });
}

fn call_after_user(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, before, content) in contents_with_previous(request) {
        let is_model = |content: &Value| role(content) == "model";
        if has_calls(content) && before.is_none_or(is_model) {
            findings.note_entry(
                i,
                format!("contents.{i} calls functions, but no user's turn is before it"),
            );
        }
    }
}

fn response_count(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, content) in contents(request) {
        let made = function_calls(content).count();
        let next = request.entries().get(i + 1);
        let answered = next.map_or(0, |next| responses(next).count());
        if made > 0 && made != answered {
            findings.note_entry(
                i,
                format!(
                    "contents.{i} makes {made} calls, the turn after it has {answered} responses"
                ),
            );
        }
    }
}

fn response_needs_call(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, before, content) in contents_with_previous(request) {
        if has_responses(content) && !before.is_some_and(has_calls) {
            findings.note_entry(
                i,
                format!("contents.{i} answers calls that the turn before it does not make"),
            );
        }
    }
}

fn alternation(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, before, content) in contents_with_previous(request) {
        let role = role(content);
        let is_same = before.is_some_and(|before| self::role(before) == role);
        // Calls and responses out of place have rules of their own.
        let has_own_rule = has_calls(content) || has_responses(content);
        if is_same && !has_own_rule && content.is_object() {
            findings.note_entry(i, format!("contents.{i} is of role {role} again"));
        }
    }
}

fn first_user(request: &CheckedRequest, findings: &mut RuleFindings) {
    let first = request.entries().first();
    if first.is_some_and(|first| role(first) == "model" && !has_calls(first)) {
        findings.note_entry(0, "contents.0 is the model's");
    }
}

fn last_user(request: &CheckedRequest, findings: &mut RuleFindings) {
    let Some((i, last)) = contents(request).last() else {
        return;
    };
    if role(last) == "model" && !has_calls(last) {
        findings.note_entry(i, format!("contents.{i}, the last one, is the model's"));
    }
}

fn responses_first(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, content) in contents(request) {
        let is_response = |part: &Value| field_value(part, "functionResponse").is_some();
        let late = parts(content)
            .iter()
            .enumerate()
            .skip_while(|(_, part)| is_response(part))
            .find(|(_, part)| is_response(part));
        if let Some((j, _)) = late {
            findings.note_entry(
                i,
                format!("contents.{i}.parts.{j} is a functionResponse after other parts"),
            );
        }
    }
}

/// What names a call: its id where both sides have one, and its name.
type CallName<'a> = (Option<&'a str>, &'a str);

fn name_of(value: &Value) -> CallName<'_> {
    (
        text_member(value, "id"),
        text_member(value, "name").unwrap_or_default(),
    )
}

/// Returns the calls of a turn and the responses of the next, where there are as many of each. Ids count
/// where every one has one.
fn answered_calls(
    request: &CheckedRequest,
) -> impl Iterator<Item = (usize, Vec<CallName<'_>>, Vec<CallName<'_>>)> {
    contents_with_previous(request).filter_map(|(i, before, content)| {
        let mut made: Vec<CallName<'_>> = before
            .into_iter()
            .flat_map(function_calls)
            .map(name_of)
            .collect();
        let mut given: Vec<CallName<'_>> = responses(content).map(name_of).collect();
        let has_ids = made.iter().chain(&given).all(|(id, _)| id.is_some());
        if !has_ids {
            made.iter_mut()
                .chain(&mut given)
                .for_each(|(id, _)| *id = None);
        }
        let is_whole = !made.is_empty() && made.len() == given.len();
        is_whole.then_some((i, made, given))
    })
}

fn sorted_names<'a>(names: &[CallName<'a>]) -> Vec<CallName<'a>> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

fn response_order(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, made, given) in answered_calls(request) {
        if made != given && sorted_names(&made) == sorted_names(&given) {
            findings.note_entry(
                i,
                format!("contents.{i} answers in another order than the calls"),
            );
        }
    }
}

fn response_match(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, made, given) in answered_calls(request) {
        if sorted_names(&made) != sorted_names(&given) {
            findings.note_entry(
                i,
                format!("contents.{i} answers with other names or ids than the calls"),
            );
        }
    }
}

fn part_signature(part: &Value) -> Option<&Value> {
    field_value(part, "thoughtSignature")
}

fn asks_for_signatures(request: &CheckedRequest) -> bool {
    let is_signed = |content: &Value| {
        parts(content)
            .iter()
            .any(|part| part_signature(part).is_some())
    };
    match request.text("model") {
        Some(model) => model.contains("gemini-3"),
        None => request.entries().iter().any(is_signed),
    }
}

/// Returns where the current turn begins: at the user's last words that come with no responses.
fn current_turn(request: &CheckedRequest) -> usize {
    let speaks = |content: &Value| {
        role(content) == "user"
            && !has_responses(content)
            && parts(content)
                .iter()
                .any(|part| text_member(part, "text").is_some())
    };
    request.entries().iter().rposition(speaks).unwrap_or(0)
}

fn thought_signature(request: &CheckedRequest, findings: &mut RuleFindings) {
    if !asks_for_signatures(request) {
        return;
    }
    for (i, content) in contents(request).skip(current_turn(request)) {
        let is_call = |part: &Value| field_value(part, "functionCall").is_some();
        let first = parts(content)
            .iter()
            .enumerate()
            .find(|(_, part)| is_call(part));
        if let Some((j, _)) = first.filter(|(_, part)| part_signature(part).is_none()) {
            findings.note_entry(
                i,
                format!("contents.{i}.parts.{j} has lost its thoughtSignature"),
            );
        }
    }
}

/// Returns whether a text is base64, in either alphabet, padded or not.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
    !body.is_empty() && body.bytes().all(letter) && body.len() % 4 != 1
}

fn signature_usable(request: &CheckedRequest, findings: &mut RuleFindings) {
    each_part(request, |i, path, part| {
        let is_usable = |value: &Value| value.as_str().is_some_and(is_base64);
        if part_signature(part).is_some_and(|signature| !is_usable(signature)) {
            findings.note_entry(i, format!("{path}.thoughtSignature is not base64"));
        }
    });
}

fn signature_in_place(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, content) in contents(request).filter(|(_, content)| role(content) == "user") {
        if parts(content)
            .iter()
            .any(|part| part_signature(part).is_some())
        {
            findings.note_entry(
                i,
                format!("contents.{i} is the user's and carries a thoughtSignature"),
            );
        }
    }
}

fn known_part_fields(request: &CheckedRequest, findings: &mut RuleFindings) {
    each_part(request, |i, path, part| {
        let is_known = |name: &str| {
            let name = to_camel_case(name);
            DATA.contains(&name.as_str()) || BESIDE.contains(&name.as_str())
        };
        let names = part
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys());
        for name in names.filter(|name| !is_known(name)) {
            findings.note_entry(
                i,
                format!("{path} has a field `{name}` that the API does not know"),
            );
        }
    });
}

fn no_thought_parts(request: &CheckedRequest, findings: &mut RuleFindings) {
    each_part(request, |i, path, part| {
        if part.get("thought") == Some(&Value::Bool(true)) {
            findings.note_entry(i, format!("{path} is a thought"));
        }
    });
}

fn objects(request: &CheckedRequest, findings: &mut RuleFindings) {
    each_part(request, |i, path, part| {
        let call = field_value(part, "functionCall")
            .map(|call| ("functionCall.args", field_value(call, "args")));
        let response = field_value(part, "functionResponse")
            .map(|given| ("functionResponse.response", given.get("response")));
        // A call may come without arguments, a response not without its result.
        let is_bad = |value: &(&str, Option<&Value>)| match value {
            ("functionCall.args", None) => false,
            (_, value) => !value.is_some_and(Value::is_object),
        };
        if let Some((name, value)) = call.or(response).filter(is_bad) {
            let found = json_type(value);
            findings.note_entry(i, format!("{path}.{name} must be an object, found {found}"));
        }
    });
}

fn cached_content_alone(request: &CheckedRequest, findings: &mut RuleFindings) {
    let has = |names: [&str; 2]| names.iter().any(|name| request.field(name).is_some());
    if !has(["cachedContent", "cached_content"]) {
        return;
    }
    for names in [
        ["systemInstruction", "system_instruction"],
        ["tools", "tools"],
        ["toolConfig", "tool_config"],
    ] {
        if has(names) {
            let [name, _] = names;
            findings.note_request(format!("`cachedContent` stands beside `{name}`"));
        }
    }
}
