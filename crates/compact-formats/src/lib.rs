//! Everyone's transcript JSON to and from a [`Conversation`], nothing thrown away.
//!
//! A [`Document`] keeps the bytes of its input once and, for every entry of the conversation, the
//! span it was read from. What a view keeps is copied from there byte for byte; what it edits is
//! spliced into the entry's own JSON; what no version of this crate knows stays where it was.
//!
//! A format is a folder with a `Wire` in it, its `mod` line, and one row in `format_table!`.
//! Nothing here reads a file or a clock, counts tokens, or decides what a view shows.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod anthropic;
mod body;
pub mod branch;
mod chain;
mod chat;
mod claude_code;
mod codex;
mod convert;
mod copilot;
mod detect;
mod edit;
mod error;
mod flag;
mod fresh;
mod gemini;
mod gemini_cli;
mod growth;
mod halves;
mod json;
mod list;
mod media;
mod opencode;
mod openhands;
pub mod overflow;
mod pairing;
mod parts;
mod pi;
mod rereading;
mod responses;
mod segment;
mod session;
mod source;
mod special_text;
pub mod stream;
mod surrogate;
mod swe_agent;
pub mod usage;
pub mod validate;
mod wire;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use bytes::Bytes;
use compact_core::message::Conversation;
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;

pub use crate::convert::{ConversionLoss, ConvertedDocument, convert, convert_document};
pub use crate::detect::detect;
pub use crate::error::{FormatError, Position};
pub use crate::rereading::RereadTranscript;
pub use crate::session::{SessionSlice, sessions};
use crate::source::{EntryPlace, SourceLayout};
pub use crate::surrogate::readable_json;
use crate::wire::{Audience, DocumentContext, Wire};

/// Declares [`Format`] from one table: a row is a variant, its name and its wire, so that no format
/// is without either and none is missing from the list of all. Later rows are recognised first: a new
/// format stands at the end.
macro_rules! format_table {
    ($($(#[$doc:meta])* $format:ident => $name:literal, $wire:path;)+) => {
        /// The formats that can be read and written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $format,)+
        }

        impl Format {
            /// Every format, in the order in which messages list them.
            pub const ALL: &'static [Format] = &[$(Format::$format),+];

            /// Returns the name that people give it by.
            pub fn name(self) -> &'static str {
                match self {
                    $(Format::$format => $name,)+
                }
            }

            fn wire(self) -> &'static Wire {
                match self {
                    $(Format::$format => &$wire,)+
                }
            }
        }
    };
}

format_table! {
    /// An OpenAI chat completions request body, or its messages as a list or as lines.
    OpenAiChat => "openai-chat", chat::OPENAI;
    /// A Claude Code session: `~/.claude/projects/*/*.jsonl`.
    ClaudeCode => "claude-code", claude_code::WIRE;
    /// A Codex rollout: `~/.codex/sessions/**/rollout-*.jsonl`.
    CodexRollout => "codex", codex::WIRE;
    /// A JSON list of `{role, content}`.
    Messages => "messages", chat::PLAIN_LIST;
    /// One `{role, content}` per line.
    MessagesJsonl => "messages-jsonl", chat::PLAIN_LINES;
    /// A Gemini CLI chat: `~/.gemini/tmp/*/chats/session-*.json` and `.jsonl`.
    GeminiCli => "gemini-cli", gemini_cli::WIRE;
    /// An opencode export: `opencode export`.
    OpenCode => "opencode", opencode::WIRE;
    /// A pi session: `~/.pi/agent/sessions/*/*.jsonl`.
    Pi => "pi", pi::WIRE;
    /// A Copilot CLI session: `~/.copilot/session-state/*/events.jsonl`.
    Copilot => "copilot", copilot::WIRE;
    /// OpenHands events: a list, or the `history` of a run.
    OpenHands => "openhands", openhands::WIRE;
    /// A SWE-agent trajectory: `*.traj`.
    SweAgent => "swe-agent", swe_agent::WIRE;
    /// An Anthropic messages request body, or its messages as a list.
    Anthropic => "anthropic", anthropic::WIRE;
    /// An OpenAI Responses request body, or its items as a list.
    OpenAiResponses => "openai-responses", responses::WIRE;
    /// A Gemini `generateContent` request body, or its contents as a list.
    Gemini => "gemini", gemini::WIRE;
    /// A run of tau-bench; its files hold a list of them.
    TauBench => "tau-bench", chat::TAU_BENCH;
}

impl Format {
    /// Returns all names, for messages to people.
    pub fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|format| format.name()).collect();
        names.join(", ")
    }

    /// Returns what the provider behind this format accepts.
    pub fn rules(self) -> &'static WireRules {
        self.wire().rules
    }

    /// Returns true for what is sent to a provider, or stands for it; false for what an agent keeps to itself.
    pub fn is_sent(self) -> bool {
        self.wire().audience == Audience::Provider
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Self, FormatError> {
        Self::ALL
            .iter()
            .copied()
            .find(|format| format.name() == name)
            .ok_or_else(|| FormatError::UnknownName {
                name: name.to_owned(),
            })
    }
}

/// Returns the rules that go by this name, as a receipt gives it.
pub fn rules_named(name: &str) -> Option<&'static WireRules> {
    Format::ALL
        .iter()
        .flat_map(|format| {
            let wire = format.wire();
            let strict = wire.strict.iter().map(|(_, strict)| *strict);
            let more = wire.more_rules.iter().copied();
            std::iter::once(wire.rules).chain(strict).chain(more)
        })
        .find(|rules| rules.name == name)
}

/// How much of a transcript to read, if it was compacted before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TranscriptScope {
    /// What the next request would carry: everything after the last compaction boundary.
    #[default]
    Live,
    /// Everything that was ever said, each thing once.
    Whole,
}

/// Something about a transcript that its reader should know and that did not stop the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptProblem {
    /// The entry of the conversation that has it.
    pub entry: Option<usize>,
    /// The line of the file, from 1, for formats of lines.
    pub line: Option<usize>,
    /// The problem in words.
    pub message: String,
}

/// A transcript that has been read.
#[derive(Debug)]
pub struct ParsedTranscript {
    /// The bytes and the places of the entries in them.
    pub document: Document,
    /// The conversation in the one shape of all formats.
    pub conversation: Conversation,
    /// What is odd about it.
    pub problems: Vec<TranscriptProblem>,
}

/// The time and the receipt of a boundary that is appended; the caller passes the time.
#[derive(Clone, Copy, Debug)]
pub struct BoundaryStamp<'a> {
    /// RFC 3339 with milliseconds and `Z`.
    pub timestamp: &'a str,
    /// The receipt of the compaction.
    pub receipt: &'a str,
    /// Tokens of the context before.
    pub tokens_before: u64,
    /// Tokens of the view.
    pub tokens_after: u64,
}

/// Reads a transcript; without a format, [`detect()`] tells it.
pub fn parse(
    source: impl Into<Bytes>,
    format: Option<Format>,
    scope: TranscriptScope,
) -> Result<ParsedTranscript, FormatError> {
    let source = source.into();
    let readable = surrogate::readable_source(&source);
    let format = match format {
        Some(format) => format,
        None => detect(&readable)?,
    };
    if let Some(sessions) = session::session_spans(&readable)? {
        return Err(FormatError::ManySessions {
            count: sessions.len(),
        });
    }
    let mut reading = (format.wire().read)(&readable, scope)?;
    flag::note_flags(&readable, &mut reading);
    special_text::note_speakers(&mut reading.drafts);
    let rules = reading.rules.unwrap_or_else(|| format.rules());
    let (settled, layout) = pairing::build_conversation(reading);
    Ok(ParsedTranscript {
        document: Document {
            format,
            rules,
            source,
            layout,
            places: settled.places,
        },
        conversation: settled.conversation,
        problems: settled.problems,
    })
}

/// A transcript's bytes, with the place of every entry of its conversation.
#[derive(Clone, Debug)]
pub struct Document {
    format: Format,
    rules: &'static WireRules,
    source: Bytes,
    layout: SourceLayout,
    places: Vec<EntryPlace>,
}

impl Document {
    /// Returns a document with no entries, to be written into.
    fn blank(format: Format, source: String, layout: SourceLayout) -> Document {
        Document {
            format,
            rules: format.rules(),
            source: source.into(),
            layout,
            places: Vec::new(),
        }
    }

    /// Returns the format that it was read as.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns what the provider accepts of this document.
    pub fn rules(&self) -> &'static WireRules {
        self.rules
    }

    /// Returns what the strictest servers accept of it: chat templates and Bedrock, which want roles to
    /// alternate, and a person to speak first and last.
    pub fn strict_rules(&self) -> &'static WireRules {
        let mut pairs = self.format.wire().strict.iter();
        pairs
            .find(|(rules, _)| rules.name == self.rules.name)
            .map_or(self.rules, |(_, strict)| *strict)
    }

    /// Returns the input, byte for byte.
    pub fn original(&self) -> &[u8] {
        &self.source
    }

    /// Returns the JSON of an entry of the conversation, as it stands in the input.
    pub fn entry_bytes(&self, entry: usize) -> Option<&[u8]> {
        self.source.get(self.places.get(entry)?.span.clone())
    }

    /// Returns the JSON around an entry, as it stands in the input: the line or the message that holds it.
    pub fn record_bytes(&self, entry: usize) -> Option<&[u8]> {
        let (SourceLayout::List {
            messages: records, ..
        }
        | SourceLayout::Lines { lines: records, .. }) = &self.layout;
        let record = records.get(self.places.get(entry)?.line)?;
        self.source.get(record.clone())
    }

    /// Returns a message of the list, as it stands in the input; `None` beyond its end, and where there is no list.
    pub fn message_bytes(&self, message: usize) -> Option<&[u8]> {
        match &self.layout {
            SourceLayout::List { messages, .. } => self.source.get(messages.get(message)?.clone()),
            SourceLayout::Lines { .. } => None,
        }
    }

    /// Returns the view as a transcript of the same format. The view that changes nothing is the input.
    pub fn emit(&self, conversation: &Conversation, view: &View) -> Result<Vec<u8>, FormatError> {
        self.emit_shared(conversation, view).map(Vec::from)
    }

    /// Does the same; the input is not copied for a view that changes nothing.
    pub fn emit_shared(
        &self,
        conversation: &Conversation,
        view: &View,
    ) -> Result<Bytes, FormatError> {
        if self.is_identity(view) {
            return Ok(self.source.clone());
        }
        let emitted = (self.format.wire().emit)(&self.with_conversation(conversation), view)?;
        Ok(emitted.into())
    }

    /// Returns the input as a provider takes it: the same bytes without `meta`, which is for us alone. An
    /// agent's own transcript stays as it is.
    pub fn without_flags(&self) -> Result<Vec<u8>, FormatError> {
        if !self.format.is_sent() {
            return Ok(self.source.to_vec());
        }
        let (SourceLayout::List { messages, .. }
        | SourceLayout::Lines {
            lines: messages, ..
        }) = &self.layout;
        let text = |span: &Range<usize>| source::span_text(&self.source, span.clone());
        let bare: Result<Vec<_>, _> = messages
            .iter()
            .map(|span| Ok(flag::strip_own_members(text(span)?)))
            .collect();
        Ok(list::emit(self, &bare?))
    }

    /// Returns the input with [`Document::lines_to_append`] behind it.
    pub fn append(
        &self,
        conversation: &Conversation,
        view: &View,
        stamp: &BoundaryStamp<'_>,
    ) -> Result<Vec<u8>, FormatError> {
        let lines = self.lines_to_append(conversation, view, stamp)?;
        Ok([self.original(), &lines].concat())
    }

    /// Returns the lines that stand behind the input for the agent to resume from the view: a boundary, and
    /// the view. The last one has its end, so that whoever writes next begins a line of its own.
    pub fn lines_to_append(
        &self,
        conversation: &Conversation,
        view: &View,
        stamp: &BoundaryStamp<'_>,
    ) -> Result<Vec<u8>, FormatError> {
        (self.format.wire().append)(&self.with_conversation(conversation), view, stamp)
    }

    /// This document followed by the entries of a later one from `from` on.
    pub fn extend(
        &self,
        later: &Document,
        later_conversation: &Conversation,
        from: usize,
    ) -> Result<Vec<u8>, FormatError> {
        if !std::ptr::eq(self.format.rules(), later.format.rules()) {
            return Err(FormatError::Mismatch {
                first: self.format,
                later: later.format,
            });
        }
        if from >= later.places.len() {
            return Ok(self.source.to_vec());
        }
        (self.format.wire().extend)(self, &later.with_conversation(later_conversation), from)
    }

    fn with_conversation<'a>(&'a self, conversation: &'a Conversation) -> DocumentContext<'a> {
        DocumentContext {
            document: self,
            conversation,
            circumstances: None,
        }
    }

    fn is_identity(&self, view: &View) -> bool {
        view.items.len() == self.places.len()
            && view
                .items
                .iter()
                .enumerate()
                .all(|(i, item)| matches!(item, ViewItem::Kept { entry } if *entry == i))
    }
}
