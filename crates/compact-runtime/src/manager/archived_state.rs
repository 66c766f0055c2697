//! Where a session stands, as far as it is archived: what its next request would begin with.
//!
//! After a compaction that is the view, written in the format of what went in; after a copy that somebody left, the copy.

use bytes::Bytes;
use compact_core::message::Conversation;
use compact_core::wire::WireRules;

use super::{CompactionRequest, Manager, restore, serialize_entries};
use crate::error::Error;
use crate::port::catalog::CompactionRecord;

/// A state of a session.
#[derive(Clone, Debug)]
pub struct ArchivedState {
    /// It, in the format of the record.
    pub bytes: Bytes,
    /// The same, read.
    pub conversation: Conversation,
    rules: &'static WireRules,
    format: String,
}

impl ArchivedState {
    fn read(bytes: Bytes, record: &CompactionRecord) -> Result<ArchivedState, Error> {
        let (conversation, rules) = restore::read_live(&bytes, record)?;
        Ok(ArchivedState {
            bytes,
            conversation,
            rules,
            format: record.format.clone(),
        })
    }

    /// Asks for a compaction of it.
    pub fn request(&self) -> CompactionRequest<'_> {
        CompactionRequest::new(
            &self.conversation,
            self.rules,
            &self.format,
            self.bytes.clone(),
        )
    }
}

impl Manager {
    /// Where a session stands after a record: the view of a compaction, or else what was archived.
    pub async fn state_after(&self, record: &CompactionRecord) -> Result<ArchivedState, Error> {
        let input = self.input_of(record).await?.bytes;
        let Some(kept) = self.archived_view(record).await? else {
            return ArchivedState::read(input, record);
        };
        let (conversation, document) = restore::read_document(&input, record)?;
        let bytes = match document {
            Some(document) => document.emit_shared(&conversation, &kept.view)?,
            None => serialize_entries(&kept.view.shown_entries(&conversation)),
        };
        ArchivedState::read(bytes, record)
    }

    /// All that a session held up to a record, as a state: nothing has left it.
    pub async fn whole_state(&self, record: &CompactionRecord) -> Result<ArchivedState, Error> {
        ArchivedState::read(self.restore_session(record).await?.bytes, record)
    }
}
