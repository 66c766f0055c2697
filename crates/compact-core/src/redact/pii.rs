//! Personal data: classes that are recognised by shape and, where there is one, by checksum.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::escape::{after_escape, ends_in_escape};
use super::rules::constant;
use super::{RedactionFindings, RedactionSpan};

/// A class of personal data.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PiiClass {
    /// E-mail addresses.
    Email,
    /// Payment cards: issuer prefix, length and Luhn checksum.
    CreditCard,
    /// International bank account numbers with a valid checksum.
    Iban,
    /// United States social security numbers.
    Ssn,
    /// Telephone numbers, international or North American.
    Phone,
}

impl PiiClass {
    /// Every class, checksummed ones first: a card number is not a telephone number.
    pub const ALL: [PiiClass; 5] = [
        PiiClass::Email,
        PiiClass::CreditCard,
        PiiClass::Iban,
        PiiClass::Ssn,
        PiiClass::Phone,
    ];

    fn name(self) -> &'static str {
        match self {
            PiiClass::Email => "email",
            PiiClass::CreditCard => "credit-card",
            PiiClass::Iban => "iban",
            PiiClass::Ssn => "ssn",
            PiiClass::Phone => "phone",
        }
    }

    /// True where it is told by its digits alone.
    pub(super) fn is_number(self) -> bool {
        self != PiiClass::Email
    }

    fn regex(self) -> &'static Regex {
        match self {
            PiiClass::Email => &EMAIL,
            PiiClass::CreditCard => &CREDIT_CARD,
            PiiClass::Iban => &IBAN,
            PiiClass::Ssn => &SSN,
            PiiClass::Phone => &PHONE,
        }
    }

    /// A look before the pattern's slow one: most texts have no address, many no digit.
    fn may_be_in(self, text: &str) -> bool {
        match self {
            PiiClass::Email => text.contains('@'),
            _ => text.bytes().any(|b| b.is_ascii_digit()),
        }
    }

    pub(super) fn find(self, text: &str, found: &mut RedactionFindings<'_>) {
        if !self.may_be_in(text) {
            return;
        }
        for m in self.regex().find_iter(text) {
            let start = after_escape(text, m.start());
            let Some(value) = text.get(start..m.end()) else {
                continue;
            };
            let Some(length) = self.confirmed(value) else {
                continue;
            };
            let range = start..start + length;
            if !is_part_of_a_longer_number(text, &range) {
                // Below every secret and above a user's pattern.
                let priority = usize::MAX - 10 + self as usize;
                found.spans.push(RedactionSpan {
                    range,
                    priority,
                    rule: self.name(),
                });
            }
        }
    }

    /// How many bytes of the match are really such a value.
    fn confirmed(self, value: &str) -> Option<usize> {
        let confirmed = match self {
            PiiClass::Email => value.contains('@'),
            PiiClass::CreditCard => is_card(value),
            PiiClass::Iban => return iban_length(value),
            PiiClass::Ssn => is_ssn(value),
            PiiClass::Phone => (8..=15).contains(&digits(value).count()),
        };
        confirmed.then_some(value.len())
    }
}

macro_rules! shape {
    ($($name:ident $pattern:literal)*) => {$(
        static $name: LazyLock<Regex> = LazyLock::new(|| constant($pattern));
    )*};
}
shape! {
    EMAIL r"(?i)[a-z0-9._%+-]{1,64}@(?:[a-z0-9-]+\.)+[a-z]{2,24}"
    CREDIT_CARD r"[2-6](?:[ -]?[0-9]){12,18}"
    IBAN r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}"
    SSN r"[0-9]{3}-[0-9]{2}-[0-9]{4}"
    PHONE r"\+[0-9]{1,3}[ .-]?(?:\([0-9]{1,4}\)[ .-]?)?[0-9]{1,4}(?:[ .-]?[0-9]{2,4}){1,4}|(?:\+?1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[.-])[0-9]{3}[.-][0-9]{4}"
}

fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> {
    text.chars().filter_map(|c| c.to_digit(10))
}

/// A timestamp, a version or an id that merely contains the shape.
fn is_part_of_a_longer_number(text: &str, range: &Range<usize>) -> bool {
    let before = text.get(..range.start).and_then(|t| t.chars().next_back());
    let mut after = text.get(range.end..).unwrap_or_default().chars();
    let next = after.next();
    let joined = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let continues =
        matches!(next, Some('.' | '-')) && after.next().is_some_and(|c| c.is_ascii_digit());
    let escaped = text.get(..range.start).is_some_and(ends_in_escape);
    (before.is_some_and(|c| joined(c) || matches!(c, '.' | '-')) && !escaped)
        || next.is_some_and(joined)
        || continues
}

fn is_card(value: &str) -> bool {
    let length = digits(value).count();
    let issuer = digits(value).take(2).fold(0, |n, d| n * 10 + d);
    let known = match issuer {
        34 | 37 => length == 15,
        30 | 36 | 38 | 39 => length == 14,
        40..=49 => matches!(length, 13 | 16 | 19),
        22..=27 | 51..=55 => length == 16,
        35 | 50 | 56..=69 => (16..=19).contains(&length),
        _ => false,
    };
    known && luhn(value)
}

fn luhn(value: &str) -> bool {
    let doubled = |d: u32| if d > 4 { d * 2 - 9 } else { d * 2 };
    let sum: u32 = digits(value)
        .rev()
        .enumerate()
        .map(|(i, d)| if i % 2 == 1 { doubled(d) } else { d })
        .sum();
    sum.is_multiple_of(10)
}

/// Words in capitals may follow an account number: the longest valid beginning counts.
fn iban_length(value: &str) -> Option<usize> {
    let mut candidate = value;
    loop {
        if candidate.chars().filter(|c| *c != ' ').count() < 15 {
            return None;
        }
        if iban_checksum(candidate) == Some(1) {
            return Some(candidate.len());
        }
        candidate = candidate.rsplit_once(' ')?.0;
    }
}

fn iban_checksum(value: &str) -> Option<u32> {
    let (head, tail) = value.split_at_checked(4)?;
    let rearranged = tail.chars().chain(head.chars()).filter(|c| *c != ' ');
    rearranged
        .filter_map(|c| c.to_digit(36))
        .try_fold(0, |rest: u32, n| {
            let shift = if n > 9 { 100 } else { 10 };
            Some((rest * shift + n) % 97)
        })
}

fn is_ssn(value: &str) -> bool {
    let mut parts = value.split('-').map(str::parse::<u32>);
    let (Some(Ok(area)), Some(Ok(group)), Some(Ok(serial))) =
        (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0
}
