//! The hindsight oracle: a selector that knows what will be needed.
//!
//! For each needed entity it cuts the shortest piece of the original, around one of the last
//! mentions, that still counts as its context, and packs the shortest pieces first. No method can
//! know what it knows, so its score at a budget is a ceiling for excerpts; it is not a proof that no
//! cleverer text exists.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use compact_runtime::replay::entity::unescape_json;

use crate::metric::MetricSession;
use crate::metric::need::{EntityMention, NeededEntities, own_words, split_words};
use crate::metric::score::{is_bound, is_enough};
use crate::text::{chars_around, count_chars};

/// How far a piece may reach, as far as the words of a mention do.
const REACH: usize = 80;

/// Returns the text that hindsight would keep.
pub fn pack_excerpts<'s>(
    session: &'s MetricSession,
    needed: &NeededEntities<'s>,
    contexts: &HashMap<&'s str, Vec<EntityMention>>,
    budget: usize,
) -> String {
    let mut pieces: Vec<(&str, String)> = needed
        .keys()
        .map(|entity| {
            (
                *entity,
                shortest_excerpt(session, entity, contexts.get(entity)),
            )
        })
        .collect();
    pieces.sort_by_cached_key(|(entity, piece)| (count_chars(piece), *entity));
    let mut out = String::new();
    let mut room = budget * 4;
    for (entity, piece) in pieces {
        let known = contexts.get(entity).map_or(&[][..], Vec::as_slice);
        let cost = count_chars(&piece) + 1;
        if cost > room || is_bound(entity, known, &out) {
            continue;
        }
        room -= cost;
        out.push_str(&piece);
        out.push('\n');
    }
    out
}

/// Returns the shortest piece around a mention that carries the entity; the bare entity where none is known.
fn shortest_excerpt(
    session: &MetricSession,
    entity: &str,
    mentions: Option<&Vec<EntityMention>>,
) -> String {
    let mentions = mentions.map_or(&[][..], Vec::as_slice);
    let pieces = mentions.iter().filter_map(|mention| {
        let text = unescape_json(&session.events.get(mention.event)?.text);
        let piece = text.get(grow_excerpt(&text, entity, mention))?;
        // A mention may be part of a longer word; the entity itself stands before such a piece.
        let stands = is_bound(entity, mentions, piece);
        Some(if stands {
            piece.to_owned()
        } else {
            format!("{entity} {piece}")
        })
    });
    pieces
        .min_by_key(|piece| count_chars(piece))
        .unwrap_or_else(|| entity.to_owned())
}

/// Grows from the entity to the nearest word on either side until enough of them are in.
fn grow_excerpt(text: &str, entity: &str, mention: &EntityMention) -> Range<usize> {
    let end = mention.at + entity.len();
    let (before, after) = chars_around(text, mention.at, end, REACH);
    let first = mention.at - before.len();
    let mut left: Vec<_> = split_words(before)
        .map(|(r, w)| (first + r.start, w))
        .collect();
    let mut right: Vec<_> = split_words(after).map(|(r, w)| (end + r.end, w)).collect();
    right.reverse();
    let skip = own_words(entity);
    let mut piece = mention.at..end;
    let mut have = HashSet::new();
    while !is_enough(have.len(), mention.words.len()) {
        let to_left = left.last().map(|(at, _)| piece.start - at);
        let to_right = right.last().map(|(at, _)| at - piece.end);
        let (edge, word) = match (to_left, to_right) {
            (Some(l), r) if r.is_none_or(|r| l <= r) => match left.pop() {
                Some((at, word)) => (at..piece.end, word),
                None => break,
            },
            _ => match right.pop() {
                Some((at, word)) => (piece.start..at, word),
                None => break,
            },
        };
        piece = edge;
        if !skip.contains(&word) && mention.words.contains(&word) {
            have.insert(word);
        }
    }
    piece
}
