//! One file per page, and what all of them stand in.

pub(crate) mod chart;
pub(crate) mod chat;
pub(crate) mod compaction;
pub(crate) mod compaction_table;
pub(crate) mod entry;
pub(crate) mod layout;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod money;
pub(crate) mod original;
pub(crate) mod session;
pub(crate) mod start;

use axum::response::{IntoResponse, Response};
use compact::{Error, ErrorKind};
use http::StatusCode;
use maud::html;

use crate::Dashboard;
use crate::page::layout::Layout;
use crate::text::{clip_name, visible};

/// A page that could not be made. It travels with the answer to `guard`, which shows it as a page.
#[derive(Clone)]
pub(crate) struct PageError {
    status: StatusCode,
    reason: String,
    hint: Option<String>,
}

impl PageError {
    /// Says that there is nothing of that name, or nothing that the viewer may see.
    pub(crate) fn not_found(name: &str) -> PageError {
        PageError {
            status: StatusCode::NOT_FOUND,
            reason: format!(
                "nothing on record is called “{}”",
                visible(&clip_name(name))
            ),
            hint: Some("choose one of the list, or search there for a part of its name".to_owned()),
        }
    }

    /// Says why something was refused.
    pub(crate) fn refused(reason: &str) -> PageError {
        PageError {
            status: StatusCode::FORBIDDEN,
            reason: reason.to_owned(),
            hint: Some("go back, load the page again, and repeat it".to_owned()),
        }
    }

    /// Says what is wrong with what a person typed, and what to do about it.
    pub(crate) fn wrong(reason: &str, hint: &str) -> PageError {
        PageError {
            status: StatusCode::BAD_REQUEST,
            reason: reason.to_owned(),
            hint: Some(hint.to_owned()),
        }
    }

    /// Explains an answer that nobody explained: of an address that names no page, or not what its page needs.
    pub(crate) fn of_bare(status: StatusCode) -> Option<PageError> {
        let reason = match status {
            StatusCode::NOT_FOUND => "there is no such page",
            StatusCode::METHOD_NOT_ALLOWED => "this address is not one to open by itself",
            status if status.is_client_error() => {
                "the address or the form lacks something, or says what this page cannot read"
            }
            _ => return None,
        };
        Some(PageError {
            status,
            reason: reason.to_owned(),
            hint: Some("begin at the list of sessions and follow its links".to_owned()),
        })
    }

    /// Shows it as a page.
    pub(crate) fn into_page(self, dashboard: &Dashboard) -> Response {
        let body = html! {
            p.lead { (self.reason) "." }
            @if let Some(hint) = &self.hint { p { (hint) "." } }
            p { a href=(dashboard.link("/")) { "All sessions" } }
        };
        let page = Layout::new(dashboard, "That did not work").page(&body);
        (self.status, page).into_response()
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut answer = self.status.into_response();
        answer.extensions_mut().insert(self);
        answer
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> PageError {
        let status = match error.kind() {
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            _ if matches!(error, Error::NameTaken(_)) => StatusCode::CONFLICT,
            // A word of the address, not a setting.
            ErrorKind::Config if matches!(error, Error::Runtime(_)) => StatusCode::BAD_REQUEST,
            ErrorKind::Budget | ErrorKind::Busy | ErrorKind::Summarizer => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let reason = visible(&error.to_string());
        PageError {
            status,
            // Some errors say it themselves.
            hint: error.hint().filter(|hint| !reason.contains(hint.as_str())),
            reason,
        }
    }
}
