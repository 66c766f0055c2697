//! A model's words within a summary: quoted as data, in front of the record that corrects them.

use super::SummaryBody;
use super::layout::{FENCE, FENCE_HEAD, escape_line};
use crate::token::{Estimator, Units};

/// The words as a section of at most `limit`, cut at the ends of lines; `None` when none fits.
/// Each part has an equal share, so that the end of a long conversation gets as much room as its beginning.
pub(crate) fn quote_prose(
    author: &str,
    parts: &[String],
    limit: Units,
    estimator: &dyn Estimator,
) -> Option<String> {
    let mut section = format!("## As told by {} (may err)\n", escape_line(author));
    let room = limit - estimator.count_units(&section);
    let share = Units(room.0 / (parts.len() as u64).max(1));
    let quoted: String = parts
        .iter()
        .map(|part| fitting_lines(part, share, estimator))
        .collect();
    section.push_str(&quoted);
    (!quoted.is_empty()).then_some(section)
}

/// The lines of a part that fit: the one that does not, as far as its sentences do.
fn fitting_lines(part: &str, share: Units, estimator: &dyn Estimator) -> String {
    let mut out = String::new();
    let mut left = share;
    for line in escaped_lines(part) {
        let whole = format!("{line}\n");
        let cost = estimator.count_units(&whole);
        if cost <= left {
            left = left - cost;
            out.push_str(&whole);
            continue;
        }
        let fitting = fitting_sentences(&line, left, estimator);
        if !fitting.is_empty() {
            out.push_str(fitting.trim_end());
            out.push_str(" …\n");
        }
        break;
    }
    out
}

/// Lines that can neither close the fence nor open a section.
fn escaped_lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines()
        .map(|line| escape_line(line.trim()))
        .filter(|line| !line.is_empty() && line != FENCE)
        .map(|line| line.trim_start_matches('#').trim_start().to_owned())
}

/// As many sentences as fit with a mark that there was more; of a first one that does not, words.
fn fitting_sentences(line: &str, left: Units, estimator: &dyn Estimator) -> String {
    let mark = estimator.count_units(" …\n");
    let fit = |pattern: &str| {
        let mut out = String::new();
        for piece in line.split_inclusive(pattern) {
            if estimator.count_units(&format!("{out}{piece}")) + mark > left {
                break;
            }
            out.push_str(piece);
        }
        out
    };
    match fit(". ") {
        none if none.is_empty() => fit(" "),
        some => some,
    }
}

/// A body with the section at the head of its fence.
pub(crate) fn join_prose(body: &str, section: &str, estimator: &dyn Estimator) -> SummaryBody {
    let text = match body.split_once(FENCE_HEAD) {
        Some((rules, record)) => {
            let (users, record) = record.split_once('\n').unwrap_or(("", record));
            format!("{rules}{FENCE_HEAD}{users}\n{section}{record}")
        }
        None => {
            let gap = if body.is_empty() { "" } else { "\n" };
            format!("{body}{gap}{FENCE_HEAD}\n{section}{FENCE}")
        }
    };
    SummaryBody {
        cost: estimator.count_units(&text),
        text,
    }
}
