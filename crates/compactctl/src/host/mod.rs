//! Hooks of agents that compact by themselves, where they touch the world: the call, the shelf on
//! which transcripts and what is remembered of them lie, the log, and the agents' settings.
//!
//! Whatever goes wrong here is a line in the log: an agent is never kept from compacting.

mod drive;
mod journal;
pub mod library;
pub mod settings;
mod shelf;

#[cfg(test)]
mod tests;

pub use drive::{Terms, answer};
pub use journal::{Journal, Level};
