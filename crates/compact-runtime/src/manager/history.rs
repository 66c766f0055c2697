//! The way back: restore an original, and prove a receipt again from the archive.

use bytes::Bytes;
use compact_core::engine::{self, Outcome};
use compact_core::identity::EntryHash;
use compact_core::message::{Conversation, Entry};
use compact_core::token::Tokens;
use compact_core::wire::WireRules;
use compact_formats::{Parsed, Scope as FormatScope};
use serde_json::Value;

use super::session::ENTRIES;
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
        // A session that began anew under its old name is restored from its last beginning.
        let begin = chain
            .iter()
            .rposition(|r| r.continues == Continues::Fresh)
            .unwrap_or(0);
        let Some((first, later)) = chain.get(begin..).and_then(<[_]>::split_first) else {
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

    /// The archived input of a record.
    pub(super) async fn input_of(&self, record: &CompactionRecord) -> Result<Original, Error> {
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
        let (conversation, rules) = read(&original.bytes, &record)?;
        let request = Request {
            conversation: &conversation,
            rules,
            format: &record.format,
            original: original.bytes.clone(),
            session_id: Some(&record.session_id),
            budget: record
                .receipt
                .get("budget")
                .and_then(Value::as_u64)
                .map(Tokens),
            summary_limit: record
                .receipt
                .get("summary_limit")
                .and_then(Value::as_u64)
                .map(Tokens),
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

/// The conversation of an archived input, and the rules it was compacted under.
pub(super) fn read(
    bytes: &Bytes,
    record: &CompactionRecord,
) -> Result<(Conversation, &'static WireRules), Error> {
    if record.format != ENTRIES {
        let parsed = parse_as_recorded(bytes.clone(), record)?;
        return Ok((parsed.conversation, parsed.document.rules()));
    }
    let field = |name: &str| record.receipt.get(name).and_then(Value::as_str);
    let entries: Result<Vec<Entry>, _> = serde_json::Deserializer::from_slice(bytes)
        .into_iter()
        .collect();
    let conversation = Conversation {
        session_id: Some(record.session_id.clone()),
        model: field("model").map(str::to_owned),
        entries: entries.map_err(|source| Error::Record {
            receipt: record.receipt_id.clone(),
            source,
        })?,
        tools: None,
    };
    let rules = field("wire").and_then(compact_formats::rules_named);
    Ok((conversation, rules.unwrap_or(&WireRules::LENIENT)))
}

fn parse(bytes: Bytes, format: &str, scope: FormatScope) -> Result<Parsed, Error> {
    let known = format.parse().ok();
    Ok(compact_formats::parse(bytes, known, scope)?)
}

/// The entries that the compaction saw: those of the live context, or all when it took them all.
fn parse_as_recorded(bytes: Bytes, record: &CompactionRecord) -> Result<Parsed, Error> {
    let seen =
        |parsed: &Parsed| EntryHash::all(&parsed.conversation.entries) == record.entry_hashes;
    let live = parse(bytes.clone(), &record.format, FormatScope::Live)?;
    if seen(&live) {
        return Ok(live);
    }
    let whole = parse(bytes, &record.format, FormatScope::Whole)?;
    Ok(if seen(&whole) { whole } else { live })
}

/// `whole` followed by what `next` added to the view before it.
fn joined(whole: Bytes, next: Bytes, record: &CompactionRecord) -> Result<Bytes, Error> {
    if record.continues == Continues::Transcript {
        return Ok(next);
    }
    if record.format == ENTRIES {
        let new = next
            .split_inclusive(|b| *b == b'\n')
            .skip(record.new_from as usize);
        return Ok(Bytes::from(
            [whole.to_vec(), new.collect::<Vec<_>>().concat()].concat(),
        ));
    }
    let first = parse(whole, &record.format, FormatScope::Live)?;
    let later = parse(next, &record.format, FormatScope::Live)?;
    let from = record.new_from as usize;
    let bytes = first
        .document
        .extend(&later.document, &later.conversation, from)?;
    Ok(Bytes::from(bytes))
}
