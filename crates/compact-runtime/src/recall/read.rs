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
    /// The session that they are of, by its id, a receipt or `.`. A pointer without a receipt is to this session, and
    /// one to another is refused.
    pub session_id: Option<String>,
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

/// Bytes of an entry below which it is left out instead.
const LEAST_ROOM: usize = 400;

impl Expansion {
    /// Shortens what is longer than its share of the room, and leaves out the last entries where shares would be scraps.
    fn fit_into(&mut self, query: &ExpandQuery) {
        let most = (query.room / LEAST_ROOM).max(1);
        let lengths: Vec<usize> = self.entries.iter().map(|e| e.selected.text.len()).collect();
        let is_over = lengths.iter().sum::<usize>() > query.room;
        if is_over && self.entries.len() > most {
            let rest = self.entries.split_off(most);
            self.left_out = rest.into_iter().map(|e| e.restored.pointer).collect();
        }
        let share = fair_share(lengths.into_iter().take(most), query.room);
        for entry in &mut self.entries {
            if entry.selected.text.len() > share {
                entry.selected = select_lines(&entry.text, &query.part, share);
            }
        }
    }
}

/// Returns how much of a room each of several texts may take so that short ones stand whole.
fn fair_share(lengths: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.sort_unstable();
    let mut left = room;
    for (length, count) in lengths.iter().zip((1..=lengths.len()).rev()) {
        let share = left / count;
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
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
            let record = match &query.session_id {
                Some(session) => self.record_within(session, pointer).await?,
                None => self.record_named(&pointer.name).await?,
            };
            let entries = self.expand_around(&record, pointer, query.neighbours);
            found.extend(entries.await?);
        }
        let is_single = found.len() == 1 && matches!(query.part, TextPart::Whole);
        let shown = found
            .into_iter()
            .map(|restored| self.show_entry(restored, query, query.room));
        let shown = shown.filter(|shown| is_single || shown.selected.matches != Some(0));
        let mut expansion = Expansion {
            entries: shown.collect(),
            left_out: Vec::new(),
        };
        expansion.fit_into(query);
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
        Ok(self.show_restored(restored, secrets))
    }

    /// The same within one session, as [`Recall::expand_within`] has it.
    pub async fn read_entry_within(
        &self,
        session: &str,
        pointer: &EntryPointer,
        secrets: SecretDisplay,
    ) -> Result<RestoredEntry, Error> {
        let restored = self.expand_within(session, pointer).await?;
        Ok(self.show_restored(restored, secrets))
    }

    fn show_restored(&self, restored: RestoredEntry, secrets: SecretDisplay) -> RestoredEntry {
        match secrets {
            SecretDisplay::Redacted => self.redact_restored(restored),
            SecretDisplay::Shown => restored,
        }
    }

    fn show_entry(&self, restored: RestoredEntry, query: &ExpandQuery, room: usize) -> ShownEntry {
        let text = restored.readable_text();
        let shown = self.hide_secrets(&text, query.secrets);
        let restored = self.show_restored(restored, query.secrets);
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

#[cfg(test)]
mod tests {
    use super::fair_share;

    #[test]
    fn short_texts_stand_whole_and_long_ones_share_the_rest() {
        let share = |lengths: &[usize], room| fair_share(lengths.iter().copied(), room);
        assert_eq!(share(&[10, 20], 100), usize::MAX);
        assert_eq!(share(&[900, 10, 700, 20], 430), 200);
        assert_eq!(share(&[900], 300), 300);
        assert_eq!(share(&[], 300), usize::MAX);
    }
}
