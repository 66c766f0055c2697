//! Retention: which anchors of the dropped span the finished view still shows, and putting back
//! those that are missing.
//!
//! An anchor is something the user or the model itself named, a rule, or a failure still open;
//! names that only tool output mentions are noise here. The check reads the finished text and knows
//! nothing of how it was made, so a summary by a model is held to it like our own.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::halves::do_beside;
use crate::ledger::{Entity, Ledger, NameKind, Voice, clip, has_sentence, scan_names};
use crate::summarize::{self, NameRanking, RuleStatus, is_argument_name, is_round_number, weigh};

mod repair;

#[cfg(test)]
mod tests;

pub use repair::repair;

/// The proof of a compaction: anchors = kept + recoverable + lost + redacted; repaired ⊂ kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retention {
    /// kept ÷ anchors; unknown when no anchor was found.
    pub score: Option<f64>,
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

impl Retention {
    /// Returns kept ÷ anchors. Where nothing was found that needed keeping, nothing is proved.
    pub fn share_kept(&self) -> Option<f64> {
        (self.anchors > 0).then(|| self.kept as f64 / self.anchors as f64)
    }
}

/// One thing worth keeping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The text to look for.
    pub text: String,
    source: AnchorSource,
}

/// What an anchor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorKind {
    /// A name, a number or the like.
    Name,
    /// A rule that holds.
    Rule,
    /// A rule that a later word of the user took back.
    RevokedRule,
}

/// Where the line that puts an anchor back comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AnchorSource {
    /// A rule, quoted whole: the one thing that may stand as an instruction.
    Rule { ordinal: u32 },
    /// A rule that a later word took back: it is counted, and never put back.
    FallenRule { ordinal: u32 },
    /// A name, by its index in the ledger; its context is looked up only if it is missing.
    Name { nth: u32 },
}

impl Anchor {
    /// Returns what it is.
    pub fn kind(&self) -> AnchorKind {
        match self.source {
            AnchorSource::Rule { .. } => AnchorKind::Rule,
            AnchorSource::FallenRule { .. } => AnchorKind::RevokedRule,
            AnchorSource::Name { .. } => AnchorKind::Name,
        }
    }

    /// Returns the last entry with an ordinal in `dropped` that says it.
    pub fn find_ordinal(&self, ledger: &Ledger, dropped: &dyn Fn(u64) -> bool) -> Option<u64> {
        match self.source {
            AnchorSource::Rule { ordinal } | AnchorSource::FallenRule { ordinal } => {
                Some(u64::from(ordinal))
            }
            AnchorSource::Name { nth } => {
                let spoken = &ledger.entities.get(nth as usize)?.spoken;
                let ordinals = spoken.iter().map(|said| u64::from(said.place.ordinal));
                ordinals.filter(|ordinal| dropped(*ordinal)).last()
            }
        }
    }
}

/// The anchors of the entries with ordinals in `dropped`, the most needed first.
pub fn anchors(
    ledger: &Ledger,
    ranking: &NameRanking<'_>,
    dropped: &dyn Fn(u64) -> bool,
) -> Vec<Anchor> {
    let is_dropped = |ordinal: u32| dropped(u64::from(ordinal));
    let rules = summarize::rule_statuses(ledger).into_iter();
    let rules = rules.filter(|rule| is_dropped(rule.fact.ordinal));
    let mut out: Vec<Anchor> = rules.map(|rule| rule_anchor(&rule)).collect();
    let mut seen: HashSet<&str, FixedState> = HashSet::default();
    out.extend(
        ranking
            .0
            .iter()
            .filter(|g| {
                let entity = ledger.entities.get(g.nth as usize);
                entity.is_some_and(|entity| {
                    worth_keeping(entity, &is_dropped) && !names_argument(ledger, entity)
                })
            })
            .filter(|g| seen.insert(g.key))
            .map(|group| Anchor {
                text: group.key.to_owned(),
                source: AnchorSource::Name { nth: group.nth },
            }),
    );
    out
}

fn rule_anchor(rule: &RuleStatus<'_>) -> Anchor {
    Anchor {
        text: rule.fact.text.to_string(),
        source: match rule.holds {
            true => AnchorSource::Rule {
                ordinal: rule.fact.ordinal,
            },
            false => AnchorSource::FallenRule {
                ordinal: rule.fact.ordinal,
            },
        },
    }
}

/// Named by the user or the model in a dropped entry; loose kinds more than once.
fn worth_keeping(entity: &Entity, dropped: &dyn Fn(u32) -> bool) -> bool {
    let loose = matches!(entity.kind, NameKind::Slug | NameKind::Flag);
    entity.spoken_count() > u32::from(loose)
        && entity.spoken.iter().any(|m| dropped(m.place.ordinal))
}

/// Whether a name is no more than what a tool calls one of its arguments, or a limit that it was given.
fn names_argument(ledger: &Ledger, entity: &Entity) -> bool {
    let mut mentions = entity.spoken.iter();
    entity.heard.is_empty()
        && entity.spoken_count() == entity.voice_count(Voice::Call)
        && (is_round_number(&entity.text)
            || mentions.all(|mention| is_argument_name(ledger, mention, &entity.text)))
}

/// A shorter text is looked through before a second thread has begun, in bytes.
const WORTH_A_THREAD: usize = 64 * 1024;

/// Which anchors `text` shows. A path counts when its last two components are there; a rule when
/// all its words are, to the end of its sentence.
pub fn shown_anchors(anchors: &[Anchor], text: &str) -> Vec<bool> {
    let is_name = |anchor: &&Anchor| matches!(anchor.source, AnchorSource::Name { .. });
    let wanted = anchors.iter().filter(is_name);
    let wanted: NameSet<'_> = wanted.map(|anchor| anchor.text.as_str()).collect();
    let find_names = || {
        let mut names = NameSet::default();
        // A view shows ten times as many names as were dropped: only those are worth remembering.
        names_in(text, |name| names.extend(wanted.get(name)));
        names
    };
    let rules = anchors.iter().filter(|anchor| !is_name(anchor));
    let rules: Vec<&Anchor> = rules.collect();
    let find_rules = || shown_rules(&rules, text);
    let (names, rules) = match text.len() < WORTH_A_THREAD {
        true => (find_names(), find_rules()),
        false => do_beside(find_names, find_rules),
    };
    let mut rules = rules.into_iter();
    let shows = |anchor: &Anchor| match anchor.source {
        AnchorSource::Rule { .. } | AnchorSource::FallenRule { .. } => {
            rules.next().unwrap_or_default()
        }
        AnchorSource::Name { .. } => names.contains(anchor.text.as_str()),
    };
    anchors.iter().map(shows).collect()
}

/// Which rules a text shows.
fn shown_rules(rules: &[&Anchor], text: &str) -> Vec<bool> {
    let words = clip(text, usize::MAX - 1);
    let shows = |anchor: &&Anchor| {
        let rule = anchor.text.trim_end_matches('…');
        has_sentence(&words, rule) || has_sentence(text, rule) || has_labelled(&words, rule)
    };
    rules.iter().map(shows).collect()
}

/// Whether a text holds a statement behind others of its label.
fn has_labelled(text: &str, rule: &str) -> bool {
    let parts = summarize::split_label(rule);
    parts.is_some_and(|(label, statement)| text.contains(label) && has_sentence(text, statement))
}

type NameSet<'t> = HashSet<&'t str, foldhash::fast::FixedState>;

/// The names that a text shows: each as it stands there, and as it counts as shown.
fn names_in<'t>(text: &'t str, mut found: impl FnMut(&'t str)) {
    scan_names(text, &mut |kind, _, name| {
        found(name);
        let key = weigh::shown_key(kind, name);
        if key.len() < name.len() {
            found(key);
        }
    });
}
