//! What a session remembers now: the layers of its latest view, and the ledger behind its summary.
//!
//! The view is the archived one; the rest is drawn from the archived input. All of it is redacted by the
//! rules in force now: what was archived under others may show what these hide.

use std::borrow::Cow;
use std::sync::Arc;

use compact_core::engine::{LeftOutName, find_left_out};
use compact_core::frame;
use compact_core::identity::EntryHash;
use compact_core::ledger::Ledger;
use compact_core::message::{Conversation, Entry};
use compact_core::outline::Outline;
use compact_core::pin::{PinRules, PinState};
use compact_core::policy::Policy;
use compact_core::redact::RedactionCounts;
use compact_core::view::{View, ViewItem};

use super::{Manager, restore};
use crate::error::Error;
use crate::port::catalog::CompactionRecord;

/// The memory of a session.
#[derive(Clone, Debug)]
pub struct MemoryLayers {
    /// Entries that stand in every view.
    pub pinned: Vec<Entry>,
    /// Everything that the session has established.
    pub ledger: Ledger,
    /// The rolling summary without its frame.
    pub summary: String,
    /// The latest entries, as the view shows them.
    pub recent: Vec<Entry>,
}

impl Manager {
    /// The memory that a compaction left. Policy and estimator must be those of its receipt.
    pub async fn memory_layers(&self, record: &CompactionRecord) -> Result<MemoryLayers, Error> {
        let original = self.input_of(record).await?;
        let (conversation, rules) = restore::read_conversation(&original.bytes, record)?;
        let request = restore::request_of(record, &conversation, rules, &original.bytes);
        let prior = self.prior_of(record).await?;
        let mut job = self.measure_record(&request, record, prior).await?;
        let view = self.view_of(record, &mut job).await?;
        let view = view.unwrap_or_else(|| View::identity(&conversation));
        let policy = self.with_pins_of_now(&record.session_id, &self.policy);
        let pins = pinned_flags(&policy.await?, &conversation, &job.measured.hashes)?;
        let ledger = Arc::unwrap_or_clone(job.measured.ledger);
        let memory = split_layers(&view, &conversation, &pins, ledger);
        Ok(self.redact_memory(memory))
    }

    /// What mattered in what a compaction left out and its view says nowhere: it is in the archive only. Policy and
    /// estimator must be those of its receipt.
    pub async fn left_out_names(
        &self,
        record: &CompactionRecord,
    ) -> Result<Vec<LeftOutName>, Error> {
        let original = self.input_of(record).await?;
        let (conversation, rules) = restore::read_conversation(&original.bytes, record)?;
        let request = restore::request_of(record, &conversation, rules, &original.bytes);
        let prior = self.prior_of(record).await?;
        let mut job = self.measure_record(&request, record, prior).await?;
        let Some(view) = self.view_of(record, &mut job).await? else {
            return Ok(Vec::new());
        };
        let measured = &job.measured;
        let (prior, ledger) = (measured.prior.as_ref(), &measured.ledger);
        let style = measured.policy.strategy;
        let read = &measured.conversation;
        Ok(find_left_out(
            &view,
            read,
            &measured.hashes,
            prior,
            ledger,
            style,
        ))
    }

    /// The layers without what the rules in force hide; the ledger was drawn under them.
    fn redact_memory(&self, memory: MemoryLayers) -> MemoryLayers {
        let redact = |entries: &[Entry]| {
            let redacted = self.redactor.redact_entries(entries);
            redacted.into_iter().map(Cow::into_owned).collect()
        };
        let summary = self
            .redactor
            .redact(&memory.summary, &mut RedactionCounts::new());
        MemoryLayers {
            pinned: redact(&memory.pinned),
            summary: summary.into_owned(),
            recent: redact(&memory.recent),
            ledger: memory.ledger,
        }
    }
}

/// Which entries are pinned under a policy.
fn pinned_flags(
    policy: &Policy,
    conversation: &Conversation,
    hashes: &[EntryHash],
) -> Result<Vec<bool>, Error> {
    let outline = Outline::from_conversation(conversation);
    let pins = PinRules::new(policy)?.of_units(conversation, &outline, hashes);
    let units = outline.units.iter().zip(pins);
    Ok(units
        .flat_map(|(unit, pin)| unit.entries.clone().map(move |_| pin == PinState::Pinned))
        .collect())
}

fn split_layers(
    view: &View,
    conversation: &Conversation,
    pins: &[bool],
    ledger: Ledger,
) -> MemoryLayers {
    let summary = view.summary().map(Entry::plain_text).unwrap_or_default();
    let mut memory = MemoryLayers {
        pinned: Vec::new(),
        summary: frame::body(&summary).unwrap_or(&summary).to_owned(),
        recent: Vec::new(),
        ledger,
    };
    for item in &view.items {
        let Some(at) = item.entry_index() else {
            continue;
        };
        let layer = match pins.get(at) {
            Some(true) => &mut memory.pinned,
            _ => &mut memory.recent,
        };
        layer.extend(ViewItem::shown_entry(item, conversation));
    }
    memory
}
