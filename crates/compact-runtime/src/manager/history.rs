//! The way back: restore an original, and prove a receipt again from the archive.

use bytes::Bytes;
use compact_core::engine::{self, Outcome};
use compact_formats::{Parsed, Scope as FormatScope};
use serde_json::Value;

use super::{Manager, Request};
use crate::error::Error;
use crate::port::catalog::{CompactionRecord, Continues};

/// A restored original.
#[derive(Debug)]
pub struct Original {
    /// The bytes.
    pub bytes: Bytes,
    /// Whether they are exact, or redacted when they were archived.
    pub exact: bool,
}

/// One field of a receipt that does not recompute.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Mismatch {
    /// The field's dotted path.
    pub field: String,
    /// What the receipt says.
    pub recorded: Value,
    /// What the archive gives.
    pub recomputed: Value,
}

impl Manager {
    /// The input of a receipt, or the whole of a session: its first input and all appended since.
    pub async fn restore(&self, receipt_or_session: &str) -> Result<Original, Error> {
        if let Some(record) = self.catalog.by_receipt(receipt_or_session).await? {
            return self.input_of(&record).await;
        }
        let chain = self.catalog.chain(receipt_or_session).await?;
        let Some((first, later)) = chain.split_first() else {
            return Err(Error::NotFound(receipt_or_session.to_owned()));
        };
        let mut whole = self.input_of(first).await?;
        for record in later {
            let next = self.input_of(record).await?;
            whole = Original {
                exact: whole.exact && next.exact,
                bytes: joined(whole.bytes, next.bytes, record)?,
            };
        }
        Ok(whole)
    }

    async fn input_of(&self, record: &CompactionRecord) -> Result<Original, Error> {
        let (Some(archive), Some(pack)) = (&self.archive, &record.input_pack) else {
            return Err(Error::NotArchived(record.receipt_id.clone()));
        };
        Ok(Original {
            bytes: archive.get(pack).await?,
            exact: record.receipt.get("exact") != Some(&Value::Bool(false)),
        })
    }

    /// Recomputes a receipt from the archive and says what differs.
    pub async fn verify(&self, receipt_id: &str) -> Result<Vec<Mismatch>, Error> {
        let record = self
            .catalog
            .by_receipt(receipt_id)
            .await?
            .ok_or_else(|| Error::NotFound(receipt_id.to_owned()))?;
        let original = self.input_of(&record).await?;
        let parsed = parse(original.bytes.clone(), &record.format)?;
        let request = Request {
            conversation: &parsed.conversation,
            rules: parsed.document.rules(),
            format: &record.format,
            original: original.bytes.clone(),
            session_id: Some(&record.session_id),
            budget: record
                .receipt
                .get("budget")
                .and_then(Value::as_u64)
                .map(compact_core::token::Tokens),
            note: record.receipt.get("note").and_then(Value::as_str),
        };
        let measured = self.measure(&request).await?;
        let recomputed = match engine::compact(&self.input(&measured))? {
            Outcome::Unchanged => Value::Null,
            Outcome::Compacted(made) => serde_json::to_value(&made.receipt).unwrap_or(Value::Null),
        };
        Ok(differences(&record.receipt, &recomputed))
    }
}

/// Fields that only the runtime knows: no engine can recompute them.
const RUNTIME_FIELDS: [&str; 4] = ["archive", "exact", "created_at", "elapsed_ms"];

fn differences(recorded: &Value, recomputed: &Value) -> Vec<Mismatch> {
    let empty = serde_json::Map::new();
    let recorded = recorded.as_object().unwrap_or(&empty);
    recorded
        .iter()
        .filter(|(field, _)| !RUNTIME_FIELDS.contains(&field.as_str()))
        .filter_map(|(field, value)| {
            let now = recomputed.get(field).cloned().unwrap_or(Value::Null);
            (*value != now).then(|| Mismatch {
                field: field.clone(),
                recorded: value.clone(),
                recomputed: now,
            })
        })
        .collect()
}

fn parse(bytes: Bytes, format: &str) -> Result<Parsed, Error> {
    let known = format.parse().ok();
    Ok(compact_formats::parse(bytes, known, FormatScope::Live)?)
}

fn joined(whole: Bytes, next: Bytes, record: &CompactionRecord) -> Result<Bytes, Error> {
    if record.continues == Continues::Transcript {
        return Ok(next);
    }
    let first = parse(whole, &record.format)?;
    let later = parse(next, &record.format)?;
    let bytes = first.document.extend(
        &later.document,
        &later.conversation,
        record.new_from as usize,
    )?;
    Ok(Bytes::from(bytes))
}
