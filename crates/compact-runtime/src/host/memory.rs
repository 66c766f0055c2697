//! What is remembered of an agent's session between two calls of its hook.
//!
//! A transcript of lines only grows, so its ledger is carried on from where the last call stopped.
//! One that was rewritten or rewound, that was left while a tool was at work, or that is no list of
//! lines, is read again from the start. The ledger is the same whether it is carried on or not, but for
//! names that only tools said: a long session has so many that a person would wait for them to be read.

use std::collections::{HashMap, HashSet};

use compact_core::engine;
use compact_core::identity::EntryHash;
use compact_core::ledger::Ledger;
use compact_core::message::{Entry, EntryKind, Role};
use compact_core::redact::Redactor;
use compact_core::{frame, summarize};
use compact_formats::{Format, FormatError, TranscriptScope, branch, parse};
use serde::{Deserialize, Serialize};

/// How many bytes before the point reached tell whether a file is the one that was read.
pub const MARK_BYTES: usize = 256;

/// How many names that only tools said are remembered: ten times what is ever told of a session.
pub const UNUSED_NAMES: usize = 4_096;

/// The ledger of a transcript as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HookMemory {
    version: String,
    format: Option<String>,
    /// How many bytes were read.
    pub read: u64,
    /// The hash of the last bytes read, and how many they were.
    mark: (usize, String),
    /// The line that the next prompt hangs on.
    leaf: Option<String>,
    /// Whether a tool was at work: its call and its answer are one thing, and belong into one reading.
    waits: bool,
    /// How many summaries of the agent were among them.
    pub summaries: u64,
    /// What was said.
    pub ledger: Ledger,
    /// The context at the last request, as the provider counted it; unknown where the transcript does not tell.
    #[serde(default)]
    pub context_tokens: Option<u64>,
}

impl HookMemory {
    /// Whether a file goes on from here: its bytes up to the point reached end in `before`, and
    /// `more` follows them without going back.
    pub fn is_continued_by(&self, before: &[u8], more: &[u8]) -> bool {
        let Some(format) = self.format().filter(|format| is_lines(*format)) else {
            return false;
        };
        let marked = before.len().checked_sub(self.mark.0);
        let marked = marked.and_then(|from| before.get(from..));
        self.version == version()
            && !self.waits
            && marked.is_some_and(|bytes| mark(bytes) == self.mark)
            && !branch::has_rewind(format, self.leaf.as_deref(), more)
    }

    /// Adds what follows; of a broken last line, nothing. Secrets are taken out first: what becomes of
    /// a text in a ledger may no longer look like one. False when it answers a call that stands before
    /// it: nothing is added then, and the whole has to be read again.
    pub fn read_more(&mut self, more: &[u8], redactor: &Redactor) -> Result<bool, FormatError> {
        let known = self.format();
        let more = match known.is_none_or(is_lines) {
            true => whole_lines(more),
            false => more,
        };
        if more.trim_ascii().is_empty() {
            return Ok(true);
        }
        let mut parsed = parse(
            bytes::Bytes::copy_from_slice(more),
            known,
            TranscriptScope::Whole,
        )?;
        let hashes = EntryHash::from_entries(&parsed.conversation.entries);
        engine::classify_summaries(&mut parsed.conversation, &hashes, None);
        let entries = &parsed.conversation.entries;
        if self.ledger.next > 0 && answers_earlier(entries) {
            return Ok(false);
        }
        let counted = entries.iter().rev().find_map(|entry| entry.meta.usage);
        let counted = counted.map(|usage| usage.prompt_tokens().0 + usage.output_tokens);
        self.context_tokens = counted.or(self.context_tokens);
        let later = Ledger::from_redacted(entries, self.ledger.next, redactor);
        self.ledger.merge(later);
        self.summaries += entries
            .iter()
            .filter(|e| e.meta.kind == EntryKind::ForeignSummary)
            .filter(|e| frame::find_frame(&e.blocks).is_none())
            .count() as u64;
        let format = parsed.document.format();
        self.version = version();
        self.format = Some(format.name().to_owned());
        self.leaf = branch::leaf(format, more).or(self.leaf.take());
        self.waits = has_open_calls(entries);
        self.read += more.len() as u64;
        self.mark = mark(more);
        Ok(true)
    }

    /// Forgets what a long session cannot carry on with at every prompt.
    pub fn shed_names(&mut self) {
        summarize::drop_unused_names(&mut self.ledger, UNUSED_NAMES);
    }

    fn format(&self) -> Option<Format> {
        self.format.as_deref()?.parse().ok()
    }
}

/// Whether a call may still be answered: the model has said nothing since somebody else did.
fn has_open_calls(entries: &[Entry]) -> bool {
    let mut open: HashMap<&str, bool> = HashMap::new();
    for entry in entries {
        if entry.role == Role::Assistant {
            open.retain(|_, went_on| !*went_on);
            open.extend(entry.call_ids().map(|call| (call, false)));
        } else {
            open.values_mut().for_each(|went_on| *went_on = true);
            entry.result_ids().for_each(|call| _ = open.remove(call));
        }
    }
    !open.is_empty()
}

/// Whether an answer stands here without its call.
fn answers_earlier(entries: &[Entry]) -> bool {
    let mut called: HashSet<&str> = HashSet::new();
    entries.iter().any(|entry| {
        called.extend(entry.call_ids());
        entry.result_ids().any(|call| !called.contains(call))
    })
}

/// A ledger of another version of the engine is drawn again.
fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

fn mark(bytes: &[u8]) -> (usize, String) {
    let last = bytes.get(bytes.len().saturating_sub(MARK_BYTES)..);
    let last = last.unwrap_or_default();
    (last.len(), blake3::hash(last).to_hex().to_string())
}

fn is_lines(format: Format) -> bool {
    matches!(format, Format::ClaudeCode | Format::CodexRollout)
}

/// The lines that are complete: the last one may be half written.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let (whole, last) = bytes
        .split_at_checked(end.map_or(0, |at| at + 1))
        .unwrap_or((bytes, b""));
    match serde_json::from_slice::<serde::de::IgnoredAny>(last) {
        Ok(_) => bytes,
        Err(_) => whole,
    }
}
