//! Lifelike sessions from a seed and a size, with an answer key.
//!
//! An arc writes a script: who says what, which tools answer what, which facts
//! are planted. A format turns it into bytes. Both are pure: the same seed gives the same bytes on
//! every platform. The texts come from the grammars in `grammar/`; nothing here is a recording.

mod author;
mod claude_code;
mod clock;
mod codex_rollout;
mod coding;
mod openai_chat;
mod planted;
mod project;
mod research;
mod script;
mod support;

use std::sync::LazyLock;

pub use planted::{AnswerKey, PlantedFact, PlantedKind};

use crate::grammar::Grammar;
use crate::random::Random;
use author::Author;
use script::{SessionScript, WrittenScript};

/// Thousandths of a byte of text that a token of o200k holds in these sessions, rounded up a little so that a
/// session is never smaller than it was asked to be.
const MILLIBYTES_PER_TOKEN: usize = 3_800;

/// A generated session with its answer key.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedSession {
    /// The transcript, in its format.
    pub text: String,
    /// What was planted in it.
    pub planted: AnswerKey,
}

/// Returns a coding session of at least so many tokens, as Claude Code JSONL.
pub fn coding_session(seed: u64, tokens: usize) -> GeneratedSession {
    let author = Author::new(&GRAMMAR, seed);
    write_claude_code(&coding::write_script(author, tokens_to_bytes(tokens)), seed)
}

/// Returns a coding session of at least so many tokens whose user says what matters in passing, as Claude
/// Code JSONL; each of their sentences is planted.
pub fn talkative_session(seed: u64, tokens: usize) -> GeneratedSession {
    let author = Author::new(&GRAMMAR, seed);
    write_claude_code(&coding::write_talk(author, tokens_to_bytes(tokens)), seed)
}

fn write_claude_code(session: &coding::CodingSession<'_>, seed: u64) -> GeneratedSession {
    let place = claude_code::WorkLocation {
        cwd: coding::CWD,
        branch: &session.branch,
    };
    let written = claude_code::write_transcript(&session.script, &place, Random::new(!seed));
    GeneratedSession::from_script(&session.script, written)
}

/// Returns a support chat of at least so many tokens, as the body of an OpenAI chat request.
pub fn support_session(seed: u64, tokens: usize) -> GeneratedSession {
    let (script, frame) =
        support::write_script(Author::new(&GRAMMAR, seed), tokens_to_bytes(tokens));
    let written = openai_chat::write_transcript(&script, &frame, Random::new(!seed));
    GeneratedSession::from_script(&script, written)
}

/// Returns a literature review of at least so many tokens, as Codex rollout JSONL.
pub fn research_session(seed: u64, tokens: usize) -> GeneratedSession {
    let script = research::write_script(Author::new(&GRAMMAR, seed), tokens_to_bytes(tokens));
    let written = codex_rollout::write_transcript(&script, Random::new(!seed));
    GeneratedSession::from_script(&script, written)
}

impl GeneratedSession {
    fn from_script(script: &SessionScript, written: WrittenScript) -> GeneratedSession {
        GeneratedSession {
            planted: script.answer_key(&written),
            text: written.text,
        }
    }
}

fn tokens_to_bytes(tokens: usize) -> usize {
    tokens * MILLIBYTES_PER_TOKEN / 1000
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    Grammar::new(&[
        include_str!("../../grammar/lexicon.txt"),
        include_str!("../../grammar/facts.txt"),
        include_str!("../../grammar/python.txt"),
        include_str!("../../grammar/terminal.txt"),
        include_str!("../../grammar/coding.txt"),
        include_str!("../../grammar/statement.txt"),
        include_str!("../../grammar/support.txt"),
        include_str!("../../grammar/research.txt"),
    ])
});
