//! The way back: restore an original, and prove a receipt again from the archive.

use std::collections::HashSet;

use bytes::Bytes;
use compact_core::engine::{self, Outcome};
use compact_core::identity::{Chain, EntryHash};
use compact_core::message::{Conversation, Entry};
use compact_core::token::{Account, Tokens};
use compact_core::verify::Retention;
use compact_core::view::ViewItem;
use compact_core::wire::WireRules;
use compact_formats::{Document, Parsed, Scope as FormatScope};
use serde_json::{Value, json};

use super::outcome::{self, ArchivedView, is_of_this_engine};
use super::session::ENTRIES;
use super::{Manager, Measured, Request};
use crate::error::Error;
use crate::port::archive::ArchiveError;
use crate::port::catalog::{CompactionRecord, Continues};

/// A restored original.
#[derive(Debug)]
pub struct Original {
    /// The bytes.
    pub bytes: Bytes,
    /// Whether they are exact, or redacted when they were archived.
    pub exact: bool,
}

/// What a receipt was held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifiedBy {
    /// The engine that made it, run again on the archived input: every field.
    Engine,
    /// The archived input and view of another engine: hashes, counts and sums.
    View,
    /// The archived input alone: another engine made it, and kept no view.
    Original,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// What it was held against.
    pub by: VerifiedBy,
    /// Where it says something else.
    pub mismatches: Vec<Mismatch>,
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
        let Some(latest) = self.catalog.latest(receipt_or_session).await? else {
            return self.pack_named(receipt_or_session).await;
        };
        let line = whole_line(self.lineage(&latest).await?);
        let Some((first, later)) = line.split_first() else {
            return self.pack_named(receipt_or_session).await;
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

    /// What a pack holds that nothing on record names, by its address.
    async fn pack_named(&self, name: &str) -> Result<Original, Error> {
        let not_found = || Error::NotFound(name.to_owned());
        let archive = self.archive.as_ref().ok_or_else(not_found)?;
        let pack = name.parse().map_err(|_| not_found())?;
        match archive.get(&pack).await {
            Ok(bytes) => Ok(Original { bytes, exact: true }),
            Err(ArchiveError::Missing { .. }) => Err(not_found()),
            Err(error) => Err(error.into()),
        }
    }

    /// The archived input of a record.
    pub(super) async fn input_of(&self, record: &CompactionRecord) -> Result<Original, Error> {
        let (Some(archive), Some(pack)) = (&self.archive, &record.input_pack) else {
            return Err(Error::NotArchived(record.receipt_id.clone()));
        };
        Ok(Original {
            bytes: archive.get(pack).await?,
            exact: record.is_exact(),
        })
    }

    /// Holds a receipt against the archive and says what differs.
    pub async fn verify(&self, receipt_id: &str) -> Result<Verified, Error> {
        let record = self
            .catalog
            .by_receipt(receipt_id)
            .await?
            .ok_or_else(|| Error::NotFound(receipt_id.to_owned()))?;
        let original = self.input_of(&record).await?;
        let (conversation, rules) = read(&original.bytes, &record)?;
        let request = request_of(&record, &conversation, rules, &original.bytes);
        let mut measured = self.measure_again(&request, &record).await?;
        // What has been protected since is no part of what was.
        measured.policy = self.policy.clone();
        // The view is read in any case: one that is damaged is found, whoever made it.
        let kept = self.archived_view(&record).await?;
        let (by, recomputed) = match kept {
            _ if is_of_this_engine(&record) => {
                measured.advice = self.advice_of(&record).await?;
                (VerifiedBy::Engine, self.recomputed(&measured)?)
            }
            Some(kept) => (VerifiedBy::View, self.read_off(&record, &measured, &kept)),
            None => (
                VerifiedBy::Original,
                self.read_off_input(&record, &measured),
            ),
        };
        Ok(Verified {
            by,
            mismatches: differences(&record.receipt, &recomputed),
        })
    }

    /// The receipt that this engine writes for the same input.
    fn recomputed(&self, measured: &Measured<'_>) -> Result<Value, Error> {
        Ok(match engine::compact(&self.input(measured))? {
            Outcome::Unchanged => Value::Null,
            Outcome::Compacted(made) => serde_json::to_value(&made.receipt).unwrap_or(Value::Null),
        })
    }

    /// The receipt with what follows from the input put in.
    fn read_off_input(&self, record: &CompactionRecord, measured: &Measured<'_>) -> Value {
        let mut read = record.receipt.clone();
        if record.is_exact() {
            set(&mut read, "tokens_before", json!(measured.account.history));
        }
        set(
            &mut read,
            "source_hash",
            json!(Chain::over(&record.entry_hashes)),
        );
        read
    }

    /// The same with what follows from input and view.
    fn read_off(
        &self,
        record: &CompactionRecord,
        measured: &Measured<'_>,
        kept: &ArchivedView,
    ) -> Value {
        let mut read = self.read_off_input(record, measured);
        let conversation = &*measured.conversation;
        let leading = conversation.leading_instructions();
        let stays: HashSet<usize> = kept.view.items.iter().filter_map(ViewItem::entry).collect();
        let entries = leading..conversation.entries.len();
        let gone = entries.filter(|entry| !stays.contains(entry)).count();
        set(&mut read, "pruned_count", json!(gone));
        set(
            &mut read,
            "source_hash",
            json!(Chain::over(&kept.entry_hashes)),
        );
        if record.is_exact() {
            let after = outcome::shown(&kept.view, conversation);
            let hashes = EntryHash::all(&after.entries);
            let account = Account::of(&after, &hashes, &*self.estimator, &mut Default::default());
            set(&mut read, "tokens_after", json!(account.history));
        }
        let is_recorded = kept.view_hashes == record.view_hashes;
        if !is_recorded {
            set(
                &mut read,
                "view_spans",
                json!("the record names another view"),
            );
        }
        if let Some(retention) = summed(&record.receipt) {
            set(&mut read, "retention", json!(retention));
        }
        read
    }
}

fn set(receipt: &mut Value, field: &str, value: Value) {
    if let Some(fields) = receipt.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// The retention of a receipt with its sums made again.
fn summed(receipt: &Value) -> Option<Retention> {
    let told: Retention = serde_json::from_value(receipt.get("retention")?.clone()).ok()?;
    let anchors = told.kept + told.recoverable + told.lost + told.redacted;
    Some(Retention {
        anchors,
        score: match anchors {
            0 => 1.0,
            all => told.kept as f64 / all as f64,
        },
        ..told
    })
}

/// The end of a lineage from the last record on that held everything by itself.
fn whole_line(lineage: Vec<CompactionRecord>) -> Vec<CompactionRecord> {
    let is_whole = |record: &CompactionRecord| record.continues != Continues::View;
    let first = lineage.iter().rposition(is_whole).unwrap_or(0);
    lineage.into_iter().skip(first).collect()
}

/// The request that a record is the answer to.
pub(super) fn request_of<'a>(
    record: &'a CompactionRecord,
    conversation: &'a Conversation,
    rules: &'a WireRules,
    original: &Bytes,
) -> Request<'a> {
    let field = |name: &str| record.receipt.get(name);
    let tokens = |name: &str| field(name).and_then(Value::as_u64).map(Tokens);
    Request {
        conversation,
        rules,
        format: &record.format,
        original: original.clone(),
        session_id: Some(&record.session_id),
        budget: tokens("budget"),
        summary_limit: tokens("summary_limit"),
        note: field("note").and_then(Value::as_str),
        told: None,
        parent: None,
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
pub(crate) fn read(
    bytes: &Bytes,
    record: &CompactionRecord,
) -> Result<(Conversation, &'static WireRules), Error> {
    let (conversation, document) = read_document(bytes, record)?;
    let named = || {
        let wire = record.receipt.get("wire").and_then(Value::as_str);
        wire.and_then(compact_formats::rules_named)
    };
    let rules = match document {
        Some(document) => document.rules(),
        None => named().unwrap_or(&WireRules::LENIENT),
    };
    Ok((conversation, rules))
}

/// The conversation of an archived input with its document, when it was one.
pub(crate) fn read_document(
    bytes: &Bytes,
    record: &CompactionRecord,
) -> Result<(Conversation, Option<Document>), Error> {
    if record.format == ENTRIES {
        return Ok((read_entries(bytes, record)?, None));
    }
    let parsed = parse_as_recorded(bytes.clone(), record)?;
    Ok((parsed.conversation, Some(parsed.document)))
}

/// The conversation of an archived input as far as `scope` reaches, whatever was compacted of it.
pub(crate) fn read_scope(
    bytes: &Bytes,
    record: &CompactionRecord,
    scope: FormatScope,
) -> Result<Conversation, Error> {
    if record.format == ENTRIES {
        return read_entries(bytes, record);
    }
    Ok(parse(bytes.clone(), &record.format, scope)?.conversation)
}

/// The JSON of one entry of an archived input.
pub(crate) fn entry_bytes(bytes: &Bytes, document: Option<&Document>, at: usize) -> Bytes {
    let line = || bytes.split(|b| *b == b'\n').nth(at).unwrap_or_default();
    let found = match document {
        Some(document) => document.entry_bytes(at).unwrap_or_default(),
        None => line(),
    };
    Bytes::copy_from_slice(found)
}

fn read_entries(bytes: &Bytes, record: &CompactionRecord) -> Result<Conversation, Error> {
    let model = record.receipt.get("model").and_then(Value::as_str);
    let entries: Result<Vec<Entry>, _> = serde_json::Deserializer::from_slice(bytes)
        .into_iter()
        .collect();
    Ok(Conversation {
        session_id: Some(record.session_id.clone()),
        model: model.map(str::to_owned),
        entries: entries.map_err(|source| Error::Record {
            receipt: record.receipt_id.clone(),
            source,
        })?,
        tools: None,
    })
}

pub(crate) fn parse(bytes: Bytes, format: &str, scope: FormatScope) -> Result<Parsed, Error> {
    let known = format.parse().ok();
    Ok(compact_formats::parse(bytes, known, scope)?)
}

/// The entries that the compaction saw: those of the live context, or all when it took them all.
/// A redacted input has other hashes, and as many entries.
fn parse_as_recorded(bytes: Bytes, record: &CompactionRecord) -> Result<Parsed, Error> {
    let seen =
        |parsed: &Parsed| EntryHash::all(&parsed.conversation.entries) == record.entry_hashes;
    let as_many = |parsed: &Parsed| parsed.conversation.entries.len() == record.entry_hashes.len();
    let live = parse(bytes.clone(), &record.format, FormatScope::Live)?;
    if seen(&live) {
        return Ok(live);
    }
    let whole = parse(bytes, &record.format, FormatScope::Whole)?;
    let took_all = seen(&whole) || (as_many(&whole) && !as_many(&live));
    Ok(if took_all { whole } else { live })
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
