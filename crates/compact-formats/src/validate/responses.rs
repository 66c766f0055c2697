//! OpenAI Responses: items that are paired by id, and reasoning that is bound to what it produced.

use std::collections::{HashMap, HashSet};

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
    ProviderRule::new(Provider::OpenAiResponses, id, name, summary, source, check)
}

pub(super) static RULES: &[ProviderRule] = &[
    rule(
        "R0a",
        "input-list",
        "`input` is a text or a list with at least one item",
        "openai 3.49.0 types/responses/response_create_params.py",
        input_list,
    ),
    rule(
        "R0b",
        "item-shape",
        "every item is an object with a known `type`, a message with a known `role`",
        "openai 3.49.0 types/responses/response_input_item_param.py",
        item_shape,
    ),
    rule(
        "R0c",
        "content-shape",
        "a message's content is a string or a list of the parts that its role may have",
        "openai 3.49.0 types/responses/response_input_message_content_list_param.py, response_output_message_param.py",
        content_shape,
    ),
    rule(
        "R0d",
        "call-shape",
        "calls have a call_id, a name and arguments as a string; outputs a string or parts",
        "openai 3.49.0 types/responses/response_function_tool_call_param.py, response_custom_tool_call_param.py",
        call_shape,
    ),
    rule(
        "R0e",
        "known-members",
        "no item carries `meta` or `protected`, which are for Compact to read",
        "\"Unknown parameter: 'input[1].metadata'\": microsoft/agent-framework#2203",
        own_members,
    ),
    rule(
        "R1",
        "output-needs-call",
        "every output follows its call",
        "\"No tool call found for function call output with call_id …\": continuedev/continue#10092",
        output_needs_call,
    )
    .unseen("calls that the server holds: not asked with previous_response_id, conversation or item references"),
    rule(
        "R2",
        "call-needs-output",
        "every call is followed by its output",
        "\"No tool output found for function call call_…\": GhidrAssist#78",
        call_needs_output,
    ),
    rule(
        "R3",
        "reasoning-needs-follower",
        "a reasoning item with an id is followed by what it produced",
        "\"Item 'rs_…' of type 'reasoning' was provided without its required following item\": vercel/ai#7099, openai/openai-node#1567",
        reasoning_needs_follower,
    ),
    rule(
        "R4",
        "item-needs-reasoning",
        "a message or call with an id comes with the reasoning it was produced with",
        "\"… was provided without its required 'reasoning' item\": continuedev/continue#11994, 0xPlaygrounds/rig#751",
        check_nothing,
    )
    .unseen("items do not say whether reasoning came before them; strip `id` where it was dropped")
    .unchecked(),
    rule(
        "R5",
        "reasoning-before-call",
        "reasoning stands before the call it produced, not between the call and its output",
        "continuedev/continue#11994; openai-agents 0.24.0 run_internal/items.py",
        reasoning_before_call,
    )
    .unseen("the order in which messages and calls were emitted"),
    rule(
        "R6",
        "reasoning-replayable",
        "without the server's store, reasoning carries encrypted_content",
        "404 for items of store:false: github/copilot-sdk#615; openai 3.49.0 types/responses/response_reasoning_item_param.py",
        reasoning_replayable,
    )
    .unseen("reasoning with an id alone is taken as stored unless the body says `store: false`"),
    rule(
        "R7a",
        "compaction-trigger-last",
        "a compaction_trigger is the last item",
        "openai 3.49.0 types/responses/response_input_item_param.py",
        compaction_trigger_last,
    ),
    rule(
        "R7b",
        "compaction-whole",
        "a compaction item carries its encrypted_content",
        "openai 3.49.0 types/responses/response_compaction_item_param_param.py",
        compaction_whole,
    )
    .unseen("whether it is as the server wrote it"),
    rule(
        "R8a",
        "previous-id",
        "previous_response_id starts with `resp`",
        "openai 3.49.0; openai-agents 0.24.0",
        previous_id,
    )
    .unseen("whether only new items are sent with it"),
    rule(
        "R8b",
        "one-server-state",
        "previous_response_id and conversation exclude each other",
        "openai 3.49.0 types/responses/response_create_params.py",
        one_server_state,
    ),
    rule(
        "R9a",
        "approval-paired",
        "an mcp_approval_response follows its request, and a request has its response",
        "openai-agents 0.24.0 run_internal/items.py",
        approval_paired,
    ),
    rule(
        "R9b",
        "program-paired",
        "a program and its program_output are both there",
        "openai-agents 0.24.0 run_internal/items.py",
        program_paired,
    ),
    rule(
        "R9c",
        "hosted-item-whole",
        "items of hosted tools are whole: an id, or what they hold",
        "openai 3.49.0 types/responses/response_input_item_param.py",
        hosted_item_whole,
    ),
    rule(
        "R10",
        "output-type",
        "the type of an output fits the type of its call",
        "openai-agents 0.24.0 run_internal/items.py",
        output_type,
    )
    .unseen("whether a call kept its `namespace`"),
    rule(
        "R11",
        "no-duplicates",
        "no two items share an id, and no call is made or answered twice",
        "\"Duplicate item found with id fc_…\": vercel/ai#13307",
        no_duplicates,
    ),
    rule(
        "R12",
        "truncation",
        "`truncation` is not `auto`, which drops items in the middle unseen",
        "pydantic-ai 2.66.0 models/openai.py; nothing is refused, the count is wrong",
        truncation,
    )
    .strict(),
];

/// Calls that the client answers, with the types of output that fit.
const CALLS: &[(&str, &[&str])] = &[
    ("function_call", &["function_call_output"]),
    ("custom_tool_call", &["custom_tool_call_output"]),
    ("shell_call", &["shell_call_output"]),
    ("apply_patch_call", &["apply_patch_call_output"]),
    ("computer_call", &["computer_call_output"]),
    (
        "local_shell_call",
        &["local_shell_call_output", "function_call_output"],
    ),
    ("tool_search_call", &["tool_search_output"]),
];

/// What hosted tools leave in the history.
const HOSTED: &[&str] = &[
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
];

const OTHERS: &[&str] = &[
    "message",
    "reasoning",
    "item_reference",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "additional_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "program",
    "program_output",
];

fn check_nothing(_: &CheckedRequest, _: &mut RuleFindings) {}

/// Returns the type of an item; one with a role and none is a message.
fn item_type(item: &Value) -> &str {
    match text_member(item, "type") {
        Some(item_type) => item_type,
        None if item.get("role").is_some() => "message",
        None => "",
    }
}

fn role(item: &Value) -> &str {
    text_member(item, "role").unwrap_or_default()
}

fn is_call(item: &Value) -> bool {
    CALLS.iter().any(|(call, _)| *call == item_type(item))
}

fn is_output(item: &Value) -> bool {
    let item_type = item_type(item);
    CALLS
        .iter()
        .any(|(_, outputs)| outputs.contains(&item_type))
}

/// Returns what a call and its output have in common. A local shell's output repeats it as `id`.
fn call_id(item: &Value) -> Option<&str> {
    let id = text_member(item, "call_id");
    match item_type(item) {
        "local_shell_call_output" => id.or_else(|| text_member(item, "id")),
        _ => id,
    }
}

fn items(request: &CheckedRequest) -> impl Iterator<Item = (usize, &Value)> {
    request.entries().iter().enumerate()
}

fn input_list(request: &CheckedRequest, findings: &mut RuleFindings) {
    if !request.has_list() && !request.is_text() {
        findings.note_request("there is no list of `input` items");
    } else if request.has_list() && request.entries().is_empty() {
        findings.note_request("`input` is empty");
    }
}

fn item_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, item) in items(request) {
        if let Some(why) = bad_item(item) {
            findings.note_entry(i, format!("input.{i} {why}"));
        }
    }
}

fn bad_item(item: &Value) -> Option<String> {
    if !item.is_object() {
        return Some(format!(
            "must be an object, found {}",
            json_type(Some(item))
        ));
    }
    let item_type = item_type(item);
    let is_known = OTHERS.contains(&item_type) || HOSTED.contains(&item_type);
    if !is_known && !is_call(item) && !is_output(item) {
        return Some(match item_type {
            "" => "has neither `type` nor `role`".to_owned(),
            other => format!("is of type `{other}`, which is none"),
        });
    }
    let is_role = matches!(role(item), "user" | "assistant" | "system" | "developer");
    (item_type == "message" && !is_role).then(|| "is a message without a known role".to_owned())
}

fn content_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, item) in items(request).filter(|(_, item)| item_type(item) == "message") {
        let allowed: &[&str] = match role(item) {
            "assistant" => &["output_text", "refusal"],
            "user" | "system" | "developer" => {
                &["input_text", "input_image", "input_file", "input_audio"]
            }
            _ => continue,
        };
        match item.get("content") {
            Some(Value::String(_)) => {}
            Some(Value::Array(parts)) => {
                for (j, part) in parts.iter().enumerate() {
                    if let Some(why) = bad_part(part, allowed) {
                        findings.note_entry(i, format!("input.{i}.content.{j} {why}"));
                    }
                }
            }
            other => {
                let found = json_type(other);
                findings.note_entry(
                    i,
                    format!("input.{i}.content must be a string or a list of parts, found {found}"),
                );
            }
        }
    }
}

fn bad_part(part: &Value, allowed: &[&str]) -> Option<String> {
    let Some(part_type) = text_member(part, "type") else {
        return Some("has no `type`".to_owned());
    };
    if !allowed.contains(&part_type) {
        return Some(format!("is `{part_type}`, which its role cannot have"));
    }
    let is_whole = match part_type {
        "input_text" | "output_text" => text_member(part, "text").is_some(),
        "refusal" => text_member(part, "refusal").is_some(),
        "input_image" => {
            text_member(part, "image_url").is_some() || text_member(part, "file_id").is_some()
        }
        _ => true,
    };
    (!is_whole).then(|| format!("is `{part_type}` without what it names"))
}

fn call_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, item) in items(request) {
        let lacks = |fields: &[&'static str]| {
            let field = fields
                .iter()
                .find(|field| text_member(item, field).is_none())?;
            Some(format!("has no `{field}` that is a string"))
        };
        let why = match item_type(item) {
            "function_call" => lacks(&["call_id", "name", "arguments"]),
            "custom_tool_call" => lacks(&["call_id", "name", "input"]),
            "function_call_output" | "custom_tool_call_output" => bad_output(item),
            "reasoning" if !item.get("summary").is_some_and(Value::is_array) => {
                Some("has no list of `summary`".to_owned())
            }
            _ => None,
        };
        if let Some(why) = why {
            findings.note_entry(i, format!("input.{i} {why}"));
        }
    }
}

fn bad_output(item: &Value) -> Option<String> {
    if present_member(item, "call_id").is_some_and(|id| !id.is_string()) {
        return Some("has a `call_id` that is no string".to_owned());
    }
    let parts = ["input_text", "input_image", "input_file"];
    match item.get("output") {
        Some(Value::String(_)) => None,
        Some(Value::Array(_)) => list_member(item, "output")
            .iter()
            .find_map(|part| bad_part(part, &parts))
            .map(|why| format!("has an output whose part {why}")),
        other => Some(format!(
            "has an output that is {}, not a string or parts",
            json_type(other)
        )),
    }
}

/// Returns whether the server may hold calls that the input does not show.
fn has_server_state(request: &CheckedRequest) -> bool {
    request.field("previous_response_id").is_some()
        || request.field("conversation").is_some()
        || items(request).any(|(_, item)| item_type(item) == "item_reference")
}

fn output_needs_call(request: &CheckedRequest, findings: &mut RuleFindings) {
    if has_server_state(request) {
        return;
    }
    let mut called = HashSet::new();
    for (i, item) in items(request) {
        let Some(id) = call_id(item) else { continue };
        if is_call(item) {
            called.insert(id);
        } else if is_output(item) && !called.contains(id) {
            findings.note_entry(
                i,
                format!("input.{i} is the output of `{id}`, which no item before it calls"),
            );
        }
    }
}

fn call_needs_output(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut answered = HashSet::new();
    let mut open = Vec::new();
    for (i, item) in items(request).collect::<Vec<_>>().into_iter().rev() {
        let Some(id) = call_id(item) else { continue };
        if is_output(item) {
            answered.insert(id);
        } else if is_call(item) && !answered.contains(id) {
            open.push((i, id));
        }
    }
    for (i, id) in open.into_iter().rev() {
        findings.note_entry(i, format!("input.{i}: call `{id}` has no output after it"));
    }
}

/// Returns true for what a model's step holds beside its reasoning.
fn is_produced(item: &Value) -> bool {
    let item_type = item_type(item);
    match item_type {
        "message" => role(item) == "assistant",
        "mcp_approval_request"
        | "program"
        | "program_output"
        | "tool_search_output"
        | "item_reference"
        | "compaction" => true,
        _ => is_call(item) || HOSTED.contains(&item_type),
    }
}

/// Returns reasoning items with an id, each with what follows it and its siblings.
fn reasoning_with_follower(request: &CheckedRequest) -> Vec<(usize, &str, Option<&Value>)> {
    let mut found = Vec::new();
    let mut follower = None;
    for (i, item) in items(request).collect::<Vec<_>>().into_iter().rev() {
        if item_type(item) != "reasoning" {
            follower = Some(item);
        } else if let Some(id) = text_member(item, "id") {
            found.push((i, id, follower));
        }
    }
    found.reverse();
    found
}

fn reasoning_needs_follower(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, id, follower) in reasoning_with_follower(request) {
        let is_left_alone = follower.is_none_or(|item| !is_produced(item) && !is_output(item));
        if is_left_alone {
            findings.note_entry(
                i,
                format!("input.{i}: nothing follows that reasoning `{id}` produced"),
            );
        }
    }
}

fn reasoning_before_call(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, id, follower) in reasoning_with_follower(request) {
        if follower.is_some_and(|item| is_output(item) && !is_produced(item)) {
            findings.note_entry(
                i,
                format!("input.{i}: reasoning `{id}` stands before an output"),
            );
        }
    }
}

fn reasoning_replayable(request: &CheckedRequest, findings: &mut RuleFindings) {
    let is_stateless = request.field("store") == Some(&Value::Bool(false));
    for (i, item) in items(request).filter(|(_, item)| item_type(item) == "reasoning") {
        let has = |field| text_member(item, field).is_some_and(|text| !text.is_empty());
        if !has("encrypted_content") && (is_stateless || !has("id")) {
            findings.note_entry(
                i,
                format!("input.{i} is reasoning without its encrypted_content"),
            );
        }
    }
}

fn compaction_trigger_last(request: &CheckedRequest, findings: &mut RuleFindings) {
    let last = request.entries().len();
    for (i, item) in items(request) {
        if item_type(item) == "compaction_trigger" && i + 1 != last {
            findings.note_entry(
                i,
                format!("input.{i} is a compaction_trigger before other items"),
            );
        }
    }
}

fn compaction_whole(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, item) in items(request) {
        let is_compaction = matches!(item_type(item), "compaction" | "compaction_summary");
        if is_compaction && text_member(item, "encrypted_content").is_none_or(str::is_empty) {
            findings.note_entry(
                i,
                format!("input.{i} is a compaction without its encrypted_content"),
            );
        }
    }
}

fn previous_id(request: &CheckedRequest, findings: &mut RuleFindings) {
    let id = request.field("previous_response_id");
    if id.is_some_and(|id| !id.as_str().is_some_and(|id| id.starts_with("resp"))) {
        findings.note_request("previous_response_id does not start with `resp`");
    }
}

fn one_server_state(request: &CheckedRequest, findings: &mut RuleFindings) {
    let has = |field| request.field(field).is_some();
    if has("previous_response_id") && has("conversation") {
        findings.note_request("previous_response_id stands beside conversation");
    }
}

/// Finds what of two kinds is not paired, by the id that each item gives for its pair.
fn find_unpaired<'a>(
    request: &'a CheckedRequest,
    first: impl Fn(&'a Value) -> Option<&'a str>,
    second: impl Fn(&'a Value) -> Option<&'a str>,
) -> Vec<(usize, &'a str)> {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut alone = Vec::new();
    for (i, item) in items(request) {
        if let Some(id) = first(item) {
            open.insert(id, i);
        } else if let Some(id) = second(item)
            && open.remove(id).is_none()
        {
            alone.push((i, id));
        }
    }
    alone.extend(open.into_iter().map(|(id, i)| (i, id)));
    alone.sort_unstable();
    alone
}

fn id_of<'a>(wanted: &'static str, field: &'static str) -> impl Fn(&'a Value) -> Option<&'a str> {
    move |item| text_member(item, field).filter(|_| item_type(item) == wanted)
}

fn approval_paired(request: &CheckedRequest, findings: &mut RuleFindings) {
    if has_server_state(request) {
        return;
    }
    let asked = id_of("mcp_approval_request", "id");
    let given = id_of("mcp_approval_response", "approval_request_id");
    for (i, id) in find_unpaired(request, asked, given) {
        findings.note_entry(i, format!("input.{i}: approval `{id}` is half of a pair"));
    }
}

fn program_paired(request: &CheckedRequest, findings: &mut RuleFindings) {
    if has_server_state(request) {
        return;
    }
    let run = id_of("program", "call_id");
    let done = id_of("program_output", "call_id");
    for (i, id) in find_unpaired(request, run, done) {
        findings.note_entry(i, format!("input.{i}: program `{id}` is half of a pair"));
    }
}

fn hosted_item_whole(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, item) in items(request).filter(|(_, item)| HOSTED.contains(&item_type(item))) {
        let fields = item.as_object().map_or(0, serde_json::Map::len);
        if present_member(item, "id").is_none() && fields < 2 {
            findings.note_entry(
                i,
                format!("input.{i} is {} and nothing else", item_type(item)),
            );
        }
    }
}

fn output_type(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut called: HashMap<&str, &Value> = HashMap::new();
    for (i, item) in items(request) {
        let Some(id) = call_id(item) else { continue };
        if is_call(item) {
            called.insert(id, item);
        }
        let Some(call) = called.get(id).filter(|_| is_output(item)) else {
            continue;
        };
        let fits = |(call_type, outputs): &(&str, &[&str])| {
            *call_type == item_type(call) && outputs.contains(&item_type(item))
        };
        if !CALLS.iter().any(fits) {
            let (call, output) = (item_type(call), item_type(item));
            findings.note_entry(i, format!("input.{i}: `{id}` is a {call} with a {output}"));
        }
    }
}

fn no_duplicates(request: &CheckedRequest, findings: &mut RuleFindings) {
    let (mut ids, mut calls, mut outputs) = (HashSet::new(), HashSet::new(), HashSet::new());
    for (i, item) in items(request) {
        let own = text_member(item, "id").filter(|_| item_type(item) != "local_shell_call_output");
        let paired = call_id(item);
        let is_repeat = own.is_some_and(|id| !ids.insert(id))
            || (is_call(item) && paired.is_some_and(|id| !calls.insert(id)))
            || (is_output(item) && paired.is_some_and(|id| !outputs.insert(id)));
        if is_repeat {
            let id = own.or(paired).unwrap_or_default();
            findings.note_entry(i, format!("input.{i} repeats `{id}`"));
        }
    }
}

fn truncation(request: &CheckedRequest, findings: &mut RuleFindings) {
    if request.text("truncation") == Some("auto") {
        findings.note_request("truncation is `auto`");
    }
}
