//! The one error of this crate: what went wrong, of which kind, and what to do about it.
//!
//! Hints speak of settings and arguments, never of a command line: a door adds its own words.

use compact_adapters::config::ConfigError;
use compact_adapters::estimator::UnknownEstimator;
use compact_adapters::exporter::ExporterError;
use compact_adapters::store::StoreError;
use compact_core::error::{CompactError, Hinted};
use compact_core::redact::RedactError;
use compact_formats::FormatError;
use compact_runtime::port::archive::ArchiveError;
use compact_runtime::port::catalog::CatalogError;
use compact_runtime::port::index::IndexError;

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A setting or an argument is wrong: mend it.
    Config,
    /// A transcript, a message or a report cannot be read.
    Input,
    /// What must stay does not fit; nothing was changed.
    Budget,
    /// The summarizer failed and the policy lets nothing else take its place; nothing was changed.
    Summarizer,
    /// Nothing of that name is on record.
    NotFound,
    /// Somebody else is at it; try again.
    Busy,
    /// A store could not be read or written.
    Storage,
    /// Something that should not happen.
    Unexpected,
}

/// An error of any operation; [`Error::kind`] says what a caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call of the engine failed.
    #[error(transparent)]
    Runtime(#[from] compact_runtime::Error),
    /// A configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A pattern of what is redacted cannot be used.
    #[error(transparent)]
    Redaction(#[from] RedactError),
    /// There are no such stores.
    #[error(transparent)]
    Stores(#[from] StoreError),
    /// Nobody counts tokens under that name.
    #[error(transparent)]
    Estimator(#[from] UnknownEstimator),
    /// The user has no data directory, and none is configured.
    #[error("cannot find the user's data directory: {0}")]
    NoDataDirectory(String),
    /// The key of the model that writes summaries is not in the environment.
    #[error("the summarizer needs a key, and {variable} is not set")]
    MissingKey {
        /// The variable that should hold it.
        variable: String,
    },
    /// There is no exporter as the configuration names it.
    #[error(transparent)]
    Exporter(#[from] ExporterError),
    /// The configuration leaves the store to the program, which gave none.
    #[error("storage.adapter is `custom`, but the program provides no archive")]
    NoCustomStore,
    /// The stores are the program's own, and this is about the configured ones.
    #[error("the stores are the program's own, not those that the configuration names")]
    NoConfiguredStores,
    /// Nothing was archived in the data directory yet.
    #[error("there is no archive in {0}: nothing was compacted yet")]
    NothingArchived(String),
    /// A new session cannot be called like one that there is.
    #[error("there is a session called `{0}` already")]
    NameTaken(String),
    /// What is in the session is nowhere else, or another one was made from it.
    #[error("the session `{0}` holds what no other one does, or another one was made from it")]
    HoldsItsOwn(String),
    /// The receipt says too little to work by.
    #[error("receipt {0} was written by another version")]
    OtherVersion(String),
    /// A view was written as something else than JSON.
    #[error("the view is not valid JSON")]
    Emitted(#[source] serde_json::Error),
    /// A retention that reaches back before the calendar.
    #[error("a retention of {days} days is too long")]
    Retention {
        /// The configured number of days.
        days: u32,
    },
}

impl Error {
    /// Returns what a caller can do about the error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::{Compact, ErrorKind};
    ///
    /// let compact = Compact::builder().in_memory().build()?;
    /// let error = compact.restore("no-such-session").await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Runtime(error) => runtime_kind(error),
            Error::Config(_)
            | Error::Redaction(_)
            | Error::Stores(_)
            | Error::Estimator(_)
            | Error::NoDataDirectory(_)
            | Error::MissingKey { .. }
            | Error::Exporter(_)
            | Error::NoCustomStore
            | Error::NoConfiguredStores
            | Error::NameTaken(_)
            | Error::HoldsItsOwn(_)
            | Error::Retention { .. } => ErrorKind::Config,
            Error::NothingArchived(_) => ErrorKind::NotFound,
            Error::OtherVersion(_) => ErrorKind::Input,
            Error::Emitted(_) => ErrorKind::Unexpected,
        }
    }

    /// Returns what to do about the error, if the message does not say it.
    ///
    /// ```
    /// use compact::Compact;
    ///
    /// let error = Compact::builder().config_json(r#"{"max_context_tokens": "many"}"#).build().unwrap_err();
    /// assert!(error.to_string().contains("max_context_tokens"));
    /// assert_eq!(error.hint().as_deref(), Some("fix the setting that the message names"));
    /// ```
    pub fn hint(&self) -> Option<String> {
        Hinted::hint(self)
    }
}

impl Hinted for Error {
    fn message(&self) -> String {
        match self {
            Error::Runtime(error) => error.message(),
            other => other.to_string(),
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Runtime(error) => return error.hint(),
            Error::Config(_) | Error::Redaction(_) => "fix the setting that the message names",
            Error::Stores(_) => "set the variable that storage.archive.key_env names",
            Error::Estimator(_) => "use the estimator that the receipt names",
            Error::NoDataDirectory(_) => "set storage.path to a directory for the archive",
            Error::MissingKey { .. } => {
                "set it, name another variable in summarizer.api_key_env, or another server in \
                 summarizer.url"
            }
            Error::Exporter(ExporterError::Collector(_)) => {
                "set telemetry.exporter to console or none"
            }
            Error::Exporter(ExporterError::NoOtlp) => {
                "build it with the feature `otlp`, or set telemetry.exporter to console or none"
            }
            Error::NoCustomStore => {
                "give the builder an archive and a catalog, or set storage.adapter"
            }
            Error::NoConfiguredStores => "pass no stores to the builder",
            Error::NameTaken(_) => "choose another name",
            Error::HoldsItsOwn(_) => "let old compactions go with a limit of retention",
            Error::NothingArchived(_) => "compact something first, with an archive",
            Error::OtherVersion(_) => "its original can be restored",
            Error::Retention { .. } => "use fewer days",
            Error::Emitted(_) => return None,
        };
        Some(hint.to_owned())
    }
}

fn runtime_kind(error: &compact_runtime::Error) -> ErrorKind {
    use compact_runtime::Error as Runtime;
    match error {
        Runtime::Compact(
            CompactError::InsufficientBudget { .. } | CompactError::InstructionsTooLarge { .. },
        ) => ErrorKind::Budget,
        Runtime::Compact(CompactError::BadPattern { .. })
        | Runtime::EmptyQuery
        | Runtime::BadPointer(_)
        | Runtime::BadLines(_)
        | Runtime::BadPattern(_)
        | Runtime::Branches { .. }
        | Runtime::Archive(ArchiveError::Locked { .. } | ArchiveError::Refused { .. })
        | Runtime::Catalog(
            CatalogError::Refused { .. }
            | CatalogError::Ambiguous { .. }
            | CatalogError::ReceiptOrSession { .. }
            | CatalogError::TwoSessions { .. },
        ) => ErrorKind::Config,
        Runtime::Format(_) => ErrorKind::Input,
        Runtime::Archive(_)
        | Runtime::Catalog(_)
        | Runtime::Index(_)
        | Runtime::Transcript(_)
        | Runtime::Record { .. } => ErrorKind::Storage,
        Runtime::Summary { .. } | Runtime::Declined(_) => ErrorKind::Summarizer,
        Runtime::Compacting(_) | Runtime::Overtaken(_) => ErrorKind::Busy,
        Runtime::NotFound(_)
        | Runtime::NotArchived(_)
        | Runtime::NoSuchEntry(_)
        | Runtime::OtherSession { .. } => ErrorKind::NotFound,
        _ => ErrorKind::Unexpected,
    }
}

/// Errors that the engine wraps reach a caller alike, whoever they come from.
macro_rules! wrapped_by_the_engine {
    ($($error:ty),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Error::Runtime(error.into())
            }
        }
    )*};
}

wrapped_by_the_engine!(
    CompactError,
    FormatError,
    ArchiveError,
    CatalogError,
    IndexError
);
