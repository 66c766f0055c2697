//! Hooks of agents that compact by themselves, where they touch the world: the call, the log, the agents'
//! settings, and what lies on the shelf of hooks as part of the archive.
//!
//! Whatever goes wrong here is a line in the log: an agent is never kept from compacting.

mod agent_view;
mod hook_call;
mod hook_events;
mod hook_log;
pub(crate) mod settings;

pub(crate) use agent_view::{CompactEvent, ViewRow};
pub(crate) use hook_call::{HookOptions, answer_call};
pub(crate) use hook_events::HookEvents;
pub(crate) use hook_log::{HookLog, LogLevel};
