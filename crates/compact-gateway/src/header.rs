//! Headers on their way: what a proxy must not pass on, and what is meant for this one.
//!
//! Everything else goes through as it came, whoever knows it: providers and agents rely on headers that no
//! list has. Nothing here decides where a request goes.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue};

/// What opens the names of headers that this gateway reads or writes itself.
pub(crate) const OWN_PREFIX: &str = "x-compact-";

/// Names the session of a request.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("x-compact-session");

/// Carries the gateway's own key.
pub(crate) const KEY: HeaderName = HeaderName::from_static("x-compact-key");

/// Names the receipt of the compaction that an answer rests on.
pub(crate) const RECEIPT: HeaderName = HeaderName::from_static("x-compact-receipt");

/// Where Anthropic and Google look for a key.
pub(crate) const ANTHROPIC_KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(crate) const GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// Headers that a provider's key may come in.
pub(crate) const PROVIDER_KEYS: [HeaderName; 4] = [
    AUTHORIZATION,
    ANTHROPIC_KEY,
    GOOGLE_KEY,
    HeaderName::from_static("api-key"),
];

/// Headers that belong to one connection.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Returns the headers of a request as its upstream gets them. The length is written anew with the body.
pub(crate) fn forwarded_headers(headers: &HeaderMap) -> HeaderMap {
    let mut forwarded = without_hops(headers);
    forwarded.remove(HOST);
    forwarded.remove(CONTENT_LENGTH);
    without_own(forwarded)
}

/// Returns the headers of an answer as its client gets them, without what would pass for the gateway's. A length beside chunks is none, and would say where the next
/// answer begins.
pub(crate) fn returned_headers(headers: &HeaderMap) -> HeaderMap {
    let mut returned = without_own(without_hops(headers));
    if headers.contains_key(TRANSFER_ENCODING) {
        returned.remove(CONTENT_LENGTH);
    }
    returned
}

/// Returns a header's text, if it is plain text.
pub(crate) fn header_text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Returns headers without those of the gateway's own: nobody else says what they say.
fn without_own(mut headers: HeaderMap) -> HeaderMap {
    let names = headers.keys();
    let own = names.filter(|name| name.as_str().starts_with(OWN_PREFIX));
    for name in own.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
    headers
}

fn without_hops(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let stays = |name: &HeaderName| {
        !HOP_BY_HOP.contains(name) && !named.iter().any(|hop| hop == name.as_str())
    };
    let kept = headers.iter().filter(|(name, _)| stays(name));
    let mut rest = HeaderMap::with_capacity(headers.len());
    for (name, value) in kept {
        rest.append(name.clone(), value.clone());
    }
    rest
}

/// Returns a header value of our own making; an empty one for what no header can hold.
pub(crate) fn own_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn only_what_belongs_to_the_connection_or_to_us_is_left_out() {
        let came = headers(&[
            ("host", "127.0.0.1:8787"),
            ("content-length", "12"),
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("x-compact-session", "s"),
            ("x-compact-key", "secret"),
            ("authorization", "Bearer k"),
            ("x-stainless-lang", "js"),
            ("anthropic-beta", "a"),
            ("anthropic-beta", "b"),
        ]);
        let goes = headers(&[
            ("authorization", "Bearer k"),
            ("x-stainless-lang", "js"),
            ("anthropic-beta", "a"),
            ("anthropic-beta", "b"),
        ]);
        assert_eq!(forwarded_headers(&came), goes);
    }

    #[test]
    fn an_upstream_does_not_speak_for_the_gateway() {
        let came = headers(&[
            ("x-compact-session", "another"),
            ("x-compact-receipt", "r"),
            ("request-id", "1"),
        ]);
        assert_eq!(returned_headers(&came), headers(&[("request-id", "1")]));
    }
}
