//! What is needed of the part before a cut, and the words that gave it its meaning there.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use compact_runtime::replay::entity::{EntityClass, unescape_json};

use super::{EventVoice, MetricSession};
use crate::text::chars_around;

/// Entities with their class.
pub type NeededEntities<'s> = HashMap<&'s str, EntityClass>;

/// The entities that the agent named after a cut and had met before it.
#[derive(Clone, Debug, Default)]
pub struct FutureNeed<'s> {
    /// Everything it named again.
    pub all: NeededEntities<'s>,
    /// What it named before anyone else did.
    pub strict: NeededEntities<'s>,
}

/// Returns the needs of `after` that occurred in `before`, both ranges of events.
pub fn find_need(
    session: &MetricSession,
    before: Range<usize>,
    after: Range<usize>,
) -> FutureNeed<'_> {
    let known: HashSet<&str> = entities_in(session, before).map(|(e, _)| e).collect();
    let mut need = FutureNeed::default();
    let mut seen: HashSet<&str> = HashSet::new();
    for at in after {
        let is_agent = session.events.get(at).is_some_and(|e| e.voice.is_agent());
        let named = || entities_in(session, at..at + 1);
        for (entity, class) in named().filter(|(e, _)| is_agent && known.contains(e)) {
            need.all.insert(entity, class);
            if !seen.contains(entity) {
                need.strict.insert(entity, class);
            }
        }
        seen.extend(named().map(|(e, _)| e));
    }
    need
}

fn entities_in(
    session: &MetricSession,
    events: Range<usize>,
) -> impl Iterator<Item = (&str, EntityClass)> {
    let lists = session.entities.get(events).unwrap_or_default();
    lists
        .iter()
        .flatten()
        .map(|(e, class)| (e.as_str(), *class))
}

/// A set of words.
pub type ContextWords = HashSet<String>;

/// One of the last mentions of an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityMention {
    /// The index of the event.
    pub event: usize,
    /// Where the entity begins in the event's unescaped text.
    pub at: usize,
    /// The words around it.
    pub words: ContextWords,
}

/// How many mentions of an entity count.
const MENTIONS: usize = 6;
/// How far the words of a mention reach.
const REACH: usize = 80;
/// The fewest words that are a context.
const FEWEST: usize = 3;

/// Returns the last mentions of each entity in `before` that have a context, those of agent and user first.
pub fn find_contexts<'s>(
    session: &'s MetricSession,
    before: Range<usize>,
    needed: &NeededEntities<'s>,
) -> HashMap<&'s str, Vec<EntityMention>> {
    let mut out: HashMap<&str, Vec<EntityMention>> =
        needed.keys().map(|e| (*e, Vec::new())).collect();
    for is_first_choice in [true, false] {
        for at in before.clone().rev() {
            let Some(event) = session.events.get(at) else {
                continue;
            };
            let later = matches!(event.voice, EventVoice::Result | EventVoice::System);
            if event.voice == EventVoice::Boundary || later == is_first_choice {
                continue;
            }
            collect_mentions(session, at, &mut out);
        }
    }
    out
}

fn collect_mentions<'s>(
    session: &'s MetricSession,
    at: usize,
    out: &mut HashMap<&'s str, Vec<EntityMention>>,
) {
    let mut text = None;
    for (entity, _) in entities_in(session, at..at + 1) {
        let Some(list) = out.get_mut(entity).filter(|l| l.len() < MENTIONS) else {
            continue;
        };
        let raw = session.events.get(at).map_or("", |e| e.text.as_str());
        let text = text.get_or_insert_with(|| unescape_json(raw));
        let Some(start) = text.rfind(entity) else {
            continue;
        };
        let words = words_near(text, start, start + entity.len(), REACH, &own_words(entity));
        if words.len() >= FEWEST {
            let (event, at) = (at, start);
            list.push(EntityMention { event, at, words });
        }
    }
}

/// Returns the words of an entity itself, which are no context.
pub(crate) fn own_words(entity: &str) -> ContextWords {
    split_words(entity).map(|(_, word)| word).collect()
}

/// Returns the words within so many code points of a byte range, without some.
pub(crate) fn words_near(
    text: &str,
    start: usize,
    end: usize,
    reach: usize,
    skip: &ContextWords,
) -> ContextWords {
    let (before, after) = chars_around(text, start, end, reach);
    split_words(before)
        .chain(split_words(after))
        .map(|(_, word)| word)
        .filter(|word| !skip.contains(word))
        .collect()
}

/// Returns the words of a text in lower case, each with its byte range: four letters or three digits at least.
pub(crate) fn split_words(text: &str) -> impl Iterator<Item = (Range<usize>, String)> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (start, first) = rest.next()?;
            let (same, least): (fn(char) -> bool, usize) = if is_letter(first) {
                (is_letter, 4)
            } else if is_digit(first) {
                (is_digit, 3)
            } else {
                continue;
            };
            let (mut end, mut count) = (start + first.len_utf8(), 1);
            while let Some((at, c)) = rest.next_if(|(_, c)| same(*c)) {
                (end, count) = (at + c.len_utf8(), count + 1);
            }
            if count >= least {
                let word = text.get(start..end).unwrap_or_default();
                return Some((start..end, word.to_ascii_lowercase()));
            }
        }
    })
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}
