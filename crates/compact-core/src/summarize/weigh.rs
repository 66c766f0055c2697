//! How likely a name is needed again: few features that a person can check.
//!
//! Names that the user or the model used are weighed by how often and how long ago. Names that only
//! tools mentioned are many and mostly noise: those count that code defines, that stand in a short
//! answer, near a name in use, and are made of words in use. A path and its shorter forms are weighed
//! apart: each is needed where it was used. The numbers are log-odds, fitted on recorded sessions.

use std::collections::{HashMap, HashSet};

use super::template::StyleTemplate;
use crate::ledger::{BlockPlace, Entity, Ledger, Mention, NameKind, Voice};

/// A name and what it is worth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeighedName<'l> {
    /// Its index among the ledger's names.
    pub nth: u32,
    /// The name.
    pub text: &'l str,
    /// What has to be shown.
    pub key: &'l str,
    /// How much showing it is worth.
    pub weight: f64,
}

impl<'l> WeighedName<'l> {
    /// The n-th name of a ledger at its weight.
    pub(super) fn new(nth: u32, entity: &'l Entity, weight: f64) -> WeighedName<'l> {
        WeighedName {
            nth,
            text: &entity.text,
            key: shown_key(entity.kind, &entity.text),
            weight,
        }
    }
}

/// What has to be shown for a name to count as shown: the last two components of a path, else all.
pub(crate) fn shown_key(kind: NameKind, text: &str) -> &str {
    if kind != NameKind::Path {
        return text;
    }
    let mut slashes = text.rmatch_indices('/');
    match (slashes.next(), slashes.next()) {
        (Some(_), Some((i, _))) => text.get(i + 1..).unwrap_or(text),
        _ => text.trim_start_matches('/'),
    }
}

/// Weighs the ledger's names, the heaviest first.
pub(super) fn weigh_names<'l>(
    ledger: &'l Ledger,
    template: &StyleTemplate,
) -> Vec<WeighedName<'l>> {
    let session = WeighingContext::from_ledger(ledger);
    let weighed = |(entity, nth): (&'l Entity, u32)| {
        let unweighed = WeighedName::new(nth, entity, 0.0);
        WeighedName {
            weight: session.chance_needed(entity, unweighed.key, template),
            ..unweighed
        }
    };
    let names = ledger.entities.iter().zip(0..);
    let mut groups: Vec<WeighedName<'l>> = names.map(weighed).collect();
    sort(&mut groups);
    groups
}

/// How much heavier a name becomes when a person asks for what it is about.
const WISHED: f64 = 4.0;

/// Raises the names that share a word with a person's wish.
pub(super) fn favour(groups: &mut [WeighedName<'_>], wish: &str) {
    let mut words: HashSet<String, foldhash::fast::FixedState> = HashSet::default();
    subwords(wish, |word| {
        words.insert(word.to_owned());
    });
    for group in groups.iter_mut() {
        let mut asked = false;
        subwords(group.key, |word| {
            asked |= word.len() > 3 && words.contains(word)
        });
        if asked {
            group.weight = (group.weight * WISHED).min(1.0);
        }
    }
    sort(groups);
}

/// No two names are written alike, so their order is always the same.
fn sort(groups: &mut [WeighedName<'_>]) {
    groups.sort_unstable_by(|a, b| {
        let heavier = b.weight.total_cmp(&a.weight);
        heavier
            .then_with(|| a.key.cmp(b.key))
            .then_with(|| a.text.cmp(b.text))
    });
}

/// What the weighing of single names needs to know of the whole.
struct WeighingContext {
    /// The ordinal that the next entry will get.
    next: u64,
    words: HashSet<String, foldhash::fast::FixedState>,
    crowds: HashMap<BlockPlace, u32, foldhash::fast::FixedState>,
    /// Names in use: the block, and the first byte in it.
    used: Vec<(BlockPlace, u32)>,
}

/// How close a name in use has to stand, in bytes.
const NEAR: u32 = 80;

impl WeighingContext {
    fn from_ledger(ledger: &Ledger) -> Self {
        let mut words = HashSet::default();
        for excerpt in ledger.excerpts.iter().filter(|e| e.voice.speaks()) {
            subwords(&excerpt.text, |word| {
                if !words.contains(word) {
                    words.insert(word.to_owned());
                }
            });
        }
        let mut crowds: HashMap<_, u32, _> = HashMap::default();
        let mut used = Vec::new();
        for entity in &ledger.entities {
            for m in &entity.heard {
                *crowds.entry(m.place).or_default() += 1;
                if !entity.spoken.is_empty() {
                    used.push((m.place, m.start));
                }
            }
        }
        used.sort_unstable();
        WeighingContext {
            next: ledger.next,
            words,
            crowds,
            used,
        }
    }

    /// The chance that a name is needed again.
    fn chance_needed(&self, entity: &Entity, key: &str, template: &StyleTemplate) -> f64 {
        let said = |voice| voice_score(entity, voice, template);
        let spoken = 0.45 * said(Voice::User) + 0.58 * said(Voice::Model) + 0.9 * said(Voice::Call);
        let (evidence, fading) = match spoken > 0.0 {
            true => (1.65 + spoken, 0.44),
            false => (self.weigh_tool_name(entity, key, template), 0.3),
        };
        let age = (self.next as u32).saturating_sub(entity.last + 1);
        let odds = evidence - fading * f64::from(age).ln_1p() + kind_score(entity.kind);
        1.0 / (1.0 + (BASE - odds).exp())
    }

    /// What speaks for a name that neither the user nor the model used.
    fn weigh_tool_name(&self, entity: &Entity, key: &str, template: &StyleTemplate) -> f64 {
        let last = entity.heard.last();
        let near = last.is_some_and(|m| self.is_near(m));
        // A path is long by nature.
        let per_char = if entity.kind == NameKind::Path {
            0.02
        } else {
            0.03
        };
        // Names last heard in the same tool answer.
        let crowd = last.and_then(|m| self.crowds.get(&m.place));
        0.27 * f64::from(entity.times).ln_1p() * template.weight(Voice::Tool)
            + 0.45 * voice_score(entity, Voice::Tool, template)
            + 0.9 * self.related(key)
            + 0.35 * f64::from(u8::from(near))
            + 0.65 * f64::from(u8::from(entity.defined.is_some()))
            - 0.15 * f64::from(crowd.copied().unwrap_or(0)).ln_1p()
            - per_char * key.len() as f64
    }

    /// Whether a name in use stands close.
    fn is_near(&self, m: &Mention) -> bool {
        let low = (m.place, m.start.saturating_sub(NEAR));
        let at = self.used.partition_point(|u| *u < low);
        self.used
            .iter()
            .skip(at)
            .take(3)
            .any(|&(place, start)| place == m.place && start <= m.start + NEAR && start != m.start)
    }

    /// The share of a name's words that are in use.
    fn related(&self, name: &str) -> f64 {
        let (mut all, mut used) = (0, 0);
        subwords(name, |word| {
            all += 1;
            used += u32::from(self.words.contains(word));
        });
        f64::from(used) / f64::from(all.max(1))
    }
}

/// The lower-cased words that names and texts are made of: `runIndexTests` → run, index, tests.
fn subwords(text: &str, mut found: impl FnMut(&str)) {
    let mut lowered = String::new();
    let mut tell = |word: Option<&str>| {
        let Some(word) = word.filter(|word| word.len() >= 3) else {
            return;
        };
        if word.bytes().any(|b| b.is_ascii_uppercase()) {
            lowered.clear();
            lowered.push_str(word);
            lowered.make_ascii_lowercase();
            return found(&lowered);
        }
        found(word);
    };
    let mut start = None;
    let mut lower = false;
    for (i, b) in text.bytes().enumerate() {
        let hump = lower && b.is_ascii_uppercase();
        if !b.is_ascii_alphabetic() || hump {
            tell(start.take().and_then(|start| text.get(start..i)));
        }
        if b.is_ascii_alphabetic() {
            start.get_or_insert(i);
        }
        lower = b.is_ascii_lowercase();
    }
    tell(start.and_then(|start| text.get(start..)));
}

/// In how many blocks a voice named it, the more the less each counts.
fn voice_score(entity: &Entity, voice: Voice, template: &StyleTemplate) -> f64 {
    f64::from(entity.voice_count(voice)).ln_1p() * template.weight(voice)
}

/// Log-odds against a name of which nothing is known.
const BASE: f64 = 4.0;

fn kind_score(kind: NameKind) -> f64 {
    match kind {
        NameKind::Path | NameKind::Id => 0.8,
        NameKind::File | NameKind::Ident => 0.0,
        NameKind::Url | NameKind::Uuid | NameKind::Number | NameKind::Email => -0.7,
        NameKind::Hash | NameKind::Version => -1.0,
        NameKind::Slug => -1.5,
        NameKind::Flag => -2.0,
    }
}
