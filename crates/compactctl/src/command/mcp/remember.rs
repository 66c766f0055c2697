//! The tool `remember`: what a session would know now, in pages.
//!
//! The summary comes first and what is pinned last, since a running agent has that anyway.

use compact::recall::QUOTE_NOTE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::TextPage;
use super::tool::{self, ToolOutput};
use crate::app::App;
use crate::args::{GlobalArgs, RememberArgs};
use crate::command::remember;
use crate::failure::Failure;

/// How many sessions are named to one who did not say which.
const NAMED: usize = 10;

/// Whose memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RememberToolInput {
    /// A session's id or a receipt's; without it, the only session that is archived
    #[serde(default)]
    #[schemars(with = "String")]
    session: Option<String>,
    /// How many characters to skip: next_offset of the answer before
    #[serde(default)]
    offset: u64,
}

/// The memory.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RememberToolOutput {
    /// What the text is
    note: &'static str,
    /// Whose it is
    session_id: String,
    /// The compaction that left it; a line marked [#17] has the pointer RECEIPT#17
    receipt_id: String,
    /// Which version of the summary this is
    summary_version: u64,
    /// When that was
    created_at: String,
    /// Summary, latest messages, pinned messages.
    #[serde(flatten)]
    page: TextPage,
}

/// What the command tells programs.
#[derive(Deserialize)]
struct SessionMemory {
    session_id: String,
    receipt_id: String,
    summary_version: u64,
    created_at: String,
    summary: String,
    recent: Vec<MemoryMessage>,
    pinned: Vec<MemoryMessage>,
}

#[derive(Deserialize)]
struct MemoryMessage {
    role: String,
    text: String,
}

impl tool::ToolInput for RememberToolInput {
    const NAME: &'static str = "remember";
    const ABOUT: &'static str = include_str!("../../../templates/mcp/remember.md");
    type ToolOutput = RememberToolOutput;

    fn run_command(self, app: &App, global: &GlobalArgs) -> Result<RememberToolOutput, Failure> {
        let name = match self.session.or_else(|| global.session.clone()) {
            Some(name) => name,
            None => only_session(app)?,
        };
        let told: SessionMemory =
            tool::parse_json(remember::run(&RememberArgs { name }, app, global)?.json)?;
        let page = TextPage::starting_at(&told.render_layers(), self.offset)?;
        Ok(RememberToolOutput {
            note: QUOTE_NOTE,
            session_id: tool::shorten_name(&told.session_id),
            receipt_id: told.receipt_id,
            summary_version: told.summary_version,
            created_at: told.created_at,
            page,
        })
    }
}

/// The session on record if there is one; else an error with the newest to choose from.
fn only_session(app: &App) -> Result<String, Failure> {
    let store = app.compact().store_to_read()?;
    let mut sessions = app.block_on(async { Ok(store.catalog.sessions().await?) })?;
    sessions.retain(|session| session.compactions > 0);
    sessions.sort_by(|a, b| b.last_at.cmp(&a.last_at));
    match sessions.as_slice() {
        [] => Err(Failure::usage(
            "nothing was compacted yet, so there is nothing to remember",
            "the conversation is all that there is",
        )),
        [one] => Ok(one.session_id.clone()),
        many => {
            let names = many.iter().take(NAMED).map(|session| {
                let at = session.last_at.as_deref().unwrap_or_default();
                let receipt = session.last_receipt.as_deref().unwrap_or_default();
                let name = tool::quote_name(&session.session_id);
                format!("{name} ({at}, receipt {receipt})")
            });
            let names: Vec<String> = names.collect();
            let message = format!("{} sessions are archived", many.len());
            let help = format!(
                "say which as session, by its name or its receipt; the newest: {}",
                names.join(", ")
            );
            Err(Failure::usage(message, &help))
        }
    }
}

impl SessionMemory {
    fn render_layers(&self) -> String {
        let mut out = format!("# summary\n\n{}\n", self.summary.trim_end());
        for (title, messages) in [("recent", &self.recent), ("pinned", &self.pinned)] {
            if !messages.is_empty() {
                out.push_str(&format!("\n# {title}\n"));
            }
            for message in messages {
                out.push_str(&format!(
                    "\n## {}\n\n{}\n",
                    message.role,
                    message.text.trim_end()
                ));
            }
        }
        out
    }
}

impl ToolOutput for RememberToolOutput {
    fn text(&self) -> String {
        let receipt: String = self.receipt_id.chars().take(12).collect();
        format!(
            "session {}, summary v{}, {}; a line marked [#17] is {receipt}#17 for `expand`\n{}",
            tool::quote_name(&self.session_id),
            self.summary_version,
            self.note,
            self.page.quoted()
        )
    }
}
