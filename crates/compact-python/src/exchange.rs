//! Reads a client's messages as a document of the engine, and returns a view as the client's messages.
//!
//! The document is the provider's own request body: the members beside the messages (`head`), and the list.
//! A message that a view keeps is copied from it byte for byte, which is how its index is found again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use compact::Prompt;
use compact::format::{self, Format, FormatError, ParsedTranscript, TranscriptScope};
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
    pub(crate) items: Vec<SentItem>,
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

    /// Converts a prompt to the messages to send.
    pub(crate) fn sent_messages(&self, prompt: &Prompt) -> Result<SentMessages, PyErr> {
        if prompt.is_unchanged() {
            return Ok(self.all_unchanged());
        }
        self.read_emitted(prompt.emitted())
            .map_err(|error| error_with_causes(ErrorClass::Format, &error))
    }

    fn all_unchanged(&self) -> SentMessages {
        SentMessages {
            items: (0..self.items.len()).map(SentItem::Same).collect(),
            beside: None,
        }
    }

    fn read_emitted(&self, emitted: &[u8]) -> Result<SentMessages, serde_json::Error> {
        if self.head.is_empty() {
            let list: Vec<&RawValue> = serde_json::from_slice(emitted)?;
            let items = self.match_items(&list);
            return Ok(SentMessages {
                items,
                beside: None,
            });
        }
        let mut members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(emitted)?;
        let list = members
            .remove(self.list.as_str())
            .map_or("[]", RawValue::get);
        Ok(SentMessages {
            items: self.match_items(&serde_json::from_str::<Vec<&RawValue>>(list)?),
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

    /// Finds the index of each message that was passed; equal messages are matched in order.
    fn match_items(&self, list: &[&RawValue]) -> Vec<SentItem> {
        let mut places: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (index, item) in self.items.iter().enumerate() {
            places.entry(&**item).or_default().push_back(index);
        }
        let find = |raw: &&RawValue| {
            let place = places.get_mut(raw.get()).and_then(VecDeque::pop_front);
            place.map_or_else(|| SentItem::Other(raw.get().to_owned()), SentItem::Same)
        };
        list.iter().map(find).collect()
    }
}
