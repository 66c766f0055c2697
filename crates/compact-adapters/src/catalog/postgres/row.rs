//! Records to rows and back.

use std::str::FromStr;

use compact_core::identity::{Chain, EntryHash};
use compact_runtime::port::archive::PackId;
use compact_runtime::port::catalog::{Attempt, CompactionRecord, SessionInfo, StoredReceipt};
use serde_json::Value;
use tokio_postgres::Row;

use super::StatementError;
use crate::catalog::continues;

/// The columns that [`read_record`] reads, of `receipts JOIN sessions`.
pub(super) const COLUMNS: &str = "receipt_id, name, created_at, summary_version, previous, \
     input_pack, format, receipt::text, entry_hashes, view_hashes, new_from, continues, source_chain";

/// Returns a record from a row of [`COLUMNS`].
pub(super) fn read_record(row: &Row) -> Result<CompactionRecord, StatementError> {
    Ok(CompactionRecord {
        receipt_id: row.try_get(0)?,
        session_id: read_name(row, 1)?,
        created_at: row.try_get(2)?,
        summary_version: u32::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u32::MAX),
        previous: row.try_get(4)?,
        input_pack: row
            .try_get::<_, Option<&[u8]>>(5)?
            .map(pack_from_bytes)
            .transpose()?,
        format: row.try_get(6)?,
        receipt: StoredReceipt::from(read_json(row, 7)?),
        entry_hashes: read_hashes(row, 8)?,
        view_hashes: read_hashes(row, 9)?,
        new_from: row.try_get::<_, i64>(10)?.unsigned_abs(),
        continues: continues::from_name(row.try_get(11)?),
        source_chain: row
            .try_get::<_, Option<&[u8]>>(12)?
            .map(chain_from_bytes)
            .transpose()?,
    })
}

/// Returns an attempt from a row of `at, turn, outcome, tokens`.
pub(super) fn read_attempt(row: &Row) -> Result<Attempt, StatementError> {
    Ok(Attempt {
        at: row.try_get(0)?,
        turn: row.try_get(1)?,
        outcome: row.try_get(2)?,
        tokens: row.try_get::<_, i64>(3)?.unsigned_abs(),
    })
}

/// Returns a session from a row of `name, count, receipt_id, created_at, format`.
pub(super) fn read_session(row: &Row) -> Result<SessionInfo, StatementError> {
    Ok(SessionInfo {
        session_id: read_name(row, 0)?,
        compactions: row.try_get::<_, i64>(1)?.unsigned_abs(),
        last_receipt: row.try_get(2)?,
        last_at: row.try_get(3)?,
        format: row.try_get(4)?,
    })
}

/// Returns a pack from its bytes.
pub(super) fn pack_from_bytes(bytes: &[u8]) -> Result<PackId, StatementError> {
    let id = bytes
        .try_into()
        .map_err(|_| damaged_row("a pack id is cut"))?;
    Ok(PackId(id))
}

/// Returns a chain from its bytes.
pub(super) fn chain_from_bytes(bytes: &[u8]) -> Result<Chain, StatementError> {
    let chain = bytes
        .try_into()
        .map_err(|_| damaged_row("a chain is cut"))?;
    Ok(Chain(chain))
}

/// Hashes one after the other.
pub(super) fn concat_hashes(hashes: &[EntryHash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

fn read_hashes(row: &Row, column: usize) -> Result<Vec<EntryHash>, StatementError> {
    let bytes: &[u8] = row.try_get(column)?;
    let (chunks, _) = bytes.as_chunks();
    Ok(chunks.iter().map(|chunk| EntryHash(*chunk)).collect())
}

pub(super) fn read_name(row: &Row, column: usize) -> Result<String, StatementError> {
    let bytes: &[u8] = row.try_get(column)?;
    let name = String::from_utf8(bytes.to_vec());
    name.map_err(|_| damaged_row("the name of a session is not UTF-8"))
}

/// Parses the JSON text of a column.
pub(super) fn read_json(row: &Row, column: usize) -> Result<Value, StatementError> {
    let text: &str = row.try_get(column)?;
    Value::from_str(text).map_err(|error| damaged_row(&error.to_string()))
}

fn damaged_row(reason: &str) -> StatementError {
    StatementError::Damaged(reason.to_owned())
}
