//! The parts of a content as pieces.

use compact_core::message::Block;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{BlockPiece, Holder, TextSite};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, is_list, is_object, is_string, is_true, string_value};
use crate::media;
use crate::parts;

/// Stands between the id that a response gives, which may be none, and the name of the function that it answers.
pub(super) const BY_NAME: char = '\u{0}';

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiPart<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thought: Option<&'a RawValue>,
    #[serde(alias = "thoughtSignature")]
    thought_signature: Option<&'a RawValue>,
    #[serde(alias = "functionCall")]
    function_call: Option<&'a RawValue>,
    #[serde(alias = "functionResponse")]
    function_response: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiFunction<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}

/// Returns the pieces of a content's parts.
pub(super) fn read_pieces<'a>(
    at: ItemContext<'_>,
    list: &'a RawValue,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let mut pieces = Vec::new();
    for element in at.read_list("parts", list)? {
        if !is_object(element) {
            return Err(at.wrong_type("parts[]", "an object", element));
        }
        read_part(at, list, element, &mut pieces)?;
    }
    Ok(pieces)
}

fn read_part<'a>(
    at: ItemContext<'_>,
    list: &'a RawValue,
    element: &'a RawValue,
    pieces: &mut Vec<BlockPiece<'a>>,
) -> Result<(), FormatError> {
    let holder = Holder::Element { list, element };
    let part: GeminiPart<'_> = at.read(element.get())?;
    if let Some(raw) = part.function_call {
        pieces.push(call_piece(at, raw, holder)?);
    } else if let Some(raw) = part.function_response {
        read_response(at, raw, holder, pieces)?;
    } else if let Some(raw) = part.text.filter(|raw| is_string(raw)) {
        let text = at.read_string("parts[].text", raw)?;
        let mut piece = parts::text_piece(text, holder, raw);
        if let (true, Block::Text(text)) = (is_true(part.thought), &piece.block) {
            piece.block = Block::Reasoning {
                text: text.clone(),
                replay_bytes: part.thought_signature.map_or(0, |raw| raw.get().len()),
            };
        }
        pieces.push(piece);
    } else {
        pieces.push(data_piece(element, holder));
    }
    Ok(())
}

fn read_function<'a>(
    at: ItemContext<'_>,
    field: &str,
    raw: &'a RawValue,
) -> Result<GeminiFunction<'a>, FormatError> {
    if !is_object(raw) {
        return Err(at.wrong_type(field, "an object", raw));
    }
    at.read(raw.get())
}

fn call_piece<'a>(
    at: ItemContext<'_>,
    raw: &'a RawValue,
    holder: Holder<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    let function = read_function(at, "parts[].functionCall", raw)?;
    Ok(BlockPiece {
        block: Block::ToolCall {
            id: string_value(function.id).unwrap_or_default().into_owned(),
            name: string_value(function.name).unwrap_or_default().into_owned(),
            arguments: function.args.map_or("", RawValue::get).to_owned(),
        },
        holder,
        texts: function.args.map(TextSite::in_value).unwrap_or_default(),
    })
}

fn read_response<'a>(
    at: ItemContext<'_>,
    raw: &'a RawValue,
    holder: Holder<'a>,
    pieces: &mut Vec<BlockPiece<'a>>,
) -> Result<(), FormatError> {
    let function = read_function(at, "parts[].functionResponse", raw)?;
    let id = string_value(function.id).unwrap_or_default();
    let name = string_value(function.name).unwrap_or_default();
    let call = format!("{id}{BY_NAME}{name}");
    let (content, texts, is_error) = function.response.map(response_text).unwrap_or_default();
    pieces.push(BlockPiece {
        block: Block::ToolResult {
            call,
            content,
            is_error,
        },
        holder,
        texts,
    });
    if let Some(list) = function.parts.filter(|raw| is_list(raw)) {
        for element in at.read_list("parts[].functionResponse.parts", list)? {
            pieces.push(data_piece(element, Holder::Element { list, element }));
        }
    }
    Ok(())
}

/// Returns what a response says: its one string, or all of it as JSON.
fn response_text(response: &RawValue) -> (String, Vec<TextSite<'_>>, bool) {
    let members = Members::from_json(response.get());
    let is_error = members.get("error").is_some();
    if let [only] = members.0.as_slice()
        && let Some(text) = string_value(Some(only.value))
    {
        return (text.into_owned(), TextSite::in_value(only.value), is_error);
    }
    let text = response.get().to_owned();
    (text, TextSite::in_value(response), is_error)
}

/// Returns a part that is data, or one that is known by the name of its first member.
fn data_piece<'a>(element: &RawValue, holder: Holder<'a>) -> BlockPiece<'a> {
    let opaque = || {
        let members = Members::from_json(element.get());
        let kind = members.0.first().map(|m| m.key.to_string());
        Block::Opaque {
            kind: kind.unwrap_or_default(),
            bytes: element.get().len(),
        }
    };
    BlockPiece {
        block: media::gemini_media(element).unwrap_or_else(opaque),
        holder,
        texts: Vec::new(),
    }
}
