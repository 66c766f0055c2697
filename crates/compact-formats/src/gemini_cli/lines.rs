//! Chats of one record per line, as Gemini CLI writes them since it appends: a head, messages, `$set`
//! that replaces what it names (the list of messages, after a compression), and `$rewindTo` that
//! takes messages back.
//!
//! A message that comes again takes the place of its earlier self. The context is what is left at the
//! end; everything that was said is each message once, those that were taken back excepted.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use compact_core::view::View;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::GeminiCliWire;
use crate::error::FormatError;
use crate::json::{ItemContext, Members, is_list, quote, span_in, string_value};
use crate::segment::{self, SegmentedWire};
use crate::source::{self, EntryPlace, SourceLayout, SourceLine, TranscriptReading};
use crate::wire::{DocumentContext, LineWriter};
use crate::{BoundaryStamp, Document, TranscriptScope};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GeminiCliRecord<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    session_id: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    #[serde(rename = "$set")]
    set: Option<&'a RawValue>,
    #[serde(rename = "$rewindTo")]
    rewind_to: Option<&'a RawValue>,
}

impl GeminiCliRecord<'_> {
    fn is_known(&self) -> bool {
        let named = [self.id, self.session_id, self.set, self.rewind_to];
        named.iter().any(Option::is_some)
    }
}

/// Returns true for records, one per line; false for one document.
pub(super) fn is_lines(source: &[u8]) -> bool {
    let mut said = source::line_spans(source).into_iter().filter_map(|span| {
        let line = source.get(span)?.trim_ascii();
        (!line.is_empty()).then_some(line)
    });
    let first = said.next().unwrap_or_default();
    let head = std::str::from_utf8(first).unwrap_or_default();
    let is_record = || serde_json::from_str::<serde::de::IgnoredAny>(head).is_ok();
    is_record() && (said.next().is_some() || Members::from_json(head).get("messages").is_none())
}

/// Reads the records of a chat, one per line.
pub(super) fn read(
    source: &[u8],
    scope: TranscriptScope,
) -> Result<TranscriptReading, FormatError> {
    let spans = source::line_spans(source);
    let mut reading = TranscriptReading::new(SourceLayout::List {
        open: 0,
        messages: Vec::new(),
    });
    let records =
        source::read_objects::<GeminiCliRecord<'_>>(source, &spans, &mut reading.problems)?;
    if !records.iter().any(|record| record.value.is_known()) {
        return Err(source::unrecognised_error(source));
    }
    let mut chat = GeminiCliChat::default();
    for record in &records {
        let named = string_value(record.value.session_id).map(String::from);
        reading.session_id = reading.session_id.take().or(named);
        chat.apply_record(source, record, scope)?;
    }
    let messages = chat.shown_spans(source)?;
    for (line, span) in messages.iter().enumerate() {
        let json = source::span_text(source, span.clone())?;
        let at = ItemContext {
            source,
            offset: span.start,
        };
        if let Some(message) = GeminiCliWire.read_message(at, json)? {
            reading.model = GeminiCliWire.model_name(json).or(reading.model.take());
            let (span, part) = (span.clone(), None);
            let place = EntryPlace { line, span, part };
            reading
                .drafts
                .extend(segment::draft_segments(message, &place));
        }
    }
    reading.layout = SourceLayout::Lines {
        lines: messages,
        live_from: 0,
    };
    Ok(reading)
}

/// Messages in order, each where it was said last.
#[derive(Default)]
struct GeminiCliChat {
    messages: Vec<(String, Range<usize>)>,
    places: HashMap<String, usize>,
}

impl GeminiCliChat {
    fn apply_record(
        &mut self,
        source: &[u8],
        line: &SourceLine<'_, GeminiCliRecord<'_>>,
        scope: TranscriptScope,
    ) -> Result<(), FormatError> {
        let record = &line.value;
        let at = ItemContext {
            source,
            offset: line.offset,
        };
        let listed = |list: Option<&RawValue>| -> Result<Vec<(String, Range<usize>)>, FormatError> {
            let Some(list) = list.filter(|list| is_list(list)) else {
                return Ok(Vec::new());
            };
            let elements = at
                .read_list("messages", list)?
                .into_iter()
                .filter_map(|element| {
                    let id =
                        string_value(Members::from_json(element.get()).get("id"))?.into_owned();
                    let span = span_in(line.json, element.get());
                    Some((id, line.offset + span.start..line.offset + span.end))
                });
            Ok(elements.collect())
        };
        if let Some(to) = string_value(record.rewind_to) {
            self.rewind(&to);
        } else if let Some(id) = string_value(record.id) {
            self.put_message(id.into_owned(), line.entry_place().span);
        } else if let Some(set) = record.set {
            let list = Members::from_json(set.get()).get("messages");
            if list.is_some() && scope == TranscriptScope::Live {
                *self = GeminiCliChat::default();
            }
            listed(list)?
                .into_iter()
                .for_each(|(id, span)| self.put_message(id, span));
        } else {
            listed(record.messages)?
                .into_iter()
                .for_each(|(id, span)| self.put_message(id, span));
        }
        Ok(())
    }

    fn put_message(&mut self, id: String, span: Range<usize>) {
        let known = self.places.get(&id).copied();
        match known.and_then(|at| self.messages.get_mut(at)) {
            Some((_, earlier)) => *earlier = span,
            None => {
                self.places.insert(id.clone(), self.messages.len());
                self.messages.push((id, span));
            }
        }
    }

    /// Takes back a message and what was said since; everything, if the message is unknown.
    fn rewind(&mut self, id: &str) {
        let from = self.places.get(id).copied().unwrap_or(0);
        for (id, _) in self.messages.drain(from..) {
            self.places.remove(&id);
        }
    }

    /// Returns the messages without those that only repeat what tools answered: the reply holds it already.
    fn shown_spans(self, source: &[u8]) -> Result<Vec<Range<usize>>, FormatError> {
        let mut answered = HashSet::new();
        let mut shown = Vec::with_capacity(self.messages.len());
        for (_, span) in self.messages {
            let json = Members::from_json(source::span_text(source, span.clone())?);
            let calls = list_elements(json.get("toolCalls"));
            answered.extend(
                calls.filter_map(|call| owned_string(Members::from_json(call.get()).get("id"))),
            );
            let mut responses = list_elements(json.get("content"))
                .map(answered_call)
                .peekable();
            let repeats = responses.peek().is_some()
                && responses.all(|id| id.is_some_and(|id| answered.contains(&id)));
            if !repeats {
                shown.push(span);
            }
        }
        Ok(shown)
    }
}

fn list_elements(list: Option<&RawValue>) -> impl Iterator<Item = &RawValue> {
    let list = list.filter(|list| is_list(list)).map(RawValue::get);
    let elements = list.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list).ok());
    elements.into_iter().flatten()
}

/// Returns the call that a part answers.
fn answered_call(part: &RawValue) -> Option<String> {
    let response = Members::from_json(part.get()).get("functionResponse")?;
    owned_string(Members::from_json(response.get()).get("id"))
}

fn owned_string(raw: Option<&RawValue>) -> Option<String> {
    string_value(raw).map(Cow::into_owned)
}

/// Returns the view as a chat: the head, and one message per line.
pub(super) fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let source = page.bytes();
    let mut writer = LineWriter::new(source);
    for span in source::line_spans(source) {
        // The last line may be torn within a character.
        let Ok(line) = source::span_text(source, span) else {
            continue;
        };
        if Members::from_json(line).get("projectHash").is_some() {
            writer.write_line(line.as_bytes());
            break;
        }
    }
    for element in segment::view_messages(&GeminiCliWire, page, view)? {
        writer.write_line(element.as_bytes());
    }
    Ok(writer.finish(source))
}

/// Returns one record that makes the view the list of messages, as a compression does.
pub(super) fn append(
    page: &DocumentContext<'_>,
    view: &View,
    stamp: &BoundaryStamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    let messages = segment::view_messages(&GeminiCliWire, page, view)?;
    let record = format!(
        "{{\"$set\":{{\"messages\":[{}],\"lastUpdated\":{}}}}}",
        messages.join(","),
        quote(stamp.timestamp)
    );
    let mut writer = LineWriter::following(page.bytes());
    writer.write_line(record.as_bytes());
    Ok(writer.into_lines())
}

/// Returns the records followed by the later one's messages; one that has grown since comes again.
pub(super) fn extend(
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let (place, _) = later.entry_source(from)?;
    let mut writer = LineWriter::starting_with(&first.source);
    if let SourceLayout::Lines { lines, .. } = &later.document.layout {
        for span in lines.iter().skip(place.line) {
            writer.write_line(later.bytes().get(span.clone()).unwrap_or_default());
        }
    }
    Ok(writer.finish(&first.source))
}
