//! What every handler is given: whose pages they are, who looks, and what the address or the form says. Who may not see a
//! session, or sends a form that is not ours, comes no further than this.

use std::sync::Arc;

use axum::extract::{Form, FromRequest, Query, Request};
use axum::response::IntoResponse;
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::guard::RELOAD;
use crate::page::PageError;
use crate::{Dashboard, Viewer};

/// A request that may be answered.
pub(crate) struct Visit<Q> {
    pub(crate) dashboard: Arc<Dashboard>,
    pub(crate) viewer: Viewer,
    pub(crate) asked: Q,
    /// How much had changed before anything was read for the answer.
    pub(crate) seen: u64,
}

/// What an address or a form says.
pub(crate) trait Asked: DeserializeOwned {
    /// Returns the session that it is about; none where it is about all, or finds its session by something else.
    fn session(&self) -> Option<&str>;

    /// Returns the token that a form carries.
    fn token(&self) -> &str {
        ""
    }
}

/// An address that says nothing but which page it is.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainAddress {}

impl Asked for PlainAddress {
    fn session(&self) -> Option<&str> {
        None
    }
}

/// Everything is seen by whom nobody let in: then nobody is kept out.
impl<Q: Asked> FromRequest<Arc<Dashboard>> for Visit<Q> {
    type Rejection = PageError;

    async fn from_request(
        request: Request,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Visit<Q>, PageError> {
        let viewer: Viewer = request.extensions().get().cloned().unwrap_or_default();
        let seen = dashboard.changes.count(&viewer.scope);
        let changes = ![Method::GET, Method::HEAD].contains(request.method());
        let asked: Q = match changes {
            true => read_form(request).await?,
            false => read_address(&request)?,
        };
        if changes && !dashboard.token.matches(asked.token()) {
            let reason = "the form is not one of this dashboard's";
            return Err(PageError::refused(reason, RELOAD));
        }
        match asked.session() {
            Some(session) if !viewer.may_see(session) => Err(PageError::not_found(session)),
            _ => Ok(Visit {
                dashboard: Arc::clone(dashboard),
                viewer,
                asked,
                seen,
            }),
        }
    }
}

async fn read_form<Q: Asked>(request: Request) -> Result<Q, PageError> {
    let read = Form::<Q>::from_request(request, &()).await;
    read.map(|Form(asked)| asked)
        .map_err(|rejection| PageError::unreadable(rejection.into_response().status()))
}

fn read_address<Q: Asked>(request: &Request) -> Result<Q, PageError> {
    let read = Query::<Q>::try_from_uri(request.uri());
    read.map(|Query(asked)| asked)
        .map_err(|rejection| PageError::unreadable(rejection.into_response().status()))
}
