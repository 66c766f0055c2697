//! From text to search terms: what is indexed, and what a question is looked up by.
//!
//! An identifier is found whole (`parse_config`, `src/db/pool.rs`, `E0425`) and by its parts; a word
//! of prose by its stem. Words that only hold a sentence together are no terms at all. Every index
//! stores exactly these terms, so that all of them rank alike.

use std::ops::Range;
use std::sync::LazyLock;

use compact_core::cue_list::WordList;
use rust_stemmers::{Algorithm, Stemmer};

static STOP_WORDS: WordList = WordList::new(include_str!("../../templates/cues/stop_word.txt"));
static EVERYDAY_VERBS: WordList =
    WordList::new(include_str!("../../templates/cues/everyday_verb.txt"));
static PARTICLES: WordList = WordList::new(include_str!("../../templates/cues/particle.txt"));

/// Longer runs are data, not names: encoded blobs, minified code.
const MAX_TERM: usize = 96;

/// A term and the word of the text that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerm {
    /// The term itself: lower case, without white space.
    pub text: String,
    /// Counts the words of the text; terms of one word share it.
    pub word: usize,
    /// The bytes of the word.
    pub span: Range<usize>,
}

/// The characters that join the pieces of a name: they stand within a term, never at its ends.
pub const JOINTS: &str = "_./:-@";

/// Every term of a text, in its order.
pub fn terms(text: &str) -> Vec<SearchTerm> {
    let mut out = Vec::new();
    for (word, span) in word_spans(text).enumerate() {
        let mut push = |term: String| {
            if !term.is_empty() && term.len() <= MAX_TERM {
                out.push(SearchTerm {
                    text: term,
                    word,
                    span: span.clone(),
                });
            }
        };
        analyze(text.get(span.clone()).unwrap_or_default(), &mut push);
    }
    out
}

/// The different terms of a text, sorted.
pub fn distinct_terms(text: &str) -> Vec<String> {
    let mut all: Vec<String> = terms(text).into_iter().map(|term| term.text).collect();
    all.sort_unstable();
    all.dedup();
    // A list made in place keeps the room of all words of the text, which an index would hold for each passage.
    all.shrink_to_fit();
    all
}

/// The spans of words: letters and digits, with joints between them.
fn word_spans(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = rest.find(|(_, c)| is_word(*c))?;
        let mut end = start + first.len_utf8();
        // Joints count only when a letter or digit follows them.
        let mut ahead = rest.clone();
        while let Some((at, c)) = ahead.next() {
            if is_word(c) {
                end = at + c.len_utf8();
                rest = ahead.clone();
            } else if !JOINTS.contains(c) || at > end + 1 {
                break;
            }
        }
        Some(start..end)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric()
}

/// The terms of one word, the whole of it first.
fn analyze(word: &str, push: &mut impl FnMut(String)) {
    if word.contains(|c: char| JOINTS.contains(c)) {
        push(word.to_lowercase());
        for name in word.split(['/', '.', ':', '@']).filter(is_joined) {
            let name = join_name(&name.split(['_', '-']).collect::<Vec<_>>());
            if name != word.to_lowercase() {
                push(name);
            }
        }
        if let Some((_, file)) = word.rsplit_once('/').filter(|(_, file)| file.contains('.')) {
            push(file.to_lowercase());
        }
        // A single letter within a name tells nothing.
        let letter = |leaf: &&str| leaf.len() == 1 && !leaf.starts_with(|c: char| c.is_numeric());
        let leaves = word.split(|c: char| JOINTS.contains(c));
        leaves
            .filter(|leaf| !letter(leaf))
            .for_each(|leaf| analyze_leaf(leaf, push));
    } else {
        analyze_leaf(word, push);
    }
}

fn is_joined(name: &&str) -> bool {
    name.contains(['_', '-'])
}

/// The one spelling of a name that is written `parse_config`, `parse-config` or `parseConfig`.
fn join_name(parts: &[&str]) -> String {
    parts.join("_").to_lowercase()
}

/// What neighbouring words of a question may be written as: `parse config` as `parse_config`,
/// `times out` as `timeout`.
pub(super) fn compound_names(text: &str) -> Vec<String> {
    let words: Vec<String> = word_spans(text)
        .filter_map(|span| text.get(span).map(str::to_lowercase))
        .filter(|word| word.chars().all(char::is_alphabetic))
        .collect();
    let mut names: Vec<String> = words
        .windows(2)
        .filter_map(|pair| match pair {
            [verb, end] if !is_stop_word(verb) && PARTICLES.has(end) => {
                Some(stem(&format!("{}{end}", stem(verb))))
            }
            [a, b] if !is_stop_word(a) && !is_stop_word(b) => Some(join_name(&[a, b])),
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The stem of a word; an expiry is what expires, a delivery what is delivered.
fn stem(lower: &str) -> String {
    let stem = STEMMER.stem(lower);
    match stem.strip_suffix('i') {
        Some(verb) if verb.len() > 4 && verb.ends_with('r') => verb.to_owned(),
        _ => stem.into_owned(),
    }
}

/// A run of letters and digits: by itself, and by its parts where case or digits part it.
fn analyze_leaf(leaf: &str, push: &mut impl FnMut(String)) {
    if leaf.is_empty() || leaf.len() > MAX_TERM {
        return;
    }
    if leaf.contains(is_ideograph) {
        return push_pairs(leaf, push);
    }
    let parts = split_identifier(leaf);
    if parts.len() > 1 {
        push(leaf.to_lowercase());
        if leaf.chars().all(char::is_alphabetic) {
            push(join_name(&parts));
        }
        let telling = parts.iter().filter(|part| part.chars().count() > 1);
        telling.for_each(|part| analyze_word(part, push));
    } else {
        analyze_word(leaf, push);
    }
}

fn analyze_word(word: &str, push: &mut impl FnMut(String)) {
    let lower = word.to_lowercase();
    if is_stop_word(&lower) {
        return;
    }
    if lower.len() > 2 && lower.bytes().all(|b| b.is_ascii_lowercase()) {
        push(stem(&lower));
    } else {
        push(lower);
    }
}

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// `getUserName2` as `get`, `User`, `Name`, `2`; `HTTPServer` as `HTTP`, `Server`.
fn split_identifier(leaf: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let chars: Vec<(usize, char)> = leaf.char_indices().collect();
    for (i, window) in chars.windows(2).enumerate() {
        let [(_, a), (at, b)] = window else { continue };
        let next = chars.get(i + 2).map(|(_, c)| *c);
        let opens = (a.is_lowercase() && b.is_uppercase())
            || (a.is_uppercase() && b.is_uppercase() && next.is_some_and(char::is_lowercase))
            || (a.is_numeric() != b.is_numeric());
        if opens {
            parts.extend(leaf.get(start..*at));
            start = *at;
        }
    }
    parts.extend(leaf.get(start..));
    parts
}

/// Writing without spaces is found by neighbouring characters.
fn push_pairs(run: &str, push: &mut impl FnMut(String)) {
    let chars: Vec<char> = run.chars().collect();
    if chars.len() == 1 {
        return push(run.to_owned());
    }
    chars
        .windows(2)
        .for_each(|pair| push(pair.iter().flat_map(|c| c.to_lowercase()).collect()));
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

fn is_stop_word(lower: &str) -> bool {
    STOP_WORDS.has(lower)
}

/// Whether a term says little about what is asked for.
pub(super) fn is_everyday(term: &str) -> bool {
    EVERYDAY_VERBS.has(term)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use compact_core::cue_list::cue_lines;

    use super::*;

    fn check(text: &str, want: &[&str]) {
        let found: Vec<String> = terms(text).into_iter().map(|t| t.text).collect();
        assert_eq!(found, want, "{text}");
    }

    /// Every word of a list stands among `words`, and each of those is on the list.
    fn check_list(file: &'static str, words: &str, others: &str) {
        let list = WordList::new(file);
        let listed: BTreeSet<&str> = cue_lines(file).collect();
        assert_eq!(listed, words.split_whitespace().collect());
        assert!(listed.iter().all(|word| list.has(word)));
        assert!(!others.split_whitespace().any(|word| list.has(word)));
    }

    #[test]
    fn stop_words_hold_sentences_together() {
        check_list(
            include_str!("../../templates/cues/stop_word.txt"),
            "what which who whom whose when where why how many much while if \
             i me my we us our you your he him his she her it its they them their \
             this that these those there here some such any all a an the and or but than then \
             am are is was were be been being do does did doing done get gets got had has have let \
             can could may might must shall should will would please tell \
             about again also as at before by for from in into just now of off on out over so to too up very with",
            "not no port ports when? limit settle says WHO",
        );
    }

    #[test]
    fn particles_follow_verbs() {
        check_list(
            include_str!("../../templates/cues/particle.txt"),
            "out up in off over down on back",
            "to of with away",
        );
    }

    #[test]
    fn everyday_verbs_are_stems() {
        check_list(
            include_str!("../../templates/cues/everyday_verb.txt"),
            "agre ask come decid end find give go happen keep know like look make mean need put \
             rememb remind run say see seem show start take talk think tri use want work",
            "agree decide remember try fail deploy replica",
        );
    }

    #[test]
    fn everyday_verbs_are_known_in_their_forms() {
        let forms = "runs running decided remembered reminded tried uses making going agreed";
        for form in forms.split(' ') {
            assert!(is_everyday(&stem(form)), "{form}");
        }
        assert!(!is_everyday(&stem("replicas")));
    }

    #[test]
    fn identifiers_are_found_whole_and_by_their_parts() {
        check("parse_config", &["parse_config", "pars", "config"]);
        check(
            "getUserName",
            &["getusername", "get_user_name", "user", "name"],
        );
        check(
            "parse-config",
            &["parse-config", "parse_config", "pars", "config"],
        );
        check("HTTPServer2", &["httpserver2", "http", "server"]);
        check("E0425", &["e0425", "0425"]);
        check(
            "src/db/pool.rs",
            &["src/db/pool.rs", "pool.rs", "src", "db", "pool", "rs"],
        );
        check(
            "self.parse_config()",
            &[
                "self.parse_config",
                "parse_config",
                "self",
                "pars",
                "config",
            ],
        );
        check("10.0.0.1:80", &["10.0.0.1:80", "10", "0", "0", "1", "80"]);
    }

    #[test]
    fn words_of_a_question_may_mean_a_name() {
        assert_eq!(
            compound_names("where does the parse config of x2 live?"),
            ["parse_config"]
        );
    }

    #[test]
    fn prose_is_stemmed_and_small_words_are_dropped() {
        check("Which ports did we settle on?", &["port", "settl"]);
        check("settled, settling. (Settles)", &["settl"; 3]);
        check(
            "expiry, expires; retry, retries",
            &["expir", "expir", "retri", "retri"],
        );
        check(
            "is it the? ... -- '\" * () NEAR/2",
            &["near/2", "near", "2"],
        );
    }

    #[test]
    fn other_scripts_are_words_too() {
        check("Größe Straße", &["größe", "straße"]);
        check("設定を", &["設定", "定を"]);
    }

    #[test]
    fn blobs_are_no_terms() {
        check(&"x".repeat(5000), &[]);
        check(&"ab/".repeat(200), &["ab"; 200]);
    }

    #[test]
    fn a_term_knows_its_word() {
        let found = terms("use getUserName, then");
        let spans: Vec<_> = found.iter().map(|t| (t.word, t.span.clone())).collect();
        assert_eq!(spans.first(), Some(&(0, 0..3)));
        assert!(spans.iter().skip(1).all(|at| *at == (1, 4..15)));
    }

    /// An index holds a list for every passage: a text of one word has one term and room for no more.
    #[test]
    fn a_list_of_terms_has_room_for_itself_alone() {
        let terms = distinct_terms(&"word ".repeat(48));
        assert_eq!((terms.len(), terms.capacity()), (1, 1));
    }
}
