//! Content as wires share it: a string, or a list of texts, images, files and things not known here.

use compact_core::message::Block;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{Holder, Piece, TextSite};
use crate::error::FormatError;
use crate::json::{At, Members, is_list, is_object, is_string, lenient};
use crate::media::{self, BYTES_PER_TOKEN, Pricing};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    file: Option<&'a RawValue>,
}

/// A text with the value that holds it.
pub(crate) fn text_piece<'a>(text: String, holder: Holder<'a>, value: &'a RawValue) -> Piece<'a> {
    Piece {
        block: Block::Text(text),
        holder,
        texts: TextSite::value(value),
    }
}

/// The pieces of a `content` that may be a string or a list. An empty string says nothing.
pub(crate) fn content<'a>(
    at: At<'_>,
    field: &str,
    content: &'a RawValue,
) -> Result<Vec<Piece<'a>>, FormatError> {
    if is_string(content) {
        let text = at.string(field, content)?;
        let piece = (!text.is_empty()).then(|| text_piece(text, Holder::Member(content), content));
        return Ok(piece.into_iter().collect());
    }
    if !is_list(content) {
        return Err(at.field(field, "a string, a list of parts or null", content));
    }
    let elements = at.list(field, content)?;
    elements
        .into_iter()
        .map(|element| part(at, field, content, element))
        .collect()
}

/// One part of a list.
pub(crate) fn part<'a>(
    at: At<'_>,
    field: &str,
    list: &'a RawValue,
    element: &'a RawValue,
) -> Result<Piece<'a>, FormatError> {
    let holder = Holder::Element { list, element };
    if is_string(element) {
        return Ok(text_piece(at.string(field, element)?, holder, element));
    }
    if !is_object(element) {
        return Err(at.field(&format!("{field}[]"), "an object with `type`", element));
    }
    let part: Part<'_> = at.read(element.get())?;
    let kind = lenient(part.r#type).unwrap_or_default();
    let text = match kind.as_ref() {
        "text" | "input_text" | "output_text" | "" => part.text,
        "refusal" => part.refusal,
        _ => None,
    };
    if let Some(value) = text {
        return Ok(text_piece(
            at.string(&format!("{field}[].text"), value)?,
            holder,
            value,
        ));
    }
    Ok(Piece {
        block: other(&kind, &part, element),
        holder,
        texts: Vec::new(),
    })
}

fn other(kind: &str, part: &Part<'_>, element: &RawValue) -> Block {
    let bytes = element.get().len();
    let (label, tokens) = match kind {
        "image_url" | "input_image" | "image" => ("image".to_owned(), media::image_part(element)),
        "input_audio" | "audio" => ("audio".to_owned(), bytes as u64 / BYTES_PER_TOKEN),
        "file" | "input_file" => (file_label(part), Pricing::OpenAi.document(bytes)),
        "document" => (file_label(part), Pricing::Anthropic.document(bytes)),
        kind => {
            return Block::Opaque {
                kind: kind.to_owned(),
                bytes,
            };
        }
    };
    Block::Media { label, tokens }
}

fn file_label(part: &Part<'_>) -> String {
    let members = part.file.map(|file| Members::of(file.get()));
    let name = members.and_then(|members| lenient(members.get("filename")).map(String::from));
    name.map_or_else(|| "file".to_owned(), |name| format!("file {name}"))
}

/// Parts that are one answer of a tool.
pub(crate) struct Answer<'a> {
    /// The texts, joined by newlines.
    pub(crate) text: String,
    /// Where they stand.
    pub(crate) sites: Vec<TextSite<'a>>,
    /// The parts that are not text.
    pub(crate) media: Vec<Piece<'a>>,
}

/// Reads the content of a tool's answer.
pub(crate) fn answer<'a>(
    at: At<'_>,
    field: &str,
    raw: &'a RawValue,
) -> Result<Answer<'a>, FormatError> {
    let mut answer = Answer {
        text: String::new(),
        sites: Vec::new(),
        media: Vec::new(),
    };
    for piece in content(at, field, raw)? {
        let Piece {
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
        answer.sites = TextSite::value(raw);
    }
    Ok(answer)
}
