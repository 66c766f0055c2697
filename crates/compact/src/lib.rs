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
//! use compact::recall::SecretDisplay;
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
//! let entry = compact.expand(&found[0].pointer, SecretDisplay::Redacted).await?;
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
pub mod chart;
mod compact;
pub mod config;
mod error;
mod events;
mod history;
mod indexing;
mod rebuild;
mod redaction;
mod reset_session;
mod retention;
mod session;
mod session_action;
mod session_compaction;
mod session_files;
mod session_list;
mod session_reading;
mod session_table;
mod spent;
mod storage;
mod transfer;

pub use builder::CompactBuilder;
pub use compact::Compact;
pub use error::{Error, ErrorKind};
pub use history::History;
pub use session::{Prompt, Session, SummaryText};
pub use session_table::{SessionTable, TableLimits};

/// Agents that are run: their programs, their runs, and checkpoints between their sessions.
pub mod agent {
    pub use compact_adapters::agent::*;
    pub use compact_adapters::run::*;
    pub use compact_core::restart::*;
    pub use compact_runtime::port::agent::AgentError;
    pub use compact_runtime::restart::*;
}

/// Time: the clock that everything is dated by.
pub mod clock {
    pub use compact_runtime::port::clock::*;
}

/// Events: what they say, and who hears of them.
pub mod event {
    pub use crate::events::flush_exporters;
    pub use compact_adapters::exporter::*;
    pub use compact_core::event::*;
    pub use compact_runtime::port::event::{
        EventSink, FanoutSink, RedactingSink, SilentSink, call_within,
    };
    pub use compact_runtime::recall::event::*;
}

/// Transcripts: everyone's JSON, to and from a conversation.
pub mod format {
    pub use compact_formats::*;
}

/// Hooks: agents that compact by themselves, and what is archived and remembered of their sessions.
pub mod hook {
    pub use crate::session_files::{
        HOOKS_FOLDER, StoreWithFiles, count_by_origin, has_session_files,
    };
    pub use compact_adapters::hook_store::*;
    pub use compact_adapters::leftover;
    pub use compact_adapters::private;
    pub use compact_runtime::host::*;
}

/// Whole transcripts: compacted, planned, verified and remembered as doors do it.
pub mod manager {
    pub use compact_core::engine::{Compaction, CompactionOutcome};
    pub use compact_core::error::{CompactError, Hinted};
    pub use compact_runtime::manager::*;
    pub use compact_runtime::{Error as RuntimeError, Manager};
}

/// Messages: a conversation as the engine sees it.
pub mod message {
    pub use compact_core::frame;
    pub use compact_core::identity::{Chain, EntryHash};
    pub use compact_core::ledger::Ledger;
    pub use compact_core::message::*;
    pub use compact_core::outline::{Outline, UnitHealth};
    pub use compact_core::pin::{PinRules, PinState, is_nameable, naming_hashes};
    pub use compact_core::view::*;
    pub use compact_core::wire::WireRules;
}

/// Decisions of the user: when and how a conversation is compacted.
pub mod policy {
    pub use compact_core::policy::*;
    pub use compact_core::profile::Profile;
    pub use compact_core::summarize::Style;
    pub use compact_core::trigger::*;
}

/// Receipts: what a compaction kept, and what it proves.
pub mod receipt {
    pub use compact_core::receipt::*;
    pub use compact_core::verify::Retention;
}

/// Recall: everything archived, found by words and brought back by pointers.
pub mod recall {
    pub use compact_runtime::Recall;
    pub use compact_runtime::recall::{
        AnswerStyle, EntryKey, EntryPartner, EntryPointer, ExcerptWindow, ExpandQuery, Expansion,
        HitOrder, HitPartner, IndexUpdate, LinePattern, OutdatedSession, QUOTE_NOTE, RecallQuery,
        RestoredEntry, SearchAnswer, SearchHit, SecretDisplay, SelectedText, ShownEntry,
        ShownPartner, TextPart, fence_text,
    };
}

/// Redaction: what is taken out of text before it crosses a boundary.
pub mod redact {
    pub use compact_core::redact::*;
}

/// Replays: what a policy would have done to a recorded session.
pub mod replay {
    pub use compact_runtime::parallel::map_on_all_cores;
    pub use compact_runtime::replay::play::*;
    pub use compact_runtime::replay::*;
}

/// Hard resets: a history that goes on from its summary alone, and the files that this leaves.
pub mod reset {
    pub use crate::reset_session::{
        ResetAnswer, ResetCommand, ResetOutcome, ResetSession, ResetStatus,
    };
    pub use compact_adapters::transcript::TranscriptFiles;
    pub use compact_core::reset::DEAD;
    pub use compact_runtime::port::transcript::{Artifact, TranscriptStore};
    pub use compact_runtime::reset::*;
}

/// Sessions on record: a list of all, each call by call, and what a compaction was given and made.
pub mod overview {
    pub use crate::session_action::{BRANCH_ORIGIN, CarriedMemory, SessionSource};
    pub use crate::session_files::SessionOrigin;
    pub use crate::session_list::{
        ChangeMark, CountedRequest, ListedSession, SessionEvent, SessionList, SessionListQuery,
        compaction_numbers,
    };
    pub use compact_core::summarize::{RuleStanding, rule_standings};
    pub use compact_runtime::manager::FAILED_EVENT;
    pub use compact_runtime::reading::{
        AnchorKind, CallPoint, CalledTool, CompactionReading, EntrySubject, LeftOutName, NameLoss,
        SessionCurve, ViewEntry,
    };
}

/// Money: what requests cost, what compactions saved of it or lost, and what caches missed.
pub mod spending {
    pub use crate::spent::{
        CacheLoss, ColdResume, CompactionCost, ProjectWeek, SpendingQuery, SpendingReport,
        SpendingSum,
    };
    pub use compact_core::usage::Usage;
}

/// Stores: where originals, receipts and their words are kept.
pub mod store {
    pub use crate::rebuild::{RebuildProgress, RebuildReport};
    pub use crate::retention::{PruneLimits, PruneSelection};
    pub use crate::storage::StorePair;
    pub use crate::transfer::CopiedStore;
    pub use compact_adapters::archive::{Exclusion, ObjectArchive};
    pub use compact_adapters::catalog::ObjectCatalog;
    pub use compact_adapters::postgres;
    pub use compact_adapters::priority::yield_to_others;
    pub use compact_adapters::store::{IndexTurn, StoreError, Stores};
    pub use compact_adapters::waiting::with_waiting;
    pub use compact_runtime::port::archive::{
        ArchiveError, ArchiveStore, MemoryArchive, PackId, PackInfo, count_unnamed_packs,
    };
    pub use compact_runtime::port::catalog::{
        Attempt, CatalogError, CompactionRecord, InputRelation, Lease, MIN_PREFIX, MemoryCatalog,
        NamedRecord, ReceiptTerms, SessionCatalog, SessionInfo, SessionRenames, StoredReceipt,
        copy_catalog, find_named_record, find_pointed_record,
    };
    pub use compact_runtime::port::index::{
        EntryStream, IndexAddition, IndexError, IndexLookup, LookupResult, MemoryIndex,
        RecallCandidate, RecallIndex,
    };
}

/// Models that write summaries.
pub mod summarizer {
    pub use compact_core::prompt::SummarizerAnswer;
    pub use compact_runtime::port::embedder::Embedder;
    pub use compact_runtime::port::summarizer::*;
}

/// Tokens: how they are counted, and how many a model takes.
pub mod token {
    pub use compact_adapters::estimator::{self, *};
    pub use compact_core::token::*;
    pub use compact_core::window::*;
}
