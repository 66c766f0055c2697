//! Sessions on real stores and with real models, under what happens to real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice
)]

mod cluster;
// The packages of the collector and of the server are for Linux.
#[cfg(target_os = "linux")]
#[cfg(feature = "otlp")]
mod collector;
mod kill;
#[cfg(target_os = "linux")]
mod llm;
mod place;
mod project;
mod secret;
mod sink;
