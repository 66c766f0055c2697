//! The promises of the engine, tested from outside: one module per promise.

mod invariants;
mod ladder;
mod scene;
mod successive;
