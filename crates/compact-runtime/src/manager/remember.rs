//! What a session remembers now: the layers of its latest view, and the ledger behind its summary.
//!
//! The view is the archived one; the rest is drawn from the archived input.

use compact_core::ledger::Ledger;
use compact_core::memory::{Pin, Pins};
use compact_core::message::{Conversation, Entry};
use compact_core::outline::Outline;
use compact_core::summarize::frame;
use compact_core::view::{View, ViewItem};

use super::{Manager, Measured, history};
use crate::error::Error;
use crate::port::catalog::CompactionRecord;

/// The memory of a session.
#[derive(Clone, Debug)]
pub struct Memory {
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
    pub async fn remember(&self, record: &CompactionRecord) -> Result<Memory, Error> {
        let original = self.input_of(record).await?;
        let (conversation, rules) = history::read(&original.bytes, record)?;
        let request = history::request_of(record, &conversation, rules, &original.bytes);
        let mut measured = self.measure_again(&request, record).await?;
        let view = self.view_of(record, &mut measured).await?;
        let view = view.unwrap_or_else(|| View::identity(&conversation));
        let pins = self.pins(&conversation, &measured)?;
        Ok(layers(&view, &conversation, &pins, measured.ledger))
    }

    /// Which entries are pinned.
    fn pins(
        &self,
        conversation: &Conversation,
        measured: &Measured<'_>,
    ) -> Result<Vec<bool>, Error> {
        let outline = Outline::of(conversation);
        let pins = Pins::new(&self.policy)?.of_units(conversation, &outline, &measured.hashes);
        let units = outline.units.iter().zip(pins);
        Ok(units
            .flat_map(|(unit, pin)| unit.entries.clone().map(move |_| pin == Pin::Pinned))
            .collect())
    }
}

fn layers(view: &View, conversation: &Conversation, pins: &[bool], ledger: Ledger) -> Memory {
    let summary = view.summary().map(Entry::plain_text).unwrap_or_default();
    let mut memory = Memory {
        pinned: Vec::new(),
        summary: frame::body(&summary).unwrap_or(&summary).to_owned(),
        recent: Vec::new(),
        ledger,
    };
    for item in &view.items {
        let Some(at) = item.entry() else { continue };
        let layer = match pins.get(at) {
            Some(true) => &mut memory.pinned,
            _ => &mut memory.recent,
        };
        layer.extend(ViewItem::shown(item, conversation));
    }
    memory
}
