//! The pinned layer: entries that stand byte for byte in every view.
//!
//! Three layers make a view: *pinned* (here), the rolling *summary*, and the *recent* part. Pinning
//! looks at roles, flags and patterns; it does not judge whether they fit.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use regex::RegexSet;

use crate::error::CompactError;
use crate::identity::EntryHash;
use crate::message::{Block, Conversation, Entry, EntryKind};
use crate::outline::{Outline, UnitKind};
use crate::policy::Policy;

/// Decides which entries are protected.
#[derive(Debug)]
pub struct PinRules<'a> {
    policy: &'a Policy,
    patterns: RegexSet,
}

/// What stands in nearly every message: words, numbers, lines, a call's arguments.
const EVERYDAY_TEXT: &str = "Please look at this again, and tell me what to do next.\n\nI have read it: 1 of 30 was \
    wrong, and all of that is done now. The rest is as it was before, so there is nothing else to change here.\n\
    {\"path\": \"a.txt\", \"lines\": [1, 2]}\n";

/// Returns true for a pattern that would protect nearly every message of any session.
pub fn is_everyday_pattern(pattern: &str) -> bool {
    let texts = ["", EVERYDAY_TEXT];
    regex::Regex::new(pattern).is_ok_and(|built| texts.iter().any(|text| built.is_match(text)))
}

/// How a unit stands to the pinned layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinState {
    /// It stays, whole.
    Pinned,
    /// It was pinned, and the same words stand pinned later: only the newest stays.
    Repeated,
    /// It may be pruned.
    Free,
}

impl<'a> PinRules<'a> {
    /// Compiles the policy's patterns.
    pub fn new(policy: &'a Policy) -> Result<Self, CompactError> {
        for pattern in &policy.protected_patterns {
            regex::Regex::new(pattern).map_err(|e| CompactError::BadPattern {
                pattern: pattern.clone(),
                message: e.to_string(),
            })?;
        }
        let patterns =
            RegexSet::new(&policy.protected_patterns).map_err(|e| CompactError::BadPattern {
                pattern: policy.protected_patterns.join(" | "),
                message: e.to_string(),
            })?;
        Ok(PinRules { policy, patterns })
    }

    /// True when the entry must stay as it is.
    pub fn protects(&self, entry: &Entry) -> bool {
        if matches!(entry.meta.kind, EntryKind::Summary { .. }) {
            return false;
        }
        self.policy.roles_never_prune.contains(&entry.role)
            || entry.meta.flags.contains(&self.policy.protected_flag)
            || self.is_named(entry)
            || is_sealed_summary(entry)
            || (!self.patterns.is_empty() && self.patterns.is_match(&entry.plain_text()))
    }

    fn is_named(&self, entry: &Entry) -> bool {
        let named = &self.policy.protected_entries;
        // Versions before the canonical form gave names as well.
        let names = [EntryHash::from_entry, EntryHash::as_written];
        !named.is_empty() && names.iter().any(|name| named.contains(&name(entry)))
    }

    /// The pin of every unit: a unit with one protected entry is pinned whole.
    pub fn of_units(
        &self,
        conversation: &Conversation,
        outline: &Outline,
        hashes: &[EntryHash],
    ) -> Vec<PinState> {
        let mut newest = HashMap::new();
        let mut pins = vec![PinState::Free; outline.units.len()];
        for (i, unit) in outline.units.iter().enumerate() {
            let entries = conversation.entries.get(unit.entries.clone());
            let entries = entries.unwrap_or_default();
            let leading = unit.kind == UnitKind::Leading;
            if !leading && !entries.iter().any(|e| self.protects(e)) {
                continue;
            }
            if let Some(pin) = pins.get_mut(i) {
                *pin = PinState::Pinned;
            }
            let words = hashes.get(unit.entries.clone()).unwrap_or_default();
            if leading || !may_stand_once(conversation, &unit.entries) {
                continue;
            }
            // A copy with other flags would take those of this one away.
            let flags: Vec<_> = entries.iter().map(|entry| &entry.meta.flags).collect();
            let earlier = newest.insert((words, flags), i);
            if let Some(earlier) = earlier.and_then(|e| pins.get_mut(e)) {
                *earlier = PinState::Repeated;
            }
        }
        pins
    }
}

/// The hashes by which entries are known again: each by its own, a tool's result by that of its call,
/// since many results are alike. What says nothing has no name.
pub fn naming_hashes<'e>(
    entries: &'e [Entry],
    hashes: &[EntryHash],
    is_wanted: impl Fn(&Entry) -> bool,
) -> BTreeSet<EntryHash> {
    let mut calls: HashMap<&'e str, EntryHash> = HashMap::new();
    let mut names = BTreeSet::new();
    for (entry, hash) in entries.iter().zip(hashes) {
        calls.extend(entry.call_ids().map(|call| (call, *hash)));
        if !is_wanted(entry) || !is_nameable(entry) {
            continue;
        }
        let asked: Vec<_> = entry
            .result_ids()
            .map(|id| calls.get(id).copied())
            .collect();
        names.extend(asked.iter().copied().flatten());
        if asked.is_empty() || asked.contains(&None) {
            names.insert(*hash);
        }
    }
    names
}

/// True when a hash tells an entry from others.
pub fn is_nameable(entry: &Entry) -> bool {
    let mut blocks = entry.blocks.iter();
    blocks.any(|b| {
        matches!(
            b,
            Block::Text(_) | Block::ToolCall { .. } | Block::ToolResult { .. }
        )
    })
}

/// True when the same words elsewhere say all that these entries show. Two images with the same words
/// are two, and a message that holds more than these entries would be cut.
fn may_stand_once(conversation: &Conversation, entries: &Range<usize>) -> bool {
    let is_more = |b: &Block| matches!(b, Block::Media { .. } | Block::Opaque { .. });
    let continues = |at: usize| {
        let entry = conversation.entries.get(at);
        entry.is_some_and(|entry| entry.meta.continues)
    };
    let inside = conversation
        .entries
        .get(entries.clone())
        .unwrap_or_default();
    !continues(entries.start)
        && !continues(entries.end)
        && !inside.iter().flat_map(|e| &e.blocks).any(is_more)
}

/// A summary that only its provider can read: nothing else can say what it says.
fn is_sealed_summary(entry: &Entry) -> bool {
    entry.meta.kind == EntryKind::ForeignSummary
        && !entry.blocks.is_empty()
        && entry
            .blocks
            .iter()
            .all(|b| matches!(b, Block::Opaque { .. }))
}
