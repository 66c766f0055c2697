//! Forms of one name: a path as a whole, its last two components, its file name.
//!
//! A longer form shows the shorter ones, but not what was said of them: people speak of `parse.rs`
//! where tools are given a path.

use std::collections::HashMap;

use super::weigh::{self, WeighedName};
use crate::ledger::NameKind;

/// Groups by the forms that show them.
pub(super) struct NameForms<'g> {
    exact: HashMap<&'g str, u32, foldhash::fast::FixedState>,
    by_key: HashMap<&'g str, Vec<u32>, foldhash::fast::FixedState>,
}

impl<'g> NameForms<'g> {
    pub(super) fn from_names(groups: &[WeighedName<'g>]) -> Self {
        let mut by_key: HashMap<&str, Vec<u32>, _> = HashMap::default();
        for (group, at) in groups.iter().zip(0u32..) {
            by_key.entry(group.key).or_default().push(at);
        }
        NameForms {
            exact: groups.iter().map(|g| g.text).zip(0u32..).collect(),
            by_key,
        }
    }

    /// The groups that a name in a text stands for. A form that nobody used, such as a path without
    /// its root, stands for those that end in the same way.
    pub(super) fn groups_named(&self, kind: NameKind, name: &str) -> &[u32] {
        match self.exact.get(name) {
            Some(group) => std::slice::from_ref(group),
            None => self.with_key(weigh::shown_key(kind, name)),
        }
    }

    /// The groups whose names stand in this one, itself among them if it is known.
    pub(super) fn groups_within(&self, key: &str, name: &str) -> impl Iterator<Item = u32> {
        let file = name.rsplit('/').next().filter(|file| *file != key);
        let file = file.map(|file| self.with_key(file)).unwrap_or_default();
        self.with_key(key).iter().chain(file).copied()
    }

    fn with_key(&self, key: &str) -> &[u32] {
        self.by_key.get(key).map(Vec::as_slice).unwrap_or_default()
    }
}
