//! What a view left out by name: what mattered of the entries that it lacks, and that none of its words say any more.
//!
//! Beyond what the receipt counts it tells what is whose: what this compaction took away, what an earlier one had taken
//! before it, and what the view shows as a part of a longer path.

use std::collections::HashSet;

use super::visible::{history_text, view_text, whole_ordinals};
use super::{Prior, entry_ordinals};
use crate::identity::EntryHash;
use crate::ledger::{Ledger, NameKind, scan_names};
use crate::message::Conversation;
use crate::summarize::{NameRanking, Style};
use crate::verify::{self, Anchor, AnchorKind};
use crate::view::View;

/// The most components of a path whose parts are looked at.
const COMPONENTS: usize = 24;

/// Something that a view does not say in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutName {
    /// The name, or the words of a rule.
    pub text: String,
    /// The entry that says it.
    pub ordinal: u64,
    /// What it is.
    pub kind: AnchorKind,
    /// Since when it is missing.
    pub loss: NameLoss,
}

/// Since when a view lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLoss {
    /// What went into this compaction said it.
    Now,
    /// An earlier compaction left it out.
    Before,
    /// The view says it as a part of a longer path.
    InLongerPath,
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
    let mut missing = verify::anchors(ledger, &ranking, &is_dropped);
    let after = view_text(view, conversation);
    retain_unshown(&mut missing, &after);
    let before = verify::shown_anchors(&missing, &history_text(conversation));
    let in_paths = parts_of_paths(&missing, &after);
    let new = prior.map_or(0, |prior| prior.ledger.next);
    let found = missing.iter().zip(before).filter_map(|(anchor, was_said)| {
        let ordinal = anchor.find_ordinal(ledger, &is_dropped)?;
        let kind = anchor.kind();
        Some(LeftOutName {
            text: anchor.text.clone(),
            ordinal,
            kind,
            loss: match kind {
                AnchorKind::Name if in_paths.contains(&*anchor.text) => NameLoss::InLongerPath,
                _ if was_said || ordinal >= new => NameLoss::Now,
                _ => NameLoss::Before,
            },
        })
    });
    found.collect()
}

fn retain_unshown(anchors: &mut Vec<Anchor>, text: &str) {
    let mut shown = verify::shown_anchors(anchors, text).into_iter();
    anchors.retain(|_| !shown.next().unwrap_or(false));
}

/// Which of the names a text says as parts of longer paths.
fn parts_of_paths<'a>(anchors: &'a [Anchor], text: &str) -> HashSet<&'a str> {
    let wanted: HashSet<&str> = anchors.iter().map(|anchor| anchor.text.as_str()).collect();
    let mut found = HashSet::new();
    scan_names(text, &mut |kind, _, name| {
        if kind == NameKind::Path {
            each_part(name, |part| {
                found.extend(wanted.get(part.trim_end_matches('/')))
            });
        }
    });
    found
}

/// Hands on every run of whole components of a path.
fn each_part(path: &str, mut part: impl FnMut(&str)) {
    let starts = path.match_indices('/').map(|(at, _)| at + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(starts).take(COMPONENTS).collect();
    for start in &starts {
        let ends = starts.iter().filter(|end| *end > start).map(|end| end - 1);
        for end in ends.chain([path.len()]) {
            if let Some(run) = path.get(*start..end) {
                part(run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_every_run_of_its_components_as_a_part() {
        let mut parts = Vec::new();
        each_part("/a/b.rs", |part| parts.push(part.to_owned()));
        assert_eq!(parts, ["", "/a", "/a/b.rs", "a", "a/b.rs", "b.rs"]);
    }
}
