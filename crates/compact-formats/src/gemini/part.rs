//! The parts of a content as pieces.

use compact_core::message::Block;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{Holder, Piece, TextSite};
use crate::error::FormatError;
use crate::json::{At, Members, is_list, is_object, is_string, is_true, lenient};
use crate::media;
use crate::parts;

/// Stands before the name of the function that a response without an id answers.
pub(super) const BY_NAME: char = '\u{0}';

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
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
struct Function<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}

/// The pieces of a content's parts.
pub(super) fn pieces<'a>(at: At<'_>, list: &'a RawValue) -> Result<Vec<Piece<'a>>, FormatError> {
    let mut pieces = Vec::new();
    for element in at.list("parts", list)? {
        if !is_object(element) {
            return Err(at.field("parts[]", "an object", element));
        }
        part(at, list, element, &mut pieces)?;
    }
    Ok(pieces)
}

fn part<'a>(
    at: At<'_>,
    list: &'a RawValue,
    element: &'a RawValue,
    pieces: &mut Vec<Piece<'a>>,
) -> Result<(), FormatError> {
    let holder = Holder::Element { list, element };
    let part: Part<'_> = at.read(element.get())?;
    if let Some(raw) = part.function_call {
        pieces.push(call(at, raw, holder)?);
    } else if let Some(raw) = part.function_response {
        response(at, raw, holder, pieces)?;
    } else if let Some(raw) = part.text.filter(|raw| is_string(raw)) {
        let text = at.string("parts[].text", raw)?;
        let mut piece = parts::text_piece(text, holder, raw);
        if let (true, Block::Text(text)) = (is_true(part.thought), &piece.block) {
            piece.block = Block::Reasoning {
                text: text.clone(),
                replay_bytes: part.thought_signature.map_or(0, |raw| raw.get().len()),
            };
        }
        pieces.push(piece);
    } else {
        pieces.push(data(element, holder));
    }
    Ok(())
}

fn function<'a>(at: At<'_>, field: &str, raw: &'a RawValue) -> Result<Function<'a>, FormatError> {
    if !is_object(raw) {
        return Err(at.field(field, "an object", raw));
    }
    at.read(raw.get())
}

fn call<'a>(at: At<'_>, raw: &'a RawValue, holder: Holder<'a>) -> Result<Piece<'a>, FormatError> {
    let function = function(at, "parts[].functionCall", raw)?;
    Ok(Piece {
        block: Block::ToolCall {
            id: lenient(function.id).unwrap_or_default().into_owned(),
            name: lenient(function.name).unwrap_or_default().into_owned(),
            arguments: function.args.map_or("", RawValue::get).to_owned(),
        },
        holder,
        texts: function.args.map(TextSite::value).unwrap_or_default(),
    })
}

fn response<'a>(
    at: At<'_>,
    raw: &'a RawValue,
    holder: Holder<'a>,
    pieces: &mut Vec<Piece<'a>>,
) -> Result<(), FormatError> {
    let function = function(at, "parts[].functionResponse", raw)?;
    let call = lenient(function.id)
        .filter(|id| !id.is_empty())
        .map_or_else(
            || format!("{BY_NAME}{}", lenient(function.name).unwrap_or_default()),
            String::from,
        );
    let (content, texts, is_error) = function.response.map(answer).unwrap_or_default();
    pieces.push(Piece {
        block: Block::ToolResult {
            call,
            content,
            is_error,
        },
        holder,
        texts,
    });
    if let Some(list) = function.parts.filter(|raw| is_list(raw)) {
        for element in at.list("parts[].functionResponse.parts", list)? {
            pieces.push(data(element, Holder::Element { list, element }));
        }
    }
    Ok(())
}

/// What a response says: its one string, or all of it as JSON.
fn answer(response: &RawValue) -> (String, Vec<TextSite<'_>>, bool) {
    let members = Members::of(response.get());
    let is_error = members.get("error").is_some();
    if let [only] = members.0.as_slice()
        && let Some(text) = lenient(Some(only.value))
    {
        return (text.into_owned(), TextSite::value(only.value), is_error);
    }
    let text = response.get().to_owned();
    (text, TextSite::value(response), is_error)
}

/// A part that is data, or one that is known by the name of its first member.
fn data<'a>(element: &RawValue, holder: Holder<'a>) -> Piece<'a> {
    let opaque = || {
        let members = Members::of(element.get());
        let kind = members.0.first().map(|m| m.key.to_string());
        Block::Opaque {
            kind: kind.unwrap_or_default(),
            bytes: element.get().len(),
        }
    };
    Piece {
        block: media::gemini_data(element).unwrap_or_else(opaque),
        holder,
        texts: Vec::new(),
    }
}
