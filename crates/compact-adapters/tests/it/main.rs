//! Sessions on real stores, under what happens to real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice
)]

mod kill;
mod place;
mod sink;
