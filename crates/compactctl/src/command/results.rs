//! Results as a table, as JSON, as CSV and as a page: one measurement, four readers.

use std::path::Path;

use serde_json::Value;

use crate::answer::CommandAnswer;
use crate::args::{GlobalArgs, ResultFileArgs};
use crate::failure::Failure;
use crate::output::OutputTarget;

/// What was found, for each kind of reader.
#[derive(Debug, Default)]
pub(super) struct ResultDocuments {
    /// For programs.
    pub json: Value,
    /// For a terminal.
    pub human: String,
    /// For a spreadsheet.
    pub csv: String,
    /// For a browser.
    pub html: String,
    /// The exit code: 5 where what was found is less than was promised.
    pub code: u8,
}

/// Opens the files first, so that a wrong path costs no measurement, and writes them last.
pub(super) fn measure_and_write(
    sheets: &ResultFileArgs,
    global: &GlobalArgs,
    measure: impl FnOnce() -> Result<ResultDocuments, Failure>,
) -> Result<CommandAnswer, Failure> {
    check_stdout(sheets, global)?;
    let open = |path: &Path| OutputTarget::open(path, None);
    let csv = sheets.csv.as_deref().map(open).transpose()?;
    let html = sheets.html.as_deref().map(open).transpose()?;
    let found = measure()?;
    let mut payload = None;
    for (target, text) in [(csv, found.csv), (html, found.html)] {
        if let Some(target) = target {
            payload = target.write(text.into_bytes())?.or(payload);
        }
    }
    Ok(CommandAnswer::new(found.json, found.human)
        .with_payload(payload)
        .with_code(found.code))
}

fn check_stdout(sheets: &ResultFileArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let is_stdout = |path: &Option<_>| path.as_deref() == Some(Path::new("-"));
    let wanted = [is_stdout(&sheets.csv), is_stdout(&sheets.html), global.json];
    if wanted.into_iter().filter(|w| *w).count() > 1 {
        return Err(Failure::usage(
            "several outputs would go to stdout",
            "give --csv and --html files, or leave --json out",
        ));
    }
    Ok(())
}

/// A CSV cell whose text may hold anything.
pub(super) fn quote_csv(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}
