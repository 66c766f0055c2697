//! The tool `remember`: what a session would know now, in pages.
//!
//! The summary comes first and what is pinned last, since a running agent has that anyway.

use compact_core::redact::{Boundary, Counts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::Page;
use super::tool::{self, QUOTED, Reply};
use crate::args::{Global, Remember};
use crate::command::remember;
use crate::failure::Failure;
use crate::report::text::one_line;
use crate::world::World;

/// How many sessions are named to one who did not say which.
const NAMED: usize = 10;

/// Whose memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
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
pub struct Memory {
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
    page: Page,
}

/// What the command tells programs.
#[derive(Deserialize)]
struct Told {
    session_id: String,
    receipt_id: String,
    summary_version: u64,
    created_at: String,
    summary: String,
    recent: Vec<Message>,
    pinned: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    text: String,
}

impl tool::Ask for Ask {
    const NAME: &'static str = "remember";
    const ABOUT: &'static str = include_str!("../../../templates/mcp/remember.md");
    type Reply = Memory;

    fn answer(self, world: &World, global: &Global) -> Result<Memory, Failure> {
        let name = match self.session.or_else(|| global.session.clone()) {
            Some(name) => name,
            None => only_session(world)?,
        };
        let told: Told = tool::read(remember::run(&Remember { name }, world, global)?.json)?;
        let redactor = world.redactor(Boundary::Summary);
        let text = told.text();
        let page = Page::of(&redactor.redact(&text, &mut Counts::new()), self.offset)?;
        Ok(Memory {
            note: QUOTED,
            session_id: tool::name(&told.session_id),
            receipt_id: told.receipt_id,
            summary_version: told.summary_version,
            created_at: told.created_at,
            page,
        })
    }
}

/// The session on record if there is one; else an error with the newest to choose from.
fn only_session(world: &World) -> Result<String, Failure> {
    let store = world.store_to_read()?;
    let mut sessions = world.block_on(async { Ok(store.catalog.sessions().await?) })?;
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
                format!("{} ({at})", session.session_id)
            });
            let names: Vec<String> = names.collect();
            let message = format!("{} sessions are archived", many.len());
            let help = format!("say which as session; the newest: {}", names.join(", "));
            Err(Failure::usage(message, &help))
        }
    }
}

impl Told {
    fn text(&self) -> String {
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

impl Reply for Memory {
    fn text(&self) -> String {
        let receipt: String = self.receipt_id.chars().take(12).collect();
        format!(
            "session {}, summary v{}, {}; a line marked [#17] is {receipt}#17 for `expand`\n{}",
            one_line(&self.session_id, 80),
            self.summary_version,
            self.note,
            self.page.quoted()
        )
    }
}
