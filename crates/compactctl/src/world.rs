//! From configuration and flags to a manager: the one place where ports meet their adapters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compact_adapters::config::{
    Config, Effective, Exporter, FileInForce, Flag, Loaded, Origin, Retention, Sources,
    StorageAdapter,
};
use compact_adapters::estimator;
use compact_adapters::store::Stores;
use compact_core::event::Call;
use compact_core::identity::EntryHash;
use compact_core::message::Conversation;
use compact_core::policy::Policy;
use compact_core::profile::Profile;
use compact_core::redact::{Boundary, Redaction, RedactionRules, Redactor};
use compact_core::summarize::frame;
use compact_core::token::{Account, Estimator, TokenCache, Tokens};
use compact_core::window::Window;
use compact_formats::{Parsed, Scope};
use compact_runtime::manager::{Request, Storing};
use compact_runtime::port::archive::{ArchiveStore, MemoryArchive};
use compact_runtime::port::catalog::{MemoryCatalog, SessionCatalog};
use compact_runtime::port::embedder::Embedder;
use compact_runtime::port::event::EventSink;
use compact_runtime::port::index::RecallIndex;
use compact_runtime::port::summarizer::Summarizer;
use compact_runtime::{Manager, Recall};
use tokio::sync::watch;

use crate::args::{Global, Goal, LogFormat, Manner, Subject};
use crate::failure::{Code, Failure};
use crate::host::library::{self, Library};
use crate::input::Source;
use crate::interrupt;
use crate::output;
use crate::report::text::printable;
use crate::telemetry::{self, Least, Log};

/// The folder of what hooks left behind in the data directory.
pub const HOOKS: &str = "hooks";

/// The folder of transcripts there.
const SESSIONS: &str = "sessions";

/// Names the caller's span, as W3C's trace context has it.
const TRACEPARENT: &str = "TRACEPARENT";

/// Everything that a command may need, resolved once.
#[derive(Clone, Debug)]
pub struct World {
    config: Config,
    files: Vec<FileInForce>,
    redaction: Redaction,
    exporter: Exporter,
    log: Log,
    root: PathBuf,
    stores: Stores,
    /// Who waits for the answer, where it may be given up: the other end is dropped then.
    asker: Option<watch::Receiver<()>>,
    /// The span that the program was called in.
    caller: Option<Call>,
}

/// A transcript that was read, with how it is to be measured.
pub struct Opened {
    /// The bytes.
    pub source: Source,
    /// What they say.
    pub parsed: Parsed,
    /// The model, from a flag, the configuration or the transcript.
    pub model: Option<String>,
    /// What the model takes.
    pub window: Window,
    /// How tokens are counted.
    pub estimator: Arc<dyn Estimator>,
}

/// An archive with its catalog.
#[derive(Clone)]
pub struct Store {
    /// The packs.
    pub archive: Arc<dyn ArchiveStore>,
    /// The records.
    pub catalog: Arc<dyn SessionCatalog>,
}

/// Reads the configuration and lays the global flags over it.
pub fn load_config(global: &Global) -> Result<Loaded, Failure> {
    load_flagged(global, Vec::new())
}

/// The same with what a command's own arguments set.
fn load_flagged(global: &Global, flags: Vec<Flag>) -> Result<Loaded, Failure> {
    load_under(global, sole_profile(global)?, flags)
}

/// The profile that the flags name.
fn sole_profile(global: &Global) -> Result<Option<Profile>, Failure> {
    match global.profile.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        _ => Err(Failure::usage(
            "--profile was given more than once",
            "give one; only `replay` compares several",
        )),
    }
}

fn load_under(
    global: &Global,
    profile: Option<Profile>,
    flags: Vec<Flag>,
) -> Result<Loaded, Failure> {
    Ok(sources(global, profile).with_flags(flags).load()?)
}

/// The files, the environment and the global flags.
pub fn sources(global: &Global, profile: Option<Profile>) -> Sources {
    let profile = profile.map(|profile| Flag::new("--profile", "profile", profile.as_str()));
    let estimator = global
        .estimator
        .as_deref()
        .map(|name| Flag::new("--estimator", "estimator", name));
    let format = global.log_format.map(|format| {
        let name = match format {
            LogFormat::Human => "human",
            LogFormat::Json => "json",
        };
        Flag::new("--log-format", "telemetry.format", name)
    });
    let flags = profile.into_iter().chain(estimator).chain(format);
    Sources::discover(global.config.clone()).with_flags(flags)
}

impl World {
    /// Resolves configuration and flags; what has no effect is said on stderr.
    pub fn load(global: &Global) -> Result<World, Failure> {
        World::of(load_config(global)?, global)
    }

    /// The same with what a command's own arguments set.
    pub fn load_with(global: &Global, flags: Vec<Flag>) -> Result<World, Failure> {
        World::of(load_flagged(global, flags)?, global)
    }

    /// The same under a profile, whichever the flags name.
    pub fn load_under(global: &Global, profile: Option<Profile>) -> Result<World, Failure> {
        World::of(load_under(global, profile, Vec::new())?, global)
    }

    /// The same under a profile that applies where nobody names one.
    pub fn load_by_default(
        global: &Global,
        profile: Profile,
        flags: Vec<Flag>,
    ) -> Result<World, Failure> {
        let loaded = load_flagged(global, flags.clone())?;
        let named = |value: &Effective| value.path == "profile" && value.origin != Origin::Default;
        if loaded.values.iter().any(named) {
            return World::of(loaded, global);
        }
        World::of(load_under(global, Some(profile), flags)?, global)
    }

    fn of(loaded: Loaded, global: &Global) -> Result<World, Failure> {
        if !global.quiet {
            for warning in &loaded.warnings {
                output::aside(&format!("warning: {}\n", printable(warning)));
            }
        }
        check_adapters(&loaded.config)?;
        let redaction = Redaction::new(&loaded.config.redaction)
            .map_err(|error| Failure::of(Code::Usage, &error))?;
        let root = data_directory(&loaded.config)?;
        let stores = Stores::new(&loaded.config.storage, &root);
        Ok(World {
            stores: stores.map_err(|error| Failure::of(Code::Usage, &error))?,
            redaction,
            exporter: loaded.config.telemetry.exporter,
            log: log(&loaded, global),
            root,
            files: loaded.files,
            config: loaded.config,
            asker: None,
            caller: std::env::var(TRACEPARENT)
                .ok()
                .and_then(|value| Call::parse(&value)),
        })
    }

    /// The files of settings that are in force.
    pub fn files(&self) -> &[FileInForce] {
        &self.files
    }

    /// The same for one answer, which is given up when the other end of `asker` is dropped.
    pub fn asked_by(&self, asker: watch::Receiver<()>) -> World {
        World {
            asker: Some(asker),
            ..self.clone()
        }
    }

    /// The span that the program was called in, if somebody said so.
    pub fn caller(&self) -> Option<&Call> {
        self.caller.as_ref()
    }

    /// Drives the asynchronous part of a command for as long as its answer is waited for: until its
    /// asker gives up or, where a person asked, interrupts it.
    pub fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(mut asker) = self.asker.clone() else {
            return block_on(interrupt::heeded(work));
        };
        block_on(async move {
            tokio::select! {
                biased;
                _ = asker.changed() => Err(Failure::new(Code::Unexpected, "it was cancelled")),
                done = work => done,
            }
        })
    }

    /// Where everything is kept.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// What the configuration lets go.
    pub fn retention(&self) -> Retention {
        self.config.storage.retention
    }

    /// The data directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The configured policy.
    pub fn base_policy(&self) -> &Policy {
        &self.config.policy
    }

    /// The policy with a command's own wishes.
    pub fn policy(&self, manner: &Manner) -> Policy {
        let mut policy = self.config.policy.clone();
        policy.strategy = manner.style.unwrap_or(policy.strategy);
        policy
    }

    /// Where a hard reset leaves its artifacts; `None` under other profiles.
    pub fn sessions(&self) -> Option<PathBuf> {
        if self.config.profile != Profile::HardReset {
            return None;
        }
        let configured = self.config.storage.transcripts.clone();
        Some(configured.unwrap_or_else(|| self.root.join(SESSIONS)))
    }

    /// The model that the configuration names.
    pub fn model(&self) -> Option<&str> {
        self.config.model.as_deref()
    }

    /// The window of a model: the configuration's, the registry's or the default.
    pub fn window(&self, model: Option<&str>) -> Window {
        let window = Window::of(self.config.max_context_tokens.map(Tokens), model);
        window.at_most(self.config.window_limit.map(Tokens))
    }

    /// Reads and parses a transcript.
    pub fn open(&self, subject: &Subject) -> Result<Opened, Failure> {
        let source = Source::read(&subject.file)?.session(subject.session_index)?;
        self.open_source(subject, source)
    }

    /// The same of bytes that were read already.
    pub fn open_source(&self, subject: &Subject, source: Source) -> Result<Opened, Failure> {
        let scope = if subject.whole {
            Scope::Whole
        } else {
            Scope::Live
        };
        let parsed = source.parse(subject.format, scope)?;
        let wanted = subject.model.as_ref().or(self.config.model.as_ref());
        let model = wanted.or(parsed.conversation.model.as_ref()).cloned();
        Ok(Opened {
            window: match subject.window {
                Some(given) => Window::of(Some(Tokens(given)), None),
                None => self.window(model.as_deref()),
            },
            estimator: self.estimator(model.as_deref()),
            source,
            parsed,
            model,
        })
    }

    /// How tokens are counted for a model.
    pub fn estimator(&self, model: Option<&str>) -> Arc<dyn Estimator> {
        self.config.estimator.estimator(model)
    }

    /// The store as it is, with what hooks and runs left beside it.
    pub fn store_to_read(&self) -> Result<Store, Failure> {
        let Store { archive, catalog } = self.store_as_is()?;
        Ok(Store {
            archive: Arc::new(Library::new(archive, &self.root)),
            catalog: Arc::new(Library::new(catalog, &self.root)),
        })
    }

    /// The store alone; an empty one in memory where there is none, so that reading never writes.
    pub fn store_as_is(&self) -> Result<Store, Failure> {
        if self.has_store() {
            return Ok(Store {
                archive: self.stores.archive()?,
                catalog: self.stores.catalog_to_read()?,
            });
        }
        Ok(Store {
            archive: Arc::new(MemoryArchive::default()),
            catalog: Arc::new(MemoryCatalog::default()),
        })
    }

    /// The store that planning needs: none, unless the conversation names an earlier compaction.
    pub fn store_for(&self, conversation: &Conversation) -> Result<Store, Failure> {
        let mut entries = conversation.entries.iter();
        if entries.any(|entry| frame::claim(&entry.blocks).is_some()) {
            return self.store_as_is();
        }
        Ok(Store {
            archive: Arc::new(MemoryArchive::default()),
            catalog: Arc::new(MemoryCatalog::default()),
        })
    }

    /// The store, created if it is not there.
    pub fn store_to_write(&self) -> Result<Store, Failure> {
        Ok(Store {
            archive: self.stores.archive()?,
            catalog: self.stores.catalog()?,
        })
    }

    /// Everything archived, to be searched; an error where nothing ever was.
    pub fn recall(&self) -> Result<Recall, Failure> {
        if !self.has_store() && !library::has_copies(&self.root) {
            let place = self.root.display();
            let message = format!("there is no archive in {place}: nothing was compacted yet");
            return Err(Failure::new(Code::Input, message)
                .help("`compactctl compact FILE` makes one; COMPACT_STORAGE_PATH names another"));
        }
        // What hooks and runs kept is this machine's alone; an index that others share does not get it.
        let store = match self.stores.shared_catalog() {
            Some(_) => self.store_as_is()?,
            None => self.store_to_read()?,
        };
        Ok(Recall {
            archive: store.archive,
            catalog: store.catalog,
            index: self.stores.index()?,
            redactor: Arc::clone(self.redactor(Boundary::Summary)),
        })
    }

    /// The recall index, if there is one.
    pub fn recall_index(&self) -> Result<Option<Arc<dyn RecallIndex>>, Failure> {
        Ok(self.stores.index_if_any()?)
    }

    /// True once something may have been stored.
    pub fn has_store(&self) -> bool {
        self.stores.exist()
    }

    /// A manager for a transcript.
    pub fn manager(
        &self,
        store: Store,
        policy: Policy,
        opened: &Opened,
    ) -> Result<Manager, Failure> {
        let manager = self.manager_of(store, policy, Arc::clone(&opened.estimator))?;
        Ok(Manager {
            window: opened.window.tokens,
            summarizer: self.summarizer(opened.model.as_deref())?,
            embedder: self.embedder(),
            ..manager
        })
    }

    /// A manager that only looks into the store.
    pub fn reader(&self) -> Result<Manager, Failure> {
        let store = self.store_to_read()?;
        self.manager_of(store, self.config.policy.clone(), self.estimator(None))
    }

    /// A manager under a receipt's own terms.
    pub fn manager_of(
        &self,
        store: Store,
        policy: Policy,
        estimator: Arc<dyn Estimator>,
    ) -> Result<Manager, Failure> {
        let archived = self.redactor(Boundary::Archive);
        Ok(Manager {
            archive: self.keeps_originals().then_some(store.archive),
            catalog: store.catalog,
            sink: self.sink()?,
            estimator,
            policy,
            window: self.config.window(None).tokens,
            redactor: Arc::clone(self.redactor(Boundary::Summary)),
            storing: match archived.is_off() {
                true => Storing::Exact,
                false => Storing::Redacted(Arc::clone(archived)),
            },
            summarizer: None,
            embedder: None,
        })
    }

    /// The model that writes the summary, if one was chosen; without one of its own, the session's.
    pub fn summarizer(&self, model: Option<&str>) -> Result<Option<Arc<dyn Summarizer>>, Failure> {
        if let Some(variable) = self.config.summarizer.missing_key() {
            return Err(Failure::usage(
                format!("the summarizer needs a key, and {variable} is not set"),
                "set it, name another variable in summarizer.api_key_env, or another server in summarizer.url",
            ));
        }
        let built = self.config.summarizer.build().map(|mut summarizer| {
            let session = || model.map(str::to_owned);
            summarizer.model = summarizer.model.or_else(session);
            Arc::new(summarizer) as Arc<dyn Summarizer>
        });
        Ok(built)
    }

    fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        let built = self.config.embeddings.build()?;
        Some(Arc::new(built))
    }

    fn keeps_originals(&self) -> bool {
        self.config.storage.adapter != StorageAdapter::None
    }

    /// Who is told.
    pub fn sink(&self) -> Result<Arc<dyn EventSink>, Failure> {
        let redactor = self.redaction.at(Boundary::Export);
        telemetry::sink(&self.config, self.exporter, self.log, redactor)
    }

    /// What is applied to whatever crosses a boundary.
    pub fn redactor(&self, boundary: Boundary) -> &Arc<Redactor> {
        self.redaction.at(boundary)
    }
}

/// What is said on stderr: a terminal gets a report, events join it only for those who asked.
fn log(loaded: &Loaded, global: &Global) -> Log {
    let mut values = loaded.values.iter();
    let is_set = values.any(|v| v.path == "telemetry.exporter" && v.origin != Origin::Default);
    let exporter = loaded.config.telemetry.exporter;
    let asked = (is_set && exporter == Exporter::Console) || global.log_format.is_some();
    let filter = std::env::var("RUST_LOG").unwrap_or_default();
    match Least::of(&filter) {
        Some(least) => Log::Events(least),
        None if asked => Log::Events(Least::Info),
        None if global.quiet => Log::Silent,
        None => Log::Warnings,
    }
}

/// What a program that embeds Compact may use, and this one cannot.
fn check_adapters(config: &Config) -> Result<(), Failure> {
    use Exporter::Custom as CustomExporter;
    use StorageAdapter::Custom as CustomStore;
    let key = match (config.storage.adapter, config.telemetry.exporter) {
        (CustomStore, _) => "storage.adapter",
        (_, CustomExporter) => "telemetry.exporter",
        _ => return Ok(()),
    };
    Err(Failure::usage(
        format!("{key}: this value is not available in compactctl"),
        "use `fs`, `s3` or `none` for storage.adapter, `console`, `otlp` or `none` for telemetry.exporter",
    ))
}

/// What a hook goes by.
#[derive(Debug)]
pub struct HookTerms {
    /// The data directory.
    pub root: PathBuf,
    /// What is redacted.
    pub redaction: RedactionRules,
    /// The files of settings that are in force.
    pub files: Vec<FileInForce>,
    /// What was ignored.
    pub warnings: Vec<String>,
    /// What is wrong with the configuration.
    pub fault: Option<String>,
}

/// What a hook goes by.
pub fn hook_terms(global: &Global) -> Result<HookTerms, Failure> {
    let sources = sources(global, global.profile.first().copied());
    let (loaded, fault) = sources.load_what_is_whole()?;
    // Without a home of its own a process would be given the one in the list of users, which need not
    // be that of the person at work.
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_place = loaded.config.storage.path.is_some();
    if !has_place && !is_set("HOME") && !is_set("XDG_DATA_HOME") {
        return Err(Failure::usage(
            "cannot find the user's data directory: HOME is not set",
            "set COMPACT_STORAGE_PATH to a directory for the archive",
        ));
    }
    Ok(HookTerms {
        root: data_directory(&loaded.config)?,
        redaction: loaded.config.redaction,
        files: loaded.files,
        warnings: loaded.warnings,
        fault: fault.map(|error| error.to_string()),
    })
}

fn data_directory(config: &Config) -> Result<PathBuf, Failure> {
    config.storage.folder().map_err(|error| {
        Failure::of(Code::Usage, &error)
            .about("cannot find the user's data directory")
            .help("set COMPACT_STORAGE_PATH to a directory for the archive")
    })
}

impl Opened {
    /// The request that the arguments describe.
    pub fn request<'a>(
        &'a self,
        goal: &Goal,
        manner: &'a Manner,
        global: &'a Global,
    ) -> Request<'a> {
        Request {
            conversation: &self.parsed.conversation,
            rules: self.parsed.document.rules(),
            format: self.parsed.document.format().name(),
            original: self.source.bytes.clone(),
            session_id: global.session.as_deref(),
            budget: self.budget(goal),
            summary_limit: None,
            note: manner.note.as_deref(),
            told: None,
            parent: None,
        }
    }

    /// What the view may cost; `None` leaves it to the policy.
    fn budget(&self, goal: &Goal) -> Option<Tokens> {
        let target = goal.target.map(|ratio| {
            let share = (self.window.tokens.0 as f64 * ratio) as u64;
            Tokens(share) - self.fixed_tokens()
        });
        goal.budget.map(Tokens).or(target)
    }

    /// System and tools, which the host re-sends whatever the view.
    fn fixed_tokens(&self) -> Tokens {
        let conversation = &self.parsed.conversation;
        let leading = conversation.leading_instructions();
        let head = Conversation {
            entries: conversation.entries.iter().take(leading).cloned().collect(),
            tools: conversation.tools.clone(),
            ..Conversation::default()
        };
        self.account(&head).total()
    }

    /// Everything that the next request would carry.
    pub fn tokens(&self) -> Tokens {
        self.account(&self.parsed.conversation).total()
    }

    fn account(&self, conversation: &Conversation) -> Account {
        let hashes = EntryHash::all(&conversation.entries);
        let mut cache = TokenCache::default();
        Account::of(conversation, &hashes, &*self.estimator, &mut cache)
    }
}

/// The estimator that a receipt names.
pub fn estimator_named(name: &str) -> Result<Arc<dyn Estimator>, Failure> {
    estimator::by_name(name, None).map_err(|error| Failure::of(Code::Input, &error))
}

/// Drives the asynchronous part of a command.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of(Code::Unexpected, &error).about("cannot start"))?;
    runtime.block_on(work)
}
