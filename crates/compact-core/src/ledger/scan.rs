//! Finds the names in a text: paths, urls, ids, hashes, code identifiers, numbers.
//!
//! One pass over the bytes with a class table, no regular expressions: a name is a run of name
//! characters whose classes say what it is. Plain words are skipped in the loop. It knows no
//! programming language and no tool; what it cannot tell apart it calls by the more general kind.

use serde::{Deserialize, Serialize};

/// What a name looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// `https://…`
    Url,
    /// `name@host.tld`
    Email,
    /// 8-4-4-4-12 hex digits.
    Uuid,
    /// Directories and a file.
    Path,
    /// A bare file name.
    File,
    /// `--option`
    Flag,
    /// Seven or more hex digits, letters among them.
    Hash,
    /// Letters and digits mixed: tickets, orders, flights.
    Id,
    /// snake_case, camelCase, PascalCase, `a.b`, `A::B`.
    Ident,
    /// Words joined by hyphens: branches, packages, models.
    Slug,
    /// Three or more digits, dates and decimals included.
    Number,
    /// `v1.2.3`
    Version,
}

const LOWER: u8 = 1;
const UPPER: u8 = 2;
const LETTER: u8 = LOWER | UPPER;
const DIGIT: u8 = 4;
const UNDER: u8 = 8;
const DOT: u8 = 16;
const SLASH: u8 = 32;
const DASH: u8 = 64;
/// `:` and `@`, which join names in some places only.
const JOIN: u8 = 128;

const CLASSES: [u8; 256] = classes();

// A constant table is built before any data is read: every index below is a literal range.
#[allow(clippy::indexing_slicing)]
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        table[c] = match c as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDER,
            b'.' => DOT,
            b'/' => SLASH,
            b'-' => DASH,
            b':' | b'@' => JOIN,
            _ => 0,
        };
        c += 1;
    }
    table
}

#[inline(always)]
fn class(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Calls `found(kind, start, name)` for every name in `text`, in order of appearance. A path also
/// yields its file name, a dotted name the identifiers it is made of.
pub fn scan_names<'t>(text: &'t str, found: &mut impl FnMut(NameKind, usize, &'t str)) {
    let (mut at, mut skip) = (0, 0);
    let bytes = text.as_bytes();
    // Most of a text is words of small letters, which are passed over with what stands between them.
    let is_sign = |byte: &u8| class(*byte) & !LOWER != 0;
    while let Some(plain) = bytes.get(at..) {
        let Some(length) = plain.iter().position(is_sign) else {
            return;
        };
        let plain = plain.get(..length).unwrap_or_default();
        let letters = plain.iter().rev().take_while(|byte| class(**byte) != 0);
        let start = at + length - letters.count();
        let (run, end) = NameRun::read(bytes, start);
        if start >= skip && run.is_telling() && !run.is_closed_word() && end - start >= SHORTEST {
            skip = scan_run(text, run, end, found);
        }
        at = end;
    }
}

/// The bytes of the shortest name.
const SHORTEST: usize = 3;

/// A run of name characters and the classes seen in it.
#[derive(Clone, Copy)]
struct NameRun {
    start: usize,
    mask: u8,
    /// The classes before its last character.
    inner: u8,
    /// Whether a capital follows a small letter.
    hump: bool,
}

impl NameRun {
    /// The run that begins at `start`, and where it ends.
    #[inline(always)]
    fn read(bytes: &[u8], start: usize) -> (NameRun, usize) {
        let (mut mask, mut inner) = (0, 0);
        let mut end = start;
        for byte in bytes.get(start..).unwrap_or_default() {
            let class = class(*byte);
            if class == 0 {
                break;
            }
            inner = mask;
            mask |= class;
            end += 1;
        }
        // Most words have small letters only.
        let hump = mask & LETTER == LETTER && has_hump(bytes.get(start..end).unwrap_or_default());
        let run = NameRun {
            start,
            mask,
            inner,
            hump,
        };
        (run, end)
    }

    /// The classes of a text that is part of a run.
    fn from_text(text: &str, start: usize) -> NameRun {
        let (run, _) = NameRun::read(text.as_bytes(), 0);
        NameRun { start, ..run }
    }

    /// More than a plain word.
    #[inline(always)]
    fn is_telling(self) -> bool {
        self.hump || self.mask & !LETTER != 0
    }

    /// A plain word and the sign behind it, as every sentence has one.
    #[inline(always)]
    fn is_closed_word(self) -> bool {
        self.inner & !LETTER == 0 && !self.hump && self.only(LETTER | DOT | DASH | JOIN)
    }

    fn has_class(self, classes: u8) -> bool {
        self.mask & classes != 0
    }

    fn only(self, classes: u8) -> bool {
        self.mask & !classes == 0
    }
}

/// Whether a capital follows a small letter.
fn has_hump(run: &[u8]) -> bool {
    let is_hump = |pair: &[u8]| matches!(pair, [b'a'..=b'z', b'A'..=b'Z']);
    run.windows(2).any(is_hump)
}

/// Handles one run and says up to where the text is consumed.
fn scan_run<'t>(
    text: &'t str,
    run: NameRun,
    end: usize,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) -> usize {
    let run = without_escape(text, run, end);
    let Some(raw) = text.get(run.start..end).filter(|_| run.is_telling()) else {
        return end;
    };
    if run.has_class(JOIN) {
        return scan_joined(text, raw, run, found);
    }
    scan_part(text, raw, run, found);
    end
}

/// How far back a path is looked for that a backslash belongs to.
const PATH_REACH: usize = 64;

/// A run without the escape before it: the `n` of `one\ntwo` is no part of a name, that of `C:\new` is.
fn without_escape(text: &str, run: NameRun, end: usize) -> NameRun {
    let before = run.start.checked_sub(1);
    if before.and_then(|at| text.as_bytes().get(at)) != Some(&b'\\') {
        return run;
    }
    let letters = match text.as_bytes().get(run.start..end) {
        Some([b'n' | b't' | b'r', ..]) => 1,
        Some([b'u', code @ ..]) if is_code(code) => 5,
        _ => 0,
    };
    if letters == 0 || is_in_path(text, run.start) {
        return run;
    }
    match text.get(run.start + letters..end) {
        Some(rest) => NameRun::from_text(rest, run.start + letters),
        None => run,
    }
}

/// Four digits of a character's number.
fn is_code(bytes: &[u8]) -> bool {
    let code = bytes.get(..4);
    code.is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
}

/// Whether the backslash before `at` belongs to a path: after a drive, a server or a dot.
fn is_in_path(text: &str, at: usize) -> bool {
    let near = text.floor_char_boundary(at.saturating_sub(PATH_REACH));
    let before = text.get(near..at).unwrap_or("");
    let opens = |c: char| c.is_whitespace() || "\"'`(=,".contains(c);
    let token = before.rsplit(opens).next().unwrap_or("");
    let server = token.strip_prefix("\\\\");
    token.get(1..3) == Some(":\\")
        || token.starts_with(".\\")
        || server.is_some_and(|name| name.starts_with(char::is_alphanumeric))
}

/// A run with `:` or `@`: a url, an email, `A::B`, or several names in a row.
fn scan_joined<'t>(
    text: &'t str,
    raw: &'t str,
    run: NameRun,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) -> usize {
    let start = run.start;
    let end = start + raw.len();
    if run.has_class(SLASH)
        && let Some(scheme) = raw.find("://")
    {
        let head = raw.get(..scheme).unwrap_or("");
        let from = start
            + head
                .rfind(|c: char| !c.is_ascii_alphanumeric())
                .map_or(0, |i| i + 1);
        let url = url_at(text, from);
        let (page, _) = url.split_once('#').unwrap_or((url, ""));
        found(NameKind::Url, from, page);
        return from + url.len();
    }
    let trimmed = raw.trim_matches(':');
    let at = start + (raw.len() - raw.trim_start_matches(':').len());
    if run.has_class(DOT)
        && let Some((local, host)) = trimmed.split_once('@')
        && !local.is_empty()
        && !local.contains([':', '/'])
        && host.contains('.')
        && !host.contains([':', '/', '@'])
    {
        found(NameKind::Email, at, trimmed.trim_end_matches(['.', '-']));
        return end;
    }
    let is_scoped = trimmed.as_bytes().windows(2).any(|pair| pair == b"::");
    if is_scoped && !trimmed.contains(['/', '@']) {
        scan_scoped(trimmed, at, found);
        return end;
    }
    let mut from = at;
    for piece in trimmed.split(':') {
        scan_part(text, piece, NameRun::from_text(piece, from), found);
        from += piece.len() + 1;
    }
    end
}

fn url_at(text: &str, from: usize) -> &str {
    let rest = text.get(from..).unwrap_or("");
    let end = rest
        .find(|c: char| c.is_whitespace() || c.is_control() || "\"'<>()[]{}\\`|".contains(c))
        .unwrap_or(rest.len());
    rest.get(..end)
        .unwrap_or("")
        .trim_end_matches(['.', ',', ':', ';', '/', '-', '_', '*', '…'])
}

fn scan_scoped<'t>(name: &'t str, at: usize, found: &mut impl FnMut(NameKind, usize, &'t str)) {
    let clean = name.trim_end_matches(['.', '-', '/']);
    found(NameKind::Ident, at, clean);
    let mut from = at;
    for piece in clean.split("::") {
        scan_identifier(piece, from, found);
        from += piece.len() + 2;
    }
}

/// One run without `:`: path, dotted, hyphenated or simple.
fn scan_part<'t>(
    text: &'t str,
    raw: &'t str,
    run: NameRun,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    let bytes = raw.as_bytes();
    let flag = bytes.starts_with(b"--");
    let opens = |byte: &&u8| matches!(byte, b'.' | b'-' | b'@');
    let closes = |byte: &&u8| opens(byte) || **byte == b'/';
    let head = bytes.iter().take_while(opens).count();
    let tail = bytes.iter().rev().take_while(closes).count();
    let clean = raw.get(head..raw.len() - tail).unwrap_or("");
    let clean = without_line(clean);
    let at = run.start + head;
    if clean.len() < SHORTEST {
        return;
    }
    let run = match clean.len() == raw.len() {
        true => run,
        false => NameRun::from_text(clean, at),
    };
    if !run.is_telling() {
        if flag {
            found(
                NameKind::Flag,
                at - 2,
                raw.get(head - 2..head + clean.len()).unwrap_or(clean),
            );
        }
        return;
    }
    if run.has_class(SLASH) {
        scan_path(raw, clean, at, found);
    } else if flag && !run.has_class(UPPER) {
        found(
            NameKind::Flag,
            at - 2,
            raw.get(head - 2..head + clean.len()).unwrap_or(clean),
        );
    } else if run.only(DIGIT | DOT | DASH) {
        scan_number(text, clean, at, run, found);
    } else if run.has_class(DASH) {
        scan_hyphenated(clean, at, run, found);
    } else if run.has_class(DOT) {
        scan_dotted(clean, at, run, found);
    } else {
        scan_simple(text, clean, at, run, found);
    }
}

/// `src/a.go-41`, as tools mark the lines around a match: the file is meant.
#[inline]
fn without_line(name: &str) -> &str {
    match name.as_bytes() {
        [.., b'0'..=b'9'] => without_line_number(name),
        _ => name,
    }
}

fn without_line_number(name: &str) -> &str {
    let file = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match file.strip_suffix('-') {
        Some(file)
            if file.len() + 1 < name.len() && extension(file).is_some_and(is_file_extension) =>
        {
            file
        }
        _ => name,
    }
}

fn scan_path<'t>(
    raw: &str,
    clean: &'t str,
    at: usize,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    let pieces = clean.split('/').filter(|p| !p.is_empty()).count();
    let rooted = clean.starts_with('/') || raw.starts_with(['.', '@']) || raw.ends_with('/');
    let last = clean.rsplit('/').next().unwrap_or("");
    let telling = pieces >= 3 || NameRun::from_text(last, 0).is_telling();
    if pieces < 2 || !(rooted || telling) || clean.bytes().all(|b| b.is_ascii_digit() || b == b'/')
    {
        return scan_components(clean, at, found);
    }
    found(NameKind::Path, at, clean);
    if last.len() >= 4 && extension(last).is_some() {
        found(NameKind::File, at + clean.len() - last.len(), last);
    }
}

/// `/word` and `a/b` are no paths, but `x/someName` still holds a name.
fn scan_components<'t>(
    clean: &'t str,
    at: usize,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    let mut from = at;
    for piece in clean.split('/') {
        match extension(piece).is_some_and(is_file_extension) {
            true => found(NameKind::File, from, piece),
            false => scan_identifier(piece, from, found),
        }
        from += piece.len() + 1;
    }
}

fn extension(name: &str) -> Option<&str> {
    let (stem, ext) = name.rsplit_once('.')?;
    let lettered = ext.bytes().any(|b| b.is_ascii_lowercase());
    (stem.len() >= 2 && (1..=6).contains(&ext.len()) && lettered && !ext.contains('_'))
        .then_some(ext)
}

fn scan_number<'t>(
    text: &'t str,
    clean: &'t str,
    at: usize,
    run: NameRun,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    let digits = clean.bytes().filter(u8::is_ascii_digit).count();
    if clean.bytes().filter(|b| *b == b'.').count() >= 2 && !run.has_class(DASH) {
        found(NameKind::Version, at, clean);
    } else if let (true, Some(tag)) = (digits >= 2, tagged_name(text, clean, at)) {
        found(NameKind::Id, at - 1, tag);
    } else if digits >= 3 && !is_year(clean) {
        found(NameKind::Number, at, clean);
    }
}

/// `#123` and `#W123`: the sign belongs to the name.
fn tagged_name<'t>(text: &'t str, clean: &str, at: usize) -> Option<&'t str> {
    let tag = text.get(at.checked_sub(1)?..at + clean.len())?;
    tag.starts_with('#').then_some(tag)
}

fn is_year(digits: &str) -> bool {
    digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20"))
}

fn scan_hyphenated<'t>(
    clean: &'t str,
    at: usize,
    run: NameRun,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    if is_uuid(clean) {
        return found(NameKind::Uuid, at, clean);
    }
    if run.only(UPPER | DIGIT | DASH) && run.has_class(DIGIT) {
        return found(NameKind::Id, at, clean);
    }
    found(NameKind::Slug, at, clean);
    if run.has_class(UNDER) || run.hump || extension(clean).is_some() {
        let mut from = at;
        for piece in clean.split('-') {
            scan_identifier(piece, from, found);
            from += piece.len() + 1;
        }
    }
}

fn is_uuid(name: &str) -> bool {
    name.len() == 36
        && name.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

fn scan_dotted<'t>(
    clean: &'t str,
    at: usize,
    run: NameRun,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    let versioned = clean.trim_start_matches(['v', 'V']);
    if versioned.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return found(NameKind::Version, at, clean);
    }
    let mut pieces = clean.as_bytes().split(|byte| *byte == b'.');
    let receiver = pieces.clone().next().map_or(0, <[u8]>::len);
    if !pieces.any(|piece| piece.len() >= 3) {
        return;
    }
    let file = extension(clean).is_some_and(is_file_extension);
    if !file
        && receiver < 3
        && let Some(rest) = clean.get(receiver + 1..)
        && !rest.is_empty()
    {
        // `s.plan.target` is `plan.target` of whatever `s` is here, `t.Run` nothing in particular.
        let at = at + receiver + 1;
        return match rest.contains('.') {
            true => scan_dotted(rest, at, NameRun::from_text(rest, at), found),
            false => scan_identifier(rest, at, found),
        };
    }
    found(
        if file {
            NameKind::File
        } else {
            NameKind::Ident
        },
        at,
        clean,
    );
    if !file && (run.has_class(UNDER) || run.hump) {
        let mut from = at;
        for piece in clean.split('.') {
            scan_identifier(piece, from, found);
            from += piece.len() + 1;
        }
    }
}

fn is_file_extension(ext: &str) -> bool {
    matches!(
        ext,
        "rs" | "go"
            | "py"
            | "ts"
            | "tsx"
            | "js"
            | "jsx"
            | "mjs"
            | "json"
            | "jsonl"
            | "md"
            | "yml"
            | "yaml"
            | "toml"
            | "sh"
            | "sql"
            | "html"
            | "css"
            | "java"
            | "kt"
            | "c"
            | "h"
            | "cc"
            | "cpp"
            | "hpp"
            | "cs"
            | "rb"
            | "php"
            | "txt"
            | "lock"
            | "mod"
            | "sum"
            | "proto"
            | "vue"
            | "svelte"
            | "xml"
            | "csv"
            | "log"
            | "ini"
            | "cfg"
            | "conf"
            | "env"
            | "pdf"
            | "png"
            | "jpg"
            | "svg"
            | "zip"
            | "gz"
            | "swift"
            | "scala"
            | "ex"
            | "lua"
            | "ipynb"
    )
}

/// A piece of a larger name, kept when it is a name by itself.
fn scan_identifier<'t>(
    piece: &'t str,
    at: usize,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    let run = NameRun::from_text(piece, at);
    if piece.len() >= 4 && run.has_class(LOWER | UPPER) && (run.hump || run.has_class(UNDER)) {
        found(NameKind::Ident, at, piece);
    }
}

/// Letters, digits and underscores only.
fn scan_simple<'t>(
    text: &'t str,
    clean: &'t str,
    at: usize,
    run: NameRun,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    if run.has_class(UNDER) {
        if run.has_class(LOWER | UPPER) && clean.len() >= 4 {
            found(NameKind::Ident, at, clean);
        }
    } else if run.has_class(DIGIT) {
        scan_mixed(text, clean, at, run, found);
    } else {
        found(NameKind::Ident, at, clean);
    }
}

fn scan_mixed<'t>(
    text: &'t str,
    clean: &'t str,
    at: usize,
    run: NameRun,
    found: &mut impl FnMut(NameKind, usize, &'t str),
) {
    let hex = clean
        .bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if let (true, Some(tag)) = (!hex, tagged_name(text, clean, at)) {
        found(NameKind::Id, at - 1, tag);
    } else if hex && clean.len() >= 7 && clean.len() <= 64 {
        found(NameKind::Hash, at, clean);
    } else if run.hump {
        found(NameKind::Ident, at, clean);
    } else if clean.len() >= 5 && !hex {
        found(NameKind::Id, at, clean);
    }
}
