//! Putting back what is missing: rules before the fence, everything else inside it, and nothing twice.
//!
//! An anchor that a line before it shows needs no line of its own, and what stands as a rule is not quoted again
//! around a name.

use std::collections::HashSet;

use super::{Anchor, AnchorSource, names_in};
use crate::ledger::{Ledger, Voice, has_sentence};
use crate::summarize::{self, NameLines, SummaryBody};
use crate::token::{Estimator, Units};

pub(super) const RULES_HEAD: &str = "## Standing rules, in the user's words\n";
const RECORD_HEAD: &str = "## Also seen\n";

/// No line that is put back costs fewer characters than this, which bounds how many can fit.
const SHORTEST_LINE: u64 = 12;

/// The summary with as many of the missing anchors put back as fit into `room` more units; `None` when
/// none fits.
pub fn repair(
    ledger: &Ledger,
    summary: &SummaryBody,
    missing: &[&Anchor],
    room: Units,
    estimator: &dyn Estimator,
) -> Option<SummaryBody> {
    let most = room.0 * 4 / estimator.units_per_token().max(1) / SHORTEST_LINE;
    let missing: Vec<&Anchor> = missing
        .iter()
        .copied()
        .filter(|anchor| !matches!(anchor.source, AnchorSource::FallenRule { .. }))
        .take(most as usize)
        .collect();
    let around = surrounding_cost(summary, estimator);
    let mut account = RepairDraft {
        lines: Vec::new(),
        cost: around,
        rules: Vec::new(),
        names: HashSet::default(),
        places: NameLines::from_ledger(ledger),
        estimator,
    };
    for anchor in &missing {
        let Some(line) = account.line_for(anchor) else {
            continue;
        };
        if account.cost + line.cost > room {
            break;
        }
        account.put(line);
    }
    if account.lines.is_empty() {
        return None;
    }
    Some(SummaryBody {
        cost: summary.cost + account.cost,
        text: with_lines(&summary.text, &account.lines),
    })
}

/// What headings and fences cost.
fn surrounding_cost(summary: &SummaryBody, estimator: &dyn Estimator) -> Units {
    let fence = match summary.text.contains(summarize::FENCE_HEAD) {
        true => "",
        false => summarize::FENCE_HEAD,
    };
    let around = [RULES_HEAD, RECORD_HEAD, fence, summarize::FENCE];
    around.iter().map(|text| estimator.count_units(text)).sum()
}

/// One line that is put back.
struct RepairLine {
    /// Only the user's may stand as an instruction.
    voice: Voice,
    ordinal: u32,
    words: String,
    cost: Units,
}

impl RepairLine {
    fn text(&self) -> String {
        match self.voice.may_instruct() {
            true => format!("[#{}] \"{}\"", self.ordinal, self.words),
            false => format!("[#{}] {}", self.ordinal, summarize::as_data(&self.words)),
        }
    }
}

/// What is put back so far.
struct RepairDraft<'l> {
    lines: Vec<RepairLine>,
    cost: Units,
    /// The words of the lines that are rules.
    rules: Vec<String>,
    /// The names in the lines.
    names: HashSet<String, foldhash::fast::FixedState>,
    places: NameLines<'l>,
    estimator: &'l dyn Estimator,
}

impl RepairDraft<'_> {
    /// The line that shows an anchor; `None` when one does already, or none can.
    fn line_for(&self, anchor: &Anchor) -> Option<RepairLine> {
        match anchor.source {
            AnchorSource::Rule { ordinal } => {
                let words = folded(&anchor.text);
                let mut rules = self.rules.iter().map(|rule| folded(rule));
                let is_told = rules.any(|rule| has_sentence(&rule, &words));
                (!is_told).then(|| self.new_line(Voice::User, ordinal, &anchor.text))
            }
            AnchorSource::FallenRule { .. } => None,
            AnchorSource::Name { .. } if self.names.contains(&anchor.text) => None,
            AnchorSource::Name { nth } => {
                let line = self.places.line_of(nth as usize)?;
                let words = summarize::escape_line(&line.text);
                let words = self.rules.iter().fold(words, |words, rule| {
                    words.replace(rule.trim_end_matches('…'), "…")
                });
                Some(self.new_line(Voice::Model, line.ordinal, &words))
            }
        }
    }

    fn new_line(&self, voice: Voice, ordinal: u32, words: &str) -> RepairLine {
        let mut line = RepairLine {
            voice,
            ordinal,
            words: summarize::escape_line(words),
            cost: Units(self.estimator.units_per_token()),
        };
        line.cost += self.estimator.count_units(&line.text());
        line
    }

    fn put(&mut self, line: RepairLine) {
        self.cost += line.cost;
        names_in(&line.words, |name| {
            self.names.insert(name.to_owned());
        });
        if line.voice.may_instruct() {
            self.rules.push(line.words.clone());
        }
        self.lines.push(line);
    }
}

/// Words to compare by.
fn folded(words: &str) -> String {
    words.trim_end_matches('…').to_lowercase()
}

fn with_lines(summary: &str, lines: &[RepairLine]) -> String {
    let (mut rules, mut record) = (String::new(), String::new());
    for line in lines {
        let (out, bullet) = match line.voice.may_instruct() {
            true => (&mut rules, "- "),
            false => (&mut record, ""),
        };
        out.push_str(bullet);
        out.push_str(&line.text());
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
