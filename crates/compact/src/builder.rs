//! From settings and what a program lends to a [`Compact`].

use std::path::PathBuf;
use std::sync::Arc;

use compact_adapters::config::{Config, ConfigSources, StorageAdapter};
use compact_adapters::exporter::CallbackSink;
use compact_adapters::store::Stores;
use compact_core::event::Event;
use compact_core::policy::Policy;
use compact_core::redact::Scrub;
use compact_core::token::Estimator;
use compact_runtime::port::archive::ArchiveStore;
use compact_runtime::port::catalog::{MemoryCatalog, SessionCatalog};
use compact_runtime::port::clock::{Clock, SystemClock};
use compact_runtime::port::embedder::Embedder;
use compact_runtime::port::event::EventSink;
use compact_runtime::port::index::{MemoryIndex, RecallIndex};
use compact_runtime::port::summarizer::Summarizer;

use crate::compact::{Compact, CompactParts};
use crate::config;
use crate::error::Error;
use crate::redaction::Redactors;
use crate::storage::{ConfiguredStores, LentStores, Storage};

/// Wraps a catalog that is opened later.
pub(crate) type WrapCatalog =
    Arc<dyn Fn(Arc<dyn SessionCatalog>) -> Arc<dyn SessionCatalog> + Send + Sync>;

/// Wraps an index that is opened later.
pub(crate) type WrapIndex = Arc<dyn Fn(Arc<dyn RecallIndex>) -> Arc<dyn RecallIndex> + Send + Sync>;

/// Builds a [`Compact`]; see [`Compact::builder`].
#[derive(Default)]
#[must_use]
pub struct CompactBuilder {
    settings: Settings,
    model: Option<String>,
    window: Option<u64>,
    directory: Option<PathBuf>,
    policy: Option<Policy>,
    archive: Option<Arc<dyn ArchiveStore>>,
    catalog: Option<Arc<dyn SessionCatalog>>,
    index: Option<Arc<dyn RecallIndex>>,
    wrap_catalog: Option<WrapCatalog>,
    wrap_index: Option<WrapIndex>,
    estimator: Option<Arc<dyn Estimator>>,
    summarizer: Option<Arc<dyn Summarizer>>,
    embedder: Option<Arc<dyn Embedder>>,
    scrub: Option<Arc<dyn Scrub>>,
    sinks: Vec<Arc<dyn EventSink>>,
    clock: Option<Arc<dyn Clock>>,
}

/// The source of the settings.
#[derive(Default)]
enum Settings {
    /// The default settings.
    #[default]
    Defaults,
    /// The settings that the program passed.
    Given(Box<Config>),
    /// A JSON object of keys, over the defaults.
    Json(String),
    /// Files, variables and flags.
    Sources(ConfigSources),
}

impl CompactBuilder {
    /// Uses these settings; without any, every setting has its default.
    pub fn config(mut self, config: Config) -> CompactBuilder {
        self.settings = Settings::Given(Box::new(config));
        self
    }

    /// Uses the settings of a JSON object, each checked as in a file.
    ///
    /// ```
    /// # fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    ///
    /// let compact = Compact::builder()
    ///     .config_json(r#"{"max_context_tokens": 32000, "policy": {"trigger_pct": 0.7}}"#)
    ///     .in_memory()
    ///     .build()?;
    /// assert_eq!(compact.window(None).tokens.0, 32_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn config_json(mut self, json: impl Into<String>) -> CompactBuilder {
        self.settings = Settings::Json(json.into());
        self
    }

    /// Uses the settings of a file (YAML or JSON), and nothing else.
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> CompactBuilder {
        self.settings = Settings::Sources(ConfigSources::from_file(file));
        self
    }

    /// Uses what the user configured: files in the configuration and the working directory, and the
    /// variables `COMPACT_*`, as the command does.
    pub fn discover_config(mut self) -> CompactBuilder {
        self.settings = Settings::Sources(ConfigSources::discover(None));
        self
    }

    /// Uses the settings of these sources.
    pub fn config_sources(mut self, sources: ConfigSources) -> CompactBuilder {
        self.settings = Settings::Sources(sources);
        self
    }

    /// Keeps everything below this directory instead of the user's data directory.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use compact::Compact;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let compact = Compact::builder().data_directory(folder.path()).build()?;
    /// assert_eq!(compact.data_directory(), Some(folder.path()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn data_directory(mut self, directory: impl Into<PathBuf>) -> CompactBuilder {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the model, which determines the window and how tokens are counted.
    pub fn model(mut self, model: impl Into<String>) -> CompactBuilder {
        self.model = Some(model.into());
        self
    }

    /// Sets what the model takes, in tokens.
    pub fn window(mut self, tokens: u64) -> CompactBuilder {
        self.window = Some(tokens);
        self
    }

    /// Sets the policy.
    pub fn policy(mut self, policy: Policy) -> CompactBuilder {
        self.policy = Some(policy);
        self
    }

    /// Keeps everything in this process alone; what was archived is gone when it ends.
    pub fn in_memory(mut self) -> CompactBuilder {
        let LentStores {
            archive,
            catalog,
            index,
        } = LentStores::in_memory();
        self.archive = archive;
        self.catalog = Some(catalog);
        self.index = Some(index);
        self
    }

    /// Keeps originals in a store of the program's own.
    ///
    /// ```
    /// # fn main() -> Result<(), compact::Error> {
    /// use std::sync::Arc;
    /// use compact::{Compact, store::{MemoryArchive, MemoryCatalog}};
    ///
    /// let compact = Compact::builder()
    ///     .archive(Arc::new(MemoryArchive::default()))
    ///     .catalog(Arc::new(MemoryCatalog::default()))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn archive(mut self, archive: Arc<dyn ArchiveStore>) -> CompactBuilder {
        self.archive = Some(archive);
        self
    }

    /// Keeps receipts in a store of the program's own.
    pub fn catalog(mut self, catalog: Arc<dyn SessionCatalog>) -> CompactBuilder {
        self.catalog = Some(catalog);
        self
    }

    /// Keeps the words of what is archived in an index of the program's own.
    pub fn index(mut self, index: Arc<dyn RecallIndex>) -> CompactBuilder {
        self.index = Some(index);
        self
    }

    /// Wraps the catalog in another one, whichever is used.
    pub fn wrap_catalog(
        mut self,
        wrap: impl Fn(Arc<dyn SessionCatalog>) -> Arc<dyn SessionCatalog> + Send + Sync + 'static,
    ) -> CompactBuilder {
        self.wrap_catalog = Some(Arc::new(wrap));
        self
    }

    /// Wraps the recall index in another one, whichever is used.
    pub fn wrap_index(
        mut self,
        wrap: impl Fn(Arc<dyn RecallIndex>) -> Arc<dyn RecallIndex> + Send + Sync + 'static,
    ) -> CompactBuilder {
        self.wrap_index = Some(Arc::new(wrap));
        self
    }

    /// Counts tokens this way instead of the configured one.
    pub fn estimator(mut self, estimator: Arc<dyn Estimator>) -> CompactBuilder {
        self.estimator = Some(estimator);
        self
    }

    /// Uses this model to write summaries instead of the configured one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use std::sync::Arc;
    /// use compact::{Compact, summarizer::ScriptedSummarizer};
    ///
    /// let summarizer = ScriptedSummarizer::new([]);
    /// let compact = Compact::builder().summarizer(Arc::new(summarizer)).in_memory().build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn summarizer(mut self, summarizer: Arc<dyn Summarizer>) -> CompactBuilder {
        self.summarizer = Some(summarizer);
        self
    }

    /// Uses this model to compare messages for semantic pruning.
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> CompactBuilder {
        self.embedder = Some(embedder);
        self
    }

    /// Adds a redaction function, which is applied wherever redaction is on.
    ///
    /// ```
    /// # fn main() -> Result<(), compact::Error> {
    /// use std::sync::Arc;
    /// use compact::Compact;
    ///
    /// let hide = |text: &str| text.contains("Bluebird").then(|| text.replace("Bluebird", "[project]"));
    /// let compact = Compact::builder().redact(Arc::new(hide)).in_memory().build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn redact(mut self, scrub: Arc<dyn Scrub>) -> CompactBuilder {
        self.scrub = Some(scrub);
        self
    }

    /// Calls a function with every event; it must not block.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use std::sync::mpsc;
    /// use compact::Compact;
    /// use serde_json::json;
    ///
    /// let (sender, events) = mpsc::channel();
    /// let compact = Compact::builder()
    ///     .events(move |event| drop(sender.send(event.kind.name())))
    ///     .in_memory()
    ///     .build()?;
    /// let messages = vec![json!({"role": "user", "content": "Hello"})];
    /// compact.session("greeting").preflight(&messages).await?;
    /// assert!(events.try_iter().any(|name| name == "compact.token_estimate"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(self, callback: impl Fn(&Event) + Send + Sync + 'static) -> CompactBuilder {
        self.event_sink(Arc::new(CallbackSink::new(callback)))
    }

    /// Sends every event to a sink; may be called more than once.
    pub fn event_sink(mut self, sink: Arc<dyn EventSink>) -> CompactBuilder {
        self.sinks.push(sink);
        self
    }

    /// Dates records and events by this clock instead of the machine's, and counts the days of
    /// retention by it.
    ///
    /// ```
    /// # fn main() -> Result<(), compact::Error> {
    /// use std::sync::Arc;
    /// use compact::{Compact, clock::{Clock, ManualClock}};
    ///
    /// let compact = Compact::builder().clock(Arc::new(ManualClock::default())).in_memory().build()?;
    /// assert_eq!(compact.clock().timestamp(), "1970-01-01T00:00:00.000Z");
    /// # Ok(())
    /// # }
    /// ```
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> CompactBuilder {
        self.clock = Some(clock);
        self
    }

    /// Checks everything. Stores are opened when they are first used.
    pub fn build(mut self) -> Result<Compact, Error> {
        let config = std::mem::take(&mut self.settings).load()?;
        let config = self.lay_over(config);
        let redactors = Redactors::new(&config.redaction, self.scrub.as_ref())?;
        let lent = (self.archive, self.catalog, self.index);
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        Ok(Compact::from_parts(CompactParts {
            storage: build_storage(&config, lent, &clock)?,
            redactors,
            config,
            wrap_catalog: self.wrap_catalog,
            wrap_index: self.wrap_index,
            estimator: self.estimator,
            summarizer: self.summarizer,
            embedder: self.embedder,
            sinks: self.sinks,
            clock,
        }))
    }

    /// Returns the settings with the values that the program sets.
    fn lay_over(&mut self, mut config: Config) -> Config {
        config.model = self.model.take().or(config.model);
        config.max_context_tokens = self.window.or(config.max_context_tokens);
        config.storage.path = self.directory.take().or(config.storage.path);
        config.policy = self.policy.take().unwrap_or(config.policy);
        config
    }
}

impl Settings {
    fn load(self) -> Result<Config, Error> {
        let sources = match self {
            Settings::Given(config) => return Ok(*config),
            Settings::Defaults => return Ok(Config::default()),
            Settings::Json(json) => config::sources_from_json("config_json", &json)?,
            Settings::Sources(sources) => sources,
        };
        Ok(sources.load()?.config)
    }
}

/// The stores that a program may pass: an archive, a catalog, an index.
type Lent = (
    Option<Arc<dyn ArchiveStore>>,
    Option<Arc<dyn SessionCatalog>>,
    Option<Arc<dyn RecallIndex>>,
);

/// Returns the configured stores; if the program passes one, those that it does not pass are in memory.
fn build_storage(config: &Config, lent: Lent, clock: &Arc<dyn Clock>) -> Result<Storage, Error> {
    let (archive, catalog, index) = lent;
    if archive.is_some() || catalog.is_some() {
        return Ok(Storage::Lent(LentStores {
            archive,
            catalog: catalog.unwrap_or_else(|| Arc::new(MemoryCatalog::default())),
            index: index.unwrap_or_else(|| Arc::new(MemoryIndex::default())),
        }));
    }
    if config.storage.adapter == StorageAdapter::Custom {
        return Err(Error::NoCustomStore);
    }
    let root = config.storage.folder();
    let root = root.map_err(|error| Error::NoDataDirectory(error.to_string()))?;
    let stores = Stores::new(&config.storage, &root)?.with_clock(Arc::clone(clock));
    let configured = ConfiguredStores { root, stores };
    Ok(Storage::Configured(Box::new(configured)))
}
