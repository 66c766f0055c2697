//! Where events leave the program: the console, a callback, and the queue that keeps either from
//! holding up a compaction.
//!
//! Exporters get events that are already redacted and pass them on as they are. They add no fields,
//! read no clock and report no errors: what cannot be delivered is counted and dropped.

mod background;
mod callback;
mod console;
#[cfg(test)]
mod tests;

pub use background::Background;
pub use callback::Callback;
pub use console::{Console, Form};
