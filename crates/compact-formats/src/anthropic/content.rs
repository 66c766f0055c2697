//! The content of a message: texts, thinking, calls, results, and what this version does not know.

use compact_core::message::Block;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{Holder, Piece, TextSite};
use crate::error::FormatError;
use crate::json::{At, is_list, is_object, is_true, lenient};
use crate::parts;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Element<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    signature: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    tool_use_id: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    is_error: Option<&'a RawValue>,
}

/// The pieces of a content that may be a string or a list of blocks; `field` is its path.
pub(crate) fn pieces<'a>(
    at: At<'_>,
    field: &str,
    content: &'a RawValue,
) -> Result<Vec<Piece<'a>>, FormatError> {
    if !is_list(content) {
        return parts::content(at, field, content);
    }
    let mut pieces = Vec::new();
    for element in at.list(field, content)? {
        element_pieces(at, field, content, element, &mut pieces)?;
    }
    Ok(pieces)
}

fn element_pieces<'a>(
    at: At<'_>,
    field: &str,
    list: &'a RawValue,
    element: &'a RawValue,
    pieces: &mut Vec<Piece<'a>>,
) -> Result<(), FormatError> {
    let read: Element<'_> = if is_object(element) {
        at.read(element.get())?
    } else {
        Element::default()
    };
    let holder = Holder::Element { list, element };
    let piece = match lenient(read.r#type).as_deref() {
        Some("thinking") => reasoning(at, &read, holder)?,
        Some("redacted_thinking") => Piece {
            block: Block::Reasoning {
                text: String::new(),
                replay_bytes: length(read.data),
            },
            holder,
            texts: Vec::new(),
        },
        Some("tool_use") => tool_use(at, &read, holder)?,
        Some("tool_result") => return tool_result(at, &read, holder, pieces),
        _ => parts::part(at, field, list, element)?,
    };
    pieces.push(piece);
    Ok(())
}

fn length(raw: Option<&RawValue>) -> usize {
    raw.map_or(0, |raw| raw.get().len().saturating_sub(2))
}

fn reasoning<'a>(
    at: At<'_>,
    read: &Element<'a>,
    holder: Holder<'a>,
) -> Result<Piece<'a>, FormatError> {
    let text = at
        .optional("content[].thinking", read.thinking)?
        .unwrap_or_default();
    Ok(Piece {
        block: Block::Reasoning {
            text,
            replay_bytes: length(read.signature),
        },
        holder,
        texts: read.thinking.map(TextSite::value).unwrap_or_default(),
    })
}

fn tool_use<'a>(
    at: At<'_>,
    read: &Element<'a>,
    holder: Holder<'a>,
) -> Result<Piece<'a>, FormatError> {
    let id = at.optional("content[].id", read.id)?.unwrap_or_default();
    let name = at
        .optional("content[].name", read.name)?
        .unwrap_or_default();
    let arguments = read.input.map_or("{}", RawValue::get).to_owned();
    Ok(Piece {
        block: Block::ToolCall {
            id,
            name,
            arguments,
        },
        holder,
        texts: read.input.map(TextSite::value).unwrap_or_default(),
    })
}

fn tool_result<'a>(
    at: At<'_>,
    read: &Element<'a>,
    holder: Holder<'a>,
    pieces: &mut Vec<Piece<'a>>,
) -> Result<(), FormatError> {
    let call = at
        .optional("content[].tool_use_id", read.tool_use_id)?
        .unwrap_or_default();
    let answer = read
        .content
        .map(|raw| parts::answer(at, "content[].content", raw))
        .transpose()?;
    let (content, texts, media) = answer
        .map(|a| (a.text, a.sites, a.media))
        .unwrap_or_default();
    let block = Block::ToolResult {
        call,
        content,
        is_error: is_true(read.is_error),
    };
    pieces.push(Piece {
        block,
        holder,
        texts,
    });
    pieces.extend(media);
    Ok(())
}
