//! A session before it has a format: who says what, which tools answer what, and what was planted.
//!
//! The arcs write scripts; the formats turn a script into bytes and tell where each part went.

use std::collections::HashMap;

use serde_json::Value;

use super::planted::{AnswerKey, PlantedFact, PlantedKind};

/// The session so far.
#[derive(Debug, Default)]
pub(crate) struct SessionScript {
    /// What happened, in order.
    pub(crate) steps: Vec<ScriptStep>,
    /// Bytes of all texts so far: what a size is measured by while writing.
    pub(crate) size: usize,
    facts: Vec<(ScriptPosition, PlantedFact)>,
}

/// One message, or an assistant's message together with the answers of its tools.
#[derive(Debug)]
pub(crate) enum ScriptStep {
    User(String),
    Assistant {
        thinking: Option<String>,
        text: Option<String>,
        calls: Vec<ScriptCall>,
    },
}

/// A tool call with its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptCall {
    pub(crate) name: &'static str,
    pub(crate) input: Value,
    pub(crate) output: String,
    pub(crate) failed: bool,
    /// What a client keeps beside the answer, in its own shape.
    pub(crate) detail: Value,
}

/// A place in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScriptPosition {
    pub(crate) step: usize,
    pub(crate) part: StepPart,
}

/// A part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StepPart {
    Said,
    Call(usize),
    Result(usize),
}

/// A script in the bytes of a format.
#[derive(Debug, Default)]
pub(crate) struct WrittenScript {
    pub(crate) text: String,
    pub(crate) entries: usize,
    /// For each place its entry, and the byte where that begins.
    pub(crate) places: HashMap<ScriptPosition, (usize, usize)>,
}

impl SessionScript {
    /// Adds a message of the user.
    pub(crate) fn add_user(&mut self, text: String) -> ScriptPosition {
        self.push(text.len(), ScriptStep::User(text))
    }

    /// Adds a reply of the model without tool calls.
    pub(crate) fn add_reply(&mut self, text: String) -> ScriptPosition {
        self.add_assistant(None, Some(text), Vec::new())
    }

    /// Adds a reply of the model with tool calls and their results.
    pub(crate) fn add_assistant(
        &mut self,
        thinking: Option<String>,
        text: Option<String>,
        calls: Vec<ScriptCall>,
    ) -> ScriptPosition {
        let said = thinking.as_ref().map_or(0, String::len) + text.as_ref().map_or(0, String::len);
        let called: usize = calls
            .iter()
            .map(|call| call.output.len() + call.input.to_string().len())
            .sum();
        self.push(
            said + called,
            ScriptStep::Assistant {
                thinking,
                text,
                calls,
            },
        )
    }

    fn push(&mut self, size: usize, step: ScriptStep) -> ScriptPosition {
        self.size += size;
        self.steps.push(step);
        ScriptPosition {
            step: self.steps.len() - 1,
            part: StepPart::Said,
        }
    }

    /// Records a fact that stands at a place; answers its id.
    pub(crate) fn plant(
        &mut self,
        at: ScriptPosition,
        kind: PlantedKind,
        text: &str,
        needles: &[&str],
    ) -> String {
        let number = self.facts.iter().filter(|(_, f)| f.kind == kind).count() + 1;
        let name = format!("{kind:?}").to_lowercase();
        let fact = PlantedFact {
            id: format!("{name}-{number}"),
            kind,
            text: text.to_owned(),
            needles: needles.iter().map(|n| (*n).to_owned()).collect(),
            entry: 0,
            depth: 0.0,
            superseded_by: None,
            fixed_by: None,
            reason: None,
        };
        let id = fact.id.clone();
        self.facts.push((at, fact));
        id
    }

    /// Completes a fact that was planted before.
    pub(crate) fn amend(&mut self, id: &str, change: impl FnOnce(&mut PlantedFact)) {
        if let Some((_, fact)) = self.facts.iter_mut().rev().find(|(_, f)| f.id == id) {
            change(fact);
        }
    }

    /// Returns the answer key, once the script has been written.
    pub(crate) fn answer_key(&self, written: &WrittenScript) -> AnswerKey {
        let facts = self.facts.iter().filter_map(|(spot, fact)| {
            let (entry, byte) = *written.places.get(spot)?;
            let depth = (byte * 1000 / written.text.len().max(1)) as f64 / 1000.0;
            Some(PlantedFact {
                entry,
                depth,
                ..fact.clone()
            })
        });
        AnswerKey {
            entries: written.entries,
            facts: facts.collect(),
        }
    }
}

impl ScriptPosition {
    /// Returns the answer of a call of the same step.
    pub(crate) fn at_result(self, call: usize) -> ScriptPosition {
        ScriptPosition {
            part: StepPart::Result(call),
            ..self
        }
    }

    /// Returns the message before this one.
    pub(crate) fn at_previous(self) -> ScriptPosition {
        ScriptPosition {
            step: self.step.saturating_sub(1),
            part: StepPart::Call(0),
        }
    }

    /// Returns a call of the same step.
    pub(crate) fn at_call(self, call: usize) -> ScriptPosition {
        ScriptPosition {
            part: StepPart::Call(call),
            ..self
        }
    }
}
