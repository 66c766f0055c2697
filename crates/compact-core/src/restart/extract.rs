//! The checkpoint in an agent's answer, whatever it is wrapped in.
//!
//! Agents fence it, nest it, quote the tag before they use it, write several, repeat the request's
//! own skeleton, or run out of room before they close it. What remains when none of that helps is
//! the answer itself; what remains of no answer is nothing, and the ledger has to speak.

use std::ops::Range;

use super::REQUEST;
use crate::prompt::is_refusal;

const NAME: &str = "checkpoint";

/// How a checkpoint was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointWrapping {
    /// Between its tags.
    Tagged,
    /// Behind an opening tag that nothing closes.
    Unclosed,
    /// No tags: the whole answer.
    Untagged,
}

/// A checkpoint with how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtractedCheckpoint {
    /// Its text, never empty.
    pub text: String,
    /// How it was found.
    pub wrapping: CheckpointWrapping,
}

/// The checkpoint in an answer; nothing when the answer is empty, refuses, or only repeats what was
/// asked.
pub fn extract_checkpoint(answer: &str) -> Option<ExtractedCheckpoint> {
    let blocks = blocks(answer);
    let found = |wrapping| {
        let blocks = blocks.iter().filter(|block| block.wrapping == wrapping);
        let texts = blocks.filter_map(|block| Some(unfenced(answer.get(block.span.clone())?)));
        // Of several, the last is the newest.
        let text = texts.rev().find(|text| has_content(text))?.to_owned();
        Some(ExtractedCheckpoint { text, wrapping })
    };
    if let Some(tagged) =
        found(CheckpointWrapping::Tagged).or_else(|| found(CheckpointWrapping::Unclosed))
    {
        return Some(tagged);
    }
    let text = untagged(unfenced(answer)).trim().to_owned();
    (has_content(&text) && !is_refusal(&text)).then_some(ExtractedCheckpoint {
        text,
        wrapping: CheckpointWrapping::Untagged,
    })
}

/// A stretch that tags enclose.
struct TaggedStretch {
    span: Range<usize>,
    wrapping: CheckpointWrapping,
}

/// The outermost stretches between tags, in order.
fn blocks(text: &str) -> Vec<TaggedStretch> {
    let mut out = Vec::new();
    let mut open: Option<(CheckpointTag, u32)> = None;
    let mut closed_at = None;
    let enclose = |opening: &CheckpointTag, end, wrapping| TaggedStretch {
        span: opening.span.end..end,
        wrapping,
    };
    for tag in used_tags(text) {
        open = match (tag.side, open) {
            (TagSide::Opens, None) => {
                closed_at = None;
                Some((tag, 1))
            }
            (TagSide::Opens, Some((opening, depth))) => Some((opening, depth + 1)),
            (TagSide::Closes, Some((opening, 1))) => {
                let end = tag.span.start;
                out.push(enclose(&opening, end, CheckpointWrapping::Tagged));
                None
            }
            (TagSide::Closes, Some((opening, depth))) => {
                closed_at = Some(tag.span.start);
                Some((opening, depth - 1))
            }
            (TagSide::Closes, None) => None,
        };
    }
    if let Some((opening, _)) = open {
        // More were opened than closed: the last closing tag ends it all the same.
        out.push(match closed_at {
            Some(end) => enclose(&opening, end, CheckpointWrapping::Tagged),
            None => enclose(&opening, text.len(), CheckpointWrapping::Unclosed),
        });
    }
    out
}

/// The tags but for those that are spoken of: where more are opened than closed, one within a line that
/// is followed by one at the beginning of a line opens nothing.
fn used_tags(text: &str) -> Vec<CheckpointTag> {
    let all: Vec<CheckpointTag> = tags(text).collect();
    let count = |side| all.iter().filter(|tag| tag.side == side).count();
    let mut unclosed = count(TagSide::Opens).saturating_sub(count(TagSide::Closes));
    let next = all.iter().skip(1).map(Some).chain([None]);
    let is_used: Vec<bool> = all
        .iter()
        .zip(next)
        .map(|(tag, next)| {
            let opens =
                |tag: &CheckpointTag, place| tag.side == TagSide::Opens && tag.place == place;
            let is_prose = unclosed > 0
                && opens(tag, TagPlace::WithinLine)
                && next.is_some_and(|next| opens(next, TagPlace::LineStart));
            unclosed -= usize::from(is_prose);
            !is_prose
        })
        .collect();
    let used = all.into_iter().zip(is_used).filter(|(_, used)| *used);
    used.map(|(tag, _)| tag).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TagSide {
    Opens,
    Closes,
}

/// Where a tag stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagPlace {
    WithinLine,
    LineStart,
}

struct CheckpointTag {
    span: Range<usize>,
    side: TagSide,
    place: TagPlace,
}

/// Every tag of a checkpoint, in whichever case and with whatever attributes. One that stands in
/// backticks is spoken of, not used.
fn tags(text: &str) -> impl Iterator<Item = CheckpointTag> {
    text.match_indices('<').filter_map(|(start, _)| {
        let inside = text.get(start + 1..)?;
        let (side, name) = match inside.strip_prefix('/') {
            Some(rest) => (TagSide::Closes, rest),
            None => (TagSide::Opens, inside),
        };
        let (word, rest) = name.split_at_checked(NAME.len())?;
        let attributes = rest.find('>')?;
        let is_tag = word.eq_ignore_ascii_case(NAME)
            && rest.starts_with(|c: char| c == '>' || c.is_whitespace())
            && !rest.get(..attributes)?.contains('<');
        let end = start + 1 + (inside.len() - rest.len()) + attributes + 1;
        let before = text.get(..start)?;
        let is_quoted = before.ends_with('`') && text.get(end..)?.starts_with('`');
        let line = before.rsplit('\n').next().unwrap_or_default();
        let place = match line.trim().is_empty() {
            true => TagPlace::LineStart,
            false => TagPlace::WithinLine,
        };
        (is_tag && !is_quoted).then_some(CheckpointTag {
            span: start..end,
            side,
            place,
        })
    })
}

/// The text without its tags.
fn untagged(text: &str) -> String {
    let mut out = String::new();
    let mut from = 0;
    for tag in tags(text) {
        out.push_str(text.get(from..tag.span.start).unwrap_or_default());
        from = tag.span.end;
    }
    out + text.get(from..).unwrap_or_default()
}

/// The text without the fences of code that hold all of it.
fn unfenced(text: &str) -> &str {
    let mut text = text.trim();
    for fence in ["```", "~~~"] {
        while let Some(rest) = text.strip_prefix(fence) {
            let (_, inside) = rest.split_once('\n').unwrap_or(("", ""));
            let inside = inside.trim();
            match inside.strip_suffix(fence) {
                Some(inside) => text = inside.trim(),
                // One that closes further up holds a part only; one that nothing closes was cut off.
                None if inside.contains(fence) => break,
                None => text = inside,
            }
        }
    }
    text
}

/// Words, and not those that were to be replaced.
fn has_content(text: &str) -> bool {
    let placeholders = REQUEST.lines().filter(|line| line.starts_with('['));
    let left = placeholders.filter(|line| text.contains(line)).count();
    left < 2 && text.chars().any(char::is_alphanumeric)
}
