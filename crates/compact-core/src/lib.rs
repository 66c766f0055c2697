//! The pure engine of Compact.
//!
//! Values in, values out: no clock, no file, no network, no async, and no provider's name. Data
//! flows one way: measure → decide → plan → summarize → assemble → conform → verify → validate.
//! See `ARCHITECTURE.md` for the map and the invariants.

pub mod identity;
pub mod ledger;
pub mod message;
pub mod policy;
pub mod profile;
pub mod redact;
pub mod summarize;
pub mod token;
pub mod verify;
pub mod view;
pub mod wire;
