//! Where names stand: for each the newest line or sentence that shows it.

use super::revoke::RevokedRules;
use crate::ledger::{Excerpt, Ledger, Mention, Voice, clip};

/// A line that shows a name: the ordinal of its entry, and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameLine {
    pub ordinal: u32,
    pub text: String,
}

/// Looks names up by their indices; what was taken back is not shown.
pub(crate) struct NameLines<'l> {
    ledger: &'l Ledger,
    revoked: RevokedRules<'l>,
}

/// Characters of a line that are quoted.
const CHARS: usize = 240;

impl<'l> NameLines<'l> {
    pub(crate) fn from_ledger(ledger: &'l Ledger) -> Self {
        NameLines {
            ledger,
            revoked: RevokedRules::from_facts(&ledger.facts),
        }
    }

    /// The newest line that shows the n-th name of the ledger.
    pub(crate) fn line_of(&self, nth: usize) -> Option<NameLine> {
        let entity = self.ledger.entities.get(nth)?;
        let newest = entity.spoken.iter().rev().chain(entity.heard.iter().rev());
        newest
            .filter(|mention| !is_argument_name(self.ledger, mention, &entity.text))
            .filter_map(|mention| self.line_at(mention))
            .find(|line| line.text.contains(&*entity.text))
    }

    fn line_at(&self, mention: &Mention) -> Option<NameLine> {
        let (excerpt, offset) = excerpt_at(self.ledger, mention)?;
        let line = line_around(&excerpt.text, offset)?;
        let line = match excerpt.voice {
            Voice::Call => argument_text(line)?,
            _ => line,
        };
        let shown = !self.revoked.appears_in(excerpt.ordinal, line);
        shown.then(|| NameLine {
            ordinal: excerpt.ordinal,
            text: clip(line, CHARS),
        })
    }
}

/// Names of arguments that hold text: those that put something in, and those that take it out.
const PUT_IN: [&str; 8] = [
    "new_string",
    "new_str",
    "newText",
    "newString",
    "new_text",
    "content",
    "file_text",
    "insert_text",
];
const TAKEN_OUT: [&str; 5] = ["old_string", "old_str", "oldText", "oldString", "old_text"];

/// What a line of a call says without the name of its argument; `None` for what the call takes out.
fn argument_text(line: &str) -> Option<&str> {
    match line.split_once(": ") {
        Some((name, _)) if TAKEN_OUT.contains(&name) => None,
        Some((name, rest)) if PUT_IN.contains(&name) => Some(rest),
        _ => Some(line),
    }
}

/// How far before a name the argument that holds it is looked for.
const ARGUMENT_REACH: usize = 8192;

/// Whether a mention stands in what an edit takes out: where it was, it is no more.
pub(super) fn is_taken_out(ledger: &Ledger, mention: &Mention) -> bool {
    let found = excerpt_at(ledger, mention);
    let Some((excerpt, offset)) = found.filter(|(excerpt, _)| excerpt.voice == Voice::Call) else {
        return false;
    };
    let from = excerpt
        .text
        .floor_char_boundary(offset.saturating_sub(ARGUMENT_REACH));
    let before = excerpt.text.get(from..offset).unwrap_or_default();
    let argument = before.lines().rev().find_map(|line| {
        let (name, _) = line.split_once(':')?;
        let name = name.rsplit(' ').next()?;
        (PUT_IN.contains(&name) || TAKEN_OUT.contains(&name)).then_some(name)
    });
    argument.is_some_and(|name| TAKEN_OUT.contains(&name))
}

/// The line that a mention stands in.
pub(super) fn line_of_mention<'l>(ledger: &'l Ledger, mention: &Mention) -> Option<&'l str> {
    let (excerpt, offset) = excerpt_at(ledger, mention)?;
    line_around(&excerpt.text, offset)
}

/// The line around a place in a text; of a very long one the words near it, so that the work is bounded.
fn line_around(text: &str, offset: usize) -> Option<&str> {
    let least = text.floor_char_boundary(offset.saturating_sub(CHARS / 2));
    let most = text.ceil_char_boundary(offset + CHARS);
    let (head, tail) = (text.get(least..offset)?, text.get(offset..most)?);
    let from = match head.rfind('\n') {
        Some(at) => least + at + 1,
        None if least == 0 => 0,
        None => least + head.find(' ').map_or(0, |at| at + 1),
    };
    let to = offset + tail.find('\n').unwrap_or(tail.len());
    text.get(from..to)
}

/// The excerpt that a mention stands in, and where in it.
fn excerpt_at<'l>(ledger: &'l Ledger, mention: &Mention) -> Option<(&'l Excerpt, usize)> {
    let before = |e: &Excerpt| {
        (e.ordinal, e.part, e.start) <= (mention.place.ordinal, mention.place.part, mention.start)
    };
    let at = ledger.excerpts.partition_point(before).checked_sub(1)?;
    let excerpt = ledger.excerpts.get(at)?;
    let offset = mention.start.checked_sub(excerpt.start)? as usize;
    Some((excerpt, offset))
}

/// Whether a mention is no more than the name of a call's argument, or of its tool.
pub(crate) fn is_argument_name(ledger: &Ledger, mention: &Mention, name: &str) -> bool {
    let excerpt = excerpt_at(ledger, mention);
    let is_tool = excerpt.is_some_and(|(e, _)| e.voice == Voice::Call && mention.start == 0);
    let around = excerpt.and_then(|(e, at)| e.text.split_at_checked(at));
    is_tool
        || around.is_some_and(|(head, tail)| {
            let opens = head.is_empty() || head.ends_with(['\n', ' ']);
            let follows = tail.strip_prefix(name);
            opens && follows.is_some_and(|rest| rest.starts_with(": ") || rest.starts_with(":\n"))
        })
}
