//! From one store to another: everything that the other one lacks.
//!
//! What comes from elsewhere is somebody's word, and nothing that is on record changes by it. A name gives
//! what it gave before, and more only where what comes goes on from that, entry by entry; a receipt keeps
//! the record that it has. A session that would be taken for another one, or for a receipt, comes under a
//! name of its own. Packs are checked by the archives that they pass through.

use std::collections::BTreeSet;

use compact_runtime::manager::write_record;
use compact_runtime::port::archive::{ArchiveError, CopiedPacks, PackId, copy_packs};
use compact_runtime::port::catalog::{
    CatalogError, CompactionRecord, CopiedRecords, MIN_PREFIX, SessionRenames, copy_catalog,
    find_missing_records,
};

use crate::compact::Compact;
use crate::error::Error;
use crate::storage::StorePair;

/// How many characters of a receipt tell a session from others of its name; more where those do not do.
const MARKS: [usize; 3] = [8, 16, 64];

/// How many characters of a receipt a pointer shows.
const POINTER_PREFIX: usize = 12;

/// What was copied from one store to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedStore {
    /// The packs.
    pub packs: CopiedPacks,
    /// The records.
    pub records: CopiedRecords,
    /// The sessions that got another name, since theirs means something else there.
    pub renames: SessionRenames,
}

/// Whose word the records of a store are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreOwner {
    /// This program's own.
    Own,
    /// Anybody's.
    Foreign,
}

impl Compact {
    /// Copies to `other` what it lacks, as a backup or to move.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// compact.session("runs").compact(&messages, None).await?;
    /// let backup = compact::store::StorePair::in_memory();
    /// assert_eq!(compact.export_store(&backup).await?.records.records, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export_store(&self, other: &StorePair) -> Result<CopiedStore, Error> {
        let own = self.store_as_is()?;
        self.copy_store(&own, other, StoreOwner::Own).await
    }

    /// Copies from `other` what this store lacks. What names and receipts of this store give does not
    /// change, whatever the other one says.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// let other = compact::store::StorePair::in_memory();
    /// assert_eq!(compact.import_store(&other).await?.packs.packs, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn import_store(&self, other: &StorePair) -> Result<CopiedStore, Error> {
        let own = self.store_to_write()?;
        self.copy_store(other, &own, StoreOwner::Foreign).await
    }

    /// Copies packs first and records last, so that none ever names a pack that is not there.
    async fn copy_store(
        &self,
        from: &StorePair,
        to: &StorePair,
        owner: StoreOwner,
    ) -> Result<CopiedStore, Error> {
        let transfer = StoreTransfer {
            compact: self,
            from,
            to,
            owner,
        };
        let renames = transfer.find_renames().await?;
        let packs = copy_packs(&*from.archive, &*to.archive).await?;
        transfer.write_records(&renames).await?;
        let records = copy_catalog(&*from.catalog, &*to.catalog, &renames).await?;
        Ok(CopiedStore {
            packs,
            records,
            renames,
        })
    }
}

/// One store on its way into another.
struct StoreTransfer<'a> {
    compact: &'a Compact,
    from: &'a StorePair,
    to: &'a StorePair,
    owner: StoreOwner,
}

impl StoreTransfer<'_> {
    /// Decides what each session is called in the other store, and which receipts stay away: those that name packs
    /// which neither store has.
    async fn find_renames(&self) -> Result<SessionRenames, Error> {
        let mut renames = SessionRenames::default();
        let mut packs: BTreeSet<PackId> = self.from.archive.list().await?.into_iter().collect();
        packs.extend(self.to.archive.list().await?);
        for session in self.from.catalog.sessions().await? {
            let id = session.session_id;
            let all = self.from.catalog.session_records(&id).await?;
            let is_whole = |r: &CompactionRecord| r.packs().all(|pack| packs.contains(&pack));
            let (coming, lost): (Vec<_>, Vec<_>) = all.into_iter().partition(is_whole);
            for record in &lost {
                renames.leave_receipt_out(&record.receipt_id);
            }
            if coming.is_empty() && !lost.is_empty() {
                renames.leave_out(&id);
                continue;
            }
            for record in &coming {
                self.check_receipt(record).await?;
            }
            let known = self.to.catalog.session_records(&id).await?;
            let is_complete = self.owner == StoreOwner::Foreign
                && !known.is_empty()
                && find_unknown(&coming, &known).is_none();
            match is_complete {
                true => renames.leave_out(&id),
                false => renames.rename(&id, self.choose_name(&id, &coming).await?),
            }
        }
        Ok(renames)
    }

    /// Refuses a receipt whose short form is that of another one: pointers to that would lead nowhere.
    async fn check_receipt(&self, record: &CompactionRecord) -> Result<(), Error> {
        let id = &record.receipt_id;
        let short: String = id.chars().take(POINTER_PREFIX).collect();
        let clash = match self.to.catalog.find_record(&short).await {
            Ok(found) => found.is_some_and(|found| found.receipt_id != *id),
            Err(CatalogError::Ambiguous { .. }) => {
                let known = self.to.catalog.find_record(id).await?;
                known.is_none_or(|known| known.receipt_id != *id)
            }
            Err(error) => return Err(error.into()),
        };
        match clash {
            true => Err(clash_error(id).into()),
            false => Ok(()),
        }
    }

    /// Returns the name of a session there: its own, or one with the mark of its first receipt that is
    /// new there.
    async fn choose_name(&self, id: &str, coming: &[CompactionRecord]) -> Result<String, Error> {
        let known = self.to.catalog.session_records(id).await?;
        if !self.is_called_like_a_receipt(id).await? && self.may_be_called(&known, coming).await? {
            return Ok(id.to_owned());
        }
        let marked = find_unknown(coming, &known).or(coming.first());
        let receipt = marked.map_or("", |record| &*record.receipt_id);
        for length in MARKS {
            let mark: String = receipt.chars().take(length).collect();
            let name = format!("{id}@{mark}");
            let known = self.to.catalog.session_records(&name).await?;
            if self.may_be_called(&known, coming).await? {
                return Ok(name);
            }
        }
        Err(clash_error(receipt).into())
    }

    /// Returns true for a name that is the beginning of a receipt's id in either store.
    async fn is_called_like_a_receipt(&self, name: &str) -> Result<bool, Error> {
        if self.owner == StoreOwner::Own || name.chars().count() < MIN_PREFIX {
            return Ok(false);
        }
        for store in [self.to, self.from] {
            match store.catalog.find_record(name).await {
                Ok(None) => {}
                Ok(Some(_)) | Err(CatalogError::Ambiguous { .. }) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// Returns whether a session may be called like one of which these records are known.
    async fn may_be_called(
        &self,
        known: &[CompactionRecord],
        coming: &[CompactionRecord],
    ) -> Result<bool, Error> {
        let Some(last_known) = known.last() else {
            return Ok(true);
        };
        let Some(last) = coming
            .last()
            .filter(|_| find_unknown(coming, known).is_some())
        else {
            return Ok(true);
        };
        if self.owner == StoreOwner::Own {
            return Ok(coming.iter().any(|record| is_among(record, known)));
        }
        Ok(goes_on_from(coming, known) && self.holds_all_of(last, last_known).await?)
    }

    /// Returns whether what a session held comes whole and first in what it is said to hold since.
    async fn holds_all_of(
        &self,
        coming: &CompactionRecord,
        known: &CompactionRecord,
    ) -> Result<bool, Error> {
        let policy = &self.compact.config().policy;
        let open = |store: &StorePair| {
            let estimator = self.compact.estimator(None);
            self.compact
                .build_manager(store.clone(), policy.clone(), estimator)
        };
        let before = open(self.to)?.hash_session(known).await;
        let since = open(self.from)?.hash_session(coming).await;
        // What cannot be read proves nothing.
        Ok(matches!((before, since), (Ok(before), Ok(since)) if since.starts_with(&before)))
    }

    /// Writes the records of the sessions beside the packs, under their new names; none over another.
    async fn write_records(&self, renames: &SessionRenames) -> Result<(), Error> {
        let archive = &*self.to.archive;
        let there: BTreeSet<_> = archive.list_records().await?.into_iter().collect();
        for session in self.from.catalog.sessions().await? {
            let id = &session.session_id;
            let (from, to) = (&*self.from.catalog, &*self.to.catalog);
            for record in find_missing_records(from, to, renames, id).await? {
                if record.input_pack.is_some() && !there.contains(&record.address()) {
                    write_record(archive, &record).await?;
                }
            }
        }
        Ok(())
    }
}

/// Returns whether everything that is new comes after the last record that is known.
fn goes_on_from(coming: &[CompactionRecord], known: &[CompactionRecord]) -> bool {
    let is_last = |record: &CompactionRecord| {
        let last = known.last();
        last.is_some_and(|last| last.receipt_id == record.receipt_id)
    };
    let Some(at) = coming.iter().position(is_last) else {
        return false;
    };
    let (old, new) = coming.split_at(at);
    old.iter().all(|record| is_among(record, known))
        && !new.iter().skip(1).any(|record| is_among(record, known))
}

/// Returns the first of the records that is not known.
fn find_unknown<'a>(
    coming: &'a [CompactionRecord],
    known: &[CompactionRecord],
) -> Option<&'a CompactionRecord> {
    coming.iter().find(|record| !is_among(record, known))
}

fn is_among(record: &CompactionRecord, known: &[CompactionRecord]) -> bool {
    let mut known = known.iter();
    known.any(|known| known.receipt_id == record.receipt_id)
}

fn clash_error(receipt: &str) -> ArchiveError {
    ArchiveError::ForeignClash {
        receipt: receipt.to_owned(),
    }
}
