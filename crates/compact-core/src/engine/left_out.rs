//! What a view left out by name: what mattered of the entries that it lacks, and that none of its words say any more.

use super::visible::{view_text, whole_ordinals};
use super::{Prior, entry_ordinals};
use crate::identity::EntryHash;
use crate::ledger::Ledger;
use crate::message::Conversation;
use crate::summarize::{NameRanking, Style};
use crate::verify;
use crate::view::View;

/// Something that is in the archive only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutName {
    /// The name, or the words of a rule.
    pub text: String,
    /// The entry that says it.
    pub ordinal: u64,
}

/// Finds what a view left out, the most needed first: what the receipt counts as recoverable.
pub fn find_left_out(
    view: &View,
    conversation: &Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
    ledger: &Ledger,
    style: Style,
) -> Vec<LeftOutName> {
    let whole = whole_ordinals(view, &entry_ordinals(conversation, hashes, prior));
    let is_dropped = |ordinal: u64| !whole.contains(&ordinal);
    let ranking = NameRanking::from_ledger(ledger, style, None);
    let anchors = verify::anchors(ledger, &ranking, &is_dropped);
    let shown = verify::shown_anchors(&anchors, &view_text(view, conversation));
    let missing = anchors.iter().zip(shown).filter(|(_, shown)| !shown);
    let found = missing.filter_map(|(anchor, _)| {
        Some(LeftOutName {
            text: anchor.text.clone(),
            ordinal: anchor.find_ordinal(ledger, &is_dropped)?,
        })
    });
    found.collect()
}
