//! `archive prune`: forgets old compactions and removes packs that nothing needs any more.
//!
//! The latest compaction of a session is what its live view points at: it stays with everything
//! that its packs build on, every compaction that led to it, and every receipt of any session that
//! its input names: each pointer of a live view leads to one of these. Packs that no record names
//! are left alone too: another process may be about to record them. What goes leaves the recall
//! index as well.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{IsTerminal, Write};

use compact_runtime::port::archive::{PackId, reachable_packs};
use compact_runtime::port::catalog::CompactionRecord;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::{App, StorePair};
use crate::args::{GlobalArgs, PruneArgs};
use crate::failure::{Failure, FailureCode};
use crate::report::number::{format_bytes, format_count};

/// What will go.
#[derive(Default)]
struct PruneSelection {
    records: Vec<CompactionRecord>,
    packs: BTreeSet<PackId>,
    freed: u64,
}

/// Prunes the archive.
pub async fn run(
    args: &PruneArgs,
    store: &StorePair,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let limits = PruneLimits::from_args(args, app)?;
    let sizes = pack_sizes(store).await?;
    let total: u64 = sizes.values().sum();
    let doomed = select_prunable(&limits, store, &sizes).await?;
    let pruned = !args.dry_run && !doomed.records.is_empty();
    if pruned {
        confirm(args, global, &doomed)?;
        remove_selected(store, app, &doomed).await?;
    }
    let left = total - doomed.freed;
    let json = json!({
        "dry_run": args.dry_run,
        "removed": doomed.records.iter().map(|r| json!({
            "receipt_id": r.receipt_id,
            "session_id": r.session_id,
            "created_at": r.created_at,
        })).collect::<Vec<_>>(),
        "packs": doomed.packs,
        "bytes_freed": doomed.freed,
        "bytes_left": left,
    });
    Ok(CommandAnswer::new(
        json,
        render_pruned(args, &limits, &doomed, left),
    ))
}

/// Prunes to what the configuration says, without a word.
pub async fn prune_to_retention(store: &StorePair, app: &App) -> Result<(), Failure> {
    let limits = PruneLimits::from_config(app);
    let doomed = select_prunable(&limits, store, &pack_sizes(store).await?).await?;
    remove_selected(store, app, &doomed).await
}

/// What may stay.
struct PruneLimits {
    days: Option<u32>,
    bytes: Option<u64>,
}

impl PruneLimits {
    /// What the arguments say; without any, what the configuration does.
    fn from_args(args: &PruneArgs, app: &App) -> Result<PruneLimits, Failure> {
        let asked = PruneLimits {
            days: args.older_than,
            bytes: args.max_bytes,
        };
        let configured = PruneLimits::from_config(app);
        let found = if asked.is_set() { asked } else { configured };
        found.is_set().then_some(found).ok_or_else(|| {
            Failure::usage(
                "nothing says what may go",
                "give --older-than DAYS or --max-bytes BYTES, or set storage.retention",
            )
        })
    }

    fn from_config(app: &App) -> PruneLimits {
        let retention = app.retention();
        PruneLimits {
            days: retention.days,
            bytes: retention.max_bytes,
        }
    }

    fn is_set(&self) -> bool {
        self.days.is_some() || self.bytes.is_some()
    }
}

async fn pack_sizes(store: &StorePair) -> Result<BTreeMap<PackId, u64>, Failure> {
    let mut sizes = BTreeMap::new();
    for pack in store.archive.list().await? {
        let info = store.archive.info(&pack).await?;
        sizes.insert(pack, info.stored_bytes);
    }
    Ok(sizes)
}

/// The oldest compactions first, as many as the limits ask for.
async fn select_prunable(
    limits: &PruneLimits,
    store: &StorePair,
    sizes: &BTreeMap<PackId, u64>,
) -> Result<PruneSelection, Failure> {
    let candidates = PruneCandidates::from_store(store).await?;
    let oldest = match limits.days {
        Some(days) => candidates.count_older_than(&days_ago(days)?),
        None => 0,
    };
    let largest = match limits.bytes {
        Some(most) => candidates.count_to_fit(most, store, sizes).await?,
        None => 0,
    };
    candidates
        .select_oldest(oldest.max(largest), store, sizes)
        .await
}

/// What may go, the oldest first, and what must stay.
struct PruneCandidates {
    open: Vec<CompactionRecord>,
    live: Vec<CompactionRecord>,
}

impl PruneCandidates {
    async fn from_store(store: &StorePair) -> Result<PruneCandidates, Failure> {
        let mut chains = Vec::new();
        for session in store.catalog.sessions().await? {
            chains.push(store.catalog.session_records(&session.session_id).await?);
        }
        let named = NamedReceipts::from_latest(store, &chains).await;
        let mut all = PruneCandidates {
            open: Vec::new(),
            live: Vec::new(),
        };
        for mut chain in chains {
            all.live.extend(chain.pop());
            let (live, open): (Vec<_>, Vec<_>) =
                chain.into_iter().partition(|record| named.covers(record));
            all.live.extend(live);
            all.open.extend(open);
        }
        all.open.sort_by(|a, b| a.created_at.cmp(&b.created_at));
        Ok(all)
    }

    /// How many are older than a time.
    fn count_older_than(&self, time: &str) -> usize {
        let old = self
            .open
            .iter()
            .take_while(|r| r.created_at.as_str() < time);
        old.count()
    }

    /// The fewest that must go for the archive to fit.
    async fn count_to_fit(
        &self,
        most: u64,
        store: &StorePair,
        sizes: &BTreeMap<PackId, u64>,
    ) -> Result<usize, Failure> {
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

    /// What goes with the oldest `number`. A record whose packs must all stay, because newer ones
    /// build on them, stays as well: forgetting it would free nothing.
    async fn select_oldest(
        &self,
        number: usize,
        store: &StorePair,
        sizes: &BTreeMap<PackId, u64>,
    ) -> Result<PruneSelection, Failure> {
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
    /// A view's texts come from its input, so the receipts that it names are named there; an input
    /// that cannot be read may name any.
    async fn from_latest(store: &StorePair, chains: &[Vec<CompactionRecord>]) -> NamedReceipts {
        let mut named = HashSet::new();
        for latest in chains.iter().filter_map(|chain| chain.last()) {
            let Some(pack) = &latest.input_pack else {
                return NamedReceipts::All;
            };
            let Ok(bytes) = store.archive.get(pack).await else {
                return NamedReceipts::All;
            };
            named.extend(receipts_in(&bytes));
            named.extend(latest.previous.as_deref().map(short_receipt));
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

/// What may be the id of a receipt, or the start of one.
fn receipts_in(bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    bytes
        .split(|byte| !byte.is_ascii_hexdigit())
        .filter_map(|run| run.get(..POINTER_CHARS))
        .map(|run| String::from_utf8_lossy(run).into_owned())
}

/// A summary's numbers reach back to the first compaction of its chain.
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

/// The time so many days ago, as records spell it.
fn days_ago(days: u32) -> Result<String, Failure> {
    let then = Timestamp::now()
        .checked_sub(SignedDuration::from_hours(i64::from(days) * 24))
        .map_err(|_| Failure::usage("--older-than is before the calendar", "use fewer days"))?;
    Ok(format!("{then:.3}"))
}

fn confirm(args: &PruneArgs, global: &GlobalArgs, doomed: &PruneSelection) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    let asked = !global.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if asked && says_yes(doomed) {
        return Ok(());
    }
    Err(Failure::new(FailureCode::Usage, "nothing was removed")
        .help("--yes removes without asking, --dry-run only says what would go"))
}

fn says_yes(doomed: &PruneSelection) -> bool {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "remove {}? [y/N] ", describe_selection(doomed));
    let _ = stderr.flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Records first: a pack without a record is wasted space, a record without its pack a broken word.
async fn remove_selected(
    store: &StorePair,
    app: &App,
    doomed: &PruneSelection,
) -> Result<(), Failure> {
    for record in &doomed.records {
        // What the archive says of it goes first: a catalog is never made again with what was pruned.
        store.archive.remove_record(&record.address()).await?;
        let removed = store
            .catalog
            .remove_receipt(&record.session_id, &record.receipt_id);
        removed.await?;
    }
    if let Some(index) = app.recall_index()? {
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

fn describe_selection(doomed: &PruneSelection) -> String {
    format!(
        "{} ({})",
        format_count(doomed.records.len() as u64, "compaction", "compactions"),
        format_bytes(doomed.freed)
    )
}

fn render_pruned(
    args: &PruneArgs,
    limits: &PruneLimits,
    doomed: &PruneSelection,
    left: u64,
) -> String {
    let verb = if args.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let mut out = format!(
        "{verb} {}, {} stay\n",
        describe_selection(doomed),
        format_bytes(left)
    );
    if limits.bytes.is_some_and(|most| left > most) {
        out.push_str("the rest is what the latest views point at\n");
    }
    out
}
