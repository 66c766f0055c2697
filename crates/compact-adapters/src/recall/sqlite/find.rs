//! Which passages hold the weightiest terms.
//!
//! Term by term, the rarest first: each adds its weight to the passages that hold it. Once enough
//! passages are gathered, the commoner terms only count where a rarer one stands, so a question of
//! everyday words costs no more than a rare name.

use std::collections::HashMap;
use std::io;

use compact_core::identity::EntryHash;
use compact_core::message::EntryId;
use compact_runtime::port::index::{Candidate, Found, Lookup, weight};
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, Transaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Passages that are gathered by their own terms.
const GATHERED: u64 = 10_000;

/// The most that one term brings, the newest first.
const PER_TERM: i64 = 10_000;

pub(super) fn find(t: &Transaction<'_>, lookup: &Lookup) -> rusqlite::Result<Found> {
    let passages = t.query_row("SELECT count(*) FROM passages", [], number)?;
    let frequencies: rusqlite::Result<Vec<u64>> =
        lookup.terms.iter().map(|term| frequency(t, term)).collect();
    let mut found = Found {
        passages,
        frequencies: frequencies?,
        candidates: Vec::new(),
    };
    let Some(within) = within(t, lookup)? else {
        return Ok(found);
    };
    let weights = scores(t, lookup, &found, &within)?;
    found.candidates = candidates(t, weights, lookup.limit)?;
    Ok(found)
}

/// The condition that a passage is of the session asked for; `None` when there is no such session.
fn within(t: &Transaction<'_>, lookup: &Lookup) -> rusqlite::Result<Option<String>> {
    let Some(session) = &lookup.session_id else {
        return Ok(Some(String::new()));
    };
    let select = "SELECT id FROM sessions WHERE name = ?";
    let id: Option<i64> = t
        .query_row(select, [session], |row| row.get(0))
        .optional()?;
    Ok(id.map(|id| format!(" AND \"#{id}\"")))
}

fn number(row: &Row<'_>) -> rusqlite::Result<u64> {
    row.get(0).map(i64::unsigned_abs)
}

fn frequency(t: &Transaction<'_>, term: &str) -> rusqlite::Result<u64> {
    let mut select = t.prepare_cached("SELECT doc FROM vocabulary WHERE term = ?")?;
    let found = select.query_row([term], number).optional()?;
    Ok(found.unwrap_or(0))
}

/// What the terms in each passage weigh together.
fn scores(
    t: &Transaction<'_>,
    lookup: &Lookup,
    found: &Found,
    within: &str,
) -> rusqlite::Result<HashMap<i64, f64>> {
    let mut terms: Vec<(u64, &String)> = found
        .frequencies
        .iter()
        .copied()
        .zip(&lookup.terms)
        .filter(|(frequency, _)| *frequency > 0)
        .collect();
    terms.sort_unstable();
    let mut scores: HashMap<i64, f64> = HashMap::new();
    let mut rarer: Vec<String> = Vec::new();
    let mut gathered = 0;
    let mut select = t.prepare_cached(
        "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT ?",
    )?;
    for (frequency, term) in terms {
        let opens = rarer.is_empty() || gathered + frequency <= GATHERED;
        let beside = match opens {
            true => String::new(),
            false => format!(" AND ({})", rarer.join(" OR ")),
        };
        let query = format!("{}{beside}{within}", quoted(term));
        let weight = weight(frequency, found.passages);
        let mut rows = select.query((query, PER_TERM))?;
        while let Some(row) = rows.next()? {
            *scores.entry(row.get(0)?).or_default() += weight;
        }
        if opens {
            gathered += frequency;
            rarer.push(quoted(term));
        }
    }
    Ok(scores)
}

/// A term of the vocabulary as a string of FTS5's query language.
fn quoted(term: &str) -> String {
    format!("\"{}\"", term.replace('"', "\"\""))
}

/// The passages with the highest scores, the newer of equal ones first.
fn candidates(
    t: &Transaction<'_>,
    scores: HashMap<i64, f64>,
    limit: usize,
) -> rusqlite::Result<Vec<Candidate>> {
    const SELECT: &str = "SELECT name, receipt_id, created_at, hash, entry_id, ordinal, role, \
         voice, text, start, bytes FROM passages JOIN entries ON entries.id = entry \
         JOIN receipts ON receipts.id = receipt JOIN sessions ON sessions.id = entries.session \
         WHERE passages.id = ?";
    let mut best: Vec<(f64, i64)> = scores.into_iter().map(|(id, score)| (score, id)).collect();
    best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    best.truncate(limit);
    let mut select = t.prepare_cached(SELECT)?;
    best.into_iter()
        .map(|(_, id)| select.query_row([id], candidate))
        .collect()
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    let ordinal: Option<i64> = row.get(5)?;
    Ok(Candidate {
        session_id: row.get(0)?,
        receipt_id: row.get(1)?,
        created_at: row.get(2)?,
        hash: EntryHash(row.get(3)?),
        entry_id: EntryId(row.get(4)?),
        ordinal: ordinal.map(i64::unsigned_abs),
        role: named(row, 6)?,
        voice: named(row, 7)?,
        text: passage(row)?,
    })
}

/// The text of the passage, out of its entry's.
fn passage(row: &Row<'_>) -> rusqlite::Result<String> {
    let plain = zstd::decode_all(row.get_ref(8)?.as_blob()?).map_err(|e| damaged(8, e))?;
    let (start, bytes): (i64, i64) = (row.get(9)?, row.get(10)?);
    let start = start.unsigned_abs() as usize;
    let span = start..start.saturating_add(bytes.unsigned_abs() as usize);
    Ok(String::from_utf8_lossy(plain.get(span).unwrap_or_default()).into_owned())
}

fn damaged(column: usize, error: io::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, error.into())
}

/// A role or a voice as its serialized name.
pub(super) fn name(value: impl Serialize) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

fn named<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let name = serde_json::Value::from(row.get::<_, String>(column)?);
    serde_json::from_value(name).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
