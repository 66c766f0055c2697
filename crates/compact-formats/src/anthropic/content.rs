//! The content of a message: texts, thinking, calls, results, and what this version does not know.

use compact_core::message::Block;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{BlockPiece, Holder, TextSite};
use crate::error::FormatError;
use crate::json::{ItemContext, is_list, is_object, is_true, string_value};
use crate::parts;

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnthropicBlock<'a> {
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

/// Returns the pieces of a content that may be a string or a list of blocks; `field` is its path.
pub(crate) fn read_pieces<'a>(
    at: ItemContext<'_>,
    field: &str,
    content: &'a RawValue,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    if !is_list(content) {
        return parts::read_content(at, field, content);
    }
    let mut pieces = Vec::new();
    for element in at.read_list(field, content)? {
        read_element(at, field, content, element, &mut pieces)?;
    }
    Ok(pieces)
}

fn read_element<'a>(
    at: ItemContext<'_>,
    field: &str,
    list: &'a RawValue,
    element: &'a RawValue,
    pieces: &mut Vec<BlockPiece<'a>>,
) -> Result<(), FormatError> {
    let read: AnthropicBlock<'_> = if is_object(element) {
        at.read(element.get())?
    } else {
        AnthropicBlock::default()
    };
    let holder = Holder::Element { list, element };
    let piece = match string_value(read.r#type).as_deref() {
        Some("thinking") => reasoning_piece(at, &read, holder)?,
        Some("redacted_thinking") => BlockPiece {
            block: Block::Reasoning {
                text: String::new(),
                replay_bytes: string_length(read.data),
            },
            holder,
            texts: Vec::new(),
        },
        Some("tool_use") => tool_use_piece(at, &read, holder)?,
        Some("tool_result") => return read_tool_result(at, &read, holder, pieces),
        _ => parts::read_part(at, field, list, element)?,
    };
    pieces.push(piece);
    Ok(())
}

fn string_length(raw: Option<&RawValue>) -> usize {
    raw.map_or(0, |raw| raw.get().len().saturating_sub(2))
}

fn reasoning_piece<'a>(
    at: ItemContext<'_>,
    read: &AnthropicBlock<'a>,
    holder: Holder<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    let text = at
        .read_optional_string("content[].thinking", read.thinking)?
        .unwrap_or_default();
    Ok(BlockPiece {
        block: Block::Reasoning {
            text,
            replay_bytes: string_length(read.signature),
        },
        holder,
        texts: read.thinking.map(TextSite::in_value).unwrap_or_default(),
    })
}

fn tool_use_piece<'a>(
    at: ItemContext<'_>,
    read: &AnthropicBlock<'a>,
    holder: Holder<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    let id = at
        .read_optional_string("content[].id", read.id)?
        .unwrap_or_default();
    let name = at
        .read_optional_string("content[].name", read.name)?
        .unwrap_or_default();
    let arguments = read.input.map_or("{}", RawValue::get).to_owned();
    Ok(BlockPiece {
        block: Block::ToolCall {
            id,
            name,
            arguments,
        },
        holder,
        texts: read.input.map(TextSite::in_value).unwrap_or_default(),
    })
}

fn read_tool_result<'a>(
    at: ItemContext<'_>,
    read: &AnthropicBlock<'a>,
    holder: Holder<'a>,
    pieces: &mut Vec<BlockPiece<'a>>,
) -> Result<(), FormatError> {
    let call = at
        .read_optional_string("content[].tool_use_id", read.tool_use_id)?
        .unwrap_or_default();
    let answer = read
        .content
        .map(|raw| parts::read_answer(at, "content[].content", raw))
        .transpose()?;
    let (content, texts, media) = answer
        .map(|a| (a.text, a.sites, a.media))
        .unwrap_or_default();
    let block = Block::ToolResult {
        call,
        content,
        is_error: is_true(read.is_error),
    };
    pieces.push(BlockPiece {
        block,
        holder,
        texts,
    });
    pieces.extend(media);
    Ok(())
}
