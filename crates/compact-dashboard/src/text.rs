//! Numbers, times and foreign text as a page shows them.

pub(crate) use compact::chart::{group_digits, short_number};
use jiff::Timestamp;
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stays as it is in an address.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// How many characters of a name a message says.
const NAME_CHARS: usize = 80;

/// Returns a text with the line breaks of this machine: a form sends two characters for each.
pub(crate) fn unify_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Encodes a text as a value of an address.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, IN_QUERY).to_string()
}

/// Returns a name as a message says it: the beginning of one that is over-long.
pub(crate) fn clip_name(name: &str) -> String {
    match name.chars().count() > NAME_CHARS {
        true => name.chars().take(NAME_CHARS).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// Returns a text of at most so many characters: of a longer one the whole words that fit, and a mark that it goes on.
pub(crate) fn clip_text(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let head = text.get(..end).unwrap_or(text);
    let whole = head
        .rsplit_once(char::is_whitespace)
        .map(|(words, _)| words);
    // A text without spaces is cut where it must be.
    let kept = whole.filter(|words| words.len() * 2 > head.len());
    format!("{}…", kept.unwrap_or(head).trim_end())
}

/// Returns a count with its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", group_digits(number))
}

/// Returns estimated tokens.
pub(crate) fn estimated_tokens(number: u64) -> String {
    format!("≈ {}", count(number, "token", "tokens"))
}

/// Says what the mark of an estimate means, where a page has counted numbers, too.
pub(crate) fn estimate_note() -> Markup {
    html! { p.quiet { "Tokens are as the provider counted them; those with ≈ are estimated." } }
}

/// Returns a share in percent; of a share just below the whole, not the whole.
pub(crate) fn percent(share: f64) -> String {
    let whole = (share * 100.0).round();
    match share < 1.0 && whole >= 100.0 {
        true => format!("{:.1} %", (share * 1000.0).floor() / 10.0),
        false => format!("{whole:.0} %"),
    }
}

/// Returns dollars with as many digits as tell something; a loss with its sign.
pub(crate) fn dollars(amount: f64) -> String {
    let (sign, amount) = if amount < 0.0 {
        ("−", -amount)
    } else {
        ("", amount)
    };
    match amount {
        0.0 => "$0".to_owned(),
        amount if amount < 0.00005 => format!("{sign}$0.0000"),
        amount if amount < 0.1 => format!("{sign}$0.{:04.0}", amount * 1e4),
        amount => format!("{sign}${amount:.2}"),
    }
}

/// Shows when something was, relative to now; the exact time is its title.
pub(crate) fn time_ago(at: Option<&str>, now: Timestamp) -> Markup {
    let Some(at) = at else {
        return html! { span.quiet { "–" } };
    };
    let Ok(time) = at.parse::<Timestamp>() else {
        return html! { (at) };
    };
    let seconds = now.as_second() - time.as_second();
    let words = match seconds {
        ..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..2_592_000 => format!("{} d ago", seconds / 86_400),
        _ => minute(at),
    };
    html! { time datetime=(at) title=(minute(at)) { (words) } }
}

/// Returns a time down to the minute.
pub(crate) fn minute(at: &str) -> String {
    let shown: String = at.chars().take(16).collect();
    format!("{} UTC", shown.replace('T', " "))
}

/// Returns whether a character would change the page around it, or is not seen on it: a control, a mark that turns the
/// direction of writing, or one that breaks a line or tells one name from another without being seen.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns text of others with every such character made visible.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if is_deceptive(c) => {
                out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// Shows text of others on one line, isolated from the direction of the page.
pub(crate) fn foreign(text: &str) -> Markup {
    html! { bdi { (visible(text)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_a_glance() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(group_digits),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [950, 1_000, 41_250, 128_000, 2_500_000].map(short_number),
            ["950", "1k", "41.2k", "128k", "2.5M"]
        );
        assert_eq!(
            [0.0, 0.5, 0.998, 1.0].map(percent),
            ["0 %", "50 %", "99.8 %", "100 %"]
        );
    }

    #[test]
    fn a_text_that_is_cut_ends_with_a_word_and_a_mark() {
        assert_eq!(clip_text("Never push to main.", 40), "Never push to main.");
        assert_eq!(clip_text("Never push to main.", 12), "Never push…");
        assert_eq!(clip_text("a über-alles", 4), "a üb…");
        assert_eq!(clip_text("Donaudampfschiff", 5), "Donau…");
    }

    #[test]
    fn line_breaks_have_one_form() {
        assert_eq!(unify_lines("a\r\nb\rc\n"), "a\nb\nc\n");
    }

    #[test]
    fn money_has_the_digits_that_tell_something() {
        assert_eq!(
            [0.0, 0.00001, 0.0034, 0.25, 12.5, -0.0034, -3.0].map(dollars),
            [
                "$0",
                "$0.0000",
                "$0.0034",
                "$0.25",
                "$12.50",
                "−$0.0034",
                "−$3.00"
            ]
        );
    }

    #[test]
    fn marks_that_turn_the_text_or_hide_in_it_are_seen() {
        let shown = foreign("a\u{202e}<b>\u{7}\u{200b}\u{2028}").into_string();
        assert_eq!(
            shown,
            "<bdi>a⟨U+202E⟩&lt;b&gt;⟨U+0007⟩⟨U+200B⟩⟨U+2028⟩</bdi>"
        );
    }
}
