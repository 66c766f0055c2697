//! The async driver of the Compact engine, and the ports it reaches the world through.
//!
//! The engine in `compact-core` decides and computes; this crate loads, stores and reports. It
//! knows traits only: which file system, database or terminal stands behind them is the adapters'
//! affair, and every adapter proves itself with the conformance suite of its port.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod error;
pub mod host;
pub mod manager;
pub mod parallel;
pub mod port;
pub mod reading;
pub mod recall;
pub mod replay;
pub mod reset;
pub mod restart;
pub mod session;
pub mod summary_request;

pub use error::Error;
pub use manager::Manager;
pub use recall::Recall;
pub use reset::HardReset;
pub use session::Session;
