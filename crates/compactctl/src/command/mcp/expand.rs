//! The tool `expand`: the entry behind a pointer, in pages and without secrets: a model reads it.

use compact::recall::{AnswerStyle, QUOTE_NOTE, ShownPartner, fence_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::TextPage;
use super::tool::{self, ToolOutput};
use crate::app::App;
use crate::args::{ExpandArgs, GlobalArgs};
use crate::command::expand;
use crate::failure::Failure;
use crate::report::text::one_line;

/// Which entry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpandToolInput {
    /// RECEIPT#NUMBER, such as 3f9a1c22abcd#17; RECEIPT#17..19 for several in a row
    pointer: String,
    /// The session that the pointer is of, where it is not your own: its id or a receipt
    #[serde(default)]
    #[schemars(with = "String")]
    session: Option<String>,
    /// Only the lines that match this pattern (a regular expression), with their numbers
    #[serde(default)]
    #[schemars(with = "String")]
    grep: Option<String>,
    /// Only these lines, such as 120..160 or 120..
    #[serde(default)]
    #[schemars(with = "String")]
    lines: Option<String>,
    /// So many entries before and after as well
    #[serde(default)]
    around: u64,
    /// Give the JSON of one entry as it stood in the transcript, not its text
    #[serde(default)]
    raw: bool,
    /// How many characters to skip: next_offset of the answer before
    #[serde(default)]
    offset: u64,
}

const STYLE: AnswerStyle = AnswerStyle {
    quote: |text| format!("{}\n", text.trim_end_matches('\n')),
    ask_rest: |pointer, line| format!("expand {pointer} with lines {line}.."),
};

/// The entries.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExpandToolOutput {
    /// What the text is
    note: &'static str,
    /// Where it comes from
    pointer: String,
    /// In which session
    session_id: String,
    /// Who said it
    role: String,
    /// Which entry of how many, when it was said, how long it is
    heading: String,
    /// False where secrets were redacted, now or when it was archived
    exact: bool,
    /// The other half of an exchange, shortened: the call of a result, or the result of a call
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BesideText")]
    beside: Option<BesideText>,
    /// The text.
    #[serde(flatten)]
    page: TextPage,
}

/// The other half of an exchange.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BesideText {
    /// call or result
    is: &'static str,
    /// Its number in the session
    number: u64,
    /// Its beginning
    text: String,
}

impl tool::ToolInput for ExpandToolInput {
    const NAME: &'static str = "expand";
    const ABOUT: &'static str = include_str!("../../../templates/mcp/expand.md");
    const AT_HAND: bool = true;
    type ToolOutput = ExpandToolOutput;

    fn run_command(self, app: &App, global: &GlobalArgs) -> Result<ExpandToolOutput, Failure> {
        let is_part = self.grep.is_some() || self.lines.is_some();
        let args = ExpandArgs {
            pointer: vec![self.pointer.clone()],
            grep: self.grep,
            lines: self.lines,
            around: self.around,
            // It is cut into pages here.
            all: true,
            unredacted: false,
            raw: self.raw,
            output: None,
        };
        let session = self.session.as_deref().or(global.session.as_deref());
        let found = expand::find_entries(&args, app, session)?;
        let Some(first) = found.entries.first() else {
            return Err(Failure::usage(
                format!("no line of {} matches", one_line(&self.pointer, 80)),
                "try another pattern, or `recall`",
            ));
        };
        let (whole, exact) = match found.entries.len() {
            1 if self.raw => {
                let source = String::from_utf8_lossy(&first.restored.source);
                (source.into_owned(), first.restored.exact)
            }
            1 if is_part => (first.selected.text.clone(), first.exact),
            1 => (first.text.clone(), first.exact),
            // Beside others, each has its own heading.
            _ => (found.render(&STYLE), found.entries.iter().all(|e| e.exact)),
        };
        let is_first_page = self.offset == 0 && !self.raw;
        Ok(ExpandToolOutput {
            note: QUOTE_NOTE,
            pointer: tool::shorten_name(&first.restored.pointer.to_string()),
            session_id: tool::shorten_name(&first.restored.session_id),
            role: first.restored.role.to_string(),
            heading: first.heading(),
            exact,
            beside: first
                .partner
                .as_ref()
                .filter(|_| is_first_page)
                .map(BesideText::new),
            page: TextPage::starting_at(&whole, self.offset)?,
        })
    }
}

impl BesideText {
    fn new(partner: &ShownPartner) -> BesideText {
        BesideText {
            is: if partner.is_call { "call" } else { "result" },
            number: partner.ordinal,
            text: partner.selected.text.clone(),
        }
    }
}

impl ToolOutput for ExpandToolOutput {
    fn text(&self) -> String {
        let session = tool::quote_name(&self.session_id);
        let beside = |is: &str| match self.beside.as_ref().filter(|beside| beside.is == is) {
            Some(beside) => format!("{is} #{}:\n{}", beside.number, fence_text(&beside.text)),
            None => String::new(),
        };
        let call = beside("call");
        let label = if call.is_empty() { "" } else { "result:\n" };
        format!(
            "{}, session {session}, {}\n{call}{label}{}{}",
            self.heading,
            self.note,
            self.page.quoted(),
            beside("result"),
        )
    }
}
