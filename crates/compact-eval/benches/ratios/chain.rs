//! A session that is compacted fifty times, each time by somebody who knows no more than its stores: what the last
//! compaction takes, against the second.

use std::sync::Arc;

use anyhow::{Result, bail};
use compact_core::message::{Conversation, Entry};
use compact_core::token::Tokens;
use compact_core::wire::WireRules;
use compact_runtime::Manager;
use compact_runtime::manager::{
    CompactionRequest, ENTRIES_FORMAT, RequestOutcome, serialize_entries,
};
use compact_runtime::port::archive::{ArchiveStore, MemoryArchive};
use compact_runtime::port::catalog::MemoryCatalog;
use tokio::runtime::Runtime;

use crate::ROUNDS;
use crate::subject::{BenchSession, WINDOW, manager, runtime};
use crate::time::{Timing, timed};

const COMPACTIONS: usize = 50;

/// What each view may cost.
const VIEW: Tokens = Tokens(12_000);

pub(crate) fn last_over_second(subject: &BenchSession) -> Result<Timing> {
    let runtime = runtime()?;
    let mut timing = Timing::default();
    for _ in 0..ROUNDS {
        let times = compact_chain(subject, &runtime)?;
        let (Some(second), Some(last)) = (times.get(1), times.last()) else {
            bail!("no chain");
        };
        timing.add(*last, *second);
    }
    Ok(timing)
}

/// What each compaction takes, in seconds. Each history is the view before and as many new entries as the
/// others have.
fn compact_chain(subject: &BenchSession, runtime: &Runtime) -> Result<Vec<f64>> {
    let archive: Arc<dyn ArchiveStore> = Arc::new(MemoryArchive::default());
    let catalog = Arc::new(MemoryCatalog::default());
    let entries = &subject.conversation.entries;
    let mut history: Vec<Entry> = Vec::new();
    let mut times = Vec::new();
    for new in entries
        .chunks(entries.len() / COMPACTIONS)
        .take(COMPACTIONS)
    {
        history.extend_from_slice(new);
        let manager = manager(WINDOW, Some(Arc::clone(&archive)))?.with_catalog(catalog.clone());
        let (view, seconds) = compact_once(&manager, runtime, history)?;
        history = view;
        times.push(seconds);
    }
    Ok(times)
}

fn compact_once(
    manager: &Manager,
    runtime: &Runtime,
    entries: Vec<Entry>,
) -> Result<(Vec<Entry>, f64)> {
    let conversation = Conversation {
        entries,
        ..Conversation::default()
    };
    let bytes = serialize_entries(&conversation.entries);
    let request = CompactionRequest::new(&conversation, &WireRules::LENIENT, ENTRIES_FORMAT, bytes)
        .with_session("chain")
        .with_budget(VIEW);
    let (outcome, seconds) = timed(|| Ok(runtime.block_on(manager.compact(&request))?))?;
    let RequestOutcome::Done(made) = outcome else {
        bail!("a history was within its budget: nothing to measure");
    };
    Ok((made.compaction.view.shown_entries(&conversation), seconds))
}
