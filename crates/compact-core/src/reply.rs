//! A model's reply in passages that make sense by themselves: sentences with those that speak of them, items of a list with
//! the line that leads to them.
//!
//! A summary tells the passages that are worth most, and a reply that is cut keeps them.

use crate::cue_list::{PhraseList, WordList, cue_file};
use crate::ledger::{is_completion, is_decision, is_unspaced, scan_names};

static ANNOUNCEMENT: PhraseList = PhraseList::at_start(cue_file!("announcement"));
static DRAWBACK: PhraseList = PhraseList::anywhere(cue_file!("drawback"));

/// Whether a sentence only says what its writer does next, and leads to it.
pub(crate) fn is_announcement(sentence: &str) -> bool {
    sentence.ends_with(':') || ANNOUNCEMENT.is_in(sentence)
}

/// How many times what others are worth a passage is that decides, gives a cause or tells what speaks against something, or
/// says what is finished.
const CONCLUDES: f64 = 1.7;
const FINISHES: f64 = 1.3;
/// Of that, lines of code, and what only announces a call.
const CODE: f64 = 0.4;
const ANNOUNCES: f64 = 0.1;
/// And what is said between two calls and names nothing.
const IDLE: f64 = 0.3;

/// A passage of a reply that makes sense by itself.
pub(crate) struct ReplyPassage {
    /// Its words, without the marks of Markdown.
    pub text: String,
    kind: PassageForm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PassageForm {
    Prose,
    Code,
}

impl ReplyPassage {
    /// How much more or less it is worth than others; what names nothing is idle, unless it answers
    /// the user in more than a few words.
    pub(crate) fn factor(&self, closes: bool) -> f64 {
        let sentences = || split_running(&self.text).into_iter();
        let least = if closes { ANSWER_WORDS } else { TELLING_WORDS };
        if self.kind == PassageForm::Code {
            CODE
        } else if sentences().any(|sentence| is_decision(sentence) || DRAWBACK.is_in(sentence)) {
            CONCLUDES
        } else if sentences().all(is_announcement) {
            ANNOUNCES
        } else if sentences().any(is_completion) {
            FINISHES
        } else if is_idle(&self.text, least) {
            IDLE
        } else {
            1.0
        }
    }

    /// Adds what stands with it.
    fn append_text(&mut self, text: &str) {
        self.text.push_str(match ends_sentence(&self.text) {
            true => " ",
            false => "; ",
        });
        self.text.push_str(text);
    }
}

/// Words of a sentence that may say something without a name or a number in it, and of one that answers the user.
const TELLING_WORDS: usize = 16;
const ANSWER_WORDS: usize = 5;

/// Whether a text is fewer words than these and names and counts nothing.
fn is_idle(text: &str, words: usize) -> bool {
    let mut names = text.chars().any(char::is_numeric);
    scan_names(text, &mut |_, _, _| names = true);
    // A script without blanks has about two characters to a word.
    let wide = text.chars().filter(|c| is_unspaced(*c)).count() / 2;
    !names && text.split_whitespace().count() + wide < words
}

/// Characters below which what follows is told together with a passage, and the most that so come together.
const SHORT: usize = 60;
const LONG: usize = 240;

/// Sentences of running text and items of lists; short ones, and a line that leads to what follows, stand with
/// what comes next.
pub(crate) fn passages(text: &str) -> Vec<ReplyPassage> {
    let mut out: Vec<ReplyPassage> = Vec::new();
    let mut fenced = false;
    let mut leading: Option<String> = None;
    let mut heading: Option<String> = None;
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
        let plain = strip_links(&line.replace("**", ""));
        let plain = strip_bullet(plain.trim_start_matches(['#', '>', ' ']));
        if leads(line, plain) {
            let above = leading.take().map(|above| format!("{above} – "));
            let plain = plain.trim_end_matches(':');
            let lead = format!("{}{plain}", above.unwrap_or_default());
            heading = is_title(line, plain).then(|| lead.clone()).or(heading);
            leading = Some(lead);
            continue;
        }
        if leading.is_none()
            && is_labelled(line)
            && let Some(heading) = &heading
        {
            add_labelled(&mut out, heading, plain);
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

/// A line with its links as what they show: the target follows where it says more.
fn strip_links(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, shown, target, after)) = next_link(rest) {
        out.push_str(before);
        out.push_str(shown);
        let target = target.trim_matches(['[', ']', '<', '>']);
        let name = target.rsplit('/').next().unwrap_or(target);
        if !shown.contains(name) {
            out.push_str(&format!(" ({target})"));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The next link: what stands before it, what it shows, where it leads, and what follows.
fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let joint = text.find("](")?;
    let (head, tail) = text.split_at_checked(joint)?;
    let (before, shown) = head.rsplit_once('[')?;
    // `table[n](x)` is a call.
    let is_link = !before.ends_with(|c: char| c.is_alphanumeric() || "_)]".contains(c));
    let (before, shown) = is_link.then_some((before, shown))?;
    let (target, after) = tail.strip_prefix("](")?.split_once(')')?;
    Some((before, shown, target, after))
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
            above.append_text(text);
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
    is_title(line, plain) || (plain.ends_with(':') && plain.len() < LEADING)
}

/// Whether a line is a heading: marked as one, or all in bold letters.
fn is_title(line: &str, plain: &str) -> bool {
    let is_bold = line.starts_with("**") && line.ends_with("**") && plain.len() < TITLE;
    line.starts_with('#') || is_bold
}

/// Characters of a word or two in bold letters that say what a line is: "**Cons**: …".
const LABEL: usize = 16;

/// Whether a line of a section opens with what it is, and so says nothing without the heading of the section.
fn is_labelled(line: &str) -> bool {
    let rest = strip_bullet(line).strip_prefix("**");
    let label = rest.and_then(|rest| rest.split_once("**"));
    label.is_some_and(|(label, text)| {
        label.len() <= LABEL && (label.ends_with(':') || text.starts_with(':'))
    })
}

/// Adds such a line: behind the heading of its section, or behind the line before it that stands so.
fn add_labelled(out: &mut Vec<ReplyPassage>, heading: &str, plain: &str) {
    let opening = format!("{heading} – ");
    if let Some(above) = out.last_mut()
        && above.text.starts_with(&opening)
        && above.text.len() + plain.len() <= LONGEST
    {
        above.append_text(plain);
        return;
    }
    add_passage(out, &(opening + plain), PassageForm::Prose, PassageTie::New);
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

/// Whether a text ends as a sentence does.
pub(crate) fn ends_sentence(text: &str) -> bool {
    text.trim_end_matches(['*', '`', ')', '"', '\''])
        .ends_with(['.', '!', '?', ':', ';', '…'])
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
    fn lines_with_a_label_stand_behind_the_heading_of_their_section() {
        let reply = "## Polling\n**Pros**: nothing to install on the hosts of customers.\n**Cons**: the board is up to a minute behind, and every client asks.\n\
                     ## Webhooks\n- **Cons**: they need an address that is reachable from outside.";
        assert_eq!(
            texts(reply),
            [
                "Polling: Pros: nothing to install on the hosts of customers.",
                "Polling – Cons: the board is up to a minute behind, and every client asks.",
                "Webhooks: Cons: they need an address that is reachable from outside.",
            ]
        );
    }

    #[test]
    fn a_link_shows_its_words_and_where_it_leads_if_that_says_more() {
        let rows = [
            (
                "See [`PlanRef`]([/repo/internal/planner.go:197]).",
                "See `PlanRef` (/repo/internal/planner.go:197).",
            ),
            (
                "Edited [planner.go](/repo/planner.go) and x[0](1",
                "Edited planner.go and x[0](1",
            ),
            ("[a](b) ](c) [", "a (b) ](c) ["),
            ("arr[i](x) is a call", "arr[i](x) is a call"),
        ];
        for (line, expected) in rows {
            assert_eq!(strip_links(line), expected);
        }
    }

    #[test]
    fn what_counts_or_says_much_is_not_idle() {
        assert!(is_idle("Good, now the next one.", TELLING_WORDS));
        assert!(!is_idle(
            "The large scale comes not before 2030.",
            TELLING_WORDS
        ));
        assert!(!is_idle(
            "接下来要迁移存储过程，我打算改写成函数，因为语法差别太大，而且测试也需要重新编写。",
            TELLING_WORDS
        ));
    }
}
