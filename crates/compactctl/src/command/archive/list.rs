//! `archive list`: every session, and what all of it takes.

use compact::hook;
use compact::manager::is_measure;
use compact::store::StorePair;
use compact::store::{Attempt, SessionInfo};
use owo_colors::Style;
use serde::Serialize;
use serde_json::json;

use super::verify::describe_amounts;
use crate::answer::CommandAnswer;
use crate::app::App;
use crate::failure::Failure;
use crate::report::number::{format_bytes, format_count};
use crate::report::table::{Column, Table};
use crate::report::text::one_line;

/// Columns that a session's id may take: those that are made up have half as many, and have to be
/// whole to be copied.
pub(crate) const SESSION_ID_COLUMNS: usize = 128;

/// A session, and what came of the last attempt where there is no compaction to show.
#[derive(Serialize)]
struct ListedSession {
    #[serde(flatten)]
    info: SessionInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt: Option<Attempt>,
}

/// Lists the sessions.
pub(super) async fn run(store: &StorePair, app: &App) -> Result<CommandAnswer, Failure> {
    let sessions = list_sessions(store).await?;
    // A pack that cannot be read is `archive verify`'s to tell.
    let packs = store.archive.list_sizes().await?;
    let size: u64 = packs.iter().map(|(_, bytes)| bytes).sum();
    let files = hook::count_by_origin(app.data_directory());
    let stored = packs.len().saturating_sub(files.0 + files.1);
    let json = json!({
        "path": app.data_directory(),
        "archive": app.stores().archive_location(),
        "catalog": app.stores().catalog_location(),
        "sessions": sessions,
        "packs": stored,
        "hook_archives": files.0,
        "run_sessions": files.1,
        "bytes": size,
    });
    let human = format!(
        "{}\n  {} in {}\n",
        render_sessions(&sessions),
        format_args!(
            "{}, {}, {}",
            format_count(sessions.len() as u64, "session", "sessions"),
            describe_amounts(stored, files),
            format_bytes(size)
        ),
        app.stores().archive_location()
    );
    Ok(CommandAnswer::new(json, human))
}

async fn list_sessions(store: &StorePair) -> Result<Vec<ListedSession>, Failure> {
    let mut listed = Vec::new();
    for info in store.catalog.sessions().await? {
        if is_measure(&info.session_id) {
            continue;
        }
        let last_attempt = match info.compactions {
            0 => store.catalog.last_attempt(&info.session_id).await?,
            _ => None,
        };
        listed.push(ListedSession { info, last_attempt });
    }
    Ok(listed)
}

fn render_sessions(sessions: &[ListedSession]) -> String {
    if sessions.is_empty() {
        return "  nothing has been compacted yet\n".to_owned();
    }
    let dim = Style::new().dimmed();
    let mut table = Table::new([
        Column::left(),
        Column::right(),
        Column::left(),
        Column::left().style(dim),
    ]);
    table.add_row(["session", "compactions", "last receipt", "when"].map(str::to_owned));
    for ListedSession { info, last_attempt } in sessions {
        let attempt = last_attempt.as_ref();
        let receipt = info.last_receipt.as_deref();
        let receipt = receipt.map(|id| id.chars().take(12).collect());
        let at = info.last_at.as_deref();
        let at = at.or(attempt.map(|attempt| attempt.at.as_str()));
        table.add_row([
            one_line(&info.session_id, SESSION_ID_COLUMNS),
            info.compactions.to_string(),
            receipt.unwrap_or_else(|| attempt.map_or_else(String::new, describe_attempt)),
            at.map_or_else(String::new, format_minute),
        ]);
    }
    table.render()
}

fn describe_attempt(attempt: &Attempt) -> String {
    format!("none: {}", attempt.outcome.replace('_', " "))
}

/// A time down to the minute.
pub(super) fn format_minute(time: &str) -> String {
    time.chars().take(16).collect::<String>().replace('T', " ")
}
