//! Assemble: fates and a summary become a view, in chronological order.
//!
//! The summary stands right after the first request, before everything that is still recent, in
//! the place that profile and wire agree on.

use crate::clip;
use crate::message::{Block, Entry, EntryId, EntryKind, Meta, Role};
use crate::outline::{Health, UnitKind};
use crate::plan::{Fate, Plan, Scene};
use crate::summarize::frame::{self, Frame};
use crate::view::{View, ViewItem};
use crate::wire::{Placement, WireRules};

/// The tool that a summary pretends to be the answer of, where a wire wants a pair.
const PAIR_TOOL: &str = "recall_session_summary";

/// A summary ready to be placed.
pub struct Placed<'a> {
    /// Version and receipt.
    pub frame: &'a Frame,
    /// The body.
    pub body: &'a str,
    /// Where the policy wants it.
    pub placement: Placement,
}

/// Builds the view of a plan.
pub fn assemble(scene: &Scene<'_>, plan: &Plan, summary: &Placed<'_>, rules: &WireRules) -> View {
    let placement = rules.placement(summary.placement);
    let place = place(scene, plan, placement);
    let mut items = Vec::new();
    for (i, unit) in scene.outline.units.iter().enumerate() {
        if i == place {
            items.extend(summary_items(summary, placement));
        }
        let fate = plan.fates.get(i).copied().unwrap_or(Fate::Demoted);
        items.extend(
            unit.entries
                .clone()
                .filter_map(|entry| item(scene, entry, fate)),
        );
    }
    if place >= scene.outline.units.len() {
        items.extend(summary_items(summary, placement));
    }
    if let Some(ViewItem::New(last)) = items.last_mut() {
        speak_as_user(last, rules);
    }
    View { items }
}

/// Puts other words into the summary of a view.
pub fn reword(view: &mut View, summary: &Placed<'_>, rules: &WireRules) {
    let words = summary_text(
        summary.frame,
        summary.body,
        rules.placement(summary.placement),
    );
    for item in &mut view.items {
        if let ViewItem::New(entry) = item
            && matches!(entry.meta.kind, EntryKind::Summary { .. })
        {
            for block in &mut entry.blocks {
                if let Block::Text(text) | Block::ToolResult { content: text, .. } = block {
                    words.clone_into(text);
                }
            }
        }
    }
}

/// The view with its summary where another wire takes it: the person's place, where that wire knows no
/// summary of the model's.
pub fn placed_for(mut view: View, rules: &WireRules) -> View {
    for item in &mut view.items {
        if let ViewItem::New(entry) = item
            && matches!(entry.meta.kind, EntryKind::Summary { .. })
            && !rules.placements.contains(&Placement::AssistantMessage)
        {
            speak_as_user(entry, rules);
        }
    }
    view
}

/// A summary that comes last must not be the model's word: it would go on writing it.
fn speak_as_user(summary: &mut Entry, rules: &WireRules) {
    if summary.role == Role::Assistant && rules.placements.contains(&Placement::UserMessage) {
        summary.role = Role::User;
    }
}

/// The unit before which the summary goes.
fn place(scene: &Scene<'_>, plan: &Plan, placement: Placement) -> usize {
    let units = &scene.outline.units;
    let leading = units
        .iter()
        .take_while(|u| u.kind == UnitKind::Leading)
        .count();
    if placement == Placement::SystemSuffix {
        return leading;
    }
    let first_demoted = (leading..units.len())
        .find(|&i| plan.fates.get(i).is_none_or(|f| !f.stays()))
        .unwrap_or(leading);
    // Calls that wait for their results come last.
    let waits = units.iter().position(|u| u.health == Health::Open);
    let after_request = scene.outline.first_user().map_or(0, |first| first + 1);
    first_demoted
        .max(after_request)
        .min(waits.unwrap_or(units.len()))
}

fn item(scene: &Scene<'_>, entry: usize, fate: Fate) -> Option<ViewItem> {
    match fate {
        Fate::Demoted => None,
        Fate::Pinned | Fate::Verbatim => Some(ViewItem::Kept { entry }),
        Fate::Clipped(level) => {
            let whole = scene.conversation.entries.get(entry)?;
            let edits = clip::entry(whole, level, scene.estimator, scene.pointer(entry));
            Some(if edits.is_empty() {
                ViewItem::Kept { entry }
            } else {
                ViewItem::Edited { entry, edits }
            })
        }
    }
}

/// The text that carries a summary at its place.
pub fn summary_text(frame: &Frame, body: &str, placement: Placement) -> String {
    let framed = frame::wrap(frame, body);
    match placement {
        Placement::SystemSuffix => include_str!("../templates/continuation_system.md")
            .trim_end()
            .replacen("{summary}", &framed, 1),
        Placement::NewSessionPrompt => include_str!("../templates/continuation_prompt.md")
            .trim_end()
            .replacen("{summary}", &framed, 1),
        Placement::AssistantMessage | Placement::UserMessage | Placement::ToolPair => framed,
    }
}

fn summary_items(summary: &Placed<'_>, placement: Placement) -> Vec<ViewItem> {
    let text = summary_text(summary.frame, summary.body, placement);
    let role = match placement {
        Placement::AssistantMessage => Role::Assistant,
        Placement::UserMessage | Placement::NewSessionPrompt => Role::User,
        Placement::SystemSuffix => Role::System,
        Placement::ToolPair => return tool_pair(summary.frame, text),
    };
    vec![ViewItem::New(entry(
        summary.frame,
        role,
        Block::Text(text),
        "",
    ))]
}

fn tool_pair(frame: &Frame, text: String) -> Vec<ViewItem> {
    let id = format!("summary_{}", receipt(frame));
    let call = Block::ToolCall {
        id: id.clone(),
        name: PAIR_TOOL.to_owned(),
        arguments: "{}".to_owned(),
    };
    let mut asked = entry(frame, Role::Assistant, call, "-call");
    asked.meta.kind = EntryKind::Injected;
    let result = Block::ToolResult {
        call: id,
        content: text,
        is_error: false,
    };
    vec![
        ViewItem::New(asked),
        ViewItem::New(entry(frame, Role::Tool, result, "")),
    ]
}

fn receipt(frame: &Frame) -> &str {
    frame.receipt.as_deref().unwrap_or("unnamed")
}

fn entry(frame: &Frame, role: Role, block: Block, suffix: &str) -> Entry {
    Entry {
        id: EntryId(format!("summary-{}{suffix}", receipt(frame))),
        role,
        blocks: vec![block],
        meta: Meta {
            kind: EntryKind::Summary {
                version: frame.version,
                receipt: frame.receipt.clone(),
            },
            ..Meta::default()
        },
    }
}
