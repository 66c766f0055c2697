//! What upstreams said that their models take, which counts more than any table of models.

use std::sync::{Mutex, MutexGuard, PoisonError};

use compact::token::Tokens;
use lru::LruCache;

/// The most limits that are remembered.
const MOST: usize = 1024;

/// Limits by upstream and model.
pub(crate) struct LearnedLimits(Mutex<LruCache<(String, String), Tokens>>);

impl LearnedLimits {
    pub(crate) fn new() -> LearnedLimits {
        LearnedLimits(Mutex::new(LruCache::unbounded()))
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<(String, String), Tokens>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what an upstream said of a model.
    pub(crate) fn find(&self, upstream: &str, model: Option<&str>) -> Option<Tokens> {
        self.lock().get(&limit_key(upstream, model)).copied()
    }

    /// Remembers what an upstream said of a model.
    pub(crate) fn learn(&self, upstream: &str, model: Option<&str>, limit: Tokens) {
        if limit.0 == 0 {
            return;
        }
        let mut limits = self.lock();
        limits.put(limit_key(upstream, model), limit);
        if limits.len() > MOST {
            limits.pop_lru();
        }
    }
}

fn limit_key(upstream: &str, model: Option<&str>) -> (String, String) {
    (upstream.to_owned(), model.unwrap_or_default().to_owned())
}
