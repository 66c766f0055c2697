//! The tool `recall`: hits with their pointers, a page of them.

use compact::recall::{AnswerStyle, QUOTE_NOTE, SearchHit, fence_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::PAGE;
use super::tool::{self, ToolOutput};
use crate::app::App;
use crate::args::{GlobalArgs, RecallArgs};
use crate::command::recall;
use crate::failure::Failure;

/// The most hits of one answer.
const MOST: u32 = 50;
/// The most hits that can be had in pages, which is what the command gives.
const REACH: u32 = 1000;
/// Longer questions are texts.
const LONGEST_QUERY: usize = 2_000;

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecallToolInput {
    /// A question or a few words, names or paths, as they were said; no search syntax
    query: String,
    /// Only this session: its id, the receipt in a summary's header, or . for the session compacted last;
    /// without it, all
    #[serde(default)]
    #[schemars(with = "String")]
    session: Option<String>,
    /// Only entries after this number
    #[serde(default)]
    #[schemars(with = "u64")]
    after: Option<u64>,
    /// The newest hit first, not the best one
    #[serde(default)]
    latest: bool,
    /// The most hits, from 1 to 50
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: u32,
    /// How many hits to skip: next_offset of the answer before
    #[serde(default)]
    offset: u32,
}

fn default_limit() -> u32 {
    8
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RecallToolOutput {
    /// What the snippets are
    note: &'static str,
    /// The best first
    hits: Vec<RecallHit>,
    /// The offset of further hits; absent when there are none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    next_offset: Option<u32>,
    /// Whether one of the hits holds every word
    has_all_words: bool,
    /// Words that nothing archived holds
    unknown_words: Vec<String>,
    /// Archived originals that could not be read and searched
    unreadable: u64,
    /// What is not found, in words.
    #[serde(skip)]
    #[schemars(skip)]
    gaps: String,
}

/// An entry that answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RecallHit {
    /// What `expand` takes to give the entry whole
    pointer: String,
    /// Who said it
    role: String,
    /// In which session
    session_id: String,
    /// How many entries the session has
    session_entries: u64,
    /// When it was archived
    created_at: String,
    /// When it was said
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    said_at: Option<String>,
    /// The match in its surroundings, quoted
    snippet: String,
    /// How many lines the entry has
    lines: u64,
    /// The hit as text.
    #[serde(skip)]
    #[schemars(skip)]
    text: String,
}

const STYLE: AnswerStyle = AnswerStyle {
    quote: fence_text,
    ask_rest: |_, _| String::new(),
};

impl RecallHit {
    fn new(hit: SearchHit) -> RecallHit {
        let session_id = tool::shorten_name(&hit.session_id);
        let session = tool::quote_name(&session_id);
        RecallHit {
            text: format!(
                "{}, session {session}\n{}",
                hit.heading(),
                hit.render_body(&STYLE)
            ),
            pointer: hit.pointer,
            role: hit.role.to_string(),
            session_id,
            session_entries: hit.session_entries,
            created_at: hit.created_at,
            said_at: hit.said_at,
            snippet: hit.snippet,
            lines: hit.lines,
        }
    }

    fn chars(&self) -> usize {
        self.text.chars().count()
    }
}

impl tool::ToolInput for RecallToolInput {
    const NAME: &'static str = "recall";
    const ABOUT: &'static str = include_str!("../../../templates/mcp/recall.md");
    const AT_HAND: bool = true;
    type ToolOutput = RecallToolOutput;

    fn run_command(self, app: &App, global: &GlobalArgs) -> Result<RecallToolOutput, Failure> {
        self.check()?;
        let args = RecallArgs {
            query: vec![self.query],
            after: self.after,
            latest: self.latest,
            // One more tells whether there is more.
            limit: self.offset + self.limit + 1,
            unredacted: false,
        };
        let global = GlobalArgs {
            session: self.session.or_else(|| global.session.clone()),
            ..global.clone()
        };
        let found = recall::find_hits(&args, app, &global)?;
        let (unreadable, answer) = (found.unreadable(), found.answer);
        let (has_all_words, gaps) = (answer.has_all_words(), answer.render_gaps());
        let rest = answer.hits.into_iter().skip(self.offset as usize);
        let rest: Vec<RecallHit> = rest.map(RecallHit::new).collect();
        let found = rest.len();
        let hits = fit_hits(rest, self.limit as usize);
        // A hit that fills a page alone is left out, not asked for again and again.
        let step = hits.len().max(1);
        Ok(RecallToolOutput {
            note: QUOTE_NOTE,
            next_offset: (step < found).then_some(self.offset + step as u32),
            has_all_words,
            unknown_words: answer.unknown_words,
            gaps,
            unreadable,
            hits,
        })
    }
}

/// The first hits, as many as an answer has room for.
fn fit_hits(hits: Vec<RecallHit>, limit: usize) -> Vec<RecallHit> {
    let mut room = PAGE;
    let fits = |hit: &RecallHit| {
        let left = room.checked_sub(hit.chars());
        room = left.unwrap_or(0);
        left.is_some()
    };
    hits.into_iter().take(limit).take_while(fits).collect()
}

impl RecallToolInput {
    fn check(&self) -> Result<(), Failure> {
        // The command takes - for stdin, which is the protocol's here.
        if self.query.trim() == "-" {
            return Err(compact::manager::RuntimeError::EmptyQuery.into());
        }
        if self.query.chars().count() > LONGEST_QUERY {
            let message = format!("recall: a query has at most {LONGEST_QUERY} characters");
            return Err(Failure::usage(message, "ask with the words that matter"));
        }
        if !(1..=MOST).contains(&self.limit) {
            let message = format!("recall: limit {} is not from 1 to {MOST}", self.limit);
            return Err(Failure::usage(message, "pass offset for further hits"));
        }
        if self.offset > REACH - MOST - 1 {
            let message = format!("recall: offset {} reaches too far", self.offset);
            return Err(Failure::usage(
                message,
                "ask with other words, or more of them",
            ));
        }
        Ok(())
    }
}

impl ToolOutput for RecallToolOutput {
    fn text(&self) -> String {
        let mut out = match self.hits.len() {
            0 => String::new(),
            n => format!(
                "{n} hits, {}; `expand` gives the whole behind a pointer\n",
                self.note
            ),
        };
        for hit in &self.hits {
            out.push('\n');
            out.push_str(&hit.text);
        }
        out.push_str(&self.gaps);
        if let Some(next) = self.next_offset {
            out.push_str(&format!("\nmore hits: call again with offset {next}\n"));
        }
        if self.unreadable > 0 {
            let n = self.unreadable;
            out.push_str(&format!(
                "\n{n} archived originals could not be read and searched\n"
            ));
        }
        out
    }
}
