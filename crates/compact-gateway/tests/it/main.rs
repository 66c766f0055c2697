//! The gateway between a client and a scripted upstream, all in one process on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod augment;
mod compaction;
mod failure;
mod hostile;
mod lookup;
mod nudge;
mod overflow;
mod passing;
mod scene;
mod session;
