//! `archive verify`: every pack is read and checked, and every pack that a record names is there.

use std::collections::BTreeSet;

use compact_runtime::port::archive::PackId;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::answer::Answer;
use crate::args::Global;
use crate::failure::{Code, Failure};
use crate::progress::Progress;
use crate::report::number::count;
use crate::world::Store;

/// Checks the archive.
pub async fn run(store: &Store, global: &Global) -> Result<Answer, Failure> {
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
    let json = json!({
        "ok": problems.is_empty(),
        "packs": stored.len(),
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
    Ok(Answer::new(json, tell(stored.len(), &problems)).with_code(code))
}

fn tell(packs: usize, problems: &[(PackId, String)]) -> String {
    let all = count(packs as u64, "pack", "packs");
    if problems.is_empty() {
        return format!("{} {all}: all whole\n", "verified".green().bold());
    }
    let found = count(problems.len() as u64, "problem", "problems");
    let mut out = format!("{} {all}: {found}\n", "failed".red().bold());
    for (_, message) in problems {
        out.push_str(&format!("  {message}\n"));
    }
    out
}
