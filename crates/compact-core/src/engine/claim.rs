//! What an entry is that claims to be a summary of ours.
//!
//! Anybody can write `<COMPACT-SUMMARY>`. It is ours when it names the compaction that this history goes
//! on from and stands in its view as it was written; whether that compaction is on record for this
//! session is for the caller to find out. Where we put summaries, an unproven one is a model's words,
//! so that a view carried to another machine keeps what it said. Anywhere else it is what its author
//! said, in its author's voice.

use super::{Prior, common_prefix};
use crate::frame;
use crate::identity::EntryHash;
use crate::message::{Block, Conversation, Entry, EntryKind, Role};

/// Says of every entry with a frame what it is.
pub fn classify_summaries(
    conversation: &mut Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
) {
    let claiming: Vec<usize> = claiming_entries(conversation).collect();
    let proven = prior.and_then(|prior| prove(conversation, hashes, prior, &claiming));
    let mut carried = proven.is_some();
    for at in claiming.into_iter().filter(|at| Some(*at) != proven) {
        let stands = !carried && stands_as_summary(&conversation.entries, at);
        let Some(entry) = conversation.entries.get_mut(at) else {
            continue;
        };
        if stands {
            entry.meta.kind = EntryKind::ForeignSummary;
            carried = true;
        } else if matches!(entry.meta.kind, EntryKind::Summary { .. }) {
            entry.meta.kind = EntryKind::Message;
        }
    }
}

/// The entries that say they are a summary of ours.
pub(crate) fn claiming_entries(conversation: &Conversation) -> impl Iterator<Item = usize> {
    let entries = conversation.entries.iter().enumerate();
    entries.filter_map(move |(at, entry)| claims_summary(entry).then_some(at))
}

/// True of an entry that says it is a summary of ours.
pub fn claims_summary(entry: &Entry) -> bool {
    matches!(entry.meta.kind, EntryKind::Summary { .. })
        || frame::find_frame(&entry.blocks).is_some()
}

/// Finds the prior's own summary: its receipt, its words, and before it only what its view shows there.
fn prove(
    conversation: &mut Conversation,
    hashes: &[EntryHash],
    prior: &Prior,
    claiming: &[usize],
) -> Option<usize> {
    let is_shown = |at: &&usize| {
        let hash = hashes.get(**at);
        prior.view.iter().any(|(known, _)| Some(known) == hash)
    };
    for at in claiming.iter().filter(is_shown).copied() {
        let Some(entry) = conversation.entries.get_mut(at) else {
            continue;
        };
        let Some(claim) = frame::find_frame(&entry.blocks) else {
            continue;
        };
        if claim.receipt.as_ref() != Some(&prior.receipt_id) {
            continue;
        }
        let summary = EntryKind::Summary {
            version: claim.version,
            receipt: claim.receipt,
        };
        let before = std::mem::replace(&mut entry.meta.kind, summary);
        let shown =
            conversation.leading_instructions() + common_prefix(conversation, hashes, prior);
        if at < shown {
            return Some(at);
        }
        if let Some(entry) = conversation.entries.get_mut(at) {
            entry.meta.kind = before;
        }
    }
    None
}

/// True for nothing but a frame, said by the model or in the person's place, before which nobody but the
/// person spoke.
fn stands_as_summary(entries: &[Entry], at: usize) -> bool {
    let Some((entry, before)) = entries.get(..=at).and_then(<[Entry]>::split_last) else {
        return false;
    };
    let is_frame = match entry.blocks.as_slice() {
        [Block::Text(text)] => frame::is_whole(text),
        _ => false,
    };
    let speaks = |e: &Entry| {
        matches!(e.role, Role::Assistant | Role::Tool)
            && matches!(e.meta.kind, EntryKind::Message | EntryKind::HostedTool)
    };
    is_frame && matches!(entry.role, Role::User | Role::Assistant) && !before.iter().any(speaks)
}
