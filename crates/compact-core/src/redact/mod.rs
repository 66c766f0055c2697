//! Redaction: secrets and personal data become stable placeholders before text crosses a boundary.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// A compiled set of rules.
#[derive(Clone, Debug, Default)]
pub struct Redactor {}

/// How often each rule fired.
pub type Counts = BTreeMap<String, u64>;

impl Redactor {
    /// Replaces what the rules find; borrowed when nothing is found.
    pub fn redact<'t>(&self, text: &'t str, _counts: &mut Counts) -> Cow<'t, str> {
        Cow::Borrowed(text)
    }
}
