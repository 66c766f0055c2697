//! The parts of an entry that are shown of a hit: the sentences that answer, with what stands around them.
//!
//! A long entry may answer in several places, so there may be several windows, in the order of the text and
//! each with the number of its first line. A window begins with a sentence, never within one.

use std::ops::Range;

use serde::Serialize;

use super::sentence;

/// About how many bytes the first window of an entry has, and each further one.
const FIRST_WINDOW: usize = 480;
const FURTHER_WINDOW: usize = 240;

/// The most windows of an entry.
pub(super) const MOST_WINDOWS: usize = 3;

/// A stretch of an entry's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExcerptWindow {
    /// The number of its first line in the entry, from 1.
    pub line: u64,
    /// The stretch; `…` where a sentence is longer than the window.
    pub text: String,
}

/// Cuts windows around the places of a text that answer, the best of them first.
pub(super) fn cut_windows(text: &str, places: &[AnswerPlace]) -> Vec<ExcerptWindow> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for place in places.iter().take(MOST_WINDOWS) {
        let room = if spans.is_empty() {
            FIRST_WINDOW
        } else {
            FURTHER_WINDOW
        };
        // Two windows of one line would be the same line twice.
        let is_shown = |span: &Range<usize>| {
            let between = span.start.min(place.best.start)..span.end.max(place.best.start);
            span.contains(&place.best.start)
                || text.get(between).is_some_and(|text| !text.contains('\n'))
        };
        if spans.iter().any(is_shown) {
            continue;
        }
        spans.push(window_around(text, place, room));
    }
    spans.sort_by_key(|span| span.start);
    let spans = join_touching(text, spans);
    spans
        .into_iter()
        .filter_map(|span| show_window(text, span))
        .collect()
}

/// Returns the beginning of a text as a window.
pub(super) fn head_window(text: &str, room: usize) -> Option<ExcerptWindow> {
    let start = text.len() - text.trim_start().len();
    let place = AnswerPlace {
        best: start..start,
        first_match: start,
    };
    show_window(text, window_around(text, &place, room))
}

/// Where a text answers.
#[derive(Clone, Debug)]
pub(super) struct AnswerPlace {
    /// The bytes of the best sentence, or of two neighbours.
    pub(super) best: Range<usize>,
    /// The first word in it that was looked for.
    pub(super) first_match: usize,
}

/// Returns whole sentences around the best one, or a part of one that is too long.
fn window_around(text: &str, place: &AnswerPlace, room: usize) -> Range<usize> {
    if place.best.len() > room {
        let start = place
            .first_match
            .saturating_sub(room / 4)
            .max(place.best.start);
        return text.floor_char_boundary(start)
            ..text.ceil_char_boundary((start + room).min(place.best.end));
    }
    let mut window = place.best.clone();
    // What follows explains more than what came before: two thirds of the room are for it.
    let before = (room - window.len()) / 3;
    for span in sentences_before(text, window.start, before) {
        window.start = span.start;
    }
    let end = window.start.saturating_add(room).min(text.len());
    let rest = text.get(window.end..).unwrap_or_default();
    for span in sentence::spans(rest) {
        let stop = place.best.end + span.end;
        if stop > end {
            break;
        }
        window.end = stop;
    }
    if window.is_empty() {
        window.end = text.floor_char_boundary(end);
    }
    window
}

/// The sentences that end at `at` and begin at most `room` bytes before it, the nearest first.
fn sentences_before(text: &str, at: usize, room: usize) -> Vec<Range<usize>> {
    let from = text.ceil_char_boundary(at.saturating_sub(room).min(at));
    let stretch = text.get(from..at).unwrap_or_default();
    let mut spans: Vec<Range<usize>> = sentence::spans(stretch)
        .map(|span| from + span.start..from + span.end)
        .collect();
    // Unless a sentence begins just there, the first is the end of a longer one.
    if from > 0 && !text.get(..from).is_some_and(sentence::is_boundary) && !spans.is_empty() {
        spans.remove(0);
    }
    spans.reverse();
    spans
}

fn join_touching(text: &str, spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last)
                if text
                    .get(last.end..span.start)
                    .is_none_or(|gap| gap.trim().is_empty()) =>
            {
                last.end = last.end.max(span.end);
            }
            _ => joined.push(span),
        }
    }
    joined
}

fn show_window(text: &str, span: Range<usize>) -> Option<ExcerptWindow> {
    let stretch = text.get(span.clone())?;
    let shown = stretch.trim_end();
    let lead = shown.len() - shown.trim_start_matches(['\n', '\r']).len();
    let start = span.start + lead;
    let shown = shown.get(lead..)?;
    let before = text.get(..start)?;
    let after = text.get(start + shown.len()..)?;
    let starts_within = !before.is_empty() && !sentence::is_boundary(before);
    let ends_within = !after.trim().is_empty()
        && !sentence::is_boundary(text.get(..start + shown.len() + 1).unwrap_or(text));
    (!shown.trim().is_empty()).then(|| ExcerptWindow {
        line: before.matches('\n').count() as u64 + 1,
        text: format!(
            "{}{shown}{}",
            if starts_within { "… " } else { "" },
            if ends_within { " …" } else { "" }
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, answers: &[&str], want: &[(u64, &str)]) {
        let places: Vec<AnswerPlace> = answers
            .iter()
            .map(|answer| {
                let at = text.find(answer).unwrap();
                AnswerPlace {
                    best: at..at + answer.len(),
                    first_match: at,
                }
            })
            .collect();
        let got = cut_windows(text, &places);
        let got: Vec<(u64, &str)> = got.iter().map(|w| (w.line, w.text.as_str())).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_short_text_is_shown_whole() {
        check("port 9187\n", &["port 9187\n"], &[(1, "port 9187")]);
        check("\n\n a\nport 9187", &["port"], &[(3, " a\nport 9187")]);
    }

    #[test]
    fn a_window_begins_and_ends_with_a_sentence() {
        let text = format!(
            "{}The port is 9187. {}",
            "Before is before it. ".repeat(40),
            "After is after it. ".repeat(40)
        );
        let windows = cut_windows(
            &text,
            &[AnswerPlace {
                best: 840..858,
                first_match: 840,
            }],
        );
        let [window] = windows.as_slice() else {
            panic!("{windows:?}")
        };
        assert!(
            window.text.starts_with("Before is before it. "),
            "{window:?}"
        );
        assert!(window.text.contains("The port is 9187."), "{window:?}");
        assert!(window.text.ends_with("After is after it."), "{window:?}");
        assert!(window.text.len() <= FIRST_WINDOW);
    }

    #[test]
    fn a_long_entry_has_several_windows_with_their_lines() {
        let filler = "nothing here\n".repeat(100);
        let text = format!("{filler}first answer\n{filler}second answer\n{filler}");
        let places: Vec<AnswerPlace> = ["second answer\n", "first answer\n"]
            .iter()
            .map(|answer| {
                let at = text.find(answer).unwrap();
                AnswerPlace {
                    best: at..at + answer.len(),
                    first_match: at,
                }
            })
            .collect();
        let windows = cut_windows(&text, &places);
        assert_eq!(windows.len(), 2);
        for (window, answer) in windows.iter().zip(["first answer", "second answer"]) {
            let nth = window.text.lines().position(|line| line == answer).unwrap();
            let line = window.line as usize + nth;
            assert_eq!(text.lines().nth(line - 1), Some(answer));
        }
    }

    #[test]
    fn a_sentence_that_is_too_long_is_cut_at_its_match() {
        let text = format!("{}needle {}", "ö".repeat(900), "ö".repeat(900));
        let at = text.find("needle").unwrap();
        let windows = cut_windows(
            &text,
            &[AnswerPlace {
                best: 0..text.len(),
                first_match: at,
            }],
        );
        let [window] = windows.as_slice() else {
            panic!("{windows:?}")
        };
        assert!(window.text.contains("needle") && window.text.len() < 2 * FIRST_WINDOW);
        assert!(window.text.starts_with("… ") && window.text.ends_with(" …"));
    }

    #[test]
    fn a_head_is_the_first_sentences() {
        let head = head_window("\nOne. Two.\nThree.", 12);
        let want = ExcerptWindow {
            line: 2,
            text: "One. Two.".to_owned(),
        };
        assert_eq!(head, Some(want));
        assert_eq!(head_window("  \n", 12), None);
    }
}
