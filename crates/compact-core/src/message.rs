//! The provider-neutral conversation: entries made of blocks.
//!
//! A format parses its own JSON into these values and keeps the bytes to itself; core reads texts,
//! calls and results, and answers with a [`View`](crate::view::View) that points back by index.
//! Nothing here knows a provider, a file or a clock.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// Who speaks in an entry.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The host's instructions.
    System,
    /// The application's instructions, where a wire tells them apart from the system's.
    Developer,
    /// The person (or program) whose orders count.
    User,
    /// The model.
    Assistant,
    /// The answer to a tool call.
    Tool,
}

impl Role {
    /// The role's name as every wire spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// System and developer entries: the host re-sends them, the budget does not count them.
    pub fn is_instruction(self) -> bool {
        matches!(self, Role::System | Role::Developer)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A stable name of an entry within its session: the wire's own id, or one derived from its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(pub String);

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One piece of an entry. A format maps block `i` of an entry to one place in its JSON, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Words.
    Text(String),
    /// The model asks for a tool. `arguments` is what the wire carries: JSON text or free text.
    ToolCall {
        /// The wire's id, equal to the `call` of its result.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments as text.
        arguments: String,
    },
    /// A tool's answer, images and other non-text left out (they are [`Block::Media`]).
    ToolResult {
        /// The id of the call that this answers.
        call: String,
        /// The answer's text.
        content: String,
        /// Whether the tool said it failed.
        is_error: bool,
    },
    /// The model's reasoning. When `bound`, a signature ties it to the exact bytes before it.
    Reasoning {
        /// The visible reasoning, often empty.
        text: String,
        /// Bytes of signature or encrypted content replayed with it.
        replay_bytes: usize,
    },
    /// An image, a document, audio: counted, never read.
    Media {
        /// What it is, for people: `image/png`, `file report.pdf`.
        label: String,
        /// The provider's estimate of its tokens.
        tokens: u64,
    },
    /// Something this version does not know. Kept as it is, counted by its size.
    Opaque {
        /// The wire's name for it.
        kind: String,
        /// Its serialized size in bytes.
        bytes: usize,
    },
}

impl Block {
    /// The words a reader of the context would see in this block; calls read `name arguments`.
    pub fn text_parts(&self) -> [&str; 2] {
        match self {
            Block::Text(text) => [text, ""],
            Block::ToolCall {
                name, arguments, ..
            } => [name, arguments],
            Block::ToolResult { content, .. } => [content, ""],
            Block::Reasoning { text, .. } => [text, ""],
            Block::Media { .. } | Block::Opaque { .. } => ["", ""],
        }
    }
}

/// The most characters of a tool's name that are told.
const TOOL_NAME: usize = 64;

/// A tool's name as it is told of: an identifier of at most 64 characters. A model chooses it, so whatever else it
/// holds (blanks, line ends, brackets, quotes) could pass for the text around it, and becomes `_`.
pub fn plain_tool_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    if name.len() <= TOOL_NAME && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let told = name.chars().take(TOOL_NAME);
    told.map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// What an entry is, beyond its role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// An ordinary message.
    #[default]
    Message,
    /// A rolling summary of this engine that is proven to be it; see [`crate::engine::classify_summaries`].
    Summary {
        /// N of the summary.
        version: u32,
        /// The receipt that it names, if the text still carries it.
        receipt: Option<String>,
    },
    /// A summary that another program wrote (a host's own compaction), or one that says it is ours and
    /// that nothing here proves: a model's words.
    ForeignSummary,
    /// Text that the client injected around the user's words: reminders, environment, command echoes.
    /// It is not the user speaking.
    Injected,
    /// What a tool did that the provider runs by itself: call and answer in one text, in the model's place.
    /// It is the tool speaking.
    HostedTool,
}

/// What a wire says about an entry beside its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryMeta {
    /// What the entry is.
    pub kind: EntryKind,
    /// Truthy keys of a message's `meta` object, e.g. `protected`.
    pub flags: BTreeSet<String>,
    /// Entries that share a group are one message of the provider, spread over several lines.
    pub group: Option<String>,
    /// True when the wire carries this entry in the same message as the entry before it.
    pub continues: bool,
    /// What the provider reported of the request that produced this entry.
    pub usage: Option<Usage>,
    /// True when the wire itself, beside what the answer says, has it that the person refused the calls answered here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// True for a tool message that cannot be paired: its calls cannot be read, or it names no call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub malformed: bool,
}

/// One message or event of the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its stable name.
    pub id: EntryId,
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub blocks: Vec<Block>,
    /// What the wire says about it.
    pub meta: EntryMeta,
}

impl Entry {
    /// A plain text entry; the id is the caller's to choose.
    pub fn from_text(id: impl Into<String>, role: Role, text: impl Into<String>) -> Self {
        Entry {
            id: EntryId(id.into()),
            role,
            blocks: vec![Block::Text(text.into())],
            meta: EntryMeta::default(),
        }
    }

    /// True for words of the person: user role, with text, not a summary, reminder or tool carrier.
    pub fn is_user_message(&self) -> bool {
        self.role == Role::User
            && self.meta.kind == EntryKind::Message
            && self
                .blocks
                .iter()
                .any(|b| matches!(b, Block::Text(_) | Block::Media { .. }))
            && !self.has_results()
    }

    /// True for instructions, which at the head of a conversation the host re-sends by itself.
    pub fn is_leading(&self) -> bool {
        self.role.is_instruction() && !matches!(self.meta.kind, EntryKind::Summary { .. })
    }

    /// True when any block answers a tool call.
    pub fn has_results(&self) -> bool {
        self.blocks
            .iter()
            .any(|b| matches!(b, Block::ToolResult { .. }))
    }

    /// The ids of the calls made here, in order.
    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|b| match b {
            Block::ToolCall { id, .. } => Some(id.as_str()),
            _ => None,
        })
    }

    /// The ids of the calls answered here, in order.
    pub fn result_ids(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|b| match b {
            Block::ToolResult { call, .. } => Some(call.as_str()),
            _ => None,
        })
    }

    /// All plain text of the entry, joined by newlines.
    pub fn plain_text(&self) -> String {
        let mut out = String::new();
        for block in &self.blocks {
            if let Block::Text(text) = block {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(text);
            }
        }
        out
    }
}

/// What the next request would carry: the live context of a session, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The wire's session id, when it has one.
    pub session_id: Option<String>,
    /// The model the wire names, when it does.
    pub model: Option<String>,
    /// Every entry of the live context, leading instructions included.
    pub entries: Vec<Entry>,
    /// The serialized tool schemas, counted and never changed.
    pub tools: Option<String>,
}

impl Conversation {
    /// How many leading entries are instructions that the host re-sends with every request.
    pub fn leading_instructions(&self) -> usize {
        self.entries.iter().take_while(|e| e.is_leading()).count()
    }

    /// The first entry of what was said last: what nobody has answered yet, or the model's message where
    /// that ends the history.
    pub fn newest_start(&self) -> usize {
        let spoke = |e: &Entry| e.role == Role::Assistant;
        let answered = self.entries.iter().rposition(spoke).map_or(0, |at| at + 1);
        let Some(last) = self.entries.last().filter(|last| spoke(last)) else {
            return answered;
        };
        // A message may be spread over several entries.
        let group = last.meta.group.as_deref();
        let is_same = |e: &&Entry| spoke(e) && group.is_some() && e.meta.group.as_deref() == group;
        let before = self
            .entries
            .iter()
            .rev()
            .skip(1)
            .take_while(is_same)
            .count();
        answered - 1 - before
    }
}
