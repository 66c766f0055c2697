//! Counting: units, tokens, estimators that need no tables, and the account of a conversation.
//!
//! An estimator counts *units*; so many units make a token. `chars4` counts code points, four to a
//! token, and rounds once over the whole, which is why sums are kept in units and rounded last.
//! Estimators with tables (BPE) live in the adapters; providers' own counts only calibrate pressure.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::BuildHasher;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::identity::EntryHash;
use crate::message::{Block, Conversation, Entry, Role};

/// A number of model tokens.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);

/// A number of an estimator's units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Units(pub u64);

macro_rules! arithmetic {
    ($($type:ident)*) => {$(
        impl Add for $type {
            type Output = Self;
            fn add(self, other: Self) -> Self { $type(self.0.saturating_add(other.0)) }
        }
        impl AddAssign for $type {
            fn add_assign(&mut self, other: Self) { *self = *self + other; }
        }
        /// Saturating: a budget that is overdrawn is empty.
        impl Sub for $type {
            type Output = Self;
            fn sub(self, other: Self) -> Self { $type(self.0.saturating_sub(other.0)) }
        }
        impl Sum for $type {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self { all.fold($type(0), Add::add) }
        }
    )*};
}
arithmetic!(Tokens Units);

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts text. Implementations are deterministic and add up over separate texts.
pub trait Estimator: Send + Sync {
    /// The name that the receipt carries and `--estimator` takes.
    fn name(&self) -> &str;

    /// The units of one text.
    fn count_units(&self, text: &str) -> Units;

    /// How many units make a token.
    fn units_per_token(&self) -> u64 {
        1
    }

    /// Units that a message costs beside its text (role, separators).
    fn framing_units(&self) -> Units {
        Units(0)
    }

    /// Units that each further text of a message costs (a joining newline, say).
    fn joint_units(&self) -> Units {
        Units(0)
    }
}

/// Conversions that every estimator shares.
pub trait EstimatorExt: Estimator {
    /// Whole tokens, rounded up.
    fn to_tokens(&self, units: Units) -> Tokens {
        Tokens(units.0.div_ceil(self.units_per_token().max(1)))
    }

    /// The units that so many tokens hold.
    fn to_units(&self, tokens: Tokens) -> Units {
        Units(tokens.0.saturating_mul(self.units_per_token()))
    }

    /// The units of a message with one text.
    fn count_message(&self, text: &str) -> Units {
        self.framing_units() + self.joint_units() + self.count_units(text)
    }

    /// The units of an entry: its texts, calls and results; reasoning, media and opaque blocks by size.
    fn count_entry(&self, entry: &Entry) -> Units {
        self.framing_units() + entry.blocks.iter().map(|b| self.count_block(b)).sum()
    }

    /// The units of one block.
    fn count_block(&self, block: &Block) -> Units {
        match block {
            Block::Media { tokens, .. } => self.to_units(Tokens(*tokens)),
            Block::Opaque { bytes, .. } => self.to_units(Tokens(*bytes as u64 / 4)),
            Block::Reasoning { text, replay_bytes } => {
                self.count_text(text) + self.to_units(Tokens(*replay_bytes as u64 / 4))
            }
            Block::ToolCall {
                name, arguments, ..
            } => {
                // `name arguments`: the space between them is part of the text.
                self.count_text(name) + self.count_units(" ") + self.count_units(arguments)
            }
            Block::Text(text) | Block::ToolResult { content: text, .. } => self.count_text(text),
        }
    }

    /// The units of one text among others; an empty text costs nothing.
    fn count_text(&self, text: &str) -> Units {
        if text.is_empty() {
            Units(0)
        } else {
            self.joint_units() + self.count_units(text)
        }
    }
}

impl<E: Estimator + ?Sized> EstimatorExt for E {}

/// ⌈code points ÷ 4⌉ of all texts joined by newlines: the yardstick of the evaluation tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chars4;

impl Estimator for Chars4 {
    fn name(&self) -> &str {
        "chars4"
    }
    fn count_units(&self, text: &str) -> Units {
        Units(text.chars().count() as u64)
    }
    fn units_per_token(&self) -> u64 {
        4
    }
    fn joint_units(&self) -> Units {
        Units(1)
    }
}

/// A quick guess that knows that CJK text costs about a token per character.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heuristic;

impl Estimator for Heuristic {
    fn name(&self) -> &str {
        "heuristic"
    }
    fn count_units(&self, text: &str) -> Units {
        if text.is_ascii() {
            return Units(text.len() as u64);
        }
        Units(text.chars().map(|c| if is_cjk(c) { 4 } else { 1 }).sum())
    }
    fn units_per_token(&self) -> u64 {
        4
    }
    fn framing_units(&self) -> Units {
        Units(16)
    }
    fn joint_units(&self) -> Units {
        Units(1)
    }
}

fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11FF | 0x2E80..=0x9FFF | 0xA960..=0xA97F | 0xAC00..=0xD7FF
        | 0xF900..=0xFAFF | 0xFE30..=0xFE4F | 0xFF00..=0xFFEF | 0x20000..=0x3FFFF)
}

/// Units by entry hash, so that a history passed again costs a hash and not a count.
#[derive(Clone, Debug, Default)]
pub struct TokenCache {
    units: HashMap<(EntryHash, u64), Units, foldhash::fast::FixedState>,
    /// The tool schemas that were counted last: a client sends the same with every call.
    tools: Option<(String, Units)>,
}

impl TokenCache {
    /// The units of an entry, counted once per content.
    pub fn count_entry(
        &mut self,
        hash: EntryHash,
        entry: &Entry,
        estimator: &dyn Estimator,
    ) -> Units {
        *self
            .units
            .entry((hash, unhashed_weight(entry)))
            .or_insert_with(|| estimator.count_entry(entry))
    }

    /// The units of tool schemas, counted when they are others than last time.
    pub fn count_tools(&mut self, tools: &str, estimator: &dyn Estimator) -> Units {
        if let Some((known, units)) = &self.tools
            && known == tools
        {
            return *units;
        }
        let units = estimator.count_units(tools);
        self.tools = Some((tools.to_owned(), units));
        units
    }

    /// True when an entry has been counted.
    pub fn knows(&self, hash: EntryHash, entry: &Entry) -> bool {
        self.units.contains_key(&(hash, unhashed_weight(entry)))
    }

    /// Takes what was counted elsewhere.
    pub fn remember(&mut self, hash: EntryHash, entry: &Entry, units: Units) {
        self.units.insert((hash, unhashed_weight(entry)), units);
    }

    /// How many contents are remembered.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// True before the first count.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
}

/// What an entry carries that its identity leaves out but the count does not: also how its JSON is
/// spelt.
fn unhashed_weight(entry: &Entry) -> u64 {
    entry
        .blocks
        .iter()
        .map(|b| match b {
            Block::Reasoning { text, replay_bytes } => (text.len() + replay_bytes) as u64,
            Block::Media { tokens, .. } => *tokens,
            Block::Opaque { bytes, .. } => *bytes as u64,
            Block::ToolCall {
                arguments: json, ..
            }
            | Block::ToolResult { content: json, .. } => {
                foldhash::fast::FixedState::default().hash_one(json)
            }
            Block::Text(_) => 0,
        })
        .fold(entry.blocks.len() as u64, |a, b| {
            a.wrapping_mul(31).wrapping_add(b)
        })
}

/// The account of a conversation, in units per entry and tokens per category.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenAccount {
    /// Units of each entry, in order.
    pub entries: Vec<Units>,
    /// Leading system and developer entries.
    pub system: Tokens,
    /// Tool schemas.
    pub tools: Tokens,
    /// The rewritable history: what a budget bounds.
    pub history: Tokens,
    /// Tool results within the history.
    pub tool_results: Tokens,
    /// Summaries within the history: the session's memory.
    pub memory: Tokens,
    /// The user's latest message within the history.
    pub user_input: Tokens,
    /// Everything by role.
    pub by_role: BTreeMap<Role, Tokens>,
}

impl TokenAccount {
    /// System, tools and history together: what the next request costs.
    pub fn total(&self) -> Tokens {
        self.system + self.tools + self.history
    }

    /// Counts a conversation whose entries already have their hashes.
    pub fn count_conversation(
        conversation: &Conversation,
        hashes: &[EntryHash],
        estimator: &dyn Estimator,
        cache: &mut TokenCache,
    ) -> TokenAccount {
        let entries: Vec<Units> = conversation
            .entries
            .iter()
            .zip(hashes)
            .map(|(entry, hash)| cache.count_entry(*hash, entry, estimator))
            .collect();
        Self::from_units(conversation, entries, estimator)
    }

    /// Sums counted entries into categories.
    pub fn from_units(
        conversation: &Conversation,
        entries: Vec<Units>,
        estimator: &dyn Estimator,
    ) -> TokenAccount {
        let leading = conversation.leading_instructions();
        let mut sums = CategorySums::default();
        let last_user = conversation
            .entries
            .iter()
            .rposition(Entry::is_user_message);
        for (i, (entry, &units)) in conversation.entries.iter().zip(&entries).enumerate() {
            sums.add(entry, units, i < leading);
            if Some(i) == last_user {
                sums.user_input = units;
            }
        }
        TokenAccount {
            system: estimator.to_tokens(sums.system),
            tools: conversation
                .tools
                .as_deref()
                .map_or(Tokens(0), |t| estimator.to_tokens(estimator.count_units(t))),
            history: estimator.to_tokens(sums.history),
            tool_results: estimator.to_tokens(sums.tool_results),
            memory: estimator.to_tokens(sums.memory),
            user_input: estimator.to_tokens(sums.user_input),
            by_role: sums
                .by_role
                .iter()
                .map(|(role, units)| (*role, estimator.to_tokens(*units)))
                .collect(),
            entries,
        }
    }
}

#[derive(Default)]
struct CategorySums {
    system: Units,
    history: Units,
    tool_results: Units,
    memory: Units,
    user_input: Units,
    by_role: BTreeMap<Role, Units>,
}

impl CategorySums {
    fn add(&mut self, entry: &Entry, units: Units, leading: bool) {
        use crate::message::EntryKind::{ForeignSummary, Summary};
        *self.by_role.entry(entry.role).or_default() += units;
        if leading {
            self.system += units;
            return;
        }
        self.history += units;
        if entry.has_results() {
            self.tool_results += units;
        }
        if matches!(entry.meta.kind, Summary { .. } | ForeignSummary) {
            self.memory += units;
        }
    }
}

#[cfg(test)]
mod tests;
