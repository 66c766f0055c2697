//! Cache breakpoints: four at most, and the ones that help.
//!
//! A view has no more than its source had, so this acts only where a client sent too many. What
//! stands before the messages is the same in every request and keeps its own; of the messages', the
//! last are kept, because the next request shares the longest prefix with them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{Members, Patch, is_list, is_object};

/// How many the provider takes.
const MAX_BREAKPOINTS: usize = 4;

/// Leaves out the breakpoints beyond the limit; `before` stand before the messages.
pub(super) fn limit_breakpoints(messages: &mut [Cow<'_, str>], before: usize) {
    let mut room = MAX_BREAKPOINTS.saturating_sub(before);
    for message in messages.iter_mut().rev() {
        let blocks = content_blocks(message);
        let marked = blocks.iter().filter(|b| is_marked(b)).count();
        if marked > room {
            let without = without_first(message, &blocks, marked - room);
            *message = Cow::Owned(without);
        }
        room = room.saturating_sub(marked);
    }
}

/// Returns how many breakpoints a piece of JSON has.
pub(super) fn count_breakpoints(json: &str) -> usize {
    memchr::memmem::find_iter(json.as_bytes(), b"\"cache_control\"").count()
}

fn content_blocks(message: &str) -> Vec<&RawValue> {
    let content = Members::from_json(message).get("content");
    let list = content.filter(|raw| is_list(raw)).map(RawValue::get);
    serde_json::from_str(list.unwrap_or("[]")).unwrap_or_default()
}

fn is_marked(block: &RawValue) -> bool {
    let mark = || Members::from_json(block.get()).get("cache_control");
    is_object(block) && mark().is_some_and(|mark| mark.get() != "null")
}

fn without_first(message: &str, blocks: &[&RawValue], count: usize) -> String {
    let mut patch = Patch::new(message);
    for block in blocks.iter().filter(|b| is_marked(b)).take(count) {
        let mut own = Patch::new(block.get());
        own.remove_members(&Members::from_json(block.get()), |m| {
            m.key == "cache_control"
        });
        patch.replace(block, own.finish());
    }
    patch.finish()
}
