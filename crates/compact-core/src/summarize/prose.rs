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
    let mut told = false;
    for part in &prose.parts {
        let mut left = share;
        for line in lines(part) {
            let cost = estimator.units(&line);
            if cost > left {
                break;
            }
            left = left - cost;
            told = true;
            section.push_str(&line);
        }
    }
    told.then_some(section)
}

/// Lines that can neither close the fence nor open a section; long ones by sentence.
fn lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines()
        .map(|line| harmless(line.trim_end()))
        .filter(|line| !line.trim().is_empty() && line.trim() != FENCE)
        .flat_map(|line| {
            let line = line.trim_start_matches('#').trim_start().to_owned();
            sentences(&line)
        })
}

/// The longest line that is taken or left whole, in bytes.
const LINE: usize = 300;

fn sentences(line: &str) -> Vec<String> {
    if line.len() <= LINE {
        return vec![format!("{line}\n")];
    }
    line.split_inclusive(". ")
        .map(|s| format!("{}\n", s.trim_end()))
        .collect()
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
