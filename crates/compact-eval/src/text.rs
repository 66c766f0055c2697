//! Texts by code points: the metric counts and cuts by them, wherever a byte may fall.

/// Returns how many code points.
pub(crate) fn count_chars(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

/// Returns tokens at four code points each, rounded up.
pub(crate) fn count_tokens(text: &str) -> usize {
    count_chars(text).div_ceil(4)
}

/// Returns the first code points.
pub(crate) fn head(text: &str, count: usize) -> &str {
    let end = text
        .char_indices()
        .nth(count)
        .map_or(text.len(), |(i, _)| i);
    text.get(..end).unwrap_or(text)
}

/// Returns the last code points.
pub(crate) fn tail(text: &str, count: usize) -> &str {
    if count == 0 {
        return "";
    }
    let start = text
        .char_indices()
        .rev()
        .nth(count - 1)
        .map_or(0, |(i, _)| i);
    text.get(start..).unwrap_or(text)
}

/// Returns the text around a byte range: up to so many code points before and after it.
pub(crate) fn chars_around(text: &str, start: usize, end: usize, count: usize) -> (&str, &str) {
    (
        tail(text.get(..start).unwrap_or_default(), count),
        head(text.get(end..).unwrap_or_default(), count),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_are_counted_and_cut() {
        assert_eq!(
            (
                count_chars("aé漢"),
                count_tokens("aé漢x"),
                count_tokens("aé漢xy")
            ),
            (3, 1, 2)
        );
        assert_eq!((head("aé漢", 2), tail("aé漢", 2)), ("aé", "é漢"));
        assert_eq!(
            (head("ab", 9), tail("ab", 9), tail("ab", 0)),
            ("ab", "ab", "")
        );
        assert_eq!(chars_around("ab漢cd", 2, 5, 1), ("b", "c"));
    }
}
