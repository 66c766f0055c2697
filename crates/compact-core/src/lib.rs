//! The pure engine of Compact.
//!
//! Values in, values out: no clock, no file, no network, no async, and no provider's name. Data
//! flows one way: measure → decide → plan → summarize → assemble → conform → verify → validate.
//! See `ARCHITECTURE.md` for the map and the invariants.
//!
//! This is the workspace's inner crate: what it makes public is for its siblings and may change with any
//! version. Programs add `compact-context` (library `compact`), which re-exports what users meet. Steps of
//! the pipeline are private; [`engine`] runs them and hands on what others need of them.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod assemble;
mod budget;
mod clip;
mod conform;
pub mod cue_list;
pub mod engine;
pub mod error;
pub mod event;
pub mod frame;
pub mod halves;
pub mod identity;
pub mod ledger;
pub mod message;
pub mod outline;
pub mod pin;
mod plan;
pub mod policy;
pub mod profile;
pub mod prompt;
mod prune;
pub mod receipt;
pub mod redact;
mod reply;
pub mod reset;
pub mod restart;
pub mod speech;
pub mod summarize;
pub mod token;
mod transcript;
pub mod trigger;
pub mod usage;
mod validate;
pub mod verify;
pub mod view;
pub mod window;
pub mod wire;
