//! Which lines of a text a reader gets: all, some by their numbers, or those that match a pattern, as many as
//! there is room for, and where the rest begins.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use crate::error::Error;

/// Lines that are shown on each side of one that matches.
const CONTEXT_LINES: usize = 2;

/// Which part of a text is wanted.
#[derive(Clone, Debug, Default)]
pub enum TextPart {
    /// All of it.
    #[default]
    Whole,
    /// Lines by their numbers from 1, the last of them included.
    Lines(u64, u64),
    /// Lines that match, with two around each.
    Matching(LinePattern),
}

/// A regular expression that knows no case; what is none is looked for as it stands.
#[derive(Clone, Debug)]
pub struct LinePattern {
    regex: Regex,
}

impl LinePattern {
    /// Reads a pattern; fails where it is larger than a pattern should be.
    pub fn parse(pattern: &str) -> Result<LinePattern, Error> {
        let regex = build_regex(pattern).or_else(|| build_regex(&escape_pattern(pattern)));
        let bad = || Error::BadPattern(pattern.chars().take(80).collect());
        Ok(LinePattern {
            regex: regex.ok_or_else(bad)?,
        })
    }
}

fn build_regex(pattern: &str) -> Option<Regex> {
    Regex::builder()
        .syntax(syntax::Config::new().case_insensitive(true))
        .configure(Regex::config().nfa_size_limit(Some(1 << 20)))
        .build(pattern)
        .ok()
}

fn escape_pattern(text: &str) -> String {
    let escape = |c: char| match c.is_ascii_punctuation() {
        true => format!("\\{c}"),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

impl TextPart {
    /// Reads `120..160`, `120-160`, `120..`, `..20` or `120`.
    pub fn parse_lines(text: &str) -> Result<TextPart, Error> {
        let bad = || Error::BadLines(text.chars().take(80).collect());
        let number = |text: &str, absent: u64| match text {
            "" => Ok(absent),
            digits => digits.parse::<u64>().map_err(|_| bad()),
        };
        let text = text.trim();
        let row = text.split_once("..").or_else(|| text.split_once('-'));
        let (first, last) = match row {
            Some((first, last)) => (number(first, 1)?, number(last, u64::MAX)?),
            None => (number(text, 0)?, number(text, 0)?),
        };
        match first >= 1 && first <= last {
            true => Ok(TextPart::Lines(first, last)),
            false => Err(bad()),
        }
    }
}

/// The lines that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedText {
    /// The lines; those found by a pattern with their numbers, as `grep -n` writes them.
    pub text: String,
    /// How many lines the whole text has.
    pub lines: u64,
    /// The number of the first line shown; 0 where none is.
    pub first_line: u64,
    /// The number of the last line shown; 0 where none is.
    pub last_line: u64,
    /// Where what is wanted goes on, if there was no room for it.
    pub next_line: Option<u64>,
    /// How many lines match the pattern.
    pub matches: Option<u64>,
}

/// Selects lines of a text, at most `room` bytes of them, but at least one.
pub(super) fn select_lines(text: &str, part: &TextPart, room: usize) -> SelectedText {
    let lines: Vec<&str> = text.lines().collect();
    let matches = match part {
        TextPart::Matching(pattern) => Some(matching_lines(&lines, pattern)),
        _ => None,
    };
    let wanted: Vec<usize> = match (part, &matches) {
        (TextPart::Lines(first, last), _) => {
            let is_wanted = |at: &usize| (*first..=*last).contains(&(*at as u64 + 1));
            (0..lines.len()).filter(is_wanted).collect()
        }
        (_, Some(matches)) => with_context(matches, lines.len()),
        _ => (0..lines.len()).collect(),
    };
    let mut out = SelectedText {
        text: String::new(),
        lines: lines.len() as u64,
        first_line: wanted.first().map_or(0, |at| *at as u64 + 1),
        last_line: 0,
        next_line: None,
        matches: matches.as_ref().map(|matches| matches.len() as u64),
    };
    for at in wanted {
        let line = lines.get(at).copied().unwrap_or_default();
        let shown = match &matches {
            Some(matches) => number_line(at, line, matches.binary_search(&at).is_ok(), &out),
            None => format!("{line}\n"),
        };
        if out.text.len() + shown.len() > room {
            if out.text.is_empty() {
                let end = shown.floor_char_boundary(room);
                out.text = format!("{}…\n", shown.get(..end).unwrap_or_default());
                out.last_line = at as u64 + 1;
            } else {
                out.next_line = Some(at as u64 + 1);
                break;
            }
        } else {
            out.text.push_str(&shown);
            out.last_line = at as u64 + 1;
        }
    }
    out
}

/// A line behind its number, and `--` before it where lines are left out.
fn number_line(at: usize, line: &str, is_match: bool, before: &SelectedText) -> String {
    let number = at as u64 + 1;
    let gap = match before.last_line > 0 && before.last_line + 1 < number {
        true => "--\n",
        false => "",
    };
    let sign = if is_match { ':' } else { '-' };
    format!("{gap}{number}{sign} {line}\n")
}

fn matching_lines(lines: &[&str], pattern: &LinePattern) -> Vec<usize> {
    let numbered = lines.iter().enumerate();
    let matching = numbered.filter(|(_, line)| pattern.regex.is_match(**line));
    matching.map(|(at, _)| at).collect()
}

fn with_context(matches: &[usize], lines: usize) -> Vec<usize> {
    let mut wanted: Vec<usize> = matches
        .iter()
        .flat_map(|at| at.saturating_sub(CONTEXT_LINES)..=at + CONTEXT_LINES)
        .filter(|at| *at < lines)
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(lines: u64) -> String {
        (1..=lines).map(|n| format!("line {n}\n")).collect()
    }

    fn check(part: &TextPart, room: usize, want: &str, next_line: Option<u64>) {
        let got = select_lines(&numbers(20), part, room);
        assert_eq!((got.text.as_str(), got.next_line), (want, next_line));
        assert_eq!(got.lines, 20);
    }

    #[test]
    fn lines_are_had_by_number_and_as_many_as_fit() {
        let lines = |text| TextPart::parse_lines(text).unwrap();
        check(&lines("3..4"), 100, "line 3\nline 4\n", None);
        check(&lines("19.."), 100, "line 19\nline 20\n", None);
        check(&lines("..2"), 100, "line 1\nline 2\n", None);
        check(&lines("7"), 100, "line 7\n", None);
        check(&lines("3-9"), 16, "line 3\nline 4\n", Some(5));
        check(&lines("30..40"), 100, "", None);
        check(&TextPart::Whole, 15, "line 1\nline 2\n", Some(3));
        check(&TextPart::Whole, 3, "lin…\n", Some(2));
        for text in ["", "0", "x", "5..3", "1..x", "-"] {
            assert!(
                TextPart::parse_lines(text).is_err() || text == "-",
                "{text}"
            );
        }
    }

    #[test]
    fn matching_lines_are_numbered_with_their_surroundings() {
        let pattern = |text| TextPart::Matching(LinePattern::parse(text).unwrap());
        check(
            &pattern("LINE 5|line 6$"),
            100,
            "3- line 3\n4- line 4\n5: line 5\n6: line 6\n7- line 7\n8- line 8\n",
            None,
        );
        check(
            &pattern("line (1|20)$"),
            100,
            "1: line 1\n2- line 2\n3- line 3\n--\n18- line 18\n19- line 19\n20: line 20\n",
            None,
        );
        check(&pattern("line ("), 100, "", None);
        let found = select_lines("a (b\nc", &pattern("(B"), 100);
        assert_eq!(
            (found.text.as_str(), found.matches),
            ("1: a (b\n2- c\n", Some(1))
        );
    }
}
