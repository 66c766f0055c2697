//! Retention: forgets old compactions and removes packs that nothing needs any more.
//!
//! The latest compaction of each branch of a session is what a live view points at: it stays with everything
//! that its packs build on, every compaction that led to it, and every receipt of any session that
//! its input names: each pointer of a live view leads to one of these. Packs that no record names
//! are left alone too: another process may be about to record them. What goes leaves the recall
//! index as well.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use compact_adapters::config::RetentionConfig;
use compact_runtime::port::archive::{PackId, reachable_packs};
use compact_runtime::port::catalog::{CompactionRecord, live_ends};
use compact_runtime::port::clock::Clock;
use jiff::{SignedDuration, Timestamp};

use crate::compact::Compact;
use crate::error::Error;
use crate::storage::StorePair;

/// The limits of what an archive keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneLimits {
    days: Option<u32>,
    bytes: Option<u64>,
}

/// The compactions and packs that a limit would remove.
#[derive(Clone, Debug, Default)]
pub struct PruneSelection {
    records: Vec<CompactionRecord>,
    packs: BTreeSet<PackId>,
    freed: u64,
    total: u64,
}

impl PruneLimits {
    /// Returns limits that keep everything.
    pub fn none() -> PruneLimits {
        PruneLimits::default()
    }

    /// Removes what is older than so many days.
    #[must_use]
    pub fn older_than_days(mut self, days: Option<u32>) -> PruneLimits {
        self.days = days;
        self
    }

    /// Removes the oldest until the archive has at most so many bytes.
    #[must_use]
    pub fn at_most_bytes(mut self, bytes: Option<u64>) -> PruneLimits {
        self.bytes = bytes;
        self
    }

    /// Returns the most bytes that may stay.
    pub fn max_bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Returns whether any limit is set.
    pub fn is_set(&self) -> bool {
        self.days.is_some() || self.bytes.is_some()
    }
}

impl From<RetentionConfig> for PruneLimits {
    fn from(config: RetentionConfig) -> PruneLimits {
        PruneLimits {
            days: config.days,
            bytes: config.max_bytes,
        }
    }
}

impl PruneSelection {
    /// Returns the compactions to remove, the oldest first.
    pub fn records(&self) -> &[CompactionRecord] {
        &self.records
    }

    /// Returns the packs to remove.
    pub fn packs(&self) -> &BTreeSet<PackId> {
        &self.packs
    }

    /// Returns how many bytes are freed.
    pub fn bytes_freed(&self) -> u64 {
        self.freed
    }

    /// Returns how many bytes remain.
    pub fn bytes_left(&self) -> u64 {
        self.total - self.freed
    }
}

impl Compact {
    /// Returns what these limits would remove, and changes nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::{Compact, store::PruneLimits};
    ///
    /// let compact = Compact::builder().in_memory().build()?;
    /// let old = compact.select_prunable(&PruneLimits::none().older_than_days(Some(30))).await?;
    /// assert!(old.records().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn select_prunable(&self, limits: &PruneLimits) -> Result<PruneSelection, Error> {
        let store = self.store_to_read()?;
        select_prunable(limits, &store, self.clock()).await
    }

    /// Removes what was selected.
    pub async fn prune(&self, selection: &PruneSelection) -> Result<(), Error> {
        let store = self.store_to_read()?;
        self.remove_selected(&store, selection).await
    }

    /// Removes what `storage.retention` allows, which by default is nothing. A session does this after each
    /// compaction.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder()
    ///     .config_json(r#"{"storage": {"retention": {"days": 30}}}"#)
    ///     .in_memory()
    ///     .build()?;
    /// compact.apply_retention().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply_retention(&self) -> Result<(), Error> {
        let limits = PruneLimits::from(self.config().storage.retention);
        if !limits.is_set() {
            return Ok(());
        }
        let store = self.store_to_read()?;
        let selection = select_prunable(&limits, &store, self.clock()).await?;
        self.remove_selected(&store, &selection).await
    }

    /// Records first: a pack without a record is wasted space, a record without its pack a broken word.
    async fn remove_selected(
        &self,
        store: &StorePair,
        doomed: &PruneSelection,
    ) -> Result<(), Error> {
        for record in &doomed.records {
            // What the archive says of it goes first: a catalog is never made again with what was pruned.
            store.archive.remove_record(&record.address()).await?;
            let removed = store
                .catalog
                .remove_receipt(&record.session_id, &record.receipt_id);
            removed.await?;
        }
        if let Some(index) = self.recall_index()? {
            let sessions: BTreeSet<&str> = doomed.records.iter().map(|r| &*r.session_id).collect();
            for session in sessions {
                index.forget(session).await?;
            }
        }
        for pack in &doomed.packs {
            store.archive.remove(pack).await?;
        }
        Ok(())
    }
}

async fn pack_sizes(store: &StorePair) -> Result<BTreeMap<PackId, u64>, Error> {
    let mut sizes = BTreeMap::new();
    for pack in store.archive.list().await? {
        let info = store.archive.info(&pack).await?;
        sizes.insert(pack, info.stored_bytes);
    }
    Ok(sizes)
}

/// Returns the oldest compactions first, as many as the limits ask for.
async fn select_prunable(
    limits: &PruneLimits,
    store: &StorePair,
    clock: &dyn Clock,
) -> Result<PruneSelection, Error> {
    let sizes = &pack_sizes(store).await?;
    let candidates = PruneCandidates::from_store(store).await?;
    let oldest = match limits.days {
        Some(days) => candidates.count_older_than(&days_before(clock.now(), days)?),
        None => 0,
    };
    let largest = match limits.bytes {
        Some(most) => candidates.count_to_fit(most, store, sizes).await?,
        None => 0,
    };
    let selected = candidates.select_oldest(oldest.max(largest), store, sizes);
    Ok(PruneSelection {
        total: sizes.values().sum(),
        ..selected.await?
    })
}

/// The compactions that may be removed, the oldest first, and those that must stay.
struct PruneCandidates {
    open: Vec<CompactionRecord>,
    live: Vec<CompactionRecord>,
}

impl PruneCandidates {
    async fn from_store(store: &StorePair) -> Result<PruneCandidates, Error> {
        let mut chains = Vec::new();
        for session in store.catalog.sessions().await? {
            chains.push(store.catalog.session_records(&session.session_id).await?);
        }
        let named = NamedReceipts::from_ends(store, &chains).await;
        let mut all = PruneCandidates {
            open: Vec::new(),
            live: Vec::new(),
        };
        for chain in chains {
            let ends: HashSet<String> = live_ends(&chain)
                .into_iter()
                .map(|end| end.receipt_id.clone())
                .collect();
            let is_live = |r: &CompactionRecord| ends.contains(&r.receipt_id) || named.covers(r);
            let (live, open): (Vec<_>, Vec<_>) = chain.into_iter().partition(is_live);
            all.live.extend(live);
            all.open.extend(open);
        }
        all.open.sort_by(|a, b| a.created_at.cmp(&b.created_at));
        Ok(all)
    }

    /// Returns how many are older than a time.
    fn count_older_than(&self, time: &str) -> usize {
        let old = self
            .open
            .iter()
            .take_while(|r| r.created_at.as_str() < time);
        old.count()
    }

    /// Returns the fewest that must go for the archive to fit.
    async fn count_to_fit(
        &self,
        most: u64,
        store: &StorePair,
        sizes: &BTreeMap<PackId, u64>,
    ) -> Result<usize, Error> {
        let total: u64 = sizes.values().sum();
        let (mut low, mut high) = (0, self.open.len());
        while low < high {
            let middle = low.midpoint(high);
            let freed = self.select_oldest(middle, store, sizes).await?.freed;
            if total - freed <= most {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// Returns what goes with the oldest `number`. A record whose packs must all stay, because newer ones
    /// build on them, stays as well: forgetting it would free nothing.
    async fn select_oldest(
        &self,
        number: usize,
        store: &StorePair,
        sizes: &BTreeMap<PackId, u64>,
    ) -> Result<PruneSelection, Error> {
        let kept = self.live.iter().chain(self.open.iter().skip(number));
        let roots: Vec<PackId> = kept.flat_map(packs).collect();
        let needed = reachable_packs(&*store.archive, roots).await?;
        let mut doomed = PruneSelection::default();
        for record in self.open.iter().take(number) {
            let free: Vec<PackId> = packs(record).filter(|p| !needed.contains(p)).collect();
            if !free.is_empty() {
                doomed.records.push(record.clone());
                doomed.packs.extend(free);
            }
        }
        doomed.freed = doomed.packs.iter().filter_map(|p| sizes.get(p)).sum();
        Ok(doomed)
    }
}

fn packs(record: &CompactionRecord) -> impl Iterator<Item = PackId> {
    record.packs()
}

/// How many characters of a receipt every pointer shows.
const POINTER_CHARS: usize = 12;

/// The receipts that live views may point at, by the characters that pointers show.
enum NamedReceipts {
    In(HashSet<String>),
    All,
}

impl NamedReceipts {
    /// Returns a view's texts come from its input, so the receipts that it names are named there; an input
    /// that cannot be read may name any.
    async fn from_ends(store: &StorePair, chains: &[Vec<CompactionRecord>]) -> NamedReceipts {
        let mut named = HashSet::new();
        for end in chains.iter().flat_map(|chain| live_ends(chain)) {
            let Some(pack) = &end.input_pack else {
                return NamedReceipts::All;
            };
            let Ok(bytes) = store.archive.get(pack).await else {
                return NamedReceipts::All;
            };
            named.extend(receipts_in(&bytes));
            named.extend(end.previous.as_deref().map(short_receipt));
        }
        add_lineage(&mut named, chains);
        NamedReceipts::In(named)
    }

    fn covers(&self, record: &CompactionRecord) -> bool {
        match self {
            NamedReceipts::In(named) => named.contains(&short_receipt(&record.receipt_id)),
            NamedReceipts::All => true,
        }
    }
}

fn short_receipt(receipt: &str) -> String {
    receipt.chars().take(POINTER_CHARS).collect()
}

/// Returns what may be the id of a receipt, or the start of one.
fn receipts_in(bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    bytes
        .split(|byte| !byte.is_ascii_hexdigit())
        .filter_map(|run| run.get(..POINTER_CHARS))
        .map(|run| String::from_utf8_lossy(run).into_owned())
}

/// Adds the earlier compactions of each chain, since the numbers in a summary reach back to the first.
fn add_lineage(named: &mut HashSet<String>, chains: &[Vec<CompactionRecord>]) {
    let previous: HashMap<String, String> = chains
        .iter()
        .flatten()
        .filter_map(|r| {
            Some((
                short_receipt(&r.receipt_id),
                short_receipt(r.previous.as_deref()?),
            ))
        })
        .collect();
    let mut open: Vec<String> = named.iter().cloned().collect();
    while let Some(receipt) = open.pop() {
        if let Some(earlier) = previous.get(&receipt)
            && named.insert(earlier.clone())
        {
            open.push(earlier.clone());
        }
    }
}

/// Returns the time so many days before `now`, as records spell it.
fn days_before(now: Timestamp, days: u32) -> Result<String, Error> {
    let then = now
        .checked_sub(SignedDuration::from_hours(i64::from(days) * 24))
        .map_err(|_| Error::Retention { days })?;
    Ok(format!("{then:.3}"))
}
