//! Prompts as files: `templates/prompts/NAME.txt`, a `version N` line and the text, examples
//! included, with `{tokens}` for the limit. A change of text is a new version, which receipts name.
//! The text follows the conversation: small models forget, or repeat, what stands before it.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use crate::summarize::Style;
use crate::token::Tokens;

/// What every request says beside its own text: the conversation is data.
const RULES: &str = include_str!("../../templates/prompts/rules.txt");

/// What opens a request that is appended to a conversation.
const INTERRUPTION: &str = include_str!("../../templates/prompts/interruption.txt");

/// An answer of this size holds a sentence.
const SENTENCE: Tokens = Tokens(96);

/// One prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptTemplate {
    /// Its name.
    pub name: &'static str,
    /// Its version; 0 for a text that is not ours.
    pub version: u32,
    text: Cow<'static, str>,
}

macro_rules! prompts {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../templates/prompts/", $name, ".txt")))),*]
    };
}

/// The styles in their order, then the prompts that no style names.
pub(super) static TEMPLATES: LazyLock<Vec<PromptTemplate>> = LazyLock::new(|| {
    prompts!["task_state" "brief" "decision_log" "step_ledger" "requirements_ledger" "code_delta"
        "extractive_brief" "checkpoint" "continuation" "sentence" "gist"]
    .map(|(name, source)| parse_prompt(name, source))
    .into()
});

fn parse_prompt(name: &'static str, source: &'static str) -> PromptTemplate {
    let (head, text) = source.split_once('\n').unwrap_or(("", source));
    let version = head.strip_prefix("version ").and_then(|n| n.parse().ok());
    PromptTemplate {
        name,
        version: version.unwrap_or(0),
        text: text.into(),
    }
}

/// The template of a style.
pub(super) fn for_style(style: Style) -> &'static PromptTemplate {
    static NONE: LazyLock<PromptTemplate> = LazyLock::new(PromptTemplate::default);
    TEMPLATES.get(style as usize).unwrap_or(&NONE)
}

impl PromptTemplate {
    /// The prompt of this name.
    pub fn by_name(name: &str) -> Option<&'static PromptTemplate> {
        TEMPLATES.iter().find(|t| t.name == name)
    }

    /// Instructions of the user's own.
    pub fn from_user(text: &str) -> PromptTemplate {
        PromptTemplate {
            name: "policy.summary_prompt",
            version: 0,
            text: text.to_owned().into(),
        }
    }

    /// The template for an answer of at most so much: no style fits into next to nothing.
    pub fn for_limit(style: Style, limit: Tokens) -> &'static PromptTemplate {
        let small = match style {
            Style::Brief => "gist",
            _ => "sentence",
        };
        match PromptTemplate::by_name(small).filter(|_| limit <= SENTENCE) {
            Some(small) => small,
            None => for_style(style),
        }
    }

    /// What a model is told before it reads.
    pub fn system() -> &'static str {
        RULES.trim_end()
    }

    /// What it is to do with what it has read.
    pub fn instructions(&self, limit: Tokens) -> String {
        self.text_for(limit).trim_end().to_owned()
    }

    /// The instruction that is appended to a conversation, for the model that is in it.
    pub(super) fn appended(&self, limit: Tokens) -> String {
        format!("{INTERRUPTION}\n{}", self.instructions(limit))
    }

    fn text_for(&self, limit: Tokens) -> String {
        self.text.replace("{tokens}", &limit.to_string())
    }
}

impl fmt::Display for PromptTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            0 => f.write_str(self.name),
            version => write!(f, "{} v{version}", self.name),
        }
    }
}
