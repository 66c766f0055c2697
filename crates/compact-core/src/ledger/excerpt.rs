//! The text around mentions: cut once, shared by every name in it, dropped when no name needs it.
//!
//! An excerpt is the union of the windows of mentions in one block. Cutting works the same from an
//! entry's reading and from older excerpts, which is what makes ledgers mergeable.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::entity::{BlockPlace, Entity, Mention, Voice};
use super::reading::BlockReading;

/// How far a window reaches on each side of a name, in bytes: further in prose, whose sentences are
/// to be quoted whole.
const REACH: usize = 112;
const PROSE_REACH: usize = 208;
/// How much further, to the end of a line.
const LINE_REACH: usize = 140;

/// A stretch of a block's reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The entry's ordinal.
    pub ordinal: u32,
    /// The block's index.
    pub part: u16,
    /// The byte of the block's reading at which the text starts.
    pub start: u32,
    /// Who speaks.
    pub voice: Voice,
    /// The text.
    pub text: Box<str>,
}

impl Excerpt {
    /// The byte after the text in the block's reading.
    pub fn end(&self) -> u32 {
        self.start + self.text.len() as u32
    }

    fn place(&self) -> BlockPlace {
        BlockPlace {
            ordinal: self.ordinal,
            part: self.part,
        }
    }
}

/// A window in a block's reading.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ExcerptWindow {
    pub(super) place: BlockPlace,
    /// Its first byte.
    pub(super) start: u32,
    /// The byte after it.
    pub(super) end: u32,
}

impl ExcerptWindow {
    /// The text that is kept around a mention of a name of so many bytes.
    pub(super) fn around(m: &Mention, name: usize) -> ExcerptWindow {
        ExcerptWindow {
            place: m.place,
            start: m.start - u32::from(m.before),
            end: m.start + name as u32 + u32::from(m.after),
        }
    }

    /// Grows to hold the next window too, if that begins before this one ends.
    pub(super) fn join(&mut self, next: ExcerptWindow) -> bool {
        let touches = self.place == next.place && next.start <= self.end;
        if touches {
            self.start = self.start.min(next.start);
            self.end = self.end.max(next.end);
        }
        touches
    }
}

/// Sets how much text around the name at `mention` is kept: whole words within reach.
pub(super) fn measure(mention: &mut Mention, name: usize, reading: &BlockReading<'_>) {
    let text = &*reading.text;
    let reach = match reading.voice {
        Voice::Call | Voice::Tool => REACH,
        _ => PROSE_REACH,
    };
    let start = mention.start as usize;
    let end = (start + name).min(text.len());
    let (mut from, mut to) = (word_start(text, start, reach), word_end(text, end, reach));
    if reach == REACH {
        (from, to) = (line_start(text, from), line_end(text, to));
    }
    mention.before = (start - from) as u8;
    mention.after = (to - end) as u8;
}

/// The start of the line at `at`, if that is near.
fn line_start(text: &str, at: usize) -> usize {
    let far = at.saturating_sub(LINE_REACH);
    let near = text.as_bytes().get(far..at).unwrap_or_default();
    match memchr::memrchr(b'\n', near) {
        Some(i) => far + i + 1,
        None if far == 0 => 0,
        None => at,
    }
}

/// The end of the line at `at`, if that is near.
fn line_end(text: &str, at: usize) -> usize {
    let far = (at + LINE_REACH).min(text.len());
    let near = text.as_bytes().get(at..far).unwrap_or_default();
    match memchr::memchr(b'\n', near) {
        Some(i) => at + i,
        None if far == text.len() => far,
        None => at,
    }
}

fn word_start(text: &str, at: usize, reach: usize) -> usize {
    let far = at.saturating_sub(reach);
    if far == 0 {
        return 0;
    }
    let bytes = text.as_bytes().get(far..at).unwrap_or_default();
    let space = bytes.iter().position(|b| b.is_ascii_whitespace());
    match space {
        Some(i) => far + i + 1,
        None => (far..=at).find(|i| text.is_char_boundary(*i)).unwrap_or(at),
    }
}

fn word_end(text: &str, at: usize, reach: usize) -> usize {
    let far = at.saturating_add(reach);
    if far >= text.len() {
        return text.len();
    }
    let bytes = text.as_bytes().get(at..far).unwrap_or_default();
    let space = bytes.iter().rposition(|b| b.is_ascii_whitespace());
    match space {
        Some(i) => at + i,
        None => (at..=far)
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(at),
    }
}

pub(super) type BlockPlaces = HashSet<BlockPlace, foldhash::fast::FixedState>;

/// The windows of the mentions in these places, sorted and joined where they touch.
fn windows(entities: &[Entity], places: &BlockPlaces) -> Vec<ExcerptWindow> {
    let mut all: Vec<ExcerptWindow> = entities
        .iter()
        .flat_map(|e| e.mentions().map(|m| (m, e.text.len())))
        .filter(|(m, _)| places.contains(&m.place))
        .map(|(m, name)| ExcerptWindow::around(m, name))
        .collect();
    all.sort_unstable();
    let mut joined: Vec<ExcerptWindow> = Vec::with_capacity(all.len() / 2);
    for next in all {
        if !joined.last_mut().is_some_and(|last| last.join(next)) {
            joined.push(next);
        }
    }
    joined
}

/// Cuts the excerpts in these places anew: names were added there, or need them no longer.
pub(super) fn recut(entities: &[Entity], places: &BlockPlaces, excerpts: &mut Vec<Excerpt>) {
    let in_order = |e: &Excerpt| (e.ordinal, e.part, e.start);
    if !places.is_empty() {
        let is_stale = |e: &mut Excerpt| places.contains(&e.place());
        let mut stale: Vec<Excerpt> = excerpts.extract_if(.., is_stale).collect();
        stale.sort_by_key(in_order);
        excerpts.extend(cut_windows(&windows(entities, places), stale));
    }
    excerpts.sort_by_key(in_order);
}

/// Cuts `windows` out of excerpts that contain them, both sorted by place.
fn cut_windows(windows: &[ExcerptWindow], sources: Vec<Excerpt>) -> Vec<Excerpt> {
    let mut out = Vec::with_capacity(windows.len());
    let mut sources = sources.into_iter().peekable();
    for &ExcerptWindow { place, start, end } in windows {
        while sources
            .next_if(|s| (s.place(), s.end()) < (place, end))
            .is_some()
        {}
        // Most are needed as they are.
        if let Some(whole) =
            sources.next_if(|s| (s.place(), s.start, s.end()) == (place, start, end))
        {
            out.push(whole);
            continue;
        }
        let Some(source) = sources.peek() else { break };
        let from = start.saturating_sub(source.start) as usize;
        let to = end.saturating_sub(source.start) as usize;
        if let Some(text) = source.text.get(from..to) {
            out.push(Excerpt {
                ordinal: place.ordinal,
                part: place.part,
                start,
                voice: source.voice,
                text: text.into(),
            });
        }
    }
    out
}
