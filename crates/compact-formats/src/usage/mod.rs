//! Everyone's usage numbers as one [`Usage`], with what they measure.
//!
//! Providers disagree on two things: whether a prompt's count includes what a cache held (here it
//! never does), and whether a number is of one request, of a turn or of a session ([`Semantics`]).
//! Shapes are tables of JSON pointers; a counter that is missing, null or no number is zero, and a
//! value without any counter is no report. Nothing here decides what the numbers mean for a window.

#[cfg(test)]
mod tests;

use compact_core::usage::{Semantics, Usage};
use serde_json::Value;
use serde_json::value::RawValue;

/// The source of a usage object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UsageSource {
    /// A chat completion or the last chunk of its stream; servers that speak like OpenAI do too.
    OpenAiChat,
    /// A response, or the event that ends its stream.
    OpenAiResponses,
    /// A message, or an event of its stream.
    Anthropic,
    /// A `generateContent` response or chunk.
    Gemini,
    /// The result message of the Claude Agent SDK: the sum over the calls of one query.
    AgentResult,
    /// An assistant message of the Claude Agent SDK: one call.
    AgentMessage,
    /// `model_usage` of the Claude Agent SDK: everything since the session began, by model.
    AgentModels,
    /// A `token_count` event of Codex, or its `info`.
    Codex,
    /// The `tokens` of a Gemini CLI message.
    GeminiCli,
    /// The `tokens` of an opencode message.
    OpenCode,
    /// The `usage` of a pi message.
    Pi,
}

/// A report with what it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedUsage {
    /// The reported counters.
    pub usage: Usage,
    /// What the counters measure.
    pub semantics: Semantics,
}

impl ReportedUsage {
    /// This report brought up to date by a later event of the same stream.
    pub fn updated(self, later: ReportedUsage) -> ReportedUsage {
        ReportedUsage {
            usage: self.usage.updated(later.usage),
            ..later
        }
    }
}

/// Whether the count of a prompt includes what a cache read and wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CacheCounting {
    Within,
    Beside,
}

/// The places of the counters in a usage object.
struct UsageShape {
    cached: CacheCounting,
    input: &'static [&'static str],
    output: &'static [&'static str],
    read: &'static [&'static str],
    write: &'static [&'static str],
}

const CHAT: UsageShape = UsageShape {
    cached: CacheCounting::Within,
    input: &["/prompt_tokens"],
    output: &["/completion_tokens"],
    read: &[
        "/prompt_tokens_details/cached_tokens",
        "/prompt_cache_hit_tokens",
    ],
    write: &["/prompt_tokens_details/cache_write_tokens"],
};

const RESPONSES: UsageShape = UsageShape {
    cached: CacheCounting::Within,
    input: &["/input_tokens"],
    output: &["/output_tokens"],
    read: &["/input_tokens_details/cached_tokens"],
    write: &["/input_tokens_details/cache_write_tokens"],
};

const ANTHROPIC: UsageShape = UsageShape {
    cached: CacheCounting::Beside,
    input: &["/input_tokens"],
    output: &["/output_tokens"],
    read: &["/cache_read_input_tokens"],
    write: &["/cache_creation_input_tokens"],
};

const GEMINI: UsageShape = UsageShape {
    cached: CacheCounting::Within,
    input: &["/promptTokenCount", "/toolUsePromptTokenCount"],
    output: &["/candidatesTokenCount", "/thoughtsTokenCount"],
    read: &["/cachedContentTokenCount"],
    write: &[],
};

const AGENT_MODEL: UsageShape = UsageShape {
    cached: CacheCounting::Beside,
    input: &["/inputTokens"],
    output: &["/outputTokens"],
    read: &["/cacheReadInputTokens"],
    write: &["/cacheCreationInputTokens"],
};

const CODEX: UsageShape = UsageShape {
    cached: CacheCounting::Within,
    input: &["/input_tokens"],
    output: &["/output_tokens"],
    read: &["/cached_input_tokens"],
    write: &[],
};

const GEMINI_CLI: UsageShape = UsageShape {
    cached: CacheCounting::Within,
    input: &["/input"],
    output: &["/output", "/thoughts"],
    read: &["/cached"],
    write: &[],
};

const OPENCODE: UsageShape = UsageShape {
    cached: CacheCounting::Beside,
    input: &["/input"],
    output: &["/output", "/reasoning"],
    read: &["/cache/read"],
    write: &["/cache/write"],
};

const PI: UsageShape = UsageShape {
    cached: CacheCounting::Beside,
    input: &["/input"],
    output: &["/output"],
    read: &["/cacheRead"],
    write: &["/cacheWrite"],
};

impl UsageSource {
    /// All sources of usage reports.
    pub const ALL: [UsageSource; 11] = [
        UsageSource::OpenAiChat,
        UsageSource::OpenAiResponses,
        UsageSource::Anthropic,
        UsageSource::Gemini,
        UsageSource::AgentResult,
        UsageSource::AgentMessage,
        UsageSource::AgentModels,
        UsageSource::Codex,
        UsageSource::GeminiCli,
        UsageSource::OpenCode,
        UsageSource::Pi,
    ];

    /// Returns what the numbers of this source measure.
    pub fn semantics(self) -> Semantics {
        match self {
            UsageSource::AgentResult => Semantics::PerTurnDelta,
            UsageSource::AgentModels => Semantics::Cumulative,
            _ => Semantics::LastRequest,
        }
    }

    /// Returns the report in a response, an event of a stream, or a usage object itself. Nothing when there
    /// is none, or when it says that no request was made.
    pub fn read(self, value: &Value) -> Option<ReportedUsage> {
        let usage = match self {
            UsageSource::AgentModels => sum_models(value)?,
            UsageSource::Anthropic | UsageSource::AgentMessage => self
                .shape()
                .read_counters(last_iteration(self.find_object(value)?))?,
            _ => self.shape().read_counters(self.find_object(value)?)?,
        };
        // The result of a command that asked no model is a report of nothing; so says a delta.
        let asked = self.semantics() != Semantics::LastRequest || usage != Usage::default();
        asked.then_some(ReportedUsage {
            usage,
            semantics: self.semantics(),
        })
    }

    /// Returns the usage of a request that a transcript tells of.
    pub(crate) fn read_entry_usage(self, raw: &RawValue) -> Option<Usage> {
        let value: Value = serde_json::from_str(raw.get()).ok()?;
        let usage = self.read(&value)?.usage;
        (usage.prompt_tokens().0 > 0).then_some(usage)
    }

    fn shape(self) -> &'static UsageShape {
        match self {
            UsageSource::OpenAiChat => &CHAT,
            UsageSource::OpenAiResponses => &RESPONSES,
            UsageSource::Anthropic | UsageSource::AgentResult | UsageSource::AgentMessage => {
                &ANTHROPIC
            }
            UsageSource::Gemini => &GEMINI,
            UsageSource::AgentModels => &AGENT_MODEL,
            UsageSource::Codex => &CODEX,
            UsageSource::GeminiCli => &GEMINI_CLI,
            UsageSource::OpenCode => &OPENCODE,
            UsageSource::Pi => &PI,
        }
    }

    /// Returns the usage object, wherever a response or an event carries it.
    fn find_object(self, value: &Value) -> Option<&Value> {
        let places: &[&str] = match self {
            UsageSource::OpenAiResponses => &["/response/usage", "/usage"],
            UsageSource::Anthropic | UsageSource::AgentMessage => &["/message/usage", "/usage"],
            UsageSource::Gemini => &["/usageMetadata"],
            UsageSource::Codex => &[
                "/payload/info/last_token_usage",
                "/info/last_token_usage",
                "/last_token_usage",
            ],
            _ => &["/usage"],
        };
        let found = places.iter().find_map(|place| find_member(value, place));
        found.or(Some(value)).filter(|object| object.is_object())
    }
}

impl UsageShape {
    fn read_counters(&self, object: &Value) -> Option<Usage> {
        let all = [self.input, self.output, self.read, self.write];
        if !all
            .iter()
            .flat_map(|paths| paths.iter())
            .any(|path| find_member(object, path).is_some())
        {
            return None;
        }
        let [input, output, read, write] = all.map(|paths| sum_counters(object, paths));
        // A cache cannot have held more of a prompt than the prompt.
        let (read, write) = match self.cached {
            CacheCounting::Beside => (read, write),
            CacheCounting::Within => (read.min(input), write.min(input.saturating_sub(read))),
        };
        let cached = match self.cached {
            CacheCounting::Beside => 0,
            CacheCounting::Within => read.saturating_add(write),
        };
        Some(Usage {
            input_tokens: input.saturating_sub(cached),
            output_tokens: output,
            cache_read_tokens: read,
            cache_creation_tokens: write,
        })
    }
}

/// Finds the value that the names of a path lead to; none of them needs the escapes of a JSON pointer.
fn find_member<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut names = path.split('/').skip(1);
    names.try_fold(value, |value, name| value.get(name))
}

fn sum_counters(object: &Value, paths: &[&str]) -> u64 {
    let counters = paths.iter().filter_map(|path| find_member(object, path));
    counters.map(counter_value).fold(0, u64::saturating_add)
}

/// Returns a counter; what is missing, null, negative or no number counts as zero.
fn counter_value(value: &Value) -> u64 {
    let whole = value.as_u64();
    whole.unwrap_or_else(|| value.as_f64().map_or(0, |n| n.max(0.0) as u64))
}

/// Returns the last sampling pass of a message, which is the size of the context; a compaction among the
/// passes is not.
fn last_iteration(usage: &Value) -> &Value {
    let passes = usage.get("iterations").and_then(Value::as_array);
    let is_message = |pass: &&Value| pass.get("type").is_some_and(|kind| kind == "message");
    let last = passes.and_then(|passes| passes.iter().rev().find(is_message));
    last.unwrap_or(usage)
}

/// Returns all models of a session together.
fn sum_models(value: &Value) -> Option<Usage> {
    let found = ["/modelUsage", "/model_usage"];
    let found = found.iter().find_map(|place| find_member(value, place));
    let models = found.unwrap_or(value).as_object()?;
    let usages = models
        .values()
        .filter_map(|model| AGENT_MODEL.read_counters(model));
    usages.reduce(Usage::plus)
}
