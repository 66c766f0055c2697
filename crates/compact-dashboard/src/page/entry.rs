//! One entry, whole: what a view left out, brought back.

use std::sync::Arc;

use axum::extract::{Query, State};
use compact::overview::CompactionReading;
use compact::recall::SecretDisplay;
use maud::{Markup, html};
use serde::Deserialize;

use crate::action::find_compaction;
use crate::composition::speaker;
use crate::page::PageError;
use crate::page::layout::Layout;
use crate::text::{count, encode, group_digits, visible};
use crate::{Dashboard, Viewer};

/// How many characters of an entry stand on a page.
const PAGE: usize = 60_000;

/// What the address asks for: a place of a compaction's input, or a pointer.
#[derive(Debug, Deserialize)]
pub(crate) struct EntryQuery {
    name: Option<String>,
    receipt: Option<String>,
    at: Option<usize>,
    pointer: Option<String>,
    /// The page of its text.
    #[serde(default)]
    page: usize,
}

/// What is shown of an entry.
struct WholeEntry {
    title: String,
    /// Who says it, through which tool, about which file, at what cost.
    source: String,
    session: String,
    text: String,
    /// The address without the page of its text.
    address: String,
}

/// Shows an entry.
pub(crate) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<EntryQuery>,
) -> Result<Markup, PageError> {
    let entry = find_entry(&dashboard, &viewer, &query).await?;
    Ok(render(&dashboard, &entry, query.page))
}

async fn find_entry(
    dashboard: &Dashboard,
    viewer: &Viewer,
    query: &EntryQuery,
) -> Result<WholeEntry, PageError> {
    if let Some(pointer) = &query.pointer {
        return find_pointed(dashboard, viewer, pointer).await;
    }
    let (Some(name), Some(receipt), Some(at)) = (&query.name, &query.receipt, query.at) else {
        return Err(PageError::not_found("the entry"));
    };
    let record = find_compaction(dashboard, viewer, name, receipt).await?;
    let reading = dashboard
        .compact
        .read_compaction(&record.receipt_id)
        .await?;
    let text = reading.text(at);
    let (session, id) = (encode(name), encode(receipt));
    Ok(WholeEntry {
        title: format!("Entry {} of what went in", group_digits(at as u64 + 1)),
        source: describe_source(&reading, at),
        session: name.clone(),
        text: text.ok_or_else(|| PageError::not_found(&format!("entry {at}")))?,
        address: format!("/entry?name={session}&receipt={id}&at={at}"),
    })
}

fn describe_source(reading: &CompactionReading, at: usize) -> String {
    let subjects = reading.subjects();
    let Some(subject) = subjects.get(at) else {
        return String::new();
    };
    let mut parts = vec![speaker(subject).to_owned()];
    parts.extend(subject.tool.clone());
    parts.extend(subject.path.clone());
    parts.push(count(reading.entry_tokens(at).0, "token", "tokens"));
    parts.join(" · ")
}

async fn find_pointed(
    dashboard: &Dashboard,
    viewer: &Viewer,
    pointer: &str,
) -> Result<WholeEntry, PageError> {
    let entry = dashboard
        .compact
        .expand(pointer, SecretDisplay::Redacted)
        .await?;
    if !viewer.may_see(&entry.session_id) {
        return Err(PageError::not_found(pointer));
    }
    Ok(WholeEntry {
        title: format!("Entry #{}", pointer.rsplit('#').next().unwrap_or_default()),
        source: entry.role.as_str().to_owned(),
        session: entry.session_id.clone(),
        text: entry.text(),
        address: format!("/entry?pointer={}", encode(pointer)),
    })
}

fn render(dashboard: &Dashboard, entry: &WholeEntry, page: usize) -> Markup {
    let all = entry.text.chars().count();
    let first = page.saturating_mul(PAGE);
    let shown: String = entry.text.chars().skip(first).take(PAGE).collect();
    let last = (first + PAGE).min(all);
    let address = |page: usize| dashboard.link(&format!("{}&page={page}", entry.address));
    let body = html! {
        p.source { (visible(&entry.source)) }
        pre.entry dir="auto" tabindex="0" role="region" aria-label="Text of the entry" { (visible(&shown)) }
        @if all > PAGE {
            nav.pages aria-label="Parts of the entry" {
                @if page > 0 { a rel="prev" href=(address(page - 1)) { "← Before" } }
                span { "characters " (group_digits(first as u64 + 1)) "–" (group_digits(last as u64)) " of " (group_digits(all as u64)) }
                @if last < all { a rel="next" href=(address(page + 1)) { "After →" } }
            }
        }
    };
    let session = dashboard.link(&format!("/session?name={}", encode(&entry.session)));
    let layout = Layout::new(dashboard, &entry.title).below(visible(&entry.session), session);
    layout.without_updates().page(&body)
}
