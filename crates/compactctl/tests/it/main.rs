//! `compactctl` as people and scripts run it: the real binary, in a place of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice
)]

#[cfg(unix)]
mod append;
mod archive;
mod chain;
mod compact;
mod convert;
mod diff;
mod doctor;
mod earlier;
#[cfg(feature = "eval")]
mod eval;
mod forge;
#[cfg(unix)]
mod hook;
#[cfg(unix)]
mod hook_settings;
mod hook_view;
mod hostile;
mod inspect;
#[cfg(target_os = "linux")]
mod interrupt;
#[cfg(unix)]
mod kill;
#[cfg(feature = "gateway")]
mod launch;
mod mcp;
mod place;
mod rebuild;
mod recall;
mod replay;
mod reset;
#[cfg(unix)]
mod run;
#[cfg(feature = "gateway")]
mod serve;
mod settings;
mod statusline;
mod storage;
mod telemetry;
mod top;
#[cfg(unix)]
mod trust;
#[cfg(unix)]
mod tutorial;
#[cfg(target_os = "linux")]
mod unwritable;
mod validate;
mod verify;
