//! Pointers: what a view or a hit names an archived entry by.
//!
//! A clipped text reads `chars cut: 3f9a1c22abcd#17`, a summary names its receipt once and `[#17]`
//! line by line; a hit of `recall` gives `3f9a1c22abcd#17`. All of them are one pointer. An entry
//! that the compaction did not see has no number and goes by the wire's id: `3f9a1c22abcd/ID`.

use std::fmt;

use crate::error::Error;

/// How many characters of a receipt a pointer shows.
const SHORT: usize = 12;

/// Names one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPointer {
    /// A receipt's id or a prefix of it, or a session's.
    pub name: String,
    /// Which entry.
    pub place: EntryKey,
}

/// Which entry of what a pointer names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKey {
    /// By its ordinal in the session.
    Ordinal(u64),
    /// By the wire's id.
    Id(String),
}

impl EntryPointer {
    /// The pointer to an entry of a receipt's input.
    pub fn new(receipt: &str, ordinal: Option<u64>, entry_id: &str) -> EntryPointer {
        EntryPointer {
            name: receipt.chars().take(SHORT).collect(),
            place: match ordinal {
                Some(ordinal) => EntryKey::Ordinal(ordinal),
                None => EntryKey::Id(entry_id.to_owned()),
            },
        }
    }

    /// Reads a pointer in any form that a view shows it in.
    pub fn parse(text: &str) -> Result<EntryPointer, Error> {
        let bad = || Error::BadPointer(text.chars().take(80).collect());
        let trimmed = text.trim();
        if let Some((name, id)) = trimmed.split_once('/')
            && is_receipt(name)
            && !id.is_empty()
        {
            return Ok(EntryPointer {
                name: name.to_owned(),
                place: EntryKey::Id(id.to_owned()),
            });
        }
        let (name, number) = trimmed.rsplit_once('#').ok_or_else(bad)?;
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        let rest = number.get(digits.len()..).unwrap_or_default();
        if !rest.chars().all(|c| matches!(c, '…' | ']' | ' ')) {
            return Err(bad());
        }
        let name = name.trim_end_matches(['[', ' ']);
        // In a clipped text the receipt is the last word before the number.
        let last = name.rsplit(char::is_whitespace).next().unwrap_or(name);
        let name = if is_receipt(last) { last } else { name };
        Ok(EntryPointer {
            name: Some(name)
                .filter(|n| !n.is_empty())
                .ok_or_else(bad)?
                .to_owned(),
            place: EntryKey::Ordinal(digits.parse().map_err(|_| bad())?),
        })
    }
}

fn is_receipt(name: &str) -> bool {
    name.len() >= crate::port::catalog::MIN_PREFIX && name.bytes().all(|b| b.is_ascii_hexdigit())
}

impl fmt::Display for EntryPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            EntryKey::Ordinal(ordinal) => write!(f, "{}#{ordinal}", self.name),
            EntryKey::Id(id) => write!(f, "{}/{id}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_that_a_view_shows_is_read() {
        let want = EntryPointer::new("3f9a1c22abcd9999", Some(17), "");
        for text in [
            "3f9a1c22abcd#17",
            " 3f9a1c22abcd #17 ",
            "3f9a1c22abcd [#17]",
            "[…940 chars cut: 3f9a1c22abcd#17…]",
        ] {
            assert_eq!(EntryPointer::parse(text).unwrap(), want, "{text}");
        }
        assert_eq!(want.to_string(), "3f9a1c22abcd#17");
    }

    #[test]
    fn an_entry_without_a_number_goes_by_its_id() {
        let pointer = EntryPointer::new("3f9a1c22abcd", None, "a/b#c");
        assert_eq!(EntryPointer::parse(&pointer.to_string()).unwrap(), pointer);
    }

    #[test]
    fn a_session_may_stand_for_its_latest_receipt() {
        let pointer = EntryPointer::parse("my session #3").unwrap();
        assert_eq!(
            (&*pointer.name, pointer.place),
            ("my session", EntryKey::Ordinal(3))
        );
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        for text in [
            "",
            "#",
            "#3",
            "abc",
            "3f9a1c22abcd",
            "r#",
            "r#x",
            "r#1x",
            "r#99999999999999999999",
            "/x",
        ] {
            assert!(EntryPointer::parse(text).is_err(), "{text}");
        }
    }
}
