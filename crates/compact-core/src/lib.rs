//! The pure engine of Compact.
//!
//! Values in, values out: no clock, no file, no network, no async, and no provider's name. Data
//! flows one way: measure → decide → plan → summarize → assemble → conform → verify → validate.
//! See `ARCHITECTURE.md` for the map and the invariants.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod assemble;
pub mod budget;
pub mod clip;
pub mod conform;
pub mod cue_list;
pub mod engine;
pub mod error;
pub mod event;
pub mod frame;
pub mod identity;
pub mod ledger;
pub mod message;
pub mod outline;
pub mod pin;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod prompt;
pub mod prune;
pub mod receipt;
pub mod redact;
pub mod reset;
pub mod restart;
pub mod summarize;
pub mod token;
pub mod transcript;
pub mod trigger;
pub mod usage;
pub mod validate;
pub mod verify;
pub mod view;
pub mod window;
pub mod wire;
