//! What a provider accepts, as a value: core obeys it without knowing who asked.
//!
//! A format hands its [`WireRules`] along with the conversation. A new provider is a new value, not
//! a new branch in the engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a summary may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One assistant message between the first request and the recent part.
    AssistantMessage,
    /// One user message there.
    UserMessage,
    /// The last section of the system prompt, in `<summary>…</summary>`.
    SystemSuffix,
    /// A pseudo tool call and its result.
    ToolPair,
    /// The first prompt of a new session.
    NewSessionPrompt,
}

/// What becomes of reasoning once a byte before it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningRule {
    /// Nothing is bound: it may stay.
    Keep,
    /// Bound to the prefix: everything after the first edit goes.
    StripAfterEdit,
    /// As `StripAfterEdit`, except in the tool loop that the model is in: that one must be given
    /// back as it was said.
    StripOutsideLoop,
}

/// Where instructions may stand after the conversation has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionRule {
    /// Anywhere.
    Anywhere,
    /// Right after a user's message and right before the model's, or last.
    AfterUser,
}

/// The rules of one wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireRules {
    /// The wire's name, for notes and errors.
    pub name: &'static str,
    /// Placements that are legal, the preferred one first.
    pub placements: &'static [Placement],
    /// Reasoning after an edit.
    pub reasoning: ReasoningRule,
    /// User and assistant must alternate.
    pub alternation: bool,
    /// The history must open with a user message.
    pub opens_with_user: bool,
    /// The model's own words must not come last, unless they did before.
    pub ends_with_user: bool,
    /// Instructions within the history.
    pub instructions: InstructionRule,
}

impl WireRules {
    /// A wire that allows everything; tests and unknown formats use it.
    pub const LENIENT: WireRules = WireRules {
        name: "generic",
        placements: &[
            Placement::AssistantMessage,
            Placement::UserMessage,
            Placement::SystemSuffix,
            Placement::ToolPair,
            Placement::NewSessionPrompt,
        ],
        reasoning: ReasoningRule::Keep,
        alternation: false,
        opens_with_user: false,
        ends_with_user: false,
        instructions: InstructionRule::Anywhere,
    };

    /// The wanted placement when the wire allows it, else the wire's preferred one.
    pub(crate) fn allowed_placement(&self, wanted: Placement) -> Placement {
        if self.placements.contains(&wanted) {
            return wanted;
        }
        self.placements
            .first()
            .copied()
            .unwrap_or(Placement::UserMessage)
    }
}
