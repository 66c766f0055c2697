//! Assemble: fates and a summary become a view, in chronological order.
//!
//! The summary stands right after the first request, before everything that is still recent, in
//! the place that profile and wire agree on.

use crate::frame::{self, Frame};
use crate::message::{Block, Entry, EntryId, EntryKind, EntryMeta, Role};
use crate::outline::{UnitHealth, UnitKind};
use crate::plan::{Plan, PlanInput, UnitFate};
use crate::view::{View, ViewItem};
use crate::wire::{Placement, WireRules};

/// The tool that a summary pretends to be the answer of, where a wire wants a pair.
const PAIR_TOOL: &str = "recall_session_summary";

/// A summary ready to be placed.
pub(crate) struct PlacedSummary<'a> {
    /// Version and receipt.
    pub frame: &'a Frame,
    /// The body.
    pub body: &'a str,
    /// Where the policy wants it.
    pub placement: Placement,
}

/// Builds the view of a plan.
pub(crate) fn assemble(
    scene: &PlanInput<'_>,
    plan: &Plan,
    summary: &PlacedSummary<'_>,
    rules: &WireRules,
) -> View {
    let placement = rules.allowed_placement(summary.placement);
    let place = summary_position(scene, plan, placement);
    let mut items = Vec::new();
    for (i, unit) in scene.outline.units.iter().enumerate() {
        if i == place {
            items.extend(summary_items(summary, placement));
        }
        let fate = plan.fates.get(i).copied().unwrap_or(UnitFate::Demoted);
        items.extend(
            unit.entries
                .clone()
                .filter_map(|entry| view_item(scene, entry, fate)),
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
pub(crate) fn reword(view: &mut View, summary: &PlacedSummary<'_>, rules: &WireRules) {
    let words = summary_text(
        summary.frame,
        summary.body,
        rules.allowed_placement(summary.placement),
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
pub fn move_summary_for(mut view: View, rules: &WireRules) -> View {
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
fn summary_position(scene: &PlanInput<'_>, plan: &Plan, placement: Placement) -> usize {
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
    let waits = units.iter().position(|u| u.health == UnitHealth::Open);
    let after_request = scene.outline.first_user().map_or(0, |first| first + 1);
    first_demoted
        .max(after_request)
        .min(waits.unwrap_or(units.len()))
}

fn view_item(scene: &PlanInput<'_>, entry: usize, fate: UnitFate) -> Option<ViewItem> {
    match fate {
        UnitFate::Demoted => None,
        UnitFate::Pinned | UnitFate::Verbatim => Some(ViewItem::Kept { entry }),
        UnitFate::Clipped(level) => {
            let whole = scene.conversation.entries.get(entry)?;
            let edits = scene.cut_entry(entry, whole, level).edits.to_vec();
            Some(if edits.is_empty() {
                ViewItem::Kept { entry }
            } else {
                ViewItem::Edited { entry, edits }
            })
        }
    }
}

/// The text that carries a summary at its place.
pub(crate) fn summary_text(frame: &Frame, body: &str, placement: Placement) -> String {
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

fn summary_items(summary: &PlacedSummary<'_>, placement: Placement) -> Vec<ViewItem> {
    let text = summary_text(summary.frame, summary.body, placement);
    let role = match placement {
        Placement::AssistantMessage => Role::Assistant,
        Placement::UserMessage | Placement::NewSessionPrompt => Role::User,
        Placement::SystemSuffix => Role::System,
        Placement::ToolPair => return tool_pair(summary.frame, text),
    };
    vec![ViewItem::New(summary_entry(
        summary.frame,
        role,
        Block::Text(text),
        "",
    ))]
}

fn tool_pair(frame: &Frame, text: String) -> Vec<ViewItem> {
    let id = format!("summary_{}", frame_receipt(frame));
    let call = Block::ToolCall {
        id: id.clone(),
        name: PAIR_TOOL.to_owned(),
        arguments: "{}".to_owned(),
    };
    let mut asked = summary_entry(frame, Role::Assistant, call, "-call");
    asked.meta.kind = EntryKind::Injected;
    let result = Block::ToolResult {
        call: id,
        content: text,
        is_error: false,
    };
    vec![
        ViewItem::New(asked),
        ViewItem::New(summary_entry(frame, Role::Tool, result, "")),
    ]
}

fn frame_receipt(frame: &Frame) -> &str {
    frame.receipt.as_deref().unwrap_or("unnamed")
}

fn summary_entry(frame: &Frame, role: Role, block: Block, suffix: &str) -> Entry {
    Entry {
        id: EntryId(format!("summary-{}{suffix}", frame_receipt(frame))),
        role,
        blocks: vec![block],
        meta: EntryMeta {
            kind: EntryKind::Summary {
                version: frame.version,
                receipt: frame.receipt.clone(),
            },
            ..EntryMeta::default()
        },
    }
}
