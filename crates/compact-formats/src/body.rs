//! Request bodies: a list of messages, and the instructions beside it.
//!
//! Messages are written into the list by [`list`](crate::list); a member beside the list is
//! replaced or added in place. Nothing else of a body is touched.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::Document;
use crate::error::FormatError;
use crate::json::{At, Patch};
use crate::list;
use crate::source::{self, Place};

/// The line of an entry that stands beside the list.
const BESIDE: usize = usize::MAX;

/// A member of the body with its new value.
pub(crate) struct Member {
    pub(crate) key: &'static str,
    pub(crate) json: String,
}

/// The place of a value beside the list; `part` says which one of several.
pub(crate) fn beside(source: &[u8], value: &RawValue, part: Option<usize>) -> Place {
    let start = (value.get().as_ptr() as usize).wrapping_sub(source.as_ptr() as usize);
    Place {
        line: BESIDE,
        span: start..start + value.get().len(),
        part,
    }
}

/// True for an entry that stands beside the list.
pub(crate) fn is_beside(place: &Place) -> bool {
    place.line == BESIDE
}

/// The text of a body, without a byte order mark.
pub(crate) fn text(source: &[u8]) -> Result<(&str, At<'_>), FormatError> {
    let offset = source::start(source);
    let text = source::text(source, offset..source.len())?;
    if text.trim_ascii().is_empty() {
        return Err(FormatError::Empty);
    }
    Ok((text, At { source, offset }))
}

/// The body with these messages, and with a member changed.
pub(crate) fn emit(
    document: &Document,
    messages: &[Cow<'_, str>],
    member: Option<Member>,
) -> Result<Vec<u8>, FormatError> {
    let body = list::emit(document, messages);
    let Some(Member { key, json }) = member else {
        return Ok(body);
    };
    let offset = source::start(&body);
    let text = source::text(&body, offset..body.len())?;
    let mut patch = Patch::new(text);
    patch.set(text.trim_ascii(), key, json);
    let mut out = body.get(..offset).unwrap_or_default().to_vec();
    out.extend_from_slice(patch.finish().as_bytes());
    Ok(out)
}
