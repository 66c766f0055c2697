//! A bucket that speaks S3 as an object store.
//!
//! Where it is and how it encrypts is configured; who asks is the environment's affair: the variables
//! that every client of S3 reads (`AWS_ACCESS_KEY_ID` …), a web identity, or the machine's role.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, Result, RetryConfig};

/// The address of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The name of the bucket.
    pub name: String,
    /// What all names in it begin with; empty for none.
    pub prefix: String,
    /// The server, where it is not Amazon's.
    pub endpoint: Option<String>,
    /// The region; `None` leaves it to the environment.
    pub region: Option<String>,
    /// Where the name of the bucket stands.
    pub style: BucketAddressing,
    /// What the server encrypts with.
    pub encryption: BucketEncryption,
}

impl Bucket {
    /// Returns where it is, in words.
    pub(super) fn display_name(&self) -> String {
        match &self.endpoint {
            Some(endpoint) => format!("bucket {} at {endpoint}", self.name),
            None => format!("bucket {}", self.name),
        }
    }
}

/// Where a request names the bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketAddressing {
    /// In the path: what most servers but Amazon's expect.
    #[default]
    Path,
    /// In the name of the host.
    Host,
}

/// The encryption that a server is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BucketEncryption {
    /// What the bucket says.
    #[default]
    Unset,
    /// Keys of the store.
    Store,
    /// A key of the key management service; `None` for the account's own.
    Kms(Option<String>),
}

/// How often a request is repeated that failed for want of a connection or capacity.
const RETRIES: usize = 4;

/// The longest that repeating may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens a bucket; nothing is sent yet.
pub(super) fn open(bucket: &Bucket) -> Result<Arc<dyn ObjectStore>> {
    open_with(AmazonS3Builder::from_env(), bucket)
}

/// Opens a bucket with credentials that are already known.
pub(super) fn open_with(builder: AmazonS3Builder, bucket: &Bucket) -> Result<Arc<dyn ObjectStore>> {
    // One provider of cryptography for the process; whoever was first has chosen it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions::new()
        .with_allow_http(true)
        .with_connect_timeout(Duration::from_secs(10))
        .with_timeout(Duration::from_secs(120));
    let retry = RetryConfig {
        max_retries: RETRIES,
        retry_timeout: PATIENCE,
        ..RetryConfig::default()
    };
    let mut builder = builder
        .with_client_options(options)
        .with_retry(retry)
        .with_bucket_name(&bucket.name)
        .with_virtual_hosted_style_request(bucket.style == BucketAddressing::Host);
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(region) = &bucket.region {
        builder = builder.with_region(region);
    }
    let store = with_encryption(builder, &bucket.encryption)?.build()?;
    if bucket.prefix.is_empty() {
        return Ok(Arc::new(store));
    }
    Ok(Arc::new(PrefixStore::new(store, bucket.prefix.as_str())))
}

fn with_encryption(
    builder: AmazonS3Builder,
    encryption: &BucketEncryption,
) -> Result<AmazonS3Builder> {
    let with = |builder: AmazonS3Builder, key: &str, value: &str| {
        let key: AmazonS3ConfigKey = key.parse()?;
        Ok(builder.with_config(key, value))
    };
    match encryption {
        BucketEncryption::Unset => Ok(builder),
        BucketEncryption::Store => with(builder, "aws_server_side_encryption", "AES256"),
        BucketEncryption::Kms(key) => {
            let builder = with(builder, "aws_server_side_encryption", "aws:kms")?;
            match key {
                Some(key) => with(builder, "aws_sse_kms_key_id", key),
                None => Ok(builder),
            }
        }
    }
}
