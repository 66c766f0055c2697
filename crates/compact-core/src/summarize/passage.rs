//! Excerpts made ready for choosing: white space collapsed, and for each mention the stretch that
//! has to be shown so that the name keeps its meaning.

use std::collections::HashMap;
use std::ops::Range;

use crate::ledger::{Entity, Excerpt, Ledger, Mention, Voice};

use super::root::RootDirectory;

/// A mention in a passage: the name's place and the stretch that keeps it in context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NameMark {
    pub group: u32,
    pub lo: u32,
    pub hi: u32,
    pub from: u32,
    pub to: u32,
    /// Words of its surroundings that keep it in context.
    pub need: u32,
}

/// An excerpt ready for choosing. A line break of the source is kept as one `\n`.
#[derive(Debug)]
pub(super) struct QuotablePassage<'l> {
    pub excerpt: &'l Excerpt,
    pub text: String,
    pub marks: Vec<NameMark>,
    /// The tool that is called, where the entry calls only one.
    pub tool: Option<&'l str>,
    /// The words that carry meaning: start and end of each.
    words: Vec<(u32, u32)>,
}

impl QuotablePassage<'_> {
    /// The marks whose names start between two bytes.
    pub(super) fn marks_between(&self, from: u32, to: u32) -> Range<usize> {
        let first = self.marks.partition_point(|m| m.lo < from);
        first..self.marks.partition_point(|m| m.lo < to).max(first)
    }

    /// The tool's name where a stretch from `from` on leaves it out.
    pub(super) fn tool_before(&self, from: u32) -> Option<&str> {
        self.tool.filter(|_| from > 0 || self.excerpt.start > 0)
    }

    /// How many words that carry meaning start between two bytes.
    pub(super) fn words_in(&self, from: u32, to: u32) -> usize {
        let count = |at| self.words.partition_point(|w| w.0 < at);
        count(to).saturating_sub(count(from))
    }
}

/// How far the words around a name count as its context, in bytes of collapsed text.
pub(super) const CONTEXT: u32 = 80;
/// The share of those words that has to be shown.
const SHARE: f64 = 0.40;
/// With fewer words around it, a name is as good as bare: `Read path: …` tells nothing of a file.
const FEWEST: usize = 3;
/// How far a stretch is widened to reach the end of a line or sentence: half a sentence misleads,
/// half a line of code does not.
const SLACK: usize = 16;
const PROSE_SLACK: usize = 160;

fn slack(voice: Voice) -> usize {
    match voice {
        Voice::Call | Voice::Tool => SLACK,
        _ => PROSE_SLACK,
    }
}

/// Where a name stands: in which excerpt and at which byte of it, how long it is, and which group it is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NamePlace {
    excerpt: u32,
    offset: u32,
    length: u32,
    group: u32,
}

/// The passages that hold mentions of these names, which are given by their indices in the ledger; a
/// mark says which of them it is of.
pub(super) fn passages<'l>(
    ledger: &'l Ledger,
    names: impl Iterator<Item = Option<u32>>,
    root: &RootDirectory<'_>,
) -> Vec<QuotablePassage<'l>> {
    let entity = |nth: Option<u32>| ledger.entities.get(nth? as usize);
    let mut places: Vec<NamePlace> = Vec::new();
    for (name, g) in names.zip(0u32..) {
        let Some(entity) = entity(name) else { continue };
        for m in telling(entity) {
            let at = ledger.excerpts.partition_point(|e| {
                (e.ordinal, e.part, e.start) <= (m.place.ordinal, m.place.part, m.start)
            });
            let Some(at) = at.checked_sub(1) else {
                continue;
            };
            let Some(excerpt) = ledger.excerpts.get(at) else {
                continue;
            };
            places.push(NamePlace {
                excerpt: at as u32,
                offset: m.start.saturating_sub(excerpt.start),
                length: entity.text.len() as u32,
                group: g,
            });
        }
    }
    places.sort_unstable();
    let tools = tools(ledger);
    places
        .chunk_by(|a, b| a.excerpt == b.excerpt)
        .filter_map(|chunk| {
            let excerpt = ledger.excerpts.get(chunk.first()?.excerpt as usize)?;
            let mut passage = passage(excerpt, chunk, root);
            if excerpt.voice == Voice::Call {
                passage.tool = tools.get(&excerpt.ordinal).copied().flatten();
            }
            Some(passage)
        })
        .collect()
}

/// The tool of each entry that calls; `None` where it calls several.
fn tools(ledger: &Ledger) -> HashMap<u32, Option<&str>, foldhash::fast::FixedState> {
    let mut tools = HashMap::default();
    for run in &ledger.facts.runs {
        let tool = run.text.split(':').next();
        tools
            .entry(run.ordinal)
            .and_modify(|known| *known = None)
            .or_insert(tool);
    }
    tools
}

/// A name said so often is told by those who said it: what a tool echoes adds nothing.
const SAID_OFTEN: u32 = 4;

/// The mentions that show what a name means.
fn telling(entity: &Entity) -> impl Iterator<Item = &Mention> {
    let echoes = match entity.spoken_count() >= SAID_OFTEN {
        true => &[],
        false => entity.heard.as_slice(),
    };
    entity.spoken.iter().chain(echoes)
}

fn passage<'l>(
    excerpt: &'l Excerpt,
    places: &[NamePlace],
    root: &RootDirectory<'_>,
) -> QuotablePassage<'l> {
    let mut text = String::with_capacity(excerpt.text.len());
    let mut marks = Vec::with_capacity(places.len());
    let mut next = places.iter().peekable();
    let mut skip = after_line_number(excerpt, 0);
    for (i, c) in excerpt.text.char_indices() {
        let hidden = match c == '/' && i >= skip {
            true => root.hides(&excerpt.text, i),
            false => 0,
        };
        while let Some(place) = next.next_if(|p| p.offset as usize <= i) {
            if i < skip {
                continue;
            }
            let lo = text.len() as u32;
            let hi = lo + place.length.saturating_sub(hidden as u32);
            marks.push(NameMark {
                group: place.group,
                lo,
                hi,
                from: lo,
                to: hi,
                need: 0,
            });
        }
        skip = skip.max(i + hidden);
        if i >= skip {
            collapse(c, &mut text);
        }
        if c == '\n' {
            skip = after_line_number(excerpt, i + 1);
        }
    }
    text.truncate(text.trim_end().len());
    marks.retain(|m| m.hi as usize <= text.len());
    let words = word_ranges(&text);
    for mark in &mut marks {
        mark.widen(&text, &words, slack(excerpt.voice));
    }
    QuotablePassage {
        excerpt,
        text,
        marks,
        tool: None,
        words,
    }
}

/// The byte after what a tool put before the line at `at`: its number, or for a line around a match
/// its file and number. `at` when there is nothing of that kind.
fn after_line_number(excerpt: &Excerpt, at: usize) -> usize {
    if excerpt.voice != Voice::Tool {
        return at;
    }
    let line = excerpt.text.get(at..).unwrap_or("");
    let number = line.trim_start_matches([' ', '\t']);
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = number.len() - rest.len();
    match rest.chars().next() {
        Some(c @ (':' | '→' | '\t' | '|')) if (1..=6).contains(&digits) => {
            at + line.len() - rest.len() + c.len_utf8()
        }
        _ => at + match_prefix_length(line),
    }
}

/// The bytes of `src/a.go-41-` at the start of a line.
fn match_prefix_length(line: &str) -> usize {
    let end = line.find([' ', '\t', '\n', ':']).unwrap_or(line.len());
    let word = line.get(..end).unwrap_or("");
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    word.match_indices('-')
        .filter_map(|(i, _)| Some((word.get(..i)?, word.get(i + 1..)?)))
        .filter(|(file, _)| file.contains('.'))
        .find_map(|(file, rest)| {
            let (number, _) = rest.split_once('-')?;
            is_number(number).then_some(file.len() + number.len() + 2)
        })
        .unwrap_or(0)
}

fn collapse(c: char, text: &mut String) {
    if c.is_ascii_graphic() {
        text.push(c);
    } else if c == '\n' {
        let len = text.trim_end_matches(' ').len();
        text.truncate(len);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    } else if c.is_whitespace() {
        if !text.is_empty() && !text.ends_with(['\n', ' ']) {
            text.push(' ');
        }
    } else if !c.is_control() {
        text.push(c);
    }
}

impl NameMark {
    /// Finds the smallest stretch around the name with enough of the words near it, ended at a line or sentence
    /// where one is close, and how many words are enough.
    fn widen(&mut self, text: &str, words: &[(u32, u32)], slack: usize) {
        let first = words.partition_point(|w| w.0 < self.lo.saturating_sub(CONTEXT));
        let before = words.partition_point(|w| w.1 <= self.lo);
        let after = words.partition_point(|w| w.0 < self.hi);
        let end = words.partition_point(|w| w.1 <= self.hi + CONTEXT);
        let mut left = words
            .get(first..before)
            .unwrap_or_default()
            .iter()
            .rev()
            .peekable();
        let mut right = words.get(after..end).unwrap_or_default().iter().peekable();
        let around = left.len() + right.len();
        let need = (around as f64 * SHARE).ceil() as u32;
        let (mut from, mut to) = (self.lo, self.hi);
        for _ in 0..need {
            let near = match (left.peek(), right.peek()) {
                (Some(l), Some(r)) => self.lo - l.0 <= r.1 - self.hi,
                (Some(_), None) => true,
                _ => false,
            };
            match near {
                true => from = left.next().map_or(from, |w| w.0),
                false => to = right.next().map_or(to, |w| w.1),
            }
        }
        self.from = widen_left(text, from as usize, slack) as u32;
        self.to = widen_right(text, to as usize, slack) as u32;
        self.need = match around < FEWEST {
            true => u32::MAX,
            false => need,
        };
    }
}

/// Words that carry meaning: four letters or three digits and more.
fn word_ranges(text: &str) -> Vec<(u32, u32)> {
    let mut out = Vec::with_capacity(text.len() / 10);
    let mut start = None;
    let mut digits = true;
    for (i, b) in text.bytes().chain([b' ']).enumerate() {
        let letter = b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
        match (letter, start) {
            (true, None) => (start, digits) = (Some(i), b.is_ascii_digit()),
            (true, Some(_)) => digits &= b.is_ascii_digit(),
            (false, Some(s)) => {
                if i - s >= 4 || (digits && i - s == 3) {
                    out.push((s as u32, i as u32));
                }
                start = None;
            }
            (false, None) => {}
        }
    }
    out
}

fn widen_left(text: &str, from: usize, slack: usize) -> usize {
    let floor = char_floor(text, from.saturating_sub(slack));
    let near = text.get(floor..from).unwrap_or("");
    let line = near.rfind('\n').map(|i| i + 1);
    let sentence = near.rfind(". ").map(|i| i + 2);
    if let Some(start) = line.max(sentence) {
        return floor + start;
    }
    if floor == 0 {
        return 0;
    }
    // Never inside a word.
    let head = text.get(..from).unwrap_or("");
    let word = head.rfind([' ', '\n']).map_or(0, |i| i + 1);
    char_floor(text, word.max(from.saturating_sub(200)))
}

fn widen_right(text: &str, to: usize, slack: usize) -> usize {
    let ceiling = char_floor(text, (to + slack).min(text.len()));
    let near = text.get(to..ceiling).unwrap_or("");
    let sentence = near.find(". ").map_or(near.len(), |i| i + 1);
    let end = near.find('\n').map_or(sentence, |line| line.min(sentence));
    if end < near.len() || ceiling == text.len() {
        return to + end;
    }
    let tail = text.get(to..).unwrap_or("");
    let word = tail.find([' ', '\n']).unwrap_or(tail.len());
    char_floor(text, to + word.min(200))
}

fn char_floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0)
}
