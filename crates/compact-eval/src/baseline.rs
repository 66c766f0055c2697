//! What anyone could do without an engine: keep the end, keep the start and the end, shorten tool
//! output, list identifiers. Each takes events and a budget in tokens, and answers a text.

use std::collections::{HashMap, HashSet};

use compact_runtime::replay::entity::{ClassedEntity, MinDigits, find_entities};

use crate::metric::{EventVoice, MetricEvent};
use crate::text::{count_chars, count_tokens, head, tail};

/// Returns the last events that fit, the first of them cut.
pub fn keep_last<'t>(texts: impl DoubleEndedIterator<Item = &'t str>, budget: usize) -> String {
    let (mut kept, mut used) = (Vec::new(), 0);
    for text in texts.rev() {
        let cost = count_tokens(text);
        if used + cost > budget {
            kept.push(tail(text, (budget - used) * 4));
            break;
        }
        kept.push(text);
        used += cost;
    }
    kept.reverse();
    kept.join("\n")
}

/// Returns the system prompt and the first request in a quarter of the budget, the end in the rest.
pub fn head_tail(events: &[MetricEvent], budget: usize) -> String {
    let (mut first, mut used) = (Vec::new(), 0);
    let leading = events.iter().take(4);
    for event in leading.filter(|e| matches!(e.voice, EventVoice::System | EventVoice::User)) {
        let room = (budget / 4).saturating_sub(used);
        first.push(head(&event.text, room * 4));
        used += count_tokens(&event.text).min(room);
    }
    let rest = keep_last(event_texts(events), budget - used);
    format!("{}\n{rest}", first.join("\n"))
}

/// Shortens tool results to their ends, then keeps the last messages that fit.
pub fn trim_tools(events: &[MetricEvent], budget: usize) -> String {
    let shortened: Vec<String> = events.iter().map(shorten).collect();
    keep_last(shortened.iter().map(String::as_str), budget)
}

fn shorten(event: &MetricEvent) -> String {
    let text = &event.text;
    if event.voice != EventVoice::Result || count_chars(text) <= 400 {
        return text.clone();
    }
    format!("{}\n...\n{}", head(text, 200), tail(text, 200))
}

/// Spends half the budget on the end and half on identifiers: those that agent and user use most, newest
/// first.
pub fn identifier_list(
    events: &[MetricEvent],
    named: &[&[ClassedEntity]],
    budget: usize,
    min_digits: MinDigits,
) -> String {
    let end = keep_last(event_texts(events), budget / 2);
    let shown: HashSet<String> = find_entities(&end, min_digits)
        .into_iter()
        .map(|(e, _)| e)
        .collect();
    let mut room = (budget - budget / 2) * 4;
    let mut list = Vec::new();
    for entity in by_weight(events, named) {
        if shown.contains(entity) {
            continue;
        }
        let cost = count_chars(entity) + 1;
        if cost > room {
            break;
        }
        room -= cost;
        list.push(entity);
    }
    format!("{}\n{end}", list.join("\n"))
}

/// Entities by how much they are used, the heaviest first; equal ones in the order they came.
fn by_weight<'e>(events: &[MetricEvent], named: &[&'e [ClassedEntity]]) -> Vec<&'e str> {
    let mut weights: HashMap<&str, f64> = HashMap::new();
    let mut order = Vec::new();
    let count = events.len().max(1) as f64;
    for (i, (event, entities)) in events.iter().zip(named).enumerate() {
        let weight = weight(event.voice) * (0.5 + i as f64 / count);
        for (entity, _) in *entities {
            let sum = weights.entry(entity).or_insert_with(|| {
                order.push(entity.as_str());
                0.0
            });
            *sum += weight;
        }
    }
    let of = |entity: &&str| weights.get(entity).copied().unwrap_or(0.0);
    order.sort_by(|a, b| of(b).total_cmp(&of(a)));
    order
}

fn weight(voice: EventVoice) -> f64 {
    match voice {
        EventVoice::Call | EventVoice::Assistant | EventVoice::User | EventVoice::Summary => 3.0,
        EventVoice::System => 1.0,
        EventVoice::Result => 0.3,
        EventVoice::Boundary => 0.0,
    }
}

/// Returns all but system prompts, which the host sends again and no method compacts.
pub(crate) fn keep_all(events: &[MetricEvent]) -> String {
    let spoken = events.iter().filter(|e| e.voice != EventVoice::System);
    spoken
        .map(|e| e.text.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the texts of events.
pub(crate) fn event_texts(events: &[MetricEvent]) -> impl DoubleEndedIterator<Item = &str> {
    events.iter().map(|e| e.text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(voice: EventVoice, text: &str) -> MetricEvent {
        MetricEvent::new(voice, text)
    }

    #[test]
    fn the_whole_is_all_but_what_the_host_sends_again() {
        let events = [
            event(EventVoice::System, "be brief"),
            event(EventVoice::User, "go"),
            event(EventVoice::Result, "done"),
        ];
        assert_eq!(keep_all(&events), "go\ndone");
    }

    #[test]
    fn the_end_is_kept_and_the_first_of_it_cut() {
        let kept = |budget| keep_last(["aaaabbbb", "cccc", "dd"].into_iter(), budget);
        assert_eq!(kept(4), "aaaabbbb\ncccc\ndd");
        assert_eq!(kept(3), "bbbb\ncccc\ndd");
        assert_eq!(kept(2), "\ncccc\ndd");
        assert_eq!(kept(0), "");
    }

    #[test]
    fn the_request_and_the_end_are_kept() {
        let events = [
            event(EventVoice::User, "aaaabbbbcccc"),
            event(EventVoice::Assistant, "ddddeeee"),
            event(EventVoice::Assistant, "ffffgggghhhh"),
        ];
        assert_eq!(head_tail(&events, 4), "aaaa\n\nffffgggghhhh");
    }

    #[test]
    fn long_results_lose_their_middle() {
        let long = format!("{}{}{}", "a".repeat(200), "b".repeat(50), "c".repeat(200));
        let events = [
            event(EventVoice::Result, &long),
            event(EventVoice::User, &long),
        ];
        let short = format!("{}\n...\n{}", "a".repeat(200), "c".repeat(200));
        assert_eq!(trim_tools(&events, 1000), format!("{short}\n{long}"));
    }

    #[test]
    fn the_list_begins_with_what_is_used_most() {
        let events = [
            event(EventVoice::Result, "one_name two_name"),
            event(EventVoice::Call, "grep two_name"),
            event(EventVoice::User, "now go on"),
        ];
        let digits = MinDigits::default();
        let named: Vec<_> = events
            .iter()
            .map(|e| find_entities(&e.text, digits))
            .collect();
        let named: Vec<_> = named.iter().map(Vec::as_slice).collect();
        assert_eq!(
            identifier_list(&events, &named, 7, digits),
            "two_name\n\nnow go on"
        );
    }
}
