//! Retention: which anchors of the dropped span the finished view still shows, and putting back
//! those that are missing.
//!
//! An anchor is something the user or the model itself named, a live rule, or a failure still open;
//! names that only tool output mentions are noise here. The check reads the finished text and knows
//! nothing of how it was made, so a summary by a model is held to it like our own.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::{Kind, Ledger, Voice, clip, scan};
use crate::summarize::{self, weigh};
use crate::token::{Estimator, Units};

#[cfg(test)]
mod tests;

/// The proof of a compaction: anchors = kept + recoverable + lost + redacted; repaired ⊂ kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retention {
    /// kept ÷ anchors; 1 when there was nothing to keep.
    pub score: f64,
    /// What was worth keeping in the dropped span.
    pub anchors: u64,
    /// Shown by the view.
    pub kept: u64,
    /// Of those, put back by repair.
    pub repaired: u64,
    /// Not shown, but in the archive.
    pub recoverable: u64,
    /// Neither shown nor archived.
    pub lost: u64,
    /// Withheld by redaction.
    pub redacted: u64,
}

/// One thing worth keeping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The text to look for.
    pub text: String,
    /// A whole line that carries it, to put back if it is missing.
    pub line: String,
    /// Who said it: a rule of the user's may stand as an instruction, nothing else may.
    pub voice: Voice,
}

/// The anchors of the entries with ordinals in `dropped`, the most needed first.
pub fn anchors(ledger: &Ledger, dropped: &dyn Fn(u64) -> bool) -> Vec<Anchor> {
    let is_dropped = |ordinal: u32| dropped(u64::from(ordinal));
    let mut out: Vec<Anchor> = summarize::live_rules(ledger)
        .filter(|f| is_dropped(f.ordinal))
        .map(|f| Anchor {
            text: f.text.to_string(),
            line: format!("[#{}] \"{}\"", f.ordinal, f.text),
            voice: f.voice,
        })
        .collect();
    let groups: Vec<weigh::Group<'_>> = summarize::weighed(ledger)
        .into_iter()
        .filter(|g| worth_keeping(ledger, g, &is_dropped))
        .collect();
    let lines = summarize::context_lines(ledger, &groups);
    out.extend(groups.iter().zip(lines).map(|(group, line)| Anchor {
        text: group.key.to_owned(),
        line: line.unwrap_or_else(|| group.key.to_owned()),
        voice: Voice::Model,
    }));
    out
}

/// Named by the user or the model in a dropped entry; loose kinds more than once.
fn worth_keeping(ledger: &Ledger, group: &weigh::Group<'_>, dropped: &dyn Fn(u32) -> bool) -> bool {
    let members = || {
        group
            .members
            .iter()
            .filter_map(|i| ledger.entities.get(*i as usize))
    };
    let spoken: u32 = members().map(|e| e.spoken_count()).sum();
    let loose = members().all(|e| matches!(e.kind, Kind::Slug | Kind::Flag));
    spoken > u32::from(loose) && members().any(|e| e.spoken.iter().any(|m| dropped(m.0)))
}

/// Which anchors `text` shows. A path counts when its last two components are there; a rule when
/// its words are.
pub fn shown(anchors: &[Anchor], text: &str) -> Vec<bool> {
    let mut names: HashSet<&str, foldhash::fast::FixedState> = HashSet::default();
    scan(text, &mut |kind, _, name| {
        names.insert(name);
        names.insert(weigh::key(kind, name));
    });
    let words = clip(text, usize::MAX - 1);
    let shows = |anchor: &Anchor| match anchor.text.contains(' ') {
        true => words.contains(anchor.text.trim_end_matches('…')),
        false => names.contains(anchor.text.as_str()),
    };
    anchors.iter().map(shows).collect()
}

const RULES_HEAD: &str = "## Standing rules, in the user's words\n";

/// The summary with as many of the missing anchors' lines put back as fit into `room` more units,
/// rules before the fence, everything else inside it.
pub fn repair(
    summary: &str,
    missing: &[&Anchor],
    room: Units,
    estimator: &dyn Estimator,
) -> String {
    let budget = estimator.units(summary) + room;
    let (mut low, mut high) = (0, missing.len());
    let mut best = summary.to_owned();
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let text = with_lines(summary, missing.get(..middle).unwrap_or_default());
        if estimator.units(&text) <= budget {
            best = text;
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    best
}

fn with_lines(summary: &str, missing: &[&Anchor]) -> String {
    let mut seen = HashSet::new();
    let (mut rules, mut record) = (String::new(), String::new());
    for anchor in missing.iter().filter(|a| seen.insert(&a.line)) {
        let (out, bullet) = match anchor.voice.instructs() {
            true => (&mut rules, "- "),
            false => (&mut record, ""),
        };
        out.push_str(bullet);
        out.push_str(&summarize::harmless(&anchor.line));
        out.push('\n');
    }
    let (head, fenced) = match summary.find(summarize::FENCE_HEAD) {
        Some(at) => summary.split_at_checked(at).unwrap_or((summary, "")),
        None => (summary, ""),
    };
    let mut out = head.to_owned();
    if !rules.is_empty() {
        end_line(&mut out);
        if !head.contains(RULES_HEAD) {
            out.push_str(RULES_HEAD);
        }
        out.push_str(&rules);
    }
    push_record(&mut out, fenced, &record);
    out
}

fn push_record(out: &mut String, fenced: &str, record: &str) {
    if record.is_empty() {
        out.push_str(fenced);
        return;
    }
    end_line(out);
    match fenced.trim_end().strip_suffix(summarize::FENCE) {
        Some(open) if open.contains('\n') => out.push_str(open),
        _ => {
            out.push_str(summarize::FENCE_HEAD);
            out.push('\n');
        }
    }
    out.push_str("## Also said\n");
    out.push_str(record);
    out.push_str(summarize::FENCE);
}

fn end_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}
