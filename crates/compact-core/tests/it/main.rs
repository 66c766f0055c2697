//! The promises of the engine, tested from outside: one module per promise.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing
)] // tests fail by panicking

mod identity;
mod invariants;
mod ladder;
mod room;
mod rules;
mod scene;
mod successive;
