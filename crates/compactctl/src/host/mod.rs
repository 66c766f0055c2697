//! Hooks of agents that compact by themselves, where they touch the world: the call, the log, the agents'
//! settings, and what lies on the shelf of hooks as part of the archive.
//!
//! Whatever goes wrong here is a line in the log: an agent is never kept from compacting.

mod drive;
mod journal;
pub mod library;
pub mod settings;

pub use drive::{Terms, answer};
pub use journal::{Journal, Level};
