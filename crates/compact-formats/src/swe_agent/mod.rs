//! SWE-agent trajectories: `history` is the list of chat messages, `trajectory` a log of its steps.
//!
//! The history is what the model saw, so it is the conversation. A step of the log repeats one
//! reply and what came of it; it stays in a view that shows both as they were. An agent without
//! function calls gets what its commands printed as messages of the user: those are injected text,
//! as are the demonstrations, because no person said them.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use compact_core::message::{EntryKind, Role};
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;
use serde_json::json;
use serde_json::value::RawValue;

use crate::TranscriptScope;
use crate::chat;
use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::error::FormatError;
use crate::json::{Members, Patch, is_list, is_true};
use crate::source::{self, EntryDraft, TranscriptReading};
use crate::wire::{DocumentContext, Wire};

static RULES: WireRules = WireRules {
    name: "swe-agent",
    placements: chat::PLACEMENTS,
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(&RULES, read, emit, chat::extend, |_| {
    BlankSource::from_value(json!({"trajectory": [], "history": [], "info": {}}))
})
.recognised_by(FormatSigns {
    document: is_run,
    ..FormatSigns::NONE
});

/// Returns true for a run whose history is a chat.
fn is_run(clues: &FormatClues) -> bool {
    let is_chat = clues.opens_list_with("history", "role") || clues.has_member("trajectory");
    clues.is_run_with_history() && is_chat
}

fn read(source: &[u8], _scope: TranscriptScope) -> Result<TranscriptReading, FormatError> {
    let mut reading = chat::read(source)?;
    let mut has_replied = false;
    for draft in &mut reading.drafts {
        let is_words = draft.role == Role::User && draft.meta.kind == EntryKind::Message;
        if is_words && (has_replied || is_demonstration(source, draft)) {
            draft.meta.kind = EntryKind::Injected;
        }
        // A trajectory has one request: what follows it, or a reply, comes from a command.
        has_replied |=
            draft.role == Role::Assistant || draft.meta.kind == EntryKind::Message && is_words;
    }
    Ok(reading)
}

fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let out = chat::emit(page, view, &|message| without_repeats(&message))?;
    Ok(with_steps_of(page, view, out))
}

fn is_demonstration(source: &[u8], draft: &EntryDraft) -> bool {
    let json = source::span_text(source, draft.place.span.clone()).unwrap_or_default();
    is_true(Members::from_json(json).get("is_demo"))
}

/// Returns a changed reply without the members that repeat it.
fn without_repeats(message: &str) -> String {
    let mut patch = Patch::new(message);
    patch.remove_members(&Members::from_json(message), |member| {
        member.key == "thought" || member.key == "action"
    });
    patch.finish()
}

/// Returns the document with the steps that the view still shows as they were.
fn with_steps_of(page: &DocumentContext<'_>, view: &View, out: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&out) else {
        return out;
    };
    let steps = Members::from_json(text).get("trajectory");
    let Some(list) = steps.filter(|list| is_list(list)) else {
        return out;
    };
    let steps: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
    let shown = shown_steps(page, view);
    let beyond = shown.last().copied().unwrap_or(true);
    let gone: Vec<bool> = (0..steps.len())
        .map(|step| !shown.get(step).copied().unwrap_or(beyond))
        .collect();
    let mut patch = Patch::new(text);
    if gone.contains(&false) {
        patch.remove_elements(&steps, &gone);
    } else {
        patch.replace(list, "[]".to_owned());
    }
    patch.finish().into_bytes()
}

/// Finds out for every reply whether the view shows it and what follows it unchanged.
fn shown_steps(page: &DocumentContext<'_>, view: &View) -> Vec<bool> {
    let kept = |item: &ViewItem| match item {
        ViewItem::Kept { entry } => Some(*entry),
        _ => None,
    };
    let kept: HashSet<usize> = view.items.iter().filter_map(kept).collect();
    let entries = &page.conversation.entries;
    let replies = entries
        .iter()
        .enumerate()
        .filter(|(_, e)| e.role == Role::Assistant);
    replies
        .map(|(i, _)| kept.contains(&i) && (kept.contains(&(i + 1)) || i + 1 == entries.len()))
        .collect()
}
