//! The ports: what the runtime asks of the world, as object-safe traits.
//!
//! Each port comes with a public conformance suite (`port::archive::conformance::suite` and its
//! siblings) that every adapter calls from its tests, and, where a program without storage needs
//! one, an implementation in memory that passes the same suite.

pub mod agent;
pub mod archive;
pub mod catalog;
pub mod clock;
pub mod embedder;
pub mod event;
pub mod index;
pub mod scrub;
pub mod summarizer;
pub mod transcript;
