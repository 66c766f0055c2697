//! Why a command failed, in words a person can act on, with the exit code scripts rely on.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use compact::config::ConfigError;
use compact::format::{Format, FormatError};
use compact::manager::{CompactError, Hinted};
use compact::store::{ArchiveError, CatalogError, IndexError};
use serde_json::{Value, json};

use crate::answer::set_field;
use crate::report::text::printable;

/// The exit codes of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCode {
    /// Something that should not happen: a full disk, a damaged store.
    Unexpected = 1,
    /// Bad usage or configuration.
    Usage = 2,
    /// Input that cannot be read or parsed.
    Input = 3,
    /// What must stay does not fit the budget; nothing was changed.
    Budget = 4,
    /// A check failed.
    Check = 5,
    /// The summarizer failed and the policy says fail; nothing was changed.
    Summarizer = 6,
    /// Refused for now, nothing was changed: somebody else is at it.
    Busy = 7,
    /// A person interrupted it; what a shell reports of any program that was.
    Interrupted = 130,
}

impl FailureCode {
    fn kind(self) -> &'static str {
        match self {
            FailureCode::Unexpected => "unexpected",
            FailureCode::Usage => "usage",
            FailureCode::Input => "input",
            FailureCode::Budget => "insufficient_budget",
            FailureCode::Check => "check_failed",
            FailureCode::Summarizer => "summarizer_failed",
            FailureCode::Busy => "busy",
            FailureCode::Interrupted => "interrupted",
        }
    }
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    code: FailureCode,
    message: String,
    help: Option<String>,
    detail: Vec<(&'static str, u64)>,
}

impl Failure {
    /// A failure with its words.
    pub(crate) fn new(code: FailureCode, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            help: None,
            detail: Vec::new(),
        }
    }

    /// Bad usage, and what would be good.
    pub(crate) fn usage(message: impl Into<String>, help: &str) -> Failure {
        Failure::new(FailureCode::Usage, message).help(help)
    }

    /// A command that was left out of this build, and how to get one that has it.
    #[cfg(any(test, not(feature = "full")))]
    pub(crate) fn without_feature(name: &str) -> Failure {
        Failure::usage(
            format!("this build has no `{name}`: it was made without the cargo feature `{name}`"),
            "build one that has everything with `--features full`, as in `cargo run --release --features full`",
        )
    }

    /// An error with everything that caused it.
    pub(crate) fn from_error(code: FailureCode, error: &dyn Error) -> Failure {
        Failure::with_causes(code, error.to_string(), error.source())
    }

    /// An error with everything that caused it, and with what to do about it.
    pub(crate) fn from_hinted(code: FailureCode, error: &(impl Hinted + Error)) -> Failure {
        let mut failure = Failure::with_causes(code, error.message(), error.source());
        failure.help = error.hint();
        failure
    }

    fn with_causes(
        code: FailureCode,
        mut message: String,
        mut cause: Option<&dyn Error>,
    ) -> Failure {
        while let Some(error) = cause {
            let words = error.to_string();
            if !message.ends_with(&words) {
                message = format!("{message}: {words}");
            }
            cause = error.source();
        }
        Failure::new(code, message)
    }

    /// Adds what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// Adds more of what to do.
    pub(crate) fn add_help(mut self, more: &str) -> Failure {
        self.help = Some(match self.help {
            Some(help) => format!("{help}; {more}"),
            None => more.to_owned(),
        });
        self
    }

    /// Puts the subject (a file, say) before the message.
    pub(crate) fn with_context(mut self, subject: &str) -> Failure {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    fn with_detail(mut self, key: &'static str, value: u64) -> Failure {
        self.detail.push((key, value));
        self
    }

    /// What kind of failure it is.
    pub(crate) fn code(&self) -> FailureCode {
        self.code
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The process's answer to its parent.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
    }

    /// Tells a person on stderr, and a program on stdout.
    pub(crate) fn show(&self, json: bool) {
        use owo_colors::OwoColorize;
        let mut stderr = anstream::stderr().lock();
        // Nobody is left to be told when these fail.
        let _ = writeln!(
            stderr,
            "{} {}",
            "error:".red().bold(),
            printable(&self.message)
        );
        if let Some(help) = &self.help {
            let _ = writeln!(stderr, "{} {}", "help:".cyan().bold(), printable(help));
        }
        if json {
            let _ = crate::output::print_line(&self.to_json().to_string());
        }
    }

    fn to_json(&self) -> Value {
        let mut error = json!({
            "kind": self.code.kind(),
            "exit_code": self.code as u8,
            "message": self.message,
            "help": self.help,
        });
        for (key, value) in &self.detail {
            set_field(&mut error, key, *value);
        }
        json!({ "error": error })
    }
}

impl From<CompactError> for Failure {
    fn from(error: CompactError) -> Failure {
        match error {
            CompactError::InsufficientBudget {
                pinned_tokens,
                needed,
                budget,
            } => Failure::from_hinted(FailureCode::Budget, &error)
                .with_detail("pinned_tokens", pinned_tokens.0)
                .with_detail("needed", needed.0)
                .with_detail("budget", budget.0),
            CompactError::InstructionsTooLarge {
                system,
                tools,
                needed,
                available,
            } => Failure::from_hinted(FailureCode::Budget, &error)
                .with_detail("pinned_tokens", system.0)
                .with_detail("needed", (system + tools + needed).0)
                .with_detail("budget", available.0),
            CompactError::BadPattern { .. } => Failure::from_error(FailureCode::Usage, &error),
            CompactError::InvalidView(_) => Failure::from_error(FailureCode::Unexpected, &error),
        }
    }
}

impl From<compact::Error> for Failure {
    fn from(error: compact::Error) -> Failure {
        use compact::Error as Front;
        match error {
            Front::Runtime(error) => error.into(),
            Front::Config(error) => error.into(),
            Front::Redaction(_) | Front::Stores(_) => {
                Failure::from_error(FailureCode::Usage, &error)
            }
            Front::NoDataDirectory(_) => Failure::from_error(FailureCode::Usage, &error)
                .help("set COMPACT_STORAGE_PATH to a directory for the archive"),
            Front::Estimator(_) => Failure::from_error(FailureCode::Input, &error),
            Front::NothingArchived(_) => Failure::from_error(FailureCode::Input, &error)
                .help("`compactctl compact FILE` makes one; COMPACT_STORAGE_PATH names another"),
            Front::OtherVersion(_) => Failure::from_error(FailureCode::Input, &error)
                .help("`compactctl restore` gives its original back"),
            Front::Retention { .. } => {
                Failure::usage("--older-than is too large", "use fewer days")
            }
            Front::Emitted(_) => Failure::from_error(FailureCode::Unexpected, &error),
            error => Failure::from_hinted(FailureCode::Usage, &error),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::from_error(FailureCode::Usage, &error)
            .help("`compactctl config show` lists every key, `config init` writes a file with all of them")
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Failure {
        let code = match error {
            FormatError::NoBoundary { .. }
            | FormatError::UnknownName { .. }
            | FormatError::ManySessions { .. } => FailureCode::Usage,
            FormatError::NoSuchEntry { .. } => FailureCode::Unexpected,
            _ => FailureCode::Input,
        };
        let failure = Failure::from_hinted(code, &error);
        match option_help(&error) {
            Some(help) => failure.help(&help),
            None => failure,
        }
    }
}

/// The option that does what an error asks for; the library's own hint names none.
fn option_help(error: &FormatError) -> Option<String> {
    match error {
        FormatError::Unrecognised { .. } => {
            Some(format!("name it with --format ({})", Format::names()))
        }
        FormatError::ManySessions { count } => {
            let last = count.saturating_sub(1);
            Some(format!("choose one with --session-index 0 to {last}"))
        }
        FormatError::NoBoundary { .. } => Some("write the view with -o instead".to_owned()),
        _ => None,
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Failure {
        match error {
            ArchiveError::Locked { .. } => Failure::from_error(FailureCode::Usage, &error),
            ArchiveError::Refused { .. } => Failure::from_hinted(FailureCode::Usage, &error),
            ArchiveError::Inflated { .. } | ArchiveError::ForeignClash { .. } => {
                Failure::from_error(FailureCode::Input, &error)
                    .help("import only what you know the origin of; a copy that is yours imports")
            }
            ArchiveError::Unreachable { .. } => {
                Failure::from_hinted(FailureCode::Unexpected, &error)
            }
            ArchiveError::Damaged { .. }
            | ArchiveError::Missing { .. }
            | ArchiveError::MissingBase { .. } => {
                Failure::from_error(FailureCode::Unexpected, &error).help(
                    "`compactctl archive verify` lists everything damaged or missing; \
                 `archive import DIR` takes it from a copy",
                )
            }
            _ => Failure::from_error(FailureCode::Unexpected, &error).help(
                "nothing was changed; check that the archive is writable and has space, and run \
                 `compactctl archive verify`",
            ),
        }
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Failure {
        match error {
            CatalogError::Ambiguous { .. } => Failure::from_error(FailureCode::Usage, &error)
                .help("`compactctl archive list` shows the sessions and receipts on record"),
            CatalogError::Refused { .. }
            | CatalogError::ReceiptOrSession { .. }
            | CatalogError::TwoSessions { .. } => Failure::from_hinted(FailureCode::Usage, &error),
            CatalogError::Unreachable { .. } => {
                Failure::from_hinted(FailureCode::Unexpected, &error)
            }
            CatalogError::Lost { .. } => Failure::from_hinted(FailureCode::Unexpected, &error)
                .help("`compactctl archive rebuild` makes it again from the archive"),
            CatalogError::Damaged { .. } => Failure::from_hinted(FailureCode::Unexpected, &error)
                .help(
                    "`compactctl archive rebuild` makes it again from the archive, which is not \
                     affected",
                ),
            _ => Failure::from_error(FailureCode::Unexpected, &error)
                .help("the archive is not affected; storage.catalog or COMPACT_STORAGE_PATH names another catalog"),
        }
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Failure {
        Failure::from_error(FailureCode::Unexpected, &error).help(
            "the archive is not affected; the index may be deleted, and is rebuilt from the archive",
        )
    }
}

impl From<compact::manager::RuntimeError> for Failure {
    fn from(error: compact::manager::RuntimeError) -> Failure {
        use compact::manager::RuntimeError as Runtime;
        match error {
            Runtime::Compact(error) => error.into(),
            Runtime::Format(error) => error.into(),
            Runtime::Archive(error) => error.into(),
            Runtime::Catalog(error) => error.into(),
            Runtime::NotFound(_) => Failure::from_hinted(FailureCode::Input, &error)
                .help("`compactctl archive list` shows what is on record"),
            Runtime::Compacting(session) => Failure::new(
                FailureCode::Busy,
                format!("another process is compacting session '{session}'"),
            )
            .help("try again in a moment; policy.wait_seconds says how long to wait"),
            Runtime::NotArchived(_) => Failure::from_error(FailureCode::Input, &error),
            Runtime::Branches { .. } => Failure::from_hinted(FailureCode::Usage, &error).help(
                "`compactctl restore history:RECEIPT` gives one whole, `archive show` says when they were made",
            ),
            Runtime::Index(error) => error.into(),
            Runtime::EmptyQuery | Runtime::BadLines(_) | Runtime::BadPattern(_) => {
                Failure::from_hinted(FailureCode::Usage, &error)
            }
            Runtime::BadPointer(_) => Failure::from_hinted(FailureCode::Usage, &error)
                .help("write RECEIPT#NUMBER, as a view or `compactctl recall` shows it"),
            Runtime::Summary { .. } => Failure::from_hinted(FailureCode::Summarizer, &error),
            Runtime::NoSuchEntry(_) => Failure::from_hinted(FailureCode::Input, &error)
                .help("`compactctl recall` finds entries by their words"),
            Runtime::OtherSession { .. } => Failure::from_hinted(FailureCode::Usage, &error),
            other => Failure::from_error(FailureCode::Unexpected, &other),
        }
    }
}
