//! Secrets that their own form gives away, read from a table: one issuer's form a line.
//!
//! A form is text and runs of characters, so it is matched by walking along it, in both directions from the text that a
//! filter found. Nothing is tried twice: a run takes what it can and hands nothing back. The same table makes up
//! examples for tests.

use std::ops::Range;
use std::sync::LazyLock;

use super::{escape, secret_check};

/// The table.
pub(super) const FORMATS: &str = include_str!("../../templates/secrets/formats.txt");

/// Characters that a run is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharClass {
    Alphanumeric,
    Word,
    UrlSafe,
    Dotted,
    PathLike,
    Tilde,
    Base64,
    Percent,
    Hash,
    Capital,
    Small,
    Hex,
    AnyHex,
    Digit,
    Typed,
}

impl CharClass {
    fn named(name: &str) -> Option<CharClass> {
        Some(match name {
            "an" => CharClass::Alphanumeric,
            "w" => CharClass::Word,
            "url" => CharClass::UrlSafe,
            "dot" => CharClass::Dotted,
            "path" => CharClass::PathLike,
            "tilde" => CharClass::Tilde,
            "b64" => CharClass::Base64,
            "pct" => CharClass::Percent,
            "hash" => CharClass::Hash,
            "up" => CharClass::Capital,
            "low" => CharClass::Small,
            "hex" => CharClass::Hex,
            "anyhex" => CharClass::AnyHex,
            "d" => CharClass::Digit,
            "typed" => CharClass::Typed,
            _ => return None,
        })
    }

    fn holds(self, byte: u8) -> bool {
        let more: &[u8] = match self {
            CharClass::Alphanumeric => b"",
            CharClass::Word => b"_",
            CharClass::UrlSafe => b"_-",
            CharClass::Dotted => b"_-.",
            CharClass::PathLike => b"_-/",
            CharClass::Tilde => b"_-.~",
            CharClass::Base64 => b"+/=_-",
            CharClass::Percent => b"_-%",
            CharClass::Hash => b"+/=_-.,$",
            CharClass::Typed => b"!#$%^&*_-+=.~?",
            CharClass::Capital => return byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            CharClass::Small => return byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            CharClass::Hex => return matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            CharClass::AnyHex => return byte.is_ascii_hexdigit(),
            CharClass::Digit => return byte.is_ascii_digit(),
        };
        byte.is_ascii_alphanumeric() || more.contains(&byte)
    }
}

/// A piece of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormPart {
    /// These characters.
    Text(&'static str),
    /// Some characters of a class; no end means as many as there are.
    Run {
        class: CharClass,
        least: usize,
        most: Option<usize>,
    },
}

impl FormPart {
    fn parse(word: &'static str) -> FormPart {
        Self::parse_run(word).unwrap_or(FormPart::Text(word))
    }

    fn parse_run(word: &str) -> Option<FormPart> {
        let (class, count) = word.split_once(':')?;
        let class = CharClass::named(class)?;
        let (least, most) = match (count.strip_suffix('+'), count.split_once('-')) {
            (Some(least), _) => (least.parse().ok()?, None),
            (None, Some((least, most))) => (least.parse().ok()?, Some(most.parse().ok()?)),
            (None, None) => (count.parse().ok()?, Some(count.parse().ok()?)),
        };
        Some(FormPart::Run { class, least, most })
    }

    /// Where the part ends that begins at a place.
    fn match_from(self, text: &[u8], at: usize, ends: &mut RunEnds) -> Option<usize> {
        match self {
            FormPart::Text(literal) => text
                .get(at..)?
                .starts_with(literal.as_bytes())
                .then(|| at + literal.len()),
            FormPart::Run { class, least, most } => {
                let count = ends.find_end(text, at, class) - at;
                let fits = count >= least && most.is_none_or(|most| count <= most);
                fits.then_some(at + count)
            }
        }
    }

    /// Where the part begins that ends at a place.
    fn match_before(self, text: &[u8], end: usize) -> Option<usize> {
        let before = text.get(..end)?;
        match self {
            FormPart::Text(literal) => before
                .ends_with(literal.as_bytes())
                .then(|| end - literal.len()),
            FormPart::Run { class, least, most } => {
                let limit = most.map_or(usize::MAX, |most| most + 1);
                let backwards = before.iter().rev().take(limit);
                let count = backwards.take_while(|b| class.holds(**b)).count();
                let fits = count >= least && most.is_none_or(|most| count <= most);
                fits.then(|| end - count)
            }
        }
    }
}

/// Where the runs end that were read last, one of each class: forms that begin within a run do not read it again.
#[derive(Default)]
pub(super) struct RunEnds {
    known: [Range<usize>; 15],
}

impl RunEnds {
    fn find_end(&mut self, text: &[u8], at: usize, class: CharClass) -> usize {
        let Some(known) = self.known.get_mut(class as usize) else {
            return at;
        };
        if !known.contains(&at) {
            let rest = text.get(at..).unwrap_or_default();
            *known = at..at + rest.iter().take_while(|b| class.holds(**b)).count();
        }
        known.end.max(at)
    }
}

/// Where a form may stand, and what proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormProof {
    /// At the start of a word.
    WordStart,
    /// Anywhere.
    Anywhere,
    /// At the start of a word, if it looks random.
    Random,
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct SecretForm {
    /// The name in placeholders.
    pub(super) name: &'static str,
    proof: FormProof,
    before: Vec<FormPart>,
    /// The text that is looked for.
    pub(super) anchor: &'static str,
    after: Vec<FormPart>,
    /// How many parts after the anchor stay, where some do.
    stays: Option<usize>,
}

/// The table, parsed.
pub(super) static FORMS: LazyLock<Vec<SecretForm>> =
    LazyLock::new(|| FORMATS.lines().filter_map(SecretForm::parse).collect());

impl SecretForm {
    fn parse(line: &'static str) -> Option<SecretForm> {
        if line.starts_with('#') {
            return None;
        }
        let mut columns = line
            .split("  ")
            .map(str::trim)
            .filter(|column| !column.is_empty());
        let (name, _issuer, form) = (columns.next()?, columns.next()?, columns.next()?);
        let (proof, form) = match (form.strip_prefix('*'), form.strip_prefix('!')) {
            (Some(form), _) => (FormProof::Anywhere, form),
            (_, Some(form)) => (FormProof::Random, form),
            _ => (FormProof::WordStart, form),
        };
        let words: Vec<&'static str> = form.split(' ').filter(|word| *word != ">").collect();
        let mark = form.split(' ').position(|word| word == ">");
        let parts: Vec<FormPart> = words.iter().map(|word| FormPart::parse(word)).collect();
        let (at, anchor) = longest_text(&parts)?;
        Some(SecretForm {
            name,
            proof,
            before: parts.get(..at)?.to_vec(),
            anchor,
            after: parts.get(at + 1..)?.to_vec(),
            stays: mark.map(|mark| mark.saturating_sub(at + 1)),
        })
    }

    /// The secret around the anchor at `start`, if there is one.
    pub(super) fn find_at(
        &self,
        text: &str,
        start: usize,
        ends: &mut RunEnds,
    ) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        let mut end = FormPart::Text(self.anchor).match_from(bytes, start, ends)?;
        let mut secret_start = None;
        for (nth, part) in self.after.iter().enumerate() {
            if self.stays == Some(nth) {
                secret_start = Some(end);
            }
            end = part.match_from(bytes, end, ends)?;
        }
        let mut begin = start;
        for part in self.before.iter().rev() {
            begin = part.match_before(bytes, begin)?;
        }
        let begin = secret_start.unwrap_or(begin);
        let found = begin..end;
        self.is_proven(text, &found).then_some(found)
    }

    fn is_proven(&self, text: &str, found: &Range<usize>) -> bool {
        let at_start = || {
            let before = text.get(..found.start).unwrap_or_default();
            escape::opens_word(before)
        };
        let value = || text.get(found.clone()).unwrap_or_default();
        match self.proof {
            FormProof::Anywhere => true,
            FormProof::WordStart => at_start(),
            FormProof::Random => at_start() && secret_check::looks_random(value()),
        }
    }
}

fn longest_text(parts: &[FormPart]) -> Option<(usize, &'static str)> {
    let texts = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| match part {
            FormPart::Text(text) => Some((at, *text)),
            FormPart::Run { .. } => None,
        });
    // The first of the longest: what follows an opening is matched forward.
    texts.rev().max_by_key(|(_, text)| text.len())
}

/// How far behind a key's id its secret may begin.
const BESIDE: usize = 120;

/// The forty characters of an AWS secret behind the id of its key.
pub(super) fn find_aws_secret(text: &str, id_end: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_secret = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'+');
    let mut at = id_end;
    while at < id_end + BESIDE {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let length = rest.iter().take(41).take_while(|b| is_secret(b)).count();
        let value = text.get(at..at + length).unwrap_or_default();
        if length == 40 && secret_check::looks_random(value) {
            return Some(at..at + length);
        }
        at += length.max(1);
    }
    None
}
