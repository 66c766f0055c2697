//! A session: how full its window is, what each call was sent, what filled the window, and every compaction.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::{Query, State};
use compact::message::EntryHash;
use compact::overview::{CompactionReading, SessionCurve, SessionSource};
use compact::policy::CompactionCause;
use compact::policy::economy::CacheWarmth;
use compact::receipt::Retention;
use compact::spending::{CompactionCost, SpendingQuery};
use compact::store::{CompactionRecord, StoredReceipt};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::composition::{Composition, LargeEntry, WindowPart, speaker};
use crate::page::PageError;
use crate::page::chart::{CurveMark, session_curve, share_bar};
use crate::page::layout::{Layout, action_button};
use crate::page::money::render_balance;
use crate::text::{count, dollars, encode, foreign, group_digits, minute, percent, time_ago};
use crate::{ActionMode, Dashboard, Viewer};

/// How many characters of an entry are shown in a row.
const OPENING: usize = 160;
/// How many compactions a page lists, the newest first.
const ROWS: usize = 100;

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionQuery {
    name: String,
    done: Option<u64>,
}

/// Shows a session.
pub(crate) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<SessionQuery>,
) -> Result<Markup, PageError> {
    let dashboard = &*dashboard;
    let name = query.name.as_str();
    if !viewer.may_see(name) {
        return Err(PageError::not_found(name));
    }
    let records = dashboard.compact.session_records(name).await?;
    let source = dashboard.compact.session_source(name).await?;
    let Some(latest) = records.last() else {
        let source = source.ok_or_else(|| PageError::not_found(name))?;
        return Ok(render_empty(dashboard, &query, &source));
    };
    let protected = dashboard.compact.protected_entries(name).await?;
    // An archive that cannot be read costs the curve and the parts, not the page.
    let digest = dashboard
        .digests
        .digest_of(&dashboard.compact, &records)
        .await;
    let curve = digest.as_ref().map(|digest| &digest.curve);
    let rules = digest
        .as_ref()
        .map_or(&[][..], |digest| digest.rules.as_slice());
    let reading = dashboard.compact.read_compaction(&latest.receipt_id).await;
    let now = dashboard.compact.clock().now();
    let costs = find_costs(dashboard, name).await;
    let body = html! {
        @if let Some(source) = &source { (render_source(dashboard, source)) }
        (render_state(dashboard, latest, curve.ok(), records.len(), now))
        @match curve {
            Ok(curve) => (render_curve(dashboard, curve, &records)),
            Err(error) => p.notice.bad { "The original cannot be read: " (error) "." },
        }
        @if let Ok(reading) = &reading { (render_window(dashboard, latest, reading, rules, &protected)) }
        (render_compactions(dashboard, &records, &costs, now))
    };
    let notice = dashboard.notices.find(query.done);
    let layout = Layout::new(dashboard, name).with_notice(notice.as_deref());
    let layout = layout.below("Sessions".to_owned(), dashboard.link("/"));
    Ok(layout.page(&body))
}

/// Reads from the journal what the compactions of a session cost and saved.
async fn find_costs(dashboard: &Dashboard, name: &str) -> HashMap<String, CompactionCost> {
    let (compact, name) = (dashboard.compact.clone(), name.to_owned());
    let read = tokio::task::spawn_blocking(move || {
        compact.spending(&SpendingQuery {
            session: Some(&name),
            ..SpendingQuery::default()
        })
    });
    read.await.unwrap_or_default().compactions
}

/// Shows the gauge and what there is to do.
fn render_state(
    dashboard: &Dashboard,
    latest: &CompactionRecord,
    curve: Option<&SessionCurve>,
    compactions: usize,
    now: Timestamp,
) -> Markup {
    let receipt = &latest.receipt;
    let model = receipt
        .model()
        .or(curve.and_then(|curve| curve.model.as_deref()));
    let window = dashboard.compact.window(model);
    let fixed = number_field(receipt, "tokens_fixed");
    let after = receipt.tokens_after().map(|tokens| tokens.0 + fixed);
    let share = after.map(|after| after as f64 / window.tokens.0.max(1) as f64);
    html! {
        section.state aria-label="State" {
            @if let (Some(after), Some(share)) = (after, share) {
                div.gauge {
                    p.figure { strong { (group_digits(after)) } " of " (group_digits(window.tokens.0)) " tokens" }
                    (share_bar(share, &format!("{} of the window", percent(share))))
                    p.quiet { (percent(share)) " of the window after the last compaction" }
                }
            }
            dl.facts {
                div { dt { "Model" } dd { @match model { Some(model) => (foreign(model)), None => "not named" } } }
                div { dt { "Compactions" } dd { (group_digits(compactions as u64)) } }
                @if let Some(curve) = curve {
                    div { dt { "Calls" } dd { (group_digits(curve.calls.len() as u64)) } }
                    div { dt { "Entries" } dd { (group_digits(curve.entries as u64)) } }
                }
                div { dt { "Format" } dd { (latest.format) } }
                div { dt { "Last" } dd { (time_ago(Some(&latest.created_at), now)) } }
            }
            (render_actions(dashboard, &latest.session_id))
        }
    }
}

/// Shows what there is to do with a session.
fn render_actions(dashboard: &Dashboard, name: &str) -> Markup {
    let to = |page: &str| dashboard.link(&format!("/{page}?name={}", encode(name)));
    html! {
        div.actions {
            @if dashboard.actions == ActionMode::Allowed {
                form.action.inline method="post" action=(dashboard.link("/do/compact")) {
                    input type="hidden" name="token" value=(dashboard.token.as_str());
                    input type="hidden" name="name" value=(name);
                    button.first type="submit" { "Compact now" }
                    label for="budget" { "to at most" }
                    input #budget.short type="text" inputmode="numeric" name="budget" placeholder="the policy’s" aria-describedby="budget-unit";
                    span #budget-unit { "tokens" }
                }
            }
            a.button href=(to("new")) { "Start New Session…" }
            a.button href=(to("ledger")) { "What it remembers" }
            a.button href=(to("original")) download { "Download the original" }
        }
        form.search role="search" aria-label="In this session" action=(dashboard.link("/")) {
            input type="hidden" name="session" value=(name);
            label for="q" { "Search what was said in this session" }
            div.field { input #q type="search" name="q" autocomplete="off"; button type="submit" { "Search" } }
        }
    }
}

/// Shows a session that has nothing on record but where it comes from.
fn render_empty(dashboard: &Dashboard, query: &SessionQuery, source: &SessionSource) -> Markup {
    let notice = dashboard.notices.find(query.done);
    let body = html! {
        (render_source(dashboard, source))
        p { "Nothing was compacted in it yet." }
    };
    let layout = Layout::new(dashboard, &query.name).with_notice(notice.as_deref());
    let layout = layout.below("Sessions".to_owned(), dashboard.link("/"));
    layout.page(&body)
}

/// Shows where a session comes from, and what its agent should be given.
fn render_source(dashboard: &Dashboard, source: &SessionSource) -> Markup {
    let (session, receipt) = match source {
        SessionSource::Branch { session, before } => (session, before),
        SessionSource::Start { session, receipt } => (session, receipt),
    };
    let (name, id) = (encode(session), encode(receipt));
    let compaction = dashboard.link(&format!("/compaction?name={name}&receipt={id}"));
    html! {
        section.source-note aria-label="Where it comes from" {
            @match source {
                SessionSource::Branch { .. } => {
                    p { "This is " a href=(dashboard.link(&format!("/session?name={name}"))) { (foreign(session)) }
                        " as it was before " a href=(compaction) { "a compaction" } "." }
                    p.actions { a.button.first href=(dashboard.link(&format!("/original?name={name}&receipt={id}"))) download { "Download the state before" } }
                },
                SessionSource::Start { .. } => {
                    p { "It begins with what " a href=(dashboard.link(&format!("/session?name={name}"))) { (foreign(session)) }
                        " knew after " a href=(compaction) { "a compaction" } "." }
                    p.actions { a.button.first href=(dashboard.link(&format!("/carried?name={name}"))) download { "Download the first message" } }
                },
            }
        }
    }
}

fn number_field(receipt: &StoredReceipt, field: &str) -> u64 {
    let value = receipt.as_json().get(field);
    value.and_then(Value::as_u64).unwrap_or(0)
}

fn render_curve(
    dashboard: &Dashboard,
    curve: &SessionCurve,
    records: &[CompactionRecord],
) -> Markup {
    if curve.calls.is_empty() {
        return html! {};
    }
    let latest = records.last();
    let model = latest.and_then(|record| record.receipt.model());
    let window = dashboard.compact.window(model.or(curve.model.as_deref()));
    let marks = curve_marks(dashboard, curve, records);
    let view = latest.and_then(|record| {
        let after = record.receipt.tokens_after()?;
        Some(after.0 + number_field(&record.receipt, "tokens_fixed"))
    });
    let reported = curve
        .calls
        .iter()
        .filter(|call| call.usage.is_some())
        .count();
    html! {
        section aria-labelledby="calls" {
            h2 #calls { "Tokens sent with each call" }
            figure {
                (session_curve(curve, view, window.tokens.0, &marks))
                figcaption {
                    @match reported {
                        0 => "Estimated from the archived original.",
                        all if all == curve.calls.len() => "As the provider reported it.",
                        some => { (group_digits(some as u64)) " calls as the provider reported them, the others estimated." },
                    }
                    " A numbered line is a compaction: follow it to see what it did."
                }
            }
        }
    }
}

/// Returns a mark for each compaction; one after which no call was archived stands at the end.
fn curve_marks(
    dashboard: &Dashboard,
    curve: &SessionCurve,
    records: &[CompactionRecord],
) -> Vec<CurveMark> {
    let made = records
        .iter()
        .enumerate()
        .filter(|(_, record)| record.receipt.tokens_after().is_some());
    made.map(|(number, record)| {
        let seen = curve
            .calls
            .iter()
            .position(|call| call.compaction == Some(number));
        CurveMark {
            call: seen.unwrap_or(curve.calls.len()),
            address: compaction_address(dashboard, record),
            label: format!(
                "Compaction {}: {}",
                number + 1,
                token_change(&record.receipt)
            ),
        }
    })
    .collect()
}

/// Returns the address of a compaction's page.
pub(crate) fn compaction_address(dashboard: &Dashboard, record: &CompactionRecord) -> String {
    let (session, receipt) = (encode(&record.session_id), encode(&record.receipt_id));
    dashboard.link(&format!("/compaction?name={session}&receipt={receipt}"))
}

/// Returns tokens before and after, in words.
pub(crate) fn token_change(receipt: &StoredReceipt) -> String {
    let tokens = |tokens: Option<compact::token::Tokens>| {
        tokens.map_or_else(|| "–".to_owned(), |tokens| group_digits(tokens.0))
    };
    format!(
        "{} → {} tokens",
        tokens(receipt.tokens_before()),
        tokens(receipt.tokens_after())
    )
}

/// Shows what filled the window when it was compacted last.
fn render_window(
    dashboard: &Dashboard,
    latest: &CompactionRecord,
    reading: &CompactionReading,
    rules: &[WindowPart],
    protected: &BTreeSet<EntryHash>,
) -> Markup {
    let parts = Composition::of_input(reading);
    if parts.total == 0 {
        return html! {};
    }
    html! {
        section aria-labelledby="filled" {
            h2 #filled { "What filled the window" }
            p.quiet { (count(parts.total, "token", "tokens")) " before the last compaction, " (minute(&latest.created_at)) }
            div.parts {
                (render_parts("By who spoke", &parts.roles, parts.total))
                (render_parts("By tool", &parts.tools, parts.total))
                (render_parts("By file", &parts.files, parts.total))
                (render_parts("By rule", rules, parts.total))
            }
            h3 { "The largest entries" }
            ol.large { @for entry in &parts.largest { (render_large(dashboard, latest, reading, entry, protected)) } }
        }
    }
}

fn render_parts(title: &str, parts: &[WindowPart], total: u64) -> Markup {
    html! {
        @if !parts.is_empty() {
            div {
                h3 { (title) }
                ul.parts {
                    @for part in parts {
                        @let share = part.tokens as f64 / total.max(1) as f64;
                        li {
                            span.name { (foreign(&part.name)) }
                            span.number { (group_digits(part.tokens)) }
                            (share_bar(share, &format!("{} of the window", percent(share))))
                        }
                    }
                }
            }
        }
    }
}

fn render_large(
    dashboard: &Dashboard,
    latest: &CompactionRecord,
    reading: &CompactionReading,
    entry: &LargeEntry,
    protected: &BTreeSet<EntryHash>,
) -> Markup {
    let name = reading.entry_name(entry.at);
    let is_pinned = name.is_some_and(|name| protected.contains(&name));
    let at = entry.at.to_string();
    let fields = [
        ("name", latest.session_id.as_str()),
        ("receipt", latest.receipt_id.as_str()),
        ("at", at.as_str()),
    ];
    let (session, receipt) = (encode(&latest.session_id), encode(&latest.receipt_id));
    let address = dashboard.link(&format!(
        "/entry?name={session}&receipt={receipt}&at={}",
        entry.at
    ));
    html! {
        li {
            p.source {
                strong { (group_digits(entry.tokens)) " tokens" } " · " (speaker(&entry.subject))
                @if let Some(tool) = &entry.subject.tool { " · " (foreign(tool)) }
                @if let Some(path) = &entry.subject.path { " · " code { (foreign(path)) } }
            }
            p.opening { a href=(address) { (foreign(&reading.opening(entry.at, OPENING))) } }
            @if name.is_some() {
                @match is_pinned {
                    true => (action_button(dashboard, "/do/unpin", "Unpin", &fields)),
                    false => (action_button(dashboard, "/do/pin", "Pin", &fields)),
                }
            }
        }
    }
}

fn render_compactions(
    dashboard: &Dashboard,
    records: &[CompactionRecord],
    costs: &HashMap<String, CompactionCost>,
    now: Timestamp,
) -> Markup {
    let rows = records.iter().enumerate().rev().take(ROWS);
    html! {
        section aria-labelledby="compactions" {
            h2 #compactions { "Compactions" }
            div.scroll tabindex="0" role="region" aria-label="Table of compactions" {
                table.compactions {
                    thead { tr {
                        th scope="col" { "#" }
                        th scope="col" { "When" }
                        th scope="col" { "Why" }
                        th.number scope="col" { "Tokens" }
                        th.number scope="col" { "Kept of what mattered" }
                        th.number scope="col" { "Left to the summary" }
                        th.number scope="col" { "Cut" }
                        th.number scope="col" { "Put back" }
                        th.number scope="col" { "Took" }
                        th scope="col" { "Cache" }
                        th.number scope="col" { "Cost" }
                        th.number scope="col" { "Saved" }
                        th scope="col" { span.unseen { "Actions" } }
                    } }
                    tbody { @for (number, record) in rows { (render_compaction_row(dashboard, number, record, costs.get(&record.receipt_id), now)) } }
                }
            }
            @if records.len() > ROWS { p.quiet { "The newest " (ROWS) " of " (records.len()) "." } }
        }
    }
}

fn render_compaction_row(
    dashboard: &Dashboard,
    number: usize,
    record: &CompactionRecord,
    cost: Option<&CompactionCost>,
    now: Timestamp,
) -> Markup {
    let receipt = &record.receipt;
    let retention = receipt.retention();
    let cut = receipt
        .as_json()
        .pointer("/kept/clipped")
        .and_then(Value::as_u64);
    let fields = [
        ("name", record.session_id.as_str()),
        ("receipt", record.receipt_id.as_str()),
    ];
    html! {
        tr {
            th scope="row" { a href=(compaction_address(dashboard, record)) { (number + 1) } }
            td data-label="When" { (time_ago(Some(&record.created_at), now)) }
            @if let Some(origin) = receipt.origin() {
                td colspan="10" { "a copy that a " (origin) " left; nothing was compacted" }
            } @else {
                td data-label="Why" { (cost.and_then(|cost| cost.cause).map_or("–", name_cause)) }
                td.number data-label="Tokens" { (token_change(receipt)) }
                td.number data-label="Kept of what mattered" { (render_retention(retention.as_ref())) }
                td.number data-label="Left to the summary" { (group_digits(number_field(receipt, "pruned_count"))) }
                td.number data-label="Cut" { (group_digits(cut.unwrap_or(0))) }
                td.number data-label="Put back" { (group_digits(retention.as_ref().map_or(0, |r| r.repaired))) }
                td.number data-label="Took" { (receipt.elapsed_ms().map_or_else(|| "–".to_owned(), |ms| format!("{} ms", group_digits(ms)))) }
                (render_cost_cells(cost))
            }
            td.row-actions data-label="Do" {
                (action_button(dashboard, "/do/verify", "Verify", &fields))
                @if receipt.origin().is_none() { (action_button(dashboard, "/do/undo", "Undo", &fields)) }
            }
        }
    }
}

/// Shows what the cache was like, what the view cost, and what came of it.
fn render_cost_cells(cost: Option<&CompactionCost>) -> Markup {
    let warmth = cost
        .and_then(|cost| cost.warmth)
        .map(|warmth| match warmth {
            CacheWarmth::Warm => "warm",
            CacheWarmth::Cold => "cold",
            CacheWarmth::Unused => "not used",
        });
    html! {
        td data-label="Cache" { (warmth.unwrap_or("–")) }
        td.number data-label="Cost" { @match cost.and_then(|cost| cost.cost_usd) { Some(usd) => (dollars(usd)), None => "–" } }
        td.number data-label="Saved" {
            @match cost.and_then(|cost| Some((cost, cost.saved_usd?))) {
                Some((cost, usd)) => { (render_balance(usd)) " " span.quiet { "in " (count(cost.requests, "request", "requests")) } },
                None => "–",
            }
        }
    }
}

/// Returns why a compaction was made, in words.
fn name_cause(cause: CompactionCause) -> &'static str {
    match cause {
        CompactionCause::Threshold => "trigger reached",
        CompactionCause::TokensLeft => "few tokens left",
        CompactionCause::SoftThreshold => "ahead of the trigger",
        CompactionCause::Exceeded => "over the window",
        CompactionCause::Asked => "asked for",
        CompactionCause::Idle => "idle",
        CompactionCause::Overflow => "refused as too long",
        CompactionCause::Economy => "it pays",
    }
}

/// Shows the share of what mattered that the view still shows.
pub(crate) fn render_retention(retention: Option<&Retention>) -> Markup {
    let Some(retention) = retention else {
        return html! { span.quiet { "–" } };
    };
    html! {
        @match retention.share_kept() {
            Some(share) => { (percent(share)) " " span.quiet { (group_digits(retention.kept)) " of " (group_digits(retention.anchors)) } },
            None => span.quiet { "nothing to keep" },
        }
    }
}
