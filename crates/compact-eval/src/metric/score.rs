//! How much of what is needed a text still carries.

use std::collections::HashMap;

use compact_runtime::replay::entity::{EntityClass, is_word, unescape_json};

use super::need::{EntityMention, NeededEntities, own_words, words_near};

/// The fewest needs that make a score.
const FEWEST: usize = 3;
/// The share of a context's words that must be there.
const SHARE: f64 = 0.4;
/// How far from the entity they may stand.
const REACH: usize = 160;
/// How many occurrences of an entity are looked at.
const OCCURRENCES: usize = 40;

/// Shares of what was needed, where enough was.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct RetentionScore {
    /// Of everything that the agent named again.
    pub all: Option<f64>,
    /// Of what nobody handed back.
    pub strict: Option<f64>,
    /// Of what nobody handed back, with its context.
    pub bound: Option<f64>,
}

/// Returns the share of the needed entities that occur in the text.
pub fn kept_share(needed: &NeededEntities<'_>, text: &str) -> Option<f64> {
    let text = unescape_json(text);
    let kept = |(entity, class): &(&&str, &EntityClass)| {
        let name = match class {
            EntityClass::Path => last_two(entity),
            _ => (**entity).to_owned(),
        };
        find_occurrences(&name, &text).next().is_some()
    };
    let count = needed.iter().filter(kept).count();
    (!needed.is_empty()).then(|| count as f64 / needed.len() as f64)
}

/// Returns [`kept_share`] if at least three entities are needed.
pub fn strict_share(needed: &NeededEntities<'_>, text: &str) -> Option<f64> {
    kept_share(needed, text).filter(|_| needed.len() >= FEWEST)
}

/// Returns the share of the entities with a context that stand in the text among words of that context.
pub fn bound_share(contexts: &HashMap<&str, Vec<EntityMention>>, text: &str) -> Option<f64> {
    let text = unescape_json(text);
    let known: Vec<_> = contexts.iter().filter(|(_, m)| !m.is_empty()).collect();
    let bound = known.iter().filter(|(e, m)| is_bound(e, m, &text)).count();
    (known.len() >= FEWEST).then(|| bound as f64 / known.len() as f64)
}

/// Returns whether one occurrence has enough of the words of one mention around it.
pub fn is_bound(entity: &str, mentions: &[EntityMention], text: &str) -> bool {
    let name = if entity.contains('/') && !entity.contains("://") {
        last_two(entity)
    } else {
        entity.to_owned()
    };
    let skip = own_words(&name);
    find_occurrences(&name, text).any(|at| {
        let words = words_near(text, at, at + name.len(), REACH, &skip);
        mentions.iter().any(|m| {
            let common = m.words.intersection(&words).count();
            is_enough(common, m.words.len())
        })
    })
}

/// Returns whether so many words of a context are a context still.
pub(crate) fn is_enough(common: usize, of: usize) -> bool {
    common as f64 >= SHARE * of as f64
}

/// Returns the last two parts of a path, by which it is recognised: an agent knows where it works.
fn last_two(path: &str) -> String {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let from = parts.len().saturating_sub(2);
    parts.get(from..).unwrap_or_default().join("/")
}

/// Returns where an entity stands in a text by itself, not as a part of a longer word.
fn find_occurrences<'t>(entity: &'t str, text: &'t str) -> impl Iterator<Item = usize> + 't {
    let opens = entity.chars().next().is_some_and(char::is_alphanumeric);
    let step = entity.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    let places = std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(entity)?;
        from = at + step;
        Some(at)
    });
    places
        .filter(move |at| {
            let before = text.get(..*at).and_then(|t| t.chars().next_back());
            let behind = text.get(at + entity.len()..).and_then(|t| t.chars().next());
            let is_part = opens && before.is_some_and(is_word);
            !is_part && !behind.is_some_and(is_word)
        })
        .take(OCCURRENCES)
}
