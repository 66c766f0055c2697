//! The service as programs call it: who is let in, what a page says, and that text stays text.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice
)]

mod access;
mod page;
mod scene;
