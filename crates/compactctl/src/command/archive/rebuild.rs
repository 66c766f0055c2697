//! `archive rebuild`: the catalog made again from the records in the archive.
//!
//! What the catalog lacks is added, in the order in which it happened; what the archive has no record
//! of, because an earlier version or a process that was killed left it like that, is written there. A
//! catalog that is damaged is moved aside first. Leases, events and attempts are not in the archive.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use compact_runtime::manager::{read_record, write_record};
use compact_runtime::port::archive::{ArchiveStore, reachable_packs};
use compact_runtime::port::catalog::{CompactionRecord, SessionCatalog};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::GlobalArgs;
use crate::failure::{Failure, FailureCode};
use crate::progress::TerminalProgress;
use crate::report::number::format_count;

/// What was done.
#[derive(Default)]
struct RebuildReport {
    sessions: BTreeSet<String>,
    receipts: u64,
    added: u64,
    written: u64,
    unreadable: Vec<String>,
}

/// Makes the catalog again.
pub async fn run(app: &App, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let stores = app.stores();
    let archive = stores.open_archive()?;
    let (catalog, aside) = stores.open_catalog_to_rebuild().await?;
    let mut done = RebuildReport::default();
    let kept = read_records(&*archive, global, &mut done).await?;
    write_missing(&*archive, &*catalog, &kept, &mut done).await?;
    for (session, records) in group_by_session(kept) {
        add_missing(&*catalog, &session, records, &mut done).await?;
    }
    let named = reachable_packs(&*archive, catalog.referenced_packs().await?).await?;
    let packs = archive.list().await?;
    let unnamed = packs.iter().filter(|pack| !named.contains(pack)).count();
    let json = json!({
        "catalog": stores.catalog_location(),
        "sessions": done.sessions.len(),
        "receipts": done.receipts,
        "added": done.added,
        "records_written": done.written,
        "packs": packs.len(),
        "packs_unnamed": unnamed,
        "unreadable": done.unreadable,
        "moved_aside": aside,
    });
    let mut human = render_rebuild(&done, &stores.catalog_location());
    if let Some(aside) = aside {
        human.push_str(&format!("  the damaged one is now {}\n", aside.display()));
    }
    if unnamed > 0 {
        human.push_str(&super::verify::describe_unnamed(unnamed));
    }
    let code = match done.unreadable.is_empty() {
        true => 0,
        false => FailureCode::Check as u8,
    };
    Ok(CommandAnswer::new(json, human).with_code(code))
}

/// Every record that can be read.
async fn read_records(
    archive: &dyn ArchiveStore,
    global: &GlobalArgs,
    done: &mut RebuildReport,
) -> Result<Vec<CompactionRecord>, Failure> {
    let addresses = archive.list_records().await?;
    let progress = TerminalProgress::over_steps(global, addresses.len(), "reading records");
    let mut records = Vec::new();
    for address in addresses {
        match read_record(archive, &address).await {
            Ok(record) => records.push(record),
            Err(error) => done.unreadable.push(error.to_string()),
        }
        progress.step();
    }
    Ok(records)
}

/// Writes down in the archive what only the catalog knows.
async fn write_missing(
    archive: &dyn ArchiveStore,
    catalog: &dyn SessionCatalog,
    kept: &[CompactionRecord],
    done: &mut RebuildReport,
) -> Result<(), Failure> {
    let there: HashSet<_> = kept.iter().map(CompactionRecord::address).collect();
    for session in catalog.sessions().await? {
        for record in catalog.session_records(&session.session_id).await? {
            done.sessions.insert(record.session_id.clone());
            done.receipts += 1;
            if record.input_pack.is_some() && !there.contains(&record.address()) {
                write_record(archive, &record).await?;
                done.written += 1;
            }
        }
    }
    Ok(())
}

/// The sessions, the one first that began first.
fn group_by_session(mut records: Vec<CompactionRecord>) -> Vec<(String, Vec<CompactionRecord>)> {
    let time = |record: &CompactionRecord| record.created_at.clone();
    records.sort_by_key(|record| (time(record), record.summary_version));
    let mut sessions: BTreeMap<String, Vec<CompactionRecord>> = BTreeMap::new();
    for record in records {
        let session = record.session_id.clone();
        sessions.entry(session).or_default().push(record);
    }
    let mut sessions: Vec<_> = sessions.into_iter().collect();
    for (_, records) in &mut sessions {
        *records = sort_by_previous(std::mem::take(records));
    }
    sessions.sort_by_key(|(_, records)| records.first().map(time));
    sessions
}

/// The same records, each behind the one that it builds on: clocks of several machines differ.
fn sort_by_previous(mut open: Vec<CompactionRecord>) -> Vec<CompactionRecord> {
    let mut ordered: Vec<CompactionRecord> = Vec::new();
    while !open.is_empty() {
        let is_waiting = |record: &CompactionRecord| {
            let builds_on =
                |other: &CompactionRecord| record.previous.as_ref() == Some(&other.receipt_id);
            open.iter().any(builds_on)
        };
        let next = open.iter().position(|record| !is_waiting(record));
        ordered.push(open.remove(next.unwrap_or(0)));
    }
    ordered
}

/// Adds what the catalog lacks of a session. Where something is missing between two that are there,
/// all of them are recorded again in their order.
async fn add_missing(
    catalog: &dyn SessionCatalog,
    session: &str,
    records: Vec<CompactionRecord>,
    done: &mut RebuildReport,
) -> Result<(), Failure> {
    let known = catalog.session_records(session).await?;
    let known: HashSet<&str> = known.iter().map(|record| &*record.receipt_id).collect();
    let is_missing = |record: &CompactionRecord| !known.contains(&*record.receipt_id);
    let missing = records.iter().filter(|record| is_missing(record)).count() as u64;
    let first = records.iter().position(is_missing).unwrap_or(records.len());
    let later = records.get(first..).unwrap_or_default();
    for record in later.iter().filter(|record| !is_missing(record)) {
        catalog.remove_receipt(session, &record.receipt_id).await?;
    }
    for record in later {
        catalog.save_record(record).await?;
    }
    done.sessions.insert(session.to_owned());
    done.receipts += missing;
    done.added += missing;
    Ok(())
}

fn render_rebuild(done: &RebuildReport, place: &str) -> String {
    let mut out = format!(
        "{} {place}: {}, {}, {} of them new\n",
        "rebuilt".green().bold(),
        format_count(done.sessions.len() as u64, "session", "sessions"),
        format_count(done.receipts, "receipt", "receipts"),
        done.added,
    );
    if done.written > 0 {
        let written = format_count(done.written, "receipt", "receipts");
        out.push_str(&format!(
            "  {written} written down in the archive as well\n"
        ));
    }
    for message in &done.unreadable {
        out.push_str(&format!("  {message}\n"));
    }
    out
}

#[cfg(test)]
mod tests;
