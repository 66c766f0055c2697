//! Views to events.

use std::borrow::Cow;

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::View;

use super::event::{FOREIGN, edited};
use crate::edit::arguments;
use crate::error::FormatError;
use crate::json::{At, Members, lenient, quote};
use crate::list;
use crate::source::Place;
use crate::wire::{Page, Shown};

/// The view's events; those that stood together stay together.
pub(super) fn emit(page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let at = At {
        source: page.bytes(),
        offset: 0,
    };
    let mut out = Elements::default();
    for item in &view.items {
        match page.shown(item)? {
            Shown::New(entry) => compose(entry)
                .into_iter()
                .for_each(|event| out.alone(event)),
            Shown::Kept { place, item } => out.push(place, as_message(item)),
            Shown::Edited { place, item, edits } => {
                if let Some(event) = edited(at, &as_message(item), edits)? {
                    out.push(place, Cow::Owned(event));
                }
            }
        }
    }
    Ok(list::emit(page.document, &out.finish()))
}

/// A condensation within a view is words: as a boundary it would forget what stands before it.
fn as_message(json: &str) -> Cow<'_, str> {
    let members = Members::of(json);
    if lenient(members.get("action")).as_deref() != Some("condensation") {
        return Cow::Borrowed(json);
    }
    let args = members.get("args").map(|args| Members::of(args.get()));
    let summary = args.and_then(|args| lenient(args.get("summary")).map(String::from));
    let id = members.get("id").map_or("-1", |raw| raw.get());
    Cow::Owned(format!(
        "{{\"id\":{id},\"source\":\"environment\",\"action\":\"condensation\",\
         \"args\":{{\"summary\":{}}}}}",
        quote(&summary.unwrap_or_default())
    ))
}

/// Elements of a list, some of which are lists of events.
#[derive(Default)]
struct Elements<'a> {
    done: Vec<Cow<'a, str>>,
    /// The element that is being put together.
    together: Option<(usize, Vec<Cow<'a, str>>)>,
}

impl<'a> Elements<'a> {
    fn push(&mut self, place: &Place, event: Cow<'a, str>) {
        if place.part.is_none() {
            self.close();
            return self.done.push(event);
        }
        match &mut self.together {
            Some((line, events)) if *line == place.line => events.push(event),
            _ => {
                self.close();
                self.together = Some((place.line, vec![event]));
            }
        }
    }

    fn alone(&mut self, event: String) {
        self.close();
        self.done.push(Cow::Owned(event));
    }

    fn close(&mut self) {
        if let Some((_, events)) = self.together.take() {
            self.done
                .push(Cow::Owned(format!("[{}]", events.join(", "))));
        }
    }

    fn finish(mut self) -> Vec<Cow<'a, str>> {
        self.close();
        self.done
    }
}

/// A new entry as events, one per block.
fn compose(entry: &Entry) -> Vec<String> {
    let source = match (entry.role, &entry.meta.kind) {
        (Role::Assistant, _) => "agent",
        (_, EntryKind::Injected) => "environment",
        _ => "user",
    };
    let action = if entry.leads() { "system" } else { "message" };
    let event = |block: &Block| match block {
        Block::Text(text) => Some(format!(
            "{{\"source\":\"{source}\",\"action\":\"{action}\",\"args\":{{\"content\":{}}}}}",
            quote(text)
        )),
        Block::ToolCall {
            id,
            name,
            arguments: args,
        } => Some(format!(
            "{{\"source\":\"agent\",\"action\":\"{FOREIGN}\",\"args\":{},\
             \"tool_call_metadata\":{{\"function_name\":{},\"tool_call_id\":{}}}}}",
            arguments(args),
            quote(name),
            quote(id)
        )),
        Block::ToolResult {
            call,
            content,
            is_error,
        } => Some(format!(
            "{{\"source\":\"agent\",\"observation\":\"{}\",\"content\":{},\"extras\":{{}},\
             \"tool_call_metadata\":{{\"tool_call_id\":{}}}}}",
            if *is_error { "error" } else { FOREIGN },
            quote(content),
            quote(call)
        )),
        _ => None,
    };
    entry.blocks.iter().filter_map(event).collect()
}
