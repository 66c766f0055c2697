//! The catalog made again from the records in the archive.
//!
//! What the catalog lacks is added, in the order in which it happened, and what it tells otherwise than the archive
//! is told again as the archive has it; what the archive has no record of, because an earlier version or a process that was killed left it like that, is written there. A
//! catalog that is damaged is moved aside first. Leases, events and attempts are not in the archive.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use compact_runtime::manager::{read_record, write_record};
use compact_runtime::port::archive::{ArchiveStore, count_unnamed_packs};
use compact_runtime::port::catalog::{CompactionRecord, SessionCatalog};

use crate::compact::Compact;
use crate::error::Error;

/// What a rebuild found and wrote.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RebuildReport {
    /// The sessions in the catalog.
    pub sessions: BTreeSet<String>,
    /// The receipts in it.
    pub receipts: u64,
    /// Those that it lacked.
    pub added: u64,
    /// Those that it told otherwise than the archive.
    pub mended: u64,
    /// Those that the archive lacked.
    pub written: u64,
    /// Why records could not be read.
    pub unreadable: Vec<String>,
    /// The packs of the archive.
    pub packs: usize,
    /// Those that no receipt names.
    pub unnamed_packs: usize,
    /// Where a damaged catalog is now.
    pub moved_aside: Option<PathBuf>,
}

/// Receives the progress of a rebuild.
pub trait RebuildProgress: Send + Sync {
    /// Is called once with the number of records to read.
    fn begin(&self, records: usize);
    /// Is called after each record.
    fn step(&self);
}

/// Nobody hears how far it is.
impl RebuildProgress for () {
    fn begin(&self, _: usize) {}
    fn step(&self) {}
}

impl Compact {
    /// Makes the catalog again from the archive of the configured stores.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let folder = tempfile::tempdir()?;
    /// let compact = compact::Compact::builder().data_directory(folder.path()).build()?;
    /// assert_eq!(compact.rebuild_catalog(&()).await?.receipts, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rebuild_catalog(
        &self,
        progress: &dyn RebuildProgress,
    ) -> Result<RebuildReport, Error> {
        let stores = self.stores().ok_or(Error::NoConfiguredStores)?;
        let archive = stores.open_archive()?;
        let (catalog, moved_aside) = stores.open_catalog_to_rebuild().await?;
        let mut done = RebuildReport {
            moved_aside,
            ..RebuildReport::default()
        };
        let kept = read_records(&*archive, progress, &mut done).await?;
        write_missing(&*archive, &*catalog, &kept, &mut done).await?;
        for (session, records) in group_by_session(kept) {
            add_missing(&*catalog, &session, records, &mut done).await?;
        }
        let named = catalog.referenced_packs().await?;
        done.packs = archive.list().await?.len();
        done.unnamed_packs = count_unnamed_packs(&*archive, named).await?;
        Ok(done)
    }
}

/// Returns every record that can be read.
async fn read_records(
    archive: &dyn ArchiveStore,
    progress: &dyn RebuildProgress,
    done: &mut RebuildReport,
) -> Result<Vec<CompactionRecord>, Error> {
    let addresses = archive.list_records().await?;
    progress.begin(addresses.len());
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
) -> Result<(), Error> {
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

/// Returns the sessions, the one first that began first.
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

/// Sorts records so that each follows the one that it builds on, since the clocks of several machines
/// differ.
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
) -> Result<(), Error> {
    let known = catalog.session_records(session).await?;
    let find_known = |record: &CompactionRecord| {
        let mut known = known.iter();
        known.find(|known| known.receipt_id == record.receipt_id)
    };
    let is_missing = |record: &&CompactionRecord| find_known(record).is_none();
    let is_wrong = |record: &CompactionRecord| {
        find_known(record).is_none_or(|known| !known.agrees_with(record))
    };
    let missing = records.iter().filter(is_missing).count() as u64;
    let wrong = records.iter().filter(|record| is_wrong(record)).count() as u64;
    let first = records.iter().position(is_wrong).unwrap_or(records.len());
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
    done.mended += wrong.saturating_sub(missing);
    Ok(())
}

#[cfg(test)]
mod tests;
