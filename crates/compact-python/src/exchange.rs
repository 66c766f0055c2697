//! Reads a client's messages as a document of the engine, and returns a view as the client's messages.
//!
//! The document is the provider's own request body: the members beside the messages (`head`), and the list.
//! A message that a view keeps is copied from it byte for byte, which is how its index is found again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use compact::Prompt;
use compact::format::{self, Document, Format, FormatError, ParsedTranscript, TranscriptScope};
use compact::message::{EntryHash, is_nameable, naming_hashes};
use pyo3::PyErr;
use pyo3::pybacked::PyBackedStr;
use serde_json::value::RawValue;

use crate::failure::{ErrorClass, error_with_causes, error_with_message};

/// A history as a client passed it.
pub(crate) struct ClientHistory {
    /// The provider's format; `None` detects it from the content.
    pub(crate) format: Option<Format>,
    /// Members beside the list as a JSON object; empty for a bare list.
    pub(crate) head: String,
    /// The member that holds the list.
    pub(crate) list: String,
    /// The messages, one JSON text each.
    pub(crate) items: Vec<PyBackedStr>,
}

/// A message of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SentItem {
    /// The index of a message that was passed and is unchanged.
    Same(usize),
    /// The JSON of a new or changed message.
    Other(String),
}

/// A view as the client's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentMessages {
    /// The messages; `None` for all that were passed.
    pub(crate) items: Option<Vec<SentItem>>,
    /// Members beside the list that are new or changed, as a JSON object.
    pub(crate) beside: Option<String>,
}

impl ClientHistory {
    /// Parses the messages; an error names the index of the one that is wrong.
    pub(crate) fn parse(&self) -> Result<ParsedTranscript, PyErr> {
        let (opening, closing) = self.body_ends();
        let body = [&opening, &*self.items.join(","), closing].concat();
        format::parse(body, self.format, TranscriptScope::Live)
            .map_err(|error| self.locate_error(opening.len(), &error))
    }

    /// Returns the hashes by which the messages are recognised in any history of their session.
    pub(crate) fn entry_names(&self) -> Result<BTreeSet<EntryHash>, PyErr> {
        let is_lines = self.format.is_some_and(|format| !format.is_sent());
        let entries = match is_lines {
            true => format::parse(self.items.join("\n"), self.format, TranscriptScope::Live)
                .map_err(|error| error_with_causes(ErrorClass::Format, &error))?,
            false => self.parse()?,
        }
        .conversation
        .entries;
        if let Some(place) = entries.iter().position(|e| !is_nameable(e)) {
            let message = format!(
                "messages[{place}] has no content to recognise it by: \
                 set its meta, or add text to it"
            );
            return Err(error_with_message(ErrorClass::Format, &message));
        }
        let hashes = EntryHash::from_entries(&entries);
        Ok(naming_hashes(&entries, &hashes, |_| true))
    }

    /// Returns the parts of the body before and after the messages.
    fn body_ends(&self) -> (String, &'static str) {
        let Some(head) = self.head.trim_end().strip_suffix('}') else {
            return ("[".to_owned(), "]");
        };
        let comma = if head.ends_with('{') { "" } else { "," };
        (format!("{head}{comma}\"{}\":[", self.list), "]}")
    }

    /// Converts the position of an error in the body to the index of a message.
    fn locate_error(&self, opening: usize, error: &FormatError) -> PyErr {
        let (FormatError::Field { at, .. }
        | FormatError::Json { at, .. }
        | FormatError::Unrecognised { at }
        | FormatError::Utf8 { at }) = error
        else {
            return error_with_causes(ErrorClass::Format, error);
        };
        // The body is one line, since JSON escapes newlines in strings.
        let mut end = opening;
        let place = self.items.iter().position(|item| {
            end += item.len() + 1;
            (opening..end).contains(&at.column.saturating_sub(1))
        });
        let message = error.to_string();
        let words = message.strip_prefix(&format!("{at}: "));
        match (place, words) {
            (Some(place), Some(words)) => {
                error_with_message(ErrorClass::Format, &format!("messages[{place}]: {words}"))
            }
            _ => error_with_causes(ErrorClass::Format, error),
        }
    }

    /// Returns what is kept of the history once it was answered.
    pub(crate) fn to_passed(&self) -> PassedHistory {
        PassedHistory {
            mark: NEXT_MARK.fetch_add(1, Ordering::Relaxed),
            head: self.head.clone(),
            list: self.list.clone(),
            places: MessagePlaces::default(),
        }
    }
}

/// What is known of the history that a client passed last: enough to tell a view by its messages.
#[derive(Debug)]
pub(crate) struct PassedHistory {
    /// Names the history among all that this process was passed.
    pub(crate) mark: u64,
    head: String,
    list: String,
    places: MessagePlaces,
}

/// Where each message of a list stands, by the hash of its bytes.
#[derive(Debug, Default)]
struct MessagePlaces {
    /// The messages that were looked at.
    known: usize,
    by_hash: HashMap<u64, Vec<usize>>,
}

static NEXT_MARK: AtomicU64 = AtomicU64::new(1);

impl PassedHistory {
    /// Gives the history another name, since it grew.
    pub(crate) fn rename(&mut self) {
        self.mark = NEXT_MARK.fetch_add(1, Ordering::Relaxed);
    }

    /// Converts a prompt to the messages to send; `document` is what the client passed.
    pub(crate) fn sent_messages(
        &mut self,
        prompt: &Prompt,
        document: Option<&Document>,
    ) -> Result<SentMessages, PyErr> {
        if prompt.is_unchanged() {
            return Ok(SentMessages::default());
        }
        self.read_emitted(prompt.emitted(), document)
            .map_err(|error| error_with_causes(ErrorClass::Format, &error))
    }

    fn read_emitted(
        &mut self,
        emitted: &[u8],
        document: Option<&Document>,
    ) -> Result<SentMessages, serde_json::Error> {
        let message = |at: usize| document.and_then(|document| document.message_bytes(at));
        if self.head.is_empty() {
            let list: Vec<&RawValue> = serde_json::from_slice(emitted)?;
            return Ok(SentMessages {
                items: Some(self.places.match_items(&list, message)),
                beside: None,
            });
        }
        let mut members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(emitted)?;
        let list = members
            .remove(self.list.as_str())
            .map_or("[]", RawValue::get);
        let list: Vec<&RawValue> = serde_json::from_str(list)?;
        Ok(SentMessages {
            items: Some(self.places.match_items(&list, message)),
            beside: self.changed_members(members)?,
        })
    }

    fn changed_members(
        &self,
        mut members: BTreeMap<Cow<'_, str>, &RawValue>,
    ) -> Result<Option<String>, serde_json::Error> {
        let before: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(&self.head)?;
        members.retain(|name, value| {
            let known = before.get(name).map(|before| before.get());
            known != Some(value.get())
        });
        if members.is_empty() {
            return Ok(None);
        }
        serde_json::to_string(&members).map(Some)
    }
}

impl MessagePlaces {
    /// Finds the index of each message that was passed; equal messages are matched in order.
    fn match_items<'d>(
        &mut self,
        list: &[&RawValue],
        message: impl Fn(usize) -> Option<&'d [u8]>,
    ) -> Vec<SentItem> {
        while let Some(bytes) = message(self.known) {
            let places = self.by_hash.entry(hash_bytes(bytes)).or_default();
            places.push(self.known);
            self.known += 1;
        }
        let mut taken: HashSet<usize> = HashSet::new();
        let find = |raw: &&RawValue| {
            let wanted = raw.get().as_bytes();
            let mut places = self.by_hash.get(&hash_bytes(wanted)).into_iter().flatten();
            let is_it = |at: &&usize| !taken.contains(*at) && message(**at) == Some(wanted);
            let place = places.find(is_it).copied();
            taken.extend(place);
            place.map_or_else(|| SentItem::Other(raw.get().to_owned()), SentItem::Same)
        };
        list.iter().map(find).collect()
    }
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
