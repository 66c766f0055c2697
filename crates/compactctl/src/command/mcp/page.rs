//! Long texts in pages, and any text as a quotation.

use compact::recall::fence_text;
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::Failure;

/// The most characters of one answer: some four thousand tokens, which every client passes on.
pub(super) const PAGE: usize = 16_000;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct TextPage {
    /// The text, or the part of it that begins at offset
    pub text: String,
    /// How many characters stand before this part
    pub offset: u64,
    /// The characters of the whole
    pub total_chars: u64,
    /// Where the rest begins; absent at the end
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub next_offset: Option<u64>,
}

impl TextPage {
    /// The page of a text that begins after so many characters.
    pub(super) fn starting_at(whole: &str, offset: u64) -> Result<TextPage, Failure> {
        let total = whole.chars().count() as u64;
        if offset > 0 && offset >= total {
            return Err(Failure::usage(
                format!("offset {offset} is behind the end: the text has {total} characters"),
                "pass next_offset of the answer before, or leave offset out",
            ));
        }
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let text: String = whole.chars().skip(skipped).take(PAGE).collect();
        let end = offset + text.chars().count() as u64;
        Ok(TextPage {
            text,
            offset,
            total_chars: total,
            next_offset: (end < total).then_some(end),
        })
    }

    /// The part between fences, and where it goes on.
    pub(super) fn quoted(&self) -> String {
        let mut out = fence_text(&self.text);
        if let Some(next) = self.next_offset {
            let (offset, total) = (self.offset, self.total_chars);
            out.push_str(&format!(
                "characters {offset} to {next} of {total}; call again with offset {next} for more\n"
            ));
        }
        out
    }
}
