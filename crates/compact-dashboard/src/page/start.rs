//! A new session from an old one: what would be carried over is shown first.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use compact::overview::CarriedMemory;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use maud::{Markup, html};
use serde::Deserialize;

use crate::page::PageError;
use crate::page::layout::Layout;
use crate::text::{count, encode, visible};
use crate::{ActionMode, Dashboard, Viewer};

/// What opens a first message, above what is carried over.
const OPENING: &str = include_str!("../../templates/first_message.md");

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct StartQuery {
    name: String,
}

/// Shows what would be carried over.
pub(crate) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<StartQuery>,
) -> Result<Markup, PageError> {
    let memory = find_memory(&dashboard, &viewer, &query.name).await?;
    Ok(render(&dashboard, &query.name, &memory))
}

/// Answers with the first message as a file.
pub(crate) async fn download(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<StartQuery>,
) -> Result<impl IntoResponse, PageError> {
    let memory = find_memory(&dashboard, &viewer, &query.name).await?;
    let headers = [
        (CONTENT_TYPE, "text/markdown; charset=utf-8"),
        (
            CONTENT_DISPOSITION,
            "attachment; filename=\"first-message.md\"",
        ),
    ];
    Ok((headers, first_message(&memory)))
}

async fn find_memory(
    dashboard: &Dashboard,
    viewer: &Viewer,
    name: &str,
) -> Result<CarriedMemory, PageError> {
    if !viewer.may_see(name) {
        return Err(PageError::not_found(name));
    }
    Ok(dashboard.compact.carried_memory(name).await?)
}

/// Returns what a new session is told first.
fn first_message(memory: &CarriedMemory) -> String {
    let mut text = OPENING.to_owned();
    for pinned in &memory.pinned {
        text.push_str(&format!("\n{}\n", pinned.trim_end()));
    }
    text.push_str(&format!("\n{}\n", memory.summary.trim_end()));
    text
}

fn render(dashboard: &Dashboard, name: &str, memory: &CarriedMemory) -> Markup {
    let text = first_message(memory);
    let session = dashboard.link(&format!("/session?name={}", encode(name)));
    let body = html! {
        p.lead { "This is what the new session would know: "
            (count(memory.pinned.len() as u64, "protected entry", "protected entries")) ", and the summary of everything else. "
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
                        input #new type="text" name="new" required value={ (name) "~next" };
                        button.first type="submit" { "Start New Session" }
                    }
                }
            }
            a.button href=(dashboard.link(&format!("/carried?name={}", encode(name)))) download { "Download the first message" }
        }
    };
    let layout = Layout::new(dashboard, "A new session").below(visible(name), session);
    layout.page(&body)
}
