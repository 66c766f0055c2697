//! The tool `expand`: the entry behind a pointer, in pages and without secrets: a model reads it.

use std::borrow::Cow;

use compact_core::redact::{Boundary, Counts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::Page;
use super::tool::{self, QUOTED, Reply};
use crate::args::{Expand, Global};
use crate::command::expand;
use crate::failure::Failure;
use crate::report::text::one_line;
use crate::world::World;

/// Which entry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
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
pub struct Whole {
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
    page: Page,
}

/// What the command tells programs.
#[derive(Deserialize)]
struct Found {
    pointer: String,
    session_id: String,
    role: String,
    exact: bool,
    text: String,
    source: String,
}

impl tool::Ask for Ask {
    const NAME: &'static str = "expand";
    const ABOUT: &'static str = include_str!("../../../templates/mcp/expand.md");
    const AT_HAND: bool = true;
    type Reply = Whole;

    fn answer(self, world: &World, _: &Global) -> Result<Whole, Failure> {
        let args = Expand {
            pointer: vec![self.pointer],
            raw: self.raw,
            output: None,
        };
        let found: Found = tool::read(expand::run(&args, world)?.json)?;
        let redactor = world.redactor(Boundary::Summary);
        let whole = match self.raw {
            true => redactor.redact_json(&found.source, &mut Counts::new()),
            false => redactor.redact(&found.text, &mut Counts::new()),
        };
        Ok(Whole {
            note: QUOTED,
            pointer: tool::name(&found.pointer),
            session_id: tool::name(&found.session_id),
            role: found.role,
            exact: found.exact && matches!(whole, Cow::Borrowed(_)),
            page: Page::of(&whole, self.offset)?,
        })
    }
}

impl Reply for Whole {
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
