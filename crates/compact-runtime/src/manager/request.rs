//! What is asked of a manager: one conversation, and how it is to be compacted.

use bytes::Bytes;
use compact_core::event::TraceContext;
use compact_core::message::Conversation;
use compact_core::token::Tokens;
use compact_core::trigger::CompactionCause;
use compact_core::wire::WireRules;
use compact_formats::ParsedTranscript;

/// One conversation to compact.
#[derive(Clone, Debug)]
pub struct CompactionRequest<'a> {
    /// The live context.
    pub(crate) conversation: &'a Conversation,
    /// What the wire accepts.
    pub(crate) rules: &'a WireRules,
    /// The name of its format, for the record.
    pub(crate) format: &'a str,
    /// The exact bytes that it was read from.
    pub(crate) original: Bytes,
    pub(crate) session_id: Option<&'a str>,
    pub(crate) budget: Option<Tokens>,
    pub(crate) summary_limit: Option<Tokens>,
    pub(crate) note: Option<&'a str>,
    pub(crate) host_rendering: Option<&'a [String]>,
    pub(crate) parent: Option<&'a TraceContext>,
    pub(crate) cause: CompactionCause,
    pub(crate) on_failure: FailureRecord,
}

/// Whether a failure stands on the session's record, where it warns and holds later attempts back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FailureRecord {
    /// It does.
    #[default]
    Kept,
    /// Whoever asked is told, and nobody else.
    None,
}

impl<'a> CompactionRequest<'a> {
    /// Asks for a compaction of `conversation`, which was read from the bytes of `original` in `format`
    /// and goes over a wire with these `rules`. Its session is found by its history, its budget is the
    /// policy's, and its trace is its own.
    pub fn new(
        conversation: &'a Conversation,
        rules: &'a WireRules,
        format: &'a str,
        original: Bytes,
    ) -> CompactionRequest<'a> {
        CompactionRequest {
            conversation,
            rules,
            format,
            original,
            session_id: None,
            budget: None,
            summary_limit: None,
            note: None,
            host_rendering: None,
            parent: None,
            cause: CompactionCause::Asked,
            on_failure: FailureRecord::Kept,
        }
    }

    /// Asks for a compaction of a transcript that was read from the bytes of `original`.
    pub fn from_transcript(parsed: &'a ParsedTranscript, original: Bytes) -> CompactionRequest<'a> {
        let document = &parsed.document;
        let format = document.format().name();
        CompactionRequest::new(&parsed.conversation, document.rules(), format, original)
    }

    /// Names the session; by default it is found by its history.
    #[must_use]
    pub fn with_session(mut self, id: impl Into<Option<&'a str>>) -> CompactionRequest<'a> {
        self.session_id = id.into();
        self
    }

    /// Sets what the view may cost. By default that is the policy's share of the trigger point, and more
    /// where what was said last needs it.
    #[must_use]
    pub fn with_budget(mut self, tokens: impl Into<Option<Tokens>>) -> CompactionRequest<'a> {
        self.budget = tokens.into();
        self
    }

    /// Sets what the summary may take of a budget that is given; by default all that the recent part
    /// leaves.
    #[must_use]
    pub fn with_summary_limit(
        mut self,
        tokens: impl Into<Option<Tokens>>,
    ) -> CompactionRequest<'a> {
        self.summary_limit = tokens.into();
        self
    }

    /// Adds what a person wishes of this compaction.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<Option<&'a str>>) -> CompactionRequest<'a> {
        self.note = note.into();
        self
    }

    /// Gives the summarizer the host's own rendering of the messages, a text for each part; by default
    /// the entries are rendered for it.
    #[must_use]
    pub fn with_host_rendering(mut self, sections: &'a [String]) -> CompactionRequest<'a> {
        self.host_rendering = Some(sections);
        self
    }

    /// Says why it is asked for; by default somebody wants it.
    #[must_use]
    pub fn because_of(mut self, cause: CompactionCause) -> CompactionRequest<'a> {
        self.cause = cause;
        self
    }

    /// Keeps a failure off the session's record: what a person tries out says nothing of how the session fares.
    #[must_use]
    pub fn as_trial(mut self) -> CompactionRequest<'a> {
        self.on_failure = FailureRecord::None;
        self
    }

    /// Draws this call's span within the caller's.
    #[must_use]
    pub fn within_span(
        mut self,
        parent: impl Into<Option<&'a TraceContext>>,
    ) -> CompactionRequest<'a> {
        self.parent = parent.into();
        self
    }
}
