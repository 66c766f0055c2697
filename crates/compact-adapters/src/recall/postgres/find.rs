//! Which passages hold the weightiest terms: what each term weighs is added up in the database.

use std::sync::Arc;

use compact_core::identity::EntryHash;
use compact_core::message::EntryId;
use compact_runtime::port::index::{IndexLookup, LookupResult, PROSE_WEIGHT, RecallCandidate};
use tokio_postgres::Row;

use super::quote_term;
use crate::postgres::{PooledClient, PostgresError, PostgresServer, hash_key, to_signed};
use crate::recall::row::{decompress, parse_name};

pub(super) async fn find_passages(
    server: &PostgresServer,
    lookup: &IndexLookup,
) -> Result<LookupResult, PostgresError> {
    const COUNT: &str = "SELECT coalesce(sum(passages), 0)::bigint FROM compact.recall_sessions";
    let client = server.acquire_client().await?;
    let passages: i64 = client.query_one(COUNT, &[]).await?.get(0);
    let queries: Vec<Option<String>> = lookup.terms.iter().map(|term| quote_term(term)).collect();
    let mut found = LookupResult {
        passages: passages.unsigned_abs(),
        frequencies: count_frequencies(&client, &queries).await?,
        candidates: Vec::new(),
    };
    found.candidates = select_candidates(&client, lookup, &queries, &found.weights()).await?;
    Ok(found)
}

async fn count_frequencies(
    client: &PooledClient<'_>,
    queries: &[Option<String>],
) -> Result<Vec<u64>, PostgresError> {
    const SELECT: &str = "SELECT (SELECT count(*) FROM compact.recall_passages \
         WHERE terms @@ query::tsquery) \
         FROM unnest($1::text[]) WITH ORDINALITY AS asked (query, place) ORDER BY place";
    let rows = client.query(SELECT, &[&queries]).await?;
    let number = |row: &Row| row.get::<_, i64>(0).unsigned_abs();
    Ok(rows.iter().map(number).collect())
}

async fn select_candidates(
    client: &PooledClient<'_>,
    lookup: &IndexLookup,
    queries: &[Option<String>],
    weights: &[f64],
) -> Result<Vec<RecallCandidate>, PostgresError> {
    // Which passages count is decided before anything else of them is read. Weights are single
    // precision and added up in the order of the terms, as the embedded index does it: which of two
    // passages is the better one may hang on the last digit.
    const SELECT: &str = "WITH asked AS MATERIALIZED (\
           SELECT query::tsquery, weight FROM unnest($1::text[], $2::float4[]) \
             AS asked (query, weight) WHERE query IS NOT NULL), \
         best AS MATERIALIZED (\
           SELECT entry, first, beyond, id, \
             (SELECT sum(weight) FROM asked WHERE terms @@ query) \
               * CASE WHEN told THEN $3::float4 ELSE 1::float4 END AS score \
           FROM compact.recall_passages \
           WHERE terms @@ $4::text::tsquery AND ($5::bytea IS NULL \
             OR session = (SELECT id FROM compact.recall_sessions WHERE key = $5)) \
             AND ($7::bigint IS NULL OR entry IN \
               (SELECT id FROM compact.recall_entries WHERE ordinal > $7)) \
           ORDER BY score DESC, id DESC LIMIT $6) \
         SELECT name, receipt_id, created_at, hash, entry_id, ordinal, role, voice, text, \
           first, beyond, partner, said_at \
         FROM best JOIN compact.recall_entries AS entries ON entries.id = entry \
         JOIN compact.recall_receipts AS receipts ON receipts.id = receipt \
         JOIN compact.recall_sessions AS sessions ON sessions.id = entries.session";
    let any = queries.iter().flatten().cloned().collect::<Vec<_>>();
    if any.is_empty() {
        return Ok(Vec::new());
    }
    let session = lookup.session_id.as_deref().map(hash_key);
    let limit = i64::try_from(lookup.limit).unwrap_or(i64::MAX);
    let after = lookup.after.map(to_signed);
    let any = any.join(" | ");
    let weights: Vec<f32> = weights.iter().map(|weight| *weight as f32).collect();
    let told = PROSE_WEIGHT as f32;
    let rows = client
        .query(
            SELECT,
            &[&queries, &weights, &told, &any, &session, &limit, &after],
        )
        .await?;
    Ok(rows.iter().filter_map(read_candidate).collect())
}

/// Returns the entries of a session at these ordinals, whole.
pub(super) async fn read_entries_at(
    server: &PostgresServer,
    session: &str,
    ordinals: &[u64],
) -> Result<Vec<RecallCandidate>, PostgresError> {
    const SELECT: &str = "SELECT name, receipt_id, created_at, hash, entry_id, ordinal, role, \
         voice, text, 0 AS first, 0 AS beyond, partner, said_at \
         FROM compact.recall_entries AS entries \
         JOIN compact.recall_receipts AS receipts ON receipts.id = receipt \
         JOIN compact.recall_sessions AS sessions ON sessions.id = entries.session \
         WHERE sessions.key = $1 AND ordinal = ANY ($2::bigint[]) ORDER BY ordinal";
    let ordinals: Vec<i64> = ordinals.iter().map(|n| to_signed(*n)).collect();
    let client = server.acquire_client().await?;
    let rows = client
        .query(SELECT, &[&hash_key(session), &ordinals])
        .await?;
    let whole = |entry: RecallCandidate| RecallCandidate {
        span: 0..entry.text.len(),
        ..entry
    };
    Ok(rows.iter().filter_map(read_candidate).map(whole).collect())
}

/// Returns a row that cannot be read is one candidate less: everything here can be drawn again.
fn read_candidate(row: &Row) -> Option<RecallCandidate> {
    let text = |at: usize| -> Option<String> {
        Some(String::from_utf8_lossy(row.try_get(at).ok()?).into_owned())
    };
    let place = |at: usize| -> Option<usize> { row.try_get::<_, i32>(at).ok()?.try_into().ok() };
    let plain = decompress(row.try_get(8).ok()?).ok()?;
    Some(RecallCandidate {
        session_id: text(0)?,
        receipt_id: row.try_get(1).ok()?,
        created_at: row.try_get(2).ok()?,
        hash: EntryHash(row.try_get::<_, &[u8]>(3).ok()?.try_into().ok()?),
        entry_id: EntryId(text(4)?),
        ordinal: row
            .try_get::<_, Option<i64>>(5)
            .ok()?
            .map(i64::unsigned_abs),
        partner: row
            .try_get::<_, Option<i64>>(11)
            .ok()?
            .map(i64::unsigned_abs),
        said_at: row.try_get(12).ok()?,
        role: parse_name(row.try_get(6).ok()?).ok()?,
        voice: parse_name(row.try_get(7).ok()?).ok()?,
        text: Arc::from(String::from_utf8_lossy(&plain)),
        span: place(9)?..place(10)?,
    })
}
