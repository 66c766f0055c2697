//! What the id of a receipt is the hash of: everything that could change a view or its archive.

use std::collections::HashMap;

use crate::message::EntryKind;
use crate::prompt::SummaryContent;
use crate::receipt::{ENGINE, ReceiptIdentity};

use super::{CompactionInput, Originals, Preparation};

/// Gathers what the receipt's id is the hash of. A new input of a compaction does not compile before it
/// has its line here.
pub(super) fn receipt_identity<'a>(
    input: &'a CompactionInput<'_>,
    prepared: &Preparation,
) -> ReceiptIdentity<'a> {
    let CompactionInput {
        conversation: _, // by its hashes and shape; its model and tools are in the bytes of `original`
        session_id: _,   // of the record, not of the receipt: two sessions may share one
        hashes: _,       // by the chain over them
        account: _,      // follows from the conversation and the estimator
        prior,
        ledger: _, // follows from the conversation, the prior and the redactor
        policy,
        budget,
        summary_limit,
        original,
        estimator,
        rules,
        redactor: _, // by the fingerprint
        originals,
        note,
        meaning, // by the shape
        content,
        prepared: _, // follows from the others
    } = *input;
    ReceiptIdentity {
        engine: ENGINE,
        source: prepared.source(input),
        shape: match meaning {
            Some(_) => shape(input),
            None => prepared.shape_or(|| shape(input)),
        },
        previous: prior.map(|p| p.receipt_id.as_str()),
        policy,
        budget,
        summary_limit,
        original,
        estimator: estimator.name(),
        wire: rules.name,
        redaction: input.redaction_fingerprint(),
        is_archived: !matches!(originals, Originals::Gone),
        note,
        words: (*content != SummaryContent::Ledger).then_some(content),
    }
}

/// A digest of what identity leaves out and the plan looks at: call ids, flags, groups, kinds, and
/// embeddings if there are any. Its encoding is part of every receipt's id and never changes within
/// a version of the engine.
fn shape(input: &CompactionInput<'_>) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for number in input.meaning.into_iter().flatten().flatten() {
        hasher.update(&number.to_le_bytes());
    }
    // A reader may name groups by where they stand in a file: who is together counts, not the name.
    let mut groups: HashMap<&str, u64> = HashMap::new();
    for (entry, at) in input.conversation.entries.iter().zip(0..) {
        let group = entry.meta.group.as_deref();
        let first = group.map(|group| *groups.entry(group).or_insert(at));
        hash_kind(&mut hasher, &entry.meta.kind);
        if entry.meta.refused {
            hasher.update(b"R");
        }
        hash_list(&mut hasher, entry.meta.flags.iter().map(String::as_str));
        hasher.update(&first.unwrap_or(u64::MAX).to_le_bytes());
        hash_list(&mut hasher, entry.call_ids());
        hash_list(&mut hasher, entry.result_ids());
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

/// One byte for what an entry is; of a summary its number and its receipt, if it names one.
fn hash_kind(hasher: &mut blake3::Hasher, kind: &EntryKind) {
    let byte = match kind {
        EntryKind::Message => b'M',
        EntryKind::Summary { .. } => b'S',
        EntryKind::ForeignSummary => b'F',
        EntryKind::Injected => b'I',
        EntryKind::HostedTool => b'H',
    };
    hasher.update(&[byte]);
    if let EntryKind::Summary { version, receipt } = kind {
        hasher.update(&version.to_le_bytes());
        hash_list(hasher, receipt.as_deref().into_iter());
    }
}

/// Each text behind its length, and after the last one a length that no text has.
fn hash_list<'t>(hasher: &mut blake3::Hasher, texts: impl Iterator<Item = &'t str>) {
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(&u64::MAX.to_le_bytes());
}

#[cfg(test)]
mod tests;
