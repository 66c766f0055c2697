//! The engine with everything that it reaches the world through, and what one can ask of it.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compact_adapters::config::{Config, RetentionConfig, StorageAdapter};
use compact_adapters::estimator;
use compact_adapters::journal::Journal;
use compact_adapters::store::Stores;
use compact_core::frame;
use compact_core::message::Conversation;
use compact_core::policy::Policy;
use compact_core::redact::{RedactionBoundary, Redactor};
use compact_core::token::{Estimator, Tokens};
use compact_core::window::Window;
use compact_runtime::manager::{
    ArchiveMode, MemoryLayers, RerunObstacle, RestoredOriginal, VerificationReport, VerifiedBy,
};
use compact_runtime::port::catalog::CompactionRecord;
use compact_runtime::port::clock::Clock;
use compact_runtime::port::embedder::Embedder;
use compact_runtime::port::event::EventSink;
use compact_runtime::port::index::RecallIndex;
use compact_runtime::port::summarizer::Summarizer;
use compact_runtime::recall::{
    EntryPointer, ExpandQuery, Expansion, RecallQuery, RestoredEntry, SearchAnswer, SearchHit,
    SecretDisplay,
};
use compact_runtime::{Manager, Recall};

use crate::builder::{CompactBuilder, WrapCatalog, WrapIndex};
use crate::error::Error;
use crate::events;
use crate::redaction::Redactors;
use crate::session::Session;
use crate::session_files::{self, StoreWithFiles};
use crate::storage::{ConfiguredStores, Storage, StorePair};

/// Compacts conversations, and brings back what their views left out. Cheap to clone: clones share
/// everything.
#[derive(Clone)]
pub struct Compact {
    parts: Arc<CompactParts>,
    /// The stores that sessions hold open; without any, each caller opens them.
    opened: Arc<Mutex<OpenedParts>>,
}

/// What sessions hold open; without any, stores are opened by whoever needs them.
#[derive(Default)]
struct OpenedParts {
    engine: Option<(Arc<Manager>, StorePair)>,
    index: Option<Arc<dyn RecallIndex>>,
}

/// The parts that a builder has collected.
pub(crate) struct CompactParts {
    pub(crate) config: Config,
    pub(crate) storage: Storage,
    pub(crate) redactors: Redactors,
    pub(crate) wrap_catalog: Option<WrapCatalog>,
    pub(crate) wrap_index: Option<WrapIndex>,
    pub(crate) estimator: Option<Arc<dyn Estimator>>,
    pub(crate) summarizer: Option<Arc<dyn Summarizer>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) sinks: Vec<Arc<dyn EventSink>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Compact {
    /// Starts a builder. By default originals go to the user's data directory, tokens are estimated,
    /// summaries are written without a model, and no events are exported.
    ///
    /// ```
    /// # fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    ///
    /// let compact = Compact::builder().model("gpt-5").in_memory().build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> CompactBuilder {
        CompactBuilder::default()
    }

    pub(crate) fn from_parts(parts: CompactParts) -> Compact {
        Compact {
            parts: Arc::new(parts),
            opened: Arc::default(),
        }
    }

    /// Returns the session of that name. Once it gets its history, it continues where an earlier process
    /// left it.
    pub fn session(&self, id: impl Into<String>) -> Session {
        Session::new(self.clone(), id.into())
    }

    /// Searches everything archived, and returns the entries that answer a question best, the best first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     serde_json::json!({"role": "user", "content": format!("Which port does service {n} use?")}),
    /// #     serde_json::json!({"role": "assistant", "content": format!("Service {n} uses port {}. ", 8000 + n).repeat(60)}),
    /// # ];
    /// # let messages: Vec<_> = (0..40).flat_map(turn).collect();
    /// # compact.session("ports").compact(&messages, None).await?;
    /// let hits = compact.recall("port of service 7").await?;
    /// assert!(hits[0].snippet.contains("8007") || hits[0].snippet.contains("service 7"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recall(&self, question: &str) -> Result<Vec<SearchHit>, Error> {
        let query = RecallQuery {
            text: question,
            limit: 8,
            ..RecallQuery::default()
        };
        Ok(self.search(&query).await?.hits)
    }

    /// Searches everything archived, within one session, after an entry, the newest first, or with another
    /// limit than [`Compact::recall`].
    pub async fn search(&self, query: &RecallQuery<'_>) -> Result<SearchAnswer, Error> {
        let recall = self.open_recall()?;
        if !recall.outdated_sessions().await?.is_empty() {
            let _turn = self.wait_for_index_turn().await;
            recall.update_index().await?;
        }
        Ok(recall.search(query).await?)
    }

    /// Returns the whole entry that a pointer names: `RECEIPT#NUMBER`, as views and hits show it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// use compact::recall::SecretDisplay;
    /// let error = compact.expand("not a pointer", SecretDisplay::Redacted).await.unwrap_err();
    /// assert_eq!(error.hint().as_deref(), Some("write RECEIPT#NUMBER, as a view or a hit shows it"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn expand(
        &self,
        pointer: &str,
        secrets: SecretDisplay,
    ) -> Result<RestoredEntry, Error> {
        let pointer = EntryPointer::parse(pointer)?;
        Ok(self.open_recall()?.read_entry(&pointer, secrets).await?)
    }

    /// Returns the whole entry that a pointer names within one session, by its id, a receipt or `.` for the one that was
    /// compacted last. `#NUMBER` alone is an entry of that session; a pointer to another one is refused.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// use compact::recall::SecretDisplay;
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # for session in ["ports", "hosts"] {
    /// #     let turn = |n: u32| [
    /// #         json!({"role": "user", "content": format!("Which of the {session} is number {n}?")}),
    /// #         json!({"role": "assistant", "content": format!("Number {n} of the {session}. ").repeat(60)}),
    /// #     ];
    /// #     let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// #     compact.session(session).compact(&messages, None).await?;
    /// # }
    /// let entry = compact.expand_within("ports", "#2", SecretDisplay::Redacted).await?;
    /// assert_eq!(entry.text(), "Which of the ports is number 1?");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn expand_within(
        &self,
        session: &str,
        pointer: &str,
        secrets: SecretDisplay,
    ) -> Result<RestoredEntry, Error> {
        let pointer = EntryPointer::parse(pointer)?;
        let recall = self.open_recall()?;
        Ok(recall.read_entry_within(session, &pointer, secrets).await?)
    }

    /// Returns archived entries for a reader: without secrets unless they are asked for, as many lines as there is room for, what
    /// matches a pattern, or with their neighbours.
    pub async fn read(&self, query: &ExpandQuery) -> Result<Expansion, Error> {
        Ok(self.open_recall()?.read(query).await?)
    }

    /// Returns the original of a receipt, or of a whole session, byte for byte as it was archived. Where the two could be
    /// mistaken, `receipt:ID` and `session:NAME` say which. A session that went apart is refused with the name of each of
    /// its histories, `history:ID`, which gives it whole.
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
    /// let prompt = compact.session("runs").compact(&messages, None).await?;
    /// let original = compact.restore("runs").await?;
    /// assert_eq!(serde_json::from_slice::<Vec<Value>>(&original.bytes).unwrap(), messages);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore(&self, receipt_or_session: &str) -> Result<RestoredOriginal, Error> {
        let manager = self.reading_manager()?;
        Ok(manager.restore(receipt_or_session).await?)
    }

    /// Recomputes a receipt from the archive, with the settings that it was made with, and returns what
    /// differs.
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
    /// let prompt = compact.session("runs").compact(&messages, None).await?;
    /// let receipt = prompt.receipt().unwrap();
    /// assert!(compact.verify(&receipt.receipt_id).await?.mismatches.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify(&self, receipt: &str) -> Result<VerificationReport, Error> {
        let store = self.store_to_read()?;
        let record = store.find_named(receipt).await?.into_record();
        if record.receipt.origin().is_some() {
            return verify_file(&store, &record).await;
        }
        let manager = self.manager_under_terms(store, &record)?;
        Ok(manager.verify_receipt(&record.receipt_id).await?)
    }

    /// Returns what a session knows after its last compaction, layer by layer; of a receipt, after that one.
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
    /// let memory = compact.remember("runs").await?;
    /// assert!(!memory.summary.is_empty() && !memory.recent.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remember(&self, session_or_receipt: &str) -> Result<MemoryLayers, Error> {
        let store = self.store_to_read()?;
        let record = store.find_remembered(session_or_receipt).await?;
        let manager = self.manager_under_terms(store, &record)?;
        Ok(manager.memory_layers(&record).await?)
    }

    /// Returns the record of a receipt, or of a session's last compaction.
    pub async fn find_record(&self, session_or_receipt: &str) -> Result<CompactionRecord, Error> {
        let named = self.store_to_read()?.find_named(session_or_receipt).await?;
        Ok(named.into_record())
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> &Config {
        &self.parts.config
    }

    /// Returns the configured limits of retention.
    pub fn retention(&self) -> RetentionConfig {
        self.parts.config.storage.retention
    }

    /// Returns the configured stores with their directory; `None` if the program passed its own.
    pub(crate) fn configured_stores(&self) -> Option<&ConfiguredStores> {
        self.parts.storage.configured()
    }

    /// Returns the directory of the configured stores; `None` if the program passed its own.
    pub fn data_directory(&self) -> Option<&Path> {
        self.parts.storage.root()
    }

    /// Returns the window of a model: the configured one, the registry's or the default.
    pub fn window(&self, model: Option<&str>) -> Window {
        let config = &self.parts.config;
        let window = Window::for_model(config.max_context_tokens.map(Tokens), model);
        window.at_most(config.window_limit.map(Tokens))
    }

    /// Returns the window that what is on record is compacted for: the configured one, or else the one that the session
    /// itself was counted against.
    pub(crate) fn window_on_record(
        &self,
        latest: &CompactionRecord,
        model: Option<&str>,
    ) -> Window {
        match (self.config().max_context_tokens, latest.receipt.window()) {
            (None, Some(own)) => {
                let limit = self.config().window_limit.map(Tokens);
                Window::for_model(Some(own), None).at_most(limit)
            }
            _ => self.window(model),
        }
    }

    /// Returns the estimator that counts tokens for a model.
    pub fn estimator(&self, model: Option<&str>) -> Arc<dyn Estimator> {
        match &self.parts.estimator {
            Some(lent) => Arc::clone(lent),
            None => self.parts.config.estimator.build_estimator(model),
        }
    }

    /// Returns the clock that everything is dated by.
    pub fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    /// Returns the redactor for a boundary.
    pub fn redactor(&self, boundary: RedactionBoundary) -> &Arc<Redactor> {
        self.parts.redactors.at(boundary)
    }

    /// Returns the redactor for originals that go to the program's own store.
    pub fn redactor_for_handed_original(&self) -> &Arc<Redactor> {
        self.parts.redactors.for_handed_original()
    }

    /// Returns whether the archive keeps originals exact or redacted.
    pub fn archive_mode(&self) -> ArchiveMode {
        let redactor = self.redactor(RedactionBoundary::Archive);
        match redactor.is_off() {
            true => ArchiveMode::Exact,
            false => ArchiveMode::Redacted(Arc::clone(redactor)),
        }
    }

    /// Returns the sink that receives all events, redacted for export.
    pub fn sink(&self) -> Result<Arc<dyn EventSink>, Error> {
        let redactor = self.redactor(RedactionBoundary::Export);
        let mut own = self.parts.sinks.clone();
        if let Some(journal) = self.journal() {
            own.push(Arc::new(journal));
        }
        events::build_sink(&self.parts.config, &own, redactor)
    }

    /// Returns the journal of the data directory; `None` where nothing is kept, or not on this machine.
    pub(crate) fn journal(&self) -> Option<Journal> {
        let is_here = self.parts.config.storage.adapter != StorageAdapter::S3;
        let root = self
            .data_directory()
            .filter(|_| is_here && self.keeps_originals())?;
        Some(Journal::new(root))
    }

    /// Notes the folder that a session's agent works in: the project that its requests count for.
    ///
    /// ```
    /// # fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// compact.note_project("my-agent", "/home/me/shop");
    /// # Ok(())
    /// # }
    /// ```
    pub fn note_project(&self, session: &str, folder: &str) {
        if let Some(journal) = self.journal() {
            journal.note_project(session, folder, self.clock().now());
        }
    }

    /// Returns the configured summarizer, if there is one; without a model of its own it uses `model`.
    pub fn summarizer(&self, model: Option<&str>) -> Result<Option<Arc<dyn Summarizer>>, Error> {
        if let Some(lent) = &self.parts.summarizer {
            return Ok(Some(Arc::clone(lent)));
        }
        let config = &self.parts.config.summarizer;
        if let Some(variable) = config.missing_key() {
            let variable = variable.to_owned();
            return Err(Error::MissingKey { variable });
        }
        Ok(config.build().map(|mut summarizer| {
            summarizer.model = summarizer.model.or_else(|| model.map(str::to_owned));
            Arc::new(summarizer) as Arc<dyn Summarizer>
        }))
    }

    /// Returns a model to talk to, at the server that is configured for summaries; `None` if none is.
    pub fn chat_model(&self, model: &str) -> Result<Option<Arc<dyn Summarizer>>, Error> {
        let config = &self.parts.config.summarizer;
        if let Some(variable) = config.missing_key() {
            let variable = variable.to_owned();
            return Err(Error::MissingKey { variable });
        }
        let built = config.build_chat_model(model);
        Ok(built.map(|built| Arc::new(built) as Arc<dyn Summarizer>))
    }

    /// Returns the configured embedder, if there is one.
    pub fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        if let Some(lent) = &self.parts.embedder {
            return Some(Arc::clone(lent));
        }
        let built = self.parts.config.embeddings.build()?;
        Some(Arc::new(built))
    }

    /// Returns the manager of all sessions; opens the stores and the configured models on first use.
    pub fn manager(&self) -> Result<Arc<Manager>, Error> {
        let mut opened = self.lock_opened();
        if let Some((manager, _)) = &opened.engine {
            return Ok(Arc::clone(manager));
        }
        let model = self.parts.config.model.as_deref();
        let store = self.store_to_write()?;
        let manager = self.build_manager(
            store.clone(),
            self.parts.config.policy.clone(),
            self.estimator(model),
        )?;
        let manager = manager.with_summarizer(self.summarizer(model)?);
        let manager = Arc::new(manager.with_embedder(self.embedder()));
        opened.engine = Some((Arc::clone(&manager), store));
        Ok(manager)
    }

    /// Returns the manager of sessions with another model than the configured one.
    pub(crate) fn manager_for(
        &self,
        model: Option<&str>,
        window: Tokens,
    ) -> Result<Arc<Manager>, Error> {
        let manager = Manager::clone(&*self.manager()?);
        let manager = manager.with_estimator(self.estimator(model));
        Ok(Arc::new(manager.with_window(window)))
    }

    fn lock_opened(&self) -> MutexGuard<'_, OpenedParts> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds a manager over a store with these settings; it uses no model.
    pub fn build_manager(
        &self,
        store: StorePair,
        policy: Policy,
        estimator: Arc<dyn Estimator>,
    ) -> Result<Manager, Error> {
        let redactor = Arc::clone(self.redactor(RedactionBoundary::Summary));
        let window = self.parts.config.window(None).tokens;
        let manager = Manager::new(store.catalog, estimator, redactor, window)
            .with_archive(self.keeps_originals().then_some(store.archive))
            .with_archive_mode(self.archive_mode())
            .with_clock(Arc::clone(&self.parts.clock))
            .with_policy(policy);
        Ok(manager.with_sink(self.sink()?))
    }

    /// Builds a manager that only reads from the store.
    pub fn reading_manager(&self) -> Result<Manager, Error> {
        let policy = self.parts.config.policy.clone();
        self.build_manager(self.store_to_read()?, policy, self.estimator(None))
    }

    /// Builds a manager with the settings that a receipt was made with.
    pub fn manager_under_terms(
        &self,
        store: StorePair,
        record: &CompactionRecord,
    ) -> Result<Manager, Error> {
        let (policy, estimator) = self.receipt_terms(record)?;
        self.build_manager(store, policy, estimator)
    }

    /// Returns the policy and the estimator of a receipt; for copies that name none, the present ones.
    fn receipt_terms(
        &self,
        record: &CompactionRecord,
    ) -> Result<(Policy, Arc<dyn Estimator>), Error> {
        let terms = record.receipt.terms();
        if terms.is_none() && record.receipt.origin().is_some() {
            return Ok((self.parts.config.policy.clone(), self.estimator(None)));
        }
        let terms = terms.ok_or_else(|| Error::OtherVersion(record.receipt_id.clone()))?;
        let own = self.estimator(self.parts.config.model.as_deref());
        if own.name() == terms.estimator {
            return Ok((terms.policy, own));
        }
        Ok((terms.policy, estimator::by_name(&terms.estimator, None)?))
    }

    /// Returns whether the settings archive originals.
    fn keeps_originals(&self) -> bool {
        match &self.parts.storage {
            Storage::Configured(_) => self.parts.config.storage.adapter != StorageAdapter::None,
            Storage::Lent(lent) => lent.archive.is_some(),
        }
    }

    /// Returns the store, and creates it if it does not exist.
    pub fn store_to_write(&self) -> Result<StorePair, Error> {
        Ok(self.wrapped(self.parts.storage.to_write()?))
    }

    /// Returns the store as it is, together with the files of hooks and runs.
    pub fn store_to_read(&self) -> Result<StorePair, Error> {
        let StorePair { archive, catalog } = self.store_as_is()?;
        let Some(root) = self.data_directory() else {
            return Ok(StorePair { archive, catalog });
        };
        Ok(StorePair {
            archive: Arc::new(StoreWithFiles::new(archive, root)),
            catalog: Arc::new(StoreWithFiles::new(catalog, root)),
        })
    }

    /// Returns the stores that the settings name; `None` if the program passed its own.
    pub fn stores(&self) -> Option<&Stores> {
        let configured = self.parts.storage.configured()?;
        Some(&configured.stores)
    }

    /// Returns the store without other files; an empty one in memory if there is none, so that reading
    /// never writes.
    pub fn store_as_is(&self) -> Result<StorePair, Error> {
        if let Some((_, store)) = &self.lock_opened().engine {
            return Ok(store.clone());
        }
        Ok(self.wrapped(self.parts.storage.as_is()?))
    }

    /// Returns the store that planning needs: none, unless the conversation names an earlier compaction.
    pub fn store_for_planning(&self, conversation: &Conversation) -> Result<StorePair, Error> {
        let mut entries = conversation.entries.iter();
        match entries.any(|entry| frame::find_frame(&entry.blocks).is_some()) {
            true => self.store_as_is(),
            false => Ok(StorePair::in_memory()),
        }
    }

    fn wrapped(&self, store: StorePair) -> StorePair {
        let Some(wrap) = &self.parts.wrap_catalog else {
            return store;
        };
        StorePair {
            catalog: wrap(store.catalog),
            ..store
        }
    }

    /// Returns whether something may have been stored.
    pub fn has_store(&self) -> bool {
        self.parts.storage.has_data()
    }

    /// Opens everything archived for searching; fails if nothing was ever archived.
    pub fn open_recall(&self) -> Result<Recall, Error> {
        let store = self.store_to_recall()?;
        Ok(Recall {
            archive: store.archive,
            catalog: store.catalog,
            index: self.index_to_search()?,
            redactor: Arc::clone(self.redactor(RedactionBoundary::Summary)),
        })
    }

    fn store_to_recall(&self) -> Result<StorePair, Error> {
        let Some(ConfiguredStores { root, stores }) = self.parts.storage.configured() else {
            return self.store_as_is();
        };
        if !stores.has_data() && !session_files::has_session_files(root) {
            return Err(Error::NothingArchived(root.display().to_string()));
        }
        // What hooks and runs kept is this machine's alone; an index that others share does not get it.
        match stores.shared_catalog() {
            Some(_) => self.store_as_is(),
            None => self.store_to_read(),
        }
    }

    fn index_to_search(&self) -> Result<Arc<dyn RecallIndex>, Error> {
        let mut opened = self.lock_opened();
        if let Some(index) = &opened.index {
            return Ok(Arc::clone(index));
        }
        let index = self.parts.storage.index()?;
        let index = match &self.parts.wrap_index {
            Some(wrap) => wrap(index),
            None => index,
        };
        // Held open beside the stores, and only then.
        opened.index = opened.engine.is_some().then(|| Arc::clone(&index));
        Ok(index)
    }

    /// Returns the recall index, if there is one.
    pub fn recall_index(&self) -> Result<Option<Arc<dyn RecallIndex>>, Error> {
        self.parts.storage.index_if_any()
    }
}

impl fmt::Debug for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Compact");
        shown.field("config", &self.parts.config);
        shown.finish_non_exhaustive()
    }
}

/// Verifies a file of a hook or a run, which has no receipt, by its own bytes.
async fn verify_file(
    store: &StorePair,
    record: &CompactionRecord,
) -> Result<VerificationReport, Error> {
    if let Some(pack) = &record.input_pack {
        store.archive.verify(pack).await?;
    }
    Ok(VerificationReport {
        by: VerifiedBy::Original(RerunObstacle::NoCompaction),
        mismatches: Vec::new(),
    })
}
