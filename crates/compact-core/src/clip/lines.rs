//! A tool's answer cut to the lines that tell most: of a listing of code what it declares and what follows each
//! declaration, of a check that failed what it complains of and what follows that.
//!
//! The head of a file is what it imports and its tail closes brackets; a test that fails among forty says so in the middle.
//! A reader who must go on needs what stands between head and tail.

use super::{ClipPointer, marker};
use crate::ledger::{complains, defines, reports_failure, reports_pass};
use crate::token::{Estimator, Units};

/// A text of fewer lines is cut as any is, and so is one without a declaration among so many lines.
const LINES: usize = 12;
const SPARSE: usize = 60;

/// How often a cut that is too long is tried shorter.
const TRIALS: usize = 6;

/// What stands where lines were left out, but for the first place, which says where the whole is.
const GAP: &str = "…";

/// An answer cut to at most `limit` units; `None` where it is neither a listing nor a report, or nothing of it would be left.
pub(super) fn clip_to_lines(
    text: &str,
    limit: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let ranked = RankedLines::from_text(text)?;
    let cost = estimator.count_units(text);
    let marker_cost = estimator.count_units(&marker(text.len(), pointer));
    let room = (limit - marker_cost).0 as f64;
    let mut bytes = (text.len() as f64 * room / cost.0.max(1) as f64) as usize;
    for _ in 0..TRIALS {
        let cut = ranked.cut_to(bytes, pointer)?;
        if estimator.count_units(&cut) <= limit {
            return Some(cut);
        }
        bytes = bytes * 4 / 5;
    }
    None
}

/// The lines of an answer, and the order in which they deserve room.
struct RankedLines<'t> {
    lines: Vec<&'t str>,
    order: Vec<usize>,
}

impl<'t> RankedLines<'t> {
    /// Reads a text; `None` for one whose head and tail tell as much as any other lines.
    fn from_text(text: &'t str) -> Option<RankedLines<'t>> {
        let lines: Vec<&str> = text.lines().collect();
        // Of a search and of a change each line counts, wherever it stands.
        if lines.len() < LINES || is_search_result(&lines) || is_diff(&lines) {
            return None;
        }
        // What a compiler or a test complains of shows code, too.
        let order = match reports_failure(text) {
            true => rank_report(&lines),
            false => rank_listing(&lines)?,
        };
        Some(RankedLines { lines, order })
    }

    /// The lines that fit, in their places; `None` when not even one does.
    fn cut_to(&self, bytes: usize, pointer: ClipPointer<'_>) -> Option<String> {
        let mut left = bytes;
        let length = |nth: usize| self.lines.get(nth).map_or(0, |line| line.len() + 1);
        let fitting = self.order.iter().copied().take_while(|nth| {
            let fits = length(*nth) + GAP.len() < left;
            left = left.saturating_sub(length(*nth) + GAP.len() + 1);
            fits
        });
        let mut chosen: Vec<usize> = fitting.collect();
        if chosen.is_empty() {
            return None;
        }
        chosen.sort_unstable();
        let kept: usize = chosen.iter().map(|nth| length(*nth)).sum();
        let total: usize = self.lines.iter().map(|line| line.len() + 1).sum();
        let marker = marker(total.saturating_sub(kept), pointer);
        Some(self.write_lines(&chosen, marker.trim()))
    }

    fn write_lines(&self, chosen: &[usize], marker: &str) -> String {
        let mut out: Vec<&str> = Vec::new();
        let mut gap = marker;
        let mut next = 0;
        for nth in chosen {
            if *nth != next {
                out.push(std::mem::replace(&mut gap, GAP));
            }
            out.extend(self.lines.get(*nth));
            next = nth + 1;
        }
        if next < self.lines.len() {
            out.push(gap);
        }
        out.join("\n")
    }
}

/// The lines of a listing: declarations first, then what follows them; `None` for a text that declares too little.
fn rank_listing(lines: &[&str]) -> Option<Vec<usize>> {
    let mut declarations = 0;
    let mut ranked = Vec::new();
    let mut since = usize::MAX;
    for (nth, line) in lines.iter().enumerate() {
        if defines(line.trim_start()) {
            declarations += 1;
            since = 0;
        }
        match since {
            _ if !has_words(line) => {}
            // The first line may say what is listed.
            usize::MAX if nth == 0 => ranked.push((0, nth)),
            usize::MAX => {}
            _ => {
                ranked.push((since, nth));
                since += 1;
            }
        }
    }
    ranked.sort_unstable();
    let is_listing = lines.len() <= declarations * SPARSE;
    is_listing.then(|| ranked.into_iter().map(|(_, nth)| nth).collect())
}

/// Lines behind a complaint that explain it: what was expected, and where.
const EXPLAINING: usize = 2;

/// The lines of a report of what failed: the first and the last, which say of what and how it ended, then complaints, then
/// what follows them, then the others from the end; what passed comes last.
fn rank_report(lines: &[&str]) -> Vec<usize> {
    let last = lines.iter().rposition(|line| has_words(line));
    let mut since = usize::MAX;
    let mut ranked = Vec::new();
    for (nth, line) in lines.iter().enumerate().filter(|(_, line)| has_words(line)) {
        since = match complains(line) {
            true => 0,
            false => since.saturating_add(1),
        };
        let rank = match since {
            _ if nth == 0 || Some(nth) == last => (0, nth),
            _ if reports_pass(line) => (EXPLAINING + 3, nth),
            0..=EXPLAINING => (since + 1, nth),
            _ => (EXPLAINING + 2, lines.len() - nth),
        };
        ranked.push((rank, nth));
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, nth)| nth).collect()
}

/// Whether a line has more than signs in it.
fn has_words(line: &str) -> bool {
    line.chars().filter(|c| c.is_alphabetic()).nth(1).is_some()
}

/// Whether most lines name the place that they were found at: `src/a.rs:12:`. Each of them is what was looked for.
fn is_search_result(lines: &[&str]) -> bool {
    let is_found = |line: &&&str| {
        let mut parts = line.splitn(3, ':');
        let place = parts.next().unwrap_or("");
        let number = parts.next().unwrap_or("");
        place.contains(['/', '.'])
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    lines.iter().filter(is_found).count() * 2 > lines.len()
}

/// Whether lines are a change: each of them counts, wherever it stands.
fn is_diff(lines: &[&str]) -> bool {
    lines
        .iter()
        .any(|line| line.starts_with("@@ ") || line.starts_with("diff --git"))
}
