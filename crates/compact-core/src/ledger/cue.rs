//! Words that tell what a sentence does: rule, revise, decide, leave open, complain.
//!
//! Cues, not understanding: short lists of plain English words that weigh a quotation. A sentence
//! without a cue is still quoted when a name in it is needed.

use std::sync::LazyLock;

use regex::Regex;

// The patterns are constants covered by a test: a pattern that does not compile matches nothing.
fn pattern(words: &str) -> Option<Regex> {
    Regex::new(&format!(r"(?i-u)\b(?:{words})\b")).ok()
}

macro_rules! cues {
    ($($(#[$doc:meta])* $name:ident: $words:expr;)*) => {$(
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| pattern($words));
    )*};
}

cues! {
    RULE: r"never|always|must|mustn'?t|don'?t|do not|only|prefer|avoid|ensure|make sure|require[sd]?|forbidden|not allowed|cannot|can'?t|from now on|at most|at least|no more than|shall|should(?:n'?t)?|without|under no|no longer|keep|stick to|actually|instead|forget|limit|budget|deadline|remember";
    REVISION: r"actually|instead|forget|no longer|scrap|change of plan|changed my mind|on second thought|rather than|ignore (?:what|my|the)|disregard|drop the|replaces?|supersedes?|not anymore|any ?more|update:|correction|from now on";
    DECISION: r"decided?|decision|chose|choose|going with|go with|opt(?:ed|ing)? for|instead of|rather than|because|root cause|the (?:fix|cause|problem|issue|reason|bug) (?:is|was)|turns out|trade-?off|conclu(?:de|sion)|confirmed|found (?:that|the)|so (?:I|we)(?:'ll| will)|the plan is|works? because|fails? because";
    OPEN: r"todo|next steps?|remaining|remains|still (?:need|have|to|missing|fails?|failing)|follow[- ]up|not yet|pending|blocked|waiting (?:for|on)|left to do|unresolved|outstanding|need to|in progress|running in (?:the )?background";
    COMPLAINT: r"error|failed|failure|panicked|exception|traceback|fatal|fail|cannot|denied|not found|undefined|unexpected|mismatch|invalid|conflict|refused|timed? ?out";
    EXIT: r"exit(?:ed)?(?: with)?[ _-]?(?:code|status)?[:= ]+(?:code |status )?-?[1-9]\d*";
    DEFINITION: r"(?:fn|def|func|function|class|struct|enum|trait|interface|type|impl|const|module)[ \t]+(?:\([ -(*-~]{0,60}\)[ \t]*)?([A-Za-z_][A-Za-z0-9_]{2,60})";
}

fn says(cue: &Option<Regex>, text: &str) -> bool {
    cue.as_ref().is_some_and(|r| r.is_match(text))
}

/// A sentence that rules what may be done.
pub(crate) fn rules(sentence: &str) -> bool {
    sentence.len() <= 600 && says(&RULE, sentence)
}

/// A sentence that takes something back.
pub(crate) fn revises(sentence: &str) -> bool {
    says(&REVISION, sentence)
}

/// A sentence that decides or gives a cause.
pub(crate) fn decides(sentence: &str) -> bool {
    sentence.len() <= 600 && says(&DECISION, sentence)
}

/// A sentence that names what is left to do.
pub(crate) fn remains(sentence: &str) -> bool {
    sentence.len() <= 600 && says(&OPEN, sentence)
}

/// How far from either end of an answer a failure is looked for.
const EDGE: usize = 300;

/// An answer that says by itself that the call failed.
pub(crate) fn failed(answer: &str) -> bool {
    let head = head(answer, EDGE);
    let first = head
        .trim_start()
        .get(..9)
        .unwrap_or("")
        .to_ascii_lowercase();
    first.starts_with("error")
        || first.starts_with("traceback")
        || first.starts_with("fatal")
        || says(&EXIT, head)
        || says(&EXIT, tail(answer, EDGE))
}

/// The line of a failed answer that says why: the first that complains, else the last.
pub(crate) fn complaint(answer: &str) -> &str {
    let lines = || answer.lines().map(str::trim).filter(|l| l.len() >= 8);
    lines()
        .take(2000)
        .find(|l| says(&COMPLAINT, l) && !says(&EXIT, l))
        .or_else(|| lines().next_back())
        .unwrap_or("")
}

/// The newest names that a change defines.
pub(crate) fn definitions(text: &str, most: usize) -> Vec<Box<str>> {
    let Some(pattern) = DEFINITION.as_ref() else {
        return Vec::new();
    };
    let mut names: Vec<Box<str>> = Vec::new();
    for found in pattern.captures_iter(text).filter_map(|c| c.get(1)) {
        names.retain(|n| **n != *found.as_str());
        names.push(found.as_str().into());
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
