//! What a transcript says beside its conversation: when each entry was said, and where.
//!
//! Moments and the folder go along where the target has a member for them; what it has none for is
//! listed. They are copied as they stand: nothing here reads a clock or computes with time.

use std::collections::{HashMap, HashSet};

use compact_core::message::EntryId;

use super::ConversionLoss;
use crate::ParsedTranscript;
use crate::json::{Members, string_value};
use crate::source::{EntryPlace, SourceLayout};

/// What agents note of a session on its lines or in its head.
const SETTINGS: [&str; 3] = ["cwd", "gitBranch", "version"];

/// The times of a session's entries, and the session's settings such as its folder.
#[derive(Default)]
pub(crate) struct Circumstances {
    /// The timestamps of entries, as JSON strings.
    moments: HashMap<EntryId, String>,
    first: Option<String>,
    settings: HashMap<&'static str, String>,
}

impl Circumstances {
    /// Reads them beside the entries of a document.
    pub(super) fn read(parsed: &ParsedTranscript) -> Circumstances {
        let mut found = Circumstances::default();
        let places = parsed.document.places.iter();
        for (entry, place) in parsed.conversation.entries.iter().zip(places) {
            if let Some(moment) = read_moment(parsed, place) {
                found.first.get_or_insert_with(|| moment.clone());
                found.moments.insert(entry.id.clone(), moment);
            }
        }
        found.settings = read_settings(parsed);
        found
    }

    /// Returns when an entry was said, as JSON.
    pub(crate) fn moment_of(&self, entry: &EntryId) -> Option<&str> {
        self.moments.get(entry).map(String::as_str)
    }

    /// Returns when the first of them was, as JSON.
    pub(super) fn first_moment(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Returns the folder that the session ran in.
    pub(super) fn folder(&self) -> &str {
        self.settings.get("cwd").map_or("", String::as_str)
    }

    /// Returns what `after` does not say of this.
    pub(super) fn lost_in(&self, after: &Circumstances) -> Vec<ConversionLoss> {
        let kept: HashSet<&str> = after.moments.values().map(String::as_str).collect();
        let lost = self
            .moments
            .values()
            .filter(|moment| !kept.contains(moment.as_str()));
        let entries = match lost.count() {
            0 => None,
            1 => Some("the timestamp of 1 entry".to_owned()),
            n => Some(format!("the timestamps of {n} entries")),
        };
        let settings = SETTINGS.iter().filter_map(|key| {
            let value = self.settings.get(key)?;
            (after.settings.get(key) != Some(value))
                .then(|| format!("the session's {key}: {value}"))
        });
        let whole = |what| ConversionLoss { entry: None, what };
        settings.chain(entries).map(whole).collect()
    }
}

/// Returns the moment of the line or message that an entry stands in. One without a time zone is none that
/// another agent could read.
fn read_moment(parsed: &ParsedTranscript, place: &EntryPlace) -> Option<String> {
    let span = match &parsed.document.layout {
        SourceLayout::Lines { lines, .. } => lines.get(place.line)?,
        SourceLayout::List { .. } => &place.span,
    };
    let json = std::str::from_utf8(parsed.document.source.get(span.clone())?).ok()?;
    let moment = Members::from_json(json).get("timestamp")?.get();
    moment.ends_with("Z\"").then(|| moment.to_owned())
}

/// Returns the settings that the last line or head says that has them.
fn read_settings(parsed: &ParsedTranscript) -> HashMap<&'static str, String> {
    let mut found = HashMap::new();
    let SourceLayout::Lines { lines, .. } = &parsed.document.layout else {
        return found;
    };
    for span in lines.iter().rev() {
        let bytes = parsed.document.source.get(span.clone());
        let line =
            Members::from_json(std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default());
        let payload = line.get("payload").map(|raw| Members::from_json(raw.get()));
        for key in SETTINGS {
            let within = || payload.as_ref().and_then(|members| members.get(key));
            let value =
                string_value(line.get(key).or_else(within)).filter(|value| !value.is_empty());
            if let Some(value) = value {
                found.entry(key).or_insert_with(|| value.into_owned());
            }
        }
        if found.len() == SETTINGS.len() {
            break;
        }
    }
    found
}
