//! Views to events.

use std::borrow::Cow;

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::View;

use super::event::{FOREIGN_ACTION, edit_event};
use crate::edit::to_arguments_object;
use crate::error::FormatError;
use crate::json::{ItemContext, Members, quote, string_value};
use crate::list;
use crate::source::EntryPlace;
use crate::wire::{DocumentContext, ShownItem};

/// Returns the view's events; those that stood together stay together.
pub(super) fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let at = ItemContext {
        source: page.bytes(),
        offset: 0,
    };
    let mut out = EventElements::default();
    for item in &view.items {
        match page.resolve_item(item)? {
            ShownItem::New(entry) => compose_events(entry)
                .into_iter()
                .for_each(|event| out.push_alone(event)),
            ShownItem::Kept { place, item } => out.push_event(place, as_message(item)),
            ShownItem::Edited { place, item, edits } => {
                if let Some(event) = edit_event(at, &as_message(item), edits)? {
                    out.push_event(place, Cow::Owned(event));
                }
            }
        }
    }
    Ok(list::emit(page.document, &out.finish()))
}

/// Converts a condensation within a view to words, because as a boundary it would forget what stands before
/// it.
fn as_message(json: &str) -> Cow<'_, str> {
    let members = Members::from_json(json);
    if string_value(members.get("action")).as_deref() != Some("condensation") {
        return Cow::Borrowed(json);
    }
    let args = members
        .get("args")
        .map(|args| Members::from_json(args.get()));
    let summary = args.and_then(|args| string_value(args.get("summary")).map(String::from));
    let id = members.get("id").map_or("-1", |raw| raw.get());
    Cow::Owned(format!(
        "{{\"id\":{id},\"source\":\"environment\",\"action\":\"condensation\",\
         \"args\":{{\"summary\":{}}}}}",
        quote(&summary.unwrap_or_default())
    ))
}

/// Elements of a list, some of which are lists of events.
#[derive(Default)]
struct EventElements<'a> {
    done: Vec<Cow<'a, str>>,
    /// The element that is being put together.
    together: Option<(usize, Vec<Cow<'a, str>>)>,
}

impl<'a> EventElements<'a> {
    fn push_event(&mut self, place: &EntryPlace, event: Cow<'a, str>) {
        if place.part.is_none() {
            self.close_element();
            return self.done.push(event);
        }
        match &mut self.together {
            Some((line, events)) if *line == place.line => events.push(event),
            _ => {
                self.close_element();
                self.together = Some((place.line, vec![event]));
            }
        }
    }

    fn push_alone(&mut self, event: String) {
        self.close_element();
        self.done.push(Cow::Owned(event));
    }

    fn close_element(&mut self) {
        if let Some((_, events)) = self.together.take() {
            self.done
                .push(Cow::Owned(format!("[{}]", events.join(", "))));
        }
    }

    fn finish(mut self) -> Vec<Cow<'a, str>> {
        self.close_element();
        self.done
    }
}

/// Returns a new entry as events, one per block.
fn compose_events(entry: &Entry) -> Vec<String> {
    let source = match (entry.role, &entry.meta.kind) {
        (Role::Assistant, _) => "agent",
        (_, EntryKind::Injected) => "environment",
        _ => "user",
    };
    let action = if entry.is_leading() {
        "system"
    } else {
        "message"
    };
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
            "{{\"source\":\"agent\",\"action\":\"{FOREIGN_ACTION}\",\"args\":{},\
             \"tool_call_metadata\":{{\"function_name\":{},\"tool_call_id\":{}}}}}",
            to_arguments_object(args),
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
            if *is_error { "error" } else { FOREIGN_ACTION },
            quote(content),
            quote(call)
        )),
        _ => None,
    };
    entry.blocks.iter().filter_map(event).collect()
}
