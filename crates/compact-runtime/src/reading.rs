//! What is on record, laid out for a person who looks at it: a session call by call, and a compaction as what went in
//! beside what came out.
//!
//! Numbers are counted as the receipt's estimator counts them, and those of entries add up to those of the receipt. Text is handed out piece by piece and redacted by the
//! rules in force now, since a transcript may be far larger than what anybody reads of it.

use std::collections::HashMap;
use std::sync::Arc;

use compact_core::engine::claims_summary;
pub use compact_core::engine::{LeftOutName, NameLoss};
use compact_core::identity::EntryHash;
use compact_core::message::{Block, Conversation, Entry, EntryKind, Role, plain_tool_name};
use compact_core::redact::{RedactionCounts, Redactor};
use compact_core::token::{Estimator, EstimatorExt, Tokens, Units};
use compact_core::usage::Usage;
pub use compact_core::verify::AnchorKind;
use compact_core::view::ViewItem;
use compact_formats::{Document, TranscriptScope};
use serde_json::Value;

use crate::error::Error;
use crate::manager::lineage::recorded_hashes;
use crate::manager::protect::name_entries;
use crate::manager::{ENTRIES_FORMAT, Manager, restore};
use crate::port::catalog::{CompactionRecord, InputRelation};
use crate::recall::{entry_text, time_of};

/// How far a text is redacted before its opening is cut: a rule must see the whole of a secret that begins in it.
const REDACTED_CHARS: usize = 8_000;

/// Members of a call's arguments that name a file.
const PATH_MEMBERS: [&str; 6] = [
    "file_path",
    "path",
    "filename",
    "notebook_path",
    "absolute_path",
    "filePath",
];

/// A session from its first entry to its last: what each call of its model was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionCurve {
    /// The calls, the oldest first.
    pub calls: Vec<CallPoint>,
    /// How many entries all of it has.
    pub entries: usize,
    /// The model that the transcript names.
    pub model: Option<String>,
}

/// One call of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPoint {
    /// What it was sent.
    pub tokens: Tokens,
    /// What its provider reported, if it did; else `tokens` is an estimate.
    pub usage: Option<Usage>,
    /// When, as RFC 3339 in UTC, where the transcript says so.
    pub said_at: Option<String>,
    /// The number of the compaction, counted from 0, whose view it was the first to see.
    pub compaction: Option<usize>,
}

/// A compaction as a reader sees it.
pub struct CompactionReading {
    conversation: Conversation,
    /// How many entries at the head are instructions, which no compaction touches.
    leading: usize,
    costs: Vec<EntryCost>,
    names: Vec<Option<EntryHash>>,
    hashes: Vec<EntryHash>,
    ordinals: Vec<Option<u64>>,
    after: Option<Vec<ViewEntry>>,
    redactor: Arc<Redactor>,
}

/// One place of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewEntry {
    /// The entry of the input that it shows; `None` for what the engine wrote.
    pub source: Option<usize>,
    /// Whether it was cut.
    pub is_edited: bool,
    /// What it costs.
    pub tokens: Tokens,
    entry: Entry,
}

/// What an entry is about, without its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySubject {
    /// Who speaks.
    pub role: Role,
    /// The tools that it calls or that answer, in order: one message may have several results.
    pub calls: Vec<CalledTool>,
    /// Whether it is a summary of ours.
    pub is_summary: bool,
}

/// A tool that an entry calls, or that answers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledTool {
    /// Its name.
    pub tool: String,
    /// The file that the call names.
    pub path: Option<String>,
    /// What the call or the answer costs: a part of its entry.
    pub tokens: Tokens,
}

/// What an entry costs, and of that each of its blocks.
struct EntryCost {
    all: Tokens,
    blocks: Vec<Tokens>,
}

impl Manager {
    /// Counts a session call by call, from the archived originals of these records, the oldest first.
    pub async fn session_curve(&self, records: &[CompactionRecord]) -> Result<SessionCurve, Error> {
        let Some(latest) = records.last() else {
            return Ok(SessionCurve::default());
        };
        let bytes = self.restore_session(latest).await?.bytes;
        let (conversation, document) = match latest.format.as_str() {
            ENTRIES_FORMAT => (
                restore::read_scope(&bytes, latest, TranscriptScope::Whole)?,
                None,
            ),
            format => {
                let parsed = restore::parse_input(bytes, format, TranscriptScope::Whole)?;
                (parsed.conversation, Some(parsed.document))
            }
        };
        let leading = conversation.leading_instructions();
        let costs = count_entries(&conversation.entries, leading, &*self.estimator);
        Ok(SessionCurve {
            calls: plot_calls(&conversation.entries, document.as_ref(), &costs, records),
            entries: conversation.entries.len(),
            model: conversation.model,
        })
    }

    /// Reads what a compaction was given and what it made of it; policy and estimator should be those of its receipt.
    pub async fn read_compaction(
        &self,
        record: &CompactionRecord,
    ) -> Result<CompactionReading, Error> {
        let original = self.input_of(record).await?;
        let (mut conversation, _) = restore::read_conversation(&original.bytes, record)?;
        mark_summary(&mut conversation, record);
        let kept = self.archived_view(record).await?;
        let after = kept.map(|kept| {
            let items = kept.view.items.iter();
            let shown = items.filter_map(|item| view_entry(item, &conversation));
            count_view(shown.collect(), &*self.estimator)
        });
        let leading = conversation.leading_instructions();
        let hashes = recorded_hashes(record, &conversation);
        Ok(CompactionReading {
            leading,
            ordinals: self.number_entries(record, &conversation, &hashes).await?,
            hashes,
            costs: count_entries(&conversation.entries, leading, &*self.estimator),
            names: name_entries(&conversation.entries),
            conversation,
            after,
            redactor: Arc::clone(&self.redactor),
        })
    }
}

/// Numbers and pins of what is on record.
impl Manager {
    /// The ordinal of each entry of an input, by which pointers name it. A summary has none: it is no part of what was
    /// said.
    async fn number_entries(
        &self,
        record: &CompactionRecord,
        conversation: &Conversation,
        hashes: &[EntryHash],
    ) -> Result<Vec<Option<u64>>, Error> {
        let previous = match &record.previous {
            Some(previous) => self.catalog.find_record(previous).await?,
            None => None,
        };
        let shown = previous.map(|previous| previous.view_identity());
        let shown: HashMap<EntryHash, u64> = shown.into_iter().flatten().collect();
        let leading = conversation.leading_instructions() as u64;
        let (known, first) = (record.known_entries(), record.first_ordinal());
        let entries = (0..).zip(conversation.entries.iter().zip(hashes));
        let number = |(at, (entry, hash)): (u64, (&Entry, &EntryHash))| match at {
            _ if is_summary(entry) => None,
            at if at < leading => Some(at),
            at if at < known => shown.get(hash).copied(),
            at => Some(first + at - known),
        };
        Ok(entries.map(number).collect())
    }

    /// What a session protects by name, as a reader sees it, from all that it held up to a record.
    pub async fn protected_texts(&self, record: &CompactionRecord) -> Result<Vec<String>, Error> {
        let protected = self.protected_entries(&record.session_id).await?;
        if protected.is_empty() {
            return Ok(Vec::new());
        }
        let whole = self.restore_session(record).await?.bytes;
        let whole = restore::read_scope(&whole, record, TranscriptScope::Whole)?.entries;
        let named = name_entries(&whole).into_iter().zip(&whole);
        let pinned = named.filter(|(name, _)| name.is_some_and(|name| protected.contains(&name)));
        Ok(pinned.map(|(_, entry)| self.readable(entry)).collect())
    }

    /// The text of an entry as a reader sees it, redacted by the rules in force.
    pub fn readable(&self, entry: &Entry) -> String {
        let text = entry_text(entry);
        let redacted = self.redactor.redact(&text, &mut RedactionCounts::new());
        redacted.into_owned()
    }
}

impl CompactionReading {
    /// Counts the entries that went in.
    pub fn entry_count(&self) -> usize {
        self.conversation.entries.len()
    }

    /// Returns whether an entry of the input is one of the instructions at its head: those are sent again as they are, and no
    /// receipt counts them.
    pub fn is_instruction(&self, at: usize) -> bool {
        at < self.leading
    }

    /// Returns what an entry of the input costs.
    pub fn entry_tokens(&self, at: usize) -> Tokens {
        self.costs.get(at).map_or(Tokens(0), |cost| cost.all)
    }

    /// Returns the name by which an entry of the input is pinned; what says nothing has none.
    pub fn entry_name(&self, at: usize) -> Option<EntryHash> {
        self.names.get(at).copied().flatten()
    }

    /// Returns the number of an entry of the input in its session, by which pointers name it; none of a summary.
    pub fn ordinal(&self, at: usize) -> Option<u64> {
        self.ordinals.get(at).copied().flatten()
    }

    /// Returns the entries of the input that are pinned with one: a call and its results, also where it was made again.
    pub fn pinned_together(&self, at: usize) -> Vec<usize> {
        let name = self.entry_name(at);
        let named = self.names.iter().enumerate();
        let named = named.filter(|(_, other)| name.is_some() && **other == name);
        named.map(|(at, _)| at).collect()
    }

    /// Returns whether a session shows an entry of the input whole after a record: a call and its results together.
    pub fn is_shown_after(&self, at: usize, latest: &CompactionRecord) -> bool {
        let is_shown = |at: &usize| self.hashes.get(*at).is_some_and(|hash| latest.shows(hash));
        match self.pinned_together(at).as_slice() {
            [] => is_shown(&at),
            together => self.is_instruction(at) || together.iter().all(is_shown),
        }
    }

    /// Returns the view; `None` if none was archived.
    pub fn view(&self) -> Option<&[ViewEntry]> {
        self.after.as_deref()
    }

    /// Returns what each entry of the input is about, redacted: names come from a model's arguments as bodies do.
    pub fn subjects(&self) -> Vec<EntrySubject> {
        let entries = &self.conversation.entries;
        describe_entries(entries, &self.costs, &|name| self.redact(name))
    }

    /// Returns who speaks in a place of the view, and whether it is the summary.
    pub fn view_subject(&self, item: &ViewEntry) -> EntrySubject {
        EntrySubject::of(&item.entry, Vec::new())
    }

    /// Returns how an entry of the input begins, on one line of at most `chars` characters.
    pub fn opening(&self, at: usize, chars: usize) -> String {
        let entry = self.conversation.entries.get(at);
        entry.map_or_else(String::new, |entry| self.open_entry(entry, chars))
    }

    /// Returns how a place of the view begins, on one line.
    pub fn view_opening(&self, item: &ViewEntry, chars: usize) -> String {
        self.open_entry(&item.entry, chars)
    }

    /// Returns the whole text of an entry of the input as a reader sees it, redacted; `None` if there is none.
    pub fn text(&self, at: usize) -> Option<String> {
        let entry = self.conversation.entries.get(at)?;
        Some(self.redact(&entry_text(entry)))
    }

    /// Returns the whole text of a place of the view, redacted.
    pub fn view_text(&self, item: &ViewEntry) -> String {
        self.redact(&entry_text(&item.entry))
    }

    fn open_entry(&self, entry: &Entry, chars: usize) -> String {
        let parts = entry.blocks.iter().flat_map(Block::text_parts);
        let mut head = String::new();
        for part in parts.filter(|part| !part.trim().is_empty()) {
            let room = REDACTED_CHARS.saturating_sub(head.len());
            head.extend(part.trim_start().chars().take(room));
            head.push(' ');
            if head.len() >= REDACTED_CHARS {
                break;
            }
        }
        let clean = self.redact(&head);
        let words: Vec<&str> = clean.split_whitespace().collect();
        let line = words.join(" ");
        match line.chars().count() > chars {
            true => line.chars().take(chars).chain(['…']).collect(),
            false => line,
        }
    }

    fn redact(&self, text: &str) -> String {
        let mut counts = RedactionCounts::new();
        self.redactor.redact(text, &mut counts).into_owned()
    }
}

/// Marks the summary that a history goes on from: the one that names the compaction before this one.
fn mark_summary(conversation: &mut Conversation, record: &CompactionRecord) {
    let Some(previous) = &record.previous else {
        return;
    };
    let entries = conversation.entries.iter_mut();
    for entry in entries.filter(|entry| claims_summary(entry)) {
        let names_it = |part: &str| part.contains(previous.as_str());
        if entry
            .blocks
            .iter()
            .flat_map(Block::text_parts)
            .any(names_it)
        {
            entry.meta.kind = EntryKind::ForeignSummary;
        }
    }
}

/// Counts entries, the instructions at their head apart from the rest, as receipts do.
fn count_entries(entries: &[Entry], leading: usize, estimator: &dyn Estimator) -> Vec<EntryCost> {
    let (head, rest) = entries.split_at(leading.min(entries.len()));
    let count = |part: &[Entry]| {
        let blocks = part.iter().map(|entry| count_blocks(entry, estimator));
        let blocks: Vec<Vec<Units>> = blocks.collect();
        let framing = estimator.framing_units();
        let sums = blocks.iter();
        let sums = sums.map(|blocks| framing + blocks.iter().copied().sum());
        let tokens = share_tokens(sums, estimator).into_iter();
        let costs = tokens.zip(blocks).map(|(all, blocks)| EntryCost {
            blocks: divide_tokens(all, &blocks),
            all,
        });
        costs.collect::<Vec<EntryCost>>()
    };
    count(head).into_iter().chain(count(rest)).collect()
}

fn count_blocks(entry: &Entry, estimator: &dyn Estimator) -> Vec<Units> {
    let blocks = entry.blocks.iter();
    blocks.map(|block| estimator.count_block(block)).collect()
}

/// Divides tokens in proportion, so that the parts add up to them; nothing has no parts.
fn divide_tokens(all: Tokens, parts: &[Units]) -> Vec<Tokens> {
    let whole = u128::from(parts.iter().copied().sum::<Units>().0.max(1));
    let (mut sum, mut told) = (0_u128, 0_u64);
    let divide = |part: &Units| {
        sum += u128::from(part.0);
        let reached = u64::try_from(u128::from(all.0) * sum / whole).unwrap_or(all.0);
        let grown = Tokens(reached - told);
        told = reached;
        grown
    };
    parts.iter().map(divide).collect()
}

/// Turns units into whole tokens whose sum is that of all units together: each is what the sum grows by.
fn share_tokens(parts: impl Iterator<Item = Units>, estimator: &dyn Estimator) -> Vec<Tokens> {
    let (mut sum, mut told) = (Units(0), Tokens(0));
    let grow = |units: Units| {
        sum += units;
        let all = estimator.to_tokens(sum);
        let grown = Tokens(all.0 - told.0);
        told = all;
        grown
    };
    parts.map(grow).collect()
}

fn count_view(mut shown: Vec<ViewEntry>, estimator: &dyn Estimator) -> Vec<ViewEntry> {
    let leading = shown.iter().take_while(|item| item.entry.is_leading());
    let (head, rest) = shown.split_at(leading.count());
    let count = |part: &[ViewEntry]| {
        let units = part.iter().map(|item| estimator.count_entry(&item.entry));
        share_tokens(units, estimator)
    };
    let tokens = [count(head), count(rest)].concat();
    for (item, tokens) in shown.iter_mut().zip(tokens) {
        item.tokens = tokens;
    }
    shown
}

fn view_entry(item: &ViewItem, conversation: &Conversation) -> Option<ViewEntry> {
    Some(ViewEntry {
        source: item.entry_index(),
        is_edited: matches!(item, ViewItem::Edited { .. }),
        tokens: Tokens(0),
        entry: item.shown_entry(conversation)?,
    })
}

/// A tool and the file that its call names.
type NamedCall = (String, Option<String>);

fn describe_entries(
    entries: &[Entry],
    costs: &[EntryCost],
    redact: &dyn Fn(&str) -> String,
) -> Vec<EntrySubject> {
    let mut named: HashMap<&str, NamedCall> = HashMap::new();
    let mut subjects = Vec::with_capacity(entries.len());
    for (entry, cost) in entries.iter().zip(costs) {
        let mut calls = Vec::new();
        for (block, tokens) in entry.blocks.iter().zip(&cost.blocks) {
            if let Block::ToolCall {
                id,
                name,
                arguments,
            } = block
            {
                let tool = redact(&plain_tool_name(name));
                let path = named_path(arguments).map(|path| redact(&path));
                named.insert(id, (tool, path));
            }
            let id = match block {
                Block::ToolCall { id, .. } | Block::ToolResult { call: id, .. } => id,
                _ => continue,
            };
            calls.extend(named.get(id.as_str()).map(|(tool, path)| CalledTool {
                tool: tool.clone(),
                path: path.clone(),
                tokens: *tokens,
            }));
        }
        subjects.push(EntrySubject::of(entry, calls));
    }
    subjects
}

impl EntrySubject {
    fn of(entry: &Entry, calls: Vec<CalledTool>) -> EntrySubject {
        EntrySubject {
            role: match entry.has_results() {
                true => Role::Tool,
                false => entry.role,
            },
            calls,
            is_summary: is_summary(entry),
        }
    }
}

fn is_summary(entry: &Entry) -> bool {
    matches!(
        entry.meta.kind,
        EntryKind::Summary { .. } | EntryKind::ForeignSummary
    )
}

/// Returns the file that a call's arguments name.
fn named_path(arguments: &str) -> Option<String> {
    let members: Value = serde_json::from_str(arguments).ok()?;
    let mut named = PATH_MEMBERS.iter().filter_map(|name| members.get(name));
    named.find_map(Value::as_str).map(str::to_owned)
}

/// Plots what each call was sent: what its provider reported, or else all entries before it, counted from the view of
/// the last compaction before it on.
fn plot_calls(
    entries: &[Entry],
    document: Option<&Document>,
    costs: &[EntryCost],
    records: &[CompactionRecord],
) -> Vec<CallPoint> {
    let mut ends = input_ends(records, entries.len()).into_iter().peekable();
    let mut calls: Vec<CallPoint> = Vec::new();
    let (mut size, mut fresh, mut answering) = (0, None, false);
    for (at, (entry, cost)) in entries.iter().zip(costs).enumerate() {
        while let Some((number, _, after)) = ends.next_if(|(_, end, _)| *end <= at) {
            size = after;
            fresh = Some(number);
        }
        let is_answer = entry.role == Role::Assistant;
        if is_answer && !answering {
            let usage = entry.meta.usage;
            let counted = Tokens(size);
            calls.push(CallPoint {
                tokens: usage.map_or(counted, |usage| usage.prompt_tokens()),
                usage,
                said_at: document.and_then(|document| time_of(document, at)),
                compaction: fresh.take(),
            });
        }
        answering = is_answer;
        size += cost.all.0;
    }
    calls
}

/// Returns for each compaction its number, how many of the session's entries were said before it, and what its view costs.
/// The last one was given the session to its end; what an agent had left behind before the first stands before them all.
fn input_ends(records: &[CompactionRecord], entries: usize) -> Vec<(usize, usize, u64)> {
    let mut ends: Vec<(usize, usize, u64)> = Vec::new();
    let mut all = 0;
    for (number, record) in records.iter().enumerate() {
        let given = record.entry_hashes.len();
        all = match record.continues {
            InputRelation::View => all + given.saturating_sub(record.new_from as usize),
            InputRelation::Fresh | InputRelation::Transcript => given,
        };
        let fixed = record.receipt.as_json().get("tokens_fixed");
        let fixed = fixed.and_then(Value::as_u64).unwrap_or(0);
        if let Some(after) = record.receipt.tokens_after() {
            ends.push((number, all, after.0 + fixed));
        }
    }
    let before = entries.saturating_sub(all);
    for (_, end, _) in &mut ends {
        *end += before;
    }
    ends
}

#[cfg(test)]
mod tests {
    use compact_core::token::Heuristic;

    use super::*;

    #[test]
    fn parts_of_an_entry_add_up_to_it_in_proportion() {
        let divide = |all, parts: &[u64]| {
            let parts: Vec<Units> = parts.iter().copied().map(Units).collect();
            divide_tokens(Tokens(all), &parts)
        };
        assert_eq!(divide(10, &[1, 1, 2]), [2, 3, 5].map(Tokens));
        assert_eq!(divide(7, &[0, 9]), [0, 7].map(Tokens));
        assert_eq!(divide(4, &[0]), [Tokens(0)]);
    }

    #[test]
    fn tokens_of_parts_add_up_to_the_tokens_of_all_together() {
        let parts = [5, 1, 0, 9, 2].map(Units);
        let shared = share_tokens(parts.into_iter(), &Heuristic);
        assert_eq!(shared, [2, 0, 0, 2, 1].map(Tokens));
        assert_eq!(
            shared.into_iter().map(|tokens| tokens.0).sum::<u64>(),
            Heuristic.to_tokens(Units(17)).0
        );
    }
}
