//! What the configuration asks for, checked and ready to use.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use compact::config::{CompactionAnswer, GatewayConfig};
use compact::format::validate::Provider;

use crate::access::AccessKey;
use crate::upstream::{Upstream, UpstreamKey};

/// Paths that an upstream's name must not hide.
const RESERVED: [&str; 9] = [
    "healthz",
    "readyz",
    "metrics",
    "v1",
    "v1beta",
    "v1alpha",
    "responses",
    "chat",
    "dashboard",
];

/// Settings of a gateway.
#[derive(Debug)]
pub struct GatewaySettings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// All upstreams; the providers' own open the list.
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    providers: ProviderUpstreams,
    pub(crate) keys: Vec<AccessKey>,
    pub(crate) answer_compaction: CompactionAnswer,
    /// Whether models are offered to look up what a view leaves out.
    pub(crate) offer_recall: bool,
    /// Whether clients are told what their own histories would have cost.
    pub(crate) nudge_clients: bool,
    pub(crate) max_body: usize,
    pub(crate) max_sessions: usize,
    pub(crate) max_session_bytes: u64,
    pub(crate) drain_time: Duration,
    /// How long a request waits for a store that does not answer.
    pub(crate) store_timeout: Duration,
}

/// The upstreams of paths that name none.
#[derive(Debug)]
struct ProviderUpstreams {
    openai: Arc<Upstream>,
    anthropic: Arc<Upstream>,
    gemini: Arc<Upstream>,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// An address to listen on that is none.
    #[error("gateway.listen: `{0}` is no address such as 127.0.0.1:8787")]
    Listen(String),
    /// A list of pairs has something else in it.
    #[error("{key}: `{text}` is not NAME=VALUE")]
    Pair {
        /// The setting.
        key: &'static str,
        /// What stands there.
        text: String,
    },
    /// A name of an upstream that cannot stand in a path.
    #[error(
        "gateway.upstreams: `{0}` cannot be a name: use lower-case letters, digits and dashes, and none of the API's own paths"
    )]
    Name(String),
    /// The address of an upstream is none.
    #[error(
        "the upstream {name}: `{url}` is no address such as https://host/path, without user and password"
    )]
    Address {
        /// The upstream.
        name: String,
        /// What stands there.
        url: String,
    },
    /// A key is set for an upstream that there is not.
    #[error("gateway.upstream_keys: there is no upstream `{0}`")]
    UnknownUpstream(String),
    /// The environment lacks a key.
    #[error("gateway.upstream_keys: the variable {0} is not set")]
    MissingVariable(String),
    /// A stored key is not what `compactctl serve --new-key` prints.
    #[error("gateway.keys: the key of `{0}` is no hash of 64 hexadecimal digits")]
    KeyHash(String),
    /// What a key may be used for cannot be read.
    #[error(
        "gateway.keys: behind the hash of `{0}` may stand upstreams=NAME+NAME and tokens_a_day=NUMBER, with names of upstreams that there are"
    )]
    KeyGrant(String),
    /// The name of a key cannot open the names of sessions.
    #[error(
        "gateway.keys: `{0}` cannot be a name: use letters, digits, dashes, dots and `_`, a letter or digit first"
    )]
    KeyName(String),
    /// Two keys would be one tenant, or one key two.
    #[error(
        "gateway.keys: `{0}` has the name or the hash of another key: each key is a tenant of its own"
    )]
    RepeatedKey(String),
    /// Whoever reaches the address could use it.
    #[error(
        "gateway.listen: {0} can be reached from other machines, and there are no gateway.keys"
    )]
    Open(SocketAddr),
    /// Where events go cannot be opened.
    #[error(transparent)]
    Engine(#[from] compact::Error),
    /// The system's certificates cannot be read.
    #[error("cannot read the system's certificates")]
    Certificates(#[source] std::io::Error),
}

impl GatewaySettings {
    /// Checks a configuration and reads the keys that its variables hold.
    pub fn from_config(config: &GatewayConfig) -> Result<GatewaySettings, SettingsError> {
        let listen: Result<SocketAddr, _> = config.listen.parse();
        let listen = listen.map_err(|_| SettingsError::Listen(config.listen.clone()))?;
        let keys = read_pairs("gateway.keys", &config.keys)?;
        let keys: Result<Vec<AccessKey>, SettingsError> = keys
            .into_iter()
            .map(|(name, hash)| AccessKey::from_setting(name, hash))
            .collect();
        let keys = keys?;
        if let Some(name) = AccessKey::find_repeated(&keys) {
            return Err(SettingsError::RepeatedKey(name.to_owned()));
        }
        if keys.is_empty() && !listen.ip().is_loopback() {
            return Err(SettingsError::Open(listen));
        }
        let providers = ProviderUpstreams {
            openai: open_upstream(config, "openai", &config.openai_url)?,
            anthropic: open_upstream(config, "anthropic", &config.anthropic_url)?,
            gemini: open_upstream(config, "gemini", &config.gemini_url)?,
        };
        let upstreams = read_upstreams(config, &providers)?;
        let is_known = |name: &String| upstreams.iter().any(|upstream| upstream.name == *name);
        let reaches_none = |key: &&AccessKey| {
            let named = key.grant.upstreams.as_ref();
            named.is_some_and(|names| !names.iter().all(is_known))
        };
        if let Some(key) = keys.iter().find(reaches_none) {
            return Err(SettingsError::KeyGrant(key.tenant().to_owned()));
        }
        const MEGABYTE: u64 = 1 << 20;
        Ok(GatewaySettings {
            listen,
            upstreams,
            providers,
            keys,
            answer_compaction: config.answer_compaction,
            offer_recall: config.offer_recall,
            nudge_clients: config.nudge_clients,
            max_body: usize::try_from(config.max_body_mb * MEGABYTE).unwrap_or(usize::MAX),
            max_sessions: usize::try_from(config.max_sessions).unwrap_or(usize::MAX),
            max_session_bytes: config.max_session_mb * MEGABYTE,
            drain_time: Duration::from_secs(config.drain_seconds),
            store_timeout: Duration::from_secs(config.store_timeout_seconds),
        })
    }

    /// Returns the upstream of a provider's paths.
    pub(crate) fn default_upstream(&self, provider: Provider) -> &Arc<Upstream> {
        match provider {
            Provider::OpenAiChat | Provider::OpenAiResponses => &self.providers.openai,
            Provider::Anthropic => &self.providers.anthropic,
            Provider::Gemini => &self.providers.gemini,
        }
    }
}

/// Returns the providers' upstreams, then the named ones.
fn read_upstreams(
    config: &GatewayConfig,
    providers: &ProviderUpstreams,
) -> Result<Vec<Arc<Upstream>>, SettingsError> {
    let own = [&providers.openai, &providers.anthropic, &providers.gemini];
    let mut upstreams: Vec<Arc<Upstream>> = own.into_iter().cloned().collect();
    for (name, url) in read_pairs("gateway.upstreams", &config.upstreams)? {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let is_taken = upstreams.iter().any(|known| known.name == name);
        if !name.bytes().all(is_plain) || is_taken || RESERVED.contains(&name) {
            return Err(SettingsError::Name(name.to_owned()));
        }
        upstreams.push(open_upstream(config, name, url)?);
    }
    let keyed = read_pairs("gateway.upstream_keys", &config.upstream_keys)?;
    let is_known = |name: &str| upstreams.iter().any(|upstream| upstream.name == name);
    match keyed.into_iter().find(|(name, _)| !is_known(name)) {
        Some((name, _)) => Err(SettingsError::UnknownUpstream(name.to_owned())),
        None => Ok(upstreams),
    }
}

/// Returns an upstream with the key that a variable holds for it.
fn open_upstream(
    config: &GatewayConfig,
    name: &str,
    url: &str,
) -> Result<Arc<Upstream>, SettingsError> {
    let mut upstream = Upstream::new(name, url)?;
    let keyed = read_pairs("gateway.upstream_keys", &config.upstream_keys)?;
    if let Some((_, variable)) = keyed.into_iter().find(|(named, _)| *named == name) {
        let key = std::env::var(variable).ok().and_then(UpstreamKey::new);
        let missing = || SettingsError::MissingVariable(variable.to_owned());
        upstream.key = Some(key.ok_or_else(missing)?);
    }
    Ok(Arc::new(upstream))
}

fn read_pairs<'c>(
    key: &'static str,
    list: &'c [String],
) -> Result<Vec<(&'c str, &'c str)>, SettingsError> {
    let pairs = list.iter().map(|text| {
        let pair = text.split_once('=').map(|(n, v)| (n.trim(), v.trim()));
        pair.filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .ok_or_else(|| SettingsError::Pair {
                key,
                text: text.clone(),
            })
    });
    pairs.collect()
}
