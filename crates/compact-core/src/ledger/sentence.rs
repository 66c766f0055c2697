//! Small cuts of text: sentences, and one line of at most so many characters.

use std::borrow::Cow;
use std::ops::Range;

use super::cue;
use super::language::is_unspaced;
use crate::cue_list::{WordList, cue_file};

/// Where a sentence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentencePlace {
    /// In running text.
    Prose,
    /// In a list below a heading that announces rules.
    RuleList,
}

/// The sentences that someone wrote: lines split after `.`, `!`, `?` and `;`, those joined that were
/// wrapped at a margin, or after a mark of a script that puts no blank behind it. Code fences, indented paste and quotations of others are not theirs.
pub(crate) fn split_sentences(text: &str) -> impl Iterator<Item = (Cow<'_, str>, SentencePlace)> {
    paragraphs(text)
        .into_iter()
        .flat_map(|(lines, place)| ClauseIter { rest: lines }.map(move |s| (s, place)))
        .filter(|(s, _)| s.len() >= 8)
        .map(|(s, place)| match s.contains('\n') {
            true => (Cow::Owned(clip(s, usize::MAX - 1)), place),
            false => (Cow::Borrowed(s), place),
        })
}

/// The writer's own lines; one that goes on below stands with what follows.
fn paragraphs(text: &str) -> Vec<(&str, SentencePlace)> {
    let mut page = LineContext::default();
    let mut found: Vec<(Range<usize>, SentencePlace)> = Vec::new();
    let mut next = 0;
    let mut above: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        next += line.len();
        let end = next - (line.len() - line.trim_end().len());
        if let (true, Some((lines, _))) =
            (above.is_some_and(|l| is_wrapped(l, line)), found.last_mut())
        {
            (lines.end, above) = (end, Some(line));
            continue;
        }
        above = page.take_line(line).map(|(own, place)| {
            found.push((end - own.len()..end, place));
            line
        });
    }
    let slice = |(lines, place)| Some((text.get::<Range<usize>>(lines)?, place));
    found.into_iter().filter_map(slice).collect()
}

/// A line of at least so many characters may have been wrapped.
const MARGIN: usize = 50;

/// Whether a line of prose was wrapped, and the next one is the rest of it.
fn is_wrapped(line: &str, next: &str) -> bool {
    let (line, rest) = (line.trim_end(), next.trim_start());
    let indent = next.len() - rest.len();
    line.len() >= MARGIN
        && !line.ends_with(['.', ':', ';', '!', '?'])
        && (rest.starts_with('(') || opens_small(rest) || line.ends_with(',') && opens_word(rest))
        && indent < 4
        && list_item(rest).is_none()
}

/// Marks that may stand before the first word of a line: of code, of a quotation.
const OPENING_MARKS: [char; 6] = ['`', '"', '\'', '“', '‘', '*'];

/// Whether the first word of a line begins with a small letter.
fn opens_small(line: &str) -> bool {
    let word = line.trim_start_matches(OPENING_MARKS);
    word.starts_with(char::is_lowercase)
}

/// Whether a line begins with a word or a number.
fn opens_word(line: &str) -> bool {
    let word = line.trim_start_matches(OPENING_MARKS);
    word.starts_with(char::is_alphanumeric)
}

/// What the lines above say about the next one.
#[derive(Default)]
struct LineContext {
    fenced: bool,
    ruled: bool,
}

impl LineContext {
    /// Takes one line; gives it back when it is the writer's own.
    fn take_line<'t>(&mut self, line: &'t str) -> Option<(&'t str, SentencePlace)> {
        let text = line.trim();
        let fence = text.starts_with("```");
        self.fenced ^= fence;
        if fence || self.fenced {
            return None;
        }
        let item = list_item(text);
        if item.is_none()
            && (text.starts_with('>') || line.starts_with("    ") || line.starts_with('\t'))
        {
            return None;
        }
        if item.is_none() && !text.is_empty() {
            self.ruled =
                (text.starts_with('#') || text.ends_with(':')) && cue::is_rule_heading(text);
        }
        let place = match item.is_some() && self.ruled {
            true => SentencePlace::RuleList,
            false => SentencePlace::Prose,
        };
        Some((item.unwrap_or(text), place))
    }
}

/// The text of a list item.
fn list_item(line: &str) -> Option<&str> {
    let bullet = line
        .strip_prefix("- ")
        .or_else(|| line.strip_prefix("* "))
        .or_else(|| line.strip_prefix("• "));
    bullet.or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = rest.len() < line.len() && line.len() - rest.len() <= 3;
        let rest = rest
            .strip_prefix(". ")
            .or_else(|| rest.strip_prefix(") "))?;
        numbered.then_some(rest)
    })
}

struct ClauseIter<'t> {
    rest: &'t str,
}

impl<'t> Iterator for ClauseIter<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest.as_bytes();
        let end_at = |i: usize| match bytes.get(i..)? {
            [b'.', b' ', ..] => (!abbreviates(self.rest.get(..i)?)).then_some(i + 1),
            [b'!' | b'?' | b';', b' ', ..] => Some(i + 1),
            [first, ..] if *first >= 0x80 => {
                let mark = self.rest.get(i..)?.chars().next()?;
                WIDE_STOPS.contains(&mark).then(|| i + mark.len_utf8())
            }
            _ => None,
        };
        let end = (0..bytes.len()).find_map(end_at).unwrap_or(bytes.len());
        let (head, tail) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = tail.trim_start();
        Some(head.trim_start_matches(['-', '*', '#', '>', ' ']).trim())
    }
}

/// Marks that end a sentence without a blank behind them.
const WIDE_STOPS: [char; 7] = ['。', '！', '？', '；', '｡', '؟', '۔'];

/// Whether a full stop after this text only shortens a word.
fn abbreviates(text: &str) -> bool {
    let word = text.rsplit([' ', '(']).next().unwrap_or("");
    ABBREVIATIONS.has(word)
}

static ABBREVIATIONS: WordList = WordList::new(cue_file!("abbreviation"));

/// Where `text` holds all words of `phrase` and the last of them whole: `host db1` is not in `host db10`.
pub(crate) fn find_phrase(text: &str, phrase: &str) -> Option<Range<usize>> {
    phrase_places(text, phrase).find(|place| {
        let tail = text.get(place.end..).unwrap_or("");
        let tail = tail
            .trim_start_matches(CLOSERS)
            .trim_start_matches([',', ':']);
        tail.is_empty() || tail.starts_with(char::is_whitespace)
    })
}

/// Whether `text` holds a sentence to its end: "Never restart db1" is not in "Never restart db1 on Sundays".
pub(crate) fn has_sentence(text: &str, sentence: &str) -> bool {
    phrase_places(text, sentence).any(|place| {
        let tail = text.get(place.end..).unwrap_or("");
        let rest = tail.trim_start_matches(CLOSERS);
        let closed = rest.len() < tail.len() || sentence.ends_with(CLOSERS);
        rest.is_empty()
            || rest.starts_with('\n')
            || sentence.ends_with(WIDE_STOPS)
            || rest.starts_with(WIDE_STOPS)
            || (closed && rest.starts_with(char::is_whitespace))
    })
}

/// Where a phrase stands without a part of a word right before it.
fn phrase_places(text: &str, phrase: &str) -> impl Iterator<Item = Range<usize>> {
    let places = memchr::memmem::find_iter(text.as_bytes(), phrase);
    places
        .filter(|at| {
            let before = text.get(..*at).unwrap_or("");
            !phrase.is_empty() && !before.ends_with(char::is_alphanumeric)
        })
        .map(|at| at..at + phrase.len())
}

/// What may stand between the end of a sentence and the white space behind it.
const CLOSERS: [char; 11] = ['.', ';', '!', '?', ')', ']', '}', '"', '\'', '*', '…'];

/// One line of at most `chars` characters: white space collapsed, cut at a word with `…`.
pub(crate) fn clip(text: &str, chars: usize) -> String {
    let text = text.trim();
    if text.len() <= chars && is_one_line(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(chars.saturating_add(4)));
    let mut count = 0;
    let mut rest = text;
    while let Some((word, behind)) = next_word(rest) {
        rest = behind;
        if word.text.is_empty() {
            continue;
        }
        let gap = usize::from(count > 0);
        let room = chars.saturating_sub(count + gap);
        let length = match word.is_plain {
            true => word.text.len(),
            false => word.text.chars().take(room.saturating_add(1)).count(),
        };
        if length > room {
            return end_clipped(out, word.text, room);
        }
        if count > 0 {
            out.push(' ');
        }
        match word.is_plain {
            true => out.push_str(word.text),
            false => out.extend(word.text.chars().filter(|c| !c.is_control())),
        }
        count += length + gap;
    }
    out
}

/// Whether a text is a line of ASCII with single blanks between its words, as most lines are.
fn is_one_line(text: &str) -> bool {
    let mut before = b' ';
    text.bytes().all(|byte| {
        let is_double = byte == b' ' && before == b' ';
        before = byte;
        matches!(byte, b' '..=b'~') && !is_double
    })
}

/// A word between white space.
struct WordToClip<'t> {
    text: &'t str,
    /// Whether it is ASCII without control characters: most words are, and their bytes are all there is to know.
    is_plain: bool,
}

/// The next word of a text, empty where white space follows at once, and what stands behind it; `None` at the end.
fn next_word(text: &str) -> Option<(WordToClip<'_>, &str)> {
    let plain = text.bytes().take_while(u8::is_ascii_graphic).count();
    let behind = match text.as_bytes().get(plain) {
        None => (plain > 0).then_some(plain)?,
        Some(b' ' | b'\t'..=b'\r') => plain + 1,
        Some(_) => {
            let text = text.trim_start();
            let word = text.split(char::is_whitespace).next()?;
            let behind = text.get(word.len()..)?;
            let is_plain = false;
            return (!word.is_empty()).then_some((
                WordToClip {
                    text: word,
                    is_plain,
                },
                behind,
            ));
        }
    };
    let word = WordToClip {
        text: text.get(..plain)?,
        is_plain: true,
    };
    Some((word, text.get(behind..).unwrap_or_default()))
}

/// At most `chars` characters with their line breaks: blank lines dropped, cut at a word with `…`.
pub(crate) fn clip_lines(text: &str, chars: usize) -> String {
    let mut out = String::new();
    let mut left = chars;
    for line in text.lines() {
        let line = line.trim_end();
        if line.trim_start().is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        let length = line.chars().count() + 1;
        if length > left {
            out.push_str(&clip(line, left));
            return out;
        }
        left -= length;
        match line.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t')) {
            true => out.push_str(line),
            false => out.extend(line.chars().filter(|c| *c == '\t' || !c.is_control())),
        }
    }
    out
}

/// Where so many characters would stay empty, the word that does not fit is cut in itself.
const LONG_WORD: usize = 40;

/// Ends a line that ran out of room. A word that is longer than the line or leaves much of it empty, and one of a
/// script without blanks, is cut in itself.
fn end_clipped(mut out: String, word: &str, room: usize) -> String {
    if out.is_empty() || room > LONG_WORD || word.chars().any(is_unspaced) {
        if !out.is_empty() && room > 1 {
            out.push(' ');
        }
        let is_shown = |c: &char| !c.is_control();
        out.extend(word.chars().take(room.saturating_sub(1)).filter(is_shown));
        if room == 0 {
            return out;
        }
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What `clip` comes to, word by word.
    fn clip_words(text: &str, chars: usize) -> String {
        let mut out = String::new();
        let mut count = 0;
        for word in text.split_whitespace() {
            let room = chars.saturating_sub(count + usize::from(count > 0));
            let len = word.chars().take(room + 1).count();
            if len > room {
                return end_clipped(out, word, room);
            }
            if count > 0 {
                out.push(' ');
            }
            out.extend(word.chars().filter(|c| !c.is_control()));
            count += len + usize::from(count > 0);
        }
        out
    }

    proptest! {
        #[test]
        fn what_is_folded_at_once_is_what_its_words_come_to(
            text in "[ \\t\\n\\x0b\\x1b\\x7fa-c.é…\u{2003}\u{85}]{0,40}",
            chars in 0usize..40,
        ) {
            prop_assert_eq!(clip(&text, chars), clip_words(&text, chars));
        }
    }

    #[test]
    fn a_text_is_one_line_that_ends_at_a_word() {
        let rows = [
            ("  plain\n\ttext ", 20, "plain text"),
            ("plain text", 10, "plain text"),
            ("plain text", 9, "plain…"),
            ("a\u{7}b", 20, "ab"),
            ("", 5, ""),
        ];
        let made = rows.map(|(text, chars, _)| clip(text, chars));
        assert_eq!(made, rows.map(|(_, _, expected)| expected.to_owned()));
    }
}
