//! What a person does to a session on record: go back before a compaction, protect an entry, begin anew.
//!
//! Originals and records are never changed. Whoever goes back gets a session beside the first one, with what was on
//! record before.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use compact_core::identity::EntryHash;
use compact_core::message::Role;
use compact_runtime::Manager;
use compact_runtime::manager::write_record;
use compact_runtime::port::archive::PackId;
use compact_runtime::port::catalog::{CompactionRecord, StoredReceipt};
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
const INPUT_FIELDS: [&str; 9] = [
    "model",
    "window",
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

impl SessionSource {
    /// Returns the other session.
    pub fn session(&self) -> &str {
        match self {
            SessionSource::Branch { session, .. } | SessionSource::Start { session, .. } => session,
        }
    }
}

/// How many of the latest messages a new session is given whole.
const SAID_LAST: usize = 6;

/// What a new session is given of an old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedMemory {
    /// The compaction that it is the memory of.
    pub receipt: String,
    /// The protected entries, as text.
    pub pinned: Vec<String>,
    /// The summary.
    pub summary: String,
    /// What the user and the model said last, as far as the view keeps it beside the summary, each with its speaker.
    pub said: Vec<(Role, String)>,
}

impl Compact {
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
        let shown = memory.pinned.iter().map(|entry| manager.readable(entry));
        let mut pinned: Vec<String> = shown.collect();
        // What is protected by name may have left the view long ago.
        for text in manager.protected_texts(&record).await? {
            if !pinned.contains(&text) {
                pinned.push(text);
            }
        }
        pinned.retain(|text| !text.trim().is_empty());
        let people = memory.recent.iter().filter(|entry| {
            matches!(entry.role, Role::User | Role::Assistant) && entry.call_ids().next().is_none()
        });
        let said = people.map(|entry| (entry.role, manager.readable(entry)));
        let said = said.filter(|(_, text)| !text.trim().is_empty() && !pinned.contains(text));
        let mut said: Vec<(Role, String)> = said.collect();
        said.drain(..said.len().saturating_sub(SAID_LAST));
        Ok(CarriedMemory {
            receipt,
            said,
            pinned,
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

    /// Removes a session that a person made from another one, by going back or beginning anew, as long as nothing was
    /// compacted in it: it holds nothing that the other one does not.
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
    /// let receipt = compact.session_records("runs").await?.remove(0).receipt_id;
    /// compact.branch_before("runs", &receipt, "runs~1").await?;
    /// compact.remove_copied_session("runs~1").await?;
    /// assert!(compact.session_records("runs~1").await?.is_empty());
    /// assert!(compact.remove_copied_session("runs").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_copied_session(&self, session: &str) -> Result<(), Error> {
        let store = self.store_to_change()?;
        if !self.is_copied_session(session).await? {
            return Err(Error::HoldsItsOwn(session.to_owned()));
        }
        for record in store.catalog.session_records(session).await? {
            store.archive.remove_record(&record.address()).await?;
        }
        store.catalog.remove_session(session).await?;
        if let Some(index) = self.recall_index()? {
            index.forget(session).await?;
        }
        Ok(())
    }

    /// Returns whether a session was made from another one, holds nothing that the other one does not, and none was made
    /// from it.
    pub async fn is_copied_session(&self, session: &str) -> Result<bool, Error> {
        let Some(source) = self.session_source(session).await? else {
            return Ok(false);
        };
        let store = self.store_to_read()?;
        if self.has_copy(session).await? {
            return Ok(false);
        }
        let records = store.catalog.session_records(session).await?;
        let known = store.catalog.session_records(source.session()).await?;
        let packs: HashSet<PackId> = known.iter().flat_map(CompactionRecord::packs).collect();
        let mut own = records.iter().flat_map(CompactionRecord::packs);
        Ok(own.all(|pack| packs.contains(&pack)))
    }

    /// Whether another session was made from this one: its name goes on where this one's ends.
    async fn has_copy(&self, session: &str) -> Result<bool, Error> {
        let sessions = self.store_to_read()?.catalog.sessions().await?;
        let opening = format!("{session}~");
        for other in sessions
            .iter()
            .filter(|other| other.session_id.starts_with(&opening))
        {
            let source = self.session_source(&other.session_id).await?;
            if source.is_some_and(|source| source.session() == session) {
                return Ok(true);
            }
        }
        Ok(false)
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

    fn manager_to_change(&self) -> Result<Manager, Error> {
        let policy = self.config().policy.clone();
        self.build_manager(self.store_to_change()?, policy, self.estimator(None))
    }

    /// Returns the store to write to, together with the files of hooks and runs to read.
    pub(crate) fn store_to_change(&self) -> Result<StorePair, Error> {
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

pub(crate) fn not_found(name: &str) -> Error {
    compact_runtime::Error::NotFound(name.to_owned()).into()
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
