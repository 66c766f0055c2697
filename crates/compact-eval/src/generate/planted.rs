//! The answer key of a generated session: what was planted, and where.
//!
//! A fact counts as present in a text when every one of its needles occurs there.

use serde::{Deserialize, Serialize};

/// The kind of a planted fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlantedKind {
    /// What the user wants from the session.
    Goal,
    /// A rule that the user gave; void once `superseded_by` names another.
    Constraint,
    /// A sentence of the user, whatever it says.
    Statement,
    /// A choice that was made, with its reason.
    Decision,
    /// A failure that was met; `fixed_by` names what ended it.
    Error,
    /// What ended a failure.
    Fix,
    /// Work that was finished.
    Done,
    /// Work that was named and not done.
    Open,
    /// A ticket, commit, order or receipt that later turns refer to.
    Id,
    /// A file that was created or changed, or a source that was cited.
    File,
}

/// A fact that was planted in a session, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlantedFact {
    /// Its name within the session: `constraint-3`.
    pub id: String,
    /// The kind of fact.
    pub kind: PlantedKind,
    /// The fact as it was said.
    pub text: String,
    /// What a text must contain to carry the fact.
    pub needles: Vec<String>,
    /// The index of its JSONL line, or of its element of `messages`, from 0.
    pub entry: usize,
    /// How much of the session lies before it: 0 at the start, 1 at the end.
    pub depth: f64,
    /// The constraint that replaced this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The fix of this error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_by: Option<String>,
    /// Why a decision was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PlantedFact {
    /// Returns whether the text carries the fact.
    pub fn is_in(&self, text: &str) -> bool {
        self.needles.iter().all(|needle| text.contains(needle))
    }

    /// Returns false for a rule that a later one replaced.
    pub fn is_live(&self) -> bool {
        self.superseded_by.is_none()
    }
}

/// Everything planted in one session, in the order it was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerKey {
    /// How many entries the session has: JSONL lines, or elements of `messages`.
    pub entries: usize,
    /// All facts that were planted.
    pub facts: Vec<PlantedFact>,
}

impl AnswerKey {
    /// Returns the facts of one kind.
    pub fn facts_of(&self, kind: PlantedKind) -> impl Iterator<Item = &PlantedFact> {
        self.facts.iter().filter(move |fact| fact.kind == kind)
    }
}
