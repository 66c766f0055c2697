//! What code that was read defines: for few words, more of what the next steps name than any line of it.

use std::collections::HashMap;

use super::fact_line::{FactLine, new_fact_line};
use super::template::SectionTopic;
use super::weigh::WeighedName;
use crate::ledger::Ledger;

/// How many names one line tells.
const NAMES: usize = 12;
/// How many of a ledger's names are looked at, the heaviest first.
const LOOKED_AT: usize = 2_000;

/// One line per entry that shows code, or several where it defines much; the most needed first. What
/// the user or the model named is told elsewhere.
pub(super) fn definition_lines<'g>(
    ledger: &Ledger,
    ranked: impl Iterator<Item = &'g WeighedName<'g>>,
) -> Vec<FactLine> {
    let mut shown: Vec<DefinedNames<'_>> = Vec::new();
    let mut open: HashMap<u32, usize, foldhash::fast::FixedState> = HashMap::default();
    for name in ranked.take(LOOKED_AT) {
        let entity = ledger.entities.get(name.nth as usize);
        let unused = entity.filter(|entity| entity.spoken.is_empty());
        let Some(ordinal) = unused.and_then(|entity| entity.defined) else {
            continue;
        };
        let at = *open.entry(ordinal).or_insert(shown.len());
        if at == shown.len() {
            shown.push(DefinedNames::new(ordinal));
        }
        if let Some(shown) = shown.get_mut(at) {
            shown.names.push(name.text);
            shown.weight += name.weight;
            if shown.names.len() == NAMES {
                open.remove(&ordinal);
            }
        }
    }
    shown.retain(|shown| shown.names.len() > 1);
    shown.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let told = |shown: &DefinedNames<'_>| format!("defines {}", shown.names.join(", "));
    let lines = shown
        .iter()
        .map(|s| new_fact_line(SectionTopic::Code, s.ordinal, told(s)));
    lines.collect()
}

/// Names that an entry defines.
struct DefinedNames<'n> {
    ordinal: u32,
    names: Vec<&'n str>,
    weight: f64,
}

impl<'n> DefinedNames<'n> {
    fn new(ordinal: u32) -> Self {
        DefinedNames {
            ordinal,
            names: Vec::new(),
            weight: 0.0,
        }
    }
}
