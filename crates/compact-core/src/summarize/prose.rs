//! A model's words within a summary: quoted as data, in front of the record that corrects them.

use super::Summary;
use super::layout::{FENCE, FENCE_HEAD, harmless};
use crate::prompt::Prose;
use crate::token::{Estimator, Units};

/// The words as a section of at most `limit`, cut at the ends of lines; `None` when none fits.
/// Each part has an equal share, so that the end of a long conversation is told like its beginning.
pub(crate) fn quoted(prose: &Prose, limit: Units, estimator: &dyn Estimator) -> Option<String> {
    let mut section = format!("## As told by {} (may err)\n", harmless(&prose.author));
    let room = limit - estimator.units(&section);
    let share = Units(room.0 / (prose.parts.len() as u64).max(1));
    let told: String = prose
        .parts
        .iter()
        .map(|part| opening(part, share, estimator))
        .collect();
    section.push_str(&told);
    (!told.is_empty()).then_some(section)
}

/// The lines of a part that fit: the one that does not, as far as its sentences do.
fn opening(part: &str, share: Units, estimator: &dyn Estimator) -> String {
    let mut out = String::new();
    let mut left = share;
    for line in lines(part) {
        let whole = format!("{line}\n");
        let cost = estimator.units(&whole);
        if cost <= left {
            left = left - cost;
            out.push_str(&whole);
            continue;
        }
        let fitting = sentences(&line, left, estimator);
        if !fitting.is_empty() {
            out.push_str(fitting.trim_end());
            out.push_str(" …\n");
        }
        break;
    }
    out
}

/// Lines that can neither close the fence nor open a section.
fn lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines()
        .map(|line| harmless(line.trim()))
        .filter(|line| !line.is_empty() && line != FENCE)
        .map(|line| line.trim_start_matches('#').trim_start().to_owned())
}

/// As many sentences as fit with a mark that there was more; of a first one that does not, words.
fn sentences(line: &str, left: Units, estimator: &dyn Estimator) -> String {
    let mark = estimator.units(" …\n");
    let fit = |pattern: &str| {
        let mut out = String::new();
        for piece in line.split_inclusive(pattern) {
            if estimator.units(&format!("{out}{piece}")) + mark > left {
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
pub(crate) fn joined(body: &str, section: &str, estimator: &dyn Estimator) -> Summary {
    let text = match body.split_once(FENCE_HEAD) {
        Some((rules, record)) => {
            format!(
                "{rules}{FENCE_HEAD}\n{section}{}",
                record.trim_start_matches('\n')
            )
        }
        None => {
            let gap = if body.is_empty() { "" } else { "\n" };
            format!("{body}{gap}{FENCE_HEAD}\n{section}{FENCE}")
        }
    };
    Summary {
        cost: estimator.units(&text),
        text,
    }
}
