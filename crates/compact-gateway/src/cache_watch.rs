//! Watches the provider's cache: what a request should have found there and did not, who is behind that, and the first
//! byte that changed.
//!
//! The bodies of two requests of a session are compared only once a report says that the cache missed; until then the
//! earlier one is kept and not looked at. Marks that tell a provider where to cache are no part of what is compared:
//! clients move them with every request.

use bytes::Bytes;
use compact::event::{CacheMiss, MissOrigin, PromptChange, PromptPart};
use compact::spending::Usage;
use compact::token::{ModelPrice, Tokens, find_model};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Providers cache no prompt that is shorter.
const LEAST_CACHED: u64 = 2_048;

/// A request that was answered.
pub(crate) struct SentPrompt {
    /// Its body, as it was sent.
    pub(crate) body: Bytes,
    /// Whether that is a view of ours.
    pub(crate) is_view: bool,
    pub(crate) model: Option<String>,
    pub(crate) at: Timestamp,
    pub(crate) usage: Usage,
}

/// What is remembered of the request before.
#[derive(Default)]
pub(crate) struct CacheWatch {
    last: Option<SentPrompt>,
    /// Whether the provider ever wrote or read a cache for the session.
    is_used: bool,
}

impl CacheWatch {
    /// Takes the next request, and returns what it should have found in the cache and did not.
    pub(crate) fn note(&mut self, sent: SentPrompt, cache_seconds: u64) -> Option<CacheMiss> {
        let was_used = self.is_used;
        self.is_used |= sent.usage.cache_read_tokens + sent.usage.cache_creation_tokens > 0;
        let last = self.last.as_ref().filter(|_| was_used);
        let miss = last.and_then(|last| find_miss(last, &sent, cache_seconds));
        self.last = Some(sent);
        miss
    }
}

fn find_miss(last: &SentPrompt, sent: &SentPrompt, cache_seconds: u64) -> Option<CacheMiss> {
    let expected = last.usage.prompt_tokens().min(sent.usage.prompt_tokens());
    let read = Tokens(sent.usage.cache_read_tokens);
    if expected.0 < LEAST_CACHED || read.0 >= expected.0 / 2 {
        return None;
    }
    let idle = sent.at.duration_since(last.at).as_secs();
    let idle_seconds = u64::try_from(idle).unwrap_or(0);
    let change = find_change(&last.body, &sent.body);
    let is_ours = sent.is_view && change.is_some_and(|change| change.part == PromptPart::Message);
    let origin = match change {
        Some(_) if is_ours => MissOrigin::Compaction,
        Some(_) => MissOrigin::Agent,
        None if last.model != sent.model => MissOrigin::Agent,
        None if idle_seconds > cache_seconds => MissOrigin::Expired,
        None => MissOrigin::Provider,
    };
    let price = sent.model.as_deref().and_then(find_model);
    let price = price.and_then(|model| model.price);
    Some(CacheMiss {
        expected_tokens: expected,
        read_tokens: read,
        idle_seconds,
        origin,
        change,
        extra_usd: price.map(|price| extra_cost(&price, expected - read)),
    })
}

/// What tokens cost more than they would have from the cache.
fn extra_cost(price: &ModelPrice, missed: Tokens) -> f64 {
    let write = price.cache_write.unwrap_or(price.input);
    let read = price.cache_read.unwrap_or(price.input);
    missed.0 as f64 * (write - read) / 1e6
}

/// The parts of a body in whichever API, each as it was written.
#[derive(Deserialize)]
struct PromptBody<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(
        borrow,
        alias = "instructions",
        alias = "system_instruction",
        alias = "systemInstruction"
    )]
    system: Option<&'a RawValue>,
    #[serde(borrow, alias = "input", alias = "contents")]
    messages: Option<&'a RawValue>,
}

impl<'a> PromptBody<'a> {
    fn read(body: &'a [u8]) -> Option<PromptBody<'a>> {
        serde_json::from_slice(body).ok()
    }

    fn messages(&self) -> Vec<&'a RawValue> {
        let Some(messages) = self.messages else {
            return Vec::new();
        };
        serde_json::from_str(messages.get()).unwrap_or_else(|_| vec![messages])
    }
}

/// Finds where a prompt begins to differ from the one before it; `None` where it goes on from all of it.
fn find_change(before: &[u8], now: &[u8]) -> Option<PromptChange> {
    let (before, now) = (PromptBody::read(before)?, PromptBody::read(now)?);
    let parts = [
        (PromptPart::Tools, before.tools, now.tools),
        (PromptPart::Instructions, before.system, now.system),
    ];
    for (part, before, now) in parts {
        if let Some(at_byte) = first_difference(before, now) {
            return Some(PromptChange {
                part,
                message: None,
                at_byte,
            });
        }
    }
    let (old, new) = (before.messages(), now.messages());
    let changed = old.iter().enumerate().find_map(|(at, before)| {
        let at_byte = first_difference(Some(before), new.get(at).copied())?;
        Some((at as u64 + 1, at_byte))
    });
    changed.map(|(message, at_byte)| PromptChange {
        part: PromptPart::Message,
        message: Some(message),
        at_byte,
    })
}

/// Returns the first byte that differs, without the marks of caches.
fn first_difference(before: Option<&RawValue>, now: Option<&RawValue>) -> Option<u64> {
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before.get(), now.get()),
        (None, None) => return None,
        _ => return Some(0),
    };
    if before == now {
        return None;
    }
    let (before, now) = (without_marks(before), without_marks(now));
    if before == now {
        return None;
    }
    let same = before.bytes().zip(now.bytes()).take_while(|(a, b)| a == b);
    Some(same.count() as u64)
}

fn without_marks(json: &str) -> String {
    let mut value: Value = serde_json::from_str(json).unwrap_or_default();
    remove_marks(&mut value);
    value.to_string()
}

fn remove_marks(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_marks),
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(remove_marks);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(body: &Value, second: i64, usage: (u64, u64, u64)) -> SentPrompt {
        SentPrompt {
            body: body.to_string().into(),
            is_view: false,
            model: Some("claude-sonnet-4-5".to_owned()),
            at: Timestamp::from_second(second).unwrap(),
            usage: Usage {
                input_tokens: usage.0,
                cache_read_tokens: usage.1,
                cache_creation_tokens: usage.2,
                output_tokens: 10,
            },
        }
    }

    fn body(system: &str, said: &[&str]) -> Value {
        let messages: Vec<Value> = said
            .iter()
            .map(|text| json!({"role": "user", "content": [{"type": "text", "text": text}]}))
            .collect();
        json!({"model": "m", "messages": messages, "system": system, "tools": [{"name": "read"}]})
    }

    /// What the second of two requests missed; the first one wrote ten thousand tokens.
    fn miss_of(first: &Value, second: SentPrompt) -> Option<CacheMiss> {
        let mut watch = CacheWatch::default();
        assert_eq!(watch.note(sent(first, 0, (0, 0, 10_000)), 300), None);
        watch.note(second, 300)
    }

    #[test]
    fn what_was_found_is_no_miss_and_a_mark_that_moves_no_change() {
        let first = body("s", &["a"]);
        let hit = sent(&body("s", &["a", "b"]), 9, (100, 10_000, 0));
        assert_eq!(miss_of(&first, hit), None);
        let mut marked = body("s", &["a", "b"]);
        marked["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        let missed = miss_of(&first, sent(&marked, 9, (10_100, 0, 0))).unwrap();
        assert_eq!((missed.origin, missed.change), (MissOrigin::Provider, None));
        let late = miss_of(&first, sent(&marked, 900, (10_100, 0, 0))).unwrap();
        assert_eq!((late.origin, late.idle_seconds), (MissOrigin::Expired, 900));
    }

    #[test]
    fn the_first_byte_that_changed_is_named_with_who_changed_it() {
        let first = body("Today is Monday.", &["a", "read it"]);
        let changed = |body: &Value| miss_of(&first, sent(body, 9, (10_100, 0, 0))).unwrap();
        let day = changed(&body("Today is Tuesday.", &["a", "read it"]));
        let at = |part, message, at_byte| {
            Some(PromptChange {
                part,
                message,
                at_byte,
            })
        };
        assert_eq!(day.change, at(PromptPart::Instructions, None, 10));
        assert_eq!(day.origin, MissOrigin::Agent);
        let edited = changed(&body("Today is Monday.", &["a", "read them", "c"]));
        let opening = r#"{"role":"user","content":[{"type":"text","text":"read "#;
        let byte = opening.len() as u64;
        assert_eq!(edited.change, at(PromptPart::Message, Some(2), byte));
        let mut view = sent(&body("Today is Monday.", &["SUMMARY"]), 9, (3_000, 0, 0));
        view.is_view = true;
        let compacted = miss_of(&first, view).unwrap();
        assert_eq!(compacted.origin, MissOrigin::Compaction);
        assert_eq!(compacted.expected_tokens, Tokens(3_000));
        let price = find_model("claude-sonnet-4-5").unwrap().price.unwrap();
        let more = 3_000.0 * (price.cache_write.unwrap() - price.cache_read.unwrap()) / 1e6;
        assert_eq!(compacted.extra_usd, Some(more));
    }

    #[test]
    fn a_provider_that_caches_nothing_misses_nothing() {
        let mut watch = CacheWatch::default();
        let first = body("s", &["a"]);
        assert_eq!(watch.note(sent(&first, 0, (10_000, 0, 0)), 300), None);
        let second = sent(&body("t", &["b"]), 9, (10_000, 0, 0));
        assert_eq!(watch.note(second, 300), None);
    }
}
