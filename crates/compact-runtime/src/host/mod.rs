//! Agents that compact by themselves: what their hooks say, what is remembered of their sessions, and
//! what they are answered.
//!
//! Everything here takes values and returns values. Who starts the hook, where archives lie and how
//! an agent is told of us is left to the command; when to compact is left to the agent.

mod agent;
mod call;
mod memory;
mod record;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use call::{Call, Moment, Refusal, Transcript};
pub use memory::{MARK, Memory, UNUSED_NAMES};
pub use record::{Chars, Loss, compare, live_text, must_keep, still_known};
