//! Numbers as people read them.

/// `1234567` as `1,234,567`.
pub(crate) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share as `12.3 %`.
pub(crate) fn format_percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share as a percentage, or that it is not known.
pub(crate) fn format_share(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".to_owned(), format_percent)
}

/// A size with a decimal unit.
pub(crate) fn format_bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = "kB";
    for next in UNITS.into_iter().skip(1) {
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// `count` things, in the right number.
pub(crate) fn format_count(count: u64, singular: &str, plural: &str) -> String {
    let noun = if count == 1 { singular } else { plural };
    format!("{} {noun}", group_digits(count))
}

/// Milliseconds as a person says them.
pub(crate) fn format_elapsed(milliseconds: u64) -> String {
    if milliseconds < 1000 {
        format!("{milliseconds} ms")
    } else {
        format!("{:.1} s", milliseconds as f64 / 1000.0)
    }
}
