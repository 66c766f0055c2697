//! Who speaks in a text that stands in the user's place: the person, or the host around them.
//!
//! Hosts write reminders, surroundings, templates and the output of programs into the user's messages. What a program
//! printed may hold a closing tag and an order behind it, so an element ends with the last closing tag of any
//! host's element, and a text that opens with the output of a program is the host's to its end. What the words
//! mean is left to the ledger; whether a whole entry is the host's, to the formats.

mod paste;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

pub use paste::{PastedParts, is_letter, leave_out_pasted, mark_pasted, own_words};

use crate::cue_list::{WordList, cue_file};

static REPORT_ELEMENTS: WordList = WordList::new(cue_file!("report_element"));
static ASIDE_ELEMENTS: WordList = WordList::new(cue_file!("aside_element"));
static HOST_OPENINGS: WordList = WordList::new(cue_file!("host_opening"));
static HANDOVERS: WordList = WordList::new(cue_file!("handover"));
static PROGRAM_NAMES: WordList = WordList::new(cue_file!("program_name"));

/// Whose words a text in the user's place is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speech<'t> {
    /// The person's, all of it.
    Person,
    /// The host's, all of it.
    Host,
    /// The host wrote around the person's words, which are these.
    Mixed(Cow<'t, str>),
}

/// Returns whose words a text in the user's place is.
pub fn attribute_speech(text: &str) -> Speech<'_> {
    if is_host_opening(text) {
        return Speech::Host;
    }
    let own = before_handover(text);
    match attribute_elements(own) {
        Speech::Person if own.len() < text.len() && own.trim().is_empty() => Speech::Host,
        Speech::Person if own.len() < text.len() => Speech::Mixed(Cow::Borrowed(own.trim())),
        speech => speech,
    }
}

/// What stands before the line that hands over to a program.
fn before_handover(text: &str) -> &str {
    let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    let handover = lines.find(|(_, line)| HANDOVERS.after_opening(line).is_some());
    handover.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// Whose words a text is, by the elements in it.
fn attribute_elements(text: &str) -> Speech<'_> {
    let Some(host) = host_range(text) else {
        return Speech::Person;
    };
    let before = text.get(..host.start).unwrap_or("").trim();
    let after = text.get(host.end..).unwrap_or("").trim();
    match (before.is_empty(), after.is_empty()) {
        (true, true) => Speech::Host,
        (true, false) => Speech::Mixed(Cow::Borrowed(after)).without_blank_element(),
        (false, true) => Speech::Mixed(Cow::Borrowed(before)),
        (false, false) => Speech::Mixed(Cow::Owned(format!("{before}\n{after}"))),
    }
}

impl<'t> Speech<'t> {
    /// An element around nothing, such as a command's arguments that were not given, is nobody's words.
    fn without_blank_element(self) -> Speech<'t> {
        match self {
            Speech::Mixed(words) if strip_tags(&words).trim().is_empty() => Speech::Host,
            other => other,
        }
    }
}

/// Whether a message of the user's role bears the name of a program.
pub fn is_program_name(name: &str) -> bool {
    PROGRAM_NAMES.is_part_of(&name.to_ascii_lowercase())
}

/// Whether the text opens as one that a host or a tool wrote.
fn is_host_opening(text: &str) -> bool {
    let text = text.trim_start();
    let opens_with_report = || {
        let name = text.strip_prefix('<').map(element_name);
        name.is_some_and(|name| REPORT_ELEMENTS.is_part_of(name))
    };
    HOST_OPENINGS.after_opening(text).is_some()
        || opens_with_report()
        || is_tool_answer(text)
        || is_notice(text)
}

/// `[Request interrupted by user for tool use]` and the like, and nothing else.
fn is_notice(text: &str) -> bool {
    let text = text.trim_end();
    let interruption = text.strip_prefix("[Request interrupted by user");
    text == "System: Please continue."
        || interruption.is_some_and(|rest| rest.find(']').is_some_and(|at| at + 1 == rest.len()))
}

/// `[read_file for 'a.rs'] Result:`, as agents answer who write their calls as text.
fn is_tool_answer(text: &str) -> bool {
    let line = text.lines().next().unwrap_or("");
    line.starts_with('[') && line.trim_end().ends_with("] Result:")
}

/// From the first element of a host's to the last closing tag of one; an element that is never closed was cut.
fn host_range(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut open: Option<usize> = None;
    let mut end = None;
    for at in memchr::memchr_iter(b'<', bytes) {
        let tag = text.get(at + 1..).unwrap_or("");
        match tag.strip_prefix('/') {
            Some(closing) if open.is_some() && is_host_element(element_name(closing)) => {
                let width = tag.find('>').map_or(tag.len(), |i| i + 1);
                end = Some(at + 1 + width);
            }
            None if open.is_none() && is_host_element(element_name(tag)) => open = Some(at),
            _ => {}
        }
    }
    let start = open?;
    let begins_line = text.get(..start).is_some_and(|head| {
        let head = head.trim_end_matches([' ', '\t']);
        head.is_empty() || head.ends_with('\n')
    });
    match end {
        Some(end) => Some(start..end),
        None => begins_line.then_some(start..text.len()),
    }
}

/// Returns a tool's answer without the notice that the host put behind it.
pub(crate) fn before_notice(answer: &str) -> &str {
    let before = || {
        let (_, name) = answer.trim_end().strip_suffix('>')?.rsplit_once("</")?;
        let (before, _) = answer.rsplit_once(&format!("\n<{name}>"))?;
        ASIDE_ELEMENTS.is_part_of(name).then(|| before.trim_end())
    };
    before().unwrap_or(answer)
}

fn is_host_element(name: &str) -> bool {
    !name.is_empty() && (REPORT_ELEMENTS.is_part_of(name) || ASIDE_ELEMENTS.is_part_of(name))
}

/// The longest name of an element that is looked at.
const NAME: usize = 48;

/// The name of the element whose tag goes on like this; empty when it is no tag.
fn element_name(tag: &str) -> &str {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':');
    let end = tag.bytes().take(NAME).take_while(|b| is_part(b)).count();
    let name = tag.get(..end).unwrap_or("");
    let closes = tag
        .as_bytes()
        .get(end)
        .is_none_or(|b| matches!(b, b'>' | b'/') || b.is_ascii_whitespace());
    if closes { name } else { "" }
}

/// Returns a text without the tags of the element that holds all of it.
pub fn strip_tags(text: &str) -> &str {
    let text = text.trim();
    let inside = || {
        let (tag, rest) = text.strip_prefix('<')?.split_once('>')?;
        let name = element_name(tag);
        let inside = rest
            .strip_suffix('>')?
            .strip_suffix(name)?
            .strip_suffix("</")?;
        (!name.is_empty()).then(|| inside.trim())
    };
    inside().unwrap_or(text)
}

/// Returns a text without the characters that no reader sees: marks of direction, of zero width, tags, fillers.
pub fn strip_invisible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !has_invisible(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_invisible(*c)).collect())
}

/// Whether a text holds such a character. ASCII, which is most of every text, holds none and is passed over.
fn has_invisible(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = first_non_ascii(rest.as_bytes()) {
        let mut chars = rest.get(at..).unwrap_or("").chars();
        if chars.next().is_some_and(is_invisible) {
            return true;
        }
        rest = chars.as_str();
    }
    false
}

/// Returns where the first character beyond ASCII begins; eight bytes are looked at together.
fn first_non_ascii(bytes: &[u8]) -> Option<usize> {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    for (nth, word) in words.iter().enumerate() {
        let high = u64::from_le_bytes(*word) & HIGH_BITS;
        if high != 0 {
            return Some(nth * 8 + high.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|byte| !byte.is_ascii())?;
    Some(words.len() * 8 + at)
}

/// Whether nothing is to be seen where this character stands, not even a blank.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Quotes the lines of a text that begin like a heading of what it is to stand in, so that no text speaks
/// for another.
pub fn quote_headings<'t>(text: &'t str, heading: &str) -> Cow<'t, str> {
    let is_heading = |line: &str| line.trim_start().starts_with(heading);
    if !text.split(is_line_break).any(is_heading) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 2);
    for line in text.split_inclusive(is_line_break) {
        if is_heading(line) {
            out.push_str("> ");
        }
        out.push_str(line);
    }
    Cow::Owned(out)
}

/// Whatever a model may take for the end of a line.
pub(crate) fn is_line_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}
