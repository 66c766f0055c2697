//! Who may use the gateway: keys of its own, and what keeps web pages out where there are none.
//!
//! A key is 32 random bytes; the configuration holds its hash, so reading a file gives nobody access. Each
//! key is a tenant, whose sessions no other reaches. A gateway without keys listens on this machine
//! alone and is one tenant; web pages, which may reach it through a browser, are refused.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use percent_encoding::percent_decode_str;
use subtle::ConstantTimeEq;

use crate::header::{self, PROVIDER_KEYS};
use crate::route::{Endpoint, Route};
use crate::settings::{GatewaySettings, SettingsError};
use crate::upstream::Upstream;

/// What opens every key, so that people and scanners recognise one.
const KEY_PREFIX: &str = "cgw_";

/// A key that the gateway accepts, by its hash.
#[derive(Clone, Debug)]
pub(crate) struct AccessKey {
    tenant: String,
    hash: [u8; 32],
    pub(crate) grant: KeyGrant,
}

/// What a key may be used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyGrant {
    /// The upstreams that it reaches; all of them where none is named.
    pub(crate) upstreams: Option<Vec<String>>,
    /// The most tokens in a day.
    pub(crate) daily_tokens: Option<u64>,
}

impl KeyGrant {
    /// Reads what stands behind a key's hash, such as `upstreams=local+azure tokens_a_day=2000000`.
    fn read<'t>(words: impl Iterator<Item = &'t str>) -> Option<KeyGrant> {
        let mut grant = KeyGrant::default();
        for word in words {
            match word.split_once('=')? {
                ("upstreams", names) => {
                    grant.upstreams = Some(names.split('+').map(str::to_owned).collect());
                }
                ("tokens_a_day", most) => grant.daily_tokens = Some(most.parse().ok()?),
                _ => return None,
            }
        }
        Some(grant)
    }
}

/// Whose requests these are; names of sessions open with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tenant(String);

/// A key that was just made: shown once, and never stored.
pub struct NewKey {
    /// The key itself, for the client.
    pub key: String,
    /// The line for `gateway.keys`.
    pub setting: String,
}

/// Headers with which a server says for whom it passes a request on. To a gateway without keys all of its clients would be
/// programs of this machine.
const FORWARDED: [HeaderName; 3] = [
    HeaderName::from_static("forwarded"),
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
];

/// What a browser says of the page that wants something, where it does not name that page's origin: of an image, for example.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccessError {
    /// There is no key, or a wrong one.
    #[error("the gateway needs its own key in the header x-compact-key")]
    Key,
    /// The gateway's key came where the provider's belongs, and there is none to take its place.
    #[error(
        "the upstream has no key: set gateway.upstream_keys, or send the provider's key beside x-compact-key"
    )]
    NoUpstreamKey,
    /// A key of the gateway's stands in the path, which goes to the upstream.
    #[error("a key of the gateway stands in the path: send it in the header x-compact-key")]
    KeyInPath,
    /// The key reaches other upstreams only.
    #[error("this key may not use this upstream (gateway.keys)")]
    Upstream,
    /// The key has spent what it may spend in a day.
    #[error(
        "this key has spent its tokens of today (gateway.keys); it may be used again at 00:00 UTC"
    )]
    Spent,
    /// A web page asks.
    #[error("requests of web pages are refused: the gateway has no keys")]
    WebPage,
    /// Another server passed it on, for whomever.
    #[error("requests that another server passes on are refused: the gateway has no keys")]
    Forwarded,
}

impl AccessError {
    /// Returns the status that says it.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            AccessError::Key | AccessError::NoUpstreamKey => StatusCode::UNAUTHORIZED,
            AccessError::WebPage | AccessError::Forwarded | AccessError::Upstream => {
                StatusCode::FORBIDDEN
            }
            AccessError::KeyInPath => StatusCode::BAD_REQUEST,
            AccessError::Spent => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// How a request was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) tenant: Tenant,
    pub(crate) grant: KeyGrant,
}

impl AccessKey {
    /// Reads a key's hash as the configuration has it, and what it may be used for.
    pub(crate) fn from_setting(tenant: &str, setting: &str) -> Result<AccessKey, SettingsError> {
        check_key_name(tenant)?;
        let mut words = setting.split_whitespace();
        let hash = blake3::Hash::from_hex(words.next().unwrap_or_default());
        let hash = hash.map_err(|_| SettingsError::KeyHash(tenant.to_owned()))?;
        let grant = KeyGrant::read(words);
        let grant = grant.ok_or_else(|| SettingsError::KeyGrant(tenant.to_owned()))?;
        Ok(AccessKey {
            tenant: tenant.to_owned(),
            hash: *hash.as_bytes(),
            grant,
        })
    }

    /// Returns the tenant of a key that has the name or the hash of an earlier one.
    pub(crate) fn find_repeated(keys: &[AccessKey]) -> Option<&str> {
        let is_same = |a: &AccessKey, b: &AccessKey| a.tenant == b.tenant || a.hash == b.hash;
        let mut later = keys.iter().enumerate();
        let repeated =
            later.find(|(at, key)| keys.iter().take(*at).any(|known| is_same(known, key)));
        repeated.map(|(_, key)| key.tenant.as_str())
    }

    /// Returns whose it is.
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    fn matches(&self, key: &str) -> bool {
        let hash = blake3::hash(key.as_bytes());
        self.hash.ct_eq(hash.as_bytes()).into()
    }
}

impl Tenant {
    /// Returns the tenant of a name.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Tenant {
        Tenant(name.to_owned())
    }

    /// Returns what opens the names of the tenant's sessions.
    pub(crate) fn scope(&self) -> String {
        match self.0.as_str() {
            "" => String::new(),
            name => format!("{name}/"),
        }
    }
}

/// Checks the name of a key: it opens the names of its sessions, and stands before `=` in a setting.
pub fn check_key_name(name: &str) -> Result<(), SettingsError> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let opens_plain = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match opens_plain && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(SettingsError::KeyName(name.to_owned())),
    }
}

/// Makes a key for a tenant of this name, which [`check_key_name`] lets pass; `None` if the system has no randomness.
pub fn make_key(tenant: &str) -> Option<NewKey> {
    let key = format!("{KEY_PREFIX}{}", random_hex::<32>()?);
    let hash = blake3::hash(key.as_bytes()).to_hex();
    Some(NewKey {
        setting: format!("{tenant}={hash}"),
        key,
    })
}

/// Makes a path that nobody can guess; `None` if the system has no randomness.
pub fn make_private_path() -> Option<String> {
    Some(format!("/{}", random_hex::<16>()?))
}

fn random_hex<const N: usize>() -> Option<String> {
    let mut bytes = [0_u8; N];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Lets a request in, or turns it away.
pub(crate) fn admit(
    settings: &GatewaySettings,
    headers: &HeaderMap,
) -> Result<Admission, AccessError> {
    if settings.keys.is_empty() {
        if is_from_web_page(headers) {
            return Err(AccessError::WebPage);
        }
        if FORWARDED.iter().any(|name| headers.contains_key(name)) {
            return Err(AccessError::Forwarded);
        }
        return Ok(Admission {
            tenant: Tenant::default(),
            grant: KeyGrant::default(),
        });
    }
    let own = header::header_text(headers, &header::KEY);
    let others = PROVIDER_KEYS.into_iter().filter_map(|name| {
        let text = header::header_text(headers, &name)?;
        Some(text.strip_prefix("Bearer ").unwrap_or(text))
    });
    let found = own.into_iter().chain(others).find_map(|key| {
        let known = settings.keys.iter().find(|known| known.matches(key))?;
        Some(Admission {
            tenant: Tenant(known.tenant.clone()),
            grant: known.grant.clone(),
        })
    });
    found.ok_or(AccessError::Key)
}

/// Moves a key of the gateway's from where Gemini's clients may put one, the query, to the header of the same meaning.
pub(crate) fn move_query_key(
    settings: &GatewaySettings,
    headers: &mut HeaderMap,
    query: Option<&str>,
) {
    let mut pairs = query.unwrap_or_default().split('&');
    let key = pairs.find_map(|pair| pair.strip_prefix("key="));
    let is_ours = |key: &&str| settings.keys.iter().any(|known| known.matches(key));
    let value = key.filter(is_ours).map(HeaderValue::from_str);
    if let Some(Ok(mut value)) = value {
        value.set_sensitive(true);
        // The client's own key for the provider may stand in the header.
        let place = match headers.contains_key(header::GOOGLE_KEY) {
            true => header::KEY,
            false => header::GOOGLE_KEY,
        };
        headers.entry(place).or_insert(value);
    }
}

/// Lets a person in who looks with a browser: by a key as for any request, or as the password that browsers ask for.
pub(crate) fn admit_browser(
    settings: &GatewaySettings,
    headers: &HeaderMap,
) -> Result<Admission, AccessError> {
    let password = header::header_text(headers, &AUTHORIZATION).and_then(read_password);
    let found = password.and_then(|key| {
        let known = settings.keys.iter().find(|known| known.matches(&key))?;
        Some(Admission {
            tenant: Tenant(known.tenant.clone()),
            grant: known.grant.clone(),
        })
    });
    found.map_or_else(|| admit(settings, headers), Ok)
}

/// Reads the password of HTTP's basic authentication.
fn read_password(header: &str) -> Option<String> {
    let bytes = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (_, password) = text.split_once(':')?;
    Some(password.to_owned())
}

impl Admission {
    /// Turns a request away that goes where its key does not reach.
    pub(crate) fn check_upstream(&self, upstream: &Upstream) -> Result<(), AccessError> {
        match &self.grant.upstreams {
            Some(names) if !names.contains(&upstream.name) => Err(AccessError::Upstream),
            _ => Ok(()),
        }
    }
}

/// Takes the gateway's keys out of what goes to an upstream, wherever they stand, and puts the upstream's own in, where
/// it has one.
pub(crate) fn replace_keys(
    settings: &GatewaySettings,
    headers: &mut HeaderMap,
    route: &mut Route,
) -> Result<(), AccessError> {
    let path = route.target.split('?').next().unwrap_or_default();
    if holds_key(settings, &percent_decode_str(path).decode_utf8_lossy()) {
        return Err(AccessError::KeyInPath);
    }
    let sent = find_provider_key(headers);
    remove_gateway_keys(settings, headers, &mut route.target);
    let Some(key) = &route.upstream.key else {
        let is_lost = sent.is_some() && find_provider_key(headers).is_none();
        return if is_lost {
            Err(AccessError::NoUpstreamKey)
        } else {
            Ok(())
        };
    };
    let spoken = match route.endpoint {
        Endpoint::Model(provider) => Some(provider),
        _ => None,
    };
    let name = route.upstream.key_header(key, sent, spoken);
    for other in &PROVIDER_KEYS {
        headers.remove(other);
    }
    let prefix = if name == AUTHORIZATION { "Bearer " } else { "" };
    let value = key.header_value(prefix).ok_or(AccessError::NoUpstreamKey)?;
    headers.insert(name, value);
    Ok(())
}

/// Returns the header that a provider's key came in.
fn find_provider_key(headers: &HeaderMap) -> Option<HeaderName> {
    let mut names = PROVIDER_KEYS.into_iter();
    names.find(|name| headers.contains_key(name))
}

/// Returns whether a key of the gateway's, whose ever it is, stands in a text.
fn holds_key(settings: &GatewaySettings, text: &str) -> bool {
    let is_between = |c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c));
    let mut words = text.split_whitespace().chain(text.split(is_between));
    let is_key = |word: &str| settings.keys.iter().any(|known| known.matches(word));
    !settings.keys.is_empty() && words.any(|word| !word.is_empty() && is_key(word))
}

/// Takes out every header, and every part of the query, that has a key of the gateway in it, whose ever it is.
fn remove_gateway_keys(settings: &GatewaySettings, headers: &mut HeaderMap, target: &mut String) {
    let has_key = |text: &str| holds_key(settings, text);
    let holding = |(name, value): (&HeaderName, &HeaderValue)| {
        has_key(&String::from_utf8_lossy(value.as_bytes())).then(|| name.clone())
    };
    let named: Vec<HeaderName> = headers.iter().filter_map(holding).collect();
    for name in named {
        headers.remove(name);
    }
    if let Some((path, query)) = target.split_once('?').filter(|(_, query)| has_key(query)) {
        let rest: Vec<&str> = query.split('&').filter(|pair| !has_key(pair)).collect();
        let query = if rest.is_empty() { "" } else { "?" };
        *target = format!("{path}{query}{}", rest.join("&"));
    }
}

/// Returns whether a browser sends this for a page: such requests name their origin, or a host that was made
/// to point at this machine, or the browser says that another site wants it without showing it to anybody.
fn is_from_web_page(headers: &HeaderMap) -> bool {
    let origin = header::header_text(headers, &ORIGIN);
    let foreign_origin = origin.is_some_and(|origin| {
        let uri = origin.parse::<Uri>().ok();
        !uri.and_then(|uri| uri.authority().map(is_this_machine))
            .unwrap_or(false)
    });
    let foreign_host = headers.get_all(HOST).iter().any(|host| {
        let authority = Authority::try_from(host.as_bytes()).ok();
        !authority.is_some_and(|authority| is_this_machine(&authority))
    });
    let fetched_beside = header::header_text(headers, &FETCH_SITE) == Some("cross-site")
        && header::header_text(headers, &FETCH_MODE) != Some("navigate");
    foreign_origin || foreign_host || fetched_beside
}

fn is_this_machine(authority: &Authority) -> bool {
    let host = authority.host().trim_matches(['[', ']']);
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use compact::config::GatewayConfig;
    use compact::format::validate::Provider;

    use super::*;
    use crate::upstream::UpstreamKey;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn settings(keys: Vec<String>) -> GatewaySettings {
        let config = GatewayConfig {
            keys,
            ..GatewayConfig::default()
        };
        GatewaySettings::from_config(&config).unwrap()
    }

    #[test]
    fn without_keys_programs_of_this_machine_are_one_tenant_and_pages_are_refused() {
        let settings = settings(Vec::new());
        let admitted = |pairs: &[(&'static str, &str)]| {
            admit(&settings, &headers(pairs)).map(|admission| admission.tenant)
        };
        let one = Ok(Tenant::default());
        assert_eq!(admitted(&[("host", "127.0.0.1:8787")]), one);
        assert_eq!(
            admitted(&[("host", "localhost:8787"), ("authorization", "Bearer k")]),
            one
        );
        assert_eq!(
            admitted(&[("host", "[::1]:8787"), ("origin", "http://localhost:8787")]),
            one
        );
        let refused = Err(AccessError::WebPage);
        assert_eq!(admitted(&[("host", "rebound.example:8787")]), refused);
        assert_eq!(
            admitted(&[("host", "localhost"), ("origin", "https://page.example")]),
            refused
        );
        assert_eq!(
            admitted(&[("host", "localhost"), ("origin", "null")]),
            refused
        );
        let here = ("host", "127.0.0.1:8787");
        let other_site = ("sec-fetch-site", "cross-site");
        assert_eq!(admitted(&[here, ("host", "rebound.example")]), refused);
        assert_eq!(admitted(&[here, other_site]), refused, "an image of a page");
        let followed = [here, other_site, ("sec-fetch-mode", "navigate")];
        assert_eq!(admitted(&followed), one, "a link to the dashboard");
        for name in ["x-forwarded-for", "forwarded", "x-real-ip"] {
            let passed_on = admitted(&[("host", "127.0.0.1:8787"), (name, "203.0.113.7")]);
            assert_eq!(passed_on, Err(AccessError::Forwarded), "{name}");
        }
    }

    #[test]
    fn a_key_is_a_tenant_wherever_it_stands() {
        let (one, two) = (make_key("one").unwrap(), make_key("two").unwrap());
        let settings = settings(vec![one.setting.clone(), two.setting]);
        assert!(!one.setting.contains(&one.key));
        let tenant = |pairs: &[(&'static str, &str)]| {
            admit(&settings, &headers(pairs)).map(|admission| admission.tenant.scope())
        };
        assert_eq!(
            tenant(&[("x-compact-key", &one.key)]),
            Ok("one/".to_owned())
        );
        for name in ["x-api-key", "x-goog-api-key", "api-key"] {
            assert_eq!(tenant(&[(name, &two.key)]), Ok("two/".to_owned()), "{name}");
        }
        let bearer = format!("Bearer {}", two.key);
        assert_eq!(tenant(&[("authorization", &bearer)]), Ok("two/".to_owned()));
        assert_eq!(
            tenant(&[("x-compact-key", "cgw_00")]),
            Err(AccessError::Key)
        );
        assert_eq!(tenant(&[]), Err(AccessError::Key));
    }

    /// What an upstream gets: its headers and its target.
    fn sent(
        settings: &GatewaySettings,
        came: &[(&'static str, &str)],
        target: &str,
        key: &str,
    ) -> Result<(HeaderMap, String), AccessError> {
        let mut upstream = Upstream::new("local", "http://127.0.0.1:1").unwrap();
        upstream.key = UpstreamKey::new(key.to_owned());
        let mut route = Route {
            provider: Provider::OpenAiChat,
            upstream: Arc::new(upstream),
            target: target.to_owned(),
            endpoint: Endpoint::Other,
        };
        let mut headers = headers(came);
        replace_keys(settings, &mut headers, &mut route)?;
        Ok((headers, route.target))
    }

    #[test]
    fn what_a_key_may_be_used_for_stands_behind_its_hash() {
        let one = make_key("one").unwrap();
        let with = |words: &str| {
            let config = GatewayConfig {
                keys: vec![format!("{} {words}", one.setting)],
                ..GatewayConfig::default()
            };
            GatewaySettings::from_config(&config)
        };
        let settings = with("upstreams=openai+gemini tokens_a_day=500").unwrap();
        let admission = admit(&settings, &headers(&[("x-compact-key", &one.key)])).unwrap();
        assert_eq!(admission.grant.daily_tokens, Some(500));
        let reaches = |name| admission.check_upstream(&Upstream::new(name, "http://h").unwrap());
        assert_eq!(reaches("openai"), Ok(()));
        assert_eq!(reaches("anthropic"), Err(AccessError::Upstream));
        for words in ["upstreams=nowhere", "tokens_a_day=many", "money=1", "x"] {
            let refused = with(words).unwrap_err();
            assert!(matches!(refused, SettingsError::KeyGrant(_)), "{words}");
        }
    }

    #[test]
    fn the_gateways_key_never_goes_to_an_upstream() {
        let (one, two) = (make_key("one").unwrap(), make_key("two").unwrap());
        let settings = settings(vec![one.setting, two.setting]);
        let came = [("x-api-key", one.key.as_str())];
        let refused = Err(AccessError::NoUpstreamKey);
        assert_eq!(sent(&settings, &came, "/v1/x", ""), refused);
        let keyed = (headers(&[("x-api-key", "sk-real")]), "/v1/x".to_owned());
        assert_eq!(sent(&settings, &came, "/v1/x", "sk-real"), Ok(keyed));
        for key in [&one.key, &two.key] {
            let (bearer, cookie) = (format!("bearer  {key}"), format!("a=b; k={key}"));
            let came = [
                ("authorization", "Bearer sk-client"),
                ("x-api-key", key.as_str()),
                ("api-key", key.as_str()),
                ("x-other", bearer.as_str()),
                ("cookie", cookie.as_str()),
                ("x-stainless-lang", "js"),
            ];
            let target = format!("/v1/x?alt=sse&key={key}");
            for (own, goes) in [("", "Bearer sk-client"), ("sk-real", "Bearer sk-real")] {
                let rest = headers(&[("authorization", goes), ("x-stainless-lang", "js")]);
                let expected = Ok((rest, "/v1/x?alt=sse".to_owned()));
                assert_eq!(sent(&settings, &came, &target, own), expected);
            }
        }
    }

    #[test]
    fn an_upstream_gets_its_key_where_it_looks_for_one() {
        let one = make_key("one").unwrap();
        let settings = settings(vec![one.setting]);
        let found = |url: &str, key: &str, endpoint, came: &'static str| {
            let mut upstream = Upstream::new("some", url).unwrap();
            upstream.key = UpstreamKey::new(key.to_owned());
            let mut route = Route {
                provider: Provider::OpenAiChat,
                upstream: Arc::new(upstream),
                target: "/v1/x".to_owned(),
                endpoint,
            };
            let mut headers = headers(&[(came, &one.key)]);
            replace_keys(&settings, &mut headers, &mut route).unwrap();
            let mut goes = headers
                .iter()
                .map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned()));
            (goes.next().unwrap(), goes.next())
        };
        let goes = |name: &str, value: &str| ((name.to_owned(), value.to_owned()), None);
        let model = |provider| Endpoint::Model(provider);
        let (anthropic, google) = (
            "https://api.anthropic.com",
            "https://generativelanguage.googleapis.com",
        );
        for came in ["x-compact-key", "authorization", "x-api-key"] {
            let messages = model(Provider::Anthropic);
            let sent = found(anthropic, "sk-ant-api03-k", messages, came);
            assert_eq!(sent, goes("x-api-key", "sk-ant-api03-k"));
            let sent = found(anthropic, "sk-ant-oat01-k", messages, came);
            assert_eq!(sent, goes("authorization", "Bearer sk-ant-oat01-k"));
            let sent = found(google, "AIza", Endpoint::Other, came);
            assert_eq!(sent, goes("x-goog-api-key", "AIza"));
        }
        let other = "http://127.0.0.1:8080";
        for (provider, came, name, value) in [
            (Provider::Anthropic, "x-compact-key", "x-api-key", "k"),
            (
                Provider::Anthropic,
                "authorization",
                "authorization",
                "Bearer k",
            ),
            (Provider::Gemini, "x-compact-key", "x-goog-api-key", "k"),
            (
                Provider::OpenAiChat,
                "x-compact-key",
                "authorization",
                "Bearer k",
            ),
            (Provider::OpenAiChat, "api-key", "api-key", "k"),
        ] {
            let sent = found(other, "k", model(provider), came);
            assert_eq!(sent, goes(name, value), "{provider:?} {came}");
        }
    }

    #[test]
    fn a_key_has_a_plain_name_and_a_hash_of_its_own() {
        let setting = |name: &str| make_key(name).unwrap().setting;
        let (one, other) = (setting("one"), setting("other"));
        let again = one.replace("one=", "two=");
        let lists = [
            vec![setting("..")],
            vec![setting("-x")],
            vec![setting("a/b")],
            vec![one.clone(), setting("one")],
            vec![one.clone(), again],
        ];
        let open = |keys: Vec<String>| {
            GatewaySettings::from_config(&GatewayConfig {
                keys,
                ..GatewayConfig::default()
            })
        };
        for keys in lists {
            assert!(open(keys.clone()).is_err(), "{keys:?}");
        }
        assert!(open(vec![one, other]).is_ok());
    }
}
