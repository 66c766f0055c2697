//! Keeps a long-running LLM agent inside its context window without losing what matters.
//!
//! An agent hands over its whole history before each call to its model and sends what comes back: the
//! history itself while there is room, and a smaller *view* of it once there is not. The original is
//! archived first, so that everything that a view leaves out can be found, read and restored again.
//!
//! ```
//! # use serde_json::{Value, json};
//! # fn call_model(messages: &[Value]) -> (Value, Value) {
//! #     let message = json!({"role": "assistant", "content": "Step done. ".repeat(100)});
//! #     (message, json!({"prompt_tokens": messages.len() * 250, "completion_tokens": 250}))
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), compact::Error> {
//! use compact::Compact;
//!
//! let compact = Compact::builder().in_memory().window(8_000).build()?;
//! let mut session = compact.session("my-agent");
//! let mut messages = vec![json!({"role": "user", "content": "Port the parser to Rust, step by step."})];
//! let mut receipts = 0;
//! for step in 1..60 {
//!     let prompt = session.preflight(&messages).await?; // what to send: compacted when it must be
//!     receipts += usize::from(prompt.receipt().is_some());
//!     let (answer, usage) = call_model(&prompt.messages()?);
//!     session.observe(Some(&usage));
//!     messages.push(answer); // your history stays whole
//!     messages.push(json!({"role": "user", "content": format!("Go on with step {step}.")}));
//! }
//! assert!(receipts > 0);
//! let found = compact.recall("port the parser").await?; // everything archived, by words
//! let entry = compact.expand(&found[0].pointer).await?;
//! assert!(entry.text().contains("Port the parser to Rust"));
//! # Ok(())
//! # }
//! ```
//!
//! [`Compact::builder`] says where originals go, how tokens are counted, who writes summaries and who
//! hears of it. [`Session`] is one conversation. [`Error`] is everything that can go wrong, with a
//! [kind](Error::kind) to branch on and a [hint](Error::hint) to show. The other modules hold what these
//! take and return, by topic. Calls need a Tokio runtime with timers.

mod builder;
mod compact;
pub mod config;
mod error;
mod events;
mod history;
mod redaction;
mod session;
mod storage;

pub use builder::CompactBuilder;
pub use compact::Compact;
pub use error::{Error, ErrorKind};
pub use history::History;
pub use session::{Prompt, Session};

/// Events: what they say, and who hears of them.
pub mod event {
    pub use crate::events::flush_collectors;
    pub use compact_core::event::*;
    pub use compact_runtime::port::event::{
        EventSink, FanoutSink, RedactingSink, SilentSink, redact_event,
    };
}

/// Transcripts: everyone's JSON, to and from a conversation.
pub mod format {
    pub use compact_formats::*;
}

/// Messages: a conversation as the engine sees it.
pub mod message {
    pub use compact_core::identity::{Chain, EntryHash};
    pub use compact_core::message::*;
    pub use compact_core::view::{View, ViewItem};
}

/// Decisions of the user: when and how a conversation is compacted.
pub mod policy {
    pub use compact_core::policy::*;
    pub use compact_core::profile::Profile;
}

/// Stores: where originals, receipts and their words are kept.
pub mod store {
    pub use crate::storage::StorePair;
    pub use compact_runtime::port::archive::{
        ArchiveError, ArchiveStore, MemoryArchive, PackId, PackInfo, reachable_packs,
    };
    pub use compact_runtime::port::catalog::{
        Attempt, CatalogError, CompactionRecord, InputRelation, Lease, MemoryCatalog,
        SessionCatalog, SessionInfo, copy_catalog,
    };
    pub use compact_runtime::port::index::{
        IndexAddition, IndexError, IndexLookup, LookupResult, MemoryIndex, RecallIndex,
    };
}

/// Models that write summaries.
pub mod summarizer {
    pub use compact_core::prompt::SummarizerAnswer;
    pub use compact_runtime::port::summarizer::*;
}

/// Tokens: how they are counted, and how many a model takes.
pub mod token {
    pub use compact_core::token::*;
    pub use compact_core::window::*;
}
