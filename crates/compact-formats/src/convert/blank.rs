//! Documents with nothing said in them yet: what a format is told of the session, and what it makes of it.

use compact_core::message::Conversation;
use serde_json::Value;

use super::Circumstances;
use crate::error::FormatError;
use crate::source::SourceLayout;
use crate::{Document, Format, TranscriptScope, fresh};

/// What a document says of its session before anybody speaks.
pub(crate) struct SessionHead<'a> {
    pub(crate) conversation: &'a Conversation,
    /// The session's id, or one made for it.
    pub(crate) session: String,
    /// The model's name; empty where nobody knows it.
    pub(crate) model: &'a str,
    /// When the first thing was said, in RFC 3339.
    pub(crate) moment: &'a str,
    /// The folder that the session ran in; empty where nobody knows it.
    pub(crate) folder: &'a str,
}

impl<'a> SessionHead<'a> {
    fn new(circumstances: &'a Circumstances, conversation: &'a Conversation) -> SessionHead<'a> {
        let named = conversation.session_id.clone();
        let made = || fresh::stable_uuid("session", conversation.entries.len());
        let moment = circumstances.first_moment().unwrap_or(fresh::EPOCH);
        SessionHead {
            conversation,
            session: named.unwrap_or_else(made),
            model: conversation.model.as_deref().unwrap_or_default(),
            moment: moment.trim_matches('"'),
            folder: circumstances.folder(),
        }
    }
}

/// The bytes of a blank document.
pub(crate) enum BlankSource {
    /// Its head, which its own reader reads and which stays in front of what is written.
    Head(String),
    /// No head: a line that only shows how the lines to come look.
    LineSample(String),
}

impl BlankSource {
    /// Returns a head that is one JSON value.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "callers make the value for this"
    )]
    pub(crate) fn from_value(head: Value) -> BlankSource {
        BlankSource::Head(head.to_string())
    }

    /// Returns a head that is the first line of many.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "callers make the value for this"
    )]
    pub(crate) fn from_line(head: Value) -> BlankSource {
        BlankSource::Head(format!("{head}\n"))
    }
}

/// Returns a document of a format that names the session and the model and holds no entry.
pub(super) fn document(
    circumstances: &Circumstances,
    conversation: &Conversation,
    format: Format,
) -> Result<Document, FormatError> {
    let wire = format.wire();
    let (source, layout) = match (wire.blank)(&SessionHead::new(circumstances, conversation)) {
        BlankSource::Head(head) => {
            let layout = (wire.read)(head.as_bytes(), TranscriptScope::Whole)?.layout;
            (head, layout)
        }
        BlankSource::LineSample(line) => {
            let lines = Vec::new();
            (
                line,
                SourceLayout::Lines {
                    lines,
                    live_from: 0,
                },
            )
        }
    };
    Ok(Document::blank(format, source, layout))
}
