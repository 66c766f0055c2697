//! Which passages hold the weightiest terms.
//!
//! Block by block the weight of every term is added to each passage that holds it: no term is left
//! out for being common, and no passage for coming late.

use std::ops::Range;
use std::sync::Arc;

use compact_core::identity::EntryHash;
use compact_core::message::EntryId;
use compact_runtime::port::index::{IndexLookup, LookupResult, PROSE_WEIGHT, RecallCandidate};
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, Transaction};
use serde::de::DeserializeOwned;

use super::number;
use super::posting::{self, BLOCK, PostingList};
use super::text::TextReader;
use crate::recall::row::parse_name as by_name;

pub(super) fn find_passages(
    t: &Transaction<'_>,
    lookup: &IndexLookup,
) -> rusqlite::Result<LookupResult> {
    let count = "SELECT coalesce(sum(passages), 0) FROM sessions";
    let passages = t.query_row(count, [], |row| row.get(0).map(i64::unsigned_abs))?;
    let blocks = read_blocks(t, &lookup.terms)?;
    let frequency = |at: usize| -> u64 {
        let lists = blocks.iter().filter_map(|block| block.lists.get(at));
        lists.map(PostingList::count).sum()
    };
    let mut found = LookupResult {
        passages,
        frequencies: (0..lookup.terms.len()).map(frequency).collect(),
        candidates: Vec::new(),
    };
    if let Some(within) = resolve_scope(t, lookup)? {
        let mut best = TopPassages::with_limit(lookup.limit);
        best.only = match lookup.after {
            Some(after) => Some(passages_after(t, after)?),
            None => None,
        };
        let best = select_best(t, &blocks, &found.weights(), &within, best)?;
        found.candidates = read_candidates(t, best)?;
    }
    Ok(found)
}

/// The list of each term in one block.
struct PostingBlock {
    number: i64,
    lists: Vec<PostingList>,
}

/// Returns the blocks that hold any of the terms, the newest first.
fn read_blocks(t: &Transaction<'_>, terms: &[String]) -> rusqlite::Result<Vec<PostingBlock>> {
    let last: Option<i64> = t.query_row("SELECT max(block) FROM postings", [], |row| row.get(0))?;
    let mut blocks = Vec::new();
    for number in (0..=last.unwrap_or(-1)).rev() {
        let lists = terms.iter().map(|term| posting::read_list(t, number, term));
        let lists = lists.collect::<rusqlite::Result<Vec<_>>>()?;
        if lists.iter().any(|list| !list.is_empty()) {
            blocks.push(PostingBlock { number, lists });
        }
    }
    Ok(blocks)
}

/// The sessions that a search covers.
enum SearchScope {
    Everything,
    /// What is filed under this term.
    Term(String),
}

/// Resolves the sessions to search; `None` if there is no such session.
fn resolve_scope(
    t: &Transaction<'_>,
    lookup: &IndexLookup,
) -> rusqlite::Result<Option<SearchScope>> {
    let Some(session) = &lookup.session_id else {
        return Ok(Some(SearchScope::Everything));
    };
    let mut select = t.prepare_cached("SELECT id FROM sessions WHERE name = ?")?;
    let id: Option<i64> = select.query_row([session], |row| row.get(0)).optional()?;
    Ok(id.map(|id| SearchScope::Term(posting::session_term(id))))
}

/// Returns the numbers of the passages with the highest scores, the newer of equal ones first.
fn select_best(
    t: &Transaction<'_>,
    blocks: &[PostingBlock],
    weights: &[f64],
    within: &SearchScope,
    mut best: TopPassages,
) -> rusqlite::Result<Vec<i64>> {
    let mut scores = vec![0.0; BLOCK];
    for block in blocks {
        block.score(weights, &mut scores);
        let said = posting::read_list(t, block.number, posting::SAID)?;
        update_scores(&mut scores, &said, |score| *score *= PROSE_WEIGHT as f32);
        match within {
            SearchScope::Everything => best.push_block(block.number, &scores),
            SearchScope::Term(term) => {
                let list = posting::read_list(t, block.number, term)?;
                best.push_block(block.number, &keep_scores_of(&scores, &list));
            }
        }
    }
    Ok(best.into_passages())
}

impl PostingBlock {
    /// Sets the score of each passage to the sum of the weights of its terms.
    fn score(&self, weights: &[f64], scores: &mut [f32]) {
        scores.fill(0.0);
        for (list, weight) in self.lists.iter().zip(weights) {
            update_scores(scores, list, |score| *score += *weight as f32);
        }
    }
}

/// Does something to the score of every passage in a list.
fn update_scores(scores: &mut [f32], list: &PostingList, change: impl Fn(&mut f32)) {
    for number in list.numbers() {
        if let Some(score) = scores.get_mut(usize::from(number)) {
            change(score);
        }
    }
}

/// Returns the scores of the passages in a list, and 0 for all others.
fn keep_scores_of(scores: &[f32], list: &PostingList) -> Vec<f32> {
    let mut kept = vec![0.0; BLOCK];
    for number in list.numbers().map(usize::from) {
        if let (Some(slot), Some(score)) = (kept.get_mut(number), scores.get(number)) {
            *slot = *score;
        }
    }
    kept
}

/// The highest scores so far. What is offered must come from the newest to the oldest.
struct TopPassages {
    limit: usize,
    /// Only what scores more can still be among them.
    floor: f32,
    scored: Vec<(f32, i64)>,
    /// The passages that count, in rows from the first; all, if it is not there.
    only: Option<Vec<Range<i64>>>,
}

impl TopPassages {
    fn with_limit(limit: usize) -> TopPassages {
        TopPassages {
            limit,
            floor: 0.0,
            scored: Vec::new(),
            only: None,
        }
    }

    fn counts(&self, passage: i64) -> bool {
        self.only.as_ref().is_none_or(|rows| {
            let at = rows.partition_point(|row| row.end <= passage);
            rows.get(at).is_some_and(|row| row.contains(&passage))
        })
    }

    fn push_block(&mut self, block: i64, scores: &[f32]) {
        for (number, score) in scores.iter().enumerate().rev() {
            let passage = block * BLOCK as i64 + number as i64;
            if *score > self.floor && self.counts(passage) {
                self.scored.push((*score, passage));
                if self.scored.len() >= self.limit.saturating_mul(8) {
                    self.trim();
                }
            }
        }
    }

    fn trim(&mut self) {
        self.scored
            .sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        if self.scored.len() >= self.limit {
            self.scored.truncate(self.limit);
            self.floor = self.scored.last().map_or(f32::MAX, |last| last.0);
        }
    }

    fn into_passages(mut self) -> Vec<i64> {
        self.trim();
        self.scored
            .into_iter()
            .map(|(_, passage)| passage)
            .collect()
    }
}

/// The columns that an entry is read from.
const SELECT_ENTRY: &str = "SELECT name, receipt_id, created_at, hash, entry_id, ordinal, role, \
     voice, spans, first, partner, said_at, text, frame, start, length FROM entries \
     JOIN texts ON texts.id = text JOIN receipts ON receipts.id = receipt JOIN sessions ON sessions.id = entries.session";

/// Returns the passages of entries with a higher ordinal, in rows from the first.
fn passages_after(t: &Transaction<'_>, after: u64) -> rusqlite::Result<Vec<Range<i64>>> {
    const SELECT: &str = "SELECT first, first + passages FROM entries \
         WHERE ordinal > ? ORDER BY first";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut select = t.prepare_cached(SELECT)?;
    let rows = select.query_map([after], |row| Ok(row.get(0)?..row.get(1)?))?;
    rows.collect()
}

/// Returns the entries of a session at these ordinals, whole.
pub(super) fn read_entries_at(
    t: &Transaction<'_>,
    session: &str,
    ordinals: &[u64],
) -> rusqlite::Result<Vec<RecallCandidate>> {
    let by_ordinal = format!("{SELECT_ENTRY} WHERE name = ? AND ordinal = ?");
    let mut select = t.prepare_cached(&by_ordinal)?;
    let mut texts = TextReader::default();
    let mut found = Vec::new();
    for ordinal in ordinals {
        let mut rows = select.query((session, i64::try_from(*ordinal).unwrap_or(i64::MAX)))?;
        while let Some(row) = rows.next()? {
            let entry = read_entry(row, &mut texts)?.candidate;
            let span = 0..entry.text.len();
            found.push(RecallCandidate { span, ..entry });
        }
    }
    Ok(found)
}

/// Returns the passages with their entries, each of which is read once.
fn read_candidates(
    t: &Transaction<'_>,
    mut passages: Vec<i64>,
) -> rusqlite::Result<Vec<RecallCandidate>> {
    let by_passage =
        format!("{SELECT_ENTRY} WHERE first = (SELECT max(first) FROM entries WHERE first <= ?)");
    passages.sort_unstable();
    let mut select = t.prepare_cached(&by_passage)?;
    let mut candidates: Vec<RecallCandidate> = Vec::with_capacity(passages.len());
    let mut texts = TextReader::default();
    let mut open: Option<DecodedEntry> = None;
    for passage in passages {
        let entry = match open.take().filter(|entry| entry.span_of(passage).is_some()) {
            Some(entry) => entry,
            None => select.query_row([passage], |row| read_entry(row, &mut texts))?,
        };
        if let Some(span) = entry.span_of(passage) {
            let entry = entry.candidate.clone();
            candidates.push(RecallCandidate { span, ..entry });
        }
        open = Some(entry);
    }
    Ok(candidates)
}

/// An entry that holds candidates.
struct DecodedEntry {
    candidate: RecallCandidate,
    first: i64,
    spans: Vec<Range<usize>>,
}

impl DecodedEntry {
    fn span_of(&self, passage: i64) -> Option<Range<usize>> {
        let at = usize::try_from(passage - self.first).ok()?;
        self.spans.get(at).cloned()
    }
}

fn read_entry(row: &Row<'_>, texts: &mut TextReader) -> rusqlite::Result<DecodedEntry> {
    let ordinal: Option<i64> = row.get(5)?;
    Ok(DecodedEntry {
        candidate: RecallCandidate {
            session_id: row.get(0)?,
            receipt_id: row.get(1)?,
            created_at: row.get(2)?,
            hash: EntryHash(row.get(3)?),
            entry_id: EntryId(row.get(4)?),
            ordinal: ordinal.map(i64::unsigned_abs),
            partner: row.get::<_, Option<i64>>(10)?.map(i64::unsigned_abs),
            said_at: row.get(11)?,
            role: read_named(row, 6)?,
            voice: read_named(row, 7)?,
            text: Arc::from(texts.read(row, 12)?),
            span: 0..0,
        },
        spans: decode_spans(row.get_ref(8)?.as_blob()?),
        first: row.get(9)?,
    })
}

/// Returns the spans of an entry's passages, as they are stored: how far each begins behind the one before, and its
/// length.
pub(super) fn encode_spans<'a>(spans: impl Iterator<Item = &'a Range<usize>>) -> Vec<u8> {
    let mut stored = Vec::new();
    let mut end = 0;
    for span in spans {
        number::write(&mut stored, span.start.saturating_sub(end) as u64);
        number::write(&mut stored, span.len() as u64);
        end = span.end;
    }
    stored
}

fn decode_spans(mut stored: &[u8]) -> Vec<Range<usize>> {
    let mut end = 0usize;
    std::iter::from_fn(|| {
        let start = end.checked_add(number::read(&mut stored)? as usize)?;
        end = start.checked_add(number::read(&mut stored)? as usize)?;
        Some(start..end)
    })
    .collect()
}

fn read_named<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    by_name(row.get_ref(column)?.as_str()?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
