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

pub use planted::{Fact, Kind, Planted};

use crate::grammar::Grammar;
use crate::random::Random;
use author::Author;
use script::{Script, Written};

/// Thousandths of a byte of text that a token of o200k holds in these sessions, rounded up a little so that a
/// session is never smaller than it was asked to be.
const MILLIBYTES_PER_TOKEN: usize = 3_800;

/// A generated session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The transcript, in its format.
    pub text: String,
    /// What was planted in it.
    pub planted: Planted,
}

/// A coding session of at least so many tokens, as Claude Code JSONL.
pub fn coding(seed: u64, tokens: usize) -> Session {
    let session = coding::write(Author::new(&GRAMMAR, seed), bytes(tokens));
    let place = claude_code::Place {
        cwd: coding::CWD,
        branch: &session.branch,
    };
    let written = claude_code::write(&session.script, &place, Random::new(!seed));
    Session::of(&session.script, written)
}

/// A support chat of at least so many tokens, as the body of an OpenAI chat request.
pub fn support(seed: u64, tokens: usize) -> Session {
    let (script, frame) = support::write(Author::new(&GRAMMAR, seed), bytes(tokens));
    let written = openai_chat::write(&script, &frame, Random::new(!seed));
    Session::of(&script, written)
}

/// A literature review of at least so many tokens, as Codex rollout JSONL.
pub fn research(seed: u64, tokens: usize) -> Session {
    let script = research::write(Author::new(&GRAMMAR, seed), bytes(tokens));
    let written = codex_rollout::write(&script, Random::new(!seed));
    Session::of(&script, written)
}

impl Session {
    fn of(script: &Script, written: Written) -> Session {
        Session {
            planted: script.planted(&written),
            text: written.text,
        }
    }
}

fn bytes(tokens: usize) -> usize {
    tokens * MILLIBYTES_PER_TOKEN / 1000
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    Grammar::new(&[
        include_str!("../../grammar/lexicon.txt"),
        include_str!("../../grammar/facts.txt"),
        include_str!("../../grammar/python.txt"),
        include_str!("../../grammar/terminal.txt"),
        include_str!("../../grammar/coding.txt"),
        include_str!("../../grammar/support.txt"),
        include_str!("../../grammar/research.txt"),
    ])
});
