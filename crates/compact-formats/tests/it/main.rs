//! What every format promises, whatever the transcript and the view.

// Every function of this binary belongs to a test: failing loudly is its way of saying so.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod growth;
mod hostile;
mod legal;
mod promise;
mod rereading;
mod sample;
mod speaker;
mod validate;
