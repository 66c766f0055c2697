//! `diff`: two versions of a session, aligned by what their entries say.

mod page;

use std::collections::HashMap;

use compact_core::identity::EntryHash;
use compact_core::message::{Block, Conversation, Entry};
use compact_core::token::{Account, EstimatorExt, TokenCache, Tokens};
use compact_formats::Scope;
use serde_json::{Value, json};

use crate::answer::{Answer, set};
use crate::args::{Diff, DiffFormat, Global};
use crate::failure::Failure;
use crate::input::Source;
use crate::report::Charset;
use crate::report::text::one_line;
use crate::world::World;

/// One entry of a version.
struct Item {
    index: usize,
    role: &'static str,
    tokens: Tokens,
    says: String,
    /// Of a new entry: the removed one whose place it takes.
    replaces: Option<usize>,
}

/// What is gone, kept and new.
struct Comparison {
    names: [String; 2],
    removed: Vec<Item>,
    added: Vec<Item>,
    kept: usize,
    before: Tokens,
    after: Tokens,
}

/// Compares two versions.
pub fn run(args: &Diff, world: &World, global: &Global) -> Result<Answer, Failure> {
    let before = Source::read(&args.before)?;
    let after = Source::read(&args.after)?;
    let comparison = compare(world, &before, &after)?;
    let json = comparison.to_json();
    Ok(match args.format {
        DiffFormat::Text => Answer::new(json, page::text(&comparison, Charset::detect(global))),
        DiffFormat::Md => document(json, page::markdown(&comparison)),
        DiffFormat::Html => document(json, page::html(&comparison)),
    })
}

/// A document is what was asked for: it is printed as it is, `--quiet` or not.
fn document(json: Value, text: String) -> Answer {
    Answer::new(json, String::new()).with_payload(Some(text.into_bytes()))
}

fn compare(world: &World, before: &Source, after: &Source) -> Result<Comparison, Failure> {
    let old = before.parse(None, Scope::Live)?.conversation;
    let new = after.parse(None, Scope::Live)?.conversation;
    let model = old.model.as_deref().or(new.model.as_deref());
    let estimator = world.estimator(model);
    let [old_hashes, new_hashes] = [&old, &new].map(|c| EntryHash::all(&c.entries));
    let mut cache = TokenCache::default();
    let old_account = Account::of(&old, &old_hashes, &*estimator, &mut cache);
    let new_account = Account::of(&new, &new_hashes, &*estimator, &mut cache);
    let matched = Matched::of(&old_hashes, &new_hashes);
    let item = |conversation: &Conversation, account: &Account, index: usize| {
        let entry = conversation.entries.get(index)?;
        let units = account.entries.get(index).copied().unwrap_or_default();
        Some(Item {
            index,
            role: entry.role.as_str(),
            tokens: estimator.tokens(units),
            says: says(entry),
            replaces: None,
        })
    };
    let removed: Vec<usize> = matched.removed();
    let mut added = Vec::new();
    for index in matched.added() {
        added.extend(item(&new, &new_account, index).map(|new_item| Item {
            replaces: replaced(&old, &removed, new.entries.get(index)),
            ..new_item
        }));
    }
    Ok(Comparison {
        names: [before.name.clone(), after.name.clone()],
        kept: matched.kept(),
        removed: removed
            .iter()
            .filter_map(|&i| item(&old, &old_account, i))
            .collect(),
        added,
        before: old_account.history,
        after: new_account.history,
    })
}

/// Which entries of two versions are the same. Equal entries pair from the end, because a
/// compaction keeps the newest.
struct Matched {
    old: Vec<bool>,
    new: Vec<bool>,
}

impl Matched {
    fn of(old: &[EntryHash], new: &[EntryHash]) -> Matched {
        let mut places: HashMap<EntryHash, Vec<usize>> = HashMap::new();
        for (index, hash) in old.iter().enumerate() {
            places.entry(*hash).or_default().push(index);
        }
        let mut matched = Matched {
            old: vec![false; old.len()],
            new: vec![false; new.len()],
        };
        for (index, hash) in new.iter().enumerate().rev() {
            let place = places.get_mut(hash).and_then(Vec::pop);
            if let Some(flag) = place.and_then(|place| matched.old.get_mut(place)) {
                *flag = true;
                matched
                    .new
                    .get_mut(index)
                    .into_iter()
                    .for_each(|f| *f = true);
            }
        }
        matched
    }

    fn removed(&self) -> Vec<usize> {
        unmatched(&self.old)
    }

    fn added(&self) -> Vec<usize> {
        unmatched(&self.new)
    }

    fn kept(&self) -> usize {
        self.new.iter().filter(|matched| **matched).count()
    }
}

fn unmatched(flags: &[bool]) -> Vec<usize> {
    let indices = flags.iter().enumerate();
    indices.filter(|(_, m)| !**m).map(|(i, _)| i).collect()
}

/// The removed entry that a new one is a cut version of: it makes or answers the same calls.
fn replaced(old: &Conversation, removed: &[usize], new: Option<&Entry>) -> Option<usize> {
    let new = new?;
    let ids: Vec<&str> = calls(new);
    if ids.is_empty() {
        return None;
    }
    let same = |index: &&usize| {
        let entry = old.entries.get(**index);
        entry.is_some_and(|e| e.role == new.role && calls(e) == ids)
    };
    removed.iter().find(same).copied()
}

fn calls(entry: &Entry) -> Vec<&str> {
    entry
        .calls()
        .chain(entry.results())
        .filter(|id| !id.is_empty())
        .collect()
}

fn says(entry: &Entry) -> String {
    let texts = entry.blocks.iter().flat_map(Block::text_parts);
    let mut texts = texts.filter(|text| !text.trim().is_empty());
    one_line(texts.next().unwrap_or_default(), 200)
}

impl Item {
    fn to_json(&self) -> Value {
        let mut json = json!({
            "entry": self.index,
            "role": self.role,
            "tokens": self.tokens,
            "text": self.says,
        });
        if let Some(index) = self.replaces {
            set(&mut json, "replaces", index);
        }
        json
    }
}

impl Comparison {
    fn to_json(&self) -> Value {
        json!({
            "removed": self.removed.iter().map(Item::to_json).collect::<Vec<_>>(),
            "kept": self.kept,
            "added": self.added.iter().map(Item::to_json).collect::<Vec<_>>(),
            "tokens_before": self.before,
            "tokens_after": self.after,
        })
    }
}
