//! Archived entries for a reader: which of them, which of their lines, and what stands beside them.
//!
//! What a reader gets, the JSON behind it too, is redacted by the rules in force, unless it is asked for with its
//! secrets, and never more than there is room for: what is left out is named.

use std::borrow::Cow;

use compact_core::redact::RedactionCounts;

use super::selection::{SelectedText, TextPart, select_lines};
use super::{EntryPointer, Recall, RestoredEntry};
use crate::error::Error;

/// The most bytes of a call that are shown before its result, and of a result behind its call.
const CALL_ROOM: usize = 600;
const RESULT_ROOM: usize = 4_000;

/// What to bring back, and how much of it.
#[derive(Clone, Debug)]
pub struct ExpandQuery {
    /// The entries.
    pub pointers: Vec<EntryPointer>,
    /// How many entries on each side of them.
    pub neighbours: u64,
    /// Which lines of each.
    pub part: TextPart,
    /// Whether secrets are shown.
    pub secrets: SecretDisplay,
    /// The most bytes of text.
    pub room: usize,
}

/// Whether secrets are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretDisplay {
    /// They are redacted by the rules in force.
    #[default]
    Redacted,
    /// They stand as they were archived.
    Shown,
}

impl SecretDisplay {
    /// What a caller's choice between the two stands for.
    pub fn shown_if(unredacted: bool) -> SecretDisplay {
        match unredacted {
            true => SecretDisplay::Shown,
            false => SecretDisplay::Redacted,
        }
    }
}

/// Entries that were brought back.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// The entries, as far as there was room.
    pub entries: Vec<ShownEntry>,
    /// Those for which there was none.
    pub left_out: Vec<EntryPointer>,
}

/// An entry with the part of it that is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownEntry {
    /// The entry.
    pub restored: RestoredEntry,
    /// Its text for a reader, whole.
    pub text: String,
    /// The lines of it that are shown.
    pub selected: SelectedText,
    /// The other half of an exchange, where one entry was asked for.
    pub partner: Option<ShownPartner>,
    /// Whether all of it stands as it was: nothing was redacted, now or when it was archived.
    pub exact: bool,
}

/// The other half of an exchange, shortened.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownPartner {
    /// Its place in the session.
    pub ordinal: u64,
    /// Whether it is the call; else it is the result.
    pub is_call: bool,
    /// Its first lines.
    pub selected: SelectedText,
}

impl Recall {
    /// Brings entries back for a reader.
    pub async fn read(&self, query: &ExpandQuery) -> Result<Expansion, Error> {
        let mut found = Vec::new();
        for pointer in &query.pointers {
            found.extend(self.expand_around(pointer, query.neighbours).await?);
        }
        let is_single = found.len() == 1 && matches!(query.part, TextPart::Whole);
        let mut expansion = Expansion {
            entries: Vec::new(),
            left_out: Vec::new(),
        };
        let mut room = query.room;
        for restored in found {
            if room == 0 {
                expansion.left_out.push(restored.pointer);
                continue;
            }
            let shown = self.show_entry(restored, query, room);
            if is_single || shown.selected.matches != Some(0) {
                room = room.saturating_sub(shown.selected.text.len());
                expansion.entries.push(shown);
            }
        }
        if let Some(shown) = expansion.entries.first_mut().filter(|_| is_single) {
            shown.partner = self.show_partner(&shown.restored, query.secrets);
        }
        Ok(expansion)
    }

    /// Brings back all of the entry that a pointer names.
    pub async fn read_entry(
        &self,
        pointer: &EntryPointer,
        secrets: SecretDisplay,
    ) -> Result<RestoredEntry, Error> {
        let restored = self.expand(pointer).await?;
        Ok(match secrets {
            SecretDisplay::Redacted => self.redact_restored(restored),
            SecretDisplay::Shown => restored,
        })
    }

    fn show_entry(&self, restored: RestoredEntry, query: &ExpandQuery, room: usize) -> ShownEntry {
        let text = restored.readable_text();
        let shown = self.hide_secrets(&text, query.secrets);
        let restored = match query.secrets {
            SecretDisplay::Redacted => self.redact_restored(restored),
            SecretDisplay::Shown => restored,
        };
        ShownEntry {
            selected: select_lines(&shown, &query.part, room),
            exact: restored.exact && matches!(shown, Cow::Borrowed(_)),
            text: shown.into_owned(),
            partner: None,
            restored,
        }
    }

    /// The entry, its other half and its JSON without secrets.
    fn redact_restored(&self, mut restored: RestoredEntry) -> RestoredEntry {
        let source = String::from_utf8_lossy(&restored.source);
        if let Cow::Owned(source) = self
            .redactor
            .redact_json(&source, &mut RedactionCounts::new())
        {
            restored.source = source.into();
            restored.exact = false;
        }
        restored.entry = self.redactor.redact_entry(&restored.entry).into_owned();
        if let Some(partner) = &mut restored.partner {
            partner.entry = self.redactor.redact_entry(&partner.entry).into_owned();
        }
        restored
    }

    fn show_partner(
        &self,
        restored: &RestoredEntry,
        secrets: SecretDisplay,
    ) -> Option<ShownPartner> {
        let partner = restored.partner.as_ref()?;
        let text = partner.readable_text();
        let is_call = partner.tool_name().is_some();
        let room = if is_call { CALL_ROOM } else { RESULT_ROOM };
        let text = self.hide_secrets(&text, secrets);
        Some(ShownPartner {
            ordinal: partner.ordinal,
            is_call,
            selected: select_lines(&text, &TextPart::Whole, room),
        })
    }

    pub(super) fn hide_secrets<'a>(&self, text: &'a str, secrets: SecretDisplay) -> Cow<'a, str> {
        match secrets {
            SecretDisplay::Redacted => self.redactor.redact(text, &mut RedactionCounts::new()),
            SecretDisplay::Shown => Cow::Borrowed(text),
        }
    }
}
