//! Where originals, receipts and sessions are kept, and for how long.

use std::path::PathBuf;

use etcetera::{BaseStrategy, HomeDirError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::{Bucket, BucketAddressing, BucketEncryption};
use crate::postgres::PostgresAddress;

/// The stores of originals, receipts and sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StorageConfig {
    /// The store for originals.
    pub adapter: StorageAdapter,
    /// The folder of the store and of the embedded catalog; unset, one in the user's data directory.
    pub path: Option<PathBuf>,
    /// The folder of session transcripts and the other files of profile `hard-reset`; unset, `sessions` in
    /// the folder above. `VT_SESSION_DIR` sets it too.
    pub transcripts: Option<PathBuf>,
    /// The database that holds receipts and the recall index, as
    /// `postgres://user@host/database?sslmode=verify-full`; the password comes from `PGPASSWORD`. Or the
    /// SQLite file of the receipts, as `sqlite:receipts.db`. Unset, SQLite files in the folder above.
    pub catalog: Option<String>,
    /// After how many seconds without a sign of life a process loses the session that it compacts to
    /// another one. Processes that share a catalog must agree on it to within a factor of two: one with
    /// less than half of another's takes that one's leases for those of a clock that was set back.
    pub lease_seconds: u64,
    /// When what was archived becomes part of the recall index; `recall` adds what is missing in any case.
    pub indexing: IndexingMoment,
    /// The bucket, for `storage.adapter: s3`. Keys come from `AWS_ACCESS_KEY_ID` and the other variables
    /// of Amazon's clients, or from the machine's role.
    pub s3: S3Config,
    /// The rules for archiving originals.
    pub archive: ArchiveConfig,
    /// What may be removed; never what the latest view of a session points at.
    pub retention: RetentionConfig,
}

impl Default for StorageConfig {
    fn default() -> Self {
        StorageConfig {
            adapter: StorageAdapter::default(),
            path: None,
            transcripts: None,
            catalog: None,
            lease_seconds: 15,
            indexing: IndexingMoment::default(),
            s3: S3Config::default(),
            archive: ArchiveConfig::default(),
            retention: RetentionConfig::default(),
        }
    }
}

/// The store for originals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageAdapter {
    /// A folder on this machine.
    #[default]
    Fs,
    /// A bucket that speaks S3.
    S3,
    /// A store of the program that embeds Compact.
    Custom,
    /// Nothing: what a view leaves out is lost.
    None,
}

impl StorageAdapter {
    /// Returns whether originals are files in the data directory, or would be.
    pub(crate) fn is_folder(self) -> bool {
        match self {
            StorageAdapter::Fs | StorageAdapter::Custom | StorageAdapter::None => true,
            StorageAdapter::S3 => false,
        }
    }
}

/// When what was archived becomes part of the recall index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexingMoment {
    /// After each compaction, once its answer is out: in a process or a thread of its own, at low priority.
    #[default]
    Background,
    /// When somebody searches.
    OnRecall,
}

/// A bucket that speaks S3.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct S3Config {
    /// Its name.
    pub bucket: Option<String>,
    /// The prefix of all object names.
    pub prefix: Option<String>,
    /// The server, such as `https://minio.example:9000`; unset, `AWS_ENDPOINT`, else Amazon's.
    pub endpoint: Option<String>,
    /// The region; unset, `AWS_REGION`.
    pub region: Option<String>,
    /// Where requests name the bucket: `path`, as most servers expect it, or `host`.
    pub style: AddressingStyle,
    /// The server-side encryption to ask for.
    pub sse: ServerSideEncryption,
    /// The key for `sse: kms`; unset, the account's own.
    pub kms_key: Option<String>,
}

/// Where requests name the bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddressingStyle {
    /// In the path.
    #[default]
    Path,
    /// In the name of the host.
    Host,
}

/// The server-side encryption to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerSideEncryption {
    /// Whatever the bucket says.
    #[default]
    Unset,
    /// Keys of the store (SSE-S3).
    Aes256,
    /// A key of the key management service (SSE-KMS).
    Kms,
}

/// What must be kept, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveConfig {
    /// Whether a compaction without an archive is refused; if not, an event warns about it.
    pub required: bool,
    /// The variable that holds the key (64 hexadecimal digits) with which originals and the recall
    /// index are encrypted before they are stored; unset, they are not.
    pub key_env: Option<String>,
}

impl Default for ArchiveConfig {
    fn default() -> Self {
        ArchiveConfig {
            required: true,
            key_env: None,
        }
    }
}

/// What may go. What the latest view of a session points at always stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Remove compactions that are older than so many days; unset, none.
    pub days: Option<u32>,
    /// Remove the oldest compactions until the archive has at most so many bytes; unset, it may grow.
    pub max_bytes: Option<u64>,
}

/// What a catalog that is a file begins with.
const SQLITE: &str = "sqlite:";

impl StorageConfig {
    /// Returns the folder that is configured, or the one in the user's data directory.
    pub fn folder(&self) -> Result<PathBuf, HomeDirError> {
        match &self.path {
            Some(path) => Ok(path.clone()),
            None => Ok(etcetera::choose_base_strategy()?.data_dir().join("compact")),
        }
    }

    /// Returns the SQLite file of the catalog, if one is named.
    pub fn catalog_file(&self) -> Option<PathBuf> {
        let file = self.catalog.as_deref()?.strip_prefix(SQLITE)?;
        Some(PathBuf::from(file))
    }

    /// Returns the address of the shared catalog, if there is one. It was validated when it was read.
    pub fn catalog_address(&self) -> Option<PostgresAddress> {
        self.catalog.as_deref()?.parse().ok()
    }

    /// Returns the bucket that is configured.
    pub fn bucket(&self) -> Bucket {
        let s3 = self.s3.clone();
        Bucket {
            name: s3.bucket.unwrap_or_default(),
            prefix: s3.prefix.unwrap_or_default(),
            endpoint: s3.endpoint,
            region: s3.region,
            style: match s3.style {
                AddressingStyle::Path => BucketAddressing::Path,
                AddressingStyle::Host => BucketAddressing::Host,
            },
            encryption: match s3.sse {
                ServerSideEncryption::Unset => BucketEncryption::Unset,
                ServerSideEncryption::Aes256 => BucketEncryption::Store,
                ServerSideEncryption::Kms => BucketEncryption::Kms(s3.kms_key),
            },
        }
    }
}

/// Paths with what their values should be.
pub(super) fn check_storage(storage: &StorageConfig) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if storage.adapter == StorageAdapter::None && storage.archive.required {
        let message =
            "an archive is required: choose a store, or set storage.archive.required to false";
        wrong.push(("storage.adapter", message.to_owned()));
    }
    if storage.adapter == StorageAdapter::S3 && storage.s3.bucket.is_none() {
        wrong.push(("storage.adapter", "s3 needs storage.s3.bucket".to_owned()));
    }
    let shared = storage
        .catalog
        .as_deref()
        .filter(|c| !c.starts_with(SQLITE));
    if let Some(Err(error)) = shared.map(str::parse::<PostgresAddress>) {
        wrong.push(("storage.catalog", error.to_string()));
    }
    if storage
        .catalog_file()
        .is_some_and(|file| file.file_name().is_none())
    {
        wrong.push((
            "storage.catalog",
            "sqlite: must be followed by a file".to_owned(),
        ));
    }
    if !(1..=3600).contains(&storage.lease_seconds) {
        wrong.push(("storage.lease_seconds", "must be from 1 to 3600".to_owned()));
    }
    let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
    if !storage.s3.endpoint.as_ref().is_none_or(is_url) {
        let message = "must begin with http:// or https://";
        wrong.push(("storage.s3.endpoint", message.to_owned()));
    }
    wrong
}
