//! The sentences in which providers say that a prompt is too large.

use std::sync::LazyLock;

use compact_core::token::Tokens;
use regex::{Captures, Regex};

use super::Overflow;

/// `#` stands for a number; `<tokens>` is the prompt's, `<limit>` the model's.
const PHRASES: &[&str] = &[
    // Anthropic, and Claude by other routes.
    "prompt is too long(: <tokens> tokens? > <limit> maximum)?",
    "input length and `max_tokens` exceed context limit: <tokens> \\+ # > <limit>",
    // OpenAI and those who speak like it: vLLM, llama-cpp-python, DeepSeek, OpenRouter.
    "maximum context length is <limit> tokens.{0,40}?requested (about )?# tokens \\(<tokens> (in the messages|of text input|in your prompt)",
    "maximum context length is <limit> tokens.{0,60}?<tokens>",
    "maximum context length is <limit>",
    "exceeds the context window of this model",
    "ran out of room in the model's context window",
    "input tokens exceed the configured limit of <limit> tokens.{0,40}?<tokens> tokens",
    "please reduce the length of the messages",
    // vLLM and SGLang.
    "you passed <tokens> input tokens.{0,80}?context length is only <limit> tokens",
    "input \\(<tokens> tokens\\) is longer than the model's context length \\(<limit> tokens\\)",
    "prompt \\(length <tokens>\\) is longer than the maximum model length of <limit>",
    // Gemini and Vertex.
    "input token count \\(?<tokens>\\)? exceeds the maximum number of tokens allowed \\(?<limit>",
    "input token count exceeds the maximum number of tokens allowed \\(?<limit>",
    "input token count is <tokens> but model only supports up to <limit>",
    // llama.cpp, old and new; LM Studio; Ollama.
    "request \\(<tokens> tokens\\) exceeds the available context size \\(<limit> tokens\\)",
    "exceeds the available context size",
    "keep the first <tokens> tokens when context the overflows.{0,80}?context length of only <limit>",
    "tokens to keep from the initial prompt is greater than the context length",
    "input length exceeds the (maximum )?context length",
    "prompt too long; exceeded (max )?context length",
    // Bedrock, xAI, Mistral, Copilot, Kimi, Cohere, text-generation-inference.
    "input is too long for requested model",
    "maximum prompt length is <limit> but the request contains <tokens>",
    "prompt contains <tokens> tokens.{0,60}?too large for model with <limit> maximum context length",
    "prompt token count of <tokens> exceeds the limit of <limit>",
    "exceeded model token limit: <limit> \\(requested: <tokens>\\)",
    "number of tokens in the prompt cannot exceed <limit>.{0,20}?received <tokens>",
    "`inputs` tokens \\+ `max_new_tokens` must be <= <limit>\\. Given: <tokens>",
];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = PHRASES
        .iter()
        .map(|phrase| Regex::new(&build_pattern(phrase)));
    patterns.filter_map(Result::ok).collect()
});

fn build_pattern(phrase: &str) -> String {
    let number = "[0-9][0-9,_]*";
    let named = |name: &str| format!("(?<{name}>{number})");
    let phrase = phrase
        .replace('#', number)
        .replace("<tokens>", &named("tokens"))
        .replace("<limit>", &named("limit"));
    format!("(?is){phrase}")
}

/// The first sentence that says it.
pub(super) fn find_phrase(text: &str) -> Option<Overflow> {
    let found = PATTERNS.iter().find_map(|pattern| pattern.captures(text))?;
    let number = |name: &str| -> Option<Tokens> {
        let digits = |captures: &Captures<'_>| -> Option<String> {
            let text = captures.name(name)?.as_str();
            Some(text.chars().filter(char::is_ascii_digit).collect())
        };
        digits(&found)?.parse().ok().map(Tokens)
    };
    Some(Overflow {
        tokens: number("tokens"),
        limit: number("limit"),
        ..Overflow::SAID
    })
}

#[cfg(test)]
#[test]
fn every_phrase_is_a_pattern() {
    assert_eq!(PATTERNS.len(), PHRASES.len());
}
