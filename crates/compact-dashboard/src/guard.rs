//! Keeps other web pages out: what names another host or origin is refused, and what changes something needs a token
//! that only our own pages know. Every answer says what its page may load, which is nothing but our own files.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode, Uri};
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use crate::page::PageError;
use crate::{ActionMode, Dashboard, HostRule};

/// What to do about a form that is out of date.
pub(crate) const RELOAD: &str = "go back, load the page again, and repeat it";
/// What a page may load.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Who looks: sessions whose names do not begin with the scope are not there for them. Whoever lets people in puts it
/// into the request; without one everything is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Viewer {
    /// What the names of their sessions begin with.
    pub scope: String,
}

impl Viewer {
    /// Returns whether a session is theirs to see.
    pub(crate) fn may_see(&self, session: &str) -> bool {
        session.starts_with(&self.scope)
    }
}

/// What a form has to carry: made anew with every start.
pub(crate) struct FormToken(String);

impl FormToken {
    /// Makes a token; `None` if the system has no randomness.
    pub(crate) fn new() -> Option<FormToken> {
        let mut bytes = [0; 24];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(FormToken(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// Returns it for a form.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a form carries it.
    pub(crate) fn matches(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

/// Refuses what comes from elsewhere, and adds the policy to every answer.
pub(crate) async fn check(
    State(dashboard): State<Arc<Dashboard>>,
    request: Request,
    next: Next,
) -> Response {
    let mut answer = match find_fault(&dashboard, request.method(), request.headers()) {
        Some(fault) => fault.into_page(&dashboard),
        None => explain_failure(&dashboard, next.run(request).await),
    };
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Returns an answer that is not what was asked for as a page.
fn explain_failure(dashboard: &Dashboard, mut answer: Response) -> Response {
    let told = answer.extensions_mut().remove::<PageError>();
    match told.or_else(|| PageError::of_bare(answer.status())) {
        Some(error) => error.into_page(dashboard),
        None => answer,
    }
}

fn find_fault(dashboard: &Dashboard, method: &Method, headers: &HeaderMap) -> Option<PageError> {
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    let host = host.and_then(|host| Authority::try_from(host).ok());
    let Some(host) = host else {
        return Some(PageError::unreadable(StatusCode::BAD_REQUEST));
    };
    if dashboard.hosts == HostRule::Loopback && !is_this_machine(&host) {
        return Some(PageError::refused(
            "the dashboard answers to names of this machine only",
            "open it as http://127.0.0.1 or http://localhost, with its port",
        ));
    }
    if method == Method::GET || method == Method::HEAD {
        return None;
    }
    if dashboard.actions == ActionMode::ReadOnly {
        return Some(PageError::refused(
            "these pages only show",
            "start the dashboard without --read-only to change something",
        ));
    }
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.and_then(|origin| origin.parse::<Uri>().ok());
    let is_own = origin.is_some_and(|origin| origin.authority() == Some(&host));
    (!is_own).then(|| PageError::refused("the form comes from a page of another origin", RELOAD))
}

fn is_this_machine(authority: &Authority) -> bool {
    let host = authority.host().trim_matches(['[', ']']);
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
}
