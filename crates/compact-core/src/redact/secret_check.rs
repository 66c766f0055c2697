//! Telling a secret from the code and prose around it.
//!
//! `password = "hunter2"` is a leak, `password: str` is a type, `token = parse_token(input)` is a
//! call. Names that promise a secret need only a value that is not code; names that may hold one
//! need a value that also looks random.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::assignment::{AssignedValue, ValueOperator};
use super::letters;
use crate::cue_list::cue_lines;

/// The words that tell values and names apart.
pub(super) const LISTS: [&str; 4] = [
    NOT_SECRET_LIST,
    ABOUT_LIST,
    STAND_IN_LIST,
    PASSWORD_NAME_LIST,
];
const NOT_SECRET_LIST: &str = include_str!("../../templates/secrets/not_secret.txt");
const ABOUT_LIST: &str = include_str!("../../templates/secrets/about_secret.txt");
const STAND_IN_LIST: &str = include_str!("../../templates/secrets/stand_in.txt");
const PASSWORD_NAME_LIST: &str = include_str!("../../templates/secrets/password_name.txt");

static NOT_SECRETS: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| cue_lines(NOT_SECRET_LIST).collect());

static ABOUT: LazyLock<BTreeSet<&str>> = LazyLock::new(|| cue_lines(ABOUT_LIST).collect());

static STAND_INS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut words: Vec<&str> = cue_lines(STAND_IN_LIST).collect();
    words.sort_unstable();
    words
});

/// Words before `token` in a name that points to a place: `nextPageToken`.
const PLACES: [&str; 12] = [
    "page",
    "next",
    "previous",
    "prev",
    "continuation",
    "cursor",
    "pagination",
    "sync",
    "resume",
    "skip",
    "stop",
    "change",
];

/// How much of a value shows whether it is random.
const RANDOM_REACH: usize = 512;

/// What a name promises about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamePromise {
    /// A password.
    Password,
    /// An API key.
    ApiKey,
    /// Perhaps a password: `pass` and `pw` are other things too.
    Perhaps,
    /// A secret, if it looks like one.
    Suspected,
    /// User and password in one, as base64.
    Login,
}

/// Parts of names that may hold a secret; the whole name decides.
const NAME_PARTS: [&str; 18] = [
    "pass",
    "clave",
    "mdp",
    "psk",
    "pwd",
    "pw:",
    "pw=",
    "pw =",
    "pw ",
    "kennwort",
    "senha",
    "wachtwoord",
    "apikey",
    "token",
    "secret",
    "credential",
    "auth\"",
    "_auth",
];

/// Names in other languages; what they name is a password.
static SPOKEN_NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| cue_lines(PASSWORD_NAME_LIST).collect());

/// Names in other languages, as they stand in a sentence and at its beginning: only ASCII is looked for in
/// either case.
fn spoken_names() -> impl Iterator<Item = String> {
    SPOKEN_NAMES.iter().flat_map(|name| {
        let mut chars = name.chars();
        let first: String = chars
            .next()
            .into_iter()
            .flat_map(char::to_uppercase)
            .collect();
        [(*name).to_owned(), first + chars.as_str()]
    })
}

/// The parts of names that are looked for.
pub(super) fn name_parts() -> Vec<String> {
    let fixed = NAME_PARTS.iter().map(|part| (*part).to_owned());
    let fixed = fixed.chain(spoken_names());
    let sessions = ["sessionid=", "sessid"].map(str::to_owned);
    let kinds = KEY_KINDS.iter().chain(&["api"]);
    let keys =
        kinds.flat_map(|kind| ["_key", "-key", "key", " key"].map(|key| format!("{kind}{key}")));
    fixed.chain(sessions).chain(keys).collect()
}

/// The rule that makes an assigned value a secret, if one does.
pub(super) fn judge_assignment<'t>(
    a: &AssignedValue<'t>,
    known: &mut KnownNames<'t>,
) -> Option<&'static str> {
    let promise = known.promise_of(a.name)?;
    if a.operator == ValueOperator::Beside {
        // Tests pass, and arguments are passed.
        let is_named = match promise {
            NamePromise::Password => true,
            NamePromise::Perhaps => !a.name.eq_ignore_ascii_case("pass"),
            NamePromise::ApiKey => {
                return (looks_random(a.value) && !is_code(a)).then_some("api-key");
            }
            _ => false,
        };
        let shows = looks_chosen(a.value) || looks_random(a.value) || looks_typed(a.value);
        return (is_named && shows && !is_code(a)).then_some("password");
    }
    let (rule, secret) = match promise {
        NamePromise::Perhaps if is_variable(a) && has_digit_and_letter(a.value) => {
            ("password", is_named_secret(a))
        }
        NamePromise::Suspected if is_variable(a) && has_digit_and_letter(a.value) => {
            ("secret", a.value.len() >= SET_VALUE && is_named_secret(a))
        }
        NamePromise::Password => ("password", is_named_secret(a)),
        NamePromise::ApiKey => ("api-key", is_named_secret(a)),
        NamePromise::Perhaps => (
            "password",
            !is_code(a)
                && (looks_random(a.value)
                    || looks_typed(a.value)
                    || may_be_chosen(a) && looks_chosen(a.value)),
        ),
        NamePromise::Suspected => (
            "secret",
            !is_code(a) && (looks_random(a.value) || is_quoted_secret(a)),
        ),
        NamePromise::Login => (
            "secret",
            !is_code(a) && (is_encoded_login(a.value) || letters::is_drawn(a.value.as_bytes())),
        ),
    };
    secret.then_some(rule)
}

/// The least characters of a value that is a secret because a variable of the environment holds it.
const SET_VALUE: usize = 12;

/// `the pw is …`, `pw=…`, `"pass": "…"`: more than the name of a test that passed.
fn may_be_chosen(a: &AssignedValue<'_>) -> bool {
    let is_said = matches!(
        a.operator,
        ValueOperator::Sentence | ValueOperator::Flag | ValueOperator::Argument
    );
    let is_member = a.name_quoted && a.quoted;
    is_said || is_member || !a.name.eq_ignore_ascii_case("pass")
}

/// `DB_PASS=…`, `export API_TOKEN=…`: a variable of the environment, which holds what its name says.
fn is_variable(a: &AssignedValue<'_>) -> bool {
    let is_set = match a.operator {
        ValueOperator::Equals => !a.spaced,
        ValueOperator::Flag | ValueOperator::Argument | ValueOperator::Colon => true,
        _ => a.name_quoted,
    };
    let is_upper = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    is_set && a.name.contains('_') && a.name.bytes().all(is_upper)
}

fn has_digit_and_letter(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

/// `secret = "…"`, `"client_secret": "…"` with one word and a digit: no text, and no name of anything.
fn is_quoted_secret(a: &AssignedValue<'_>) -> bool {
    let lower = a.value.to_ascii_lowercase();
    let is_named = name_words(a.name)
        .last()
        .is_some_and(|word| word == "secret");
    is_named
        && a.quoted
        && a.value.len() >= CHOSEN
        && has_digit_and_letter(a.value)
        && a.value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!@#$^&*".contains(&b))
        && a.value.bytes().any(|b| b.is_ascii_lowercase())
        && !["secret", "token", "key", "pass", "test"]
            .iter()
            .any(|name| lower.contains(name))
        && !NOT_SECRETS.contains(lower.as_str())
}

/// How many names are remembered.
const KNOWN_NAMES: usize = 32;

/// What the last names of a text promise: JSON repeats its names on every line.
#[derive(Default)]
pub(super) struct KnownNames<'t>([(&'t str, Option<NamePromise>); KNOWN_NAMES]);

impl<'t> KnownNames<'t> {
    fn promise_of(&mut self, name: &'t str) -> Option<NamePromise> {
        let last = name.bytes().last().unwrap_or_default();
        let slot = (name.len() * 7 + usize::from(last)) % KNOWN_NAMES;
        match self.0.get_mut(slot) {
            Some((known, promise)) if *known == name => *promise,
            Some(place) => {
                *place = (name, promise_of(name));
                place.1
            }
            None => promise_of(name),
        }
    }
}

/// What a name promises; nothing when it only speaks about a secret, as `token_count` does.
fn promise_of(name: &str) -> Option<NamePromise> {
    let lower = name.to_lowercase();
    if SPOKEN_NAMES.iter().any(|spoken| lower.contains(spoken)) {
        return Some(NamePromise::Password);
    }
    let words = name_words(name);
    let (at, promise) = words.iter().enumerate().find_map(|(at, word)| {
        let next = words.get(at + 1).map(String::as_str);
        word_promise(word, next).map(|promise| (at, promise))
    })?;
    let about = words
        .iter()
        .skip(at + 1)
        .any(|word| ABOUT.contains(word.as_str()));
    let place = words
        .iter()
        .take(at)
        .any(|word| PLACES.contains(&word.as_str()));
    (!about && !place).then_some(promise)
}

fn word_promise(word: &str, next: Option<&str>) -> Option<NamePromise> {
    let holds = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
    if holds(&[
        "password",
        "passwd",
        "passphrase",
        "passwort",
        "passcode",
        "kennwort",
        "senha",
        "wachtwoord",
    ]) || word.ends_with("pwd")
        || matches!(word, "storepass" | "keypass")
    {
        return Some(NamePromise::Password);
    }
    if word.contains("apikey") || word == "api" && next == Some("key") {
        return Some(NamePromise::ApiKey);
    }
    if matches!(word, "pass" | "passe" | "pw" | "psk" | "clave" | "mdp") {
        return Some(NamePromise::Perhaps);
    }
    let is_key = next == Some("key") && KEY_KINDS.contains(&word);
    let joined_key = word
        .strip_suffix("key")
        .is_some_and(|kind| KEY_KINDS.contains(&kind));
    let tokens = word.contains("token") && !word.contains("tokeni");
    if is_key
        || joined_key
        || tokens
        || holds(&["secret", "credential"])
        || holds(&["sessionid", "sessid"])
    {
        return Some(NamePromise::Suspected);
    }
    (word == "auth" && next.is_none()).then_some(NamePromise::Login)
}

/// What stands before `key` in the name of one that is kept secret.
const KEY_KINDS: [&str; 21] = [
    "access",
    "account",
    "admin",
    "aes",
    "app",
    "auth",
    "cipher",
    "decryption",
    "deploy",
    "encryption",
    "hmac",
    "jwt",
    "license",
    "master",
    "private",
    "service",
    "session",
    "shared",
    "signing",
    "storage",
    "webhook",
];

/// For names such as `password` and `api_key`.
fn is_named_secret(a: &AssignedValue<'_>) -> bool {
    let value = a.value;
    if value.len() < 3 || is_code(a) {
        return false;
    }
    match a.operator {
        ValueOperator::Sentence => {
            return looks_spoken(value) || looks_chosen(value) || is_run_of_words(a);
        }
        ValueOperator::Argument => return !is_wordy(value) || is_drawn_word(value),
        ValueOperator::Flag => {
            return (!is_wordy(value) || is_drawn_word(value))
                && !value.starts_with('-')
                && !is_named_part(value);
        }
        _ => {}
    }
    if value.bytes().all(|b| b.is_ascii_digit()) {
        return value.len() >= 6;
    }
    if value.contains(char::is_whitespace) {
        return a.name.to_ascii_lowercase().starts_with("passphrase");
    }
    // A tag of YAML, and a list of what a form's field must satisfy.
    if value.strip_prefix('!').is_some_and(is_plain)
        || value.contains('|') && is_named_thing(&value.replace('|', "-"))
    {
        return false;
    }
    // `connect(password=pw2)` passes a variable on.
    let passes_on =
        !a.quoted && a.next == Some(')') && is_identifier(value) && is_named_thing(value);
    if !is_wordy(value) {
        return !passes_on && !is_number_or_type(value);
    }
    is_lone_word(a) || is_drawn_word(value)
}

/// The least letters of several words in one: no single word that is said of a password is as long.
const RUN_OF_WORDS: usize = 16;

/// The least words of a passphrase, and the least letters of each.
const PHRASE_WORDS: usize = 4;

/// A passphrase at the end of a sentence: words without anything between them, or joined by signs.
fn is_run_of_words(a: &AssignedValue<'_>) -> bool {
    let ends = matches!(
        a.next,
        None | Some('\n' | '\r' | '"' | '\'' | '\\' | '.' | ',' | ';' | '!' | '?' | ')')
    );
    let is_word = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase());
    let parts: Vec<&str> = a.value.split(['-', '_', '.']).collect();
    let is_joined = parts.len() >= PHRASE_WORDS
        && parts
            .iter()
            .all(|part| part.len() >= PHRASE_WORDS && is_word(part));
    ends && (a.value.len() >= RUN_OF_WORDS && is_word(a.value) || is_joined)
}

/// How many bits a word of letters alone must be dearer as chosen letters than as drawn ones.
const DRAWN_WORD: i32 = 16;

/// Letters and digits that no word is made of.
fn is_drawn_word(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_alphanumeric())
        && letters::surprise(value.as_bytes()) > DRAWN_WORD
}

fn is_plain(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_alphabetic())
}

/// `0x08`, `u32`, `__u32`.
fn is_number_or_type(value: &str) -> bool {
    let kind = value
        .trim_start_matches('_')
        .trim_start_matches(['u', 'i', 'f']);
    value.starts_with("0x") && value.len() <= 18 || matches!(kind, "8" | "16" | "32" | "64" | "128")
}

/// A word without digits or symbols is a password only where code would not put a name or a type.
fn is_lone_word(a: &AssignedValue<'_>) -> bool {
    let word = a.value;
    let lower = word.to_ascii_lowercase();
    let names = ["password", "passwd", "secret", "token"];
    if word.contains(['_', '-', '.', '/'])
        || names
            .iter()
            .any(|name| lower.len() > name.len() && lower.contains(name))
        || NOT_SECRETS.contains(word.to_ascii_lowercase().as_str())
    {
        return false;
    }
    let lower = word.bytes().all(|b| b.is_ascii_lowercase());
    if a.quoted {
        return lower || !is_camel(word);
    }
    let ends_line = matches!(a.next, None | Some('\n' | '\r' | '"' | '\\'));
    match a.operator {
        ValueOperator::Equals => {
            lower && !a.spaced && (ends_line || matches!(a.next, Some(' ' | '&' | '\'')))
        }
        ValueOperator::Colon => lower && ends_line,
        ValueOperator::Tag => lower,
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

/// Code, a template, a path or a stand-in: never a value that somebody could use.
fn is_code(a: &AssignedValue<'_>) -> bool {
    let value = a.value;
    let opens_code = value.starts_with([
        ' ', ',', ':', ';', ')', ']', '}', '[', '=', '>', '|', '\t', '~', '&', '\\', '+',
    ]);
    if opens_code || is_template(value) || is_path(value) || is_mask(value) {
        return true;
    }
    if a.quoted {
        return is_constant_name(value);
    }
    let opens = matches!(a.next, Some('(' | '[' | '{' | '<')) && a.operator != ValueOperator::Tag;
    a.name_quoted || opens || is_dotted_name(value) || is_typed_number(value)
}

/// `128u32`, `0x80UL`, `1_000i64`: a number with its type.
fn is_typed_number(value: &str) -> bool {
    const TYPES: [&str; 16] = [
        "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "f32", "f64", "UL",
        "ULL", "LL", "L",
    ];
    TYPES.iter().any(|kind| {
        let number = value.strip_suffix(kind).unwrap_or_default();
        let digits = number.strip_prefix("0x").unwrap_or(number);
        let is_digit = |b: u8| {
            b == b'_'
                || b.is_ascii_digit()
                || (number.len() > digits.len() && b.is_ascii_hexdigit())
        };
        !digits.is_empty() && digits.len() <= 16 && digits.bytes().all(is_digit)
    })
}

/// `${PASSWORD}`, `$API_KEY`, `<token>`, `{{ secret }}`, `%s`, `your-key-here`.
pub(super) fn is_template(value: &str) -> bool {
    let mut chars = value.chars();
    let first = chars.next();
    let variable = first == Some('$')
        && chars
            .next()
            .is_some_and(|c| c.is_alphabetic() || "_({$".contains(c));
    variable
        || value.starts_with(['<', '{', '%', '*', '@', '#'])
        || has_template_mark(value)
        || (value.contains('{') && value.contains('}'))
        || has_stand_in(value)
}

fn has_template_mark(value: &str) -> bool {
    let may_begin = |byte: u8| matches!(byte, b'$' | b'{' | b'#' | b'%' | b'.' | 0xe2);
    let marks = ["${", "$(", "{{", "#{", "%(", "...", "…"];
    value.bytes().any(may_begin) && marks.iter().any(|mark| value.contains(mark))
}

fn has_stand_in(value: &str) -> bool {
    let value = value.as_bytes();
    (0..value.len()).any(|at| {
        let rest = value.get(at..).unwrap_or_default();
        let first = rest.first().copied().unwrap_or(0).to_ascii_lowercase();
        let from = STAND_INS.partition_point(|word| word.as_bytes().first() < Some(&first));
        let candidates = STAND_INS.iter().skip(from).map(|word| word.as_bytes());
        candidates
            .take_while(|word| word.first() == Some(&first))
            .any(|word| {
                let here = rest.get(..word.len());
                here.is_some_and(|here| here.eq_ignore_ascii_case(word))
            })
    })
}

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
    let value = value
        .get(..value.floor_char_boundary(RANDOM_REACH))
        .unwrap_or_default();
    let length = value.len();
    if length < 12 || is_template(value) || value.contains(char::is_whitespace) {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let mostly_digits = digits * 10 > (digits + letters) * 8;
    let is_long_hex = length >= 32 && value.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    (digits > 0 && !is_named_thing(value) || is_drawn_word(value))
        && letters > 0
        && (!mostly_digits || is_long_hex)
        && !is_chosen(value)
        && entropy(value) >= 3.0
}

/// True for words and names, by their letters; hex digits are no words.
fn is_chosen(value: &str) -> bool {
    let is_hex = value.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    !is_hex && letters::surprise(value.as_bytes()) < 0
}

/// What somebody typed as a password: letters, digits and a sign.
fn looks_typed(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    value.len() >= 8
        && !is_template(value)
        && has(u8::is_ascii_alphabetic)
        && has(u8::is_ascii_digit)
        && (has(|b| b"!@#$%^&*?~".contains(b))
            || !is_named_thing(value) && letters::surprise(value.as_bytes()) > 8)
}

/// The shortest password of several kinds of characters.
const CHOSEN: usize = 8;

/// A password as people choose them: small letters, a capital, digits and a sign, and none of it an algorithm's name.
pub(super) fn looks_chosen(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    let mut parts = value.split(|c: char| !c.is_ascii_alphanumeric());
    value.len() >= CHOSEN
        && !is_template(value)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
        && has(|b| b"-_!@#$%^&*?~+".contains(b))
        && !value.contains(['/', ':', '.', '=', '(', ')'])
        && !parts.any(|part| NOT_SECRETS.contains(part.to_ascii_lowercase().as_str()))
}

/// Whether a word says that a password is only spoken about: its length, its policy.
pub(super) fn is_about(word: &str) -> bool {
    ABOUT.contains(word.to_ascii_lowercase().as_str())
}

/// What stands where nothing but a password does, behind a login's name: letters with a digit or a sign.
pub(super) fn looks_given(value: &str) -> bool {
    !is_template(value) && looks_spoken(value)
}

/// The name of a cookie whose value lets its holder in.
pub(super) fn names_session(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["sess", "auth", "token", "sid", "jwt", "login", "remember"]
        .iter()
        .any(|part| lower.contains(part))
}

/// The least characters of a cookie that its name gives away.
const SESSION_VALUE: usize = 8;

/// The value of a cookie that [`names_session`].
pub(super) fn looks_like_session(value: &str) -> bool {
    value.len() >= SESSION_VALUE && has_digit_and_letter(value) && !is_template(value)
}

/// What stands behind `the password is`: no word, and no name of an algorithm.
fn looks_spoken(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    let plain = !value.contains(['_', '-', '/', '.', ':', '%'])
        || looks_random(value)
        || looks_typed(value)
        || looks_chosen(value);
    value.len() >= 6
        && plain
        && has(u8::is_ascii_alphabetic)
        && (has(u8::is_ascii_digit) || has(|b| b"!@#$^&*".contains(b)) || is_drawn_word(value))
        && !NOT_SECRETS.contains(value.to_ascii_lowercase().as_str())
}

/// `user:password` in base64, as `docker login` keeps it.
fn is_encoded_login(value: &str) -> bool {
    let Some(decoded) = decode_base64(value) else {
        return false;
    };
    let printable = decoded.iter().all(|b| b.is_ascii_graphic() || *b == b' ');
    value.len() >= 8 && printable && decoded.contains(&b':')
}

fn decode_base64(value: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut held) = (0u32, 0);
    for byte in value.trim_end_matches('=').bytes() {
        let sextet = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(sextet);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held & 0xff) as u8);
        }
    }
    Some(out)
}

fn is_identifier(value: &str) -> bool {
    value
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The metavariable of a help text, or the next flag's name.
fn is_named_part(value: &str) -> bool {
    is_constant_name(value) || value.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
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

/// The words of a name in any style, lower case.
pub(super) fn name_words(key: &str) -> Vec<String> {
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
