//! What was said, as pieces of the story: the user's messages whole, the model's replies in whole sentences.
//!
//! A message that was said word for word before adds nothing, and neither does a reply that only announces what the
//! next call shows. Sentences that decide, find a cause or report what is finished are worth more than others, and
//! the last reply before the user speaks again more than what was said on the way.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::ViewWords;
use super::finish::FinishedWork;
use super::layout::USER_LABEL;
use super::piece::{HeadForm, Piece, PieceForm, PieceHead, PieceTable};
use super::revoke::RevokedRules;
use super::root::RootDirectory;
use super::select::ShownLevel;
use super::template::{SectionTopic, StyleTemplate, SummarySize};
use crate::cue_list::{PhraseList, cue_file};
use crate::ledger::{Fact, Ledger, Voice, clip};
use crate::reply::passages;
use crate::speech::mark_pasted;

/// What sentences of the model are worth: in the last reply before the user speaks, in one that the user takes up in so few
/// words that they say nothing without it, and in others.
const CLOSING: f64 = 0.30;
const TAKEN_UP: f64 = 0.40;
const PASSING: f64 = 0.22;
/// What they are worth in a summary of what was said before the session: it is condensed already.
const DIGEST: f64 = 0.3;

/// A message as the story tells it.
pub(super) struct QuotedMessage<'l> {
    pub fact: &'l Fact,
    /// Its words without those that no longer hold.
    pub text: String,
    /// Whether what it asks for was finished since.
    pub is_finished: bool,
    /// How often it was sent, word for word.
    pub times: u32,
    /// Whether a part of it is not the user's own.
    pub has_pasted: bool,
}

/// The user's messages, each text once, where it was said last.
pub(super) fn user_messages<'l>(
    ledger: &'l Ledger,
    revoked: &RevokedRules<'_>,
) -> Vec<QuotedMessage<'l>> {
    let finished = FinishedWork::from_facts(&ledger.facts);
    let requests = &ledger.facts.requests;
    let folded = |fact: &Fact| clip(&fact.text, usize::MAX - 1).to_lowercase();
    let mut times: HashMap<String, u32, FixedState> = HashMap::default();
    for fact in requests {
        *times.entry(folded(fact)).or_default() += 1;
    }
    let newest_first = requests.iter().rev().filter_map(|fact| {
        let times = times.remove(&folded(fact))?;
        let text = revoked.strip_revoked(fact.ordinal, &fact.text);
        let is_old_news = text != *fact.text && recurs_later(requests, fact.ordinal, &text);
        let is_shown = !is_old_news && text.chars().any(char::is_alphanumeric);
        let marked = mark_pasted(&text);
        is_shown.then(|| QuotedMessage {
            fact,
            has_pasted: marked.contains("[pasted: "),
            text: collapse_repeats(&marked),
            is_finished: finished.answers(fact),
            times,
        })
    });
    let mut said: Vec<QuotedMessage<'l>> = newest_first.collect();
    said.reverse();
    said
}

/// Whether what is left of a message stands in a later one.
fn recurs_later(requests: &[Fact], ordinal: u32, text: &str) -> bool {
    let rest = text.trim().trim_end_matches(':');
    let later = requests.iter().rev();
    let mut later = later.take_while(|fact| fact.ordinal > ordinal);
    later.any(|fact| fact.text.contains(rest))
}

/// A sentence that is said several times in a row stands once, with how often it was said.
fn collapse_repeats(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut sentences = text.split_inclusive(". ").peekable();
    while let Some(sentence) = sentences.next() {
        let mut times = 1;
        while sentences
            .next_if(|next| next.trim_end() == sentence.trim_end())
            .is_some()
        {
            times += 1;
        }
        out.push_str(sentence);
        if times > 1 {
            out.push_str(&format!("(×{times}) "));
        }
    }
    out
}

/// Adds a message of the user of at most so many characters; returns its piece. Where a summary is little more than the
/// user's words, they stand among the rules.
pub(super) fn push_message(
    table: &mut PieceTable,
    said: &QuotedMessage<'_>,
    most: usize,
    size: SummarySize,
) -> usize {
    let text = shorten_message(&said.text, most);
    let ordinal = said.fact.ordinal;
    let is_own = said.fact.voice == Voice::User && !said.has_pasted;
    let (head, text) = match size {
        SummarySize::Small if is_own => table.open_statement(SectionTopic::Rules, ordinal, &text),
        _ => {
            let label = match said.fact.voice {
                // What opens like the user's own words must be that to its end.
                Voice::User if said.has_pasted => "user, partly pasted: ",
                Voice::User => USER_LABEL,
                _ => "beside a tool's answer: ",
            };
            let head = PieceHead {
                topic: SectionTopic::Story,
                ordinal,
                label: label.to_owned(),
                form: HeadForm::Running,
            };
            (table.open(head), text.as_str())
        }
    };
    let mut text = text.to_owned();
    if said.is_finished {
        text.push_str(" (done since)");
    }
    table.push(Piece {
        head,
        ordinal,
        place: 0,
        text,
        worth: 1.0,
        tells: 1.0,
        shows: ShownLevel::InContext,
        about: None,
        form: PieceForm::Text,
    });
    table.pieces.len() - 1
}

/// The head of a message that is too long, at the end of a line or word, with how much there is of it.
fn shorten_message(text: &str, most: usize) -> String {
    let total = text.chars().count();
    if total <= most + most / 8 + 40 {
        return text.to_owned();
    }
    let end = text
        .char_indices()
        .nth(most)
        .map_or(text.len(), |(at, _)| at);
    let head = text.get(..end).unwrap_or(text);
    let at = head.rfind(['\n', ' ']).unwrap_or(head.len());
    let head = head.get(..at).unwrap_or(head).trim_end();
    let left = total - head.chars().count();
    format!("{head} […{left} more characters]")
}

/// Adds the model's sentences, but for those that stand elsewhere in the view.
pub(super) fn push_replies(
    table: &mut PieceTable,
    ledger: &Ledger,
    template: &StyleTemplate,
    root: &RootDirectory<'_>,
    words: &ViewWords,
) {
    let mut seen: HashSet<String, foldhash::fast::FixedState> = HashSet::default();
    let replies = &ledger.facts.replies;
    for (nth, fact) in replies.iter().enumerate().rev() {
        if words.has_reply(&fact.text) {
            continue;
        }
        let next = replies.get(nth + 1).map_or(u32::MAX, |next| next.ordinal);
        let answer = turn_end(ledger, fact.ordinal, next);
        let answered = answer != TurnEnd::Open;
        let is_digest = ledger.facts.digests.contains(&fact.ordinal);
        let is_report = fact.voice == Voice::Tool;
        let worth = match answer {
            _ if is_report => PASSING,
            _ if is_digest => DIGEST,
            TurnEnd::TakenUp => TAKEN_UP,
            TurnEnd::Closed => CLOSING,
            TurnEnd::Open => PASSING,
        } * template.weight(Voice::Model);
        let label = match is_digest {
            _ if is_report => "another agent's report: ",
            true => "agent's summary of what came before: ",
            false => "agent: ",
        };
        let head = table.open(PieceHead {
            topic: SectionTopic::Story,
            ordinal: fact.ordinal,
            label: label.to_owned(),
            form: HeadForm::Running,
        });
        for (passage, place) in passages(&fact.text).into_iter().zip(0..) {
            if words.has_passage(&passage.text) || !seen.insert(passage.text.to_lowercase()) {
                continue;
            }
            table.push(Piece {
                head,
                ordinal: fact.ordinal,
                place,
                worth: worth * passage.factor(answered || is_digest || is_report),
                text: root.shorten(&passage.text).into_owned(),
                tells: 1.0,
                shows: ShownLevel::InContext,
                about: None,
                form: PieceForm::Text,
            });
        }
    }
}

/// How the turn of a reply goes on behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnEnd {
    /// The model speaks again.
    Open,
    /// The user speaks, or nobody does.
    Closed,
    /// The user agrees or chooses in a few words.
    TakenUp,
}

static AGREEMENT: PhraseList = PhraseList::at_start(cue_file!("agreement"));

/// Words of an answer that may say nothing without what it answers: "the second one, please".
const SHORT_ANSWER: usize = 24;

/// Whether a message takes up what the model offered.
fn takes_up(text: &str) -> bool {
    AGREEMENT.is_in(text) && text.split_whitespace().count() <= SHORT_ANSWER
}

/// What stands between a reply and the next one.
fn turn_end(ledger: &Ledger, ordinal: u32, next: u32) -> TurnEnd {
    let requests = &ledger.facts.requests;
    let at = requests.partition_point(|f| f.ordinal <= ordinal);
    let answer = requests.get(at).filter(|fact| fact.ordinal < next);
    match answer {
        Some(fact) if takes_up(&fact.text) => TurnEnd::TakenUp,
        Some(_) => TurnEnd::Closed,
        None if next == u32::MAX => TurnEnd::Closed,
        None => TurnEnd::Open,
    }
}
