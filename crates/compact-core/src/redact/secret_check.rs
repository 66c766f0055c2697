//! Telling a secret from the code and prose around it.
//!
//! `password = "hunter2"` is a leak, `password: str` is a type, `token = parse_token(input)` is a
//! call. Names that promise a secret need only a value that is not code; names that may hold one
//! need a value that also looks random.

use std::ops::Range;

use regex::Captures;

/// A value assigned to a name.
pub(super) struct AssignedValue<'t> {
    key: &'t str,
    /// The name stood in quotes: a JSON key, whose bare value is a number or a literal.
    key_quoted: bool,
    operator: &'t str,
    spaced: bool,
    value: &'t str,
    quoted: bool,
    /// What follows the value.
    next: Option<char>,
    pub(super) range: Range<usize>,
}

impl<'t> AssignedValue<'t> {
    /// Reads the groups of the assignment pattern; `rest` is the text it matched at the start of.
    pub(super) fn from_captures(
        captures: &Captures<'t>,
        rest: &'t str,
    ) -> Option<AssignedValue<'t>> {
        let bare = captures.name("bare");
        let quoted = || {
            ["double", "single", "tick"]
                .iter()
                .find_map(|g| captures.name(g))
        };
        let value = bare.or_else(quoted)?;
        let operator = captures.name("op")?;
        Some(AssignedValue {
            key: captures.name("key")?.as_str(),
            key_quoted: captures.name("closed").is_some(),
            operator: operator.as_str(),
            spaced: operator.end() != value.start() && bare.is_some(),
            value: value.as_str(),
            quoted: bare.is_none(),
            next: rest.get(value.end()..).and_then(|r| r.chars().next()),
            range: value.range(),
        })
    }
}

/// A quick look before the pattern's slow one: after the name comes an operator. Most mentions of
/// tokens and passwords are prose and end here.
pub(super) fn may_assign(text: &str) -> bool {
    let after_name =
        text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let after_quote = after_name.trim_start_matches(['\\', '"', '\'', '`']);
    after_quote
        .trim_start_matches([' ', '\t'])
        .starts_with([':', '=', '!', '?'])
}

/// For names such as `password` and `api_key`.
pub(super) fn is_named_secret(a: &AssignedValue<'_>) -> bool {
    if a.value.len() < 3 || is_code(a) || describes(a.key) {
        return false;
    }
    if a.value.bytes().all(|b| b.is_ascii_digit()) {
        return a.value.len() >= 6;
    }
    if a.value.contains(char::is_whitespace) {
        return a.key.to_ascii_lowercase().starts_with("passphrase");
    }
    if !is_wordy(a.value) {
        return true;
    }
    is_lone_word(a)
}

/// For names such as `token` and `secret`.
pub(super) fn is_suspected_secret(a: &AssignedValue<'_>) -> bool {
    !is_code(a) && !describes(a.key) && looks_random(a.value)
}

/// A word without digits or symbols is a password only where code would not put a name or a type.
fn is_lone_word(a: &AssignedValue<'_>) -> bool {
    let word = a.value;
    if word.contains(['_', '-', '.', '/'])
        || NOT_SECRETS.contains(&word.to_ascii_lowercase().as_str())
    {
        return false;
    }
    let lower = word.bytes().all(|b| b.is_ascii_lowercase());
    if a.quoted {
        return lower || !is_camel(word);
    }
    let ends_line = matches!(a.next, None | Some('\n' | '\r' | '"' | '\\'));
    match a.operator {
        "=" => lower && !a.spaced && (ends_line || matches!(a.next, Some(' ' | '&' | '\''))),
        ":" => lower && ends_line,
        _ => false,
    }
}

/// `userPassword` and `SecretStr` are names.
fn is_camel(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next();
    let rest: String = chars.collect();
    rest.chars().any(|c| c.is_ascii_uppercase()) && rest.chars().any(|c| c.is_ascii_lowercase())
}

/// Words that stand where a password would and are none: types, literals, labels.
const NOT_SECRETS: [&str; 58] = [
    "any",
    "auto",
    "basic",
    "bool",
    "boolean",
    "bytes",
    "char",
    "confirm",
    "const",
    "default",
    "disabled",
    "empty",
    "enabled",
    "env",
    "false",
    "field",
    "file",
    "float",
    "forgot",
    "hidden",
    "input",
    "int",
    "integer",
    "invalid",
    "key",
    "keyring",
    "let",
    "missing",
    "never",
    "new",
    "nil",
    "none",
    "not",
    "null",
    "number",
    "object",
    "option",
    "optional",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "prompt",
    "pwd",
    "redacted",
    "required",
    "secret",
    "self",
    "str",
    "string",
    "text",
    "token",
    "true",
    "undefined",
    "unknown",
    "unset",
    "varchar",
    "yes",
];

/// Code, a template, a path or a stand-in: never a value that somebody could use.
fn is_code(a: &AssignedValue<'_>) -> bool {
    let value = a.value;
    let opens_code = value.starts_with([
        ' ', ',', ':', ';', ')', ']', '}', '[', '=', '>', '|', '\t', '~', '&', '\\',
    ]);
    if opens_code || is_template(value) || is_path(value) || is_mask(value) {
        return true;
    }
    if a.quoted {
        return is_constant_name(value);
    }
    a.key_quoted || matches!(a.next, Some('(' | '[' | '{' | '<')) || is_dotted_name(value)
}

/// `${PASSWORD}`, `$API_KEY`, `<token>`, `{{ secret }}`, `%s`, `your-key-here`.
pub(super) fn is_template(value: &str) -> bool {
    let mut chars = value.chars();
    let first = chars.next();
    let variable = first == Some('$')
        && chars
            .next()
            .is_some_and(|c| c.is_alphabetic() || "_({$".contains(c));
    let lower = value.to_ascii_lowercase();
    variable
        || value.starts_with(['<', '{', '%', '*', '@', '#'])
        || ["${", "$(", "{{", "#{", "%(", "...", "…"]
            .iter()
            .any(|mark| value.contains(mark))
        || (value.contains('{') && value.contains('}'))
        || STAND_INS.iter().any(|word| lower.contains(word))
}

const STAND_INS: [&str; 10] = [
    "your_",
    "your-",
    "yourpass",
    "changeme",
    "change-me",
    "example",
    "placeholder",
    "redacted",
    "xxxx",
    "<your",
];

fn is_path(value: &str) -> bool {
    value.starts_with(['/', '.']) || value.contains("://") || value.starts_with("~/")
}

/// `********`, `xxx`, `----`.
fn is_mask(value: &str) -> bool {
    let mut chars = value.chars();
    let first = chars.next();
    chars.all(|c| Some(c) == first)
}

/// `OPENAI_API_KEY`: the name of a variable, not its value.
fn is_constant_name(value: &str) -> bool {
    value.contains('_') && value.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
}

/// `self.token`, `process.env.API_KEY`, `std::string`.
fn is_dotted_name(value: &str) -> bool {
    let name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'?' || b == b'!')
    };
    let mut parts = value
        .split(['.', ':'])
        .filter(|part| !part.is_empty())
        .peekable();
    value.contains(['.', ':']) && parts.peek().is_some() && parts.all(name)
}

/// Only words, joined by the usual signs.
fn is_wordy(value: &str) -> bool {
    value
        .split(['_', '-', '.', '/'])
        .all(|part| part.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// Long, mixed and without pattern: nobody typed this as a name.
pub(super) fn looks_random(value: &str) -> bool {
    let length = value.len();
    if length < 12 || is_template(value) || value.contains(char::is_whitespace) {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let mostly_digits = digits * 10 > (digits + letters) * 8;
    digits > 0 && letters > 0 && !mostly_digits && !is_named_thing(value) && entropy(value) >= 3.0
}

/// `gpt-4o-mini`, `my-app-secret-v2`, `src/token2.rs`, `sha256`: words with a short number.
fn is_named_thing(value: &str) -> bool {
    value
        .split(['_', '-', '.', '/', ':', '@', '+', '='])
        .all(|part| {
            let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
            let number = part.len() - word.len();
            word.bytes().all(|b| b.is_ascii_alphabetic())
                && (number <= 4 || word.is_empty() && number <= 8)
        })
}

/// Shannon entropy in bits per byte.
fn entropy(value: &str) -> f64 {
    let mut counts = [0u32; 256];
    for byte in value.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = value.len().max(1) as f64;
    let share = |count: &u32| f64::from(*count) / total;
    counts
        .iter()
        .filter(|c| **c > 0)
        .map(share)
        .map(|p| -p * p.log2())
        .sum()
}

/// True for names that speak about a secret without holding it: `token_count`, `secretName`.
fn describes(key: &str) -> bool {
    let words = name_words(key);
    let joined_on = words.first().is_some_and(|w| w.starts_with("tokeni"));
    joined_on || words.iter().skip(1).any(|w| ABOUT.contains(&w.as_str()))
}

const ABOUT: [&str; 62] = [
    "address",
    "arn",
    "at",
    "attempts",
    "batch",
    "budget",
    "class",
    "cost",
    "count",
    "counts",
    "date",
    "dir",
    "enabled",
    "endpoint",
    "env",
    "error",
    "errors",
    "exp",
    "expires",
    "expiry",
    "field",
    "file",
    "format",
    "helper",
    "hint",
    "id",
    "ids",
    "index",
    "input",
    "kind",
    "label",
    "len",
    "length",
    "level",
    "limit",
    "manager",
    "max",
    "message",
    "method",
    "min",
    "mode",
    "name",
    "names",
    "path",
    "pattern",
    "policy",
    "prefix",
    "provider",
    "regex",
    "rules",
    "size",
    "source",
    "status",
    "store",
    "ttl",
    "type",
    "types",
    "url",
    "uri",
    "usage",
    "validator",
    "version",
];

/// The words of a name in any style, lower case.
fn name_words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in key.chars() {
        let breaks = matches!(c, '_' | '-') || (was_lower && c.is_ascii_uppercase());
        if breaks {
            words.push(String::new());
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        if let (true, Some(word)) = (c.is_ascii_alphanumeric(), words.last_mut()) {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|w| !w.is_empty());
    words
}
