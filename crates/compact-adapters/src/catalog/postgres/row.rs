//! Records to rows and back.

use std::str::FromStr;

use compact_core::identity::{Chain, EntryHash};
use compact_runtime::port::archive::PackId;
use compact_runtime::port::catalog::{Attempt, CompactionRecord, SessionInfo};
use serde_json::Value;
use tokio_postgres::Row;

use super::Problem;
use crate::catalog::continues;

/// The columns that [`record`] reads, of `receipts JOIN sessions`.
pub(super) const COLUMNS: &str = "receipt_id, name, created_at, summary_version, previous, \
     input_pack, format, receipt::text, entry_hashes, view_hashes, new_from, continues, source_chain";

/// A record from a row of [`COLUMNS`].
pub(super) fn record(row: &Row) -> Result<CompactionRecord, Problem> {
    Ok(CompactionRecord {
        receipt_id: row.try_get(0)?,
        session_id: name(row, 1)?,
        created_at: row.try_get(2)?,
        summary_version: u32::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u32::MAX),
        previous: row.try_get(4)?,
        input_pack: row.try_get::<_, Option<&[u8]>>(5)?.map(pack).transpose()?,
        format: row.try_get(6)?,
        receipt: json(row, 7)?,
        entry_hashes: hashes(row, 8)?,
        view_hashes: hashes(row, 9)?,
        new_from: row.try_get::<_, i64>(10)?.unsigned_abs(),
        continues: continues::named(row.try_get(11)?),
        source_chain: row
            .try_get::<_, Option<&[u8]>>(12)?
            .map(chain)
            .transpose()?,
    })
}

/// An attempt from a row of `at, turn, outcome, tokens`.
pub(super) fn attempt(row: &Row) -> Result<Attempt, Problem> {
    Ok(Attempt {
        at: row.try_get(0)?,
        turn: row.try_get(1)?,
        outcome: row.try_get(2)?,
        tokens: row.try_get::<_, i64>(3)?.unsigned_abs(),
    })
}

/// A session from a row of `name, count, receipt_id, created_at, format`.
pub(super) fn session(row: &Row) -> Result<SessionInfo, Problem> {
    Ok(SessionInfo {
        session_id: name(row, 0)?,
        compactions: row.try_get::<_, i64>(1)?.unsigned_abs(),
        last_receipt: row.try_get(2)?,
        last_at: row.try_get(3)?,
        format: row.try_get(4)?,
    })
}

/// A pack from its bytes.
pub(super) fn pack(bytes: &[u8]) -> Result<PackId, Problem> {
    let id = bytes.try_into().map_err(|_| damaged("a pack id is cut"))?;
    Ok(PackId(id))
}

/// A chain from its bytes.
pub(super) fn chain(bytes: &[u8]) -> Result<Chain, Problem> {
    let chain = bytes.try_into().map_err(|_| damaged("a chain is cut"))?;
    Ok(Chain(chain))
}

/// Hashes one after the other.
pub(super) fn blob(hashes: &[EntryHash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

fn hashes(row: &Row, column: usize) -> Result<Vec<EntryHash>, Problem> {
    let bytes: &[u8] = row.try_get(column)?;
    let (chunks, _) = bytes.as_chunks();
    Ok(chunks.iter().map(|chunk| EntryHash(*chunk)).collect())
}

pub(super) fn name(row: &Row, column: usize) -> Result<String, Problem> {
    let bytes: &[u8] = row.try_get(column)?;
    let name = String::from_utf8(bytes.to_vec());
    name.map_err(|_| damaged("the name of a session is not UTF-8"))
}

/// JSON text of a column.
pub(super) fn json(row: &Row, column: usize) -> Result<Value, Problem> {
    let text: &str = row.try_get(column)?;
    Value::from_str(text).map_err(|error| damaged(&error.to_string()))
}

fn damaged(reason: &str) -> Problem {
    Problem::Damaged(reason.to_owned())
}
