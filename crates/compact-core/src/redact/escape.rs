//! Words and escapes: where a word can begin, and where a cut would leave half an escape of a JSON string.

/// True when a secret can begin after `before`: not within a word, though after the `_` of one. In raw JSON
/// the `n` of `\n` is no letter.
pub(super) fn opens_word(before: &str) -> bool {
    let continues = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !before.chars().next_back().is_some_and(continues) || ends_in_escape(before)
}

/// True when the last characters are an escape such as `\n` or `\u00e9`.
pub(super) fn ends_in_escape(before: &str) -> bool {
    let start = before.len();
    if !has_backslash_before(before, start) {
        return false;
    }
    (1..=5).any(|back| {
        let Some(slash) = start.checked_sub(back + 1) else {
            return false;
        };
        escape_at(before, slash).is_some_and(|length| slash + length == start)
    })
}

/// The place at or after `start` that cuts no escape of a JSON string in two.
pub(super) fn after_escape(text: &str, start: usize) -> usize {
    if !has_backslash_before(text, start) {
        return start;
    }
    let cut = (1..=5).find_map(|back| {
        let slash = start.checked_sub(back)?;
        let length = escape_at(text, slash)?;
        (slash + length > start).then_some(slash + length)
    });
    cut.unwrap_or(start)
}

/// The bytes of the longest escape.
const LONGEST: usize = 6;

/// Whether an escape may begin in the last bytes before a place: in most texts none does.
fn has_backslash_before(text: &str, at: usize) -> bool {
    let near = text.as_bytes().get(at.saturating_sub(LONGEST)..at);
    near.is_some_and(|near| near.contains(&b'\\'))
}

/// The length of the escape that begins at `slash`, if one does.
fn escape_at(text: &str, slash: usize) -> Option<usize> {
    let (before, from) = text.split_at_checked(slash)?;
    let mut chars = from.chars();
    if chars.next() != Some('\\') || trailing_backslashes(before) % 2 == 1 {
        return None;
    }
    match chars.next()? {
        'u' if chars.take(4).filter(char::is_ascii_hexdigit).count() == 4 => Some(6),
        next => Some(1 + next.len_utf8()),
    }
}

fn trailing_backslashes(text: &str) -> usize {
    text.bytes().rev().take_while(|b| *b == b'\\').count()
}
