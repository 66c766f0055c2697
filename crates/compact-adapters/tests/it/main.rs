//! Sessions on real stores and with real models, under what happens to real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice
)]

mod kill;
// The server's package is for Linux.
#[cfg(target_os = "linux")]
mod llm;
mod place;
mod sink;
