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

use super::message::GeminiMessages;
use crate::error::FormatError;
use crate::json::{At, Members, is_list, lenient, quote, span_in};
use crate::segment::{self, Segmented};
use crate::source::{self, Layout, Line, Place, Reading};
use crate::wire::{LineWriter, Page};
use crate::{Document, Scope, Stamp};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    session_id: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    #[serde(rename = "$set")]
    set: Option<&'a RawValue>,
    #[serde(rename = "$rewindTo")]
    rewind_to: Option<&'a RawValue>,
}

impl Record<'_> {
    fn is_known(&self) -> bool {
        let named = [self.id, self.session_id, self.set, self.rewind_to];
        named.iter().any(Option::is_some)
    }
}

/// True for records, one per line; false for one document.
pub(super) fn is_lines(source: &[u8]) -> bool {
    let mut said = source::lines(source).into_iter().filter_map(|span| {
        let line = source.get(span)?.trim_ascii();
        (!line.is_empty()).then_some(line)
    });
    let first = said.next().unwrap_or_default();
    let head = std::str::from_utf8(first).unwrap_or_default();
    let is_record = || serde_json::from_str::<serde::de::IgnoredAny>(head).is_ok();
    is_record() && (said.next().is_some() || Members::of(head).get("messages").is_none())
}

/// Reads the records.
pub(super) fn read(source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
    let spans = source::lines(source);
    let mut reading = Reading::new(Layout::List {
        open: 0,
        messages: Vec::new(),
    });
    let records = source::objects::<Record<'_>>(source, &spans, &mut reading.problems)?;
    if !records.iter().any(|record| record.value.is_known()) {
        return Err(source::unlike(source));
    }
    let mut chat = Chat::default();
    for record in &records {
        let named = lenient(record.value.session_id).map(String::from);
        reading.session_id = reading.session_id.take().or(named);
        chat.take(source, record, scope)?;
    }
    let messages = chat.shown(source)?;
    for (line, span) in messages.iter().enumerate() {
        let json = source::text(source, span.clone())?;
        let at = At {
            source,
            offset: span.start,
        };
        if let Some(message) = GeminiMessages.message(at, json)? {
            reading.model = GeminiMessages.model(json).or(reading.model.take());
            let (span, part) = (span.clone(), None);
            let place = Place { line, span, part };
            reading.drafts.extend(segment::drafts(message, &place));
        }
    }
    reading.layout = Layout::Lines {
        lines: messages,
        live_from: 0,
    };
    Ok(reading)
}

/// Messages in order, each where it was said last.
#[derive(Default)]
struct Chat {
    messages: Vec<(String, Range<usize>)>,
    places: HashMap<String, usize>,
}

impl Chat {
    fn take(
        &mut self,
        source: &[u8],
        line: &Line<'_, Record<'_>>,
        scope: Scope,
    ) -> Result<(), FormatError> {
        let record = &line.value;
        let at = At {
            source,
            offset: line.offset,
        };
        let listed = |list: Option<&RawValue>| -> Result<Vec<(String, Range<usize>)>, FormatError> {
            let Some(list) = list.filter(|list| is_list(list)) else {
                return Ok(Vec::new());
            };
            let elements = at
                .list("messages", list)?
                .into_iter()
                .filter_map(|element| {
                    let id = lenient(Members::of(element.get()).get("id"))?.into_owned();
                    let span = span_in(line.json, element.get());
                    Some((id, line.offset + span.start..line.offset + span.end))
                });
            Ok(elements.collect())
        };
        if let Some(to) = lenient(record.rewind_to) {
            self.rewind(&to);
        } else if let Some(id) = lenient(record.id) {
            self.say(id.into_owned(), line.place().span);
        } else if let Some(set) = record.set {
            let list = Members::of(set.get()).get("messages");
            if list.is_some() && scope == Scope::Live {
                *self = Chat::default();
            }
            listed(list)?
                .into_iter()
                .for_each(|(id, span)| self.say(id, span));
        } else {
            listed(record.messages)?
                .into_iter()
                .for_each(|(id, span)| self.say(id, span));
        }
        Ok(())
    }

    fn say(&mut self, id: String, span: Range<usize>) {
        let known = self.places.get(&id).copied();
        match known.and_then(|at| self.messages.get_mut(at)) {
            Some((_, earlier)) => *earlier = span,
            None => {
                self.places.insert(id.clone(), self.messages.len());
                self.messages.push((id, span));
            }
        }
    }

    /// The message and what was said since is taken back; all of it when nobody knows the message.
    fn rewind(&mut self, id: &str) {
        let from = self.places.get(id).copied().unwrap_or(0);
        for (id, _) in self.messages.drain(from..) {
            self.places.remove(&id);
        }
    }

    /// The messages without those that only repeat what tools answered: the reply holds it already.
    fn shown(self, source: &[u8]) -> Result<Vec<Range<usize>>, FormatError> {
        let mut answered = HashSet::new();
        let mut shown = Vec::with_capacity(self.messages.len());
        for (_, span) in self.messages {
            let json = Members::of(source::text(source, span.clone())?);
            let calls = elements(json.get("toolCalls"));
            answered.extend(calls.filter_map(|call| text(Members::of(call.get()).get("id"))));
            let mut responses = elements(json.get("content")).map(response).peekable();
            let repeats = responses.peek().is_some()
                && responses.all(|id| id.is_some_and(|id| answered.contains(&id)));
            if !repeats {
                shown.push(span);
            }
        }
        Ok(shown)
    }
}

fn elements(list: Option<&RawValue>) -> impl Iterator<Item = &RawValue> {
    let list = list.filter(|list| is_list(list)).map(RawValue::get);
    let elements = list.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list).ok());
    elements.into_iter().flatten()
}

/// The call that a part answers.
fn response(part: &RawValue) -> Option<String> {
    let response = Members::of(part.get()).get("functionResponse")?;
    text(Members::of(response.get()).get("id"))
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    lenient(raw).map(Cow::into_owned)
}

/// The view as a chat: the head, and one message per line.
pub(super) fn emit(page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let source = page.bytes();
    let mut writer = LineWriter::new(source);
    for span in source::lines(source) {
        let line = source::text(source, span)?;
        if Members::of(line).get("projectHash").is_some() {
            writer.line(line.as_bytes());
            break;
        }
    }
    for element in segment::elements(&GeminiMessages, page, view)? {
        writer.line(element.as_bytes());
    }
    Ok(writer.finish(source))
}

/// One record that makes the view the list of messages, as a compression does.
pub(super) fn append(
    page: &Page<'_>,
    view: &View,
    stamp: &Stamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    let messages = segment::elements(&GeminiMessages, page, view)?;
    let record = format!(
        "{{\"$set\":{{\"messages\":[{}],\"lastUpdated\":{}}}}}",
        messages.join(","),
        quote(stamp.timestamp)
    );
    let mut writer = LineWriter::behind(page.bytes());
    writer.line(record.as_bytes());
    Ok(writer.into_lines())
}

/// The records followed by the later one's messages; one that has grown since comes again.
pub(super) fn extend(
    first: &Document,
    later: &Page<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let (place, _) = later.entry(from)?;
    let mut writer = LineWriter::after(&first.source);
    if let Layout::Lines { lines, .. } = &later.document.layout {
        for span in lines.iter().skip(place.line) {
            writer.line(source::text(later.bytes(), span.clone())?.as_bytes());
        }
    }
    Ok(writer.finish(&first.source))
}
