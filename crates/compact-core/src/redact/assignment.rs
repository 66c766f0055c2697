//! Values that stand behind a name: `name = "value"` in any language, a header, a query, a flag, a tag or a sentence.
//!
//! Read by hand, from the word that a filter found: the whole name around it, an operator, a value. Where a value of
//! plain characters ends is remembered, so a line of a million names is read once. Whether the value is a secret is for
//! `secret_check` to decide.

use std::ops::Range;

use super::{escape, secret_check};

/// The most characters of a name on either side of its telling word.
const NAME_REACH: usize = 48;

/// The most bytes of a value that are looked at; what goes on beyond them belongs to it too.
const VALUE_REACH: usize = 512;

/// The most spaces on either side of an operator.
const MOST_SPACES: usize = 32;

/// How far back a string may have been opened.
const QUOTE_REACH: usize = 512;

/// Values with more operators in them are lines of assignments, each of which is looked at by itself.
const MOST_OPERATORS: usize = 4;

/// What joins a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueOperator {
    /// `=`
    Equals,
    /// `:`
    Colon,
    /// `==`, `:=`, `=>`, or a type and `=`.
    Other,
    /// `--name value`
    Flag,
    /// `<name>value</name>`
    Tag,
    /// `the name is value`
    Sentence,
    /// `name value`, `name of something: value`: nothing but the value itself says that it is one.
    Beside,
    /// `setenv("name", "value")`
    Argument,
}

/// A value assigned to a name.
#[derive(Debug)]
pub(super) struct AssignedValue<'t> {
    pub(super) name: &'t str,
    /// The name stood in quotes: a JSON key, whose bare value is a number or a literal.
    pub(super) name_quoted: bool,
    pub(super) operator: ValueOperator,
    /// Spaces stand before a bare value.
    pub(super) spaced: bool,
    pub(super) value: &'t str,
    pub(super) quoted: bool,
    /// What follows the value.
    pub(super) next: Option<char>,
    pub(super) range: Range<usize>,
}

/// What one pass over a text remembers, so that no byte is read for every name before it.
#[derive(Default)]
pub(super) struct AssignmentScan {
    /// Where the last name ended; a word within it tells nothing new.
    name_end: usize,
    /// Where the last bare value ended.
    bare: Range<usize>,
}

impl AssignmentScan {
    /// The value behind the name that holds a telling word.
    pub(super) fn read<'t>(
        &mut self,
        text: &'t str,
        word: Range<usize>,
    ) -> Option<AssignedValue<'t>> {
        if word.start < self.name_end {
            return None;
        }
        let name = name_around(text, &word);
        let (operator, name_quoted, at) = read_operator(text, &name)?;
        self.name_end = name.end;
        let value_at = match operator {
            ValueOperator::Colon => skip_block_mark(text, skip_spaces(text, at)),
            _ => skip_spaces(text, at),
        };
        let found = self.read_value(text, value_at, operator)?;
        let closes = |quote: QuoteMark| !name_quoted && closes_string(text, name.start, quote);
        let inside = found.quote.is_some_and(closes)
            && !text.get(found.range.clone()).is_some_and(is_phrase);
        if inside {
            return None;
        }
        let range = escape::after_escape(text, found.range.start)..found.range.end;
        Some(AssignedValue {
            name: text.get(name)?.trim_start_matches('-'),
            name_quoted,
            operator,
            spaced: value_at != at,
            value: text.get(range.clone())?,
            quoted: found.quote.is_some(),
            next: text.get(range.end..)?.chars().next(),
            range,
        })
    }

    fn read_value(&mut self, text: &str, at: usize, operator: ValueOperator) -> Option<FoundValue> {
        if operator == ValueOperator::Tag {
            return read_tagged(text, at);
        }
        if let Some(quoted) = read_quoted(text, at) {
            return Some(quoted);
        }
        if !self.bare.contains(&at) {
            self.bare = at..bare_end(text, at);
        }
        let mut range = at..self.bare.end;
        let value = text.get(range.clone())?;
        let near = value.get(..value.floor_char_boundary(VALUE_REACH / 4))?;
        let operators = near.bytes().filter(|b| matches!(b, b'=' | b':')).count();
        if value.is_empty() || operators > MOST_OPERATORS {
            return None;
        }
        if matches!(operator, ValueOperator::Sentence | ValueOperator::Beside) {
            // Scripts that put no space between words go on behind the value.
            let value = value.split(|c: char| !c.is_ascii()).next()?;
            range.end = at + value.trim_end_matches(['.', ':', '!', '?']).len();
        }
        Some(FoundValue { range, quote: None })
    }
}

struct FoundValue {
    range: Range<usize>,
    quote: Option<QuoteMark>,
}

/// A quote with the backslashes before it, which say how deep the string is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct QuoteMark {
    quote: u8,
    depth: usize,
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The whole name that a word is part of.
pub(super) fn name_around(text: &str, word: &Range<usize>) -> Range<usize> {
    let signs = text.get(word.clone()).unwrap_or_default().bytes().rev();
    let word = word.start
        ..word.end
            - signs
                .take_while(|b| b.is_ascii() && !is_name_byte(*b))
                .count();
    let before = text.get(..word.start).unwrap_or_default();
    let after = text.get(word.end..).unwrap_or_default();
    let back = before
        .bytes()
        .rev()
        .take(NAME_REACH)
        .take_while(|b| is_name_byte(*b))
        .count();
    let on = after
        .bytes()
        .take(NAME_REACH)
        .take_while(|b| is_name_byte(*b))
        .count();
    escape::after_escape(text, word.start - back)..word.end + on
}

/// The operator after a name, whether the name was in quotes, and where the operator ends.
fn read_operator(text: &str, name: &Range<usize>) -> Option<(ValueOperator, bool, usize)> {
    let rest = text.get(name.end..)?;
    let first = rest.bytes().next()?;
    if !matches!(
        first,
        b':' | b'='
            | b'!'
            | b'?'
            | b'>'
            | b' '
            | b'\t'
            | b'\n'
            | b'\\'
            | b'"'
            | b'\''
            | b'`'
            | b'*'
            | 0xe2..=0xef
    ) {
        return None;
    }
    let slashes = rest.bytes().take_while(|b| *b == b'\\').count();
    let closed = rest
        .as_bytes()
        .get(slashes)
        .is_some_and(|b| matches!(b, b'"' | b'\'' | b'`'));
    let mut at = name.end + if closed { slashes + 1 } else { 0 };
    // `config["password"] = …`
    if closed && text.get(at..)?.starts_with(']') {
        at += 1;
    }
    let spaced = skip_spaces(text, at);
    let tail = text.get(spaced..)?;
    if let Some((operator, length)) = match_operator(tail) {
        return Some((operator, closed, spaced + length));
    }
    if let Some(length) = value_field(text.get(at..)?) {
        return Some((ValueOperator::Colon, closed, at + length));
    }
    if closed && tail.starts_with(',') && is_set_by_call(text.get(..name.start)?) {
        return Some((ValueOperator::Argument, true, spaced + 1));
    }
    if let Some(length) = form_field(text.get(..name.start)?, tail).filter(|_| closed) {
        return Some((ValueOperator::Argument, false, spaced + length));
    }
    if closed {
        let value = tail.strip_prefix("value=").filter(|_| spaced > at)?;
        return Some((ValueOperator::Other, true, text.len() - value.len()));
    }
    match_loose_operator(text, name, tail)
        .map(|(operator, length)| (operator, false, spaced + length))
}

fn match_operator(tail: &str) -> Option<(ValueOperator, usize)> {
    // Files of properties escape it.
    let slashes = tail.len() - tail.trim_start_matches('\\').len();
    if slashes > 0 {
        let equals = tail.get(slashes..)?.starts_with('=');
        return equals.then_some((ValueOperator::Equals, slashes + 1));
    }
    if let Some(length) = typed_operator(tail) {
        return Some((ValueOperator::Other, length));
    }
    let first = tail.bytes().next();
    for (sign, operator) in [
        (":=", ValueOperator::Other),
        ("=>", ValueOperator::Other),
        ("===", ValueOperator::Other),
        ("!==", ValueOperator::Other),
        ("==", ValueOperator::Other),
        ("!=", ValueOperator::Other),
        // Bold names.
        (":**", ValueOperator::Colon),
        ("**:", ValueOperator::Colon),
        ("是", ValueOperator::Sentence),
        ("は", ValueOperator::Sentence),
        ("を", ValueOperator::Sentence),
        ("는", ValueOperator::Sentence),
        ("은", ValueOperator::Sentence),
        ("改成了", ValueOperator::Sentence),
        ("改为", ValueOperator::Sentence),
        ("→", ValueOperator::Sentence),
        (":", ValueOperator::Colon),
        ("：", ValueOperator::Colon),
        ("=", ValueOperator::Equals),
    ] {
        if sign.bytes().next() == first && tail.starts_with(sign) {
            return Some((operator, sign.len()));
        }
    }
    None
}

/// The most bytes between a name and the field that holds its value.
const FIELD_REACH: usize = 48;

/// `"name": "DB_PASSWORD", "value": …` and the same in YAML: the length up to the value, from the end of the name.
fn value_field(tail: &str) -> Option<usize> {
    let gap = |byte: &u8| byte.is_ascii_whitespace() || b",\\\"'".contains(byte);
    let mut at = 0;
    while at < FIELD_REACH {
        let rest = tail.get(at..)?;
        // Within a string of JSON a new line is two characters.
        let length = match rest.strip_prefix("\\n") {
            Some(_) => 2,
            None => rest.bytes().take(1).filter(gap).count(),
        };
        if length == 0 {
            break;
        }
        at += length;
    }
    let crosses = tail.get(..at)?.contains([',', '\n', 'n']);
    let field = tail.get(at..)?.strip_prefix("value").filter(|_| crosses)?;
    let value = field
        .trim_start_matches(['\\', '"', '\''])
        .strip_prefix(':')?;
    Some(tail.len() - value.len())
}

/// Whether the quoted name before which a text ends is the first argument of a call that sets something.
fn is_set_by_call(before: &str) -> bool {
    let before = before.trim_end_matches(['\\', '"', '\'', '`']);
    let Some(callee) = before.strip_suffix('(') else {
        return false;
    };
    let start = callee.floor_char_boundary(callee.len().saturating_sub(NAME_REACH));
    let near = callee.get(start..).unwrap_or_default();
    let name = near
        .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .next();
    let name = name.unwrap_or_default().to_ascii_lowercase();
    ["set", "put", "define", "append", "header"]
        .iter()
        .any(|verb| name.starts_with(verb))
}

/// What follows the end of a line, if a text begins with one, also as it stands within strings of JSON.
fn after_line_end(text: &str) -> Option<&str> {
    let escaped = |text: &'_ str, letter: char| {
        let rest = text.trim_start_matches('\\');
        let letter = rest
            .strip_prefix(letter)
            .filter(|_| rest.len() < text.len());
        letter.map(|rest| text.len() - rest.len())
    };
    let after = escaped(text, 'r').and_then(|length| text.get(length..));
    let text = after.or(text.strip_prefix('\r')).unwrap_or(text);
    let after = escaped(text, 'n').and_then(|length| text.get(length..));
    after.or(text.strip_prefix('\n'))
}

/// `name="password"`, an empty line, the value: a form as browsers send it. The length up to the value.
fn form_field(before: &str, tail: &str) -> Option<usize> {
    let is_named = before.trim_end_matches(['\\', '"']).ends_with("name=");
    let value = after_line_end(after_line_end(tail)?)?;
    is_named.then(|| tail.len() - value.len())
}

/// Where the text of a YAML block begins: behind `|` or `>-`, in the next line.
fn skip_block_mark(text: &str, at: usize) -> usize {
    let block = text.get(at..).and_then(|value| {
        let marks = value.strip_prefix(['|', '>'])?;
        after_line_end(marks.trim_start_matches(['-', '+']))
    });
    block.map_or(at, |block| skip_spaces(text, text.len() - block.len()))
}

/// `: Type = `, with its length.
fn typed_operator(tail: &str) -> Option<usize> {
    let typed = tail.strip_prefix('?').unwrap_or(tail).strip_prefix(':')?;
    let opened = tail.len() - typed.len();
    let name = typed.trim_start_matches([' ', '\t']);
    let indent = typed.len() - name.len();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '&')) {
        return None;
    }
    let is_type = |b: &u8| b.is_ascii_alphanumeric() || b"_<>[]|&'. ".contains(b);
    let length = name.bytes().take(32).take_while(is_type).count();
    let type_name = name.get(..length)?;
    let equals = name.get(length..)?.strip_prefix('=')?;
    (type_name.ends_with(' ') && is_one_type(type_name) && equals.starts_with([' ', '\t']))
        .then_some(opened + indent + length + 1)
}

/// `str | None` and `&'a str` are one type; words side by side are a sentence, and what follows is not the value.
fn is_one_type(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let mut before = words.next().unwrap_or("|");
    words.all(|word| {
        let is_joined = before.starts_with('&') || before.ends_with('|') || word.starts_with('|');
        before = word;
        is_joined
    })
}

/// A flag's space, the end of a tag, or a verb.
fn match_loose_operator(
    text: &str,
    name: &Range<usize>,
    tail: &str,
) -> Option<(ValueOperator, usize)> {
    let before = text.get(..name.start)?;
    let whole = text.get(name.clone())?;
    if let (Some(_), true) = (tail.strip_prefix('>'), before.ends_with(['<', ':'])) {
        return Some((ValueOperator::Tag, 1));
    }
    let spaced = text.get(name.end..)?.starts_with([' ', '\t']);
    if !spaced {
        return None;
    }
    // A name in the row of a table; elsewhere the sign leads to another command.
    let is_cell = || before.trim_end_matches([' ', '*', '`']).ends_with('|');
    if tail.starts_with("| ") && is_cell() {
        return Some((ValueOperator::Sentence, 2));
    }
    if let Some(flag) = ["--body ", "-b "]
        .iter()
        .find(|flag| tail.starts_with(**flag))
        && before.ends_with("secret set ")
    {
        return Some((ValueOperator::Flag, flag.len()));
    }
    if whole.starts_with("--")
        || whole.starts_with('-') && before.ends_with(' ')
        || is_setting(before)
    {
        return Some((ValueOperator::Flag, 0));
    }
    if let Some(length) = changed_to(tail) {
        return Some((ValueOperator::Sentence, length));
    }
    if let Some(verb) = VERBS.iter().find(|verb| tail.starts_with(**verb)) {
        return Some((ValueOperator::Sentence, verb.len()));
    }
    Some(words_before_value(tail))
}

/// What joins a name and its value in a sentence, and what may.
const VERBS: [&str; 12] = [
    "is ", "ist ", "lautet ", "est ", "es ", "é ", "è ", "jest ", "это ", "— ", "was ", "is: ",
];
const WEAK_VERBS: [&str; 5] = ["c'est ", "to ", "now ", "- ", "-> "];

/// The most bytes and words that say whose a password is: `password for bob: …`, `la clave del servidor es …`.
const OWNER_REACH: usize = 48;
const OWNER_WORDS: usize = 5;

/// How a sentence begins in which a password becomes another one, and what stands before the new one.
const CHANGES: [&str; 9] = [
    "is ", "was ", "has ", "got ", "gets ", "ist ", "wurde ", "fue ", "est ",
];
const BECOMES: [&str; 3] = ["to ", "auf ", "en "];

/// `was changed to `, `has been set to `, `wurde auf `, with its length.
fn changed_to(tail: &str) -> Option<usize> {
    let near = tail.get(..tail.floor_char_boundary(OWNER_REACH))?;
    let mut words = near.split_inclusive(' ').take(OWNER_WORDS);
    let first = words.next().filter(|word| CHANGES.contains(word))?;
    let mut at = first.len();
    for word in words {
        at += word.len();
        if BECOMES.contains(&word) {
            return Some(at);
        }
        if !word.trim_end().chars().all(char::is_alphabetic) {
            return None;
        }
    }
    None
}

/// What joins a name and its value behind the words that say whose it is, if a colon or a verb ends them, and the
/// length up to the value.
fn words_before_value(tail: &str) -> (ValueOperator, usize) {
    let beside = |length| (ValueOperator::Beside, length);
    let near = tail.get(..tail.floor_char_boundary(OWNER_REACH));
    let near = near.unwrap_or_default();
    let mut at = 0;
    for word in near.split_inclusive(' ').take(OWNER_WORDS + 1) {
        if WEAK_VERBS.contains(&word) {
            return beside(at + word.len());
        }
        if at > 0 && VERBS.contains(&word) {
            return (ValueOperator::Sentence, at + word.len());
        }
        let plain = word.trim_end_matches(' ');
        if secret_check::looks_chosen(plain) {
            return beside(at);
        }
        at += word.len();
        let owner = plain.trim_end_matches(':');
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '\'');
        if owner.is_empty() || !owner.chars().all(is_word) || secret_check::is_about(owner) {
            return beside(0);
        }
        if owner.len() < plain.len() {
            return beside(at);
        }
    }
    beside(0)
}

/// `aws configure set NAME VALUE`, `npm config set NAME VALUE`, a line of a Dockerfile.
fn is_setting(before: &str) -> bool {
    [
        "configure set ",
        "config set ",
        "config add ",
        "setx ",
        "ENV ",
    ]
    .iter()
    .any(|command| before.ends_with(command))
}

fn skip_spaces(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest
        .bytes()
        .take(MOST_SPACES)
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}

/// A value in quotes, also behind a prefix such as Python's `b` and behind backslashes.
fn read_quoted(text: &str, at: usize) -> Option<FoundValue> {
    let bytes = text.as_bytes();
    let count = |from: usize, most: usize, test: fn(&u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take(most).take_while(|b| test(b)).count()
    };
    let prefix = count(at, 2, u8::is_ascii_alphabetic);
    let depth = count(at + prefix, VALUE_REACH, |b| *b == b'\\');
    let quote = bytes
        .get(at + prefix + depth)
        .copied()
        .filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
    let start = at + prefix + depth + 1;
    let end = quoted_end(bytes, start, quote);
    (end > start).then_some(FoundValue {
        range: start..end,
        quote: Some(QuoteMark { quote, depth }),
    })
}

/// No value crosses a quote of its own or a double one, a line's end, or an escaped quote.
fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start;
    let limit = start + VALUE_REACH;
    while let Some(byte) = bytes.get(at).copied().filter(|_| at < limit) {
        let ends = byte == quote
            || byte == b'"'
            || matches!(byte, b'\r' | b'\n')
            || quote == b'`' && byte == b'\'';
        if ends {
            break;
        }
        if byte == b'\\' {
            let next = bytes.get(at + 1).copied();
            let stops = next.is_none_or(|b| b == quote || matches!(b, b'"' | b'\r' | b'\n'));
            if stops || quote == b'`' {
                break;
            }
            at += 1;
        }
        at += 1;
    }
    char_start(bytes, at.min(bytes.len()))
}

/// The start of the character that a place is in.
fn char_start(bytes: &[u8], at: usize) -> usize {
    let inner = |b: &u8| *b & 0b1100_0000 == 0b1000_0000;
    let mut at = at;
    while at > 0 && bytes.get(at).is_some_and(inner) {
        at -= 1;
    }
    at
}

/// Where a value without quotes ends.
fn bare_end(text: &str, at: usize) -> usize {
    let ends = |c: char| c.is_whitespace() || "\"'`\\,;(){}<>[]".contains(c);
    let rest = text.get(at..).unwrap_or_default();
    at + rest.find(ends).unwrap_or(rest.len())
}

/// What stands before a closing tag.
fn read_tagged(text: &str, at: usize) -> Option<FoundValue> {
    let rest = text.get(at..)?;
    let near = rest.get(..rest.floor_char_boundary(VALUE_REACH))?;
    let length = near.find(['<', '\n', '"', '\\'])?;
    let closes = rest.get(length..)?.starts_with("</");
    (closes && length > 0).then_some(FoundValue {
        range: at..at + length,
        quote: None,
    })
}

/// Several words of small letters, which code does not put between two strings.
fn is_phrase(value: &str) -> bool {
    value.split(' ').count() > 2
        && value
            .split(' ')
            .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
}

/// True when a string is open where a name starts, so that the next quote closes it: `"password=" + it`.
fn closes_string(text: &str, name_start: usize, mark: QuoteMark) -> bool {
    let near = name_start.saturating_sub(QUOTE_REACH);
    let before = text.as_bytes().get(near..name_start).unwrap_or_default();
    let line = before
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let line = before.get(line..).unwrap_or_default();
    let mut open = false;
    let mut depth = 0;
    for (at, byte) in line.iter().enumerate() {
        if *byte == b'\\' {
            depth += 1;
            continue;
        }
        if *byte == mark.quote && !is_apostrophe(line, at) {
            // A quote less deep ends or begins the string around it.
            open = depth >= mark.depth && (open != (depth == mark.depth));
        }
        depth = 0;
    }
    open
}

fn is_apostrophe(line: &[u8], at: usize) -> bool {
    let is_letter = |at: Option<usize>| {
        at.and_then(|at| line.get(at))
            .is_some_and(u8::is_ascii_alphabetic)
    };
    line.get(at) == Some(&b'\'') && is_letter(at.checked_sub(1)) && is_letter(Some(at + 1))
}
