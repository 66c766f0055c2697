//! `archive list`: every session, and what all of it takes.

use compact_runtime::port::catalog::SessionInfo;
use owo_colors::Style;
use serde_json::json;

use crate::answer::Answer;
use crate::failure::Failure;
use crate::report::number::{bytes, count};
use crate::report::table::{Column, Table};
use crate::report::text::one_line;
use crate::world::{Store, World};

/// Lists the sessions.
pub async fn run(store: &Store, world: &World) -> Result<Answer, Failure> {
    let sessions = store.catalog.sessions().await?;
    let packs = store.archive.list().await?;
    let mut size = 0;
    for pack in &packs {
        // A pack that cannot be read is `archive verify`'s to tell.
        size += store
            .archive
            .info(pack)
            .await
            .map_or(0, |info| info.stored_bytes);
    }
    let json = json!({
        "path": world.root(),
        "archive": world.stores().archive_place(),
        "catalog": world.stores().catalog_place(),
        "sessions": sessions,
        "packs": packs.len(),
        "bytes": size,
    });
    let human = format!(
        "{}\n  {} in {}\n",
        table(&sessions),
        format_args!(
            "{}, {}, {}",
            count(sessions.len() as u64, "session", "sessions"),
            count(packs.len() as u64, "pack", "packs"),
            bytes(size)
        ),
        world.stores().archive_place()
    );
    Ok(Answer::new(json, human))
}

fn table(sessions: &[SessionInfo]) -> String {
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
    table.row(["session", "compactions", "last receipt", "when"].map(str::to_owned));
    for session in sessions {
        let receipt = session.last_receipt.as_deref().unwrap_or_default();
        table.row([
            one_line(&session.session_id, 36),
            session.compactions.to_string(),
            receipt.chars().take(12).collect(),
            session.last_at.as_deref().map_or_else(String::new, minute),
        ]);
    }
    table.render()
}

/// A time down to the minute.
pub fn minute(time: &str) -> String {
    time.chars().take(16).collect::<String>().replace('T', " ")
}
