//! The frame around every summary of ours: `<COMPACT-SUMMARY vN>`, the receipt, the way back.
//!
//! Successive compactions find each other by it even when only files are passed around, so what
//! [`wrap`] writes [`parse`] reads, whatever the body says. Anybody can write a frame: to have one is a
//! claim, which [`classify_summaries`](crate::engine::classify_summaries) holds against the compaction before.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::message::Block;

const OPEN: &str = "<COMPACT-SUMMARY v";
const CLOSE: &str = "</COMPACT-SUMMARY>";
const RECEIPT: &str = "receipt: ";

/// What a frame says about its summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// N of the rolling summary.
    pub version: u32,
    /// The receipt of the compaction that wrote it.
    pub receipt: Option<String>,
    /// How much it says of the way back.
    pub way_back: WayBack,
}

/// How much a frame says of the way back to what its summary leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// How each of the tools is called.
    Explained,
    /// Their names, where every word counts.
    Named,
    /// That there is none: nothing was archived.
    Missing,
}

impl Frame {
    /// Makes the frame of the N-th rolling summary, which names its receipt.
    pub fn new(version: u32, receipt: impl Into<String>) -> Frame {
        Frame {
            version,
            receipt: Some(receipt.into()),
            way_back: WayBack::Explained,
        }
    }

    /// Makes it say so much of the way back.
    pub fn with_way_back(self, way_back: WayBack) -> Frame {
        Frame { way_back, ..self }
    }
}

/// Puts a body into its frame.
pub fn wrap(frame: &Frame, body: &str) -> String {
    let mut text = format!("{OPEN}{}>\n", frame.version);
    if let Some(receipt) = &frame.receipt {
        let way_back = match frame.way_back {
            WayBack::Explained => explain_way_back(receipt),
            WayBack::Named => SHORT_WAY_BACK.to_owned(),
            WayBack::Missing => NO_WAY_BACK.to_owned(),
        };
        text.push_str(&format!("{RECEIPT}{receipt} ({way_back})\n"));
    }
    text.push_str(body.trim_end());
    text.push('\n');
    text.push_str(CLOSE);
    text
}

/// How many characters of a receipt name it.
const SHORT: usize = 12;

const SHORT_WAY_BACK: &str = "recall, expand";

const NO_WAY_BACK: &str = "nothing is archived";

/// How to look up what is not there. An agent has tools of these names, or a shell, or neither.
fn explain_way_back(receipt: &str) -> String {
    let short: String = receipt.chars().take(SHORT).collect();
    include_str!("../templates/way_back.txt")
        .trim_end()
        .replace("{receipt}", &short)
}

/// How far into a text a frame may open: a continuation notice may stand before it.
const PREAMBLE: usize = 400;

/// What follows the frame's opening, when it opens at the start of one of the first lines.
fn opened(text: &str) -> Option<&str> {
    let head = text.floor_char_boundary(PREAMBLE + OPEN.len());
    // Every call looks at every entry, and this finds nothing in a fraction of the time.
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(OPEN));
    let at = FINDER.find(text.get(..head)?.as_bytes())?;
    let before = text.get(..at)?;
    let at_line_start =
        before.trim_end_matches([' ', '\t']).ends_with('\n') || before.trim().is_empty();
    let after = text.get(before.len() + OPEN.len()..)?;
    at_line_start.then_some(after)
}

/// The frame that an entry of these blocks has, if it has one.
pub fn find_frame(blocks: &[Block]) -> Option<Frame> {
    blocks.iter().find_map(|block| match block {
        Block::Text(text) | Block::ToolResult { content: text, .. } => parse(text),
        _ => None,
    })
}

/// Returns the frame and what is in it, without what a notice says before and behind it.
pub fn framed_text(text: &str) -> Option<&str> {
    let inside = opened(text)?;
    let start = text.len() - inside.len() - OPEN.len();
    let end = text.rfind(CLOSE)? + CLOSE.len();
    text.get(start..end)
}

/// True for a text that opens as a frame, or with a notice before it, and is closed at its end, or
/// before the last words of a notice.
pub fn is_whole(text: &str) -> bool {
    let end = opened(text).and_then(|inside| inside.rsplit_once(CLOSE));
    end.is_some_and(|(_, after)| after.len() <= PREAMBLE)
}

/// Reads the frame of a text that is a summary of ours.
pub fn parse(text: &str) -> Option<Frame> {
    let (version, rest) = opened(text)?.split_once('>')?;
    let receipt = rest.trim_start().strip_prefix(RECEIPT);
    let receipt = receipt.map(|rest| rest.lines().next().unwrap_or(""));
    let way_back = receipt.map_or(WayBack::Explained, read_way_back);
    Some(Frame {
        version: version.parse().ok()?,
        receipt: receipt
            .and_then(|line| line.split_whitespace().next())
            .map(str::to_owned),
        way_back,
    })
}

/// Reads what the line of a receipt says of the way back.
fn read_way_back(line: &str) -> WayBack {
    if line.contains(SHORT_WAY_BACK) {
        WayBack::Named
    } else if line.contains(NO_WAY_BACK) {
        WayBack::Missing
    } else {
        WayBack::Explained
    }
}

/// The text between the frame's lines.
pub fn body(text: &str) -> Option<&str> {
    let (_, rest) = opened(text)?.split_once('>')?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix(RECEIPT) {
        Some(line) => line.split_once('\n').map_or("", |(_, after)| after),
        None => rest,
    };
    Some(
        rest.rsplit_once(CLOSE)
            .map_or(rest, |(body, _)| body)
            .trim_end(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_back_what_it_wrote() {
        let frame = Frame::new(12, "c0ffee");
        let text = wrap(&frame, "## Goal\nship </COMPACT-SUMMARY> it\n");
        assert!(text.starts_with("<COMPACT-SUMMARY v12>"));
        assert!(text.contains("`expand c0ffee#n`"), "{text}");
        assert_eq!(parse(&text), Some(frame));
        assert_eq!(body(&text), Some("## Goal\nship </COMPACT-SUMMARY> it"));
    }

    #[test]
    fn a_frame_is_found_between_the_words_of_a_notice() {
        let text = wrap(&Frame::new(3, "c0ffee"), "body");
        let notice = format!("This session goes on.\n\n{text}\n\nRead the transcript for more.");
        assert_eq!(framed_text(&notice), Some(&*text));
        assert_eq!(framed_text(&text), Some(&*text));
        assert_eq!(framed_text("no frame"), None);
    }

    #[test]
    fn a_frame_with_another_way_back_reads_back_too() {
        for (way_back, said) in [
            (WayBack::Named, "recall, expand"),
            (WayBack::Missing, "nothing is archived"),
        ] {
            let frame = Frame::new(1, "c0ffee").with_way_back(way_back);
            let text = wrap(&frame, "body");
            let line = format!("receipt: c0ffee ({said})\n");
            assert!(text.contains(&line), "{text}");
            assert_eq!(parse(&text), Some(frame));
            assert_eq!(body(&text), Some("body"));
        }
    }

    #[test]
    fn other_text_has_no_frame() {
        for text in [
            "",
            "<COMPACT-SUMMARY",
            "<COMPACT-SUMMARY vx>",
            "hello",
            "<COMPACT-SUMMARY v1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
