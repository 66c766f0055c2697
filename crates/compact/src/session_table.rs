//! The live sessions of a door: the most recent ones by name, within bounds, and by how histories go on.
//!
//! A session that was put out is taken up again from the history that its client passes, so a bound costs
//! time and nothing else. A session that nobody named is found by the beginning of a history: all that it
//! was passed before, or all that it handed out. Such names are looked up within a scope, so that what one
//! client said never finds the session of another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compact_core::identity::Chain;
use lru::LruCache;

/// The most that a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// So many sessions.
    pub sessions: usize,
    /// So much of what their holders say that they weigh, in all.
    pub weight: u64,
}

/// The most recent sessions of a door, by name. What is put out first is what was asked for least recently
/// and nobody holds.
///
/// ```
/// use compact::{SessionTable, TableLimits};
///
/// let table = SessionTable::new(TableLimits { sessions: 1, weight: u64::MAX });
/// let (one, _) = table.find_or_add("one", || "first");
/// assert_eq!(*table.find_or_add("one", || "second").0, "first");
/// drop(one);
/// let (_, evicted) = table.find_or_add("two", || "third");
/// assert_eq!(evicted, ["one"]);
/// ```
pub struct SessionTable<S> {
    limits: TableLimits,
    state: Mutex<TableState<S>>,
}

struct TableState<S> {
    rows: LruCache<String, TableRow<S>>,
    /// The sessions of each scope, by the chains that a continuing history begins with.
    scopes: HashMap<String, HashMap<Chain, String>>,
    weight: u64,
}

struct TableRow<S> {
    session: Arc<S>,
    weight: u64,
    scope: String,
    chains: Vec<Chain>,
}

impl<S> SessionTable<S> {
    /// Makes an empty table.
    pub fn new(limits: TableLimits) -> SessionTable<S> {
        SessionTable {
            limits,
            state: Mutex::new(TableState {
                rows: LruCache::unbounded(),
                scopes: HashMap::new(),
                weight: 0,
            }),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, TableState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session of a name, if it is there.
    pub fn find(&self, name: &str) -> Option<Arc<S>> {
        let mut state = self.lock_state();
        state.rows.get(name).map(|row| Arc::clone(&row.session))
    }

    /// Returns the session of a name, made if need be, and the names of those that were put out for it.
    pub fn find_or_add(&self, name: &str, make: impl FnOnce() -> S) -> (Arc<S>, Vec<String>) {
        let mut state = self.lock_state();
        let row = state.rows.get_or_insert(name.to_owned(), || TableRow {
            session: Arc::new(make()),
            weight: 0,
            scope: String::new(),
            chains: Vec::new(),
        });
        let session = Arc::clone(&row.session);
        let evicted = state.evict(self.limits);
        (session, evicted)
    }

    /// Returns the name of the session that a history with these beginnings goes on from; the longest match
    /// counts.
    pub fn find_continued(&self, scope: &str, beginnings: &[Chain]) -> Option<String> {
        let state = self.lock_state();
        let known = state.scopes.get(scope)?;
        let mut longest_first = beginnings.iter().rev();
        longest_first.find_map(|chain| known.get(chain)).cloned()
    }

    /// Notes what a history must begin with to go on from a session, instead of what was noted before.
    pub fn note_chains(&self, scope: &str, name: &str, chains: Vec<Chain>) {
        let mut state = self.lock_state();
        state.forget_chains(name);
        let Some(row) = state.rows.peek_mut(name) else {
            return;
        };
        row.scope = scope.to_owned();
        row.chains.clone_from(&chains);
        let known = state.scopes.entry(scope.to_owned()).or_default();
        known.extend(chains.into_iter().map(|chain| (chain, name.to_owned())));
    }

    /// Notes what a session weighs, and returns the names of those that were put out for it.
    pub fn note_weight(&self, name: &str, weight: u64) -> Vec<String> {
        let mut state = self.lock_state();
        let Some(row) = state.rows.peek_mut(name) else {
            return Vec::new();
        };
        let before = std::mem::replace(&mut row.weight, weight);
        state.weight = state.weight.saturating_sub(before).saturating_add(weight);
        state.evict(self.limits)
    }

    /// Removes a session.
    pub fn remove(&self, name: &str) {
        self.lock_state().remove(name);
    }

    /// Counts the sessions.
    pub fn len(&self) -> usize {
        self.lock_state().rows.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S> TableState<S> {
    fn remove(&mut self, name: &str) {
        self.forget_chains(name);
        if let Some(row) = self.rows.pop(name) {
            self.weight = self.weight.saturating_sub(row.weight);
        }
    }

    fn forget_chains(&mut self, name: &str) {
        let Some(row) = self.rows.peek_mut(name) else {
            return;
        };
        let chains = std::mem::take(&mut row.chains);
        let Some(known) = self.scopes.get_mut(&row.scope) else {
            return;
        };
        for chain in chains {
            if known.get(&chain).is_some_and(|known| known == name) {
                known.remove(&chain);
            }
        }
        if known.is_empty() {
            let scope = row.scope.clone();
            self.scopes.remove(&scope);
        }
    }

    /// Puts sessions out, the least recent first, until the rest is within bounds. Those that somebody
    /// holds stay, and so does the newest.
    fn evict(&mut self, limits: TableLimits) -> Vec<String> {
        let mut evicted = Vec::new();
        while self.rows.len() > limits.sessions.max(1) || self.weight > limits.weight {
            let newest = self.rows.len().saturating_sub(1);
            let free = |row: &TableRow<S>| Arc::strong_count(&row.session) == 1;
            let mut oldest_first = self.rows.iter().rev().take(newest);
            let Some((name, _)) = oldest_first.find(|(_, row)| free(row)) else {
                break;
            };
            let name = name.clone();
            self.remove(&name);
            evicted.push(name);
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(n: u8) -> Chain {
        Chain([n; 16])
    }

    fn table(sessions: usize, weight: u64) -> SessionTable<u8> {
        SessionTable::new(TableLimits { sessions, weight })
    }

    #[test]
    fn a_history_finds_the_session_it_goes_on_from_in_its_scope_alone() {
        let table = table(9, u64::MAX);
        for (scope, name, n) in [("", "a", 1), ("", "b", 2), ("t/", "c", 1)] {
            table.find_or_add(name, || 0);
            table.note_chains(scope, name, vec![chain(n)]);
        }
        let found = |scope, ns: &[u8]| {
            let beginnings: Vec<Chain> = ns.iter().map(|n| chain(*n)).collect();
            table.find_continued(scope, &beginnings)
        };
        assert_eq!(found("", &[1, 7]), Some("a".to_owned()));
        assert_eq!(
            found("", &[1, 2]),
            Some("b".to_owned()),
            "the longest match counts"
        );
        assert_eq!(found("t/", &[1]), Some("c".to_owned()));
        assert_eq!(found("t/", &[2]), None);
        table.note_chains("", "a", vec![chain(3)]);
        assert_eq!(
            (found("", &[1]), found("", &[3])),
            (None, Some("a".to_owned()))
        );
        table.remove("a");
        assert_eq!(found("", &[3]), None);
    }

    #[test]
    fn what_is_too_much_goes_unless_somebody_holds_it() {
        let table = table(2, 100);
        let (held, _) = table.find_or_add("held", || 0);
        assert_eq!(table.find_or_add("old", || 0).1, [""; 0]);
        assert_eq!(table.find_or_add("new", || 0).1, ["old"]);
        assert_eq!(table.note_weight("held", 90), [""; 0]);
        assert_eq!(
            table.note_weight("new", 20),
            [""; 0],
            "what is newest stays, and what is held"
        );
        drop(held);
        assert_eq!(table.note_weight("new", 30), ["held"]);
        assert_eq!((table.len(), table.find("held")), (1, None));
    }
}
