//! A user's own redaction: a function of the program that embeds Compact.
//!
//! The trait is the engine's, since redaction is; [`suite`] is for whoever implements it. Hand it to
//! [`Redactor::with_callback`](compact_core::redact::Redactor::with_callback).

#![allow(
    clippy::panic,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

pub use compact_core::redact::Scrub;

/// Texts of every kind: a callback must cope with each, and leave its own output alone.
pub fn suite(scrub: &dyn Scrub) {
    let long = "word ".repeat(20_000);
    let texts = [
        "",
        " ",
        "plain words",
        "line\nline\r\n\ttab",
        "é → 語 \u{1f600}",
        "\0\u{1b}[2J\u{202e}",
        "{\"a\": \"b\\n\"}",
        "[REDACTED:jwt:12ab]",
        &long,
    ];
    for text in texts {
        let once = scrub.scrub(text).unwrap_or_else(|| text.to_owned());
        let twice = scrub.scrub(&once).unwrap_or_else(|| once.clone());
        assert_eq!(twice, once, "scrubbing twice is not scrubbing once");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_function_conforms() {
        super::suite(&|text: &str| text.contains("words").then(|| text.replace("words", "***")));
    }
}
