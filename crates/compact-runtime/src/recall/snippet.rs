//! The part of a passage that is shown: the best sentence with what stands around it.

use std::ops::Range;

/// About how many characters a snippet has.
const WIDTH: usize = 320;

/// Cuts around `best`, or around the first match in it when that alone is too long.
pub(super) fn cut(text: &str, best: Range<usize>, matches: &[Range<usize>]) -> String {
    let best = match best.len() <= WIDTH {
        true => best,
        false => matches
            .iter()
            .find(|word| word.start >= best.start)
            .cloned()
            .unwrap_or(best.start..best.start),
    };
    let room = WIDTH.saturating_sub(best.len()) / 2;
    let start = word_start(text, best.start.saturating_sub(room));
    let end = word_end(text, best.end.saturating_add(room).min(text.len()));
    let shown = text.get(start..end).unwrap_or_default().trim();
    let before = if start > 0 { "… " } else { "" };
    let after = if end < text.trim_end().len() {
        " …"
    } else {
        ""
    };
    format!("{before}{shown}{after}")
}

/// The first place at or after `at` where a word begins, if that is near.
fn word_start(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    if at == 0 {
        return 0;
    }
    let rest = text.get(at..).unwrap_or_default();
    let space = rest
        .char_indices()
        .take(40)
        .find(|(_, c)| c.is_whitespace());
    space.map_or(at, |(ahead, _)| at + ahead)
}

/// The last place at or before `at` where a word ends, if that is near.
fn word_end(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    if at == text.len() {
        return at;
    }
    let head = text.get(..at).unwrap_or_default();
    let space = head
        .char_indices()
        .rev()
        .take(40)
        .find(|(_, c)| c.is_whitespace());
    space.map_or(at, |(back, _)| back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_shown_whole() {
        assert_eq!(cut("port 9187\n", 0..10, &[]), "port 9187");
    }

    #[test]
    fn a_match_stands_in_its_surroundings() {
        let text = format!(
            "{} the port is 9187. {}",
            "before ".repeat(90),
            "after ".repeat(90)
        );
        let at = text.find("the port").unwrap();
        let shown = cut(&text, at..at + 17, &[]);
        assert!(
            shown.starts_with("… before") && shown.ends_with("after …"),
            "{shown}"
        );
        assert!(shown.contains("the port is 9187.") && shown.len() < WIDTH + 20);
    }

    #[test]
    fn a_long_sentence_is_cut_at_its_match() {
        let text = format!("{}needle {}", "ö".repeat(900), "ö".repeat(900));
        let at = text.find("needle").unwrap();
        let matches = vec![at..at + 6; 1];
        let shown = cut(&text, 0..text.len(), &matches);
        assert!(
            shown.contains("needle") && shown.len() < WIDTH * 2,
            "{shown}"
        );
    }
}
