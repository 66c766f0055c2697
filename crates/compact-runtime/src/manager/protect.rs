//! What callers protect by name: entries of a session, known again by their hash.
//!
//! A flag travels with a message; where a message has no room for one, or loses it on its way, the
//! session remembers. The catalog keeps it as events, so that it holds in every process and after a
//! restart. A compaction takes the names into its policy, and with that into its receipt.

use std::collections::BTreeSet;

use compact_core::identity::EntryHash;
use compact_core::policy::Policy;
use serde_json::{Value, json};

use super::Manager;
use crate::error::Error;

const PROTECTED: &str = "compact.entries_protected";
const RELEASED: &str = "compact.entries_released";

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
        let mut protected = BTreeSet::new();
        for event in self.catalog.events(session).await? {
            let names = event.get("entries").cloned().unwrap_or_default();
            let names: Vec<EntryHash> = serde_json::from_value(names).unwrap_or_default();
            match event.get("event").and_then(Value::as_str) {
                Some(PROTECTED) => protected.extend(names),
                Some(RELEASED) => protected.retain(|name| !names.contains(name)),
                _ => {}
            }
        }
        Ok(protected)
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
