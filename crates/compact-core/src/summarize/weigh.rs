//! How likely a name is needed again: few features that a person can check.
//!
//! Who named it and how often, how long ago, and what it looks like. Names that share an identity
//! (a path and its shorter forms) are weighed as one.

use std::collections::HashMap;

use super::template::Template;
use crate::ledger::{Entity, Kind, Ledger, Voice};

/// Names that stand for the same thing.
#[derive(Clone, Debug)]
pub(crate) struct Group<'l> {
    /// What has to be shown.
    pub key: &'l str,
    /// Members, as indices into the ledger's entities.
    pub members: Vec<u32>,
    /// How much showing it is worth.
    pub weight: f64,
}

/// What has to be shown for a name to count as shown: the last two components of a path, else all.
pub(crate) fn key(kind: Kind, text: &str) -> &str {
    if kind != Kind::Path {
        return text;
    }
    let mut slashes = text.rmatch_indices('/');
    match (slashes.next(), slashes.next()) {
        (Some(_), Some((i, _))) => text.get(i + 1..).unwrap_or(text),
        _ => text.trim_start_matches('/'),
    }
}

/// Groups the ledger's names and weighs them, the heaviest first.
pub(super) fn groups<'l>(ledger: &'l Ledger, template: &Template) -> Vec<Group<'l>> {
    let mut index: HashMap<&str, usize, foldhash::fast::FixedState> = HashMap::default();
    let mut groups: Vec<Group<'l>> = Vec::new();
    for (entity, i) in ledger.entities.iter().zip(0u32..) {
        let key = key(entity.kind, &entity.text);
        let at = *index.entry(key).or_insert(groups.len());
        if at == groups.len() {
            groups.push(Group {
                key,
                members: Vec::new(),
                weight: 0.0,
            });
        }
        if let Some(group) = groups.get_mut(at) {
            group.members.push(i);
        }
    }
    for group in &mut groups {
        group.weight = weight(ledger, template, &group.members);
    }
    groups.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.key.cmp(b.key)));
    groups
}

fn weight(ledger: &Ledger, template: &Template, members: &[u32]) -> f64 {
    let entities = || {
        members
            .iter()
            .filter_map(|i| ledger.entities.get(*i as usize))
    };
    let last = entities().map(|e| e.last).max().unwrap_or(0);
    let kind = entities().map(|e| of_kind(e.kind)).fold(0.0, f64::max);
    let said = |voice| -> f64 {
        let n: u32 = entities().map(|e: &Entity| e.count(voice)).sum();
        f64::from(n).ln_1p() * template.weight(voice)
    };
    let voices = said(Voice::User)
        + said(Voice::Model)
        + said(Voice::Call)
        + 0.15 * (said(Voice::Tool) + said(Voice::Host) + said(Voice::System));
    let recency = f64::from(last) / (ledger.next.max(1) as f64);
    kind * voices * (0.3 + 0.7 * recency)
}

fn of_kind(kind: Kind) -> f64 {
    match kind {
        Kind::Path | Kind::File | Kind::Url | Kind::Email | Kind::Ident => 1.0,
        Kind::Id | Kind::Uuid | Kind::Hash => 0.9,
        Kind::Number | Kind::Version => 0.6,
        Kind::Slug => 0.4,
        Kind::Flag => 0.25,
    }
}
