//! What a model is asked, and what may pass for its answer.
//!
//! Pure on both sides: entries become requests that fit the model's window, redacted before they
//! leave; answers are checked before anybody relies on them. Who sends them, and over which wire,
//! is the runtime's affair. What a model says is quoted as data in the summary, never trusted with
//! the user's rules, and held to the same proof as our own words.

mod answer;
mod chunk;
mod entry_text;
mod template;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::message::{Block, Entry, Role};
use crate::redact::Redactor;
use crate::summarize::Style;
use crate::token::{Estimator, EstimatorExt, Tokens, Units};

pub(crate) use answer::is_refusal;
pub use answer::{AnswerError, AnswerFinish, SummarizerAnswer, accept_answer};
pub use template::PromptTemplate;

/// What the summary of a compaction is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryContent {
    /// The ledger: the deterministic summary.
    #[default]
    Ledger,
    /// A model's words, then the lines of the ledger that they miss.
    Prose(ModelProse),
    /// One sentence that says to go on.
    Minimal,
    /// Nothing: what leaves the view is only pruned.
    Nothing,
}

/// A model's words about what leaves the view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelProse {
    /// Who wrote them.
    pub author: String,
    /// What it was asked, and which version of that: `task_state v1`.
    pub template: String,
    /// One text for each request, in the order of the conversation.
    pub parts: Vec<String>,
    /// What they may cost beside the summary's own limit, if the view has room for it.
    pub extra: Tokens,
    /// What the model was shown.
    pub coverage: ProseCoverage,
}

/// How much of what leaves the view a model was shown, and its answer accepted. The ledger covers
/// all of it in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProseCoverage {
    /// Requests that were answered.
    pub chunks: u64,
    /// Requests that all of it would have taken.
    pub of_chunks: u64,
    /// Entries shown whole.
    pub entries: u64,
    /// Entries that leave the view.
    pub of_entries: u64,
    /// Tokens shown.
    pub tokens: Tokens,
    /// Tokens that leave the view.
    pub of_tokens: Tokens,
}

/// What is to be summarized.
pub struct SummarySource<'a> {
    /// The entries with their ordinals.
    pub entries: Vec<(u64, &'a Entry)>,
    /// The host's own rendering of them, in the order of the events; `None` to render the entries.
    pub host_rendering: Option<&'a [String]>,
    /// The first request of the user, wherever it stands.
    pub goal: Option<&'a Entry>,
    /// A person's wish for this compaction.
    pub note: Option<&'a str>,
    /// Applied to everything that leaves.
    pub redactor: &'a Redactor,
    /// How texts are counted.
    pub estimator: &'a dyn Estimator,
}

impl<'a> SummarySource<'a> {
    /// Makes a source of entries with their ordinals, without a goal, a wish or a host's rendering.
    pub fn new(
        entries: Vec<(u64, &'a Entry)>,
        redactor: &'a Redactor,
        estimator: &'a dyn Estimator,
    ) -> SummarySource<'a> {
        SummarySource {
            entries,
            host_rendering: None,
            goal: None,
            note: None,
            redactor,
            estimator,
        }
    }
}

/// A request to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryPrompt {
    /// Its instructions.
    pub system: String,
    /// What it is to read.
    pub prompt: String,
    /// What it was told to keep to.
    pub limit: Tokens,
}

/// A stretch of the source that fits one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceChunk {
    text: String,
    pieces: Vec<ChunkPiece>,
    /// Entries that end here.
    pub entries: u64,
    /// What it costs.
    pub cost: Units,
}

/// What a stretch holds of one entry of its source, by the entry's place there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ChunkPiece {
    /// All of it.
    Whole(usize),
    /// This part of the lines that tell it.
    Part(usize, String),
}

/// A message that is to be summarized, redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceMessage {
    /// Its number in the session, as the summary refers to it.
    pub ordinal: u64,
    /// Who speaks.
    pub role: Role,
    /// The tool that it calls first, if it calls one.
    pub tool: Option<String>,
    /// Its words; calls read `name arguments`.
    pub text: String,
}

impl SourceChunk {
    /// All of a source that is not cut, because its model has read it already.
    pub fn whole_source(source: &SummarySource<'_>) -> SourceChunk {
        SourceChunk {
            text: String::new(),
            pieces: Vec::new(),
            entries: source.entries.len() as u64,
            cost: source.estimator.to_units(source.total_tokens()),
        }
    }
}

/// A note that only says who asked carries no wish.
const NO_WISH: &str = "manual";

/// The smallest answer whose request repeats what the user asked for first.
const WITH_GOAL: Tokens = Tokens(100);

/// The longest opening of the user's first request that every chunk repeats, in characters.
const GOAL: usize = 400;

impl SummarySource<'_> {
    /// The source in stretches of at most `most`: nothing is left out, whatever its length.
    pub fn chunks(&self, most: Tokens) -> Vec<SourceChunk> {
        let told = self.texts().map(|text| self.redact_text(&text));
        let most = self.estimator.to_units(most).max(Units(1));
        chunk::cut_chunks(told, most, self.estimator)
    }

    /// The messages of one stretch, for a summarizer that reads messages and not our prompt.
    pub fn messages(&self, chunk: &SourceChunk) -> Vec<SourceMessage> {
        let message = |piece: &ChunkPiece| {
            let (ChunkPiece::Whole(at) | ChunkPiece::Part(at, _)) = piece;
            let told = self.source_message(*at)?;
            let text = match piece {
                ChunkPiece::Part(_, part) => part.clone(),
                ChunkPiece::Whole(_) => self.redact_text(&told.text),
            };
            (!text.is_empty()).then_some(SourceMessage { text, ..told })
        };
        chunk.pieces.iter().filter_map(message).collect()
    }

    /// The message at this place of the source. What a host rendered itself is nobody's turn.
    fn source_message(&self, at: usize) -> Option<SourceMessage> {
        if let Some(sections) = self.host_rendering {
            return Some(SourceMessage {
                ordinal: at as u64,
                role: Role::User,
                tool: None,
                text: sections.get(at)?.clone(),
            });
        }
        let (ordinal, entry) = self.entries.get(at)?;
        let tool = entry.blocks.iter().find_map(|block| match block {
            Block::ToolCall { name, .. } => Some(name.clone()),
            _ => None,
        });
        Some(SourceMessage {
            ordinal: *ordinal,
            role: entry.role,
            tool,
            text: entry_text::words(entry),
        })
    }

    /// The request for one stretch.
    pub fn build_prompt(
        &self,
        chunk: &SourceChunk,
        template: &PromptTemplate,
        limit: Tokens,
    ) -> SummaryPrompt {
        // What takes a sentence needs no more than its conversation.
        let goal = self.goal.filter(|_| limit >= WITH_GOAL).map(|entry| {
            let goal = self.redact_text(&entry.plain_text());
            let opening = crate::ledger::clip(&goal, GOAL);
            format!("The task, as the user put it first: {opening}\n\n")
        });
        SummaryPrompt {
            system: PromptTemplate::system().to_owned(),
            prompt: format!(
                "{}<conversation>\n{}\n</conversation>\n\n{}{}",
                goal.unwrap_or_default(),
                chunk.text.trim_end(),
                template.instructions(limit),
                self.wish()
            ),
            limit,
        }
    }

    /// The instruction that follows a conversation which its own model has just read.
    pub fn build_aligned_prompt(&self, template: &PromptTemplate, limit: Tokens) -> String {
        template.appended(limit) + &self.wish()
    }

    fn wish(&self) -> String {
        let note = self.note.filter(|note| *note != NO_WISH);
        let wish =
            note.map(|note| format!("\nGive particular attention to: {}", self.redact_text(note)));
        wish.unwrap_or_default()
    }

    /// What the whole source costs as it is told.
    pub fn total_tokens(&self) -> Tokens {
        let units = self
            .texts()
            .map(|text| self.estimator.count_units(&text))
            .sum();
        self.estimator.to_tokens(units)
    }

    /// What a model reads, in pieces that stay whole where they can.
    fn texts(&self) -> Box<dyn Iterator<Item = String> + '_> {
        match self.host_rendering {
            Some(sections) => Box::new(sections.iter().map(|text| entry_text::enclosed(text))),
            None => Box::new(
                self.entries
                    .iter()
                    .map(|(ordinal, entry)| entry_text::entry_lines(*ordinal, entry)),
            ),
        }
    }

    fn redact_text(&self, text: &str) -> String {
        let mut counts = crate::redact::RedactionCounts::new();
        self.redactor.redact(text, &mut counts).into_owned()
    }
}

/// The template of a style.
pub fn template(style: Style) -> &'static PromptTemplate {
    template::for_style(style)
}
