//! What was said, as pieces of the story: the user's messages whole, the model's replies in whole sentences.
//!
//! A message that was said word for word before adds nothing, and neither does a reply that only announces what the
//! next call shows. Sentences that decide, find a cause or report what is finished are worth more than others, and
//! the last reply before the user speaks again more than what was said on the way.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::finish::FinishedWork;
use super::layout::{USER_LABEL, ends_sentence};
use super::piece::{HeadForm, Piece, PieceForm, PieceHead, PieceTable};
use super::revoke::RevokedRules;
use super::select::ShownLevel;
use super::template::{SectionTopic, StyleTemplate, SummarySize};
use crate::cue_list::{PhraseList, WordList, cue_file};
use crate::ledger::{
    Fact, Ledger, Voice, clip, is_completion, is_decision, is_unspaced, scan_names,
};
use crate::speech::mark_pasted;

static ANNOUNCEMENT: PhraseList = PhraseList::at_start(cue_file!("announcement"));

/// Whether a sentence only says what its writer does next, and leads to it.
pub(super) fn is_announcement(sentence: &str) -> bool {
    sentence.ends_with(':') || ANNOUNCEMENT.is_in(sentence)
}

/// What sentences of the model are worth: in the last reply before the user speaks, and in others.
const CLOSING: f64 = 0.30;
const PASSING: f64 = 0.22;
/// What they are worth in a summary of what was said before the session: it is condensed already.
const DIGEST: f64 = 0.3;
/// How many times that, where a sentence decides or gives a cause, or says what is finished.
const CONCLUDES: f64 = 1.7;
const FINISHES: f64 = 1.3;
/// Of that, for lines of code, and for what only announces a call.
const CODE: f64 = 0.4;
const ANNOUNCES: f64 = 0.1;
/// And for what is said between two calls and names nothing.
const IDLE: f64 = 0.3;

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

/// Adds the model's sentences. What stands whole elsewhere in the view is left out by `is_shown`.
pub(super) fn push_replies(
    table: &mut PieceTable,
    ledger: &Ledger,
    template: &StyleTemplate,
    is_shown: &dyn Fn(&str) -> bool,
) {
    let mut seen: HashSet<String, foldhash::fast::FixedState> = HashSet::default();
    let replies = &ledger.facts.replies;
    for (nth, fact) in replies.iter().enumerate().rev() {
        if is_shown(&fact.text) {
            continue;
        }
        let next = replies.get(nth + 1).map_or(u32::MAX, |next| next.ordinal);
        let answered = closes_turn(ledger, fact.ordinal, next);
        let is_digest = ledger.facts.digests.contains(&fact.ordinal);
        let is_report = fact.voice == Voice::Tool;
        let worth = match (is_digest, answered) {
            _ if is_report => PASSING,
            (true, _) => DIGEST,
            (false, true) => CLOSING,
            (false, false) => PASSING,
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
            if !seen.insert(passage.text.to_lowercase()) {
                continue;
            }
            table.push(Piece {
                head,
                ordinal: fact.ordinal,
                place,
                worth: worth * passage.factor(answered || is_digest || is_report),
                text: passage.text,
                tells: 1.0,
                shows: ShownLevel::InContext,
                about: None,
                form: PieceForm::Text,
            });
        }
    }
}

/// Whether the user speaks between a reply and the next one, or nobody does.
fn closes_turn(ledger: &Ledger, ordinal: u32, next: u32) -> bool {
    let requests = &ledger.facts.requests;
    let at = requests.partition_point(|f| f.ordinal <= ordinal);
    next == u32::MAX || requests.get(at).is_some_and(|f| f.ordinal < next)
}

/// A passage of a reply that makes sense by itself.
struct ReplyPassage {
    text: String,
    kind: PassageForm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PassageForm {
    Prose,
    Code,
}

impl ReplyPassage {
    /// How much more or less it is worth than others; what is said on the way to a reply and names nothing is idle.
    fn factor(&self, closes: bool) -> f64 {
        let sentences = || split_running(&self.text).into_iter();
        if self.kind == PassageForm::Code {
            CODE
        } else if sentences().any(is_decision) {
            CONCLUDES
        } else if sentences().all(is_announcement) {
            ANNOUNCES
        } else if sentences().any(is_completion) {
            FINISHES
        } else if !closes && is_idle(&self.text) {
            IDLE
        } else {
            1.0
        }
    }
}

/// Words of a sentence that may say something without a name or a number in it.
const TELLING_WORDS: usize = 16;

/// Whether a text is only a few words that name and count nothing.
fn is_idle(text: &str) -> bool {
    let mut names = text.chars().any(char::is_numeric);
    scan_names(text, &mut |_, _, _| names = true);
    // A script without blanks has about two characters to a word.
    let wide = text.chars().filter(|c| is_unspaced(*c)).count() / 2;
    !names && text.split_whitespace().count() + wide < TELLING_WORDS
}

/// Characters below which what follows is told together with a passage, and the most that so come together.
const SHORT: usize = 60;
const LONG: usize = 240;

/// Sentences of running text and items of lists; short ones, and a line that leads to what follows, stand with
/// what comes next.
fn passages(text: &str) -> Vec<ReplyPassage> {
    let mut out: Vec<ReplyPassage> = Vec::new();
    let mut fenced = false;
    let mut leading: Option<String> = None;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if line.chars().filter(|c| c.is_alphanumeric()).count() < 2 {
            continue;
        }
        if fenced {
            add_passage(&mut out, line, PassageForm::Code, PassageTie::Line);
            continue;
        }
        let plain = line.replace("**", "");
        let plain = strip_bullet(plain.trim_start_matches(['#', '>', ' ']));
        if leads(line, plain) {
            let above = leading.take().map(|above| format!("{above} – "));
            let plain = plain.trim_end_matches(':');
            leading = Some(format!("{}{plain}", above.unwrap_or_default()));
            continue;
        }
        for (sentence, nth) in split_running(plain).into_iter().zip(0..) {
            match leading.take() {
                Some(lead) if !ANNOUNCEMENT.is_in(&lead) => {
                    let text = format!("{lead}: {sentence}");
                    add_passage(&mut out, &text, PassageForm::Prose, PassageTie::New);
                }
                _ if nth > 0 => {
                    add_passage(&mut out, sentence, PassageForm::Prose, PassageTie::Sentence)
                }
                _ => add_passage(&mut out, sentence, PassageForm::Prose, PassageTie::Line),
            }
        }
    }
    out
}

/// How a passage hangs on the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassageTie {
    /// A new matter begins.
    New,
    /// It stands on a line of its own.
    Line,
    /// It goes on in the same paragraph.
    Sentence,
}

/// The most characters of a passage whose last sentence speaks of what stands before it.
const LONGEST: usize = 400;

/// Adds a sentence or line to the passage before it: in a paragraph while that is short, or where it speaks of what was
/// said before and would say nothing by itself; else where one of the two is only a few words.
fn add_passage(out: &mut Vec<ReplyPassage>, text: &str, kind: PassageForm, tie: PassageTie) {
    let length = text.chars().count();
    if let Some(above) = out.last_mut() {
        let known = above.text.chars().count();
        let both = known + length;
        let is_short = both <= LONG && (known < SHORT || length < SHORT / 2);
        let joins = match tie {
            PassageTie::New => false,
            PassageTie::Line => is_short,
            PassageTie::Sentence => is_short || both <= LONGEST && refers_back(text),
        };
        if joins && above.kind == kind {
            above.text.push_str(match ends_sentence(&above.text) {
                true => " ",
                false => "; ",
            });
            above.text.push_str(text);
            return;
        }
    }
    out.push(ReplyPassage {
        text: text.to_owned(),
        kind,
    });
}

static BACK_REFERENCE: WordList = WordList::new(cue_file!("back_reference"));

/// Words of a sentence among which one that speaks of what was said before leaves it without a subject.
const OPENING_WORDS: usize = 5;

/// Whether a sentence speaks of what was said before: "I will treat that as a category of its own."
fn refers_back(sentence: &str) -> bool {
    let words = sentence.split_whitespace().take(OPENING_WORDS);
    let bare = |word: &str| {
        word.trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase()
    };
    words.map(bare).any(|word| BACK_REFERENCE.has(&word))
}

/// Characters up to which a line that ends in a colon is told together with what it announces, and up to which a line
/// in bold letters is a heading.
const LEADING: usize = 120;
const TITLE: usize = 60;

/// Whether a line is a heading, or announces what follows.
fn leads(line: &str, plain: &str) -> bool {
    let is_title = line.starts_with("**") && line.ends_with("**") && plain.len() < TITLE;
    line.starts_with('#') || is_title || (plain.ends_with(':') && plain.len() < LEADING)
}

fn strip_bullet(line: &str) -> &str {
    let line = line
        .strip_prefix("- ")
        .or_else(|| line.strip_prefix("* "))
        .or_else(|| line.strip_prefix("• "))
        .unwrap_or(line);
    line.trim()
}

/// A line up to so many bytes stays one sentence.
const SHORT_LINE: usize = 100;

/// Sentences of running text: they end at a full stop, and the next begins with a capital, a number or a mark.
fn split_running(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = line;
    while rest.len() > SHORT_LINE {
        let end = rest
            .match_indices(['.', '!', '?'])
            .map(|(at, mark)| at + mark.len())
            .find(|end| {
                let tail = rest.get(*end..).unwrap_or("");
                let next = tail.trim_start().chars().next();
                tail.starts_with(' ')
                    && *end >= 24
                    && next.is_some_and(|c| !c.is_lowercase() && !c.is_whitespace())
            });
        let Some((sentence, tail)) = end.and_then(|end| rest.split_at_checked(end)) else {
            break;
        };
        out.push(sentence.trim());
        rest = tail.trim_start();
    }
    if !rest.is_empty() {
        out.push(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(reply: &str) -> Vec<String> {
        passages(reply).into_iter().map(|p| p.text).collect()
    }

    #[test]
    fn a_sentence_stands_with_the_one_that_it_speaks_of() {
        let finding = "The column last_login is missing for 8.3 % of the customers, all of them on the partner plan.";
        let reply = format!(
            "{finding} I will treat that as a category of its own instead of imputing a date."
        );
        assert_eq!(texts(&reply), [reply.as_str()]);
        let next = "The model of September is saved below /models and scored in the nightly job of the platform team.";
        assert_eq!(texts(&format!("{finding} {next}")), [finding, next]);
    }

    #[test]
    fn what_counts_or_says_much_is_not_idle() {
        assert!(is_idle("Good, now the next one."));
        assert!(!is_idle("The large scale comes not before 2030."));
        assert!(!is_idle(
            "接下来要迁移存储过程，我打算改写成函数，因为语法差别太大，而且测试也需要重新编写。"
        ));
    }
}
