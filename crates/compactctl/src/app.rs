//! From configuration and flags to the engine that every command stands on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compact::config::{
    Config, ConfigFlag, ConfigSources, ExporterKind, LoadedConfig, LoadedFile, StorageAdapter,
    ValueOrigin,
};
use compact::event::TraceContext;
use compact::format::{ParsedTranscript, TranscriptScope};
use compact::manager::{CompactionRequest, Manager};
use compact::message::{Conversation, EntryHash};
use compact::policy::{Policy, Profile};
use compact::store::{StorePair, Stores};
use compact::token::{self, Estimator, TokenAccount, TokenCache, Tokens, Window};
use compact::{Compact, Error};
use tokio::sync::watch;

use crate::args::{BudgetArgs, GlobalArgs, LogFormat, SummaryArgs, TranscriptArgs};
use crate::failure::{Failure, FailureCode};
use crate::input::InputSource;
use crate::interrupt;
use crate::output;
use crate::report::text::printable;
use crate::telemetry::{self, MinSeverity, StderrLog};

/// Names the caller's span, as W3C's trace context has it.
const TRACEPARENT: &str = "TRACEPARENT";

/// Everything that a command may need, resolved once.
#[derive(Clone)]
pub(crate) struct App {
    compact: Compact,
    files: Vec<LoadedFile>,
    /// The settings of files that decide how much room a view has.
    room: String,
    stores: Stores,
    /// Who waits for the answer, where it may be given up: the other end is dropped then.
    asker: Option<watch::Receiver<()>>,
    /// The span that the program was called in.
    caller: Option<TraceContext>,
}

/// A transcript that was read, with how it is to be measured.
pub(crate) struct OpenedTranscript {
    /// The bytes.
    pub source: InputSource,
    /// What they say.
    pub parsed: ParsedTranscript,
    /// The model, from a flag, the configuration or the transcript.
    pub model: Option<String>,
    /// What the model takes.
    pub window: Window,
    /// How tokens are counted.
    pub estimator: Arc<dyn Estimator>,
}

/// Reads the configuration and lays the global flags over it.
pub(crate) fn load_config(global: &GlobalArgs) -> Result<LoadedConfig, Failure> {
    load_config_with_flags(global, Vec::new())
}

/// The same with what a command's own arguments set.
fn load_config_with_flags(
    global: &GlobalArgs,
    flags: Vec<ConfigFlag>,
) -> Result<LoadedConfig, Failure> {
    load_config_with_profile(global, sole_profile(global)?, flags)
}

/// The profile that the flags name.
fn sole_profile(global: &GlobalArgs) -> Result<Option<Profile>, Failure> {
    match global.profile.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        _ => Err(Failure::usage(
            "--profile was given more than once",
            "give one; only `replay` compares several",
        )),
    }
}

fn load_config_with_profile(
    global: &GlobalArgs,
    profile: Option<Profile>,
    flags: Vec<ConfigFlag>,
) -> Result<LoadedConfig, Failure> {
    Ok(config_sources(global, profile).with_flags(flags).load()?)
}

/// The files, the environment and the global flags.
pub(crate) fn config_sources(global: &GlobalArgs, profile: Option<Profile>) -> ConfigSources {
    let profile = profile.map(|profile| ConfigFlag::new("--profile", "profile", profile.as_str()));
    let estimator = global
        .estimator
        .as_deref()
        .map(|name| ConfigFlag::new("--estimator", "estimator", name));
    let format = global.log_format.map(|format| {
        let name = match format {
            LogFormat::Human => "human",
            LogFormat::Json => "json",
        };
        ConfigFlag::new("--log-format", "telemetry.format", name)
    });
    let flags = profile.into_iter().chain(estimator).chain(format);
    ConfigSources::discover(global.config.clone()).with_flags(flags)
}

impl App {
    /// Resolves configuration and flags for a command that makes no view by them: a project's file that
    /// nobody trusts and that is wrong does not stop it. What has no effect is said on stderr.
    pub(crate) fn load(global: &GlobalArgs) -> Result<App, Failure> {
        let sources = config_sources(global, sole_profile(global)?);
        App::from_loaded(sources.load_without_faulty_project()?, global)
    }

    /// The same with what a command's own arguments set.
    pub(crate) fn load_with_flags(
        global: &GlobalArgs,
        flags: Vec<ConfigFlag>,
    ) -> Result<App, Failure> {
        App::from_loaded(load_config_with_flags(global, flags)?, global)
    }

    /// The same under a profile, whichever the flags name.
    pub(crate) fn load_with_profile(
        global: &GlobalArgs,
        profile: Option<Profile>,
    ) -> Result<App, Failure> {
        App::from_loaded(
            load_config_with_profile(global, profile, Vec::new())?,
            global,
        )
    }

    /// The same under a profile that applies where nobody names one.
    pub(crate) fn load_with_fallback_profile(
        global: &GlobalArgs,
        profile: Profile,
        flags: Vec<ConfigFlag>,
    ) -> Result<App, Failure> {
        let sources = config_sources(global, sole_profile(global)?).with_flags(flags);
        App::from_loaded(sources.with_fallback_profile(profile).load()?, global)
    }

    fn from_loaded(loaded: LoadedConfig, global: &GlobalArgs) -> Result<App, Failure> {
        if !global.quiet {
            for warning in &loaded.warnings {
                output::print_stderr(&format!("warning: {}\n", printable(warning)));
            }
        }
        check_adapters(&loaded.config)?;
        let room = loaded.room_settings().join(", ");
        let log = telemetry::stderr_sink(&loaded.config, choose_log(&loaded, global));
        let compact = Compact::builder()
            .config(loaded.config)
            .event_sink(log)
            .build()?;
        Ok(App {
            stores: compact.stores().cloned().ok_or(Error::NoConfiguredStores)?,
            compact,
            files: loaded.files,
            room,
            asker: None,
            caller: caller_span(),
        })
    }

    /// The engine that every command stands on.
    pub(crate) fn compact(&self) -> &Compact {
        &self.compact
    }

    /// The files of settings that are in force.
    pub(crate) fn config_files(&self) -> &[LoadedFile] {
        &self.files
    }

    /// The same failure; where something does not fit, it says which lines of files decided what has to.
    pub(crate) fn explain_failure(&self, failure: Failure) -> Failure {
        if failure.code() != FailureCode::Budget || self.room.is_empty() {
            return failure;
        }
        let why = format!(
            "the room and what must stay are set by {}; change that, or name another file with --config",
            self.room
        );
        failure.add_help(&why)
    }

    /// The same for one answer, which is given up when the other end of `asker` is dropped.
    pub(crate) fn with_cancellation(&self, asker: watch::Receiver<()>) -> App {
        App {
            asker: Some(asker),
            ..self.clone()
        }
    }

    /// The span that the program was called in, if somebody said so.
    pub(crate) fn caller_span(&self) -> Option<&TraceContext> {
        self.caller.as_ref()
    }

    /// Drives the asynchronous part of a command for as long as its answer is waited for: until its
    /// asker gives up or, where a person asked, interrupts it.
    pub(crate) fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(mut asker) = self.asker.clone() else {
            return block_on(interrupt::until_interrupted(work));
        };
        block_on(async move {
            tokio::select! {
                biased;
                _ = asker.changed() => Err(Failure::new(FailureCode::Unexpected, "it was cancelled")),
                done = work => done,
            }
        })
    }

    /// Where everything is kept.
    pub(crate) fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The data directory.
    pub(crate) fn data_directory(&self) -> &Path {
        self.compact.data_directory().unwrap_or(Path::new(""))
    }

    /// The configured policy.
    pub(crate) fn base_policy(&self) -> &Policy {
        &self.compact.config().policy
    }

    /// The policy with a command's own wishes.
    pub(crate) fn policy_for(&self, manner: &SummaryArgs) -> Policy {
        let mut policy = self.base_policy().clone();
        policy.strategy = manner.style.unwrap_or(policy.strategy);
        policy
    }

    /// Where a hard reset leaves its artifacts; `None` under other profiles.
    pub(crate) fn artifact_folder(&self) -> Option<PathBuf> {
        let is_reset = self.compact.config().profile == Profile::HardReset;
        is_reset.then(|| self.compact.transcript_folder()).flatten()
    }

    /// The model that the configuration names.
    pub(crate) fn model(&self) -> Option<&str> {
        self.compact.config().model.as_deref()
    }

    /// Reads and parses a transcript.
    pub(crate) fn open_transcript(
        &self,
        subject: &TranscriptArgs,
    ) -> Result<OpenedTranscript, Failure> {
        let source = InputSource::read(&subject.file)?.select_session(subject.session_index)?;
        self.open_source(subject, source)
    }

    /// The same of bytes that were read already.
    pub(crate) fn open_source(
        &self,
        subject: &TranscriptArgs,
        source: InputSource,
    ) -> Result<OpenedTranscript, Failure> {
        let scope = if subject.whole {
            TranscriptScope::Whole
        } else {
            TranscriptScope::Live
        };
        let parsed = source.parse(subject.format, scope)?;
        let wanted = subject.model.as_deref().or(self.model());
        let model = wanted.or(parsed.conversation.model.as_deref());
        let model = model.map(str::to_owned);
        Ok(OpenedTranscript {
            window: match subject.window {
                Some(given) => Window::for_model(Some(Tokens(given)), None),
                None => self.compact.window(model.as_deref()),
            },
            estimator: self.compact.estimator(model.as_deref()),
            source,
            parsed,
            model,
        })
    }

    /// A manager for a transcript.
    pub(crate) fn transcript_manager(
        &self,
        store: StorePair,
        policy: Policy,
        opened: &OpenedTranscript,
    ) -> Result<Manager, Failure> {
        let estimator = Arc::clone(&opened.estimator);
        let manager = self.compact.build_manager(store, policy, estimator)?;
        Ok(manager
            .with_window(opened.window.tokens)
            .with_summarizer(self.compact.summarizer(opened.model.as_deref())?)
            .with_embedder(self.compact.embedder()))
    }
}

/// What is said on stderr: a terminal gets a report, events join it only for those who asked.
fn choose_log(loaded: &LoadedConfig, global: &GlobalArgs) -> StderrLog {
    let mut values = loaded.values.iter();
    let is_set = values.any(|v| v.path == "telemetry.exporter" && v.origin != ValueOrigin::Default);
    let exporter = loaded.config.telemetry.exporter;
    let asked = (is_set && exporter == ExporterKind::Console) || global.log_format.is_some();
    let filter = std::env::var("RUST_LOG").unwrap_or_default();
    match MinSeverity::from_filter(&filter) {
        Some(least) => StderrLog::Events(least),
        None if asked => StderrLog::Events(MinSeverity::Info),
        None if global.quiet => StderrLog::Silent,
        None => StderrLog::Warnings,
    }
}

/// What a program that embeds Compact may use, and this one cannot.
fn check_adapters(config: &Config) -> Result<(), Failure> {
    use ExporterKind::Custom as CustomExporter;
    use StorageAdapter::Custom as CustomStore;
    let key = match (config.storage.adapter, config.telemetry.exporter) {
        (CustomStore, _) => "storage.adapter",
        (_, CustomExporter) => "telemetry.exporter",
        _ => return Ok(()),
    };
    Err(Failure::usage(
        format!("{key}: `custom` is for programs that embed Compact"),
        "choose another value (compactctl config init lists them all)",
    ))
}

/// The span that the program was called in, as its environment tells it.
pub(crate) fn caller_span() -> Option<TraceContext> {
    let value = std::env::var(TRACEPARENT).ok()?;
    TraceContext::parse(&value)
}

/// What a hook goes by.
#[derive(Debug)]
pub(crate) struct HookConfig {
    /// The data directory.
    pub root: PathBuf,
    /// The settings, as far as they can be used.
    pub config: Config,
    /// What is said on stderr.
    pub log: StderrLog,
    /// The files of settings that are in force.
    pub files: Vec<LoadedFile>,
    /// What was ignored.
    pub warnings: Vec<String>,
    /// What is wrong with the configuration.
    pub fault: Option<String>,
}

/// What a hook goes by.
pub(crate) fn load_hook_config(global: &GlobalArgs) -> Result<HookConfig, Failure> {
    let sources = config_sources(global, global.profile.first().copied());
    let (loaded, fault) = sources.load_usable()?;
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
    Ok(HookConfig {
        root: find_data_directory(&loaded.config)?,
        log: choose_log(&loaded, global),
        config: loaded.config,
        files: loaded.files,
        warnings: loaded.warnings,
        fault: fault.map(|error| error.to_string()),
    })
}

fn find_data_directory(config: &Config) -> Result<PathBuf, Failure> {
    let found = config.storage.folder();
    Ok(found.map_err(|error| Error::NoDataDirectory(error.to_string()))?)
}

impl OpenedTranscript {
    /// The request that the arguments describe.
    pub(crate) fn request<'a>(
        &'a self,
        goal: &BudgetArgs,
        manner: &'a SummaryArgs,
        global: &'a GlobalArgs,
    ) -> CompactionRequest<'a> {
        CompactionRequest::from_transcript(&self.parsed, self.source.bytes.clone())
            .with_session(global.session.as_deref())
            .with_budget(self.budget(goal))
            .with_note(manner.note.as_deref())
    }

    /// What the view may cost; `None` leaves it to the policy.
    fn budget(&self, goal: &BudgetArgs) -> Option<Tokens> {
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
    pub(crate) fn tokens(&self) -> Tokens {
        self.account(&self.parsed.conversation).total()
    }

    fn account(&self, conversation: &Conversation) -> TokenAccount {
        let hashes = EntryHash::from_entries(&conversation.entries);
        let mut cache = TokenCache::default();
        TokenAccount::count_conversation(conversation, &hashes, &*self.estimator, &mut cache)
    }
}

/// The estimator that a receipt names.
pub(crate) fn estimator_by_name(name: &str) -> Result<Arc<dyn Estimator>, Failure> {
    token::by_name(name, None).map_err(|error| Failure::from_error(FailureCode::Input, &error))
}

/// Drives the asynchronous part of a command.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::from_error(FailureCode::Unexpected, &error).with_context("cannot start")
        })?;
    runtime.block_on(work)
}
