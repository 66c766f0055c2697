//! Each list against a table of its own, `testdata/cues/NAME.txt`: lines that it must recognise, one at least for each
//! cue, and lines after `!` that it must not. A cue that no line needs, or a line that lost its cue, fails.

use std::collections::BTreeSet;

use super::*;

/// A list with its table.
struct CueTable {
    file: &'static str,
    table: &'static str,
}

impl CueTable {
    fn cues(&self) -> Vec<&'static str> {
        cue_lines(self.file).collect()
    }

    fn matches(&self) -> impl Iterator<Item = &'static str> {
        cue_lines(self.table).filter(|line| !line.starts_with('!'))
    }

    fn near_misses(&self) -> impl Iterator<Item = &'static str> {
        cue_lines(self.table).filter_map(|line| line.strip_prefix("! "))
    }

    fn check_lines<L>(&self, build: fn(&'static str) -> L, recognises: fn(&L, &str) -> bool) {
        let list = build(self.file);
        for line in self.matches() {
            assert!(recognises(&list, line), "not recognised: {line}");
        }
        for line in self.near_misses() {
            assert!(!recognises(&list, line), "recognised: {line}");
        }
        assert_ne!(self.near_misses().count(), 0);
        let mut untested: BTreeSet<&str> = self.cues().into_iter().collect();
        let single: Vec<(&str, L)> = cue_lines(self.file).map(|cue| (cue, build(cue))).collect();
        for line in self.matches() {
            let mut by = single.iter().filter(|(_, list)| recognises(list, line));
            if let (Some((cue, _)), None) = (by.next(), by.next()) {
                untested.remove(cue);
            }
        }
        assert_eq!(untested, BTreeSet::new(), "cues that no line needs");
    }

    fn check_words(&self) {
        let list = WordList::new(self.file);
        let words: BTreeSet<&str> = self.matches().flat_map(str::split_whitespace).collect();
        for word in &words {
            assert!(list.has(word), "not on the list: {word}");
        }
        for word in self.near_misses().flat_map(str::split_whitespace) {
            assert!(!list.has(word), "on the list: {word}");
        }
        assert_ne!(self.near_misses().count(), 0);
        assert_eq!(words, self.cues().into_iter().collect());
    }
}

/// One test for each list, and `$all` names them.
macro_rules! check_tables {
    ($all:ident, $check:expr, $($name:ident)*) => {
        $(#[test]
        fn $name() {
            let check: fn(CueTable) = $check;
            check(CueTable {
                file: include_str!(concat!("../../templates/cues/", stringify!($name), ".txt")),
                table: include_str!(concat!("../../testdata/cues/", stringify!($name), ".txt")),
            });
        })*

        const $all: &[&str] = &[$(stringify!($name)),*];
    };
}

check_tables!(ANYWHERE, |list| list.check_lines(PhraseList::anywhere, PhraseList::is_in),
    rule order rule_label revision replacement change prohibition release condition postponement firm task
    finished unfinished creation decision drawback open_work complaint
    all_pass outcome preference check_outcome lifting paste_word pointing_word quoting_head report talk_word text_task no_failure
    doubt for_now untested supposition rule_name reported_wish addition binding);

check_tables!(AT_START, |list| list.check_lines(PhraseList::at_start, PhraseList::is_in),
    agreement disposal deed announcement directive case_opener request_opener greeting question_opener permission
    failed_check_line no_order);

check_tables!(OPENINGS, |list| list.check_lines(WordList::new, |list, line| list.after_opening(line).is_some()),
    explanation refusal host_opening refused_call host_remark handover
    letter_header signature);

check_tables!(PARTS, |list| list.check_lines(WordList::new, WordList::is_part_of),
    report_element aside_element program_name refusal_reason own_heading);

check_tables!(
    LABELS,
    |list| list.check_lines(WordList::new, WordList::has),
    own_label contrast
);

check_tables!(WORDS, |list| list.check_words(),
    softener pointer after_pointer order_opener program_line making abbreviation limit_word count_word text_part
    rule_filler rule_frame question_tool plan_tool command_wrapper
    lookup_program scope_opener library_head speaker own_element back_reference
    check_program failure_count control_word agent_tool thanks take_back_verb denial);

#[test]
fn every_list_has_a_table_and_says_what_it_is_for() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/cues");
    let mut names = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{path:?}");
        assert!(text.lines().all(|line| line.trim() == line), "{path:?}");
        names.insert(path.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    let tested = [ANYWHERE, AT_START, OPENINGS, PARTS, LABELS, WORDS].concat();
    assert_eq!(names, tested.into_iter().map(str::to_owned).collect());
}

/// The bytes at which phrases begin, by a regular expression.
fn starts_by_pattern(file: &'static str, start: &str, text: &str) -> Vec<usize> {
    let phrase = |phrase: &str| {
        let escaped = regex::escape(phrase).replace(r"\*", r"\w+");
        escaped.replace("<number>", r"\d+")
    };
    let phrases: Vec<String> = cue_lines(file).map(phrase).collect();
    let pattern = format!(r"(?i-u){start}(?:{})\b", phrases.join("|"));
    let pattern = regex::Regex::new(&pattern).unwrap();
    pattern.find_iter(text).map(|found| found.start()).collect()
}

#[test]
fn phrases_are_found_where_a_regular_expression_finds_them() {
    let tables = [
        include_str!("../../testdata/cues/rule.txt"),
        include_str!("../../testdata/cues/revision.txt"),
        include_str!("../../testdata/cues/deed.txt"),
        "I fixed it. I FIXED it, and I ed; needs 40gb, needs 40 gb; use tabs, not spaces; use a_b, nothing",
        "later: x, later:y; old big parser is gone, old parser is gone, old parse-r is gone; é never é, neveré",
    ];
    let lists = [
        cue_file!("rule"),
        cue_file!("order"),
        cue_file!("revision"),
        cue_file!("deed"),
        "a *b\n*x\ns\n",
    ];
    for line in tables.iter().flat_map(|table| table.lines()) {
        for list in lists {
            let found: Vec<usize> = PhraseList::anywhere(list).starts_in(line).collect();
            assert_eq!(found, starts_by_pattern(list, r"\b", line), "{line}");
            let found: Vec<usize> = PhraseList::at_start(list).starts_in(line).collect();
            assert_eq!(found, starts_by_pattern(list, "^", line), "{line}");
        }
    }
}

#[test]
fn a_phrase_matches_whole_words_in_any_case() {
    let list =
        PhraseList::anywhere("# A head.\n\nsupersed*\nneeds <number>\nlater: *\n'm blocked\n");
    for text in [
        "Superseded!",
        "it NEEDS 40 GB",
        "Later: docs",
        "I'm blocked",
    ] {
        assert!(list.is_in(text), "{text}");
    }
    for text in [
        "supersed",
        "unneeds 4",
        "needs four",
        "later:",
        "a head",
        "m blocked",
    ] {
        assert!(!list.is_in(text), "{text}");
    }
    assert_eq!(
        list.starts_in("later: a, later: b").collect::<Vec<_>>(),
        [0, 10]
    );
}

#[test]
fn a_text_is_cut_at_an_entry() {
    let words = WordList::new("# Cuts.\nbecause:\nsince:\n");
    assert_eq!(
        words.after_part("no, since: a because: b"),
        Some(" a because: b")
    );
    assert_eq!(words.after_part("no"), None);
    assert_eq!(words.before_part("no, since: a because: b"), "no, ");
    assert_eq!(words.before_part("no"), "no");
}

#[test]
fn an_empty_list_recognises_nothing() {
    let (phrases, words) = (
        PhraseList::anywhere("# Nothing.\n"),
        WordList::new("# Nothing.\n"),
    );
    assert!(!phrases.is_in("a word") && !phrases.is_in(""));
    assert!(
        !words.has("") && !words.is_part_of("a word") && words.after_opening("a word").is_none()
    );
}
