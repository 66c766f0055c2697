//! When an entry was said, where its transcript says so.

use compact_formats::Document;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The members that hold a time, and those that stand around them.
#[derive(Deserialize)]
struct TimedMembers<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, alias = "createdAt", alias = "created")]
    created_at: Option<&'a RawValue>,
    #[serde(borrow)]
    start: Option<&'a RawValue>,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
}

/// Returns when an entry of a document was said, as RFC 3339 in UTC with seconds: its own time, or that of the
/// line or message that holds it.
pub(crate) fn time_of(document: &Document, entry: usize) -> Option<String> {
    let own = document.entry_bytes(entry).and_then(time_in);
    own.or_else(|| document.record_bytes(entry).and_then(time_in))
}

fn time_in(json: &[u8]) -> Option<String> {
    find_time(std::str::from_utf8(json).ok()?)
}

fn find_time(json: &str) -> Option<String> {
    let members: TimedMembers<'_> = serde_json::from_str(json).ok()?;
    let stamps = [members.timestamp, members.created_at, members.start];
    let nested = [members.time, members.info];
    let inside = |raw: &RawValue| read_stamp(raw.get()).or_else(|| find_time(raw.get()));
    stamps
        .into_iter()
        .flatten()
        .find_map(|raw| read_stamp(raw.get()))
        .or_else(|| nested.into_iter().flatten().find_map(inside))
}

/// Reads a time as text, or as seconds or milliseconds since 1970.
fn read_stamp(raw: &str) -> Option<String> {
    let time = match serde_json::from_str::<&str>(raw) {
        Ok(text) => text.parse::<Timestamp>().ok()?,
        Err(_) => {
            let number = raw.parse::<f64>().ok()?;
            // No transcript is from before 1973, where milliseconds begin to have twelve digits.
            let milliseconds = if number < 1e11 {
                number * 1000.0
            } else {
                number
            };
            Timestamp::from_millisecond(milliseconds as i64).ok()?
        }
    };
    let seconds = Timestamp::from_second(time.as_second()).ok()?;
    Some(seconds.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_found_however_it_is_written() {
        let want = Some("2026-03-02T09:00:05Z".to_owned());
        for json in [
            r#"{"type":"user","message":{"content":"x"},"timestamp":"2026-03-02T09:00:05.123Z"}"#,
            r#"{"timestamp":"2026-03-02T10:00:05+01:00"}"#,
            r#"{"created_at":1772442005}"#,
            r#"{"time":{"created":1772442005123}}"#,
            r#"{"info":{"time":{"created":1772442005123}},"parts":[]}"#,
            r#"{"type":"text","time":{"start":1772442005000,"end":1772442006000}}"#,
        ] {
            assert_eq!(time_in(json.as_bytes()), want, "{json}");
        }
        for json in ["", "[]", "{}", r#"{"timestamp":"soon"}"#, r#"{"time":"x"}"#] {
            assert_eq!(time_in(json.as_bytes()), None, "{json}");
        }
    }
}
