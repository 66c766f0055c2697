//! Text from transcripts, made safe and short for a terminal.
//!
//! A transcript may hold escape sequences that would move the cursor or rename the window; none of
//! them reaches the screen.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with control characters shown as `?`; line breaks stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' => c,
            '\t' => ' ',
            c if c.is_control() || is_deceptive(c) => '?',
            c => c,
        })
        .collect()
}

/// The same for code and its output, where tabs stay too.
pub(crate) fn printable_code(text: &str) -> String {
    let lines = text.split('\t').map(printable);
    lines.collect::<Vec<_>>().join("\t")
}

/// Marks that reorder what is around them, and those that make two names look like one. What joins
/// letters and pictures stays.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{2069}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

/// The first words of a text on one line of at most `width` columns.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    // More than this cannot be shown; a tool result may be megabytes.
    let head: String = text.chars().take(width.saturating_mul(8)).collect();
    let words: Vec<&str> = head.split_whitespace().collect();
    fit(&printable(&words.join(" ")), width)
}

/// The text cut to `width` columns, `...` at the end if something is missing.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 3;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out + "..."
}
