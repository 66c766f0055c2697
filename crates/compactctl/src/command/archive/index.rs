//! `archive index`: what was archived becomes part of the recall index. After a compaction it runs as a process of
//! its own, for which nobody waits.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::report::number::format_count;

/// Adds what the index lacks.
pub(super) async fn run(app: &App) -> Result<CommandAnswer, Failure> {
    let done = app.compact().index_archive().await?;
    let added = format_count(done.added, "compaction", "compactions");
    let mut human = format!("added {added} to the recall index\n");
    if done.unreadable > 0 {
        let missing = format_count(done.unreadable, "original", "originals");
        human.push_str(&format!(
            "{missing} could not be read: see `compactctl archive verify`\n"
        ));
    }
    let json = json!({ "added": done.added, "unreadable": done.unreadable });
    Ok(CommandAnswer::new(json, human))
}

/// Starts a process that adds what the index lacks, unless one is at it: that one looks again when it is done.
/// If none can be started, the next compaction or `recall` does the work.
pub(crate) fn start_indexing(app: &App, global: &GlobalArgs) {
    let Some(this) = std::env::current_exe()
        .ok()
        .filter(|_| !app.compact().is_indexing())
    else {
        return;
    };
    let mut indexer = Command::new(this);
    indexer
        .args(["archive", "index", "--low-priority", "--quiet"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(config) = &global.config {
        indexer.arg("--config").arg(config);
    }
    // What interrupts a command is not meant for this one.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut indexer, 0);
    let _ = indexer.spawn();
}
