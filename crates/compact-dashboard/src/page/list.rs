//! The first page: every session, and everything archived by words.

use std::sync::Arc;

use axum::extract::{Query, State};
use compact::overview::{
    ListedSession, SessionEvent, SessionList, SessionListQuery, SessionOrigin,
};
use compact::recall::{RecallQuery, SearchHit};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use crate::page::PageError;
use crate::page::chart::pressure_bar;
use crate::page::layout::Layout;
use crate::text::{count, encode, foreign, group_digits, percent, short_number, time_ago};
use crate::{Dashboard, Viewer};

/// How many sessions a page shows.
const PAGE: usize = 50;
/// How many entries a search shows.
const HITS: usize = 12;

/// What the address asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListQuery {
    /// Words to look for, in names and in everything archived.
    q: String,
    /// The session that is searched; all where it is empty.
    session: String,
    /// The page, from 0.
    page: usize,
}

/// Shows the list.
pub(crate) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<ListQuery>,
) -> Result<Markup, PageError> {
    let dashboard = &*dashboard;
    let wanted = SessionListQuery {
        prefix: &viewer.scope,
        contains: if query.session.is_empty() {
            &query.q
        } else {
            &query.session
        },
        skip: query.page.saturating_mul(PAGE),
        limit: PAGE,
    };
    let list = dashboard.compact.list_sessions(&wanted).await?;
    let hits = match query.q.trim() {
        "" => Vec::new(),
        words => find_entries(dashboard, &viewer, words, &query.session).await?,
    };
    let now = dashboard.compact.clock().now();
    let body = html! {
        (search_form(dashboard, &query.q))
        @if !query.q.trim().is_empty() { (render_hits(dashboard, &hits)) }
        (render_sessions(dashboard, &list, &query, now))
    };
    let title = if query.q.is_empty() {
        "Sessions"
    } else {
        "Search"
    };
    Ok(Layout::new(dashboard, title).page(&body))
}

/// Finds entries by their words; where nothing was archived there is nothing to find.
pub(crate) async fn find_entries(
    dashboard: &Dashboard,
    viewer: &Viewer,
    words: &str,
    session: &str,
) -> Result<Vec<SearchHit>, PageError> {
    let query = RecallQuery {
        text: words,
        session_id: (!session.is_empty()).then_some(session),
        // Those of others are left out below.
        limit: if viewer.scope.is_empty() {
            HITS
        } else {
            HITS * 8
        },
        ..RecallQuery::default()
    };
    let found = match dashboard.compact.search(&query).await {
        Err(compact::Error::NothingArchived(_)) => return Ok(Vec::new()),
        found => found?,
    };
    let mut hits = found.hits;
    hits.retain(|hit| viewer.may_see(&hit.session_id));
    hits.truncate(HITS);
    Ok(hits)
}

fn search_form(dashboard: &Dashboard, words: &str) -> Markup {
    html! {
        form.search role="search" action=(dashboard.link("/")) {
            label for="q" { "Search names, and everything that was ever said" }
            div.field {
                input #q type="search" name="q" value=(words) placeholder="which port serves the metrics" autocomplete="off";
                button type="submit" { "Search" }
            }
        }
    }
}

/// Shows what a search found, each with the way to its session.
pub(crate) fn render_hits(dashboard: &Dashboard, hits: &[SearchHit]) -> Markup {
    html! {
        section aria-labelledby="found" {
            h2 #found { "Said" }
            @if hits.is_empty() { p.quiet { "Nothing archived answers these words." } }
            ol.hits {
                @for hit in hits {
                    li {
                        p.source {
                            a href=(dashboard.link(&format!("/session?name={}", encode(&hit.session_id)))) { (foreign(&hit.session_id)) }
                            " · " (hit.role.as_str())
                            " · " a href=(dashboard.link(&format!("/entry?pointer={}", encode(&hit.pointer)))) { "whole entry" }
                        }
                        blockquote { (foreign(&hit.snippet)) }
                    }
                }
            }
        }
    }
}

fn render_sessions(
    dashboard: &Dashboard,
    list: &SessionList,
    query: &ListQuery,
    now: Timestamp,
) -> Markup {
    let first = query.page.saturating_mul(PAGE);
    html! {
        section aria-labelledby="sessions" {
            h2 #sessions { (count(list.total as u64, "session", "sessions")) }
            @if list.sessions.is_empty() { (render_nothing(query)) }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Table of sessions" {
                    table.sessions {
                        thead { tr {
                            th scope="col" { "Session" }
                            th scope="col" { "From" }
                            th scope="col" { "Model" }
                            th.number scope="col" { "Window" }
                            th.number scope="col" { "Compactions" }
                            th.number scope="col" { "Kept" }
                            th.number scope="col" { "Last" }
                        } }
                        tbody { @for listed in &list.sessions { (render_row(dashboard, listed, now)) } }
                    }
                }
                (render_pages(dashboard, list.total, first, query))
            }
        }
    }
}

fn render_nothing(query: &ListQuery) -> Markup {
    html! {
        @if query.q.is_empty() {
            p.lead { "Nothing has been compacted yet." }
            p { "Run " code { "compactctl compact session.jsonl" } ", start an agent with " code { "compactctl launch" }
                ", or install a hook with " code { "compactctl hook install" } ". What happens shows up here by itself." }
        } @else {
            p.quiet { "No session is called so." }
        }
    }
}

fn render_row(dashboard: &Dashboard, listed: &ListedSession, now: Timestamp) -> Markup {
    let info = &listed.info;
    let address = dashboard.link(&format!("/session?name={}", encode(&info.session_id)));
    html! {
        tr {
            th scope="row" { a href=(address) { (foreign(&info.session_id)) } }
            td.from data-label="From" { (source_name(listed)) }
            td data-label="Model" { @match &listed.model { Some(model) => (foreign(model)), None => span.quiet { "–" } } }
            td.number data-label="Window" { (render_pressure(listed)) }
            td.number data-label="Compactions" {
                @if listed.last_event() == SessionEvent::Copy { span.quiet { "–" } } @else { (group_digits(info.compactions)) }
            }
            td.number data-label="Kept" { @match listed.retention { Some(share) => (percent(share)), None => span.quiet { "–" } } }
            td.number data-label="Last" { (render_last_event(listed, now)) }
        }
    }
}

/// Shows what happened last, and when.
fn render_last_event(listed: &ListedSession, now: Timestamp) -> Markup {
    let words = match listed.last_event() {
        SessionEvent::Request => html! { span.quiet { "request" } },
        SessionEvent::Compaction => html! { span.quiet { "compacted" } },
        SessionEvent::Failure => html! { span.badge.bad { "compaction failed" } },
        SessionEvent::Copy => html! { span.quiet { "copied" } },
        SessionEvent::Start => html! { span.quiet { "started" } },
    };
    html! { span.lines { (time_ago(listed.info.last_at.as_deref(), now)) (words) } }
}

/// Shows how full the window is now.
fn render_pressure(listed: &ListedSession) -> Markup {
    let Some(tokens) = listed.tokens_now() else {
        return html! { span.quiet { "–" } };
    };
    let window = listed.window.tokens.0.max(1);
    let share = tokens.0 as f64 / window as f64;
    let label = format!(
        "{} of {} tokens, {}",
        group_digits(tokens.0),
        group_digits(window),
        percent(share)
    );
    html! {
        span.pressure title=(label) {
            span { (short_number(tokens.0)) span.quiet { " of " (short_number(window)) } }
            (pressure_bar(share, &label))
        }
    }
}

/// Returns where a session came from, in words.
pub(crate) fn source_name(listed: &ListedSession) -> String {
    match listed.origin {
        SessionOrigin::Hook => "hook".to_owned(),
        SessionOrigin::Run => "run".to_owned(),
        SessionOrigin::Compaction => match listed.info.format.as_deref() {
            None if listed.request.is_some() => "live session".to_owned(),
            None => "–".to_owned(),
            Some("entries") => "live session".to_owned(),
            Some(format) => format.replace(['-', '_'], " "),
        },
    }
}

fn render_pages(dashboard: &Dashboard, total: usize, first: usize, query: &ListQuery) -> Markup {
    let address = |page: usize| dashboard.link(&format!("/?q={}&page={page}", encode(&query.q)));
    let last = (first + PAGE).min(total);
    html! {
        @if total > PAGE {
            nav.pages aria-label="Pages of the list" {
                @if query.page > 0 { a rel="prev" href=(address(query.page - 1)) { "← Newer" } }
                span { (group_digits(first as u64 + 1)) "–" (group_digits(last as u64)) " of " (group_digits(total as u64)) }
                @if last < total { a rel="next" href=(address(query.page + 1)) { "Older →" } }
            }
        }
    }
}
