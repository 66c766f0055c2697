//! `archive rebuild`: the catalog made again from the records in the archive.

use std::sync::OnceLock;

use compact::store::{RebuildProgress, RebuildReport};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::GlobalArgs;
use crate::failure::{Failure, FailureCode};
use crate::progress::TerminalProgress;
use crate::report::number::format_count;

/// Makes the catalog again.
pub(super) async fn run(app: &App, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let location = app.stores().catalog_location();
    let progress = RecordProgress {
        global,
        shown: OnceLock::new(),
    };
    let done = app.compact().rebuild_catalog(&progress).await?;
    let json = json!({
        "catalog": location,
        "sessions": done.sessions.len(),
        "receipts": done.receipts,
        "added": done.added,
        "mended": done.mended,
        "records_written": done.written,
        "packs": done.packs,
        "packs_unnamed": done.unnamed_packs,
        "unreadable": done.unreadable,
        "moved_aside": done.moved_aside,
    });
    let mut human = render_rebuild(&done, &location);
    if let Some(aside) = &done.moved_aside {
        human.push_str(&format!("  the damaged one is now {}\n", aside.display()));
    }
    if done.unnamed_packs > 0 {
        human.push_str(&super::verify::describe_unnamed(done.unnamed_packs));
    }
    // What nothing refers to may be what a killed process left, or all that is left of a session.
    let code = match done.unreadable.is_empty() && done.unnamed_packs == 0 {
        true => 0,
        false => FailureCode::Check as u8,
    };
    Ok(CommandAnswer::new(json, human).with_code(code))
}

/// Shows how many records were read.
struct RecordProgress<'a> {
    global: &'a GlobalArgs,
    shown: OnceLock<TerminalProgress>,
}

impl RebuildProgress for RecordProgress<'_> {
    fn begin(&self, records: usize) {
        let _ = self.shown.set(TerminalProgress::over_steps(
            self.global,
            records,
            "reading records",
        ));
    }

    fn step(&self) {
        if let Some(progress) = self.shown.get() {
            progress.step();
        }
    }
}

fn render_rebuild(done: &RebuildReport, place: &str) -> String {
    let mut out = format!(
        "{} {place}: {}, {}, {} of them new\n",
        "rebuilt".green().bold(),
        format_count(done.sessions.len() as u64, "session", "sessions"),
        format_count(done.receipts, "receipt", "receipts"),
        done.added,
    );
    if done.mended > 0 {
        let mended = format_count(done.mended, "receipt", "receipts");
        out.push_str(&format!("  {mended} told again as the archive has them\n"));
    }
    if done.written > 0 {
        let written = format_count(done.written, "receipt", "receipts");
        out.push_str(&format!("  {written} added to the archive as well\n"));
    }
    for message in &done.unreadable {
        out.push_str(&format!("  {message}\n"));
    }
    out
}
