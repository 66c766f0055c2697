//! Anthropic messages, and what Bedrock adds to them: the table, and what its rules share.

mod cache;
mod compaction;
mod pairing;
mod shape;
mod thinking;
mod turn;

use serde_json::Value;

use super::request::{CheckedRequest, list_member, text_member};
use super::{Provider, ProviderRule, RuleCheck, RuleFindings, own_members};

const fn rule(
    id: &'static str,
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    check: RuleCheck,
) -> ProviderRule {
    ProviderRule::new(Provider::Anthropic, id, name, summary, source, check)
}

pub(super) static RULES: &[ProviderRule] = &[
    rule(
        "A0a",
        "messages-list",
        "`messages` is a list with at least one message",
        "anthropic 2.8.0 types/beta/message_create_params.py; \"messages: at least one message is required\"",
        shape::messages_list,
    ),
    rule(
        "A0b",
        "message-shape",
        "every message is an object with role user, assistant or system",
        "anthropic 2.8.0 types/beta/beta_message_param.py",
        shape::message_shape,
    ),
    rule(
        "A0c",
        "content-shape",
        "`content` is a string or a list of the blocks that the role may have, each whole",
        "anthropic 2.8.0 types/beta/beta_content_block_param.py",
        shape::content_shape,
    ),
    rule(
        "A0d",
        "known-members",
        "no message carries `meta` or `protected`, which are for Compact to read",
        "\"messages.0.name: Extra inputs are not permitted\": microsoft/autogen#3034, RooCodeInc/Roo-Code#11429",
        own_members,
    ),
    rule(
        "A1",
        "tool-use-needs-result",
        "every tool_use is answered in the very next message, which is the user's",
        "\"`tool_use` ids were found without `tool_result` blocks immediately after\": anthropics/claude-code#1831, #8210",
        pairing::tool_use_needs_result,
    ),
    rule(
        "A1b",
        "tool-use-ids-unique",
        "no two tool_use blocks share an id",
        "\"`tool_use` ids must be unique\": BerriAI/litellm#23510, trycua/cua#524",
        pairing::tool_use_ids_unique,
    ),
    rule(
        "A2",
        "result-needs-tool-use",
        "every tool_result answers a tool_use of the message before",
        "\"unexpected `tool_use_id` found in `tool_result` blocks\": anthropics/claude-code#13460, #18947",
        pairing::result_needs_tool_use,
    ),
    rule(
        "A2b",
        "one-result-per-tool-use",
        "no tool_use has two results",
        "\"each tool_use must have a single result\": vectorize-io/hindsight#4250",
        pairing::one_result_per_tool_use,
    ),
    rule(
        "A3",
        "server-result-needs-use",
        "a result of a server's tool follows its server_tool_use or mcp_tool_use in the same content",
        "\"Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it\": anthropics/claude-code#64383, #65726",
        pairing::server_result_needs_use,
    ),
    rule(
        "A4",
        "results-first",
        "tool_result blocks stand before all other blocks of their message",
        "litellm 1.106.2 mid_conversation_system.py",
        pairing::results_first,
    ),
    rule(
        "A5",
        "first-user",
        "the first message is the user's, unless it is a compaction block",
        "litellm 1.106.2; platform.claude.com/docs/en/build-with-claude/compaction",
        turn::first_user,
    ),
    rule(
        "A6",
        "alternation",
        "user and assistant messages alternate",
        "Bedrock Converse: litellm 1.106.2; the Claude API merges neighbours instead (anthropic 2.8.0)",
        turn::alternation,
    )
    .strict(),
    rule(
        "A7a",
        "prefill-refused",
        "the last message is not the assistant's with thinking on or on a model without prefill",
        "anthropic 2.8.0 types/beta/message_create_params.py: \"Prefill not supported\"",
        turn::prefill_refused,
    )
    .unseen("only where the body names the model or turns thinking on"),
    rule(
        "A7b",
        "last-role",
        "the last message is not the assistant's",
        "anthropic 2.8.0 types/beta/message_create_params.py: models of 2026 take no prefill",
        turn::last_role,
    )
    .strict(),
    rule(
        "A7c",
        "prefill-trailing-space",
        "a last message of the assistant does not end in white space",
        "\"final assistant content cannot end with trailing whitespace\": tailcallhq/forgecode#1872, anomalyco/opencode#1295",
        turn::prefill_trailing_space,
    ),
    rule(
        "A8a",
        "content-not-empty",
        "every message has content, a last one of the assistant aside",
        "\"all messages must have non-empty content except for the optional final assistant message\": anthropics/claude-code#6774",
        shape::content_not_empty,
    ),
    rule(
        "A8b",
        "text-not-blank",
        "text blocks hold more than white space",
        "\"text content blocks must be non-empty\", \"must contain non-whitespace text\": anthropics/claude-code#59812, anomalyco/opencode#31259",
        shape::text_not_blank,
    ),
    rule(
        "A9",
        "thinking-signed",
        "thinking carries its signature, redacted thinking its data",
        "\"`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified\": anthropics/claude-code#12311",
        thinking::thinking_signed,
    )
    .unseen("other changes of a block show only beside the response that held it"),
    rule(
        "A10",
        "loop-starts-with-thinking",
        "with thinking enabled, the turn of an open tool loop starts with thinking",
        "\"Expected `thinking` or `redacted_thinking`, but found `tool_use`\": anomalyco/opencode#3077, haystack#2146",
        thinking::loop_starts_with_thinking,
    ),
    rule(
        "A11",
        "no-thinking-when-disabled",
        "with thinking disabled, the assistant's latest open message holds no thinking",
        "\"When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`\": tailcallhq/forgecode#1853",
        thinking::no_thinking_when_disabled,
    )
    .unseen("only where the body says `disabled`: the default differs by model"),
    rule(
        "A12",
        "thinking-bound-to-prefix",
        "`thinking.block_binding` stands with adaptive thinking only, and signatures with the prefix they were made for",
        "platform.claude.com/docs/en/build-with-claude/preserved-thinking",
        thinking::block_binding_needs_adaptive,
    )
    .unseen("whether the prefix changed shows only beside the earlier request"),
    rule(
        "A13",
        "thinking-of-the-same-model",
        "thinking of another model is dropped in silence",
        "platform.claude.com/docs/en/build-with-claude/preserved-thinking",
        check_nothing,
    )
    .unseen("nothing is refused, and blocks do not name their model")
    .unchecked(),
    rule(
        "A14a",
        "cache-breakpoints",
        "at most four blocks carry cache_control",
        "\"A maximum of 4 blocks with cache_control may be provided\": tghamm/Anthropic.SDK#50, griffinmartin/opencode-claude-auth#121",
        cache::cache_breakpoints,
    ),
    rule(
        "A14b",
        "cache-on-cacheable",
        "cache_control stands on no thinking, no empty text and no system message with clear_at",
        "anthropic 2.8.0 types/beta; platform.claude.com/docs/en/build-with-claude/prompt-caching",
        cache::cache_on_cacheable,
    ),
    rule(
        "A14c",
        "cache-ttl-order",
        "breakpoints with the longer ttl come first",
        "\"a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block\": headroomlabs-ai/headroom#2939, cnighswonger/claude-code-cache-fix#44",
        cache::cache_ttl_order,
    ),
    rule(
        "A15a",
        "id-alphabet",
        "ids of tool_use are of letters, digits, `_` and `-`",
        "litellm 1.106.2: `^[a-zA-Z0-9_-]+$`",
        pairing::id_alphabet,
    ),
    rule(
        "A15b",
        "input-object",
        "the input of a tool_use is an object",
        "litellm 1.106.2; anthropic 2.8.0 types/beta/beta_tool_use_block_param.py",
        shape::input_object,
    ),
    rule(
        "A16a",
        "tools-declared",
        "a history with tool_use or tool_result comes with `tools`",
        "Bedrock Converse: litellm 1.106.2",
        pairing::tools_declared,
    )
    .strict()
    .unseen("only where a whole body is given"),
    rule(
        "A16b",
        "tool-reference-declared",
        "a tool_reference names one of `tools`",
        "pydantic-ai 2.66.0 models/anthropic",
        pairing::tool_reference_declared,
    )
    .unseen("only where the body has `tools`"),
    rule(
        "A16c",
        "not-all-deferred",
        "at least one of `tools` is not deferred",
        "pydantic-ai 2.66.0 models/anthropic",
        pairing::not_all_deferred,
    ),
    rule(
        "A17",
        "system-mid-conversation",
        "a system message follows a user's and is last or followed by the assistant's",
        "litellm 1.106.2 mid_conversation_system.py",
        turn::system_mid_conversation,
    )
    .unseen("which models take the role at all"),
    rule(
        "A18a",
        "thinking-budget",
        "`thinking.budget_tokens` is at least 1024 and below `max_tokens`",
        "anthropic 2.8.0 types/beta/beta_thinking_config_enabled_param.py",
        thinking::thinking_budget,
    ),
    rule(
        "A18b",
        "no-forced-tool-with-thinking",
        "`tool_choice` forces no tool while thinking is enabled",
        "platform.claude.com/docs/en/build-with-claude/extended-thinking",
        thinking::no_forced_tool_with_thinking,
    ),
    rule(
        "A19a",
        "compaction-alone",
        "`compaction` stands without context_management, stop_sequences, output format and forced tools",
        "platform.claude.com/docs/en/build-with-claude/compaction",
        compaction::compaction_alone,
    ),
    rule(
        "A19b",
        "compaction-content",
        "a compaction block holds text or null, not an empty string",
        "anthropic 2.8.0 types/beta/beta_compaction_block_param.py",
        compaction::compaction_content,
    )
    .unseen("whether the block is as the API wrote it"),
    rule(
        "A19c",
        "compaction-loop-closed",
        "a request with `compaction` does not end in an open tool_use",
        "platform.claude.com/docs/en/build-with-claude/compaction",
        compaction::compaction_loop_closed,
    ),
    rule(
        "A20",
        "message-count",
        "there are at most 100,000 messages",
        "anthropic 2.8.0 types/beta/message_create_params.py",
        turn::message_count,
    )
    .unseen("whether the prompt fits the window: `compactctl inspect` counts"),
];

fn check_nothing(_: &CheckedRequest, _: &mut RuleFindings) {}

fn role(message: &Value) -> &str {
    text_member(message, "role").unwrap_or_default()
}

fn block_type(block: &Value) -> &str {
    text_member(block, "type").unwrap_or_default()
}

fn content_blocks(message: &Value) -> &[Value] {
    list_member(message, "content")
}

/// Blocks of one type.
fn blocks_of_type<'a>(message: &'a Value, wanted: &'static str) -> impl Iterator<Item = &'a Value> {
    content_blocks(message)
        .iter()
        .filter(move |block| block_type(block) == wanted)
}

fn tool_use_ids(message: &Value) -> impl Iterator<Item = &str> {
    blocks_of_type(message, "tool_use").filter_map(|block| text_member(block, "id"))
}

fn result_ids(message: &Value) -> impl Iterator<Item = &str> {
    blocks_of_type(message, "tool_result").filter_map(|block| text_member(block, "tool_use_id"))
}

fn is_thinking(block: &Value) -> bool {
    matches!(block_type(block), "thinking" | "redacted_thinking")
}

fn thinking_type(request: &CheckedRequest) -> Option<&str> {
    text_member(request.field("thinking")?, "type")
}

/// Calls `visit` with every block of every message and its path.
fn each_block(request: &CheckedRequest, mut visit: impl FnMut(usize, String, &Value)) {
    for (i, message) in request.entries().iter().enumerate() {
        for (j, block) in content_blocks(message).iter().enumerate() {
            visit(i, format!("messages.{i}.content.{j}"), block);
        }
    }
}

fn list_elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn forces_tool(request: &CheckedRequest) -> bool {
    let choice = request
        .field("tool_choice")
        .and_then(|choice| text_member(choice, "type"));
    matches!(choice, Some("any" | "tool"))
}
