//! One file per page, and what all of them stand in.

pub(crate) mod chart;
pub(crate) mod chat;
pub(crate) mod compaction;
pub(crate) mod compaction_table;
pub(crate) mod entry;
pub(crate) mod layout;
pub(crate) mod ledger;
pub(crate) mod left_out;
pub(crate) mod list;
pub(crate) mod money;
pub(crate) mod original;
pub(crate) mod session;
pub(crate) mod start;
pub(crate) mod subject;

use axum::response::{IntoResponse, Response};
use compact::{Error, ErrorKind};
use http::StatusCode;
use maud::html;

use crate::Dashboard;
use crate::page::layout::Layout;
use crate::text::{clip_name, foreign, visible};

/// A page that could not be made. It travels with the answer to `guard`, which shows it as a page.
#[derive(Clone)]
pub(crate) struct PageError {
    status: StatusCode,
    reason: String,
    hint: Option<String>,
    /// The page that it was asked from: its name and address.
    asked_from: Option<(String, String)>,
}

impl PageError {
    /// Says that there is nothing of that name, or nothing that the viewer may see.
    pub(crate) fn not_found(name: &str) -> PageError {
        PageError {
            status: StatusCode::NOT_FOUND,
            reason: format!("nothing on record is called “{}”", clip_name(name)),
            hint: Some("choose one of the list, or search there for a part of its name".to_owned()),
            asked_from: None,
        }
    }

    /// Says why something was refused, and what to do about it.
    pub(crate) fn refused(reason: &str, hint: &str) -> PageError {
        PageError {
            status: StatusCode::FORBIDDEN,
            reason: reason.to_owned(),
            hint: Some(hint.to_owned()),
            asked_from: None,
        }
    }

    /// Says what is wrong with what a person typed, and what to do about it.
    pub(crate) fn wrong(reason: &str, hint: &str) -> PageError {
        PageError {
            status: StatusCode::BAD_REQUEST,
            reason: reason.to_owned(),
            hint: Some(hint.to_owned()),
            asked_from: None,
        }
    }

    /// Says that an address names no page, or not what its page needs.
    pub(crate) fn unreadable(status: StatusCode) -> PageError {
        let reason = match status {
            StatusCode::NOT_FOUND => "there is no such page",
            StatusCode::METHOD_NOT_ALLOWED => "this address is not one to open by itself",
            StatusCode::PAYLOAD_TOO_LARGE => "that is more than a form may carry",
            _ => "the address or the form lacks something, or says what this page cannot read",
        };
        PageError {
            status,
            reason: reason.to_owned(),
            hint: Some("begin at the list of sessions and follow its links".to_owned()),
            asked_from: None,
        }
    }

    /// Explains an answer that nobody explained.
    pub(crate) fn of_bare(status: StatusCode) -> Option<PageError> {
        status
            .is_client_error()
            .then(|| PageError::unreadable(status))
    }

    /// Leads back to the page that it was asked from.
    pub(crate) fn asked_from(mut self, name: &str, address: String) -> PageError {
        self.asked_from = Some((clip_name(name), address));
        self
    }

    /// Shows it as a page.
    pub(crate) fn into_page(self, dashboard: &Dashboard) -> Response {
        let body = html! {
            p.lead { (visible(&self.reason)) "." }
            @if let Some(hint) = &self.hint { p { (hint) "." } }
            p.actions {
                @if let Some((name, address)) = &self.asked_from { a.button.first href=(address) { "Back to " (foreign(name)) } }
                a.button href=(dashboard.link("/")) { "All sessions" } }
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
            _ if matches!(error, Error::NameTaken(_) | Error::HoldsItsOwn(_)) => {
                StatusCode::CONFLICT
            }
            // A word of the address, not a setting.
            ErrorKind::Config if matches!(error, Error::Runtime(_)) => StatusCode::BAD_REQUEST,
            ErrorKind::Budget | ErrorKind::Busy | ErrorKind::Summarizer => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let reason = error.to_string();
        PageError {
            status,
            // Some errors say it themselves.
            hint: error.hint().filter(|hint| !reason.contains(hint.as_str())),
            reason,
            asked_from: None,
        }
    }
}
