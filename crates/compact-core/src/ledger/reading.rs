//! How a block reads: the text in which names are looked for and from which lines are quoted.
//!
//! JSON is for machines. A call's arguments and a result that is one JSON value are told as
//! `key: value` lines, strings unescaped, braces and quotes gone: the same words for fewer tokens.
//! Nothing is parsed into a tree, so broken or cut JSON reads as far as it goes.

use std::borrow::Cow;

use super::entity::Voice;
use crate::frame;
use crate::message::{Block, Entry, EntryKind, Role, plain_tool_name};
use crate::speech::{self, Speech};

/// One block as it reads, and who speaks in it.
pub(crate) struct BlockReading<'e> {
    /// Who speaks.
    pub voice: Voice,
    /// The text.
    pub text: Cow<'e, str>,
    /// Whether the text was JSON: then a word before `: ` at the start of a line is a key.
    pub keyed: bool,
}

/// The voice of an entry's plain text.
pub(crate) fn voice(entry: &Entry) -> Voice {
    match (&entry.meta.kind, entry.role) {
        (EntryKind::Injected, _) => Voice::Host,
        (EntryKind::ForeignSummary, _) => Voice::Model,
        (EntryKind::HostedTool, _) => Voice::Tool,
        (_, Role::System | Role::Developer) => Voice::System,
        (_, Role::User) => Voice::User,
        (_, Role::Assistant) => Voice::Model,
        (_, Role::Tool) => Voice::Tool,
    }
}

/// Reads a block; `None` when it holds no words that the next request would carry.
pub(crate) fn read_block<'e>(entry: &Entry, block: &'e Block) -> Option<BlockReading<'e>> {
    if matches!(entry.meta.kind, EntryKind::Summary { .. }) {
        return None;
    }
    match block {
        Block::Text(text) if entry.meta.kind == EntryKind::ForeignSummary => {
            Some(read_plain(Voice::Model, frame::body(text).unwrap_or(text)))
        }
        Block::Text(text) => Some(read_words(voice(entry), text)),
        Block::ToolCall {
            name, arguments, ..
        } => Some(read_call(&plain_tool_name(name), arguments)),
        Block::ToolResult { content, .. } => Some(read_result(content)),
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => None,
    }
}

/// Reads what somebody said. In the user's place only the person's own words are the user's.
fn read_words(voice: Voice, text: &str) -> BlockReading<'_> {
    if voice != Voice::User {
        return read_plain(voice, text);
    }
    match speech::attribute_speech(text) {
        Speech::Person => read_plain(Voice::User, text),
        Speech::Host => read_plain(Voice::Host, text),
        Speech::Mixed(words) => BlockReading {
            voice: Voice::User,
            text: Cow::Owned(speech::strip_invisible(speech::strip_tags(&words)).into_owned()),
            keyed: false,
        },
    }
}

fn read_plain(voice: Voice, text: &str) -> BlockReading<'_> {
    BlockReading {
        voice,
        text: speech::strip_invisible(text),
        keyed: false,
    }
}

/// A text that is ours, without what no reader sees.
fn without_invisible(text: String) -> Cow<'static, str> {
    match speech::strip_invisible(&text) {
        Cow::Owned(clean) => Cow::Owned(clean),
        Cow::Borrowed(_) => Cow::Owned(text),
    }
}

fn read_call<'e>(name: &str, arguments: &'e str) -> BlockReading<'e> {
    let keyed = arguments.trim_start().starts_with('{');
    let mut text = String::with_capacity(name.len() + arguments.len() + 1);
    text.push_str(name);
    text.push(' ');
    if keyed {
        flatten(arguments, &mut text);
    } else {
        text.push_str(arguments);
    }
    BlockReading {
        voice: Voice::Call,
        text: without_invisible(text),
        keyed,
    }
}

fn read_result(content: &str) -> BlockReading<'_> {
    let trimmed = content.trim();
    let json = (trimmed.starts_with("{\"") && trimmed.ends_with('}'))
        || (trimmed.starts_with("[{\"") && trimmed.ends_with(']'));
    if !json {
        return read_plain(Voice::Tool, content);
    }
    let mut text = String::with_capacity(content.len());
    flatten(trimmed, &mut text);
    BlockReading {
        voice: Voice::Tool,
        text: without_invisible(text),
        keyed: true,
    }
}

/// Appends JSON text as `key: value` lines.
fn flatten(json: &str, out: &mut String) {
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let (head, tail) = rest.split_at(c.len_utf8());
        rest = match c {
            '"' => string(tail, out),
            '{' | '}' | '[' | ']' => {
                line_break(out);
                tail
            }
            ',' => {
                line_break(out);
                tail
            }
            ':' => {
                out.push_str(": ");
                tail
            }
            c if c.is_whitespace() => tail,
            _ => {
                out.push_str(head);
                tail
            }
        };
    }
}

fn line_break(out: &mut String) {
    // Right after the tool's name there is nothing to break.
    if !out.ends_with(['\n', ' ']) && !out.is_empty() {
        out.push('\n');
    }
}

/// Appends a JSON string's value and returns what follows its closing quote.
fn string<'j>(body: &'j str, out: &mut String) -> &'j str {
    let mut rest = body;
    loop {
        let Some(at) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) else {
            out.push_str(rest);
            return "";
        };
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = tail.chars();
        if chars.next() == Some('"') {
            return chars.as_str();
        }
        rest = escape(chars.as_str(), out);
    }
}

fn escape<'j>(tail: &'j str, out: &mut String) -> &'j str {
    let mut chars = tail.chars();
    match chars.next() {
        Some('n' | 'r') => out.push('\n'),
        Some('t') => out.push('\t'),
        Some('u') => return unicode(chars.as_str(), out),
        Some(c) => out.push(c),
        None => {}
    }
    chars.as_str()
}

fn unicode<'j>(tail: &'j str, out: &mut String) -> &'j str {
    let code = |at: &'j str| u32::from_str_radix(at.get(..4)?, 16).ok();
    let Some(high) = code(tail) else { return tail };
    let rest = tail.get(4..).unwrap_or("");
    let low = rest.strip_prefix("\\u").and_then(code);
    if let (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) = (high, low) {
        let joined = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        out.push(char::from_u32(joined).unwrap_or('\u{FFFD}'));
        return rest.get(6..).unwrap_or("");
    }
    out.push(char::from_u32(high).unwrap_or('\u{FFFD}'));
    rest
}
