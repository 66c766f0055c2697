//! What callers protect by name: entries of a session, known again by their hash.
//!
//! A flag travels with a message; where a message has no room for one, or loses it on its way, the
//! session remembers. The catalog keeps it as events, so that it holds in every process and after a
//! restart. A compaction takes the names into its policy, and with that into its receipt.

use std::collections::{BTreeSet, HashMap, HashSet};

use compact_core::identity::EntryHash;
use compact_core::message::Entry;
use compact_core::pin::is_nameable;
use compact_core::policy::Policy;
use serde_json::{Value, json};

use super::{ArchivedState, Manager};
use crate::error::Error;

const PROTECTED: &str = "compact.entries_protected";
const RELEASED: &str = "compact.entries_released";

/// What was protected by name in a session, and what was let go again.
#[derive(Default)]
struct NamedPins {
    protected: BTreeSet<EntryHash>,
    released: BTreeSet<EntryHash>,
}

/// Names each entry as pins do: a tool's result by its call, since many results are alike.
pub(crate) fn name_entries(entries: &[Entry]) -> Vec<Option<EntryHash>> {
    let hashes = EntryHash::from_entries(entries);
    let mut calls: HashMap<&str, EntryHash> = HashMap::new();
    let mut names = Vec::with_capacity(entries.len());
    for (entry, hash) in entries.iter().zip(hashes) {
        calls.extend(entry.call_ids().map(|id| (id, hash)));
        let asked = entry.result_ids().find_map(|id| calls.get(id).copied());
        names.push(is_nameable(entry).then(|| asked.unwrap_or(hash)));
    }
    names
}

impl Manager {
    /// Protects entries of a session from now on.
    pub async fn protect(&self, session: &str, names: &BTreeSet<EntryHash>) -> Result<(), Error> {
        self.save_protection(session, PROTECTED, names).await
    }

    /// Lets entries of a session go that were protected by name.
    pub async fn unprotect(&self, session: &str, names: &BTreeSet<EntryHash>) -> Result<(), Error> {
        self.save_protection(session, RELEASED, names).await
    }

    /// The entries of a session that are protected by name.
    pub async fn protected_entries(&self, session: &str) -> Result<BTreeSet<EntryHash>, Error> {
        Ok(self.named_pins(session).await?.protected)
    }

    /// Whether something that a session protects by name stands in all that it held, and not whole in a state of it.
    pub async fn lacks_protected(
        &self,
        session: &str,
        whole: &ArchivedState,
        state: &ArchivedState,
    ) -> Result<bool, Error> {
        let protected = self.protected_entries(session).await?;
        if protected.is_empty() {
            return Ok(false);
        }
        let shown = EntryHash::from_entries(&state.conversation.entries);
        let shown: HashSet<EntryHash> = shown.into_iter().collect();
        let entries = &whole.conversation.entries;
        let names = name_entries(entries).into_iter();
        let mut held = names.zip(EntryHash::from_entries(entries));
        Ok(held.any(|(name, hash)| {
            name.is_some_and(|name| protected.contains(&name)) && !shown.contains(&hash)
        }))
    }

    /// The same policy with what a session protects now: what was let go since a receipt was made is in its policy still.
    pub(super) async fn with_pins_of_now(
        &self,
        session: &str,
        policy: &Policy,
    ) -> Result<Policy, Error> {
        let pins = self.named_pins(session).await?;
        let mut policy = policy.clone();
        let mut named: BTreeSet<EntryHash> = policy.protected_entries.into_iter().collect();
        named.retain(|name| !pins.released.contains(name));
        named.extend(pins.protected);
        policy.protected_entries = named.into_iter().collect();
        Ok(policy)
    }

    async fn named_pins(&self, session: &str) -> Result<NamedPins, Error> {
        let mut pins = NamedPins::default();
        for event in self.catalog.events(session).await? {
            let names = event.get("entries").cloned().unwrap_or_default();
            let names: Vec<EntryHash> = serde_json::from_value(names).unwrap_or_default();
            let (into, out_of) = match event.get("event").and_then(Value::as_str) {
                Some(PROTECTED) => (&mut pins.protected, &mut pins.released),
                Some(RELEASED) => (&mut pins.released, &mut pins.protected),
                _ => continue,
            };
            out_of.retain(|name| !names.contains(name));
            into.extend(names);
        }
        Ok(pins)
    }

    /// The policy with what the session protects.
    pub(super) async fn policy_of(&self, session: &str) -> Result<Policy, Error> {
        let mut policy = self.policy.clone();
        let mut named = self.protected_entries(session).await?;
        named.extend(std::mem::take(&mut policy.protected_entries));
        policy.protected_entries = named.into_iter().collect();
        Ok(policy)
    }

    async fn save_protection(
        &self,
        session: &str,
        event: &str,
        names: &BTreeSet<EntryHash>,
    ) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        let event = json!({ "event": event, "entries": names, "ts": self.clock.timestamp() });
        Ok(self.catalog.save_event(session, &event).await?)
    }
}
