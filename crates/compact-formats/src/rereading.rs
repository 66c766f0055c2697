//! A body of which the first messages were read before: the rest is read, and those are taken over.
//!
//! Clients send their whole history with every request, and most of it has the bytes that it had in the request
//! before. What follows those bytes, in the list and behind it, is read as a body of its own, in which the known messages
//! are left out. Whatever is not certain to be read as in the whole body is left to a reader of the whole body.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use compact_core::engine;
use compact_core::message::{Conversation, Entry, EntryKind, Role};
use memchr::memmem;

use crate::body::is_beside;
use crate::growth;
use crate::source::{EntryDraft, EntryPlace, SourceLayout, TranscriptReading};
use crate::surrogate::readable_source;
use crate::{Document, ParsedTranscript, TranscriptScope, flag, pairing, special_text};

/// A body that was read behind what was known of it.
#[derive(Debug)]
pub struct RereadTranscript {
    /// What a reader of the whole body gets, but for problems: there are those of what was read alone.
    pub parsed: ParsedTranscript,
    /// The body without the messages that were known: all of its other members, and the new messages.
    pub rest: Bytes,
}

/// The bytes of a body that stand for messages which were read before.
struct KnownMessages {
    count: usize,
    /// They and what parts them from the next; the first byte is the one behind the list's bracket.
    span: Range<usize>,
}

impl KnownMessages {
    /// Finds how many messages of a document a body begins with.
    fn find(document: &Document, source: &[u8]) -> Option<KnownMessages> {
        let SourceLayout::List { open, messages } = &document.layout else {
            return None;
        };
        let is_list = document.source.get(open.checked_sub(1)?) == Some(&b'[');
        let same = common_length(&document.source, source);
        let count = messages.partition_point(|message| message.end <= same);
        let end = messages.get(count.checked_sub(1)?)?.end;
        let behind = source.get(end..)?;
        let rest = behind.trim_ascii_start();
        let rest = match rest.first()? {
            b']' => rest,
            // What follows must be a message: a list may not end with a comma.
            b',' => {
                Some(rest.get(1..)?.trim_ascii_start()).filter(|rest| rest.starts_with(b"{"))?
            }
            _ => return None,
        };
        let span = *open..end + (behind.len() - rest.len());
        is_list.then_some(KnownMessages { count, span })
    }

    /// Returns the body without them. On one line it is one document, whatever stands in them.
    fn leave_out(&self, source: &[u8]) -> Option<Bytes> {
        let (before, behind) = (source.get(..self.span.start)?, source.get(self.span.end..)?);
        let mut rest = BytesMut::with_capacity(before.len() + behind.len());
        rest.extend_from_slice(before);
        rest.extend_from_slice(behind);
        let has_lines = memchr::memchr(b'\n', rest.trim_ascii_end()).is_some();
        (!has_lines).then(|| rest.freeze())
    }

    /// Returns where in the whole body something stands that was found in the rest of it.
    fn moved(&self, span: &Range<usize>) -> Range<usize> {
        let by = match span.start < self.span.start {
            true => 0,
            false => self.span.len(),
        };
        span.start + by..span.end + by
    }

    fn moved_messages(&self, layout: &SourceLayout) -> Vec<Range<usize>> {
        match layout {
            SourceLayout::List { messages, .. } => {
                messages.iter().map(|span| self.moved(span)).collect()
            }
            SourceLayout::Lines { .. } => Vec::new(),
        }
    }

    /// Returns whether an entry is one of theirs.
    fn hold(&self, place: &EntryPlace) -> bool {
        place.line < self.count
    }
}

impl Document {
    /// Reads a body that begins with messages of this one, whose conversation is given; what is equal to the byte is not
    /// read again. `None` where that is not certain to give what [`parse`](crate::parse) does.
    pub fn reread(&self, conversation: &Conversation, source: &Bytes) -> Option<RereadTranscript> {
        let known = KnownMessages::find(self, source)?;
        let rest = known.leave_out(source)?;
        let mut reading = self.read_rest(&rest, &known)?;
        let mut kept = self.keep_entries(conversation, &known)?;
        let beside = take_beside(&mut reading, &known);
        let (mut entries, mut places) = pairing::name_entries(beside);
        if !self.are_beside(conversation, &entries) {
            return None;
        }
        let spans = known.moved_messages(&reading.layout);
        let added = self.read_added(&kept, &known, source, &spans)?;
        let mut blocks = kept.iter().chain(&added.0).flat_map(|entry| &entry.blocks);
        let names_storage = memmem::find(&rest, b"\"store\"").is_some();
        if names_storage && growth::names_reasoning(&mut blocks) {
            return None;
        }
        // Grown bit by bit, they would take twice the room.
        entries.reserve_exact(kept.len() + added.0.len());
        entries.append(&mut kept);
        entries.extend(added.0);
        let listed = self.places.iter().filter(|place| known.hold(place));
        places.reserve_exact(self.places.len() + added.1.len());
        places.extend(listed.cloned());
        places.extend(added.1);
        let messages = self.known_spans(&known).chain(spans).collect();
        let parsed = ParsedTranscript {
            document: Document {
                format: self.format,
                rules: reading.rules.unwrap_or_else(|| self.format.rules()),
                source: source.clone(),
                layout: SourceLayout::List {
                    open: known.span.start,
                    messages,
                },
                places,
            },
            conversation: Conversation {
                session_id: reading.session_id,
                model: reading.model,
                entries,
                tools: reading.tools,
            },
            problems: Vec::new(),
        };
        Some(RereadTranscript { parsed, rest })
    }

    /// Reads what is not known, as a body of its own.
    fn read_rest(&self, rest: &Bytes, known: &KnownMessages) -> Option<TranscriptReading> {
        let readable = readable_source(rest);
        let reading = (self.format.wire().read)(&readable, TranscriptScope::Live).ok()?;
        let is_same_list =
            matches!(&reading.layout, SourceLayout::List { open, .. } if *open == known.span.start);
        (is_same_list && reading.problems.is_empty()).then_some(reading)
    }

    /// Returns the entries of messages that are known, as a reader finds them.
    fn keep_entries(
        &self,
        conversation: &Conversation,
        known: &KnownMessages,
    ) -> Option<Vec<Entry>> {
        let entries = &conversation.entries;
        if entries.len() != self.places.len() {
            return None;
        }
        let all = entries.iter().zip(&self.places);
        let mut kept = Vec::with_capacity(entries.len());
        // The last role before the message that an entry is of.
        let (mut line, mut before, mut last) = (usize::MAX, None, None);
        for (entry, place) in all {
            if place.line != line {
                (line, before) = (place.line, last);
            }
            last = Some(entry.role);
            if !known.hold(place) {
                continue;
            }
            let mut entry = entry.clone();
            // Whoever has the conversation may have found out what such an entry is.
            if engine::claims_summary(&entry) || entry.meta.kind == EntryKind::ForeignSummary {
                entry.meta.kind = self.read_kind(place, before)?;
            }
            kept.push(entry);
        }
        Some(kept)
    }

    /// Reads what an entry says of itself whose message follows one of this role.
    fn read_kind(&self, place: &EntryPlace, before: Option<Role>) -> Option<EntryKind> {
        let SourceLayout::List { messages, .. } = &self.layout else {
            return None;
        };
        let message = messages.get(place.line)?.clone();
        let mut reading = self.read_elements(&self.source, &[message], place.line)?;
        special_text::note_speakers_after(before, &mut reading.drafts);
        let mut drafts = reading.drafts.into_iter();
        let draft = drafts.find(|draft| draft.place.part == place.part)?;
        (!reading.names_users).then_some(draft.meta.kind)
    }

    /// Reads messages that follow entries, as the whole list has them.
    fn read_added(
        &self,
        before: &[Entry],
        known: &KnownMessages,
        source: &Bytes,
        spans: &[Range<usize>],
    ) -> Option<(Vec<Entry>, Vec<EntryPlace>)> {
        let mut reading = self.read_elements(source, spans, known.count)?;
        let last = before.last().map(|entry| entry.role);
        special_text::note_speakers_after(last, &mut reading.drafts);
        if !growth::is_certain(before, &reading) {
            return None;
        }
        let (entries, places) = pairing::name_entries(reading.drafts);
        (!growth::is_name_taken(before, &entries)).then_some((entries, places))
    }

    fn read_elements(
        &self,
        source: &[u8],
        spans: &[Range<usize>],
        first: usize,
    ) -> Option<TranscriptReading> {
        let read = self.format.wire().read_elements?;
        let elements = growth::list_elements(source, spans, first)?;
        let mut reading = read(source, elements).ok()?;
        flag::note_flags(source, &mut reading);
        Some(reading)
    }

    /// Returns whether entries beside the list have the names that such entries had: no message can have taken one.
    fn are_beside(&self, conversation: &Conversation, entries: &[Entry]) -> bool {
        let all = conversation.entries.iter().zip(&self.places);
        let before = all.filter(|(_, place)| is_beside(place));
        let before = before.map(|(entry, _)| &entry.id);
        before.eq(entries.iter().map(|entry| &entry.id))
    }

    fn known_spans(&self, known: &KnownMessages) -> impl Iterator<Item = Range<usize>> {
        let spans = match &self.layout {
            SourceLayout::List { messages, .. } => messages.as_slice(),
            SourceLayout::Lines { .. } => &[],
        };
        spans.iter().take(known.count).cloned()
    }
}

/// Takes what stands beside the list out of a reading, with its places in the whole body.
fn take_beside(reading: &mut TranscriptReading, known: &KnownMessages) -> Vec<EntryDraft> {
    special_text::note_speakers(&mut reading.drafts);
    let drafts = std::mem::take(&mut reading.drafts).into_iter();
    let beside = drafts.filter(|draft| is_beside(&draft.place));
    let moved = beside.map(|mut draft| {
        draft.place.span = known.moved(&draft.place.span);
        draft
    });
    moved.collect()
}

/// Returns how many bytes two texts have in common from the start on.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 4096;
    let steps = one.chunks(STEP).zip(other.chunks(STEP));
    let same = STEP * steps.take_while(|(a, b)| a == b).count();
    let same = same.min(one.len()).min(other.len());
    let rest = one.iter().skip(same).zip(other.iter().skip(same));
    same + rest.take_while(|(a, b)| a == b).count()
}
