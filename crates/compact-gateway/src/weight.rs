//! What a history takes in memory, before it is read and after.
//!
//! A history of many tiny messages takes far more than its bytes. One that alone would take more than all sessions may is
//! told by a glance at its body, so that a request of some megabytes cannot fill a machine.

use memchr::memchr_iter;

/// For each byte: the bytes, the texts, their counts, and what was sent last.
const PER_BYTE: u64 = 4;

/// For each entry or part, however short: its place, its name, its hash and its count, and what they take while they are made.
const PER_PART: u64 = 1500;

/// The bytes of the shortest object that is one of many: `{"":0},`.
const SHORTEST_PART: usize = 7;

/// Returns what a session takes whose history has so many bytes and entries.
pub(crate) fn session_weight(bytes: usize, entries: usize) -> u64 {
    let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
    let parts = count(entries).saturating_mul(PER_PART);
    count(bytes).saturating_mul(PER_BYTE).saturating_add(parts)
}

/// Returns whether a body would take more than `most`. Its objects are counted only where they could be too many.
pub(crate) fn is_too_heavy(body: &[u8], most: u64) -> bool {
    session_weight(body.len(), body.len() / SHORTEST_PART) > most
        && session_weight(body.len(), count_objects(body)) > most
}

/// Counts the objects of a JSON text that have a member. Within a string, a quotation mark stands behind a backslash.
fn count_objects(body: &[u8]) -> usize {
    let opens_object = |at: &usize| {
        let mut rest = body.iter().skip(at + 1);
        rest.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'"')
    };
    memchr_iter(b'{', body).filter(opens_object).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_and_what_texts_say_of_them_is_not() {
        let body = br#"{ "messages": [{"content": "fn main() {} {\"a\": {\"b\": 1}}"},
            {
              "content": {}
            }]}"#;
        assert_eq!(count_objects(body), 3);
    }

    #[test]
    fn many_tiny_messages_are_too_heavy_where_as_many_bytes_of_text_are_not() {
        let tiny = br#"{"role":"user","content":"1"},"#.repeat(100_000);
        let text = [&b"{\"content\":\""[..], &b"{ a; } ".repeat(430_000), b"\"}"].concat();
        let most = 64 << 20;
        assert!(is_too_heavy(&tiny, most));
        assert!(!is_too_heavy(&text, most));
        assert!(!is_too_heavy(&tiny, 1 << 30));
    }
}
