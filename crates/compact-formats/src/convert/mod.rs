//! A conversation in another format, and what that format cannot carry.
//!
//! A blank document of the target gets every entry as new text: what a wire can write for the
//! engine it can write for a converter. The result is read again and compared, so the list of losses
//! is what happened and not what was meant to happen.

mod blank;
mod loss;
mod script;

#[cfg(test)]
mod tests;

use compact_core::message::Conversation;
use compact_core::view::{View, ViewItem};

pub use self::loss::Loss;
use crate::error::FormatError;
use crate::wire::Page;
use crate::{Format, Scope, parse};

/// A conversation in another format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The document.
    pub bytes: Vec<u8>,
    /// What it does not say that the conversation said.
    pub losses: Vec<Loss>,
}

/// Writes a conversation as a document of another format.
pub fn convert(conversation: &Conversation, to: Format) -> Result<Converted, FormatError> {
    let mut conversation = conversation.clone();
    let renamed = script::tell_calls_apart(&mut conversation);
    let conversation = &conversation;
    let document = blank::document(conversation, to)?;
    let items = script::entries(conversation).into_iter();
    let view = View {
        items: items.map(ViewItem::New).collect(),
    };
    let page = Page {
        document: &document,
        conversation,
    };
    let bytes = to.wire().emit(&page, &view)?;
    let read = match parse(bytes.clone(), Some(to), Scope::Whole) {
        Ok(parsed) => parsed.conversation,
        // A document of nothing is a document, even where nothing cannot be read.
        Err(FormatError::Empty | FormatError::Unrecognised { .. }) => Conversation::default(),
        Err(error) => return Err(error),
    };
    let mut losses = loss::between(conversation, &read);
    losses.extend(renamed.into_iter().map(|(entry, id, name)| Loss {
        entry: Some(entry),
        what: format!("the id of call {id}, used before and written as {name}"),
    }));
    Ok(Converted { bytes, losses })
}
