//! What the user took back, kept beside the facts that it follows from: a compaction asks for it many times.

use std::sync::OnceLock;

use super::fact::Fact;

/// What no longer holds.
#[derive(Debug)]
pub(crate) struct Revocations {
    /// Rules that a later word took back.
    pub rules: Vec<Fact>,
    /// Sentences that rule nothing and were given another value.
    pub statements: Vec<RevokedStatement>,
    /// What the user quotes and never ordered.
    pub quoted: Vec<Fact>,
    /// Words that may take a rule back, and do not surely.
    pub doubts: Vec<DoubtfulWithdrawal>,
}

/// A sentence of the user that may take back an earlier one: both stand.
#[derive(Debug)]
pub(crate) struct DoubtfulWithdrawal {
    pub later: Fact,
    pub rule: Fact,
}

/// A sentence of the user that a later one repeats with another value.
#[derive(Debug)]
pub(crate) struct RevokedStatement {
    pub ordinal: u32,
    pub text: String,
}

/// Revocations that are looked for when somebody asks first. They are no part of what is known: a copy looks again.
#[derive(Debug, Default)]
pub(crate) struct KeptRevocations(OnceLock<Revocations>);

impl KeptRevocations {
    pub(crate) fn get_or_find(&self, find: impl FnOnce() -> Revocations) -> &Revocations {
        self.0.get_or_init(find)
    }
}

impl Clone for KeptRevocations {
    fn clone(&self) -> Self {
        KeptRevocations::default()
    }
}

impl PartialEq for KeptRevocations {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
