//! What a person does to a session on record: compact it now, go back before a compaction, protect an entry, begin anew.
//!
//! Originals and records are never changed. Whoever goes back gets a session beside the first one, with what was on
//! record before.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use compact_core::identity::EntryHash;
use compact_core::message::{Conversation, Entry};
use compact_core::token::Tokens;
use compact_core::wire::WireRules;
use compact_formats::{TranscriptScope, parse, rules_named};
use compact_runtime::Manager;
use compact_runtime::manager::{
    CompactionRequest, ENTRIES_FORMAT, RETRY_ASKED, RequestOutcome, write_record,
};
use compact_runtime::port::catalog::{Attempt, CompactionRecord, StoredReceipt};
use serde_json::{Value, json};

use crate::compact::Compact;
use crate::error::Error;
use crate::session_files::StoreWithFiles;
use crate::storage::StorePair;

/// The event of a session that was made by going back.
const BRANCHED: &str = "compact.branched";
/// The origin of a record that has what a session held before a compaction: nothing was compacted.
pub const BRANCH_ORIGIN: &str = "branch";
/// What a receipt says of its input, and of how that is read.
const INPUT_FIELDS: [&str; 8] = [
    "model",
    "wire",
    "policy",
    "estimator",
    "tokens_before",
    "tokens_fixed",
    "view_spans",
    "exact",
];
/// The event of a session that begins with what another one knew.
const STARTED: &str = "compact.session_started";

/// Where a session comes from that has another one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionSource {
    /// It is another session as it was before a compaction.
    Branch {
        /// The other session.
        session: String,
        /// The compaction that it knows nothing of.
        before: String,
    },
    /// It began with what another session knew.
    Start {
        /// The other session.
        session: String,
        /// The compaction whose memory it was given.
        receipt: String,
    },
}

/// What a new session is given of an old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedMemory {
    /// The compaction that it is the memory of.
    pub receipt: String,
    /// The protected entries, as text.
    pub pinned: Vec<String>,
    /// The summary.
    pub summary: String,
}

impl Compact {
    /// Compacts everything that is archived of a session, whatever the pressure, to a budget or to the policy's. Returns
    /// the receipt; `None` if it fits as it is.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// use compact::token::Tokens;
    ///
    /// compact.session("runs").compact(&messages, None).await?;
    /// let smaller = compact.compact_archived("runs", Some(Tokens(2_000))).await?.unwrap();
    /// assert!(smaller.tokens_after() <= Some(Tokens(2_000)));
    /// assert_eq!(compact.session_records("runs").await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn compact_archived(
        &self,
        session: &str,
        budget: Option<Tokens>,
    ) -> Result<Option<StoredReceipt>, Error> {
        let store = self.store_to_change()?;
        let latest = store.catalog.latest_record(session).await?;
        let latest = latest.ok_or_else(|| not_found(session))?;
        let original = self.restore_session(&latest).await?.bytes;
        let (conversation, rules) = read_history(&original, &latest)?;
        let model = conversation.model.as_deref().or(latest.receipt.model());
        let policy = self.config().policy.clone();
        let manager = self.build_manager(store, policy, self.estimator(model))?;
        let manager = manager.with_window(self.window(model).tokens);
        let manager = manager.with_summarizer(self.summarizer(model)?);
        let request = CompactionRequest::new(&conversation, rules, &latest.format, original)
            .with_session(session)
            .with_budget(budget);
        match manager.compact(&request).await? {
            RequestOutcome::Done(commit) => Ok(Some(commit.receipt)),
            RequestOutcome::Unchanged { .. } => {
                // What fits under the policy leaves nothing to try again.
                if budget.is_none() {
                    self.forget_failure(session).await?;
                }
                Ok(None)
            }
            RequestOutcome::Declined { reason, .. } => {
                Err(compact_runtime::Error::Declined(reason).into())
            }
        }
    }

    /// Forgets that the last attempt failed, and compacts what is archived of the session. Returns the receipt; `None` if
    /// it fits as it is, or nothing of it is archived: then its own program tries again with its next call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// assert!(compact.retry_compaction("runs").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retry_compaction(&self, session: &str) -> Result<Option<StoredReceipt>, Error> {
        self.forget_failure(session).await?;
        let store = self.store_to_change()?;
        match store.catalog.latest_record(session).await? {
            Some(_) => self.compact_archived(session, None).await,
            None => Ok(None),
        }
    }

    /// Makes a session that stands where another one stood before a compaction: it has the compactions before that one and
    /// what went into it, and knows nothing of what came out. Nothing of the other session changes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// # use compact::token::Tokens;
    /// compact.session("runs").compact(&messages, None).await?;
    /// compact.compact_archived("runs", Some(Tokens(2_000))).await?;
    /// let records = compact.session_records("runs").await?;
    /// compact.branch_before("runs", &records[1].receipt_id, "runs~1").await?;
    /// let branch = compact.session_records("runs~1").await?;
    /// assert_eq!(branch[0].receipt_id, records[0].receipt_id);
    /// assert_eq!(branch[1].input_pack, records[1].input_pack);
    /// assert_eq!((branch.len(), compact.session_records("runs").await?.len()), (2, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn branch_before(
        &self,
        session: &str,
        receipt: &str,
        name: &str,
    ) -> Result<(), Error> {
        let store = self.store_to_change()?;
        let records = store.catalog.session_records(session).await?;
        let at = records
            .iter()
            .position(|record| record.receipt_id == receipt);
        let at = at.ok_or_else(|| not_found(receipt))?;
        if self.is_known(&store, name).await? {
            return Err(Error::NameTaken(name.to_owned()));
        }
        for record in records.iter().take(at) {
            // Copies of transcripts are files; they belong to the session that left them.
            if record.receipt.origin().is_none() {
                save_record(&store, &record.clone().in_session(name)).await?;
            }
        }
        let now = self.clock().timestamp();
        let undone = records.get(at);
        if let Some(undone) = undone.filter(|record| record.input_pack.is_some()) {
            save_record(&store, &state_before(undone, name, &now)).await?;
        }
        let event =
            json!({ "event": BRANCHED, "session": session, "receipt_id": receipt, "ts": now });
        Ok(store.catalog.save_event(name, &event).await?)
    }

    /// Returns what a new session would be given of another one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// compact.session("runs").compact(&messages, None).await?;
    /// let memory = compact.carried_memory("runs").await?;
    /// compact.start_session("runs", &memory.receipt, "runs, continued").await?;
    /// assert!(memory.summary.contains("Measure run"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn carried_memory(&self, session: &str) -> Result<CarriedMemory, Error> {
        let store = self.store_to_read()?;
        let record = store.find_remembered(session).await?;
        let receipt = record.receipt_id.clone();
        let manager = self.manager_under_terms(store, &record)?;
        let memory = manager.memory_layers(&record).await?;
        let pinned = memory.pinned.iter().map(Entry::plain_text);
        Ok(CarriedMemory {
            receipt,
            pinned: pinned.filter(|text| !text.trim().is_empty()).collect(),
            summary: memory.summary,
        })
    }

    /// Records that a session begins with what another one knew after a compaction.
    pub async fn start_session(
        &self,
        session: &str,
        receipt: &str,
        name: &str,
    ) -> Result<(), Error> {
        let store = self.store_to_change()?;
        if self.is_known(&store, name).await? {
            return Err(Error::NameTaken(name.to_owned()));
        }
        let event = json!({ "event": STARTED, "session": session, "receipt_id": receipt, "ts": self.clock().timestamp() });
        Ok(store.catalog.save_event(name, &event).await?)
    }

    /// Returns where a session comes from, if another one was before it.
    pub async fn session_source(&self, session: &str) -> Result<Option<SessionSource>, Error> {
        let events = self.store_to_read()?.catalog.events(session).await?;
        Ok(events.iter().find_map(read_source))
    }

    /// Protects an entry of a session from now on, by the name that a compaction's reading has for it.
    pub async fn protect_entry(&self, session: &str, name: EntryHash) -> Result<(), Error> {
        let manager = self.manager_to_change()?;
        Ok(manager.protect(session, &BTreeSet::from([name])).await?)
    }

    /// Lets an entry go that was protected by name.
    pub async fn release_entry(&self, session: &str, name: EntryHash) -> Result<(), Error> {
        let manager = self.manager_to_change()?;
        Ok(manager.unprotect(session, &BTreeSet::from([name])).await?)
    }

    /// Returns the names of a session's protected entries.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// compact.session("runs").compact(&messages, None).await?;
    /// let name = compact.read_compaction("runs").await?.entry_name(0).unwrap();
    /// compact.protect_entry("runs", name).await?;
    /// assert!(compact.protected_entries("runs").await?.contains(&name));
    /// compact.release_entry("runs", name).await?;
    /// assert!(compact.protected_entries("runs").await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn protected_entries(&self, session: &str) -> Result<BTreeSet<EntryHash>, Error> {
        Ok(self.reading_manager()?.protected_entries(session).await?)
    }

    /// Records that the last attempt is no reason to wait, nor to warn.
    async fn forget_failure(&self, session: &str) -> Result<(), Error> {
        let attempt = Attempt {
            at: self.clock().timestamp(),
            turn: String::new(),
            outcome: RETRY_ASKED.to_owned(),
            tokens: 0,
        };
        let store = self.store_to_change()?;
        Ok(store.catalog.save_attempt(session, &attempt).await?)
    }

    fn manager_to_change(&self) -> Result<Manager, Error> {
        let policy = self.config().policy.clone();
        self.build_manager(self.store_to_change()?, policy, self.estimator(None))
    }

    /// Returns the store to write to, together with the files of hooks and runs to read.
    fn store_to_change(&self) -> Result<StorePair, Error> {
        let StorePair { archive, catalog } = self.store_to_write()?;
        let Some(root) = self.data_directory() else {
            return Ok(StorePair { archive, catalog });
        };
        Ok(StorePair {
            archive: Arc::new(StoreWithFiles::new(archive, root)),
            catalog: Arc::new(StoreWithFiles::new(catalog, root)),
        })
    }

    async fn is_known(&self, store: &StorePair, name: &str) -> Result<bool, Error> {
        let sessions = store.catalog.sessions().await?;
        Ok(sessions.iter().any(|info| info.session_id == name))
    }
}

async fn save_record(store: &StorePair, record: &CompactionRecord) -> Result<(), Error> {
    store.catalog.save_record(record).await?;
    Ok(write_record(&*store.archive, record).await?)
}

/// Returns what went into a compaction as a record of a session that knows nothing of what came out.
fn state_before(undone: &CompactionRecord, name: &str, now: &str) -> CompactionRecord {
    let place = format!("{BRANCHED} {name} {}", undone.receipt_id);
    let id = blake3::hash(place.as_bytes()).to_string();
    let mut receipt =
        json!({ "receipt_id": id, "session_id": name, "origin": BRANCH_ORIGIN, "created_at": now });
    let told = undone.receipt.as_json();
    for field in INPUT_FIELDS {
        if let (Some(value), Some(receipt)) = (told.get(field), receipt.as_object_mut()) {
            receipt.insert(field.to_owned(), value.clone());
        }
    }
    CompactionRecord {
        receipt_id: id,
        session_id: name.to_owned(),
        created_at: now.to_owned(),
        receipt: StoredReceipt::from(receipt),
        view_hashes: Vec::new(),
        source_chain: None,
        ..undone.clone()
    }
}

fn not_found(name: &str) -> Error {
    compact_runtime::Error::NotFound(name.to_owned()).into()
}

/// Reads a restored original, with the rules that it was compacted under.
fn read_history(
    bytes: &Bytes,
    record: &CompactionRecord,
) -> Result<(Conversation, &'static WireRules), Error> {
    if record.format != ENTRIES_FORMAT {
        let format = record.format.parse().ok();
        let parsed = parse(bytes.clone(), format, TranscriptScope::Live)?;
        return Ok((parsed.conversation, parsed.document.rules()));
    }
    let entries: Result<Vec<Entry>, _> = serde_json::Deserializer::from_slice(bytes)
        .into_iter()
        .collect();
    let entries = entries.map_err(|source| compact_runtime::Error::Record {
        receipt: record.receipt_id.clone(),
        source,
    })?;
    let conversation = Conversation {
        session_id: Some(record.session_id.clone()),
        model: record.receipt.model().map(str::to_owned),
        entries,
        tools: None,
    };
    let rules = record.receipt.wire().and_then(rules_named);
    Ok((conversation, rules.unwrap_or(&WireRules::LENIENT)))
}

/// Reads from an event of a session which one was before it; none of any other event.
pub(crate) fn read_source(event: &Value) -> Option<SessionSource> {
    let field = |name: &str| Some(event.get(name)?.as_str()?.to_owned());
    let session = field("session");
    match event.get("event")?.as_str()? {
        BRANCHED => Some(SessionSource::Branch {
            session: session?,
            before: field("receipt_id")?,
        }),
        STARTED => Some(SessionSource::Start {
            session: session?,
            receipt: field("receipt_id")?,
        }),
        _ => None,
    }
}
