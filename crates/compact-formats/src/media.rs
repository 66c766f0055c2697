//! What images and documents cost, by the formula of the provider whose shape they have.
//!
//! The size of an image is read from the first bytes of its base64: PNG, JPEG, GIF and WebP say it
//! in their headers. What only has an address, or says nothing, costs the provider's usual. Nothing
//! here decodes a picture.

#[cfg(test)]
pub(crate) mod tests;

use compact_core::message::Block;
use serde_json::value::RawValue;

use crate::json::{Members, is_object, is_string, lenient};

/// Characters of base64 that are looked at: a photograph's own preview may stand before its size.
const LOOKED_AT: usize = 1 << 18;

/// Base64 of audio and other data costs far less than its size as text.
pub(crate) const BYTES_PER_TOKEN: u64 = 100;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u64,
    pub(crate) height: u64,
}

/// Whose formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pricing {
    /// 85 tokens and 170 for each tile of 512 pixels.
    OpenAi,
    /// A token for every 750 pixels.
    Anthropic,
    /// 258 tokens for each tile.
    Gemini,
}

impl Pricing {
    /// The formula of a model, by the maker that its name tells.
    pub(crate) fn of_model(model: &str) -> Pricing {
        if model.contains("claude") {
            Pricing::Anthropic
        } else if model.contains("gemini") {
            Pricing::Gemini
        } else {
            Pricing::OpenAi
        }
    }

    /// The tokens of data of a MIME type; `data` is the JSON string that holds it or says where it is.
    pub(crate) fn data(self, mime: &str, data: Option<&RawValue>) -> u64 {
        let length = data.map_or(0, |data| data.get().len());
        match mime {
            mime if mime.starts_with("image/") => self.image(data.and_then(size_of)),
            "application/pdf" => self.document(length),
            _ => length as u64 / BYTES_PER_TOKEN,
        }
    }

    /// The tokens of an image.
    pub(crate) fn image(self, size: Option<Size>) -> u64 {
        match (self, size) {
            (Pricing::OpenAi, size) => openai(size.unwrap_or(USUAL)),
            (Pricing::Anthropic, size) => size.map_or(ANTHROPIC_MOST, anthropic),
            (Pricing::Gemini, size) => size.map_or(GEMINI_TILE, gemini),
        }
    }

    /// The tokens of a document of so many base64 characters, by pages of the usual weight.
    pub(crate) fn document(self, characters: usize) -> u64 {
        let pages = (characters as u64).div_ceil(PAGE_CHARACTERS).max(1);
        let page = match self {
            // Text and a picture of the page.
            Pricing::OpenAi => openai(USUAL) + PAGE_TEXT,
            Pricing::Anthropic => ANTHROPIC_PAGE,
            Pricing::Gemini => GEMINI_TILE,
        };
        pages * page
    }
}

/// An image that says nothing of its size.
const USUAL: Size = Size {
    width: 1024,
    height: 1024,
};

/// A page of a PDF of 50 kB, in base64.
const PAGE_CHARACTERS: u64 = 66_000;
const PAGE_TEXT: u64 = 600;

const OPENAI_LOW: u64 = 85;

/// Fits the image into 2048 × 2048, its short side into 768, and counts tiles of 512.
fn openai(size: Size) -> u64 {
    let Size { width, height } = size.within(2048).short_within(768);
    let tiles = width.div_ceil(512).max(1) * height.div_ceil(512).max(1);
    OPENAI_LOW + 170 * tiles
}

/// What an image of the largest size costs.
const ANTHROPIC_MOST: u64 = 1_600;

/// Pages cost 1,500 to 3,000 tokens of text and a picture.
const ANTHROPIC_PAGE: u64 = 2_250;

fn anthropic(size: Size) -> u64 {
    let Size { width, height } = size.within(1568);
    (width * height).div_ceil(750).clamp(1, ANTHROPIC_MOST)
}

const GEMINI_TILE: u64 = 258;

/// Small images are one tile; larger ones are cut into squares of two thirds of the short side.
fn gemini(size: Size) -> u64 {
    let Size { width, height } = size;
    if width <= 384 && height <= 384 {
        return GEMINI_TILE;
    }
    let side = (width.min(height) * 2 / 3).clamp(256, 768);
    GEMINI_TILE * width.div_ceil(side) * height.div_ceil(side)
}

impl Size {
    /// Scaled down, if need be, until the long side fits.
    fn within(self, limit: u64) -> Size {
        self.scaled(limit, self.width.max(self.height))
    }

    /// Scaled down, if need be, until the short side fits.
    fn short_within(self, limit: u64) -> Size {
        self.scaled(limit, self.width.min(self.height))
    }

    fn scaled(self, limit: u64, side: u64) -> Size {
        if side <= limit {
            return self;
        }
        Size {
            width: self.width * limit / side,
            height: self.height * limit / side,
        }
    }
}

/// Data within a part as Gemini writes it, or nothing when there is none.
pub(crate) fn gemini_data(part: &RawValue) -> Option<Block> {
    let members = Members::of(part.get());
    let either = |camel: &str, snake: &str| members.get(camel).or_else(|| members.get(snake));
    let held = either("inlineData", "inline_data").or_else(|| either("fileData", "file_data"))?;
    let held = Members::of(held.get());
    let label = lenient(held.get("mimeType").or_else(|| held.get("mime_type")));
    let label = label.unwrap_or_default().into_owned();
    Some(Block::Media {
        tokens: Pricing::Gemini.data(&label, held.get("data")),
        label,
    })
}

/// The tokens of a part that is an image: `image_url` or `source` tells whose it is.
pub(crate) fn image_part(part: &RawValue) -> u64 {
    let members = Members::of(part.get());
    if let Some(source) = members.get("source") {
        return Pricing::Anthropic.image(size_in(source, "data"));
    }
    let Some(image) = members.get("image_url") else {
        return Pricing::OpenAi.image(None);
    };
    let inner = is_object(image).then(|| Members::of(image.get()));
    let detail = inner.as_ref().and_then(|inner| inner.get("detail"));
    if lenient(detail.or_else(|| members.get("detail"))).as_deref() == Some("low") {
        return OPENAI_LOW;
    }
    let size = match &inner {
        Some(inner) => inner.get("url").and_then(size_of),
        None => size_of(image),
    };
    Pricing::OpenAi.image(size)
}

fn size_in(object: &RawValue, member: &str) -> Option<Size> {
    if !is_object(object) {
        return None;
    }
    size_of(Members::of(object.get()).get(member)?)
}

/// The size of an image in a JSON string: base64 as it is, or in a `data:` address.
pub(crate) fn size_of(value: &RawValue) -> Option<Size> {
    if !is_string(value) {
        return None;
    }
    let text = value.get().trim_matches('"');
    let data = match text.strip_prefix("data:") {
        Some(address) => address.split_once("base64,")?.1,
        None if text.contains("://") => return None,
        None => text,
    };
    Header(&decode(data))
        .size()
        .filter(|size| size.width > 0 && size.height > 0)
}

/// The first bytes of a base64 text, as far as it is one. JSON may have put `\` before a `/`.
fn decode(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bits: u32 = 0;
    let mut held = 0;
    let letters = text.bytes().take(LOOKED_AT).filter(|b| *b != b'\\');
    for value in letters.map_while(sextet) {
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    out
}

fn sextet(letter: u8) -> Option<u8> {
    Some(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// The beginning of an image file.
struct Header<'a>(&'a [u8]);

impl Header<'_> {
    fn size(&self) -> Option<Size> {
        let is = |at: usize, mark: &[u8]| self.0.get(at..).is_some_and(|b| b.starts_with(mark));
        if is(0, b"\x89PNG\r\n\x1a\n") {
            return Some(Size {
                width: self.big(16, 4)?,
                height: self.big(20, 4)?,
            });
        }
        if is(0, b"GIF8") {
            return Some(Size {
                width: self.little(6, 2)?,
                height: self.little(8, 2)?,
            });
        }
        if is(0, b"\xff\xd8") {
            return self.jpeg();
        }
        (is(0, b"RIFF") && is(8, b"WEBP"))
            .then(|| self.webp())
            .flatten()
    }

    fn big(&self, at: usize, bytes: usize) -> Option<u64> {
        let bytes = self.0.get(at..at + bytes)?;
        Some(bytes.iter().fold(0, |n, b| (n << 8) | u64::from(*b)))
    }

    fn little(&self, at: usize, bytes: usize) -> Option<u64> {
        let bytes = self.0.get(at..at + bytes)?;
        Some(bytes.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
    }

    /// Segments follow each other until the one that begins the picture.
    fn jpeg(&self) -> Option<Size> {
        let mut at = 2;
        loop {
            let marker = self.big(at, 2)?;
            let begins =
                matches!(marker, 0xffc0..=0xffcf) && !matches!(marker, 0xffc4 | 0xffc8 | 0xffcc);
            if begins {
                return Some(Size {
                    width: self.big(at + 7, 2)?,
                    height: self.big(at + 5, 2)?,
                });
            }
            at += match marker {
                // Fill bytes stand before a marker.
                0xffff => 1,
                0xff00.. => 2 + self.big(at + 2, 2)? as usize,
                _ => return None,
            };
        }
    }

    /// Three kinds, each with its own place and width of the numbers.
    fn webp(&self) -> Option<Size> {
        match self.0.get(12..16)? {
            b"VP8X" => Some(Size {
                width: self.little(24, 3)? + 1,
                height: self.little(27, 3)? + 1,
            }),
            b"VP8 " => Some(Size {
                width: self.little(26, 2)? & 0x3fff,
                height: self.little(28, 2)? & 0x3fff,
            }),
            b"VP8L" => {
                let bits = self.little(21, 4)?;
                Some(Size {
                    width: (bits & 0x3fff) + 1,
                    height: ((bits >> 14) & 0x3fff) + 1,
                })
            }
            _ => None,
        }
    }
}
