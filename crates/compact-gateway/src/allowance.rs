//! What a key may spend in a day, and what it has spent, as upstreams report it or, where they do not, by size.
//!
//! Kept in memory: each gateway counts what went through it, and begins anew when it starts. A request that was
//! let in is never cut off; the next one is refused.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use compact::format::usage::ReportedUsage;

use crate::access::Admission;

/// What stands for a token where nobody counted.
const BYTES_PER_TOKEN: usize = 4;

/// The tokens of each key on the day that it was last used.
#[derive(Default)]
pub(crate) struct SpentAllowances(Mutex<HashMap<String, SpentDay>>);

#[derive(Default)]
struct SpentDay {
    /// As in `2026-11-17`.
    day: String,
    tokens: u64,
}

impl SpentAllowances {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, SpentDay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a key has nothing left on the day of a timestamp.
    pub(crate) fn is_spent(&self, admission: &Admission, timestamp: &str) -> bool {
        let Some(most) = admission.grant.daily_tokens else {
            return false;
        };
        let spent = self.lock();
        let spent = spent.get(&admission.tenant.scope());
        spent.is_some_and(|spent| spent.day == day_of(timestamp) && spent.tokens >= most)
    }

    /// Adds what an answer cost.
    pub(crate) fn add(&self, scope: &str, timestamp: &str, report: &ReportedUsage) {
        let usage = &report.usage;
        let tokens = usage.input_tokens
            + usage.output_tokens
            + usage.cache_read_tokens
            + usage.cache_creation_tokens;
        self.add_tokens(scope, timestamp, tokens);
    }

    /// Adds what an answer may have cost that reported nothing, by the bytes of its request and its own.
    pub(crate) fn add_bytes(&self, scope: &str, timestamp: &str, bytes: usize) {
        let tokens = u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX);
        self.add_tokens(scope, timestamp, tokens);
    }

    fn add_tokens(&self, scope: &str, timestamp: &str, tokens: u64) {
        let mut spent = self.lock();
        let entry = spent.entry(scope.to_owned()).or_default();
        let day = day_of(timestamp);
        if entry.day != day {
            *entry = SpentDay {
                day: day.to_owned(),
                tokens: 0,
            };
        }
        entry.tokens = entry.tokens.saturating_add(tokens);
    }
}

/// Returns the date of a timestamp.
fn day_of(timestamp: &str) -> &str {
    timestamp.get(..10).unwrap_or(timestamp)
}
