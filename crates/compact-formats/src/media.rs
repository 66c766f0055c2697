//! What images and documents cost, by the formula of the provider whose shape they have.
//!
//! The size of an image is read from the first bytes of its base64: PNG, JPEG, GIF and WebP say it
//! in their headers. What only has an address, or says nothing, costs the provider's usual. Nothing
//! here decodes a picture.

#[cfg(test)]
pub(crate) mod tests;

use compact_core::message::Block;
use serde_json::value::RawValue;

use crate::json::{Members, is_object, is_string, string_value};

/// Characters of base64 that are looked at: a photograph's own preview may stand before its size.
const LOOKED_AT: usize = 1 << 18;

/// Base64 of audio and other data costs far less than its size as text.
pub(crate) const BYTES_PER_TOKEN: u64 = 100;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageSize {
    pub(crate) width: u64,
    pub(crate) height: u64,
}

/// The formula by which a provider counts images and documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaPricing {
    /// 85 tokens and 170 for each tile of 512 pixels.
    OpenAi,
    /// A token for every 750 pixels.
    Anthropic,
    /// 258 tokens for each tile.
    Gemini,
}

impl MediaPricing {
    /// Returns the formula of a model, by the maker that its name tells.
    pub(crate) fn of_model(model: &str) -> MediaPricing {
        if model.contains("claude") {
            MediaPricing::Anthropic
        } else if model.contains("gemini") {
            MediaPricing::Gemini
        } else {
            MediaPricing::OpenAi
        }
    }

    /// Returns the tokens of data of a MIME type; `data` is the JSON string that holds it or says where it is.
    pub(crate) fn data_tokens(self, mime: &str, data: Option<&RawValue>) -> u64 {
        let length = data.map_or(0, |data| data.get().len());
        match mime {
            mime if mime.starts_with("image/") => self.image_tokens(data.and_then(size_of)),
            "application/pdf" => self.document_tokens(length),
            _ => length as u64 / BYTES_PER_TOKEN,
        }
    }

    /// Returns the tokens of an image.
    pub(crate) fn image_tokens(self, size: Option<ImageSize>) -> u64 {
        match (self, size) {
            (MediaPricing::OpenAi, size) => openai_image_tokens(size.unwrap_or(DEFAULT_SIZE)),
            (MediaPricing::Anthropic, size) => size.map_or(ANTHROPIC_MOST, anthropic_image_tokens),
            (MediaPricing::Gemini, size) => size.map_or(GEMINI_TILE, gemini_image_tokens),
        }
    }

    /// Returns the tokens of a document of so many base64 characters, by pages of the usual weight.
    pub(crate) fn document_tokens(self, characters: usize) -> u64 {
        let pages = (characters as u64).div_ceil(PAGE_CHARACTERS).max(1);
        let page = match self {
            // Text and a picture of the page.
            MediaPricing::OpenAi => openai_image_tokens(DEFAULT_SIZE) + PAGE_TEXT,
            MediaPricing::Anthropic => ANTHROPIC_PAGE,
            MediaPricing::Gemini => GEMINI_TILE,
        };
        pages * page
    }
}

/// An image that says nothing of its size.
const DEFAULT_SIZE: ImageSize = ImageSize {
    width: 1024,
    height: 1024,
};

/// A page of a PDF of 50 kB, in base64.
const PAGE_CHARACTERS: u64 = 66_000;
const PAGE_TEXT: u64 = 600;

const OPENAI_LOW: u64 = 85;

/// Fits the image into 2048 × 2048, its short side into 768, and counts tiles of 512.
fn openai_image_tokens(size: ImageSize) -> u64 {
    let ImageSize { width, height } = size.fit_long_side(2048).fit_short_side(768);
    let tiles = width.div_ceil(512).max(1) * height.div_ceil(512).max(1);
    OPENAI_LOW + 170 * tiles
}

/// What an image of the largest size costs.
const ANTHROPIC_MOST: u64 = 1_600;

/// Pages cost 1,500 to 3,000 tokens of text and a picture.
const ANTHROPIC_PAGE: u64 = 2_250;

fn anthropic_image_tokens(size: ImageSize) -> u64 {
    let ImageSize { width, height } = size.fit_long_side(1568);
    (width * height).div_ceil(750).clamp(1, ANTHROPIC_MOST)
}

const GEMINI_TILE: u64 = 258;

/// Counts the tokens of an image: small ones are one tile, larger ones are cut into squares of two thirds
/// of the short side.
fn gemini_image_tokens(size: ImageSize) -> u64 {
    let ImageSize { width, height } = size;
    if width <= 384 && height <= 384 {
        return GEMINI_TILE;
    }
    let side = (width.min(height) * 2 / 3).clamp(256, 768);
    GEMINI_TILE * width.div_ceil(side) * height.div_ceil(side)
}

impl ImageSize {
    /// Returns the size scaled down, if need be, until the long side fits.
    fn fit_long_side(self, limit: u64) -> ImageSize {
        self.scaled(limit, self.width.max(self.height))
    }

    /// Returns the size scaled down, if need be, until the short side fits.
    fn fit_short_side(self, limit: u64) -> ImageSize {
        self.scaled(limit, self.width.min(self.height))
    }

    fn scaled(self, limit: u64, side: u64) -> ImageSize {
        if side <= limit {
            return self;
        }
        ImageSize {
            width: self.width * limit / side,
            height: self.height * limit / side,
        }
    }
}

/// Returns the data within a part as Gemini writes it, or `None`.
pub(crate) fn gemini_media(part: &RawValue) -> Option<Block> {
    let members = Members::from_json(part.get());
    let either = |camel: &str, snake: &str| members.get(camel).or_else(|| members.get(snake));
    let held = either("inlineData", "inline_data").or_else(|| either("fileData", "file_data"))?;
    let held = Members::from_json(held.get());
    let label = string_value(held.get("mimeType").or_else(|| held.get("mime_type")));
    let label = label.unwrap_or_default().into_owned();
    Some(Block::Media {
        tokens: MediaPricing::Gemini.data_tokens(&label, held.get("data")),
        label,
    })
}

/// Returns the tokens of a part that is an image: `image_url` or `source` tells whose it is.
pub(crate) fn image_part_tokens(part: &RawValue) -> u64 {
    let members = Members::from_json(part.get());
    if let Some(source) = members.get("source") {
        return MediaPricing::Anthropic.image_tokens(size_in(source, "data"));
    }
    let Some(image) = members.get("image_url") else {
        return MediaPricing::OpenAi.image_tokens(None);
    };
    let inner = is_object(image).then(|| Members::from_json(image.get()));
    let detail = inner.as_ref().and_then(|inner| inner.get("detail"));
    if string_value(detail.or_else(|| members.get("detail"))).as_deref() == Some("low") {
        return OPENAI_LOW;
    }
    let size = match &inner {
        Some(inner) => inner.get("url").and_then(size_of),
        None => size_of(image),
    };
    MediaPricing::OpenAi.image_tokens(size)
}

fn size_in(object: &RawValue, member: &str) -> Option<ImageSize> {
    if !is_object(object) {
        return None;
    }
    size_of(Members::from_json(object.get()).get(member)?)
}

/// Returns the size of an image in a JSON string: base64 as it is, or in a `data:` address.
pub(crate) fn size_of(value: &RawValue) -> Option<ImageSize> {
    if !is_string(value) {
        return None;
    }
    let text = value.get().trim_matches('"');
    let data = match text.strip_prefix("data:") {
        Some(address) => address.split_once("base64,")?.1,
        None if text.contains("://") => return None,
        None => text,
    };
    ImageHeader(&decode_base64(data))
        .size()
        .filter(|size| size.width > 0 && size.height > 0)
}

/// Returns the first bytes of a base64 text, as far as it is one. JSON may have put `\` before a `/`.
fn decode_base64(text: &str) -> Vec<u8> {
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
struct ImageHeader<'a>(&'a [u8]);

impl ImageHeader<'_> {
    fn size(&self) -> Option<ImageSize> {
        let is = |at: usize, mark: &[u8]| self.0.get(at..).is_some_and(|b| b.starts_with(mark));
        if is(0, b"\x89PNG\r\n\x1a\n") {
            return Some(ImageSize {
                width: self.read_big_endian(16, 4)?,
                height: self.read_big_endian(20, 4)?,
            });
        }
        if is(0, b"GIF8") {
            return Some(ImageSize {
                width: self.read_little_endian(6, 2)?,
                height: self.read_little_endian(8, 2)?,
            });
        }
        if is(0, b"\xff\xd8") {
            return self.jpeg_size();
        }
        (is(0, b"RIFF") && is(8, b"WEBP"))
            .then(|| self.webp_size())
            .flatten()
    }

    fn read_big_endian(&self, at: usize, bytes: usize) -> Option<u64> {
        let bytes = self.0.get(at..at + bytes)?;
        Some(bytes.iter().fold(0, |n, b| (n << 8) | u64::from(*b)))
    }

    fn read_little_endian(&self, at: usize, bytes: usize) -> Option<u64> {
        let bytes = self.0.get(at..at + bytes)?;
        Some(bytes.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
    }

    /// Segments follow each other until the one that begins the picture.
    fn jpeg_size(&self) -> Option<ImageSize> {
        let mut at = 2;
        loop {
            let marker = self.read_big_endian(at, 2)?;
            let begins =
                matches!(marker, 0xffc0..=0xffcf) && !matches!(marker, 0xffc4 | 0xffc8 | 0xffcc);
            if begins {
                return Some(ImageSize {
                    width: self.read_big_endian(at + 7, 2)?,
                    height: self.read_big_endian(at + 5, 2)?,
                });
            }
            at += match marker {
                // Fill bytes stand before a marker.
                0xffff => 1,
                0xff00.. => 2 + self.read_big_endian(at + 2, 2)? as usize,
                _ => return None,
            };
        }
    }

    /// Reads the size from one of three kinds of header, each with its own place and width of the numbers.
    fn webp_size(&self) -> Option<ImageSize> {
        match self.0.get(12..16)? {
            b"VP8X" => Some(ImageSize {
                width: self.read_little_endian(24, 3)? + 1,
                height: self.read_little_endian(27, 3)? + 1,
            }),
            b"VP8 " => Some(ImageSize {
                width: self.read_little_endian(26, 2)? & 0x3fff,
                height: self.read_little_endian(28, 2)? & 0x3fff,
            }),
            b"VP8L" => {
                let bits = self.read_little_endian(21, 4)?;
                Some(ImageSize {
                    width: (bits & 0x3fff) + 1,
                    height: ((bits >> 14) & 0x3fff) + 1,
                })
            }
            _ => None,
        }
    }
}
