//! Anthropic messages, and what Bedrock adds to them.

use std::collections::HashSet;

use serde_json::Value;

use super::request::{Request, kind, list, present, text};
use super::{Check, Findings, Provider, Rule};

const fn rule(
    id: &'static str,
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    check: Check,
) -> Rule {
    Rule::new(Provider::Anthropic, id, name, summary, source, check)
}

pub(super) static RULES: &[Rule] = &[
    rule(
        "A0a",
        "messages-list",
        "`messages` is a list with at least one message",
        "anthropic 2.8.0 types/beta/message_create_params.py; \"messages: at least one message is required\"",
        messages_list,
    ),
    rule(
        "A0b",
        "message-shape",
        "every message is an object with role user, assistant or system",
        "anthropic 2.8.0 types/beta/beta_message_param.py",
        message_shape,
    ),
    rule(
        "A0c",
        "content-shape",
        "`content` is a string or a list of the blocks that the role may have, each whole",
        "anthropic 2.8.0 types/beta/beta_content_block_param.py",
        content_shape,
    ),
    rule(
        "A1",
        "tool-use-needs-result",
        "every tool_use is answered in the very next message, which is the user's",
        "\"`tool_use` ids were found without `tool_result` blocks immediately after\": anthropics/claude-code#1831, #8210",
        tool_use_needs_result,
    ),
    rule(
        "A1b",
        "tool-use-ids-unique",
        "no two tool_use blocks share an id",
        "\"`tool_use` ids must be unique\": BerriAI/litellm#23510, trycua/cua#524",
        tool_use_ids_unique,
    ),
    rule(
        "A2",
        "result-needs-tool-use",
        "every tool_result answers a tool_use of the message before",
        "\"unexpected `tool_use_id` found in `tool_result` blocks\": anthropics/claude-code#13460, #18947",
        result_needs_tool_use,
    ),
    rule(
        "A2b",
        "one-result-per-tool-use",
        "no tool_use has two results",
        "\"each tool_use must have a single result\": vectorize-io/hindsight#4250",
        one_result_per_tool_use,
    ),
    rule(
        "A3",
        "server-result-needs-use",
        "a result of a server's tool follows its server_tool_use or mcp_tool_use in the same content",
        "\"Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it\": anthropics/claude-code#64383, #65726",
        server_result_needs_use,
    ),
    rule(
        "A4",
        "results-first",
        "tool_result blocks stand before all other blocks of their message",
        "litellm 1.106.2 mid_conversation_system.py",
        results_first,
    ),
    rule(
        "A5",
        "first-user",
        "the first message is the user's, unless it is a compaction block",
        "litellm 1.106.2; platform.claude.com/docs/en/build-with-claude/compaction",
        first_user,
    ),
    rule(
        "A6",
        "alternation",
        "user and assistant messages alternate",
        "Bedrock Converse: litellm 1.106.2; the Claude API merges neighbours instead (anthropic 2.8.0)",
        alternation,
    )
    .strict(),
    rule(
        "A7a",
        "prefill-refused",
        "the last message is not the assistant's with thinking on or on a model without prefill",
        "anthropic 2.8.0 types/beta/message_create_params.py: \"Prefill not supported\"",
        prefill_refused,
    )
    .unseen("only where the body names the model or turns thinking on"),
    rule(
        "A7b",
        "last-role",
        "the last message is not the assistant's",
        "anthropic 2.8.0 types/beta/message_create_params.py: models of 2026 take no prefill",
        last_role,
    )
    .strict(),
    rule(
        "A7c",
        "prefill-trailing-space",
        "a last message of the assistant does not end in white space",
        "\"final assistant content cannot end with trailing whitespace\"",
        prefill_trailing_space,
    ),
    rule(
        "A8a",
        "content-not-empty",
        "every message has content, a last one of the assistant aside",
        "\"all messages must have non-empty content except for the optional final assistant message\": anthropics/claude-code#6774",
        content_not_empty,
    ),
    rule(
        "A8b",
        "text-not-blank",
        "text blocks hold more than white space",
        "\"text content blocks must be non-empty\", \"must contain non-whitespace text\": anthropics/claude-code#59812, anomalyco/opencode#31259",
        text_not_blank,
    ),
    rule(
        "A9",
        "thinking-signed",
        "thinking carries its signature, redacted thinking its data",
        "\"`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified\": anthropics/claude-code#12311",
        thinking_signed,
    )
    .unseen("other changes of a block show only beside the response that held it"),
    rule(
        "A10",
        "loop-starts-with-thinking",
        "with thinking enabled, the turn of an open tool loop starts with thinking",
        "\"Expected `thinking` or `redacted_thinking`, but found `tool_use`\": anomalyco/opencode#3077, haystack#2146",
        loop_starts_with_thinking,
    ),
    rule(
        "A11",
        "no-thinking-when-disabled",
        "with thinking disabled, the assistant's latest open message holds no thinking",
        "\"When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`\": tailcallhq/forgecode#1853",
        no_thinking_when_disabled,
    )
    .unseen("only where the body says `disabled`: the default differs by model"),
    rule(
        "A12",
        "thinking-bound-to-prefix",
        "`thinking.block_binding` stands with adaptive thinking only, and signatures with the prefix they were made for",
        "platform.claude.com/docs/en/build-with-claude/preserved-thinking",
        block_binding_needs_adaptive,
    )
    .unseen("whether the prefix changed shows only beside the earlier request"),
    rule(
        "A13",
        "thinking-of-the-same-model",
        "thinking of another model is dropped in silence",
        "platform.claude.com/docs/en/build-with-claude/preserved-thinking",
        nothing,
    )
    .unseen("nothing is refused, and blocks do not name their model")
    .unchecked(),
    rule(
        "A14a",
        "cache-breakpoints",
        "at most four blocks carry cache_control",
        "\"A maximum of 4 blocks with cache_control may be provided\"",
        cache_breakpoints,
    ),
    rule(
        "A14b",
        "cache-on-cacheable",
        "cache_control stands on no thinking, no empty text and no system message with clear_at",
        "anthropic 2.8.0 types/beta; platform.claude.com/docs/en/build-with-claude/prompt-caching",
        cache_on_cacheable,
    ),
    rule(
        "A14c",
        "cache-ttl-order",
        "breakpoints with the longer ttl come first",
        "platform.claude.com/docs/en/build-with-claude/prompt-caching",
        cache_ttl_order,
    ),
    rule(
        "A15a",
        "id-alphabet",
        "ids of tool_use are of letters, digits, `_` and `-`",
        "litellm 1.106.2: `^[a-zA-Z0-9_-]+$`",
        id_alphabet,
    ),
    rule(
        "A15b",
        "input-object",
        "the input of a tool_use is an object",
        "litellm 1.106.2; anthropic 2.8.0 types/beta/beta_tool_use_block_param.py",
        input_object,
    ),
    rule(
        "A16a",
        "tools-declared",
        "a history with tool_use or tool_result comes with `tools`",
        "Bedrock Converse: litellm 1.106.2",
        tools_declared,
    )
    .strict()
    .unseen("only where a whole body is given"),
    rule(
        "A16b",
        "tool-reference-declared",
        "a tool_reference names one of `tools`",
        "pydantic-ai 2.66.0 models/anthropic",
        tool_reference_declared,
    )
    .unseen("only where the body has `tools`"),
    rule(
        "A16c",
        "not-all-deferred",
        "at least one of `tools` is not deferred",
        "pydantic-ai 2.66.0 models/anthropic",
        not_all_deferred,
    ),
    rule(
        "A17",
        "system-mid-conversation",
        "a system message follows a user's and is last or followed by the assistant's",
        "litellm 1.106.2 mid_conversation_system.py",
        system_mid_conversation,
    )
    .unseen("which models take the role at all"),
    rule(
        "A18a",
        "thinking-budget",
        "`thinking.budget_tokens` is at least 1024 and below `max_tokens`",
        "anthropic 2.8.0 types/beta/beta_thinking_config_enabled_param.py",
        thinking_budget,
    ),
    rule(
        "A18b",
        "no-forced-tool-with-thinking",
        "`tool_choice` forces no tool while thinking is enabled",
        "platform.claude.com/docs/en/build-with-claude/extended-thinking",
        no_forced_tool_with_thinking,
    ),
    rule(
        "A19a",
        "compaction-alone",
        "`compaction` stands without context_management, stop_sequences, output format and forced tools",
        "platform.claude.com/docs/en/build-with-claude/compaction",
        compaction_alone,
    ),
    rule(
        "A19b",
        "compaction-content",
        "a compaction block holds text or null, not an empty string",
        "anthropic 2.8.0 types/beta/beta_compaction_block_param.py",
        compaction_content,
    )
    .unseen("whether the block is as the API wrote it"),
    rule(
        "A19c",
        "compaction-loop-closed",
        "a request with `compaction` does not end in an open tool_use",
        "platform.claude.com/docs/en/build-with-claude/compaction",
        compaction_loop_closed,
    ),
    rule(
        "A20",
        "message-count",
        "there are at most 100,000 messages",
        "anthropic 2.8.0 types/beta/message_create_params.py",
        message_count,
    )
    .unseen("whether the prompt fits the window: `compactctl inspect` counts"),
];

const USER_BLOCKS: &[&str] = &[
    "text",
    "image",
    "document",
    "search_result",
    "tool_result",
    "container_upload",
    "compaction",
];

const ASSISTANT_BLOCKS: &[&str] = &[
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "mcp_tool_listing",
    "container_upload",
    "compaction",
    "fallback",
];

const SYSTEM_BLOCKS: &[&str] = &["text", "tool_addition", "tool_removal"];

const MOST_MESSAGES: usize = 100_000;
const MOST_BREAKPOINTS: usize = 4;
const LEAST_BUDGET: u64 = 1024;

fn nothing(_: &Request, _: &mut Findings) {}

fn role(message: &Value) -> &str {
    text(message, "role").unwrap_or_default()
}

fn block_type(block: &Value) -> &str {
    text(block, "type").unwrap_or_default()
}

fn blocks(message: &Value) -> &[Value] {
    list(message, "content")
}

/// Blocks of one type.
fn of_type<'a>(message: &'a Value, wanted: &'static str) -> impl Iterator<Item = &'a Value> {
    blocks(message)
        .iter()
        .filter(move |block| block_type(block) == wanted)
}

fn tool_use_ids(message: &Value) -> impl Iterator<Item = &str> {
    of_type(message, "tool_use").filter_map(|block| text(block, "id"))
}

fn result_ids(message: &Value) -> impl Iterator<Item = &str> {
    of_type(message, "tool_result").filter_map(|block| text(block, "tool_use_id"))
}

fn is_thinking(block: &Value) -> bool {
    matches!(block_type(block), "thinking" | "redacted_thinking")
}

fn thinking_type(request: &Request) -> Option<&str> {
    text(request.field("thinking")?, "type")
}

/// Every block of every message with its path.
fn each_block(request: &Request, mut visit: impl FnMut(usize, String, &Value)) {
    for (i, message) in request.entries().iter().enumerate() {
        for (j, block) in blocks(message).iter().enumerate() {
            visit(i, format!("messages.{i}.content.{j}"), block);
        }
    }
}

fn messages_list(request: &Request, findings: &mut Findings) {
    if !request.has_list() {
        findings.request("there is no list of `messages`");
    } else if request.entries().is_empty() {
        findings.request("`messages` is empty");
    }
}

fn message_shape(request: &Request, findings: &mut Findings) {
    for (i, message) in request.entries().iter().enumerate() {
        match message.get("role") {
            _ if !message.is_object() => {
                let found = kind(Some(message));
                findings.at(i, format!("messages.{i} must be an object, found {found}"));
            }
            Some(Value::String(role))
                if matches!(role.as_str(), "user" | "assistant" | "system") => {}
            Some(Value::String(role)) => {
                findings.at(
                    i,
                    format!("messages.{i}.role is `{role}`, which is no role"),
                );
            }
            role => {
                let found = kind(role);
                findings.at(
                    i,
                    format!("messages.{i}.role must be a string, found {found}"),
                );
            }
        }
    }
}

fn content_shape(request: &Request, findings: &mut Findings) {
    for (i, message) in request.entries().iter().enumerate() {
        let role = role(message);
        match message.get("content") {
            _ if role.is_empty() => {}
            Some(Value::String(_)) => {}
            Some(Value::Array(blocks)) => {
                for (j, block) in blocks.iter().enumerate() {
                    if let Some(why) = misplaced(block, role).or_else(|| incomplete(block)) {
                        findings.at(i, format!("messages.{i}.content.{j} {why}"));
                    }
                }
            }
            other => {
                let found = kind(other);
                findings.at(
                    i,
                    format!(
                        "messages.{i}.content must be a string or a list of blocks, found {found}"
                    ),
                );
            }
        }
    }
}

/// Why a block may not stand in a message of a role.
fn misplaced(block: &Value, role: &str) -> Option<String> {
    let Some(block_type) = text(block, "type") else {
        return Some("has no `type`".to_owned());
    };
    let may_stand = match role {
        "user" => USER_BLOCKS.contains(&block_type),
        "assistant" => {
            ASSISTANT_BLOCKS.contains(&block_type) || block_type.ends_with("_tool_result")
        }
        "system" => SYSTEM_BLOCKS.contains(&block_type),
        _ => true,
    };
    (!may_stand).then(|| format!("is `{block_type}`, which {role} messages cannot have"))
}

/// What a block lacks. Fields with a rule of their own are left to it.
fn incomplete(block: &Value) -> Option<String> {
    let lacks = |field: &str| Some(format!("is `{}` without `{field}`", block_type(block)));
    let has_text = |field: &str| text(block, field).is_some();
    match block_type(block) {
        "text" if !has_text("text") => lacks("text"),
        "thinking" if !has_text("thinking") => lacks("thinking"),
        "tool_use" | "server_tool_use" | "mcp_tool_use" if !has_text("id") => lacks("id"),
        "tool_use" | "server_tool_use" | "mcp_tool_use" if !has_text("name") => lacks("name"),
        "tool_result" if !has_text("tool_use_id") => lacks("tool_use_id"),
        "tool_result" => result_content(block),
        "image" | "document" if !whole_source(block) => lacks("source"),
        _ => None,
    }
}

fn result_content(block: &Value) -> Option<String> {
    let allowed = [
        "text",
        "image",
        "document",
        "search_result",
        "tool_reference",
        "browser_state",
    ];
    match block.get("content") {
        None | Some(Value::String(_)) => None,
        Some(Value::Array(inner)) => inner
            .iter()
            .find(|block| !allowed.contains(&block_type(block)))
            .map(|block| format!("holds `{}`, which results cannot have", block_type(block)))
            .or_else(|| inner.iter().find_map(incomplete)),
        other => Some(format!(
            "has a content that is {}, not a string or blocks",
            kind(other)
        )),
    }
}

fn whole_source(block: &Value) -> bool {
    let Some(source) = block.get("source") else {
        return false;
    };
    let has = |field: &str| text(source, field).is_some();
    match block_type(source) {
        "base64" | "text" => has("data") && has("media_type"),
        "url" => has("url"),
        "file" => has("file_id"),
        "content" => source.get("content").is_some(),
        _ => false,
    }
}

fn tool_use_needs_result(request: &Request, findings: &mut Findings) {
    let entries = request.entries();
    for (i, message) in entries.iter().enumerate() {
        let is_last = i + 1 == entries.len();
        // `compaction-loop-closed` says it better.
        if is_last && request.field("compaction").is_some() {
            continue;
        }
        let results: HashSet<&str> = entries
            .get(i + 1)
            .into_iter()
            .flat_map(result_ids)
            .collect();
        for id in tool_use_ids(message).filter(|id| !results.contains(id)) {
            findings.at(
                i,
                format!("messages.{i}: tool_use `{id}` has no tool_result in the next message"),
            );
        }
    }
}

fn tool_use_ids_unique(request: &Request, findings: &mut Findings) {
    let mut seen = HashSet::new();
    for (i, message) in request.entries().iter().enumerate() {
        for id in tool_use_ids(message).filter(|id| !seen.insert(*id)) {
            findings.at(
                i,
                format!("messages.{i}: tool_use id `{id}` was used before"),
            );
        }
    }
}

fn result_needs_tool_use(request: &Request, findings: &mut Findings) {
    let mut before: HashSet<&str> = HashSet::new();
    for (i, message) in request.entries().iter().enumerate() {
        for id in result_ids(message).filter(|id| !before.contains(id)) {
            findings.at(
                i,
                format!(
                    "messages.{i}: tool_result of `{id}`, which the message before does not use"
                ),
            );
        }
        before = tool_use_ids(message).collect();
    }
}

fn one_result_per_tool_use(request: &Request, findings: &mut Findings) {
    for (i, message) in request.entries().iter().enumerate() {
        let mut seen = HashSet::new();
        for id in result_ids(message).filter(|id| !seen.insert(*id)) {
            findings.at(i, format!("messages.{i}: tool_use `{id}` has two results"));
        }
    }
}

fn server_result_needs_use(request: &Request, findings: &mut Findings) {
    for (i, message) in request.entries().iter().enumerate() {
        let mut used = HashSet::new();
        for (j, block) in blocks(message).iter().enumerate() {
            let block_type = block_type(block);
            if matches!(block_type, "server_tool_use" | "mcp_tool_use") {
                used.extend(text(block, "id"));
            }
            let id = text(block, "tool_use_id").unwrap_or_default();
            if block_type.ends_with("_tool_result") && !used.contains(id) {
                findings.at(
                    i,
                    format!("messages.{i}.content.{j}: {block_type} of `{id}`, which no block before it uses"),
                );
            }
        }
    }
}

fn results_first(request: &Request, findings: &mut Findings) {
    for (i, message) in request.entries().iter().enumerate() {
        let is_result = |block: &Value| block_type(block) == "tool_result";
        let late = blocks(message)
            .iter()
            .enumerate()
            .skip_while(|(_, block)| is_result(block))
            .find(|(_, block)| is_result(block));
        if let Some((j, _)) = late {
            findings.at(
                i,
                format!("messages.{i}.content.{j} is a tool_result after other blocks"),
            );
        }
    }
}

fn first_user(request: &Request, findings: &mut Findings) {
    let Some(first) = request.entries().first() else {
        return;
    };
    let is_compaction = of_type(first, "compaction").next().is_some();
    if role(first) == "assistant" && !is_compaction {
        findings.at(0, "messages.0 is the assistant's");
    }
}

fn alternation(request: &Request, findings: &mut Findings) {
    let mut before = "";
    for (i, message) in request.entries().iter().enumerate() {
        let role = role(message);
        if !role.is_empty() && role == before {
            findings.at(i, format!("messages.{i} is of role {role} again"));
        }
        before = role;
    }
}

/// The last message if it is a beginning of an answer. One that ends in a server's tool or in a
/// compaction is a pause that the API asked to be continued.
fn prefill(request: &Request) -> Option<(usize, &Value)> {
    let (i, last) = request.entries().iter().enumerate().next_back()?;
    let end = blocks(last).last().map_or("", block_type);
    let is_pause = matches!(
        end,
        "server_tool_use" | "mcp_tool_use" | "compaction" | "tool_use"
    ) || end.ends_with("_tool_result");
    (role(last) == "assistant" && !is_pause).then_some((i, last))
}

fn takes_no_prefill(request: &Request) -> bool {
    let thinks = matches!(thinking_type(request), Some("enabled" | "adaptive"));
    let newer = |model: &str| {
        let families = ["-4-6", "-4-7", "-4-8", "-5"];
        let name = model.rsplit(['/', '.']).next().unwrap_or(model);
        let family = ["opus", "sonnet", "haiku", "fable", "mythos"]
            .iter()
            .find_map(|name| model.split_once(name));
        name.starts_with("claude")
            && family.is_some_and(|(_, rest)| families.iter().any(|f| rest.starts_with(f)))
    };
    thinks || request.text("model").is_some_and(newer)
}

fn prefill_refused(request: &Request, findings: &mut Findings) {
    if let Some((i, _)) = prefill(request).filter(|_| takes_no_prefill(request)) {
        findings.at(
            i,
            format!("messages.{i} begins the answer, which this request may not"),
        );
    }
}

fn last_role(request: &Request, findings: &mut Findings) {
    if let Some((i, _)) = prefill(request).filter(|_| !takes_no_prefill(request)) {
        findings.at(i, format!("messages.{i}, the last one, is the assistant's"));
    }
}

fn prefill_trailing_space(request: &Request, findings: &mut Findings) {
    let Some((i, last)) = prefill(request) else {
        return;
    };
    let words = text(last, "content").or_else(|| text(blocks(last).last()?, "text"));
    let ends_in_space = |text: &str| text.ends_with(char::is_whitespace) && !text.trim().is_empty();
    if words.is_some_and(ends_in_space) {
        findings.at(
            i,
            format!("messages.{i}, the last one, ends in white space"),
        );
    }
}

fn content_not_empty(request: &Request, findings: &mut Findings) {
    let entries = request.entries();
    for (i, message) in entries.iter().enumerate() {
        let is_empty = match message.get("content") {
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(blocks)) => blocks.is_empty(),
            _ => false,
        };
        let may_be = i + 1 == entries.len() && role(message) == "assistant";
        if is_empty && !may_be {
            findings.at(i, format!("messages.{i} has no content"));
        }
    }
}

fn is_blank(block: &Value) -> bool {
    block_type(block) == "text" && text(block, "text").is_some_and(|text| text.trim().is_empty())
}

fn text_not_blank(request: &Request, findings: &mut Findings) {
    for (j, block) in request
        .field("system")
        .into_iter()
        .flat_map(elements)
        .enumerate()
    {
        if is_blank(block) {
            findings.request(format!("system.{j} is a text block without text"));
        }
    }
    for (i, message) in request.entries().iter().enumerate() {
        let words = text(message, "content").unwrap_or_default();
        if !words.is_empty() && words.trim().is_empty() {
            findings.at(i, format!("messages.{i} is nothing but white space"));
        }
    }
    each_block(request, |i, path, block| {
        if is_blank(block) || list(block, "content").iter().any(is_blank) {
            findings.at(i, format!("{path} holds a text block without text"));
        }
    });
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn thinking_signed(request: &Request, findings: &mut Findings) {
    each_block(request, |i, path, block| {
        let seal = match block_type(block) {
            "thinking" => "signature",
            "redacted_thinking" => "data",
            _ => return,
        };
        if text(block, seal).is_none_or(str::is_empty) {
            findings.at(i, format!("{path} has lost its `{seal}`"));
        }
    });
}

/// Where the turn begins that is not over: after the last message of the user that is not results.
fn open_turn(entries: &[Value]) -> Option<usize> {
    let carries_results = |message: &Value| result_ids(message).next().is_some();
    let is_open = entries
        .last()
        .is_some_and(|last| role(last) == "user" && carries_results(last));
    let start = entries
        .iter()
        .rposition(|message| role(message) == "user" && !carries_results(message));
    is_open.then(|| start.map_or(0, |start| start + 1))
}

fn loop_starts_with_thinking(request: &Request, findings: &mut Findings) {
    let entries = request.entries();
    let Some(start) = open_turn(entries).filter(|_| thinking_type(request) == Some("enabled"))
    else {
        return;
    };
    let opening = entries
        .iter()
        .enumerate()
        .skip(start)
        .find(|(_, message)| role(message) == "assistant");
    if let Some((i, message)) = opening
        && !blocks(message).first().is_some_and(is_thinking)
    {
        let found = blocks(message).first().map_or("text", block_type);
        findings.at(
            i,
            format!("messages.{i} opens the turn with {found}, not with thinking"),
        );
    }
}

fn no_thinking_when_disabled(request: &Request, findings: &mut Findings) {
    if thinking_type(request) != Some("disabled") {
        return;
    }
    let entries = request.entries();
    let is_final = entries
        .last()
        .is_some_and(|last| role(last) == "assistant" || result_ids(last).next().is_some());
    let latest = entries
        .iter()
        .enumerate()
        .rfind(|(_, message)| role(message) == "assistant");
    if let Some((i, message)) = latest.filter(|_| is_final)
        && blocks(message).iter().any(is_thinking)
    {
        findings.at(i, format!("messages.{i} holds thinking, which is disabled"));
    }
}

fn block_binding_needs_adaptive(request: &Request, findings: &mut Findings) {
    let binds = request
        .field("thinking")
        .is_some_and(|thinking| present(thinking, "block_binding").is_some());
    if binds && thinking_type(request) != Some("adaptive") {
        findings.request("thinking.block_binding stands without adaptive thinking");
    }
}

/// A block that carries cache_control, with its path and its entry.
struct Breakpoint<'a> {
    entry: Option<usize>,
    path: String,
    block: &'a Value,
}

/// Breakpoints in the order of the prompt: tools, system, messages.
fn breakpoints(request: &Request) -> Vec<Breakpoint<'_>> {
    let mut found = Vec::new();
    let mut see = |entry, path: String, block| {
        if present(block, "cache_control").is_some() {
            found.push(Breakpoint { entry, path, block });
        }
    };
    for field in ["tools", "system"] {
        for (j, block) in request
            .field(field)
            .into_iter()
            .flat_map(elements)
            .enumerate()
        {
            see(None, format!("{field}.{j}"), block);
        }
    }
    for (i, message) in request.entries().iter().enumerate() {
        see(Some(i), format!("messages.{i}"), message);
        for (j, block) in blocks(message).iter().enumerate() {
            let path = format!("messages.{i}.content.{j}");
            for (k, inner) in list(block, "content").iter().enumerate() {
                see(Some(i), format!("{path}.content.{k}"), inner);
            }
            see(Some(i), path, block);
        }
    }
    found
}

fn cache_breakpoints(request: &Request, findings: &mut Findings) {
    let found = breakpoints(request);
    if let Some(beyond) = found.get(MOST_BREAKPOINTS) {
        let message = format!("{} blocks carry cache_control", found.len());
        findings.note(beyond.entry, message);
    }
}

fn cache_on_cacheable(request: &Request, findings: &mut Findings) {
    let clears = |entry: Option<usize>| {
        let message = entry.and_then(|i| request.entries().get(i));
        message.is_some_and(|message| present(message, "clear_at").is_some())
    };
    for Breakpoint { entry, path, block } in breakpoints(request) {
        let is_empty = block_type(block) == "text" && text(block, "text") == Some("");
        if is_thinking(block) || is_empty || clears(entry) {
            findings.note(entry, format!("{path} cannot carry cache_control"));
        }
    }
}

fn cache_ttl_order(request: &Request, findings: &mut Findings) {
    let mut has_short = false;
    for Breakpoint { entry, path, block } in breakpoints(request) {
        let ttl = block.pointer("/cache_control/ttl").and_then(Value::as_str);
        let is_long = ttl == Some("1h");
        if is_long && has_short {
            findings.note(
                entry,
                format!("{path} is cached for 1h after a breakpoint of 5m"),
            );
        }
        has_short |= !is_long;
    }
}

fn id_alphabet(request: &Request, findings: &mut Findings) {
    let is_plain = |id: &str| {
        !id.is_empty()
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    for (i, message) in request.entries().iter().enumerate() {
        // A result repeats its call's id; one report is enough.
        for id in tool_use_ids(message).filter(|id| !is_plain(id)) {
            findings.at(i, format!("messages.{i}: `{id}` is no id of a tool_use"));
        }
    }
}

fn input_object(request: &Request, findings: &mut Findings) {
    each_block(request, |i, path, block| {
        let is_use = matches!(
            block_type(block),
            "tool_use" | "server_tool_use" | "mcp_tool_use"
        );
        let input = block.get("input");
        if is_use && !input.is_some_and(Value::is_object) {
            let found = kind(input);
            findings.at(i, format!("{path}.input must be an object, found {found}"));
        }
    });
}

fn tools_declared(request: &Request, findings: &mut Findings) {
    let is_body = request.field("model").is_some() || request.field("max_tokens").is_some();
    let has_tools = request
        .field("tools")
        .is_some_and(|tools| !elements(tools).is_empty());
    let uses = |message: &Value| {
        blocks(message)
            .iter()
            .any(|block| matches!(block_type(block), "tool_use" | "tool_result"))
    };
    if is_body && !has_tools && request.entries().iter().any(uses) {
        findings.request("the history uses tools, but `tools` is not sent");
    }
}

fn tool_reference_declared(request: &Request, findings: &mut Findings) {
    let Some(tools) = request.field("tools").map(elements) else {
        return;
    };
    let names: HashSet<&str> = tools.iter().filter_map(|tool| text(tool, "name")).collect();
    each_block(request, |i, path, block| {
        let searched = block
            .pointer("/content/tool_references")
            .into_iter()
            .flat_map(elements);
        let references = list(block, "content")
            .iter()
            .chain(searched)
            .filter(|inner| block_type(inner) == "tool_reference")
            .filter_map(|inner| text(inner, "tool_name"));
        for name in references.filter(|name| !names.contains(name)) {
            findings.at(
                i,
                format!("{path} refers to `{name}`, which is not in `tools`"),
            );
        }
    });
}

fn not_all_deferred(request: &Request, findings: &mut Findings) {
    let tools = request.field("tools").map(elements).unwrap_or_default();
    let is_deferred = |tool: &Value| tool.get("defer_loading") == Some(&Value::Bool(true));
    if !tools.is_empty() && tools.iter().all(is_deferred) {
        findings.request("every one of `tools` is deferred");
    }
}

fn system_mid_conversation(request: &Request, findings: &mut Findings) {
    let entries = request.entries();
    let role_at = |i: Option<usize>| i.and_then(|i| entries.get(i)).map_or("", role);
    for (i, _) in entries
        .iter()
        .enumerate()
        .filter(|(_, m)| role(m) == "system")
    {
        let (before, after) = (role_at(i.checked_sub(1)), role_at(Some(i + 1)));
        if before == "system" {
            // The first of the two is told.
            continue;
        }
        if before != "user" {
            findings.at(
                i,
                format!("messages.{i} is a system message that follows no user's"),
            );
        } else if !matches!(after, "" | "assistant") {
            findings.at(
                i,
                format!("messages.{i} is a system message that one of role {after} follows"),
            );
        }
    }
}

fn thinking_budget(request: &Request, findings: &mut Findings) {
    let thinking = request.field("thinking");
    let budget = thinking.and_then(|thinking| thinking.get("budget_tokens")?.as_u64());
    let Some(budget) = budget else {
        return;
    };
    let most = request.field("max_tokens").and_then(Value::as_u64);
    if budget < LEAST_BUDGET {
        findings.request(format!(
            "thinking.budget_tokens is {budget}, below {LEAST_BUDGET}"
        ));
    } else if most.is_some_and(|most| budget >= most) {
        findings.request(format!(
            "thinking.budget_tokens is {budget}, not below max_tokens"
        ));
    }
}

fn forces_tool(request: &Request) -> bool {
    let choice = request
        .field("tool_choice")
        .and_then(|choice| text(choice, "type"));
    matches!(choice, Some("any" | "tool"))
}

fn no_forced_tool_with_thinking(request: &Request, findings: &mut Findings) {
    if thinking_type(request) == Some("enabled") && forces_tool(request) {
        findings.request("tool_choice forces a tool while thinking is enabled");
    }
}

fn compaction_alone(request: &Request, findings: &mut Findings) {
    if request.field("compaction").is_none() {
        return;
    }
    let others = [
        "context_management",
        "stop_sequences",
        "output_format",
        "output_config",
    ];
    for field in others.iter().filter(|field| request.field(field).is_some()) {
        findings.request(format!("`compaction` stands beside `{field}`"));
    }
    if forces_tool(request) {
        findings.request("`compaction` stands beside a tool_choice that forces a tool");
    }
}

fn compaction_content(request: &Request, findings: &mut Findings) {
    each_block(request, |i, path, block| {
        let content = block.get("content");
        let is_whole = match content {
            Some(Value::String(text)) => !text.is_empty(),
            None | Some(Value::Null) => true,
            Some(_) => false,
        };
        if block_type(block) == "compaction" && !is_whole {
            findings.at(i, format!("{path} is a compaction without its text"));
        }
    });
}

fn compaction_loop_closed(request: &Request, findings: &mut Findings) {
    let mut entries = request.entries().iter().enumerate();
    if let Some((i, last)) = entries.next_back()
        && request.field("compaction").is_some()
        && tool_use_ids(last).next().is_some()
    {
        findings.at(
            i,
            format!("messages.{i}, the last one, has an open tool_use"),
        );
    }
}

fn message_count(request: &Request, findings: &mut Findings) {
    let count = request.entries().len();
    if count > MOST_MESSAGES {
        findings.request(format!("{count} messages, more than {MOST_MESSAGES}"));
    }
}
