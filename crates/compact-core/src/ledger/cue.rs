//! Words that tell what a sentence does: rule, revise, postpone, finish, decide, complain.
//!
//! Cues, not understanding: short lists of plain words that weigh a quotation, English ones; `language` has others.
//! An order counts where a clause begins ("don't touch it"), not in a report ("I don't see it"). A
//! sentence without a cue is still quoted when a name in it is needed.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::language::{LanguageCue, text_language};
use super::scan::scan_names;
use crate::cue_list::{PhraseList, WordList, cue_file};

static RULE: PhraseList = PhraseList::anywhere(cue_file!("rule"));
static ORDER: PhraseList = PhraseList::anywhere(cue_file!("order"));
static NO_ORDER: PhraseList = PhraseList::at_start(cue_file!("no_order"));
static SUPPOSITION: PhraseList = PhraseList::anywhere(cue_file!("supposition"));
static RULE_LABEL: PhraseList = PhraseList::anywhere(cue_file!("rule_label"));
static REVISION: PhraseList = PhraseList::anywhere(cue_file!("revision"));
static LIFTING: PhraseList = PhraseList::anywhere(cue_file!("lifting"));
static REPLACEMENT: PhraseList = PhraseList::anywhere(cue_file!("replacement"));
static CHANGE: PhraseList = PhraseList::anywhere(cue_file!("change"));
static PROHIBITION: PhraseList = PhraseList::anywhere(cue_file!("prohibition"));
static RELEASE: PhraseList = PhraseList::anywhere(cue_file!("release"));
static EXCEPTION: PhraseList = PhraseList::anywhere("one exception\nan exception\nexception:\n");
static PERMISSION: PhraseList = PhraseList::at_start(cue_file!("permission"));
static DISPOSAL: PhraseList = PhraseList::at_start(cue_file!("disposal"));
static CONDITION: PhraseList = PhraseList::anywhere(cue_file!("condition"));
static POSTPONEMENT: PhraseList = PhraseList::anywhere(cue_file!("postponement"));
static FAILED_CHECK_LINE: PhraseList = PhraseList::at_start(cue_file!("failed_check_line"));
static FAILURE_COUNTS: WordList = WordList::new(cue_file!("failure_count"));
static FIRM: PhraseList = PhraseList::anywhere(cue_file!("firm"));
static TASK: PhraseList = PhraseList::anywhere(cue_file!("task"));
static THANKS: WordList = WordList::new(cue_file!("thanks"));
static FINISHED: PhraseList = PhraseList::anywhere(cue_file!("finished"));
static UNFINISHED: PhraseList = PhraseList::anywhere(cue_file!("unfinished"));
static CREATION: PhraseList = PhraseList::anywhere(cue_file!("creation"));
static DECISION: PhraseList = PhraseList::anywhere(cue_file!("decision"));
static DEED: PhraseList = PhraseList::at_start(cue_file!("deed"));
static OPEN_WORK: PhraseList = PhraseList::anywhere(cue_file!("open_work"));
static PREFERENCE: PhraseList = PhraseList::anywhere(cue_file!("preference"));
static OUTCOME: PhraseList = PhraseList::anywhere(cue_file!("outcome"));
static ALL_PASS: PhraseList = PhraseList::anywhere(cue_file!("all_pass"));
static UNTESTED: PhraseList = PhraseList::anywhere(cue_file!("untested"));
static REPORT: PhraseList = PhraseList::anywhere(cue_file!("report"));
static DOUBT: PhraseList = PhraseList::anywhere(cue_file!("doubt"));
static QUESTION_OPENER: PhraseList = PhraseList::at_start(cue_file!("question_opener"));
static COMPLAINT: PhraseList = PhraseList::anywhere(cue_file!("complaint"));

static SOFTENERS: WordList = WordList::new(cue_file!("softener"));
static POINTERS: WordList = WordList::new(cue_file!("pointer"));
static AFTER_POINTER: WordList = WordList::new(cue_file!("after_pointer"));
static ORDER_OPENERS: WordList = WordList::new(cue_file!("order_opener"));
static PROGRAM_LINES: WordList = WordList::new(cue_file!("program_line"));
static EXPLANATIONS: WordList = WordList::new(cue_file!("explanation"));
static NEGATIONS: WordList = WordList::new("never\ndon't\ndont\ndo\nno\n");
static MAKING: WordList = WordList::new(cue_file!("making"));

// The two patterns below are constants covered by a test: one that does not compile matches nothing.

/// An exit status that is not zero.
static FAILED_EXIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xi-u) \b exit(?:ed)? (?:\ with)? [\ _-]? (?:code|status)?
          [:=\ ]+ (?:code\ |status\ )?
          -?[1-9]\d* \b",
    )
    .ok()
});

/// A definition in code, up to its name.
static DEFINITION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xi-u) \b
          (?:fn|def|func|function|class|struct|enum|trait|interface|type|impl|const|module) [\ \t]+
          (?: \([\ -(*-~]{0,60}\) [\ \t]* )?   # the receiver of a method
          [A-Za-z_][A-Za-z0-9_]{2,60} \b",
    )
    .ok()
});

fn has_failed_exit(text: &str) -> bool {
    FAILED_EXIT.as_ref().is_some_and(|exit| exit.is_match(text))
}

/// Longer ones are pasted text, not sentences.
const SENTENCE: usize = 600;

/// A sentence that rules what may be done. Questions and pasted messages of programs do not.
pub(crate) fn is_rule(sentence: &str) -> bool {
    sentence.len() <= SENTENCE
        && !sentence.ends_with('?')
        && !is_program_line(sentence)
        && !is_explanation(sentence)
        && !is_single_task(sentence)
        && !is_single_order(sentence)
        && !is_permission(sentence)
        && (RULE.is_in(sentence)
            || REVISION.is_in(sentence)
            || opens_with_order(sentence)
            || rule_label(sentence).is_some())
}

/// Whether a sentence doubts the words beside it, or asks about them: then they are not its writer's orders.
pub(crate) fn is_doubt(sentence: &str) -> bool {
    DOUBT.is_in(sentence)
}

/// Whether a person who says this orders it: it is no question, and repeats nothing that somebody else said. What they
/// said before themselves ("as I said") they say again.
pub(crate) fn is_own_order(sentence: &str) -> bool {
    let is_repeated = |start: usize| {
        let (before, report) = sentence.split_at_checked(start).unwrap_or_default();
        let last = before.trim_end().rsplit(' ').next().unwrap_or("");
        // "Until Dana says so" repeats nothing.
        let waits = report.starts_with("says so") || report.starts_with("said so");
        !waits && !matches!(last, "I" | "i" | "we" | "We")
    };
    // What is told behind an order that takes something back is its reason.
    let order = sentence
        .split_once(", ")
        .map_or(sentence, |(order, _)| order);
    let spoken = match REVISION.is_in(order) {
        true => order,
        false => sentence,
    };
    !QUESTION_OPENER.is_in(sentence) && !REPORT.starts_in(spoken).any(is_repeated)
}

/// A sentence with nothing between its quotation marks: what stands there is somebody else's, or the name of something.
pub(crate) fn without_quotations(sentence: &str) -> Cow<'_, str> {
    if sentence.len() > SENTENCE || !sentence.contains(QUOTES) {
        return Cow::Borrowed(sentence);
    }
    let mut out = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some((open, close)) = find_quotation(rest) {
        out.push_str(rest.get(..open).unwrap_or(""));
        rest = rest.get(close..).unwrap_or("");
    }
    out.push_str(rest);
    Cow::Owned(out)
}

const QUOTES: [char; 9] = ['"', '\'', '“', '„', '«', '‘', '「', '『', '`'];

/// Where the first quotation begins and ends. A mark within a word is an apostrophe.
fn find_quotation(text: &str) -> Option<(usize, usize)> {
    text.match_indices(QUOTES).find_map(|(at, mark)| {
        let before = text.get(..at)?.chars().next_back();
        let inside = at + mark.len();
        let closes: &[char] = match mark {
            "“" | "„" => &['”', '“', '"'],
            "«" => &['»'],
            "‘" => &['’'],
            "「" | "『" => &['」', '』'],
            "'" => &['\''],
            "`" => &['`'],
            _ => &['"'],
        };
        let opens = before.is_none_or(|c| !c.is_alphanumeric());
        let rest = text.get(inside..)?;
        let is_close = |(at, close): &(usize, &str)| {
            let after = rest.get(at + close.len()..).unwrap_or("");
            !after.starts_with(char::is_alphanumeric)
        };
        let (end, close) = rest.match_indices(closes).find(is_close)?;
        opens.then_some((at, inside + end + close.len()))
    })
}

/// Whether a sentence asks for one piece of work on something it names: "make src/a.py export an
/// order only once" is done when it is done, and no rule.
fn is_single_task(sentence: &str) -> bool {
    let opening = head(sentence, 60);
    let names = sentence.split(' ').any(|w| w.contains('/') && w.len() > 5);
    names && TASK.is_in(opening) && !FIRM.is_in(sentence)
}

/// Whether a sentence orders one thing to be done to something that it names: "drop only the table
/// tmp_import" is done when it is done. What holds on a condition, or each time, is a rule.
fn is_single_order(sentence: &str) -> bool {
    let deed = sentence.split_once(": ").map_or(sentence, |(_, deed)| deed);
    let orders = |text| DISPOSAL.is_in(without_softeners(text));
    names_something(sentence)
        && (orders(sentence) || orders(deed))
        && !FIRM.is_in(sentence)
        && !CONDITION.is_in(sentence)
        && !PROHIBITION.is_in(sentence)
}

/// The sentence from its first word that is not merely polite.
fn without_softeners(sentence: &str) -> &str {
    let mut rest = sentence;
    while let Some((word, after)) = rest.split_once(' ')
        && SOFTENERS.has(&word.to_ascii_lowercase())
    {
        rest = after;
    }
    rest
}

/// A sentence that forbids.
pub(crate) fn is_prohibition(sentence: &str) -> bool {
    PROHIBITION.is_in(sentence) || text_language(sentence).shows(LanguageCue::Prohibition, sentence)
}

/// A sentence that says that something is otherwise from here on.
pub(crate) fn is_change(sentence: &str) -> bool {
    CHANGE.is_in(sentence) || REVISION.is_in(sentence)
}

/// A sentence that puts something in the place of what was said before.
pub(crate) fn is_replacement(sentence: &str) -> bool {
    REPLACEMENT.is_in(sentence)
}

/// A sentence that lifts a rule, for everything or only for what it names.
pub(crate) fn is_lifting(sentence: &str) -> bool {
    LIFTING.is_in(sentence)
}

/// A sentence that allows what may have been forbidden.
pub(crate) fn is_release(sentence: &str) -> bool {
    sentence.len() <= SENTENCE
        && !sentence.ends_with('?')
        && (RELEASE.is_in(sentence) || is_permission(sentence))
}

/// A sentence that allows something and binds to nothing: "you can deploy on your own from today on".
pub(crate) fn is_permission(sentence: &str) -> bool {
    PERMISSION.is_in(without_softeners(sentence))
        && !sentence.ends_with('?')
        && !sentence.contains(" only ")
        && !PROHIBITION.is_in(sentence)
        && !FIRM.is_in(sentence)
}

/// A sentence that makes an exception to what was ruled before it.
pub(crate) fn is_exception(sentence: &str) -> bool {
    EXCEPTION.is_in(sentence)
}

/// A sentence whose object stands in the sentence before it: "Don't publish those."
pub(crate) fn points_back(sentence: &str) -> bool {
    let bare = |word: &str| {
        word.trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase()
    };
    let mut words = sentence.split_whitespace().skip(1).peekable();
    while let Some(word) = words.next() {
        let next = words.peek().map(|next| bare(next));
        let ends = word.ends_with([',', '.', ';', ':', '!', ')', '"']);
        let is_object = ends || next.is_none_or(|next| AFTER_POINTER.has(&next));
        if is_object && POINTERS.has(&bare(word)) {
            return true;
        }
    }
    false
}

/// The longest message that may be one of thanks alone, in bytes.
const THANKS_BYTES: usize = 70;

/// A short word of thanks, which asks for nothing: "OK, rename the table" does.
pub(crate) fn is_thanks(message: &str) -> bool {
    let bare = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.to_lowercase()
    };
    message.len() <= THANKS_BYTES
        && message
            .split_whitespace()
            .map(bare)
            .all(|word| word.is_empty() || THANKS.has(&word))
}

/// Whether a clause of the sentence opens with an order.
fn opens_with_order(sentence: &str) -> bool {
    ORDER.starts_in(sentence).any(|start| {
        let (before, order) = sentence.split_at_checked(start).unwrap_or((sentence, ""));
        let before = before.trim_end();
        let last = before.rsplit(' ').next().unwrap_or("").to_ascii_lowercase();
        let opens = before.is_empty()
            || before.ends_with([',', ';', ':', '(', '-', '*', '.', '!'])
            || ORDER_OPENERS.has(&last) && !(goes_on(order) && SUPPOSITION.is_in(before));
        opens && !NO_ORDER.is_in(order)
    })
}

/// Whether words go on with what a sentence supposed before them: "UTC would be consistent and avoid surprises".
fn goes_on(order: &str) -> bool {
    let head = order.split(' ').next().unwrap_or("");
    !NEGATIONS.has(&head.to_ascii_lowercase())
}

/// A line that a program wrote: `Error: should be true`.
fn is_program_line(sentence: &str) -> bool {
    let head = sentence.split([':', ' ']).next().unwrap_or("");
    PROGRAM_LINES.has(&head.to_ascii_lowercase())
}

/// A sentence that says what something leads to, not what somebody must do: "This causes it to always
/// return 0."
fn is_explanation(sentence: &str) -> bool {
    let opening = head(sentence, 16).to_ascii_lowercase();
    let goes_on = EXPLANATIONS.after_opening(&opening);
    goes_on.is_some_and(|rest| rest.starts_with(' ')) && !sentence.contains(" you ")
}

/// What stands before a colon and says that a rule follows: `One condition`, `Important`.
pub(crate) fn rule_label(sentence: &str) -> Option<&str> {
    let (head, rest) = sentence.split_once(": ")?;
    let short = head.len() <= 90 && rest.len() >= 8;
    (short && (RULE_LABEL.is_in(head) || REVISION.is_in(head) || POSTPONEMENT.is_in(head)))
        .then_some(head)
}

/// A heading under which every item is a rule.
pub(crate) fn is_rule_heading(line: &str) -> bool {
    line.len() <= 90 && RULE_LABEL.is_in(line)
}

/// A sentence that puts work off.
pub(crate) fn is_postponement(sentence: &str) -> bool {
    sentence.len() <= SENTENCE && !sentence.ends_with('?') && POSTPONEMENT.is_in(sentence)
}

/// A sentence that says something is finished.
pub(crate) fn is_completion(sentence: &str) -> bool {
    sentence.len() <= 200
        && !sentence.ends_with('?')
        && FINISHED.is_in(sentence)
        && !UNFINISHED.is_in(sentence)
}

/// A call, by its tool or its answer, that brought something into being.
pub(crate) fn is_creation(call: &str, answer: &str) -> bool {
    let call = head(call, 80).to_ascii_lowercase();
    let mut words = call.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| MAKING.has(word)) || CREATION.is_in(answer)
}

/// A sentence that takes something back.
pub(crate) fn is_revision(sentence: &str) -> bool {
    REVISION.is_in(sentence) || text_language(sentence).shows(LanguageCue::Revision, sentence)
}

/// A sentence that decides, gives a cause or tells a deed. "The problem is clear." does none of it.
pub(crate) fn is_decision(sentence: &str) -> bool {
    sentence.len() <= SENTENCE
        && !sentence.ends_with(" is clear.")
        && (DECISION.is_in(sentence) || DEED.is_in(sentence))
}

/// A sentence that names what is left to do. What it announces is done in the next breath.
pub(crate) fn is_open_work(sentence: &str) -> bool {
    let is_left = sentence.trim_end_matches('.').ends_with(" remains");
    sentence.len() <= SENTENCE && !sentence.ends_with(':') && (is_left || OPEN_WORK.is_in(sentence))
}

/// How far from either end of an answer a failure is looked for.
const EDGE: usize = 300;

/// An answer that says by itself that the call failed.
pub(crate) fn is_failure(answer: &str) -> bool {
    let head = head(answer, EDGE);
    let first = head
        .trim_start()
        .get(..9)
        .unwrap_or("")
        .to_ascii_lowercase();
    first.starts_with("error")
        || opens_with_error(head)
        || first.starts_with("traceback")
        || first.starts_with("fatal")
        || head
            .lines()
            .next()
            .is_some_and(|line| line.contains("verification failed"))
        || has_failed_exit(head)
        || has_failed_exit(tail(answer, EDGE))
}

/// How many of the last lines of an answer are looked at for a failure.
const CHECK_LINES: usize = 200;

/// Whether a test, a linter or a compiler prints that something is wrong.
pub(crate) fn reports_failure(answer: &str) -> bool {
    let mut lines = answer.lines().rev().take(CHECK_LINES).map(str::trim_start);
    lines.any(|line| {
        FAILED_CHECK_LINE.is_in(line) || line.contains(": error") || counts_failures(line)
    })
}

/// Whether a line counts failures, and there are some: "2 failed, 10 passed".
fn counts_failures(line: &str) -> bool {
    let mut words = line
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut count = words.next().unwrap_or("");
    words.any(|word| {
        let is_some = count.parse::<u32>().is_ok_and(|count| count > 0);
        count = word;
        is_some && FAILURE_COUNTS.has(&word.to_ascii_lowercase())
    })
}

/// A JSON answer whose first field is an error, and says something.
fn opens_with_error(answer: &str) -> bool {
    let field = answer.trim_start().strip_prefix('{').map(str::trim_start);
    let value = field.and_then(|field| field.strip_prefix("\"error\":"));
    value.is_some_and(|value| {
        let empty = ["null", "false", "\"\"", "0", "[]", "{}"];
        !empty
            .iter()
            .any(|none| value.trim_start().starts_with(none))
    })
}

/// Complaints that are told of one failure, and the lines in which they are looked for.
const COMPLAINTS: usize = 3;
const COMPLAINT_LINES: usize = 2000;

/// The lines of a failed answer that say why: the first that complain and name something, else the first that
/// complains, else the last line.
pub(crate) fn complaint(answer: &str) -> String {
    let lines = || answer.lines().map(str::trim).filter(|l| l.len() >= 8);
    let mut named: Vec<&str> = Vec::new();
    let mut first = None;
    for line in lines().take(COMPLAINT_LINES).filter(|line| complains(line)) {
        first = first.or(Some(line));
        if !named.contains(&line) && !is_code(line) && names_something(line) {
            named.push(line);
        }
        if named.len() == COMPLAINTS {
            break;
        }
    }
    match named.is_empty() {
        false => named.join("; "),
        true => first
            .or_else(|| lines().next_back())
            .unwrap_or("")
            .to_owned(),
    }
}

/// Whether a line says that something is wrong, and not only that a command failed.
pub(crate) fn complains(line: &str) -> bool {
    COMPLAINT.is_in(line) && !has_failed_exit(line)
}

/// How lines begin that say of one test or package that it passed: what passed is counted at the end.
const PASSES: [&str; 8] = ["ok ", "PASS", "pass ", "--- PASS", "=== RUN", "✓", "✔", "√"];

/// Whether a line says that one of many tests passed.
pub(crate) fn reports_pass(line: &str) -> bool {
    let line = line.trim_start();
    PASSES.iter().any(|pass| line.starts_with(pass))
        || (line.starts_with("test ") && line.ends_with("... ok"))
}

/// Whether a line is one of a program, which a listing shows: it does not say what went wrong.
fn is_code(line: &str) -> bool {
    line.ends_with(['{', '}', ';', '(', ','])
}

fn names_something(text: &str) -> bool {
    let mut names = false;
    scan_names(text, &mut |_, _, _| names = true);
    names
}

/// Whether a line says how a command ended, and is none of what it printed.
pub(crate) fn is_outcome(line: &str) -> bool {
    OUTCOME.is_in(line) && !is_program_line(line)
}

/// Whether a line of a check says that something was not looked at.
pub(crate) fn is_untested(line: &str) -> bool {
    line.len() <= SENTENCE && UNTESTED.is_in(line)
}

/// Whether a text says that checks pass.
pub(crate) fn reports_passing(text: &str) -> bool {
    ALL_PASS.is_in(text)
}

/// Whether a rule holds beyond the step at hand, by its own words: it forbids, binds, or says that it is one.
pub(crate) fn is_standing_rule(sentence: &str) -> bool {
    FIRM.is_in(sentence)
        || PROHIBITION.is_in(sentence)
        || PREFERENCE.is_in(sentence)
        || opens_with_order(sentence)
        || rule_label(sentence).is_some()
        || binds_in_language(sentence)
}

/// Whether a sentence in another language than English rules or forbids.
fn binds_in_language(sentence: &str) -> bool {
    let language = text_language(sentence);
    language.shows(LanguageCue::Rule, sentence)
        || language.shows(LanguageCue::Prohibition, sentence)
}

/// The newest names that a change defines.
pub(crate) fn definitions(text: &str, most: usize) -> Vec<Box<str>> {
    let Some(pattern) = DEFINITION.as_ref() else {
        return Vec::new();
    };
    let mut names: Vec<Box<str>> = Vec::new();
    // A search without groups is quicker, and the name is the last word of what it finds.
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = pattern.find_iter(text).map(|found| found.as_str());
    for name in words.filter_map(|words| words.rsplit(|c| !is_part(c)).next()) {
        names.retain(|known| **known != *name);
        names.push(name.into());
    }
    let surplus = names.len().saturating_sub(most);
    names.drain(..surplus);
    names
}

fn head(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len()))
        .rev()
        .find(|i| text.is_char_boundary(*i));
    text.get(..end.unwrap_or(0)).unwrap_or("")
}

fn tail(text: &str, bytes: usize) -> &str {
    let from = (text.len().saturating_sub(bytes)..=text.len()).find(|i| text.is_char_boundary(*i));
    text.get(from.unwrap_or(0)..).unwrap_or("")
}
