//! Clipping: the head and the tail of a long text with a pointer to the whole in between.
//!
//! Used where a text must stay in its place but not at its length: a huge tool result, a huge
//! request, of which the sentences that rule stay too, a long reply, of which the passages stay that tell most. A call's arguments stay a JSON object, because providers reject anything else; they point to
//! the whole where there is room for it.

mod kept;
mod lines;
mod reply;
mod request;

use std::cell::Cell;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::message::{Block, Entry, EntryKind, Role};
use crate::speech::before_notice;
use crate::token::{Estimator, EstimatorExt, Tokens, Units};
use crate::view::BlockEdit;

pub(crate) use kept::CutEntries;
pub(crate) use kept::CutEntry;

/// Share of a clipped text that its head gets; the end of an output tells more than its middle.
const HEAD_SHARE: f64 = 0.6;

/// Fewer characters than this of a tool's answer tell nothing, and of a call's argument leave no room
/// to say where the whole is.
const SCRAP: usize = 64;

/// Where a piece ends or begins within a word, it gives up as much of it as this, or one part in so many
/// of itself if that is less.
const WORD: usize = 32;
const WORD_PART: usize = 2;

/// A cut hides at least so many times what its marker takes: less is not worth a reader's trouble.
const WORTH: usize = 2;
/// A message of fewer characters stands whole where there is room for more than its pointer: what two half sentences and
/// a pointer save of it, a reader pays for with the whole of it.
const SHORT_MESSAGE: usize = 360;
/// A cut hides at least so many characters of a message, or one part in so many of it if that is less.
const HIDDEN: usize = 240;
const HIDDEN_PART: usize = 3;

/// So many tokens of the model's words are not cut where anything is left.
const FEW_WORDS: Tokens = Tokens(24);

/// A call tells more for its length than an answer: it may be so many times as long.
const CALL_SHARE: u64 = 8;

/// Says where the whole text is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClipPointer<'a> {
    /// The receipt that restores it.
    pub receipt: &'a str,
    /// The entry's ordinal in its session.
    pub ordinal: u64,
}

/// Text cut to at most `limit` units; `None` when it fits as it is. A text too short to hide much of is
/// left alone too, unless there is room for its pointer at most.
pub(crate) fn clip_text(
    text: &str,
    limit: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let cost = estimator.count_units(text);
    if cost <= limit {
        return None;
    }
    let total = text.chars().count();
    let marker = marker(total, pointer);
    let marker_cost = estimator.count_units(&marker);
    let alone = || head_and_tail(text, total, 0, pointer);
    let Some(most) = total.checked_sub(WORTH * marker.chars().count()) else {
        return (limit < marker_cost && marker_cost < cost).then(alone);
    };
    let room = (limit - marker_cost).0 as f64;
    let mut chars = (total as f64 * room / cost.0.max(1) as f64) as usize;
    chars = chars.min(most);
    // Tokens are not spread evenly over a text: shrink until the count agrees.
    for _ in 0..8 {
        let cut = head_and_tail(text, total, chars, pointer);
        if chars == 0 || estimator.count_units(&cut) <= limit {
            return Some(cut);
        }
        chars = chars * 4 / 5;
    }
    Some(alone())
}

/// A message cut as any text is, but whole where that would hide little of it.
pub(crate) fn clip_message(
    text: &str,
    limit: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let cut = clip_text(text, limit, estimator, pointer)?;
    let total = text.chars().count();
    let marker = marker(total, pointer);
    if limit < estimator.count_units(&marker) {
        return Some(cut);
    }
    let shown = cut.chars().count().saturating_sub(marker.chars().count());
    let is_worth_it = total - shown.min(total) >= HIDDEN.min(total / HIDDEN_PART);
    (total >= SHORT_MESSAGE && is_worth_it).then_some(cut)
}

/// How often a cut is tried that turned out too long.
const TRIES: usize = 6;

/// A text cut by `cut_to`, which is given fewer and fewer characters until what it makes fits; `plain` where it makes nothing
/// that does.
fn cut_until_fitting(
    plain: String,
    mut chars: usize,
    limit: Units,
    estimator: &dyn Estimator,
    cut_to: impl Fn(usize) -> Option<String>,
) -> String {
    for _ in 0..TRIES {
        match cut_to(chars) {
            None => return plain,
            Some(cut) if estimator.count_units(&cut) <= limit => return cut,
            Some(_) => chars = chars * 9 / 10,
        }
    }
    plain
}

/// An answer cut to the lines that tell most where they stand between its head and its tail, else as a text is, but to its
/// pointer alone where only scraps would be left of it. What its host put behind it goes first.
fn clip_answer(
    whole: &str,
    limit: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let plain = clip_text(whole, limit, estimator, pointer)?;
    let own = before_notice(whole);
    if own.len() < whole.len() {
        let notice = whole.chars().count() - own.chars().count();
        let marked = [own, marker(notice, pointer).trim_end()].concat();
        return match estimator.count_units(&marked) <= limit {
            true => Some(marked),
            false => clip_answer(own, limit, estimator, pointer).or(Some(plain)),
        };
    }
    let cut = lines::clip_to_lines(whole, limit, estimator, pointer).unwrap_or(plain);
    let total = whole.chars().count();
    let alone = head_and_tail(whole, total, 0, pointer);
    match cut.chars().count() < alone.chars().count() + SCRAP {
        true => Some(alone),
        false => Some(cut),
    }
}

/// A text's beginning and end of so many characters together.
fn split_ends(text: &str, chars: usize) -> (&str, &str) {
    let head = (chars as f64 * HEAD_SHARE) as usize;
    let (head, _) = text.split_at(char_offset(text, head));
    let rest = chars - head.chars().count();
    let (_, tail) = text.split_at(char_offset_from_end(text, rest));
    // A marker has blanks of its own.
    (
        whole_words_before(head, text).trim_end_matches(' '),
        whole_words_after(tail, text).trim_start_matches(' '),
    )
}

fn head_and_tail(text: &str, total: usize, chars: usize, pointer: ClipPointer<'_>) -> String {
    let (head, tail) = split_ends(text, chars);
    let left_out = total - head.chars().count() - tail.chars().count();
    let mut cut = [head, &marker(left_out, pointer), tail].concat();
    if tail.is_empty() {
        // Some providers refuse a last message that ends in white space.
        cut.truncate(cut.trim_end().len());
    }
    cut
}

/// Where the n-th character of a text begins.
fn char_offset(text: &str, nth: usize) -> usize {
    let mut starts = text.char_indices().map(|(at, _)| at);
    starts.nth(nth).unwrap_or(text.len())
}

/// Where the last characters of a text begin, so many of them.
fn char_offset_from_end(text: &str, count: usize) -> usize {
    let mut starts = text.char_indices().rev().map(|(at, _)| at);
    match count.checked_sub(1) {
        None => text.len(),
        Some(before) => starts.nth(before).unwrap_or(0),
    }
}

/// A text's beginning without the word that its end cuts, if that began near by.
fn whole_words_before<'t>(head: &'t str, text: &str) -> &'t str {
    let goes_on = text.get(head.len()..).unwrap_or_default();
    if goes_on.starts_with(char::is_whitespace) {
        return head;
    }
    let near = WORD.min(head.chars().count() / WORD_PART);
    let mut last = head.char_indices().rev().take(near);
    let end = last.find(|(_, c)| c.is_whitespace());
    end.map_or(head, |(at, c)| {
        head.get(..at + c.len_utf8()).unwrap_or(head)
    })
}

/// A text's end without the word that its beginning cuts, if that ends near by.
fn whole_words_after<'t>(tail: &'t str, text: &str) -> &'t str {
    let before = text.get(..text.len() - tail.len()).unwrap_or_default();
    if before.ends_with(char::is_whitespace) {
        return tail;
    }
    let near = WORD.min(tail.chars().count() / WORD_PART);
    let mut first = tail.char_indices().take(near);
    let start = first.find(|(_, c)| c.is_whitespace());
    start.map_or(tail, |(at, _)| tail.get(at..).unwrap_or(tail))
}

fn marker(left_out: usize, pointer: ClipPointer<'_>) -> String {
    let short: String = pointer.receipt.chars().take(12).collect();
    format!(" […{left_out} chars cut: {short}#{}…] ", pointer.ordinal)
}

/// The edits that bring every text block of an entry down to `level` units.
pub(crate) fn clip_entry(
    entry: &Entry,
    level: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Vec<(usize, BlockEdit)> {
    let is_message = entry.meta.kind == EntryKind::Message;
    let is_request = entry.role == Role::User && is_message;
    let is_reply = entry.role == Role::Assistant && is_message;
    entry
        .blocks
        .iter()
        .enumerate()
        .filter_map(|(i, block)| {
            let new = match block {
                // What is cut of it stands as a message of the model's: none of the tool's words may.
                Block::Text(whole) if entry.meta.kind == EntryKind::HostedTool => {
                    let is_long = estimator.count_units(whole) > level;
                    is_long.then(|| head_and_tail(whole, whole.chars().count(), 0, pointer))
                }
                Block::Text(whole) if is_request => {
                    request::clip_request(whole, level, estimator, pointer)
                }
                Block::Text(whole) if is_reply => {
                    let level = level_of_reply(level, estimator);
                    reply::clip_reply(whole, level, estimator, pointer)
                }
                Block::Text(whole) => clip_message(whole, level, estimator, pointer),
                Block::ToolResult { content, .. } => {
                    clip_answer(content, level, estimator, pointer)
                }
                Block::ToolCall { arguments, .. } => {
                    let level = Units(level.0.saturating_mul(CALL_SHARE));
                    arguments_within(arguments, level, estimator, pointer)
                }
                Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => None,
            };
            new.map(|text| (i, BlockEdit::SetText(text)))
        })
        .collect()
}

/// A few words of the model beside its calls are worth what their pointer would take.
fn level_of_reply(level: Units, estimator: &dyn Estimator) -> Units {
    match level {
        Units(0) => level,
        _ => level.max(estimator.to_units(FEW_WORDS)),
    }
}

/// About what is left of an entry whose texts are cut to `level`: of calls more than of answers.
pub(crate) fn level_for(entry: &Entry, level: Units) -> Units {
    let is_call = |block: &Block| matches!(block, Block::ToolCall { .. });
    match entry.blocks.iter().any(is_call) {
        true => Units(level.0.saturating_mul(CALL_SHARE)),
        false => level,
    }
}

/// Arguments cut inside their JSON strings; free text is cut as text.
fn arguments_within(
    arguments: &str,
    level: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let cost = estimator.count_units(arguments);
    if cost <= level {
        return None;
    }
    let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(arguments) else {
        return clip_text(arguments, level, estimator, pointer);
    };
    let fitting = |each: usize| {
        let pointer = &Cell::new((each >= SCRAP).then_some(pointer));
        let value = &value;
        let cut = serde_json::to_string(&Shortened {
            value,
            each,
            pointer,
        })
        .ok()?;
        (estimator.count_units(&cut) <= level).then_some(cut)
    };
    // Ten thousand short strings never fit, however short: that is seen at once.
    let least = fitting(1);
    let most = longest_string(&value);
    let mut each = arguments.chars().count() / 2;
    while each > 0 && least.is_some() {
        // What is longer than every string cuts none.
        if each < most
            && let Some(cut) = fitting(each)
        {
            return Some(cut);
        }
        each = each * 2 / 3;
    }
    Some(least.unwrap_or_else(|| "{}".to_owned()))
}

/// The characters of the longest string within.
fn longest_string(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.iter().map(longest_string).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(longest_string).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// A value as JSON with every string cut to `each` characters; the first one cut says where the whole is, if it may.
struct Shortened<'v> {
    value: &'v Value,
    each: usize,
    pointer: &'v Cell<Option<ClipPointer<'v>>>,
}

impl Serialize for Shortened<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let within = |value| Shortened { value, ..*self };
        match self.value {
            Value::String(whole) => match whole.chars().count() {
                total if total > self.each => {
                    serializer.serialize_str(&shortened(whole, total, self.each, self.pointer))
                }
                _ => serializer.serialize_str(whole),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(within)),
            Value::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(name, field)| (name, within(field))))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => self.value.serialize(serializer),
        }
    }
}

/// A path tells more at its end, everything else at its beginning.
fn shortened(
    whole: &str,
    total: usize,
    each: usize,
    pointer: &Cell<Option<ClipPointer<'_>>>,
) -> String {
    if whole.contains('/') && !whole.contains(char::is_whitespace) {
        return std::iter::once('…')
            .chain(whole.chars().skip(total - each))
            .collect();
    }
    let (head, _) = whole.split_at(char_offset(whole, each));
    let mut cut = whole_words_before(head, whole).to_owned();
    let left_out = total - cut.chars().count();
    match pointer.take() {
        Some(pointer) => cut.push_str(marker(left_out, pointer).trim_end()),
        None => cut.push('…'),
    }
    cut
}

/// The level at which blocks of these costs add up to at most `limit`: small ones stay whole.
pub(crate) fn water_level(costs: &[Units], limit: Units) -> Units {
    let mut sorted: Vec<u64> = costs.iter().map(|c| c.0).collect();
    sorted.sort_unstable();
    let mut left = limit.0;
    let mut count = sorted.len() as u64;
    for cost in sorted {
        if cost.saturating_mul(count) > left {
            return Units(left / count.max(1));
        }
        left -= cost;
        count -= 1;
    }
    Units(u64::MAX)
}

/// The costs of an entry's blocks that clipping can lower; a call, which may be longer, in parts.
pub(crate) fn block_costs(entry: &Entry, estimator: &dyn Estimator) -> Vec<Units> {
    let parts = |block: &Block| {
        let parts = match block {
            Block::Text(_) | Block::ToolResult { .. } => 1,
            Block::ToolCall { .. } => CALL_SHARE,
            Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => 0,
        };
        let cost = estimator.count_block(block).0.checked_div(parts);
        std::iter::repeat_n(Units(cost.unwrap_or_default()), parts as usize)
    };
    entry.blocks.iter().flat_map(parts).collect()
}

#[cfg(test)]
mod tests;
