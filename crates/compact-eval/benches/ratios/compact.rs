//! From the bytes of a file to the bytes of its view, and the ledger alone.

use anyhow::{Result, bail};
use bytes::Bytes;
use compact_core::ledger::Ledger;
use compact_runtime::manager::{Compacted, Manager, Request};
use tokio::runtime::Runtime;

use crate::subject::{Subject, WINDOW, manager, parse, runtime};
use crate::time::{Timing, in_turns};

pub(crate) fn ledger(subject: &Subject) -> Result<Timing> {
    let draw = |()| Ok(Ledger::of(&subject.conversation.entries, 0));
    in_turns(|| subject.count(), || (), draw)
}

pub(crate) fn file_to_view(subject: &Subject) -> Result<Timing> {
    let runtime = runtime()?;
    let fresh = || manager(WINDOW, None);
    in_turns(
        || subject.count(),
        fresh,
        |manager| view_of(&runtime, &manager?, &subject.file),
    )
}

/// Parses, compacts and emits.
pub(crate) fn view_of(runtime: &Runtime, manager: &Manager, file: &str) -> Result<Vec<u8>> {
    let parsed = parse(file)?;
    let request = Request {
        conversation: &parsed.conversation,
        rules: parsed.document.rules(),
        format: parsed.document.format().name(),
        original: Bytes::new(),
        session_id: None,
        budget: None,
        note: None,
    };
    match runtime.block_on(manager.compact(&request))? {
        Compacted::Done(commit) => Ok(parsed
            .document
            .emit(&parsed.conversation, &commit.compaction.view)?),
        Compacted::Unchanged { .. } => {
            bail!("the session was within its budget: nothing to measure")
        }
    }
}
