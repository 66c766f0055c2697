//! Records to rows and back.

use std::str::FromStr;

use compact_core::identity::{Chain, EntryHash};
use compact_runtime::port::archive::PackId;
use compact_runtime::port::catalog::{Attempt, CompactionRecord, StoredReceipt};
use rusqlite::types::Type;
use rusqlite::{Params, Row, params};
use serde_json::Value;

use crate::catalog::continues;

/// The columns that [`read_record`] reads, of `receipts JOIN sessions`.
pub(super) const COLUMNS: &str = "receipt_id, name, created_at, summary_version, previous, \
     input_pack, format, receipt, entry_hashes, view_hashes, new_from, continues, source_chain";

/// Inserts what [`with_record_values`] gives, or fills in packs that were not known before.
pub(super) const INSERT: &str = "INSERT INTO receipts (session, receipt_id, created_at, \
     summary_version, previous, input_pack, format, receipt, entry_hashes, \
     view_hashes, new_from, continues, source_chain) \
     VALUES ((SELECT id FROM sessions WHERE name = ?2), \
     ?1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) \
     ON CONFLICT (session, receipt_id) DO UPDATE SET \
     input_pack = coalesce(input_pack, excluded.input_pack)";

/// Calls `then` with the values of a record in the order of [`COLUMNS`].
pub(super) fn with_record_values<T>(
    record: &CompactionRecord,
    then: impl FnOnce(&[&dyn rusqlite::ToSql]) -> T,
) -> T {
    then(params![
        record.receipt_id,
        record.session_id,
        record.created_at,
        record.summary_version,
        record.previous,
        record.input_pack.map(|pack| pack.0),
        record.format,
        record.receipt.to_string(),
        concat_hashes(&record.entry_hashes),
        concat_hashes(&record.view_hashes),
        to_signed(record.new_from),
        continues::to_name(record.continues),
        record.source_chain.map(|chain| chain.0),
    ])
}

/// Returns a record from a row of [`COLUMNS`].
pub(super) fn read_record(row: &Row<'_>) -> rusqlite::Result<CompactionRecord> {
    Ok(CompactionRecord {
        receipt_id: row.get(0)?,
        session_id: row.get(1)?,
        created_at: row.get(2)?,
        summary_version: row.get(3)?,
        previous: row.get(4)?,
        input_pack: row.get::<_, Option<_>>(5)?.map(PackId),
        format: row.get(6)?,
        receipt: StoredReceipt::from(read_json(row, 7)?),
        entry_hashes: read_hashes(row, 8)?,
        view_hashes: read_hashes(row, 9)?,
        new_from: read_number(row, 10)?,
        continues: continues::from_name(row.get_ref(11)?.as_str()?),
        source_chain: row.get::<_, Option<_>>(12)?.map(Chain),
    })
}

/// Returns an attempt from a row of `at, turn, outcome, tokens`.
pub(super) fn read_attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    Ok(Attempt {
        at: row.get(0)?,
        turn: row.get(1)?,
        outcome: row.get(2)?,
        tokens: read_number(row, 3)?,
    })
}

/// Returns the values of an attempt in a session.
pub(super) fn attempt_values<'a>(session: &'a str, attempt: &'a Attempt) -> impl Params + 'a {
    let Attempt {
        at,
        turn,
        outcome,
        tokens,
    } = attempt;
    (session, at, turn, outcome, to_signed(*tokens))
}

/// Converts a number for SQLite, whose integers are signed; a larger one becomes the largest.
fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns what [`to_signed`] stored.
pub(super) fn read_number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::unsigned_abs)
}

fn concat_hashes(hashes: &[EntryHash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

fn read_hashes(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<EntryHash>> {
    let bytes = row.get_ref(column)?.as_blob()?;
    let (chunks, _) = bytes.as_chunks();
    Ok(chunks.iter().map(|chunk| EntryHash(*chunk)).collect())
}

/// Parses the JSON text of a column.
pub(super) fn read_json(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    let text = row.get_ref(column)?.as_str()?;
    Value::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
