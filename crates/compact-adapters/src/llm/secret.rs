//! A key that cannot be printed by mistake.

use std::fmt;

/// No provider hands out a shorter one.
const SHORTEST_KEY: usize = 8;

/// A key. It is neither `Display` nor serializable, and its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Returns the key in an environment variable; `None` when that is unset or empty.
    pub fn from_env(variable: &str) -> Option<ApiKey> {
        let value = std::env::var(variable).ok()?;
        let value = value.trim();
        (!value.is_empty()).then(|| ApiKey(value.to_owned()))
    }

    /// Returns a key that a program has from elsewhere.
    pub fn new(value: impl Into<String>) -> ApiKey {
        ApiKey(value.into())
    }

    /// Returns the key itself, for the one header that carries it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns a text without the key, whoever put it there. What is shorter than any key, such as the word
    /// that a local server accepts, stays: without its letters nobody could read what a server says.
    pub(super) fn scrub(&self, text: &str) -> String {
        match self.0.len() < SHORTEST_KEY {
            true => text.to_owned(),
            false => text.replace(&self.0, "[key]"),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
