//! `archive verify`: every pack, every record and every file of a hook or a run is read and checked, and
//! what the catalog names is there.
//!
//! A compaction that the archive knows and the catalog does not is a problem that `archive rebuild`
//! mends. A pack that neither names was left by something that was interrupted: it is counted. A recall
//! index that is behind is told and no problem: the next `recall` catches up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compact::hook::{self, StoreWithFiles};
use compact::manager::{Hinted, RuntimeError, read_record};
use compact::store::{
    ArchiveStore, CatalogError, CompactionRecord, Exclusion, MemoryCatalog, PackId, SessionCatalog,
    count_unnamed_packs,
};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::GlobalArgs;
use crate::failure::{Failure, FailureCode};
use crate::progress::TerminalProgress;
use crate::report::number::format_count;

/// What makes a catalog again.
const REBUILD: &str = "`compactctl archive rebuild` makes the catalog again";

/// What was found.
#[derive(Default)]
struct ArchiveFindings {
    packs: usize,
    /// Packs that nothing names.
    unnamed: usize,
    records: usize,
    /// Compactions on record that the archive has no record of.
    unwritten: usize,
    hooks: usize,
    runs: usize,
    behind: usize,
    problems: Vec<(Option<PackId>, String)>,
}

/// Checks the archive.
pub(super) async fn run(app: &App, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let mut found = ArchiveFindings::default();
    let archive = archive_with_files(app)?;
    (found.hooks, found.runs) = hook::count_by_origin(app.data_directory());
    check_packs(&archive, global, &mut found).await?;
    let hooks = app.data_directory().join(hook::HOOKS_FOLDER);
    let lost = hook::list_lost_archives(&hooks).map(|path| {
        (
            None,
            format!("{} is gone: a hook archived it", path.display()),
        )
    });
    found.problems.extend(lost);
    let checked = match catalog_with_files(app) {
        Ok(catalog) => check_catalog(&archive, &catalog, &mut found).await,
        Err(error) => Err(error.into()),
    };
    // A catalog that is gone is what a check is there to find; anything else is a failure.
    match checked {
        Err(RuntimeError::Catalog(
            error @ (CatalogError::Lost { .. } | CatalogError::Damaged { .. }),
        )) => {
            let message = format!("{}: {REBUILD}", error.message());
            found.problems.push((None, message));
        }
        other => other?,
    }
    found.behind = count_behind(app, &found).await?;
    let exclusion = probe_exclusion(app).await;
    let code = match found.problems.is_empty() {
        true => 0,
        false => FailureCode::Check as u8,
    };
    let mut human = render_findings(&found);
    if let Some(exclusion) = exclusion.filter(|e| *e != Exclusion::Works) {
        human.push_str(&format!(
            "  conditional writes: {}; packs are read back after they are written\n",
            exclusion.as_str()
        ));
    }
    Ok(CommandAnswer::new(findings_json(&found, exclusion), human).with_code(code))
}

/// The archive, whether there is a catalog or not.
fn archive_with_files(app: &App) -> Result<StoreWithFiles<dyn ArchiveStore>, Failure> {
    let beneath: Arc<dyn ArchiveStore> = match app.compact().has_store() {
        true => app.stores().open_archive()?,
        false => app.compact().store_as_is()?.archive,
    };
    Ok(StoreWithFiles::new(beneath, app.data_directory()))
}

fn catalog_with_files(app: &App) -> Result<StoreWithFiles<dyn SessionCatalog>, CatalogError> {
    let beneath: Arc<dyn SessionCatalog> = match app.compact().has_store() {
        true => app.stores().open_catalog_to_read()?,
        false => Arc::new(MemoryCatalog::default()),
    };
    Ok(StoreWithFiles::new(beneath, app.data_directory()))
}

async fn check_packs(
    archive: &StoreWithFiles<dyn ArchiveStore>,
    global: &GlobalArgs,
    found: &mut ArchiveFindings,
) -> Result<(), Failure> {
    let packs = archive.list().await?;
    found.packs = packs.len().saturating_sub(found.hooks + found.runs);
    let progress = TerminalProgress::over_steps(global, packs.len(), "checking packs");
    for pack in &packs {
        if let Err(error) = archive.verify(pack).await {
            found.problems.push((Some(*pack), error.to_string()));
        }
        progress.step();
    }
    Ok(())
}

/// Holds catalog and archive against each other.
async fn check_catalog(
    archive: &StoreWithFiles<dyn ArchiveStore>,
    catalog: &dyn SessionCatalog,
    found: &mut ArchiveFindings,
) -> Result<(), RuntimeError> {
    let stored: BTreeSet<PackId> = archive.list().await?.into_iter().collect();
    let mut named: BTreeSet<PackId> = catalog.referenced_packs().await?.into_iter().collect();
    for pack in named.difference(&stored) {
        let message = format!("pack {pack} is on record but not in the archive");
        found.problems.push((Some(*pack), message));
    }
    let mut on_record: BTreeMap<PackId, CompactionRecord> = BTreeMap::new();
    let mut continued: BTreeSet<String> = BTreeSet::new();
    for session in catalog.sessions().await? {
        let chain = catalog.session_records(&session.session_id).await?;
        continued.extend(chain.iter().filter_map(|record| record.previous.clone()));
        let archived = chain.into_iter().filter(|record| {
            let is_file = record.receipt.as_json().get("file").is_some();
            record.input_pack.is_some() && !is_file
        });
        on_record.extend(archived.map(|record| (record.address(), record)));
    }
    let mut unlisted = 0;
    for address in archive.list_records().await? {
        found.records += 1;
        let listed = on_record.remove(&address);
        match (read_record(archive, &address).await, listed) {
            (Err(error), _) => found.problems.push((Some(address), error.to_string())),
            (Ok(record), Some(listed)) if listed.agrees_with(&record) => {}
            (Ok(record), Some(_)) => {
                let receipt = &record.receipt_id;
                let message = format!(
                    "the catalog tells receipt {receipt} otherwise than the archive: {REBUILD}"
                );
                found.problems.push((Some(address), message));
            }
            (Ok(record), None) => {
                unlisted += 1;
                named.extend(record.packs());
            }
        }
    }
    found.unwritten = on_record.len();
    // A process that is killed leaves its compaction without a record, and whoever goes on from that writes it.
    let is_continued = |record: &CompactionRecord| continued.contains(&record.receipt_id);
    if on_record.values().any(is_continued) || (found.records == 0 && on_record.len() > 1) {
        let them = format_count(on_record.len() as u64, "receipt", "receipts");
        let message = format!(
            "the archive has no record of {them} that the catalog lists: `compactctl archive rebuild` writes it again"
        );
        found.problems.push((None, message));
    }
    if unlisted > 0 {
        let them = format_count(unlisted, "compaction", "compactions");
        let message = format!("the archive holds {them} that the catalog lacks: {REBUILD}");
        found.problems.push((None, message));
    }
    found.unnamed = count_unnamed_packs(archive, named).await?;
    Ok(())
}

/// Whether the store lets only one writer create a pack; `None` where it cannot be tried.
async fn probe_exclusion(app: &App) -> Option<Exclusion> {
    if !app.compact().has_store() {
        return None;
    }
    app.stores()
        .open_object_archive()
        .ok()?
        .exclusion()
        .await
        .ok()
}

/// Sessions that the recall index does not hold as the records say.
async fn count_behind(app: &App, found: &ArchiveFindings) -> Result<usize, Failure> {
    if !app.compact().has_store() || !found.problems.is_empty() {
        return Ok(0);
    }
    Ok(app
        .compact()
        .open_recall()?
        .outdated_sessions()
        .await?
        .len())
}

fn findings_json(found: &ArchiveFindings, exclusion: Option<Exclusion>) -> Value {
    let problems = found.problems.iter();
    json!({
        "ok": found.problems.is_empty(),
        "packs": found.packs,
        "packs_unnamed": found.unnamed,
        "records": found.records,
        "records_missing": found.unwritten,
        "hook_archives": found.hooks,
        "run_sessions": found.runs,
        "sessions_to_index": found.behind,
        "conditional_writes": exclusion.map(Exclusion::as_str),
        "problems": problems
            .map(|(pack, message)| json!({ "pack": pack, "message": message }))
            .collect::<Vec<_>>(),
    })
}

/// Packs, and what hooks and runs left, in words.
pub(super) fn describe_amounts(packs: usize, (hooks, runs): (usize, usize)) -> String {
    let mut all = vec![format_count(packs as u64, "pack", "packs")];
    if hooks > 0 {
        all.push(format_count(hooks as u64, "hook archive", "hook archives"));
    }
    if runs > 0 {
        all.push(format_count(
            runs as u64,
            "session of a run",
            "sessions of runs",
        ));
    }
    all.join(", ")
}

/// What is said of packs that nothing names.
pub(super) fn describe_unnamed(packs: usize) -> String {
    let packs = format_count(packs as u64, "pack", "packs");
    format!("  {packs} that nothing refers to: `compactctl restore PACK` restores each\n")
}

fn render_findings(found: &ArchiveFindings) -> String {
    let all = describe_amounts(found.packs, (found.hooks, found.runs));
    let mut out = match found.problems.len() as u64 {
        0 => format!("{} {all}: all whole\n", "verified".green().bold()),
        problems => format!(
            "{} {all}: {}\n",
            "failed".red().bold(),
            format_count(problems, "problem", "problems")
        ),
    };
    if found.behind > 0 {
        let sessions = format_count(found.behind as u64, "session", "sessions");
        out.push_str(&format!(
            "  {sessions} to index: the next `recall` does it\n"
        ));
    }
    if found.unwritten > 0 {
        let them = format_count(found.unwritten as u64, "receipt", "receipts");
        out.push_str(&format!(
            "  {them} only in the catalog: `compactctl archive rebuild` adds them to the archive\n"
        ));
    }
    if found.unnamed > 0 {
        out.push_str(&describe_unnamed(found.unnamed));
    }
    for (_, message) in &found.problems {
        out.push_str(&format!("  {message}\n"));
    }
    out
}
