//! The servers behind the gateway: where each is, whose key it gets, and one pool of connections to all.
//!
//! Only the configuration names a server. A request chooses among those that are named; nothing in its
//! headers or its target can lead anywhere else.

use std::fmt;
use std::time::Duration;

use axum::body::Body;
use compact::format::validate::Provider;
use http::header::{AUTHORIZATION, HeaderName};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::header;
use crate::settings::SettingsError;

/// How long a connection that nobody uses is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);
/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that requests are passed on to.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// Its name in the configuration, in paths and in metrics.
    pub(crate) name: String,
    scheme: Scheme,
    authority: Authority,
    /// What stands before the path of each request; without a slash at its end.
    prefix: String,
    /// The key that it gets instead of the client's.
    pub(crate) key: Option<UpstreamKey>,
}

/// A provider's key, which never prints itself.
#[derive(Clone)]
pub(crate) struct UpstreamKey(String);

impl UpstreamKey {
    /// Takes a key; `None` for an empty one.
    pub(crate) fn new(key: String) -> Option<UpstreamKey> {
        (!key.is_empty()).then_some(UpstreamKey(key))
    }

    /// Returns whether it is a token of Anthropic's, which is no key.
    fn is_anthropic_token(&self) -> bool {
        self.0.starts_with("sk-ant-oat")
    }

    /// Returns the key with something before it, as a header that does not print.
    pub(crate) fn header_value(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for UpstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl Upstream {
    /// Reads an upstream's address.
    pub(crate) fn new(name: &str, url: &str) -> Result<Upstream, SettingsError> {
        let wrong = || SettingsError::Address {
            name: name.to_owned(),
            url: url.to_owned(),
        };
        let parts = url.parse::<Uri>().map_err(|_| wrong())?.into_parts();
        let scheme = parts.scheme.ok_or_else(wrong)?;
        let authority = parts.authority.ok_or_else(wrong)?;
        let is_http = scheme == Scheme::HTTP || scheme == Scheme::HTTPS;
        if !is_http || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let path = parts.path_and_query.as_ref().map_or("", |p| p.path());
        Ok(Upstream {
            name: name.to_owned(),
            scheme,
            authority,
            prefix: path.trim_end_matches('/').to_owned(),
            key: None,
        })
    }

    /// Returns the header that the server looks for this key in. Two providers take theirs in one place alone; any other
    /// server gets it where the client had one, or where the API has it that is spoken.
    pub(crate) fn key_header(
        &self,
        key: &UpstreamKey,
        sent: Option<HeaderName>,
        spoken: Option<Provider>,
    ) -> HeaderName {
        match self.authority.host() {
            "api.anthropic.com" if key.is_anthropic_token() => return AUTHORIZATION,
            "api.anthropic.com" => return header::ANTHROPIC_KEY,
            "generativelanguage.googleapis.com" => return header::GOOGLE_KEY,
            _ => {}
        }
        sent.unwrap_or(match spoken {
            Some(Provider::Anthropic) => header::ANTHROPIC_KEY,
            Some(Provider::Gemini) => header::GOOGLE_KEY,
            _ => AUTHORIZATION,
        })
    }

    /// Returns the address of a path on this server; `None` for what is no path, or for one that climbs.
    pub(crate) fn address_of(&self, target: &str) -> Option<Uri> {
        if !target.starts_with('/') || has_dot_segment(target) {
            return None;
        }
        let target = format!("{}{target}", self.prefix);
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(PathAndQuery::try_from(target).ok()?)
            .build()
            .ok()
    }
}

/// Returns whether a path has a segment that stands for a folder above or for its own, which servers resolve, some only
/// once they have left out what follows a semicolon: what stands before the path would not hold.
fn has_dot_segment(target: &str) -> bool {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let path = path.to_ascii_lowercase();
    let path = path.replace("%2e", ".").replace("%2f", "/");
    let path = path.replace("%5c", "/").replace("%3b", ";");
    path.split(['/', '\\']).any(|segment| {
        let name = segment.split(';').next().unwrap_or(segment);
        matches!(name, "." | "..")
    })
}

/// Connections to all upstreams, used again and again.
#[derive(Clone)]
pub(crate) struct UpstreamClient(Client<HttpsConnector<HttpConnector>, Body>);

/// A request that could not be passed on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// The path is none.
    #[error("the request's target is no path, or has `.` or `..` in it")]
    Target,
    /// The server cannot be reached, or hung up.
    #[error("cannot reach the upstream")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The server goes on in another protocol, which nobody asked it for.
    #[error("the upstream's answer is none: it switches protocols")]
    Switched,
}

impl UpstreamClient {
    /// Opens the pool; nothing is connected yet.
    pub(crate) fn new() -> Result<UpstreamClient, SettingsError> {
        let provider = rustls::crypto::ring::default_provider();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(provider)
            .map_err(SettingsError::Certificates)?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .build(connector);
        Ok(UpstreamClient(client))
    }

    /// Sends a request and returns the head of its answer; the body follows as it comes.
    pub(crate) async fn send(
        &self,
        upstream: &Upstream,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = upstream.address_of(target).ok_or(UpstreamError::Target)?;
        *request.headers_mut() = headers;
        let sent = self.0.request(request).await;
        let answer = sent.map_err(UpstreamError::Unreachable)?;
        match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS => Err(UpstreamError::Switched),
            _ => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_on_its_server() {
        let upstream = Upstream::new("local", "http://127.0.0.1:8080/base/").unwrap();
        let address = |target: &str| upstream.address_of(target).map(|uri| uri.to_string());
        let at = |path: &str| Some(format!("http://127.0.0.1:8080/base{path}"));
        assert_eq!(address("/v1/models?a=b"), at("/v1/models?a=b"));
        assert_eq!(address("//evil.example/x"), at("//evil.example/x"));
        assert_eq!(address("@evil.example/x"), None);
        assert_eq!(address("http://evil.example/"), None);
        for plain in ["/v1/..x/a.b?c=/../d", "/v1/a;b=../x", "/v1/;a/x"] {
            assert_eq!(address(plain), at(plain));
        }
        for climbing in [
            "/../v1/x",
            "/v1/./x",
            "/v1/%2E%2e/x",
            "/v1/x/..",
            "/v1/..%2fx",
            "/v1/..%5Cx",
            "/v1/..;/x",
            "/v1/%2e%2E%3Ba=b/x",
        ] {
            assert_eq!(address(climbing), None, "{climbing}");
        }
    }

    #[test]
    fn an_address_without_host_or_with_a_password_is_refused() {
        for url in [
            "",
            "/v1",
            "ftp://host",
            "http://user:pass@host",
            "file:///etc",
        ] {
            assert!(Upstream::new("x", url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_key_does_not_print_itself() {
        let key = UpstreamKey::new("sk-secret".to_owned()).unwrap();
        let value = key.header_value("Bearer ").unwrap();
        assert_eq!(format!("{key:?} {value:?}"), "[key] Sensitive");
    }
}
