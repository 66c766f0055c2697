//! `diff`: two versions of a session, aligned by what their entries say.

mod page;
mod picture;

use std::collections::HashMap;

use compact::format::TranscriptScope;
use compact::message::{Block, Conversation, Entry, EntryHash};
use compact::token::{EstimatorExt, TokenAccount, TokenCache, Tokens};
use serde_json::{Value, json};

use crate::answer::{CommandAnswer, set_field};
use crate::app::App;
use crate::args::{DiffArgs, DiffFormat, GlobalArgs};
use crate::failure::Failure;
use crate::input::InputSource;
use crate::report::Charset;
use crate::report::text::one_line;

/// One entry of a version.
struct DiffEntry {
    index: usize,
    role: &'static str,
    tokens: Tokens,
    says: String,
    /// Of a new entry: the removed one whose place it takes.
    replaces: Option<usize>,
}

/// What became of an entry between two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryFate {
    Kept,
    /// It stands where a longer one stood.
    Cut,
    New,
    Removed,
}

/// What is gone, kept and new.
struct SessionDiff {
    names: [String; 2],
    removed: Vec<DiffEntry>,
    added: Vec<DiffEntry>,
    kept: usize,
    before: Tokens,
    after: Tokens,
    /// Every entry of both versions, in order.
    fates: [Vec<(EntryFate, Tokens)>; 2],
}

/// Compares two versions.
pub(super) fn run(
    args: &DiffArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let before = InputSource::read(&args.before)?;
    let after = InputSource::read(&args.after)?;
    let comparison = compare(app, &before, &after)?;
    let json = comparison.to_json();
    Ok(match args.format {
        DiffFormat::Text => {
            CommandAnswer::new(json, page::text(&comparison, Charset::detect(global)))
        }
        DiffFormat::Md => document_answer(json, page::markdown(&comparison)),
        DiffFormat::Html => document_answer(json, page::html(&comparison)),
        DiffFormat::Svg => document_answer(json, picture::svg(&comparison)),
    })
}

/// A document is what was asked for: it is printed as it is, `--quiet` or not.
fn document_answer(json: Value, text: String) -> CommandAnswer {
    CommandAnswer::new(json, String::new()).with_payload(Some(text.into_bytes()))
}

fn compare(app: &App, before: &InputSource, after: &InputSource) -> Result<SessionDiff, Failure> {
    let old = before.parse(None, TranscriptScope::Live)?.conversation;
    let new = after.parse(None, TranscriptScope::Live)?.conversation;
    let model = old.model.as_deref().or(new.model.as_deref());
    let estimator = app.compact().estimator(model);
    let [old_hashes, new_hashes] = [&old, &new].map(|c| EntryHash::from_entries(&c.entries));
    let mut cache = TokenCache::default();
    let old_account = TokenAccount::count_conversation(&old, &old_hashes, &*estimator, &mut cache);
    let new_account = TokenAccount::count_conversation(&new, &new_hashes, &*estimator, &mut cache);
    let matched = EntryMatches::from_hashes(&old_hashes, &new_hashes);
    let item = |conversation: &Conversation, account: &TokenAccount, index: usize| {
        let entry = conversation.entries.get(index)?;
        let units = account.entries.get(index).copied().unwrap_or_default();
        Some(DiffEntry {
            index,
            role: entry.role.as_str(),
            tokens: estimator.to_tokens(units),
            says: first_text(entry),
            replaces: None,
        })
    };
    let removed: Vec<usize> = matched.removed();
    let mut added = Vec::new();
    for index in matched.added() {
        added.extend(item(&new, &new_account, index).map(|new_item| DiffEntry {
            replaces: find_replaced(&old, &removed, new.entries.get(index)),
            ..new_item
        }));
    }
    let costs = |account: &TokenAccount| -> Vec<Tokens> {
        let units = account.entries.iter();
        units.map(|units| estimator.to_tokens(*units)).collect()
    };
    let fates = matched.fates(&added, [costs(&old_account), costs(&new_account)]);
    Ok(SessionDiff {
        fates,
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
struct EntryMatches {
    old: Vec<bool>,
    new: Vec<bool>,
}

impl EntryMatches {
    fn from_hashes(old: &[EntryHash], new: &[EntryHash]) -> EntryMatches {
        let mut places: HashMap<EntryHash, Vec<usize>> = HashMap::new();
        for (index, hash) in old.iter().enumerate() {
            places.entry(*hash).or_default().push(index);
        }
        let mut matched = EntryMatches {
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

    /// The fate of every entry of both versions, with what each costs.
    fn fates(
        &self,
        added: &[DiffEntry],
        [old, new]: [Vec<Tokens>; 2],
    ) -> [Vec<(EntryFate, Tokens)>; 2] {
        let is_cut = |index: usize| {
            let mut entries = added.iter().filter(|entry| entry.index == index);
            entries.any(|entry| entry.replaces.is_some())
        };
        let was = self.old.iter().zip(old).map(|(kept, tokens)| match kept {
            true => (EntryFate::Kept, tokens),
            false => (EntryFate::Removed, tokens),
        });
        let is = self.new.iter().enumerate().zip(new);
        let is = is.map(|((index, kept), tokens)| match kept {
            true => (EntryFate::Kept, tokens),
            false if is_cut(index) => (EntryFate::Cut, tokens),
            false => (EntryFate::New, tokens),
        });
        [was.collect(), is.collect()]
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
fn find_replaced(old: &Conversation, removed: &[usize], new: Option<&Entry>) -> Option<usize> {
    let new = new?;
    let ids: Vec<&str> = call_ids(new);
    if ids.is_empty() {
        return None;
    }
    let same = |index: &&usize| {
        let entry = old.entries.get(**index);
        entry.is_some_and(|e| e.role == new.role && call_ids(e) == ids)
    };
    removed.iter().find(same).copied()
}

fn call_ids(entry: &Entry) -> Vec<&str> {
    entry
        .call_ids()
        .chain(entry.result_ids())
        .filter(|id| !id.is_empty())
        .collect()
}

fn first_text(entry: &Entry) -> String {
    let texts = entry.blocks.iter().flat_map(Block::text_parts);
    let mut texts = texts.filter(|text| !text.trim().is_empty());
    one_line(texts.next().unwrap_or_default(), 200)
}

impl DiffEntry {
    fn to_json(&self) -> Value {
        let mut json = json!({
            "entry": self.index,
            "role": self.role,
            "tokens": self.tokens,
            "text": self.says,
        });
        if let Some(index) = self.replaces {
            set_field(&mut json, "replaces", index);
        }
        json
    }
}

impl SessionDiff {
    fn to_json(&self) -> Value {
        json!({
            "removed": self.removed.iter().map(DiffEntry::to_json).collect::<Vec<_>>(),
            "kept": self.kept,
            "added": self.added.iter().map(DiffEntry::to_json).collect::<Vec<_>>(),
            "tokens_before": self.before,
            "tokens_after": self.after,
        })
    }
}
