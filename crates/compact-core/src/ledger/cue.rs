//! Words that tell what a sentence does: rule, revise, postpone, finish, decide, complain.
//!
//! Cues, not understanding: short lists of plain words that weigh a quotation, most of them English.
//! An order counts where a clause begins ("don't touch it"), not in a report ("I don't see it"). A
//! sentence without a cue is still quoted when a name in it is needed.

use std::sync::LazyLock;

use regex::Regex;

use super::scan::scan_names;

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
    RULE: r"never|always|must(?:n'?t)?|shall|should(?:n'?t)?|ought to|ha(?:s|ve) to|only|at most|at least|no (?:more|less|fewer|earlier|later|sooner) than|not allowed|allowed only|forbidden|prohibited|off[- ]limits|may (?:not|only|be)|cannot|under no|from now on|from today|going forward|in future|without|unless|until|require[sd]?|limit(?:ed)? (?:is|to|of)|budget (?:is|of)|deadline|stays?|needs? \d+|whenever|please, \w+|remember (?:that|to)|niemals|immer|darf|muss|nur noch|nicht mehr|ab jetzt|bitte nicht|jamais|toujours|nunca|siempre";
    ORDER: r"(?:never|don'?t|do not|avoid|keep|stick to|prefer|ensure|make sure|be sure|leave|stop|no) \w+";
    LABEL: r"rules?|constraints?|conditions?|requirements?|restrictions?|conventions?|guidelines?|policy|policies|principles?|acceptance criteria|important|attention|note|reminder|remember|mind|keep to|forget|from now on|dos and don'?ts|must(?: not)?|never|always|wichtig|regeln?|bedingung(?:en)?";
    REVISION: r"actually|instead|forget (?:the|what|my|about|that|it)|no longer|scrap|scratch that|never ?mind|chang(?:e|ed|ing) (?:of plan|my mind|the plan)|on second thoughts?|rather than|ignore (?:what|my|the|that)|disregard|drop the|replac(?:es?|ing)|supersed\w+|overr[iu]\w+|not anymore|any ?more|update[sd]?: \w+|correction|(?:old|earlier|previous|former) \w+ (?:\w+ )?(?:is|are|no longer)|is (?:void|obsolete|off the table)|after all|I was wrong|(?:has|have) moved|take (?:that|it) back|new (?:rule|limit|naming|policy|plan)|doch nicht|stattdessen";
    REPLACEMENT: r"instead|forget|scrap|scratch that|chang(?:e|ed|ing) (?:of plan|my mind|the plan)|on second thoughts?|rather than|ignore|disregard|replac(?:es?|ing)|supersed\w+|overr[iu]\w+|correction|is (?:void|obsolete|off the table)|I was wrong|take (?:that|it) back|doch nicht|stattdessen";
    NOW: r"now|changed?|raised|lowered|no longer";
    PROHIBITION: r"never|don'?t|do not|must(?: not|n'?t)|may not|sh(?:ould|all)(?: not|n'?t)|can(?:not|'?t| not)|not allowed|forbidden|prohibited|off[- ]limits|avoid|niemals|nicht|keine?|jamais|nunca";
    RELEASE: r"approved|agreed|consented|signed off|go-ahead|green light|lifted|cleared|granted|(?:may|can|could) now|(?:is|are) (?:allowed|fine|free) now|now (?:allowed|fine|free)|allowed again|genehmigt|freigegeben";
    DISPOSAL: r"(?:please |now |ok,? |then |and |just )*(?:delete|drop|remove|rename|move|cancel|refund|merge|revert|restore|kill|truncate|purge|wipe|uninstall|close|copy|archive|restart|resend|send)";
    CONDITION: r"only (?:after|when|if|once|with|in|on|at|during|by|from|for|ever)|unless|until|without|before|after|if|when|whenever|every|each|all|any|future";
    LATER: r"to-?dos?|to-?do list|for later|later: \w+|not now|come back to|still (?:open|to do|pending|missing|left|outstanding)|(?:what|this|that) (?:still )?remains|when (?:there is|there's|you have|we have|I have) (?:some )?time|backlog|not be forgotten|left to do|(?:leave|left) (?:this|it|that )?open|remains open|follow[- ]ups?|some other time";
    FIRM: r"never|always|must(?:n'?t)?|shall|from now on|at most|at least|not allowed|forbidden|no longer|rule|constraint|important|every time";
    TASK: r"make|add|split|teach|report|fix|implement|write|update|refactor|change|create|remove|rename|move|extend|port|test|run";
    THANKS: r"thanks?|thank you|good|great|perfect|nice|fine|ok|okay|glad|super|danke|merci";
    FINISHED: r"done|completed?|finished|applied|merged|shipped|deployed|released|booked|closed|resolved|fixed|drafted|committed|submitted|delivered|migrated|renamed|removed|is (?:ready|live|in place|gone)|passes now|erledigt|fertig";
    UNFINISHED: r"i'll|let me|going to|decided|not|\w+n't|yet|until|once|when|if|should|will|would|need|todo|before|remaining|still|to be";
    CREATION: r"create[sd]?|started|opened|queued|submitted|scheduled|booked|registered|issued|published|saved|launched|deployed|uploaded|reserved|provisioned|enqueued";
    DECISION: r"decided?|decision|chose|choose|going with|go with|opt(?:ed|ing)? for|instead of|rather than|because|root cause|the (?:fix|cause|problem|issue|reason|bug) (?:is|was)|turns out|trade-?off|conclu(?:de|sion)|confirmed|found (?:it|that|the)|so (?:I|we)(?:'ll| will)|the plan is|works? because|fails? because";
    DEED: r"^I (?:\w+ed|had|ran|made|wrote|sent|took|put|got|set|found|gave|chose|kept|built)";
    OPEN: r"todo|next steps?|remaining|remains (?:to|open|unclear|undone|unfixed)|still (?:need|have|to|missing|blocked|fails?|failing)|follow[- ]up|not yet|pending|(?:is|are|am|'m|'re) blocked|blocked (?:by|on|until)|waiting (?:for|on)|left to do|unresolved|outstanding|need to|in progress|running in (?:the )?background";
    COMPLAINT: r"error|failed|failure|panicked|exception|traceback|fatal|fail|cannot|denied|not found|undefined|unexpected|mismatch|invalid|conflict|refused|timed? ?out";
    EXIT: r"exit(?:ed)?(?: with)?[ _-]?(?:code|status)?[:= ]+(?:code |status )?-?[1-9]\d*";
    DEFINITION: r"(?:fn|def|func|function|class|struct|enum|trait|interface|type|impl|const|module)[ \t]+(?:\([ -(*-~]{0,60}\)[ \t]*)?([A-Za-z_][A-Za-z0-9_]{2,60})";
}

fn has_cue(cue: &Option<Regex>, text: &str) -> bool {
    cue.as_ref().is_some_and(|r| r.is_match(text))
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
        && (has_cue(&RULE, sentence)
            || has_cue(&REVISION, sentence)
            || opens_with_order(sentence)
            || rule_label(sentence).is_some())
}

/// Whether a sentence asks for one piece of work on something it names: "make src/a.py export an
/// order only once" is done when it is done, and no rule.
fn is_single_task(sentence: &str) -> bool {
    let opening = head(sentence, 60);
    let names = sentence.split(' ').any(|w| w.contains('/') && w.len() > 5);
    names && has_cue(&TASK, opening) && !has_cue(&FIRM, sentence)
}

/// Whether a sentence orders one thing to be done to something that it names: "drop only the table
/// tmp_import" is done when it is done. What holds on a condition, or each time, is a rule.
fn is_single_order(sentence: &str) -> bool {
    let opens = DISPOSAL.as_ref().and_then(|verbs| verbs.find(sentence));
    let mut names = false;
    scan_names(sentence, &mut |_, _, _| names = true);
    names
        && opens.is_some_and(|verb| verb.start() == 0)
        && !has_cue(&FIRM, sentence)
        && !has_cue(&CONDITION, sentence)
        && !has_cue(&PROHIBITION, sentence)
}

/// A sentence that forbids.
pub(crate) fn is_prohibition(sentence: &str) -> bool {
    has_cue(&PROHIBITION, sentence)
}

/// A sentence that says that something is otherwise from here on.
pub(crate) fn is_change(sentence: &str) -> bool {
    has_cue(&NOW, sentence) || has_cue(&REVISION, sentence)
}

/// A sentence that puts something in the place of what was said before.
pub(crate) fn is_replacement(sentence: &str) -> bool {
    has_cue(&REPLACEMENT, sentence)
}

/// A sentence that allows what may have been forbidden.
pub(crate) fn is_release(sentence: &str) -> bool {
    sentence.len() <= SENTENCE && !sentence.ends_with('?') && has_cue(&RELEASE, sentence)
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
        let is_object = ends || next.is_none_or(|next| FOLLOWERS.contains(&next.as_str()));
        if is_object && POINTERS.contains(&bare(word).as_str()) {
            return true;
        }
    }
    false
}

/// Words that stand for something named before.
const POINTERS: [&str; 9] = [
    "them", "it", "that", "those", "this", "these", "there", "him", "her",
];

/// Words before which one of those is an object; before a verb it would be a subject, before a noun it
/// would only point at it.
const FOLLOWERS: [&str; 46] = [
    "in", "on", "at", "to", "from", "with", "without", "into", "onto", "by", "via", "for", "as",
    "under", "over", "before", "after", "until", "unless", "when", "while", "if", "because", "and",
    "or", "but", "anywhere", "anyone", "anybody", "again", "ever", "anymore", "any", "yet", "now",
    "either", "alone", "only", "directly", "out", "up", "down", "off", "public", "open", "private",
];

/// A short word of thanks, which asks for nothing.
pub(crate) fn is_thanks(message: &str) -> bool {
    message.len() <= 70
        && has_cue(&THANKS, head(message, 24))
        && !message.contains(['/', '?', ':'])
        && !message.bytes().any(|b| b.is_ascii_digit())
}

/// Whether a clause of the sentence opens with an order.
fn opens_with_order(sentence: &str) -> bool {
    let Some(order) = ORDER.as_ref() else {
        return false;
    };
    order.find_iter(sentence).any(|found| {
        let before = sentence.get(..found.start()).unwrap_or("").trim_end();
        let last = before.rsplit(' ').next().unwrap_or("").to_ascii_lowercase();
        before.is_empty()
            || before.ends_with([',', ';', ':', '(', '-', '*', '.', '!'])
            || OPENERS.contains(&last.as_str())
    })
}

/// Words after which an order may follow.
const OPENERS: [&str; 9] = [
    "and", "but", "please", "so", "then", "also", "just", "or", "always",
];

/// A line that a program wrote: `Error: should be true`.
fn is_program_line(sentence: &str) -> bool {
    let head = sentence.split([':', ' ']).next().unwrap_or("");
    [
        "error", "messages", "warning", "warn", "expected", "actual", "info", "debug", "fatal",
    ]
    .iter()
    .any(|word| head.eq_ignore_ascii_case(word))
}

/// A sentence that says what something leads to, not what somebody must do: "This causes it to always
/// return 0."
fn is_explanation(sentence: &str) -> bool {
    const OPENINGS: [&str; 5] = [
        "this causes ",
        "this makes ",
        "this leads ",
        "this results ",
        "without this ",
    ];
    let opening = head(sentence, 16).to_ascii_lowercase();
    OPENINGS.iter().any(|words| opening.starts_with(words)) && !sentence.contains(" you ")
}

/// What stands before a colon and says that a rule follows: `One condition`, `Important`.
pub(crate) fn rule_label(sentence: &str) -> Option<&str> {
    let (head, rest) = sentence.split_once(": ")?;
    let short = head.len() <= 90 && rest.len() >= 8;
    (short && (has_cue(&LABEL, head) || has_cue(&REVISION, head) || has_cue(&LATER, head)))
        .then_some(head)
}

/// A heading under which every item is a rule.
pub(crate) fn is_rule_heading(line: &str) -> bool {
    line.len() <= 90 && has_cue(&LABEL, line)
}

/// A sentence that puts work off.
pub(crate) fn is_postponement(sentence: &str) -> bool {
    sentence.len() <= SENTENCE && !sentence.ends_with('?') && has_cue(&LATER, sentence)
}

/// A sentence that says something is finished.
pub(crate) fn is_completion(sentence: &str) -> bool {
    sentence.len() <= 200
        && !sentence.ends_with('?')
        && has_cue(&FINISHED, sentence)
        && !has_cue(&UNFINISHED, sentence)
}

/// A call, by its tool or its answer, that brought something into being.
pub(crate) fn is_creation(call: &str, answer: &str) -> bool {
    let words: String = head(call, 80)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' })
        .collect();
    let made = |word: &str| MAKING.iter().any(|verb| word.eq_ignore_ascii_case(verb));
    words.split(' ').any(made) || has_cue(&CREATION, answer)
}

/// Verbs of tools and commands that make something.
const MAKING: [&str; 16] = [
    "create",
    "start",
    "deploy",
    "submit",
    "book",
    "register",
    "launch",
    "publish",
    "schedule",
    "spawn",
    "reserve",
    "upload",
    "commit",
    "provision",
    "enqueue",
    "open",
];

/// A sentence that takes something back.
pub(crate) fn is_revision(sentence: &str) -> bool {
    has_cue(&REVISION, sentence)
}

/// A sentence that decides, gives a cause or tells a deed. "The problem is clear." does none of it.
pub(crate) fn is_decision(sentence: &str) -> bool {
    sentence.len() <= SENTENCE
        && !sentence.ends_with(" is clear.")
        && (has_cue(&DECISION, sentence) || has_cue(&DEED, sentence))
}

/// A sentence that names what is left to do. What it announces is done in the next breath.
pub(crate) fn is_open_work(sentence: &str) -> bool {
    let is_left = sentence.trim_end_matches('.').ends_with(" remains");
    sentence.len() <= SENTENCE && !sentence.ends_with(':') && (is_left || has_cue(&OPEN, sentence))
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
        || has_cue(&EXIT, head)
        || has_cue(&EXIT, tail(answer, EDGE))
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

/// The line of a failed answer that says why: the first that complains, else the last.
pub(crate) fn complaint(answer: &str) -> &str {
    let lines = || answer.lines().map(str::trim).filter(|l| l.len() >= 8);
    lines()
        .take(2000)
        .find(|l| has_cue(&COMPLAINT, l) && !has_cue(&EXIT, l))
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
