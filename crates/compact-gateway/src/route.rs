//! Where a request goes and what it is about, by its method, its path and the headers that name a provider.

use std::sync::Arc;

use compact::format::validate::Provider;
use http::{HeaderMap, Method, Uri};

use crate::settings::GatewaySettings;
use crate::upstream::Upstream;

/// A request's way.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The server that it goes to.
    pub(crate) upstream: Arc<Upstream>,
    /// Path and query there.
    pub(crate) target: String,
    /// What is asked of it.
    pub(crate) endpoint: Endpoint,
    /// Whose API it speaks, as far as can be seen: errors of the gateway's own take its shape.
    pub(crate) provider: Provider,
}

/// What a path is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A model is asked to answer a history.
    Model(Provider),
    /// The provider is asked to compact a history (`/responses/compact`).
    Compact,
    /// Anything else: listing models, counting tokens, files.
    Other,
}

impl Endpoint {
    /// Returns whose shapes its requests and answers have.
    pub(crate) fn provider(self) -> Provider {
        match self {
            Endpoint::Model(provider) => provider,
            Endpoint::Compact => Provider::OpenAiResponses,
            Endpoint::Other => Provider::OpenAiChat,
        }
    }
}

/// Chooses the way of a request.
pub(crate) fn find_route(
    settings: &GatewaySettings,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Route {
    let path = uri.path();
    let named = settings.upstreams.iter().find_map(|upstream| {
        let rest = path.strip_prefix('/')?.strip_prefix(&*upstream.name)?;
        rest.starts_with('/').then_some((upstream, rest))
    });
    let (chosen, path) = match named {
        Some((upstream, rest)) => (Some(upstream), rest),
        None => (None, path),
    };
    let endpoint = match *method == Method::POST {
        true => find_endpoint(path),
        false => Endpoint::Other,
    };
    let provider = provider_of(endpoint, path, headers);
    let upstream = chosen.unwrap_or_else(|| settings.default_upstream(provider));
    let query = uri.query().map_or_else(String::new, |q| format!("?{q}"));
    Route {
        upstream: Arc::clone(upstream),
        target: format!("{path}{query}"),
        endpoint,
        provider,
    }
}

fn find_endpoint(path: &str) -> Endpoint {
    let is_gemini = path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent");
    match path.rsplit('/').next().unwrap_or_default() {
        "completions" if path.ends_with("/chat/completions") => {
            Endpoint::Model(Provider::OpenAiChat)
        }
        "responses" => Endpoint::Model(Provider::OpenAiResponses),
        "compact" if path.ends_with("/responses/compact") => Endpoint::Compact,
        "messages" => Endpoint::Model(Provider::Anthropic),
        _ if is_gemini => Endpoint::Model(Provider::Gemini),
        _ => Endpoint::Other,
    }
}

/// Whose API a request speaks, where its path does not name an upstream.
fn provider_of(endpoint: Endpoint, path: &str, headers: &HeaderMap) -> Provider {
    match endpoint {
        Endpoint::Model(provider) => provider,
        Endpoint::Compact => Provider::OpenAiResponses,
        Endpoint::Other if is_gemini_path(path) || headers.contains_key("x-goog-api-key") => {
            Provider::Gemini
        }
        Endpoint::Other
            if path.contains("/messages")
                || headers.contains_key("anthropic-version")
                || headers.contains_key("x-api-key") =>
        {
            Provider::Anthropic
        }
        Endpoint::Other => Provider::OpenAiChat,
    }
}

fn is_gemini_path(path: &str) -> bool {
    path.starts_with("/v1beta") || path.starts_with("/v1alpha") || path.contains(":countTokens")
}

#[cfg(test)]
mod tests {
    use compact::config::GatewayConfig;

    use super::*;

    fn route(
        method: &Method,
        target: &str,
        header: Option<&'static str>,
    ) -> (String, String, Endpoint) {
        let config = GatewayConfig {
            upstreams: vec!["local=http://127.0.0.1:1/base".to_owned()],
            ..GatewayConfig::default()
        };
        let settings = GatewaySettings::from_config(&config).unwrap();
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(name, http::HeaderValue::from_static("x"));
        }
        let uri: Uri = target.parse().unwrap();
        let found = find_route(&settings, method, &uri, &headers);
        (found.upstream.name.clone(), found.target, found.endpoint)
    }

    #[test]
    fn a_path_leads_to_its_provider() {
        let model = Endpoint::Model;
        for (target, upstream, endpoint) in [
            (
                "/v1/messages?beta=true",
                "anthropic",
                model(Provider::Anthropic),
            ),
            ("/v1/messages/count_tokens", "anthropic", Endpoint::Other),
            (
                "/v1/chat/completions",
                "openai",
                model(Provider::OpenAiChat),
            ),
            ("/v1/responses", "openai", model(Provider::OpenAiResponses)),
            ("/v1/responses/compact", "openai", Endpoint::Compact),
            (
                "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
                "gemini",
                model(Provider::Gemini),
            ),
            (
                "/v1beta/models/gemini-2.5-pro:countTokens",
                "gemini",
                Endpoint::Other,
            ),
            ("/v1/embeddings", "openai", Endpoint::Other),
        ] {
            let expected = (upstream.to_owned(), target.to_owned(), endpoint);
            assert_eq!(route(&Method::POST, target, None), expected, "{target}");
        }
    }

    #[test]
    fn a_name_in_the_path_chooses_and_is_left_out() {
        let (upstream, target, endpoint) = route(&Method::POST, "/local/v1/chat/completions", None);
        assert_eq!((&*upstream, &*target), ("local", "/v1/chat/completions"));
        assert_eq!(endpoint, Endpoint::Model(Provider::OpenAiChat));
        let (upstream, target, _) = route(&Method::POST, "/localhost/v1/x", None);
        assert_eq!((&*upstream, &*target), ("openai", "/localhost/v1/x"));
    }

    #[test]
    fn headers_tell_whose_models_are_listed() {
        let listed = |header| route(&Method::GET, "/v1/models", header).0;
        assert_eq!(listed(None), "openai");
        assert_eq!(listed(Some("anthropic-version")), "anthropic");
        assert_eq!(listed(Some("x-goog-api-key")), "gemini");
        assert_eq!(
            route(&Method::GET, "/v1/responses", None).2,
            Endpoint::Other
        );
    }
}
