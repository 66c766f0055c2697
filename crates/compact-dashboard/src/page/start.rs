//! A new session from an old one: what would be carried over is shown first.

use axum::response::IntoResponse;
use compact::overview::CarriedMemory;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use maud::{Markup, html};
use serde::Deserialize;

use crate::action::find_compaction;
use crate::page::PageError;
use crate::page::layout::Layout;
use crate::page::list::session_address;
use crate::text::{count, encode, is_deceptive, visible};
use crate::visit::{Asked, Visit};
use crate::{ActionMode, Dashboard};

/// What opens a first message, above what is carried over.
const OPENING: &str = include_str!("../../templates/first_message.md");

/// What stands between the summary and what was said last.
const SAID: &str = include_str!("../../templates/said_last.md");

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct StartQuery {
    name: String,
    /// The compaction whose memory is meant; by default the last one.
    receipt: Option<String>,
}

impl Asked for StartQuery {
    fn session(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// Shows what would be carried over.
pub(crate) async fn show(visit: Visit<StartQuery>) -> Result<Markup, PageError> {
    let (dashboard, name) = (&*visit.dashboard, visit.asked.name.as_str());
    let memory = dashboard.compact.carried_memory(name).await?;
    Ok(render(dashboard, name, &memory))
}

/// Answers with the first message as a file.
pub(crate) async fn download(
    visit: Visit<StartQuery>,
) -> Result<impl IntoResponse + use<>, PageError> {
    let (dashboard, query) = (&*visit.dashboard, &visit.asked);
    let source = match &query.receipt {
        // Of another session a receipt tells nothing.
        Some(receipt) => {
            find_compaction(dashboard, &query.name, receipt)
                .await?
                .record
                .receipt_id
        }
        None => query.name.clone(),
    };
    let memory = dashboard.compact.carried_memory(&source).await?;
    let headers = [
        (CONTENT_TYPE, "text/markdown; charset=utf-8"),
        (
            CONTENT_DISPOSITION,
            "attachment; filename=\"first-message.md\"",
        ),
    ];
    Ok((headers, first_message(&memory)))
}

/// Returns what a new session is told first.
fn first_message(memory: &CarriedMemory) -> String {
    let mut text = OPENING.to_owned();
    for pinned in &memory.pinned {
        text.push_str(&format!("\n{}\n", pinned.trim_end()));
    }
    text.push_str(&format!("\n{}\n", memory.summary.trim_end()));
    if !memory.said.is_empty() {
        text.push_str(&format!("\n{SAID}"));
    }
    for (role, words) in &memory.said {
        text.push_str(&format!("\n{}: {}\n", role.as_str(), words.trim_end()));
    }
    text
}

/// Returns a name without what a new one may not have.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| !is_deceptive(*c)).collect()
}

fn render(dashboard: &Dashboard, name: &str, memory: &CarriedMemory) -> Markup {
    let text = first_message(memory);
    let body = html! {
        p.lead { "This is what the new session would know: "
            (count(memory.pinned.len() as u64, "entry that is pinned or always stays", "entries that are pinned or always stay")) ", the summary, and what you and the model said last. "
            "The rest stays in the archive, where recall finds it." }
        pre.summary dir="auto" tabindex="0" role="region" aria-label="What is carried over" { (visible(&text)) }
        div.actions {
            @if dashboard.actions == ActionMode::Allowed {
                form.start method="post" action=(dashboard.link("/do/start")) {
                    input type="hidden" name="token" value=(dashboard.token.as_str());
                    input type="hidden" name="name" value=(name);
                    input type="hidden" name="receipt" value=(memory.receipt);
                    label for="new" { "Its name" }
                    div.field {
                        input #new type="text" name="new" required value={ (plain_name(name)) "~next" };
                        button.first type="submit" { "Start New Session" }
                    }
                }
            }
            a.button href=(dashboard.link(&format!("/carried?name={}&receipt={}", encode(name), encode(&memory.receipt)))) download { "Download the first message" }
        }
    };
    let layout = Layout::new(dashboard, "A new session")
        .below("Sessions", dashboard.link("/"))
        .below(name, session_address(dashboard, name));
    layout.page(&body)
}
