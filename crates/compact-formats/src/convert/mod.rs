//! A conversation in another format, and what that format cannot carry.
//!
//! A blank document of the target gets every entry as new text: what a wire can write for the
//! engine it can write for a converter. The result is read again and compared, so the list of losses
//! is what happened and not what was meant to happen.

mod blank;
mod circumstance;
mod loss;
mod mend;
mod normalize;

#[cfg(test)]
mod tests;

use compact_core::message::{Conversation, Entry};
use compact_core::view::{View, ViewItem};

pub(crate) use self::blank::{BlankSource, SessionHead};
pub(crate) use self::circumstance::Circumstances;
pub use self::loss::ConversionLoss;
use crate::error::FormatError;
use crate::validate::{Provider, Strictness, check};
use crate::wire::DocumentContext;
use crate::{Format, ParsedTranscript, TranscriptScope, parse};

/// A conversation in another format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertedDocument {
    /// The converted document.
    pub bytes: Vec<u8>,
    /// What it does not say that the conversation said.
    pub losses: Vec<ConversionLoss>,
}

/// Writes a conversation as a document of another format. What a provider would refuse in its body
/// is mended: calls and results stand together, and the user opens where that must be.
pub fn convert(conversation: &Conversation, to: Format) -> Result<ConvertedDocument, FormatError> {
    convert_under(&Circumstances::default(), conversation, to)
}

fn convert_under(
    circumstances: &Circumstances,
    conversation: &Conversation,
    to: Format,
) -> Result<ConvertedDocument, FormatError> {
    let mut conversation = conversation.clone();
    let renamed = normalize::make_call_ids_unique(&mut conversation, call_id_rule(to));
    let mut entries = normalize::writable_entries(&conversation);
    let mut mended = Vec::new();
    if is_body(to) {
        mended = mend::mend_pairs(&mut entries);
        if to.rules().opens_with_user {
            mend::add_opening(&mut entries);
        }
    }
    let bytes = write_entries(circumstances, &conversation, entries, to)?;
    let (kept, read) = match parse(bytes.clone(), Some(to), TranscriptScope::Whole) {
        Ok(parsed) => (Circumstances::read(&parsed), parsed.conversation),
        // A document of nothing is a document, even where nothing cannot be read.
        Err(FormatError::Empty | FormatError::Unrecognised { .. }) => Default::default(),
        Err(error) => return Err(error),
    };
    let mut losses = loss::find_losses(&conversation, &read);
    losses.extend(circumstances.lost_in(&kept));
    losses.extend(renamed.into_iter().map(|renamed| ConversionLoss {
        entry: Some(renamed.entry),
        what: format!("the id of call {}, written as {}", renamed.from, renamed.to),
    }));
    losses.extend(mended);
    Ok(ConvertedDocument { bytes, losses })
}

/// Converts a document. To its own format it keeps its bytes; a body only if its provider takes it, and
/// but for the members that no provider knows. Any other document is written anew.
pub fn convert_document(
    parsed: &ParsedTranscript,
    to: Format,
) -> Result<ConvertedDocument, FormatError> {
    if parsed.document.format() == to {
        let Some(provider) = Provider::ALL.into_iter().find(|p| p.format() == to) else {
            return Ok(ConvertedDocument {
                bytes: parsed.document.source.to_vec(),
                losses: Vec::new(),
            });
        };
        let bytes = parsed.document.without_flags()?;
        if check(provider, Strictness::Vendor, &bytes)?.is_empty() {
            let losses = loss::flag_losses(&parsed.conversation);
            return Ok(ConvertedDocument { bytes, losses });
        }
    }
    convert_under(&Circumstances::read(parsed), &parsed.conversation, to)
}

/// Writes a conversation for a provider as it is, with whatever is wrong with it.
pub(crate) fn write_as_is(conversation: &Conversation, to: Format) -> Result<Vec<u8>, FormatError> {
    let entries = normalize::writable_entries(conversation);
    write_entries(&Circumstances::default(), conversation, entries, to)
}

fn write_entries(
    circumstances: &Circumstances,
    conversation: &Conversation,
    entries: Vec<Entry>,
    to: Format,
) -> Result<Vec<u8>, FormatError> {
    let document = blank::document(circumstances, conversation, to)?;
    let view = View {
        items: entries.into_iter().map(ViewItem::New).collect(),
    };
    let page = DocumentContext {
        document: &document,
        conversation,
        circumstances: Some(circumstances),
    };
    (to.wire().emit)(&page, &view)
}

/// Returns true for what is sent to a provider, which has the last word on it.
fn is_body(format: Format) -> bool {
    Provider::ALL.iter().any(|p| p.format() == format)
}

/// Returns how a format wants the ids of calls.
fn call_id_rule(format: Format) -> fn(&str) -> String {
    if is_body(format) {
        mend::legal_id
    } else {
        str::to_owned
    }
}
