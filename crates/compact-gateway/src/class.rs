//! What a request is for. Only the history of an agent or a sub-agent is ever compacted.
//!
//! Agents say it in headers or in fields of their own; where they do not, the words of their own templates
//! tell a request for a summary, and the lack of a history tells a probe. In doubt a request is an agent's.

use compact::format::validate::Provider;
use compact::message::{Block, Conversation, Entry, Role};
use http::HeaderMap;
use http::header::{HeaderName, USER_AGENT};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::header::header_text;
use crate::refusal::AnswerForm;

const CLAUDE_CLASS: HeaderName = HeaderName::from_static("x-claude-code-request-class");
const CODEX_SUBAGENT: HeaderName = HeaderName::from_static("x-openai-subagent");

/// A question beside the work wants an answer of no more than this many tokens.
const PROBE_TOKENS: u64 = 64;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestClass {
    /// The agent's own history.
    Main,
    /// The history of an agent that it started.
    SubAgent,
    /// A question beside the work: a title, a check. Neither a session nor part of one.
    Probe,
    /// The agent asks for a summary of its history.
    Compaction(CompactionKind),
    /// The provider is to fill its cache, and to answer nothing.
    Prewarm,
    /// The provider holds the history; the request has what is new.
    HeldByProvider,
}

/// Whose request for a summary it is, which decides how an answer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionKind {
    /// Claude Code: text with the summary between tags.
    ClaudeCode,
    /// Codex without its provider's help: a message.
    CodexLocal,
    /// Codex, whose provider is to write an item that only it can read.
    CodexRemote,
    /// A client of `/responses/compact`: the window to go on with.
    Endpoint,
    /// opencode: a message. It sends its history as one text, with results cut short.
    OpenCode,
    /// opencode before 1.18: a message. Its history stands before the question.
    OpenCodeInPlace,
    /// Gemini CLI: text with the summary between tags.
    GeminiCli,
}

impl RequestClass {
    /// Returns its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RequestClass::Main => "main",
            RequestClass::SubAgent => "subagent",
            RequestClass::Probe => "probe",
            RequestClass::Compaction(_) => "compaction",
            RequestClass::Prewarm => "prewarm",
            RequestClass::HeldByProvider => "held",
        }
    }
}

/// The members of a body that are not its history.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BodyFacts<'b> {
    /// The model, where the body names it.
    #[serde(borrow)]
    model: Option<&'b RawValue>,
    #[serde(borrow)]
    stream: Option<&'b RawValue>,
    #[serde(borrow)]
    generate: Option<&'b RawValue>,
    #[serde(borrow)]
    max_tokens: Option<&'b RawValue>,
    #[serde(borrow)]
    max_completion_tokens: Option<&'b RawValue>,
    #[serde(borrow)]
    max_output_tokens: Option<&'b RawValue>,
    #[serde(borrow)]
    previous_response_id: Option<&'b RawValue>,
    #[serde(borrow)]
    conversation: Option<&'b RawValue>,
    #[serde(borrow, rename = "cachedContent")]
    cached_content: Option<&'b RawValue>,
    #[serde(borrow)]
    client_metadata: Option<&'b RawValue>,
}

impl<'b> BodyFacts<'b> {
    /// Reads a body; one that is no object has nothing to tell.
    pub(crate) fn read(body: &'b [u8]) -> BodyFacts<'b> {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Returns the model that the body names.
    pub(crate) fn model(&self) -> Option<String> {
        serde_json::from_str(self.model?.get()).ok()
    }

    /// Returns how the answer is wanted; of Gemini, the path says it.
    pub(crate) fn answer_form(&self, target: &str) -> AnswerForm {
        let streams = self.stream.is_some_and(|value| value.get() == "true");
        match streams || target.contains(":streamGenerateContent") {
            true => AnswerForm::Events,
            false => AnswerForm::Whole,
        }
    }

    fn is_held_by_provider(&self) -> bool {
        let held = [
            self.previous_response_id,
            self.conversation,
            self.cached_content,
        ];
        held.iter().flatten().any(|value| value.get() != "null")
    }

    /// Returns whether so little is wanted that it may be no step of the work.
    fn wants_little(&self) -> bool {
        let limits = [
            self.max_tokens,
            self.max_completion_tokens,
            self.max_output_tokens,
        ];
        let limits = limits.iter().flatten();
        limits
            .filter_map(|value| value.get().parse::<u64>().ok())
            .any(|most| most <= PROBE_TOKENS)
    }

    /// Returns whether Codex says of the request that it is a compaction.
    fn is_codex_compaction(&self) -> bool {
        let kind = self.client_metadata.map(|value| value.get().as_bytes());
        kind.is_some_and(|text| {
            // The value is JSON within a JSON string.
            let kinds: [&[u8]; 2] = [
                br#"\"request_kind\":\"compaction\""#,
                br#"\"request_kind\": \"compaction\""#,
            ];
            kinds.iter().any(|kind| memmem::find(text, kind).is_some())
        })
    }
}

/// Finds out what a request is for.
pub(crate) fn classify(
    provider: Provider,
    headers: &HeaderMap,
    facts: &BodyFacts<'_>,
    body: &[u8],
    conversation: &Conversation,
) -> RequestClass {
    if facts.is_held_by_provider() {
        return RequestClass::HeldByProvider;
    }
    if facts.generate.is_some_and(|value| value.get() == "false") {
        return RequestClass::Prewarm;
    }
    if let Some(class) = class_in_headers(headers) {
        return class;
    }
    if let Some(kind) = compaction_kind(provider, headers, facts, body, conversation) {
        return RequestClass::Compaction(kind);
    }
    if facts.wants_little() && asks_beside(conversation) {
        return RequestClass::Probe;
    }
    match header_text(headers, &CODEX_SUBAGENT) {
        Some("memory_consolidation") => RequestClass::Probe,
        Some(_) => RequestClass::SubAgent,
        None => RequestClass::Main,
    }
}

/// Returns whether a request has no more to it than a question beside the work: one message, and no tools. Whatever has a
/// history is an agent's own, however short an answer it wants.
fn asks_beside(conversation: &Conversation) -> bool {
    let opens = |entry: &&Entry| !entry.role.is_instruction() && !entry.meta.continues;
    conversation.tools.is_none() && conversation.entries.iter().filter(opens).count() <= 1
}

fn class_in_headers(headers: &HeaderMap) -> Option<RequestClass> {
    Some(match header_text(headers, &CLAUDE_CLASS)? {
        "main" => RequestClass::Main,
        "subagent" | "workflow" => RequestClass::SubAgent,
        "compaction" => RequestClass::Compaction(CompactionKind::ClaudeCode),
        "auxiliary" | "side_reply" => RequestClass::Probe,
        _ => return None,
    })
}

impl CompactionKind {
    /// Takes the question for a summary out of a history.
    pub(crate) fn drop_question(self, conversation: &mut Conversation) {
        let Some(last) = conversation.entries.last_mut() else {
            return;
        };
        match self {
            // What asks is no message, or all there is.
            CompactionKind::CodexRemote | CompactionKind::Endpoint | CompactionKind::OpenCode => {
                return;
            }
            // It may stand behind the results of tools.
            CompactionKind::ClaudeCode => {
                let asks = |block: &Block| {
                    let text = block.text_parts()[0];
                    CLAUDE_OPENINGS.iter().any(|words| text.starts_with(words))
                };
                let at = last.blocks.iter().position(asks);
                last.blocks.truncate(at.unwrap_or(last.blocks.len()));
            }
            _ => last.blocks.clear(),
        }
        if last.blocks.is_empty() {
            conversation.entries.pop();
        }
    }
}

/// What the last message of a request for a summary opens with.
const CLAUDE_OPENINGS: [&str; 2] = [
    "Your task is to create a detailed summary of the ",
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
];
/// What its instructions say where it asks for one.
const CLAUDE_SYSTEMS: [&str; 3] = [
    "You are Claude Code",
    "Claude Agent SDK",
    "You are a helpful AI assistant tasked with summarizing conversations",
];
const CODEX_WORDS: &str = "CONTEXT CHECKPOINT COMPACTION";
const OPENCODE_OPENING: &str = "Here is the conversation so far:\n\n<conversation>";
const OPENCODE_WORDS: &str = "Provide a detailed prompt for continuing our conversation above";
const GEMINI_WORDS: &str = "<state_snapshot>";

/// Returns whether Claude Code asks, or what is built on it: anybody may use the words of its template.
fn is_claude_code(headers: &HeaderMap, conversation: &Conversation) -> bool {
    let is_named = headers
        .keys()
        .any(|name| name.as_str().starts_with("x-claude-code-"));
    let agent = header_text(headers, &USER_AGENT);
    let mut instructions = conversation.entries.iter();
    is_named
        || agent.is_some_and(|agent| agent.starts_with("claude-cli/"))
        || instructions.any(|entry| {
            let text = entry.plain_text();
            entry.role.is_instruction() && CLAUDE_SYSTEMS.iter().any(|words| text.contains(words))
        })
}

fn compaction_kind(
    provider: Provider,
    headers: &HeaderMap,
    facts: &BodyFacts<'_>,
    body: &[u8],
    conversation: &Conversation,
) -> Option<CompactionKind> {
    let last = conversation.entries.last()?;
    let ends_with = |words: &str| {
        last.role == Role::User
            && memmem::find(last.plain_text().as_bytes(), words.as_bytes()).is_some()
    };
    let opens_with = |words: &&str| {
        let mut blocks = last.blocks.iter().flat_map(|block| block.text_parts());
        last.role == Role::User && blocks.any(|text| text.starts_with(*words))
    };
    if provider == Provider::OpenAiResponses {
        let tail = body
            .get(body.len().saturating_sub(1 << 16)..)
            .unwrap_or(body);
        let trigger: &[u8] = br#""compaction_trigger""#;
        if memmem::find(tail, trigger).is_some() {
            return Some(CompactionKind::CodexRemote);
        }
        if facts.is_codex_compaction() || ends_with(CODEX_WORDS) {
            return Some(CompactionKind::CodexLocal);
        }
    }
    if provider == Provider::Anthropic
        && CLAUDE_OPENINGS.iter().any(opens_with)
        && is_claude_code(headers, conversation)
    {
        return Some(CompactionKind::ClaudeCode);
    }
    if conversation.tools.is_none() && opens_with(&OPENCODE_OPENING) {
        return Some(CompactionKind::OpenCode);
    }
    if ends_with(OPENCODE_WORDS) {
        return Some(CompactionKind::OpenCodeInPlace);
    }
    let instructs = |entry: &&Entry| entry.role.is_instruction();
    let is_gemini = provider == Provider::Gemini
        && conversation.tools.is_none()
        && conversation
            .entries
            .iter()
            .take_while(instructs)
            .any(|entry| {
                memmem::find(entry.plain_text().as_bytes(), GEMINI_WORDS.as_bytes()).is_some()
            });
    is_gemini.then_some(CompactionKind::GeminiCli)
}
