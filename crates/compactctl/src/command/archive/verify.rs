//! `archive verify`: every pack is read and checked, and every pack that a record names is there.
//!
//! A recall index that is behind is told and no problem: the next `recall` catches up.

use std::collections::BTreeSet;

use compact_adapters::archive::Exclusion;
use compact_runtime::port::archive::PackId;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::answer::Answer;
use crate::args::Global;
use crate::failure::{Code, Failure};
use crate::progress::Progress;
use crate::report::number::count;
use crate::world::{Store, World};

/// Checks the archive.
pub async fn run(store: &Store, world: &World, global: &Global) -> Result<Answer, Failure> {
    let stored: BTreeSet<PackId> = store.archive.list().await?.into_iter().collect();
    let named: BTreeSet<PackId> = store.catalog.packs().await?.into_iter().collect();
    let progress = Progress::over_steps(global, stored.len(), "checking packs");
    let mut problems = Vec::new();
    for pack in &stored {
        if let Err(error) = store.archive.verify(pack).await {
            problems.push((*pack, error.to_string()));
        }
        progress.step();
    }
    for pack in named.difference(&stored) {
        problems.push((
            *pack,
            format!("pack {pack} is on record but not in the archive"),
        ));
    }
    drop(progress);
    let behind = behind(world).await?;
    let exclusion = exclusion(world).await;
    let json = json!({
        "ok": problems.is_empty(),
        "packs": stored.len(),
        "sessions_to_index": behind,
        "conditional_writes": exclusion.map(Exclusion::as_str),
        "problems": problems
            .iter()
            .map(|(pack, message)| json!({ "pack": pack, "message": message }))
            .collect::<Vec<_>>(),
    });
    let code = if problems.is_empty() {
        0
    } else {
        Code::Check as u8
    };
    let mut human = tell(stored.len(), &problems, behind);
    if let Some(exclusion) = exclusion.filter(|e| *e != Exclusion::Works) {
        human.push_str(&format!(
            "  conditional writes: {}; packs are read back after they are written\n",
            exclusion.as_str()
        ));
    }
    Ok(Answer::new(json, human).with_code(code))
}

/// Whether the store lets only one writer create a pack; `None` where it cannot be tried.
async fn exclusion(world: &World) -> Option<Exclusion> {
    if !world.has_store() {
        return None;
    }
    world.stores().objects().ok()?.exclusion().await.ok()
}

/// Sessions that the recall index does not hold as the records say.
async fn behind(world: &World) -> Result<usize, Failure> {
    if !world.has_store() {
        return Ok(0);
    }
    Ok(world.recall()?.behind().await?.len())
}

fn tell(packs: usize, problems: &[(PackId, String)], behind: usize) -> String {
    let all = count(packs as u64, "pack", "packs");
    let mut out = match problems.len() as u64 {
        0 => format!("{} {all}: all whole\n", "verified".green().bold()),
        found => format!(
            "{} {all}: {}\n",
            "failed".red().bold(),
            count(found, "problem", "problems")
        ),
    };
    if behind > 0 {
        let sessions = count(behind as u64, "session", "sessions");
        out.push_str(&format!(
            "  {sessions} to index: the next `recall` does it\n"
        ));
    }
    for (_, message) in problems {
        out.push_str(&format!("  {message}\n"));
    }
    out
}
