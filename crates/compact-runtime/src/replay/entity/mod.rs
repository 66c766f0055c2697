//! Entities: the paths, urls, ids, numbers and names by which an agent refers to things.
//!
//! Nine kinds, tried in order at each place of a text, the first that matches wins and the search
//! goes on behind it. What the patterns ask of the text before and behind a match (no letter there,
//! a digit somewhere in the run) is checked here, so that the patterns themselves stay regular.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

/// The class of an entity, by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntityClass {
    /// A web address.
    Url,
    /// A mail address.
    Email,
    /// A UUID.
    Uuid,
    /// A file path.
    Path,
    /// An option of a command: matched so that it is not read as something else, then dropped.
    Flag,
    /// A commit or digest.
    Hash,
    /// A ticket, an order, an account.
    Id,
    /// A name in code.
    Ident,
    /// A number with enough digits to identify something.
    Num,
}

/// An entity of a text.
pub type ClassedEntity = (String, EntityClass);

/// The fewest digits of a number that counts; shorter ones in coding logs are mostly line numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinDigits(pub usize);

impl Default for MinDigits {
    fn default() -> Self {
        MinDigits(4)
    }
}

/// Names that every session of some agent contains and no agent has to remember.
const STOP_WORDS: &[&str] = &[
    "e.g",
    "i.e",
    "and/or",
    "tool_use",
    "tool_result",
    "tool_use_id",
    "file_path",
    "old_string",
    "new_string",
    "replace_all",
    "subagent_type",
    "run_in_background",
    "output_mode",
    "head_limit",
    "yield_time_ms",
    "max_output_tokens",
    "workdir",
    "session_id",
    "line_numbers",
    "activeForm",
    "in_progress",
    "exec_command",
    "write_stdin",
    "apply_patch",
    "update_plan",
    "TodoWrite",
    "JavaScript",
    "TypeScript",
    "GitHub",
];

/// Returns the entities of a text, each once, in the order of their first mention.
pub fn find_entities(text: &str, min_digits: MinDigits) -> Vec<ClassedEntity> {
    let text = unescape_json(text);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (class, matched) in EntityMatches::new(&text) {
        let Some(entity) = accept_match(class, matched, min_digits) else {
            continue;
        };
        if seen.insert(entity.clone()) {
            found.push((entity, class));
        }
    }
    found
}

fn accept_match(class: EntityClass, matched: &str, min_digits: MinDigits) -> Option<String> {
    let mut entity = matched
        .trim_end_matches(['.', ',', ':', ';', '/', ')', '-', '_'])
        .to_owned();
    if class == EntityClass::Num {
        entity = entity.replace(',', "");
        let digits = entity.chars().filter(|c| *c != '.').count();
        if digits < min_digits.0 || is_round(&entity) {
            return None;
        }
    }
    let is_noise = class == EntityClass::Flag
        || entity.chars().nth(2).is_none()
        || STOP_WORDS.contains(&entity.as_str())
        || entity.starts_with("/dev/")
        || entity.contains("noreply@");
    (!is_noise).then_some(entity)
}

/// Returns whether a number is round or a recent year, which identifies nothing.
fn is_round(number: &str) -> bool {
    let year = number
        .strip_prefix("20")
        .and_then(|rest| rest.chars().next());
    let is_year = year.is_some_and(|c| ('0'..='2').contains(&c))
        && number.chars().count() == 4
        && number.chars().all(char::is_numeric);
    let zeros = number.strip_prefix(|c| ('1'..='9').contains(&c));
    is_year || zeros.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c == '0'))
}

/// A condition for the text before a match.
#[derive(Clone, Copy)]
enum LeftCondition {
    Anything,
    /// The edge of a word.
    Edge,
    /// Neither part of a word nor this character.
    Neither(char),
    /// The edge of a word, unless the match begins with `#`.
    EdgeOrMark,
}

/// One way to be an entity.
struct EntityPattern {
    class: EntityClass,
    left: LeftCondition,
    /// Whether an ASCII byte can begin a match.
    begins: fn(u8) -> bool,
    regex: Option<Regex>,
    /// What else must hold of the text from the match on, and of the match.
    also: fn(&str, &str) -> bool,
}

impl EntityPattern {
    fn new(
        class: EntityClass,
        left: LeftCondition,
        begins: fn(u8) -> bool,
        regex: &str,
    ) -> EntityPattern {
        EntityPattern {
            class,
            left,
            begins,
            // A pattern that does not compile is caught by the tests of every class.
            regex: Regex::new(regex).ok(),
            also: |_, _| true,
        }
    }

    fn with_check(self, also: fn(&str, &str) -> bool) -> EntityPattern {
        EntityPattern { also, ..self }
    }

    fn match_end(&self, text: &str, at: usize, before: Option<char>) -> Option<usize> {
        let rest = text.get(at..)?;
        let first = rest.chars().next()?;
        let begins = u8::try_from(first).map_or(self.class == EntityClass::Num, self.begins);
        if !begins || !self.left.allows(before, first) {
            return None;
        }
        let input = Input::new(text).range(at..).anchored(Anchored::Yes);
        let end = self.regex.as_ref()?.find(input)?.end();
        (self.also)(rest, text.get(at..end)?).then_some(end)
    }
}

impl LeftCondition {
    fn allows(self, before: Option<char>, first: char) -> bool {
        let inside = before.is_some_and(is_word);
        match self {
            LeftCondition::Anything => true,
            LeftCondition::Edge => inside != is_word(first),
            LeftCondition::Neither(c) => !inside && before != Some(c),
            LeftCondition::EdgeOrMark => first == '#' || !inside,
        }
    }
}

const URL: &str = r#"https?://[^\s\x1c-\x1f"'<>()\[\]{}\\`]+"#;
const EMAIL: &str = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]*[A-Za-z0-9]";
const UUID: &str = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b";
const ROOTED: &str = r"(?:~|\.{1,2})?(?:/[A-Za-z0-9_.@+-]+){2,}/?";
const NESTED: &str = r"[A-Za-z0-9_.@+-]+(?:/[A-Za-z0-9_.@+-]+)+\.[A-Za-z0-9]{1,8}";
const FILE: &str = r"[A-Za-z0-9_-]{2,}\.(?:rs|go|py|ts|tsx|js|jsx|mjs|json|jsonl|md|ya?ml|toml|sh|sql|html|css|java|kt|c|h|cpp|hpp|cs|rb|php|txt|lock|mod|sum|proto|vue|svelte|xml|csv|log|ini|cfg|env)\b";
const FLAG: &str = r"--[a-z][a-z0-9-]{2,}";
const HASH: &str = r"[0-9a-f]{7,64}\b";
const TICKET: &str = r"#?[A-Z0-9][A-Z0-9_-]{4,}\b";
const NUMBERED: &str = r"#W?\d{2,}\b";
const ACCOUNT: &str = r"(?:[a-z]+_[a-z]+_\d{3,}\b|[a-z]+_[a-z]*\d{4,}\b)";
const IDENT: &str = r"(?:[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|[a-z]+(?:[A-Z][a-z0-9]+)+\b|(?:[A-Z][a-z0-9]+){2,}\b|[A-Za-z_][\p{L}\p{N}_]{2,}(?:(?:::|\.)[A-Za-z_][\p{L}\p{N}_]{2,})+\b)";
const NUM: &str = r"\d[\d,]*(?:\.\d+)?\b{end-half}";

static PATTERNS: LazyLock<[EntityPattern; 13]> = LazyLock::new(|| {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let named = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    [
        EntityPattern::new(
            EntityClass::Url,
            LeftCondition::Anything,
            |b| b == b'h',
            URL,
        ),
        EntityPattern::new(
            EntityClass::Email,
            LeftCondition::Anything,
            is_mail_byte,
            EMAIL,
        ),
        EntityPattern::new(EntityClass::Uuid, LeftCondition::Edge, hex, UUID),
        EntityPattern::new(
            EntityClass::Path,
            LeftCondition::Anything,
            |b| b"~./".contains(&b),
            ROOTED,
        ),
        EntityPattern::new(
            EntityClass::Path,
            LeftCondition::Anything,
            is_path_byte,
            NESTED,
        ),
        EntityPattern::new(EntityClass::Path, LeftCondition::Edge, is_stem_byte, FILE),
        EntityPattern::new(
            EntityClass::Flag,
            LeftCondition::Neither('-'),
            |b| b == b'-',
            FLAG,
        ),
        EntityPattern::new(EntityClass::Hash, LeftCondition::Edge, hex, HASH)
            .with_check(is_mixed_hex),
        EntityPattern::new(
            EntityClass::Id,
            LeftCondition::EdgeOrMark,
            is_ticket_byte,
            TICKET,
        )
        .with_check(is_mixed_ticket),
        EntityPattern::new(
            EntityClass::Id,
            LeftCondition::Anything,
            |b| b == b'#',
            NUMBERED,
        ),
        EntityPattern::new(
            EntityClass::Id,
            LeftCondition::Edge,
            |b| b.is_ascii_lowercase(),
            ACCOUNT,
        ),
        EntityPattern::new(EntityClass::Ident, LeftCondition::Edge, named, IDENT),
        EntityPattern::new(
            EntityClass::Num,
            LeftCondition::Neither('.'),
            |b| b.is_ascii_digit(),
            NUM,
        ),
    ]
});

fn is_mail_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"._%+-".contains(&b)
}

fn is_path_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"_.@+-".contains(&b)
}

fn is_stem_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"_-".contains(&b)
}

fn is_ticket_byte(b: u8) -> bool {
    b == b'#' || b.is_ascii_uppercase() || b.is_ascii_digit()
}

fn is_mixed_hex(_: &str, matched: &str) -> bool {
    matched.bytes().any(|b| b.is_ascii_digit()) && matched.bytes().any(|b| b.is_ascii_lowercase())
}

/// Returns a digit and a capital somewhere in the run that the match begins.
fn is_mixed_ticket(rest: &str, _: &str) -> bool {
    let run = || {
        let bytes = rest.strip_prefix('#').unwrap_or(rest).bytes();
        bytes.take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"_-".contains(b))
    };
    run().any(|b| b.is_ascii_digit()) && run().any(|b| b.is_ascii_uppercase())
}

/// Goes through a text from match to match.
struct EntityMatches<'t> {
    text: &'t str,
    at: usize,
    before: Option<char>,
    mail: ByteRun,
    nested: ByteRun,
}

impl<'t> EntityMatches<'t> {
    fn new(text: &'t str) -> Self {
        EntityMatches {
            text,
            at: 0,
            before: None,
            mail: ByteRun::default(),
            nested: ByteRun::default(),
        }
    }

    /// Returns the first pattern that matches here.
    fn match_here(&mut self) -> Option<(EntityClass, usize)> {
        let bytes = self.text.as_bytes();
        let is_mail = self.mail.leads_to(bytes, self.at, is_mail_byte, b'@');
        let is_nested = self.nested.leads_to(bytes, self.at, is_path_byte, b'/');
        PATTERNS.iter().enumerate().find_map(|(i, pattern)| {
            // These two may begin anywhere in a word, and mostly cannot: their run tells.
            if (i == 1 && !is_mail) || (i == 4 && !is_nested) {
                return None;
            }
            let end = pattern.match_end(self.text, self.at, self.before)?;
            Some((pattern.class, end))
        })
    }
}

impl<'t> Iterator for EntityMatches<'t> {
    type Item = (EntityClass, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(c) = self.text.get(self.at..)?.chars().next() {
            let start = self.at;
            if let Some((class, end)) = self.match_here() {
                let matched = self.text.get(start..end)?;
                self.at = end;
                self.before = matched.chars().next_back();
                return Some((class, matched));
            }
            self.at += c.len_utf8();
            self.before = Some(c);
        }
        None
    }
}

/// A run of bytes of one kind, and whether a given byte ends it.
#[derive(Default)]
struct ByteRun {
    end: usize,
    leads: bool,
}

impl ByteRun {
    fn leads_to(&mut self, bytes: &[u8], at: usize, of: fn(u8) -> bool, goal: u8) -> bool {
        if at >= self.end {
            let rest = bytes.get(at..).unwrap_or_default();
            let length = rest.iter().take_while(|b| of(**b)).count();
            // A place that is no part of a run is one of its own.
            self.end = at + length.max(1);
            self.leads = length > 0 && bytes.get(at + length) == Some(&goal);
        }
        self.leads
    }
}

/// Returns whether a character is a letter, a digit or an underscore, as word boundaries see it.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the text with what a JSON string escapes written out, as people read it.
pub fn unescape_json(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let out = text.replace("\\n", "\n").replace("\\t", "\t");
    out.replace("\\\"", "\"").into()
}
