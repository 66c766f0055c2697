//! Where the sentences and lines of a text end.

use std::ops::Range;

/// The spans of a text's sentences and lines: together the whole text.
pub(super) fn spans(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, c) = chars.next()?;
            let next = chars.peek().map(|(_, c)| *c);
            let ends = match c {
                '\n' => true,
                // The space belongs to the sentence before, so that the next one begins with a word.
                ' ' => text.get(start..at).is_some_and(is_whole) && next != Some(' '),
                _ => next.is_none(),
            };
            if ends || next.is_none() {
                let span = start..at + c.len_utf8();
                start = span.end;
                return Some(span);
            }
        }
    })
}

/// True where a text ends with a whole sentence or line, so that another may begin.
pub(super) fn is_boundary(text: &str) -> bool {
    text.ends_with('\n') || (text.ends_with(' ') && is_whole(text))
}

fn is_whole(sentence: &str) -> bool {
    sentence
        .trim_end_matches(' ')
        .ends_with(['.', '!', '?', ';'])
}
