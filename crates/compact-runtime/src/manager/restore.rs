//! The way back: restore an original, and prove a receipt again from the archive.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use bytes::Bytes;
use compact_core::engine::CompactionOutcome;
use compact_core::identity::{Chain, EntryHash};
use compact_core::message::{Conversation, Entry};
use compact_core::receipt::ENGINE;
use compact_core::token::TokenAccount;
use compact_core::verify::Retention;
use compact_core::view::ViewItem;
use compact_core::wire::WireRules;
use compact_formats::{Document, ParsedTranscript, TranscriptScope as FormatScope};
use serde_json::{Value, json};

use super::outcome::{self, ArchivedView};
use super::session_state::ENTRIES_FORMAT;
use super::{CompactionJob, CompactionRequest, Manager, MeasuredRequest};
use crate::error::Error;
use crate::port::archive::ArchiveError;
use crate::port::catalog::{
    BranchHistory, CompactionRecord, HISTORY_SIGN, InputRelation, NamedRecord, RuntimeFields,
    StoredReceipt, distinct_histories, find_named_record, widest_ends,
};

/// A restored original.
#[derive(Debug)]
pub struct RestoredOriginal {
    /// The bytes.
    pub bytes: Bytes,
    /// Whether they are exact, or redacted when they were archived.
    pub exact: bool,
}

/// What a receipt was held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifiedBy {
    /// The engine that made it, run again on the archived input: every field.
    Engine,
    /// The archived input and view: hashes, counts and sums.
    View(RerunObstacle),
    /// The archived input alone: no view was kept.
    Original(RerunObstacle),
}

/// Why the engine cannot make a view again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerunObstacle {
    /// Another version of it made the receipt.
    OtherEngine,
    /// Other redaction rules were in force.
    OtherRedaction,
    /// A hook or a run left a copy: nothing was compacted.
    NoCompaction,
    /// The archive was redacted: nobody has the original any more.
    RedactedOriginal,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct VerificationReport {
    /// What it was held against.
    pub by: VerifiedBy,
    /// Where it says something else.
    pub mismatches: Vec<FieldMismatch>,
}

/// One field of a receipt that does not recompute.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FieldMismatch {
    /// The field's dotted path.
    pub field: String,
    /// What the receipt says.
    pub recorded: Value,
    /// What the archive gives.
    pub recomputed: Value,
}

impl Manager {
    /// The input of a receipt (`receipt:ID`), or the whole of a session (`session:NAME`): its first input and all
    /// appended since. Fails for a session whose history went apart, and names each of its histories as `history:ID`:
    /// the whole up to a receipt.
    pub async fn restore(&self, name: &str) -> Result<RestoredOriginal, Error> {
        let latest = match find_named_record(&*self.catalog, name).await? {
            Some(NamedRecord::Receipt(end)) if name.starts_with(HISTORY_SIGN) => {
                return self.restore_session(&end).await;
            }
            Some(NamedRecord::Receipt(record)) => return self.input_of(&record).await,
            Some(NamedRecord::Session(latest)) => latest,
            None => return self.pack_named(name).await,
        };
        let chain = self.catalog.session_records(&latest.session_id).await?;
        match self.find_histories(&chain).await?.as_slice() {
            [] => self.restore_session(&latest).await,
            [only] => self.restore_session(only).await,
            ends => Err(Error::Branches {
                session: latest.session_id,
                ends: ends.iter().map(|end| end.receipt_id.clone()).collect(),
            }),
        }
    }

    /// The ends of a session whose histories are not the beginning of another one.
    async fn find_histories<'a>(
        &self,
        chain: &'a [CompactionRecord],
    ) -> Result<Vec<&'a CompactionRecord>, Error> {
        let mut histories = Vec::new();
        for end in widest_ends(chain) {
            let line = records_since_whole(self.lineage(end).await?);
            histories.push(BranchHistory::from_line(end, &line));
        }
        Ok(distinct_histories(&histories))
    }

    /// The hash of every entry that a session held up to a compaction, in order.
    pub async fn hash_session(&self, latest: &CompactionRecord) -> Result<Vec<EntryHash>, Error> {
        let whole = self.restore_session(latest).await?;
        let conversation = read_scope(&whole.bytes, latest, FormatScope::Whole)?;
        Ok(EntryHash::from_entries(&conversation.entries))
    }

    /// All that a session held up to a compaction.
    pub async fn restore_session(
        &self,
        latest: &CompactionRecord,
    ) -> Result<RestoredOriginal, Error> {
        let line = records_since_whole(self.lineage(latest).await?);
        let Some((first, later)) = line.split_first() else {
            return self.input_of(latest).await;
        };
        let mut whole = self.input_of(first).await?;
        for record in later {
            let next = self.input_of(record).await?;
            whole = RestoredOriginal {
                exact: whole.exact && next.exact,
                bytes: join_inputs(whole.bytes, next.bytes, record)?,
            };
        }
        Ok(whole)
    }

    /// What a pack holds that nothing on record names, by its address.
    async fn pack_named(&self, name: &str) -> Result<RestoredOriginal, Error> {
        let not_found = || Error::NotFound(name.to_owned());
        let archive = self.archive.as_ref().ok_or_else(not_found)?;
        let pack = name.parse().map_err(|_| not_found())?;
        match archive.get(&pack).await {
            Ok(bytes) => Ok(RestoredOriginal { bytes, exact: true }),
            Err(ArchiveError::Missing { .. }) => Err(not_found()),
            Err(error) => Err(error.into()),
        }
    }

    /// The archived input of a record.
    pub(crate) async fn input_of(
        &self,
        record: &CompactionRecord,
    ) -> Result<RestoredOriginal, Error> {
        let (Some(archive), Some(pack)) = (&self.archive, &record.input_pack) else {
            return Err(Error::NotArchived(record.receipt_id.clone()));
        };
        Ok(RestoredOriginal {
            bytes: archive.get(pack).await?,
            exact: record.is_exact(),
        })
    }

    /// Holds a receipt against the archive and says what differs.
    pub async fn verify_receipt(&self, receipt_id: &str) -> Result<VerificationReport, Error> {
        let record = self
            .catalog
            .find_record(receipt_id)
            .await?
            .ok_or_else(|| Error::NotFound(receipt_id.to_owned()))?;
        let original = self.input_of(&record).await?;
        let (conversation, rules) = read_conversation(&original.bytes, &record)?;
        let request = request_of(&record, &conversation, rules, &original.bytes);
        let prior = self.prior_of(&record).await?;
        let mut job = self.measure_record(&request, &record, prior).await?;
        // What has been protected since is no part of what was.
        job.measured.policy = self.policy.clone();
        // The view is read in any case: one that is damaged is found, whoever made it.
        let kept = self.archived_view(&record).await?;
        let (by, recomputed) = match (self.rerun_obstacle(&record), kept) {
            (None, _) => {
                job.measured.advice = self.advice_of(&record).await?;
                (VerifiedBy::Engine, recompute_receipt(&mut job)?)
            }
            (Some(why), Some(kept)) => (
                VerifiedBy::View(why),
                self.expected_from_view(&record, &job.measured, &kept),
            ),
            (Some(why), None) => (
                VerifiedBy::Original(why),
                self.expected_from_input(&record, &job.measured),
            ),
        };
        Ok(VerificationReport {
            by,
            mismatches: find_mismatches(record.receipt.as_json(), &recomputed),
        })
    }

    /// Why this engine, under the rules in force, would not make the view of a record again.
    fn rerun_obstacle(&self, record: &CompactionRecord) -> Option<RerunObstacle> {
        if record.receipt.engine() != Some(ENGINE) {
            return Some(RerunObstacle::OtherEngine);
        }
        if !self.is_same_redaction(record) {
            return Some(RerunObstacle::OtherRedaction);
        }
        (!record.is_exact()).then_some(RerunObstacle::RedactedOriginal)
    }

    /// The receipt with what follows from the input put in.
    fn expected_from_input(
        &self,
        record: &CompactionRecord,
        measured: &MeasuredRequest<'_>,
    ) -> Value {
        let mut read = record.receipt.as_json().clone();
        if record.is_exact() {
            set_field(&mut read, "tokens_before", json!(measured.account.history));
        }
        set_field(
            &mut read,
            "source_hash",
            json!(Chain::from_hashes(&record.entry_hashes)),
        );
        read
    }

    /// The same with what follows from input and view.
    fn expected_from_view(
        &self,
        record: &CompactionRecord,
        measured: &MeasuredRequest<'_>,
        kept: &ArchivedView,
    ) -> Value {
        let mut read = self.expected_from_input(record, measured);
        let conversation = &*measured.conversation;
        let leading = conversation.leading_instructions();
        let stays: HashSet<usize> = kept
            .view
            .items
            .iter()
            .filter_map(ViewItem::entry_index)
            .collect();
        let entries = leading..conversation.entries.len();
        let gone = entries.filter(|entry| !stays.contains(entry)).count();
        set_field(&mut read, "pruned_count", json!(gone));
        set_field(
            &mut read,
            "source_hash",
            json!(Chain::from_hashes(&kept.entry_hashes)),
        );
        if record.is_exact() {
            let after = outcome::shown_conversation(&kept.view, conversation);
            let hashes = EntryHash::from_entries(&after.entries);
            let account = TokenAccount::count_conversation(
                &after,
                &hashes,
                &*self.estimator,
                &mut Default::default(),
            );
            set_field(&mut read, "tokens_after", json!(account.history));
        }
        let is_recorded = kept.view_hashes == record.view_hashes;
        if !is_recorded {
            set_field(
                &mut read,
                "view_spans",
                json!("the record names another view"),
            );
        }
        if let Some(retention) = recompute_retention(&record.receipt) {
            set_field(&mut read, "retention", json!(retention));
        }
        read
    }
}

/// The receipt that this engine writes for the same input.
fn recompute_receipt(job: &mut CompactionJob<'_>) -> Result<Value, Error> {
    Ok(match job.make_view()? {
        CompactionOutcome::Unchanged => Value::Null,
        CompactionOutcome::Compacted(made) => {
            serde_json::to_value(&made.receipt).unwrap_or(Value::Null)
        }
    })
}

fn set_field(receipt: &mut Value, field: &str, value: Value) {
    if let Some(fields) = receipt.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// The retention of a receipt with its sums made again.
fn recompute_retention(receipt: &StoredReceipt) -> Option<Retention> {
    let told = receipt.retention()?;
    let anchors = told.kept + told.recoverable + told.lost + told.redacted;
    Some(Retention {
        anchors,
        score: match anchors {
            // Earlier engines called it 1 where nothing was to be kept.
            0 => told.score.map(|_| 1.0),
            all => Some(told.kept as f64 / all as f64),
        },
        ..told
    })
}

/// The end of a lineage from the last record on that held everything by itself.
fn records_since_whole(lineage: Vec<CompactionRecord>) -> Vec<CompactionRecord> {
    let is_whole = |record: &CompactionRecord| record.continues != InputRelation::View;
    let first = lineage.iter().rposition(is_whole).unwrap_or(0);
    lineage.into_iter().skip(first).collect()
}

/// The request that a record is the answer to.
pub(super) fn request_of<'a>(
    record: &'a CompactionRecord,
    conversation: &'a Conversation,
    rules: &'a WireRules,
    original: &Bytes,
) -> CompactionRequest<'a> {
    CompactionRequest::new(conversation, rules, &record.format, original.clone())
        .with_session(record.session_id.as_str())
        .with_budget(record.receipt.budget())
        .with_summary_limit(record.receipt.summary_limit())
        .with_note(record.receipt.note())
}

fn find_mismatches(recorded: &Value, recomputed: &Value) -> Vec<FieldMismatch> {
    let empty = serde_json::Map::new();
    let recorded = recorded.as_object().unwrap_or(&empty);
    recorded
        .iter()
        .filter(|(field, _)| !RuntimeFields::NAMES.contains(&field.as_str()))
        .filter_map(|(field, value)| {
            let now = recomputed.get(field).cloned().unwrap_or(Value::Null);
            (*value != now).then(|| FieldMismatch {
                field: field.clone(),
                recorded: value.clone(),
                recomputed: now,
            })
        })
        .collect()
}

/// The conversation of an archived input, and the rules it was compacted under.
pub(crate) fn read_conversation(
    bytes: &Bytes,
    record: &CompactionRecord,
) -> Result<(Conversation, &'static WireRules), Error> {
    let (conversation, document) = read_document(bytes, record)?;
    let rules = match document {
        Some(document) => document.rules(),
        None => named_rules(record),
    };
    Ok((conversation, rules))
}

/// The conversation that an agent would go on from, and the rules of its wire.
pub(super) fn read_live(
    bytes: &Bytes,
    record: &CompactionRecord,
) -> Result<(Conversation, &'static WireRules), Error> {
    if record.format == ENTRIES_FORMAT {
        return Ok((read_entries(bytes, record)?, named_rules(record)));
    }
    let live = parse_input(bytes.clone(), &record.format, FormatScope::Live)?;
    Ok((live.conversation, live.document.rules()))
}

fn named_rules(record: &CompactionRecord) -> &'static WireRules {
    let named = record.receipt.wire().and_then(compact_formats::rules_named);
    named.unwrap_or(&WireRules::LENIENT)
}

/// The conversation of an archived input with its document, when it was one.
pub(crate) fn read_document(
    bytes: &Bytes,
    record: &CompactionRecord,
) -> Result<(Conversation, Option<Document>), Error> {
    if record.format == ENTRIES_FORMAT {
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
    if record.format == ENTRIES_FORMAT {
        return read_entries(bytes, record);
    }
    Ok(parse_input(bytes.clone(), &record.format, scope)?.conversation)
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
    let entries: Result<Vec<Entry>, _> = serde_json::Deserializer::from_slice(bytes)
        .into_iter()
        .collect();
    Ok(Conversation {
        session_id: Some(record.session_id.clone()),
        model: record.receipt.model().map(str::to_owned),
        entries: entries.map_err(|source| Error::Record {
            receipt: record.receipt_id.clone(),
            source,
        })?,
        tools: None,
    })
}

pub(crate) fn parse_input(
    bytes: Bytes,
    format: &str,
    scope: FormatScope,
) -> Result<ParsedTranscript, Error> {
    let known = format.parse().ok();
    Ok(compact_formats::parse(bytes, known, scope)?)
}

/// The entries that the compaction saw: those of the live context, or all when it took them all.
/// A redacted input has other hashes, and as many entries.
fn parse_as_recorded(bytes: Bytes, record: &CompactionRecord) -> Result<ParsedTranscript, Error> {
    let seen = |parsed: &ParsedTranscript| {
        EntryHash::from_entries(&parsed.conversation.entries) == record.entry_hashes
    };
    let as_many =
        |parsed: &ParsedTranscript| parsed.conversation.entries.len() == record.entry_hashes.len();
    let live = parse_input(bytes.clone(), &record.format, FormatScope::Live)?;
    if seen(&live) {
        return Ok(live);
    }
    let whole = parse_input(bytes, &record.format, FormatScope::Whole)?;
    let took_all = seen(&whole) || (as_many(&whole) && !as_many(&live));
    Ok(if took_all { whole } else { live })
}

/// `whole` followed by what `next` added to the view before it.
fn join_inputs(whole: Bytes, next: Bytes, record: &CompactionRecord) -> Result<Bytes, Error> {
    if record.continues == InputRelation::Transcript {
        return Ok(next);
    }
    if record.format == ENTRIES_FORMAT {
        let new = next
            .split_inclusive(|b| *b == b'\n')
            .skip(record.new_from as usize);
        return Ok(Bytes::from(
            [whole.to_vec(), new.collect::<Vec<_>>().concat()].concat(),
        ));
    }
    let first = parse_input(whole, &record.format, FormatScope::Live)?;
    let later = parse_input(next, &record.format, FormatScope::Live)?;
    let from = record.new_from as usize;
    let bytes = first
        .document
        .extend(&later.document, &later.conversation, from)?;
    Ok(Bytes::from(bytes))
}
