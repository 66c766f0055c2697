//! Content as wires share it: a string, or a list of texts, images, files and things not known here.

use compact_core::message::Block;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{BlockPiece, Holder, TextSite};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, is_list, is_object, is_string, string_value};
use crate::media::{self, BYTES_PER_TOKEN, MediaPricing};

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContentPart<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    file: Option<&'a RawValue>,
}

/// Returns a text with the value that holds it.
pub(crate) fn text_piece<'a>(
    text: String,
    holder: Holder<'a>,
    value: &'a RawValue,
) -> BlockPiece<'a> {
    BlockPiece {
        block: Block::Text(text),
        holder,
        texts: TextSite::in_value(value),
    }
}

/// Returns the pieces of a `content` that may be a string or a list. An empty string says nothing.
pub(crate) fn read_content<'a>(
    at: ItemContext<'_>,
    field: &str,
    content: &'a RawValue,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    if is_string(content) {
        let text = at.read_string(field, content)?;
        let piece = (!text.is_empty()).then(|| text_piece(text, Holder::Member(content), content));
        return Ok(piece.into_iter().collect());
    }
    if !is_list(content) {
        return Err(at.wrong_type(field, "a string, a list of parts or null", content));
    }
    let elements = at.read_list(field, content)?;
    elements
        .into_iter()
        .map(|element| read_part(at, field, content, element))
        .collect()
}

/// Returns one part of a list.
pub(crate) fn read_part<'a>(
    at: ItemContext<'_>,
    field: &str,
    list: &'a RawValue,
    element: &'a RawValue,
) -> Result<BlockPiece<'a>, FormatError> {
    let holder = Holder::Element { list, element };
    if is_string(element) {
        return Ok(text_piece(at.read_string(field, element)?, holder, element));
    }
    if !is_object(element) {
        return Err(at.wrong_type(&format!("{field}[]"), "an object with `type`", element));
    }
    let part: ContentPart<'_> = at.read(element.get())?;
    let kind = string_value(part.r#type).unwrap_or_default();
    let text = match kind.as_ref() {
        "text" | "input_text" | "output_text" | "" => part.text,
        "refusal" => part.refusal,
        _ => None,
    };
    if let Some(value) = text {
        return Ok(text_piece(
            at.read_string(&format!("{field}[].text"), value)?,
            holder,
            value,
        ));
    }
    Ok(BlockPiece {
        block: media_or_opaque(&kind, &part, element),
        holder,
        texts: Vec::new(),
    })
}

fn media_or_opaque(kind: &str, part: &ContentPart<'_>, element: &RawValue) -> Block {
    let bytes = element.get().len();
    let (label, tokens) = match kind {
        "image_url" | "input_image" | "image" => {
            ("image".to_owned(), media::image_part_tokens(element))
        }
        "input_audio" | "audio" => ("audio".to_owned(), bytes as u64 / BYTES_PER_TOKEN),
        "file" | "input_file" => (
            file_label(part),
            MediaPricing::OpenAi.document_tokens(bytes),
        ),
        "document" => (
            file_label(part),
            MediaPricing::Anthropic.document_tokens(bytes),
        ),
        kind => {
            return Block::Opaque {
                kind: kind.to_owned(),
                bytes,
            };
        }
    };
    Block::Media { label, tokens }
}

fn file_label(part: &ContentPart<'_>) -> String {
    let members = part.file.map(|file| Members::from_json(file.get()));
    let name = members.and_then(|members| string_value(members.get("filename")).map(String::from));
    name.map_or_else(|| "file".to_owned(), |name| format!("file {name}"))
}

/// Parts that are one answer of a tool.
pub(crate) struct ToolAnswer<'a> {
    /// The texts, joined by newlines.
    pub(crate) text: String,
    /// The places of the texts in the JSON.
    pub(crate) sites: Vec<TextSite<'a>>,
    /// The parts that are not text.
    pub(crate) media: Vec<BlockPiece<'a>>,
}

/// Reads the content of a tool's answer.
pub(crate) fn read_answer<'a>(
    at: ItemContext<'_>,
    field: &str,
    raw: &'a RawValue,
) -> Result<ToolAnswer<'a>, FormatError> {
    let mut answer = ToolAnswer {
        text: String::new(),
        sites: Vec::new(),
        media: Vec::new(),
    };
    for piece in read_content(at, field, raw)? {
        let BlockPiece {
            block: Block::Text(words),
            holder,
            texts,
        } = piece
        else {
            answer.media.push(piece);
            continue;
        };
        if answer.sites.is_empty() {
            answer.text = words;
        } else {
            answer.text.push('\n');
            answer.text.push_str(&words);
        }
        let part = match holder {
            Holder::Element { list, element } => Some((list, element)),
            _ => None,
        };
        answer.sites.extend(texts.into_iter().map(|site| TextSite {
            value: site.value,
            part,
        }));
    }
    if answer.sites.is_empty() {
        answer.sites = TextSite::in_value(raw);
    }
    Ok(answer)
}
