//! What a session has established, fact by fact: who said it, and where.

use std::sync::Arc;

use axum::extract::{Query, State};
use compact::message::Ledger;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::page::PageError;
use crate::page::layout::Layout;
use crate::text::{count, encode, foreign, visible};
use crate::{Dashboard, Viewer};

/// How many facts of a kind are shown, the newest first.
const SHOWN: usize = 60;

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct LedgerQuery {
    name: String,
}

/// Shows the ledger.
pub(crate) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<LedgerQuery>,
) -> Result<Markup, PageError> {
    let (dashboard, name) = (&*dashboard, query.name.as_str());
    if !viewer.may_see(name) {
        return Err(PageError::not_found(name));
    }
    let receipt = dashboard.compact.carried_memory(name).await?.receipt;
    let memory = dashboard.compact.remember(&receipt).await?;
    let body = render_ledger(dashboard, &memory.ledger, &receipt);
    let session = dashboard.link(&format!("/session?name={}", encode(name)));
    let layout = Layout::new(dashboard, "What it remembers").below(visible(name), session);
    Ok(layout.page(&body))
}

/// A fact as it is shown.
struct ShownFact {
    ordinal: u64,
    voice: String,
    text: String,
}

fn render_ledger(dashboard: &Dashboard, ledger: &Ledger, receipt: &str) -> Markup {
    let facts = serde_json::to_value(&ledger.facts).unwrap_or_default();
    let kinds = [
        ("rules", "Rules"),
        ("open", "Still to do"),
        ("decisions", "Decisions"),
        ("done", "Done"),
        ("made", "Made"),
        ("files", "Files"),
        ("runs", "Commands"),
        ("requests", "Requests"),
    ];
    html! {
        p.lead { "Summaries are written from these facts and never from the last summary. Each leads to the entry that it was said in." }
        @for (kind, title) in kinds {
            @let found = read_facts(&facts, kind);
            @if !found.is_empty() {
                section aria-labelledby=(kind) {
                    h2 id=(kind) { (title) " " span.quiet { (count(found.len() as u64, "fact", "facts")) } }
                    ol.facts-list { @for fact in found.iter().rev().take(SHOWN) { (render_fact(dashboard, receipt, fact)) } }
                    @if found.len() > SHOWN { p.quiet { "The newest " (SHOWN) "." } }
                }
            }
        }
    }
}

fn read_facts(facts: &Value, kind: &str) -> Vec<ShownFact> {
    let list = facts.get(kind).and_then(Value::as_array);
    let facts = list.into_iter().flatten().filter_map(|fact| {
        let text = fact.get("text").or_else(|| fact.get("path"))?.as_str()?;
        let voice = fact.get("voice").or_else(|| fact.get("act"));
        Some(ShownFact {
            ordinal: fact.get("ordinal")?.as_u64()?,
            voice: voice
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_lowercase(),
            text: text.to_owned(),
        })
    });
    facts.collect()
}

fn render_fact(dashboard: &Dashboard, receipt: &str, fact: &ShownFact) -> Markup {
    let pointer = format!("{receipt}#{}", fact.ordinal);
    let address = dashboard.link(&format!("/entry?pointer={}", encode(&pointer)));
    let shown: String = fact.text.chars().take(400).collect();
    html! {
        li {
            p { (foreign(&shown)) }
            p.source {
                @if !fact.voice.is_empty() { (fact.voice) " · " }
                a href=(address) { "entry " (fact.ordinal) }
            }
        }
    }
}
