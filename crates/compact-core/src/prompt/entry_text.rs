//! Entries as a model reads them: one or more lines each, numbered as the summary numbers them.
//!
//! Reasoning is left out: it argues, and what it came to is said or done right after.

use std::fmt::Write;

use crate::frame;
use crate::message::{Block, Entry, EntryKind, plain_tool_name};
use crate::speech;

/// How the lines of an entry begin.
const HEADING: &str = "[#";

/// The lines of one entry; empty for one without words.
pub(super) fn entry_lines(ordinal: u64, entry: &Entry) -> String {
    if let EntryKind::Summary { .. } | EntryKind::ForeignSummary = entry.meta.kind
        && let text = entry.plain_text()
        && let Some(body) = frame::body(&text)
    {
        return format!("[#{ordinal}] summary of what came before:\n{body}\n");
    }
    let mut out = String::new();
    for block in &entry.blocks {
        let (who, words) = match block {
            Block::Text(text) if entry.meta.kind == EntryKind::HostedTool => {
                ("result", text.as_str())
            }
            Block::Text(text) => (entry.role.as_str(), text.as_str()),
            Block::ToolResult {
                content,
                is_error: false,
                ..
            } => ("result", content.as_str()),
            Block::ToolResult { content, .. } => ("failed", content.as_str()),
            Block::ToolCall {
                name, arguments, ..
            } => {
                let name = plain_tool_name(name);
                let arguments = speech::quote_headings(arguments, HEADING);
                let _ = writeln!(out, "[#{ordinal}] call: {name} {arguments}");
                continue;
            }
            Block::Media { label, .. } => ("attached", label.as_str()),
            Block::Reasoning { .. } | Block::Opaque { .. } => continue,
        };
        if !words.trim().is_empty() {
            let words = speech::quote_headings(words.trim_end(), HEADING);
            let _ = writeln!(out, "[#{ordinal}] {who}: {words}");
        }
    }
    enclosed(&out)
}

/// The words of an entry without reasoning, calls as `name arguments`, a line or more for each block.
pub(super) fn words(entry: &Entry) -> String {
    let spoken = |block: &&Block| !matches!(block, Block::Reasoning { .. });
    let texts = entry.blocks.iter().filter(spoken).map(|block| {
        let [first, second] = block.text_parts();
        format!("{first} {second}").trim().to_owned()
    });
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// No text may close the frame that the conversation stands in.
pub(super) fn enclosed(text: &str) -> String {
    text.replace("</conversation", "<\\/conversation")
}
