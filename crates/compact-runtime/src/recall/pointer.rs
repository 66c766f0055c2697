//! Pointers: what a view or a hit names an archived entry by.
//!
//! A clipped text reads `chars cut: 3f9a1c22abcd#17`, a summary names its receipt once and `[#17]`
//! line by line; a hit of `recall` gives `3f9a1c22abcd#17`. All of them are one pointer. An entry
//! that the compaction did not see has no number and goes by the wire's id: `3f9a1c22abcd/ID`. Several
//! in a row are `3f9a1c22abcd#17..19`, and without a receipt the session is the one compacted last.

use std::fmt;

use crate::error::Error;
use crate::port::catalog::RECEIPT_SIGN;

/// How many characters of a receipt a pointer shows.
const SHORT: usize = 12;

/// Names one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPointer {
    /// A receipt's id or a prefix of it, or a session's with the blanks around it, which may be part of its name.
    pub name: String,
    /// Which entry.
    pub place: EntryKey,
}

/// Which entry of what a pointer names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKey {
    /// By its ordinal in the session.
    Ordinal(u64),
    /// Several in a row, the last of them included.
    Ordinals(u64, u64),
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
        if let Some((name, id)) = text.trim().split_once('/')
            && is_receipt(name)
            && !id.is_empty()
        {
            return Ok(EntryPointer {
                name: name.to_owned(),
                place: EntryKey::Id(id.to_owned()),
            });
        }
        let (name, numbers) = text.split_once('#').ok_or_else(bad)?;
        let (name, numbers) = match text.rsplit_once('#') {
            // A session's id may hold the sign; the second number of a row may begin with it.
            Some((longer, last)) if !name_ends_in_row(longer) => (longer, last),
            _ => (name, numbers),
        };
        let name = name.strip_suffix('[').unwrap_or(name);
        // In a clipped text the receipt is the last word before the number.
        let last = name.split_whitespace().next_back().unwrap_or_default();
        Ok(EntryPointer {
            name: match last {
                "" => super::LAST_SESSION.to_owned(),
                receipt if is_receipt(receipt) => receipt.to_owned(),
                _ => name.to_owned(),
            },
            place: parse_ordinals(numbers).ok_or_else(bad)?,
        })
    }

    /// Reads pointers one after the other, or a single one that is spread over several words.
    pub fn parse_all(words: &[String]) -> Result<Vec<EntryPointer>, Error> {
        match EntryPointer::parse(&words.join(" ")) {
            Ok(pointer) if words.len() < 2 || !words.iter().all(|w| w.contains('#')) => {
                Ok(vec![pointer])
            }
            Err(error) if words.len() < 2 => Err(error),
            _ => words.iter().map(|word| EntryPointer::parse(word)).collect(),
        }
    }
}

/// True for `3f9a1c22abcd#17..`, whose last number follows another `#`.
fn name_ends_in_row(text: &str) -> bool {
    let row = text.rsplit_once('#').map(|(_, numbers)| numbers);
    row.is_some_and(|row| row.starts_with(|c: char| c.is_ascii_digit()) && row.ends_with(ROW_SIGNS))
}

/// What stands between the first and the last number of a row.
const ROW_SIGNS: [char; 3] = ['.', '-', '–'];

fn parse_ordinals(numbers: &str) -> Option<EntryKey> {
    let numbers = numbers.trim_end_matches(['…', ']', ' ', '\n']);
    let Some((first, last)) = numbers.split_once(ROW_SIGNS) else {
        return Some(EntryKey::Ordinal(numbers.parse().ok()?));
    };
    let last = last.trim_start_matches(ROW_SIGNS).trim_start_matches('#');
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(EntryKey::Ordinals(first, last))
}

fn is_receipt(name: &str) -> bool {
    let name = name.strip_prefix(RECEIPT_SIGN).unwrap_or(name);
    name.len() >= crate::port::catalog::MIN_PREFIX && name.bytes().all(|b| b.is_ascii_hexdigit())
}

impl fmt::Display for EntryPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            EntryKey::Ordinal(ordinal) => write!(f, "{}#{ordinal}", self.name),
            EntryKey::Ordinals(first, last) => write!(f, "{}#{first}..{last}", self.name),
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
        let signed = EntryPointer::parse("receipt:3f9a1c22abcd/a").unwrap();
        assert_eq!(signed.place, EntryKey::Id("a".to_owned()));
    }

    #[test]
    fn a_session_may_stand_for_its_latest_receipt() {
        let pointer = EntryPointer::parse("my session #3").unwrap();
        assert_eq!(
            (&*pointer.name, pointer.place),
            ("my session ", EntryKey::Ordinal(3))
        );
    }

    #[test]
    fn entries_in_a_row_and_without_a_receipt_are_read() {
        for text in ["r#3..5", "r#3-5", "r [#3–#5]", "r#3..#5"] {
            let pointer = EntryPointer::parse(text).unwrap();
            assert_eq!(pointer.to_string().replace(' ', ""), "r#3..5", "{text}");
        }
        for text in ["#3", "[#3]", ".#3"] {
            assert_eq!(
                EntryPointer::parse(text).unwrap().to_string(),
                ".#3",
                "{text}"
            );
        }
    }

    #[test]
    fn several_pointers_or_one_in_several_words_are_read() {
        let parse = |words: &[&str]| -> Vec<String> {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let all = EntryPointer::parse_all(&words).unwrap();
            all.iter().map(EntryPointer::to_string).collect()
        };
        assert_eq!(parse(&["r#1", "r#5..6"]), ["r#1", "r#5..6"]);
        assert_eq!(parse(&["my", "session", "#1"]), ["my session #1"]);
        assert_eq!(
            parse(&["…chars", "cut:", "3f9a1c22abcd#1…"]),
            ["3f9a1c22abcd#1"]
        );
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        for text in [
            "",
            "#",
            "r#3..1",
            "r#3..x",
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
