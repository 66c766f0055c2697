//! `archive prune`: forgets old compactions and removes packs that nothing needs any more.

use std::io::{IsTerminal, Write};

use compact::store::{PruneLimits, PruneSelection};
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{GlobalArgs, PruneArgs};
use crate::failure::{Failure, FailureCode};
use crate::report::number::{format_bytes, format_count};

/// Prunes the archive.
pub(super) async fn run(
    args: &PruneArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let limits = limits_from_args(args, app)?;
    let doomed = app.compact().select_prunable(&limits).await?;
    if !args.dry_run && !doomed.records().is_empty() {
        confirm(args, global, &doomed)?;
        app.compact().prune(&doomed).await?;
    }
    let json = json!({
        "dry_run": args.dry_run,
        "removed": doomed.records().iter().map(|r| json!({
            "receipt_id": r.receipt_id,
            "session_id": r.session_id,
            "created_at": r.created_at,
        })).collect::<Vec<_>>(),
        "packs": doomed.packs(),
        "bytes_freed": doomed.bytes_freed(),
        "bytes_left": doomed.bytes_left(),
    });
    Ok(CommandAnswer::new(
        json,
        render_pruned(args, &limits, &doomed),
    ))
}

/// What the arguments say; without any, what the configuration does.
fn limits_from_args(args: &PruneArgs, app: &App) -> Result<PruneLimits, Failure> {
    let asked = PruneLimits::none()
        .older_than_days(args.older_than)
        .at_most_bytes(args.max_bytes);
    let found = match asked.is_set() {
        true => asked,
        false => PruneLimits::from(app.compact().retention()),
    };
    found.is_set().then_some(found).ok_or_else(|| {
        Failure::usage(
            "no limit says what to remove",
            "give --older-than DAYS or --max-bytes BYTES, or set storage.retention",
        )
    })
}

fn confirm(args: &PruneArgs, global: &GlobalArgs, doomed: &PruneSelection) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    let asked = !global.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if asked && is_confirmed(doomed) {
        return Ok(());
    }
    Err(Failure::new(FailureCode::Usage, "nothing was removed")
        .help("--yes removes without asking, --dry-run only lists what would be removed"))
}

fn is_confirmed(doomed: &PruneSelection) -> bool {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "remove {}? [y/N] ", describe_selection(doomed));
    let _ = stderr.flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn describe_selection(doomed: &PruneSelection) -> String {
    format!(
        "{} ({})",
        format_count(doomed.records().len() as u64, "compaction", "compactions"),
        format_bytes(doomed.bytes_freed())
    )
}

fn render_pruned(args: &PruneArgs, limits: &PruneLimits, doomed: &PruneSelection) -> String {
    let left = doomed.bytes_left();
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
    if limits.max_bytes().is_some_and(|most| left > most) {
        out.push_str("the rest is what the latest views point at\n");
    }
    out
}
