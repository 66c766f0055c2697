//! One hash of everything that redaction does to a compaction.
//!
//! It is part of a receipt's identity and stands in the receipt, so nothing that was made under other
//! rules is taken for what these would make. The text of a pattern is not in it, only its hash; who
//! guesses a pattern can tell that it was one. A function of the user's counts by its name, since
//! nothing else of it can be compared.

use std::collections::BTreeSet;

use serde::Serialize;

use super::callback::ScrubCallback;
use super::{PiiClass, Redactor, rules};

/// What decides the output of a redactor.
#[derive(Serialize)]
struct RedactorIdentity<'r> {
    /// The maintained rules, where they apply.
    secrets: Option<rules::RulesIdentity>,
    pii: BTreeSet<PiiClass>,
    /// With their names, which say where each stood in its list: placeholders show them.
    patterns: BTreeSet<(&'r str, &'r str)>,
    allow: BTreeSet<&'r str>,
    /// In the order in which they are called, each on what the one before left.
    callbacks: Vec<&'r str>,
}

/// Names what two redactors do: the one that makes summaries, and the one of an archive that is not
/// exact. Lists whose order changes nothing are hashed in one order.
pub fn fingerprint(summary: &Redactor, archive: Option<&Redactor>) -> String {
    let both = (summary.identity(), archive.map(Redactor::identity));
    let json = serde_json::to_vec(&both).unwrap_or_default();
    blake3::hash(&json).to_hex().chars().take(32).collect()
}

impl Redactor {
    fn identity(&self) -> RedactorIdentity<'_> {
        let custom = self.custom.iter();
        let allow = self.allow.iter().flat_map(|allow| allow.patterns());
        RedactorIdentity {
            secrets: self.secrets.then(rules::identify_rules),
            pii: self.pii.iter().copied().collect(),
            patterns: custom.map(|c| (&*c.name, c.regex.as_str())).collect(),
            allow: allow.map(String::as_str).collect(),
            callbacks: self.callbacks.iter().map(ScrubCallback::name).collect(),
        }
    }
}
