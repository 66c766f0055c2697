//! Agents that compact by themselves: what their hooks say, what is remembered of their sessions, and
//! what they are answered.
//!
//! Everything here takes values and returns values. Who starts the hook, where archives lie and how
//! an agent is told of us is left to the command; when to compact is left to the agent.

mod agent;
mod memory;
mod payload;
mod retention;

#[cfg(test)]
mod tests;

pub use agent::HookAgent;
pub use memory::{HookMemory, MARK_BYTES, UNUSED_NAMES};
pub use payload::{HookMoment, HookPayload, HookTranscript, PayloadError};
pub use retention::{CharCount, SummaryLoss, find_loss, live_text, must_keep, still_known};
