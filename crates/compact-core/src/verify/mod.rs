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
use crate::summarize::{self, Ranking, Summary, weigh};
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
    source: Source,
}

/// Where the line that puts an anchor back comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A rule, quoted whole: the one thing that may stand as an instruction.
    Rule { ordinal: u32 },
    /// A name, by its entities in the ledger; its context is looked up only if it is missing.
    Name { members: Vec<u32> },
}

/// The anchors of the entries with ordinals in `dropped`, the most needed first.
pub fn anchors(
    ledger: &Ledger,
    ranking: &Ranking<'_>,
    dropped: &dyn Fn(u64) -> bool,
) -> Vec<Anchor> {
    let is_dropped = |ordinal: u32| dropped(u64::from(ordinal));
    let mut out: Vec<Anchor> = summarize::live_rules(ledger)
        .filter(|f| is_dropped(f.ordinal))
        .map(|f| Anchor {
            text: f.text.to_string(),
            source: Source::Rule { ordinal: f.ordinal },
        })
        .collect();
    let mut seen = HashSet::new();
    out.extend(
        ranking
            .0
            .iter()
            .filter(|g| worth_keeping(ledger, g, &is_dropped))
            .filter(|g| seen.insert(g.key))
            .map(|group| Anchor {
                text: group.key.to_owned(),
                source: Source::Name {
                    members: group.members.clone(),
                },
            }),
    );
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
const RECORD_HEAD: &str = "## Also said\n";

/// No line that is put back costs fewer characters than this, which bounds how many can fit.
const SHORTEST_LINE: u64 = 12;

/// The summary with as many of the missing anchors' lines put back as fit into `room` more units,
/// rules before the fence, everything else inside it; `None` when none fits.
pub fn repair(
    ledger: &Ledger,
    summary: &Summary,
    missing: &[&Anchor],
    room: Units,
    estimator: &dyn Estimator,
) -> Option<Summary> {
    let most = room.0 * 4 / estimator.units_per_token().max(1) / SHORTEST_LINE;
    let lines = lines(ledger, missing.get(..most as usize).unwrap_or(missing));
    // Headings, fences and line ends cost something too.
    let fence = match summary.text.contains(summarize::FENCE_HEAD) {
        true => "",
        false => summarize::FENCE_HEAD,
    };
    let around = [RULES_HEAD, RECORD_HEAD, fence, summarize::FENCE];
    let around: Units = around.iter().map(|text| estimator.units(text)).sum();
    let each = Units(estimator.units_per_token());
    let spent: Vec<Units> = lines
        .iter()
        .scan(around, |used, (_, line)| {
            *used += estimator.units(line) + each;
            Some(*used)
        })
        .take_while(|used| *used <= room)
        .collect();
    Some(Summary {
        cost: summary.cost + *spent.last()?,
        text: with_lines(&summary.text, lines.get(..spent.len())?),
    })
}

/// The lines of these anchors, each once, with whether it may stand as an instruction.
fn lines(ledger: &Ledger, anchors: &[&Anchor]) -> Vec<(Voice, String)> {
    let groups: Vec<weigh::Group<'_>> = anchors
        .iter()
        .filter_map(|anchor| match &anchor.source {
            Source::Rule { .. } => None,
            Source::Name { members } => Some(weigh::Group {
                text: &anchor.text,
                key: &anchor.text,
                members: members.clone(),
                weight: 1.0,
            }),
        })
        .collect();
    let mut contexts = summarize::context_lines(ledger, &groups).into_iter();
    let mut seen = HashSet::new();
    anchors
        .iter()
        .map(|anchor| match anchor.source {
            Source::Rule { ordinal } => (Voice::User, format!("[#{ordinal}] \"{}\"", anchor.text)),
            Source::Name { .. } => {
                let context = contexts.next().flatten();
                (Voice::Model, context.unwrap_or_else(|| anchor.text.clone()))
            }
        })
        .filter(|(_, line)| seen.insert(line.clone()))
        .collect()
}

fn with_lines(summary: &str, lines: &[(Voice, String)]) -> String {
    let (mut rules, mut record) = (String::new(), String::new());
    for (voice, line) in lines {
        let (out, bullet) = match voice.instructs() {
            true => (&mut rules, "- "),
            false => (&mut record, ""),
        };
        out.push_str(bullet);
        out.push_str(&summarize::harmless(line));
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
    out.push_str(RECORD_HEAD);
    out.push_str(record);
    out.push_str(summarize::FENCE);
}

fn end_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}
