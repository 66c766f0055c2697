//! What each provider refuses, as named rules over a request body or a message list.
//!
//! A rule is a line of its provider's table and a function that looks at the JSON as it stands, so
//! this works for histories that no format of this crate has read. Every rule says where it was
//! learnt; rules that a request alone cannot show are listed too, with the reason. Nothing here
//! repairs, counts tokens or asks a server.

mod anthropic;
mod chat;
mod gemini;
mod request;
mod responses;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::convert::write_as_is;
use crate::error::FormatError;
use crate::flag::OWN_MEMBERS;
use crate::{Format, TranscriptScope, detect, parse};
use request::CheckedRequest;

/// A provider whose rules are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI chat completions and the servers that speak it.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
}

impl Provider {
    /// All providers.
    pub const ALL: [Provider; 4] = [
        Provider::OpenAiChat,
        Provider::OpenAiResponses,
        Provider::Anthropic,
        Provider::Gemini,
    ];

    /// Returns the name that `--provider` takes.
    pub fn name(self) -> &'static str {
        match self {
            Provider::OpenAiChat => "openai-chat",
            Provider::OpenAiResponses => "openai-responses",
            Provider::Anthropic => "anthropic",
            Provider::Gemini => "gemini",
        }
    }

    /// Returns all names, for messages to people.
    pub fn names() -> String {
        Self::ALL.map(Provider::name).join(", ")
    }

    /// Returns the format of its bodies.
    pub fn format(self) -> Format {
        match self {
            Provider::OpenAiChat => Format::OpenAiChat,
            Provider::OpenAiResponses => Format::OpenAiResponses,
            Provider::Anthropic => Format::Anthropic,
            Provider::Gemini => Format::Gemini,
        }
    }

    /// Returns the field of a request body that holds the messages.
    fn list_field(self) -> &'static str {
        match self {
            Provider::OpenAiChat | Provider::Anthropic => "messages",
            Provider::OpenAiResponses => "input",
            Provider::Gemini => "contents",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let mut all = Provider::ALL.into_iter();
        all.find(|provider| provider.name() == name)
            .ok_or_else(|| UnknownProvider {
                name: name.to_owned(),
            })
    }
}

/// A name that is no provider's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider `{name}`; one of {}", Provider::names())]
pub struct UnknownProvider {
    name: String,
}

/// The servers that must accept the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strictness {
    /// Only the provider's own servers.
    #[default]
    Vendor,
    /// Also those that speak its protocol and accept less: Mistral, chat templates, Bedrock, Vertex.
    Strict,
}

type RuleCheck = fn(&CheckedRequest, &mut RuleFindings);

/// Something that makes a server refuse a request.
pub struct ProviderRule {
    /// Its short name: `A1`.
    pub id: &'static str,
    /// Its telling name: `tool-use-needs-result`.
    pub name: &'static str,
    /// Whose rule it is.
    pub provider: Provider,
    /// The rule in one sentence.
    pub summary: &'static str,
    /// Where that was learnt.
    pub source: &'static str,
    /// The servers that enforce the rule.
    pub strictness: Strictness,
    /// What of it a request alone does not show.
    pub unseen: Option<&'static str>,
    check: Option<RuleCheck>,
}

impl ProviderRule {
    const fn new(
        provider: Provider,
        id: &'static str,
        name: &'static str,
        summary: &'static str,
        source: &'static str,
        check: RuleCheck,
    ) -> ProviderRule {
        ProviderRule {
            id,
            name,
            provider,
            summary,
            source,
            strictness: Strictness::Vendor,
            unseen: None,
            check: Some(check),
        }
    }

    /// Marks a rule that only stricter servers enforce.
    const fn strict(self) -> ProviderRule {
        ProviderRule {
            strictness: Strictness::Strict,
            ..self
        }
    }

    /// Marks a rule of which a part needs more than the request to be checked.
    const fn unseen(self, why: &'static str) -> ProviderRule {
        ProviderRule {
            unseen: Some(why),
            ..self
        }
    }

    /// Marks a rule that needs more than the request: it is listed and never reported as broken.
    const fn unchecked(self) -> ProviderRule {
        ProviderRule {
            check: None,
            ..self
        }
    }

    /// Returns false for a rule that needs more than the request.
    pub fn is_checked(&self) -> bool {
        self.check.is_some()
    }
}

impl fmt::Debug for ProviderRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.name)
    }
}

impl PartialEq for ProviderRule {
    fn eq(&self, other: &ProviderRule) -> bool {
        self.id == other.id
    }
}

impl Eq for ProviderRule {}

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that is broken.
    pub rule: &'static ProviderRule,
    /// The index of the message or item, unless it is the request as a whole.
    pub entry: Option<usize>,
    /// Where within it and how.
    pub message: String,
}

/// Returns the rules of a provider, in the order of their ids.
pub fn rules(provider: Provider) -> &'static [ProviderRule] {
    match provider {
        Provider::OpenAiChat => chat::RULES,
        Provider::OpenAiResponses => responses::RULES,
        Provider::Anthropic => anthropic::RULES,
        Provider::Gemini => gemini::RULES,
    }
}

/// Returns what a provider would refuse in a request body, a list of messages or one message per line. An
/// agent's own transcript is checked as its calls, results and words would be sent, unmended.
pub fn check(
    provider: Provider,
    strictness: Strictness,
    source: &[u8],
) -> Result<Vec<Violation>, FormatError> {
    let request = match agents_format(source) {
        Some(format) => CheckedRequest::read(provider, &converted(provider, format, source)?)?,
        None => CheckedRequest::read(provider, source)?,
    };
    let mut violations = Vec::new();
    let applicable = rules(provider)
        .iter()
        .filter(|rule| rule.strictness <= strictness);
    for rule in applicable {
        let mut findings = RuleFindings {
            rule,
            found: Vec::new(),
        };
        if let Some(check) = rule.check {
            check(&request, &mut findings);
        }
        violations.append(&mut findings.found);
    }
    // The order of reading: the request first, then entry by entry. The sort keeps ties in place.
    violations.sort_by_key(|violation| violation.entry);
    Ok(violations)
}

/// Returns the format of an agent's own file, which is not what a provider gets.
fn agents_format(source: &[u8]) -> Option<Format> {
    detect(source).ok().filter(|format| !format.is_sent())
}

/// Returns the live context of an agent's transcript, as a body of the provider.
fn converted(provider: Provider, format: Format, source: &[u8]) -> Result<Vec<u8>, FormatError> {
    let parsed = parse(source.to_vec(), Some(format), TranscriptScope::Live)?;
    write_as_is(&parsed.conversation, provider.format())
}

/// Messages that carry what only Compact reads.
fn own_members(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        for own in OWN_MEMBERS
            .iter()
            .filter(|own| message.get(**own).is_some())
        {
            findings.note_entry(
                i,
                format!(
                    "message {i} has a member `{own}`, which is for Compact to read and never sent"
                ),
            );
        }
    }
}

/// Collects what a rule finds.
struct RuleFindings {
    rule: &'static ProviderRule,
    found: Vec<Violation>,
}

impl RuleFindings {
    fn note_entry(&mut self, entry: usize, message: impl Into<String>) {
        self.note(Some(entry), message.into());
    }

    fn note_request(&mut self, message: impl Into<String>) {
        self.note(None, message.into());
    }

    fn note(&mut self, entry: Option<usize>, message: String) {
        self.found.push(Violation {
            rule: self.rule,
            entry,
            message,
        });
    }
}
