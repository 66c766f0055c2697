//! The tool `expand`: the entry behind a pointer, in pages and without secrets: a model reads it.

use std::borrow::Cow;

use compact::redact::{RedactionBoundary, RedactionCounts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::TextPage;
use super::tool::{self, QUOTE_NOTE, ToolOutput};
use crate::app::App;
use crate::args::{ExpandArgs, GlobalArgs};
use crate::command::expand;
use crate::failure::Failure;
use crate::report::text::one_line;

/// Which entry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpandToolInput {
    /// RECEIPT#NUMBER, such as 3f9a1c22abcd#17
    pointer: String,
    /// Give the entry's JSON as it stood in the transcript, not its text
    #[serde(default)]
    raw: bool,
    /// How many characters to skip: next_offset of the answer before
    #[serde(default)]
    offset: u64,
}

/// The entry.
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
    /// False where secrets were redacted, now or when it was archived
    exact: bool,
    /// The text.
    #[serde(flatten)]
    page: TextPage,
}

/// What the command tells programs.
#[derive(Deserialize)]
struct ExpandedEntry {
    pointer: String,
    session_id: String,
    role: String,
    exact: bool,
    text: String,
    source: String,
}

impl tool::ToolInput for ExpandToolInput {
    const NAME: &'static str = "expand";
    const ABOUT: &'static str = include_str!("../../../templates/mcp/expand.md");
    const AT_HAND: bool = true;
    type ToolOutput = ExpandToolOutput;

    fn run_command(self, app: &App, _: &GlobalArgs) -> Result<ExpandToolOutput, Failure> {
        let args = ExpandArgs {
            pointer: vec![self.pointer],
            raw: self.raw,
            output: None,
        };
        let found: ExpandedEntry = tool::parse_json(expand::run(&args, app)?.json)?;
        let redactor = app.compact().redactor(RedactionBoundary::Summary);
        let whole = match self.raw {
            true => redactor.redact_json(&found.source, &mut RedactionCounts::new()),
            false => redactor.redact(&found.text, &mut RedactionCounts::new()),
        };
        Ok(ExpandToolOutput {
            note: QUOTE_NOTE,
            pointer: tool::shorten_name(&found.pointer),
            session_id: tool::shorten_name(&found.session_id),
            role: found.role,
            exact: found.exact && matches!(whole, Cow::Borrowed(_)),
            page: TextPage::starting_at(&whole, self.offset)?,
        })
    }
}

impl ToolOutput for ExpandToolOutput {
    fn text(&self) -> String {
        let session = one_line(&self.session_id, 80);
        let redacted = match self.exact {
            true => "",
            false => "; secrets were redacted",
        };
        format!(
            "{} ({}, session {session}), {}{redacted}\n{}",
            self.pointer,
            self.role,
            self.note,
            self.page.quoted()
        )
    }
}
