//! An index for programs that keep nothing: as durable as the process, and it reads everything.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{
    IndexAddition, IndexError, IndexLookup, IndexedEntry, IndexedPassage, LookupResult,
    PROSE_WEIGHT, RecallCandidate, RecallIndex,
};

/// Passages in memory.
#[derive(Debug, Default)]
pub struct MemoryIndex {
    additions: Mutex<Vec<HeldAddition>>,
}

/// An addition with all that it brought.
#[derive(Debug)]
struct HeldAddition {
    session_id: String,
    receipt_id: String,
    created_at: String,
    entries: Vec<IndexedEntry>,
}

impl HeldAddition {
    fn from_addition(addition: IndexAddition) -> Result<HeldAddition, IndexError> {
        Ok(HeldAddition {
            entries: addition.entries.collect::<Result<_, _>>()?,
            session_id: addition.session_id,
            receipt_id: addition.receipt_id,
            created_at: addition.created_at,
        })
    }

    /// Returns a whole entry as one candidate.
    fn whole_entry(&self, entry: &IndexedEntry) -> RecallCandidate {
        RecallCandidate {
            session_id: self.session_id.clone(),
            receipt_id: self.receipt_id.clone(),
            created_at: self.created_at.clone(),
            hash: entry.hash,
            entry_id: entry.entry_id.clone(),
            ordinal: entry.ordinal,
            partner: entry.partner,
            said_at: entry.said_at.clone(),
            role: entry.role,
            voice: entry.voice,
            span: 0..entry.text.len(),
            text: Arc::from(&*entry.text),
        }
    }
}

impl MemoryIndex {
    fn additions(&self) -> MutexGuard<'_, Vec<HeldAddition>> {
        self.additions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RecallIndex for MemoryIndex {
    async fn receipts(&self) -> Result<Vec<(String, String)>, IndexError> {
        let additions = self.additions();
        let names = additions
            .iter()
            .map(|a| (a.session_id.clone(), a.receipt_id.clone()));
        Ok(names.collect())
    }

    async fn add(&self, addition: IndexAddition) -> Result<(), IndexError> {
        let mut addition = HeldAddition::from_addition(addition)?;
        let mut additions = self.additions();
        let same = |a: &HeldAddition| {
            (&a.session_id, &a.receipt_id) == (&addition.session_id, &addition.receipt_id)
        };
        if additions.iter().any(same) {
            return Ok(());
        }
        let held = |new: &IndexedEntry| {
            let of_session = additions
                .iter()
                .filter(|a| a.session_id == addition.session_id);
            of_session
                .flat_map(|a| &a.entries)
                .any(|e| e.hash == new.hash)
        };
        let entries = std::mem::take(&mut addition.entries);
        addition.entries = entries
            .into_iter()
            .filter(|new| new.ordinal.is_some() || !held(new))
            .collect();
        let taken = |e: &IndexedEntry| addition.entries.iter().any(|new| new.hash == e.hash);
        for earlier in additions.iter_mut() {
            if earlier.session_id == addition.session_id {
                earlier.entries.retain(|e| !taken(e));
            }
        }
        additions.push(addition);
        Ok(())
    }

    async fn forget(&self, session: &str) -> Result<(), IndexError> {
        self.additions().retain(|a| a.session_id != session);
        Ok(())
    }

    async fn find(&self, lookup: &IndexLookup) -> Result<LookupResult, IndexError> {
        let additions = self.additions();
        let all: Vec<(&HeldAddition, &IndexedEntry, &IndexedPassage)> = additions
            .iter()
            .flat_map(|a| a.entries.iter().map(move |e| (a, e)))
            .flat_map(|(a, e)| e.passages.iter().map(move |p| (a, e, p)))
            .collect();
        let holding = |term: &String| all.iter().filter(|(.., p)| p.terms.contains(term)).count();
        let mut found = LookupResult {
            passages: all.len() as u64,
            frequencies: lookup.terms.iter().map(|t| holding(t) as u64).collect(),
            candidates: Vec::new(),
        };
        let weights = found.weights();
        let mut scored: Vec<(f64, RecallCandidate)> = all
            .into_iter()
            .filter(|(a, e, _)| is_within(lookup, a, e))
            .map(|(a, e, p)| {
                let span = p.span.clone();
                let whole = a.whole_entry(e);
                let score = score_passage(e, p, lookup, &weights);
                (score, RecallCandidate { span, ..whole })
            })
            .filter(|(score, _)| *score > 0.0)
            .collect();
        scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        scored.truncate(lookup.limit);
        found.candidates = scored.into_iter().map(|(_, candidate)| candidate).collect();
        Ok(found)
    }

    async fn entries_at(
        &self,
        session: &str,
        ordinals: &[u64],
    ) -> Result<Vec<RecallCandidate>, IndexError> {
        let additions = self.additions();
        let of_session = additions.iter().filter(|a| a.session_id == session);
        let entries = of_session.flat_map(|a| a.entries.iter().map(move |e| (a, e)));
        let wanted = entries.filter(|(_, e)| e.ordinal.is_some_and(|n| ordinals.contains(&n)));
        Ok(wanted.map(|(a, e)| a.whole_entry(e)).collect())
    }
}

fn is_within(lookup: &IndexLookup, addition: &HeldAddition, entry: &IndexedEntry) -> bool {
    let session = lookup.session_id.as_ref();
    session.is_none_or(|s| *s == addition.session_id)
        && lookup.after.is_none_or(|after| entry.ordinal > Some(after))
}

fn score_passage(
    entry: &IndexedEntry,
    passage: &IndexedPassage,
    lookup: &IndexLookup,
    weights: &[f64],
) -> f64 {
    let held = lookup.terms.iter().zip(weights);
    let sum: f64 = held
        .filter(|(term, _)| passage.terms.contains(term))
        .map(|(_, weight)| weight)
        .sum();
    match entry.voice.writes_prose() {
        true => sum * PROSE_WEIGHT,
        false => sum,
    }
}
