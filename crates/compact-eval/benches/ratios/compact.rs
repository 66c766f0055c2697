//! From the bytes of a file to the bytes of its view, and the ledger alone.

use anyhow::{Result, bail};
use bytes::Bytes;
use compact_core::engine::CompactionOutcome;
use compact_core::ledger::Ledger;
use compact_core::token::Tokens;
use compact_formats::ParsedTranscript;
use compact_runtime::manager::{CompactionRequest, Manager, RequestOutcome};
use tokio::runtime::Runtime;

use crate::subject::{BenchSession, WINDOW, manager, parse, runtime};
use crate::time::{Timing, in_turns, timed};

pub(crate) fn ledger(subject: &BenchSession) -> Result<Timing> {
    let draw = |()| Ok(Ledger::from_entries(&subject.conversation.entries, 0));
    in_turns(|| subject.count(), || (), draw)
}

/// Measures a budget of a twentieth of the session, whatever the default becomes.
pub(crate) fn file_to_fixed_view(subject: &BenchSession) -> Result<Timing> {
    file_to_view(subject, Some(Tokens(subject.tokens / 20)))
}

/// Measures a budget of a fifth of the session.
pub(crate) fn file_to_fifth(subject: &BenchSession) -> Result<Timing> {
    file_to_view(subject, Some(Tokens(subject.tokens / 5)))
}

/// Measures what users run: no budget is named.
pub(crate) fn file_to_default_view(subject: &BenchSession) -> Result<Timing> {
    file_to_view(subject, None)
}

fn file_to_view(subject: &BenchSession, budget: Option<Tokens>) -> Result<Timing> {
    let runtime = runtime()?;
    let fresh = || manager(WINDOW, None);
    in_turns(
        || subject.count(),
        fresh,
        |manager| view_of(&runtime, &manager?, subject.file.clone(), budget),
    )
}

/// Parses, compacts and emits.
pub(crate) fn view_of(
    runtime: &Runtime,
    manager: &Manager,
    file: Bytes,
    budget: Option<Tokens>,
) -> Result<Vec<u8>> {
    let parsed = parse(file)?;
    let request = request(&parsed).with_budget(budget);
    let RequestOutcome::Done(commit) = runtime.block_on(manager.compact(&request))? else {
        bail!("the session was within its budget: nothing to measure");
    };
    Ok(parsed
        .document
        .emit(&parsed.conversation, &commit.compaction.view)?)
}

/// Where the time of [`file_to_default_view`] goes, in seconds; nothing is compared.
pub(crate) fn stages(subject: &BenchSession) -> Result<Vec<(&'static str, f64)>> {
    let (runtime, manager) = (runtime()?, manager(WINDOW, None)?);
    let (parsed, parsing) = timed(|| parse(subject.file.clone()))?;
    let request = request(&parsed);
    let (mut job, measuring) = timed(|| Ok(runtime.block_on(manager.measure(&request))?))?;
    let (outcome, compacting) = timed(|| Ok(job.make_view()?))?;
    let CompactionOutcome::Compacted(made) = outcome else {
        bail!("the session was within its budget: nothing to measure");
    };
    let (_, emitting) = timed(|| Ok(parsed.document.emit(&parsed.conversation, &made.view)?))?;
    Ok(vec![
        ("parse", parsing),
        ("measure (hash, count, ledger)", measuring),
        ("compact (plan … validate)", compacting),
        ("emit", emitting),
    ])
}

fn request(parsed: &ParsedTranscript) -> CompactionRequest<'_> {
    CompactionRequest::from_transcript(parsed, Bytes::new())
}
