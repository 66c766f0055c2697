//! A session: how full its window is, what each call was sent, what filled the window, and every compaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Query, State};
use compact::Error;
use compact::chart::{ChartSize, SessionChart};
use compact::message::EntryHash;
use compact::overview::{CompactionReading, ListedSession, SessionCurve, SessionSource};
use compact::spending::{ColdResume, SpendingQuery, SpendingReport};
use compact::store::CompactionRecord;
use compact::token::Tokens;
use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use crate::composition::{Composition, LargeEntry, WindowPart, speaker};
use crate::digest::SessionDigest;
use crate::page::PageError;
use crate::page::chart::{pressure_bar, share_bar};
use crate::page::compaction_table::{compaction_address, is_branch, render_compactions};
use crate::page::layout::{Layout, action_button};
use crate::text::{count, dollars, encode, foreign, group_digits, minute, percent, time_ago};
use crate::{ActionMode, Dashboard, Viewer};

/// How many characters of an entry are shown in a row.
const OPENING: usize = 160;
/// How many of the largest entries are shown at once.
const LARGEST_OPEN: usize = 5;

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
    let state = dashboard.compact.describe_session(name).await?;
    let source = dashboard.compact.session_source(name).await?;
    if state.is_none() && source.is_none() {
        return Err(PageError::not_found(name));
    }
    let facts = SessionFacts {
        spent: read_spending(dashboard, name).await,
        // An archive that cannot be read costs the curve and the parts, not the page.
        digest: dashboard
            .digests
            .digest_of(&dashboard.compact, &records)
            .await,
        now: dashboard.compact.clock().now(),
        state,
        records,
    };
    let body = html! {
        @if let Some(source) = &source { (render_source(dashboard, name, source)) }
        @if let Some(state) = &facts.state { (render_state(dashboard, state, &facts)) }
        @match facts.records.last() {
            Some(latest) => (render_records(dashboard, latest, &facts).await?),
            None => p { "Nothing was compacted in it yet. What fills its window is shown as soon as it is." },
        }
    };
    let notice = dashboard.notices.take(query.done, name);
    let layout = Layout::new(dashboard, name).with_notice(notice.as_deref());
    let layout = layout.below("Sessions".to_owned(), dashboard.link("/"));
    Ok(layout.page(&body))
}

/// What is known of a session.
struct SessionFacts {
    records: Vec<CompactionRecord>,
    state: Option<ListedSession>,
    digest: Result<Arc<SessionDigest>, Error>,
    spent: SpendingReport,
    now: Timestamp,
}

impl SessionFacts {
    /// Returns the window that its requests were counted against, or else that of its model.
    fn window(&self, dashboard: &Dashboard) -> u64 {
        let known = self.state.as_ref().filter(|state| state.model.is_some());
        let model = self
            .digest
            .as_ref()
            .ok()
            .and_then(|d| d.curve.model.clone());
        let tokens = match known {
            Some(state) => state.window.tokens,
            None => dashboard.compact.window(model.as_deref()).tokens,
        };
        tokens.0.max(1)
    }

    /// Returns how full the window is, and when that was counted.
    fn tokens_now(&self) -> Option<(u64, &'static str)> {
        let state = self.state.as_ref()?;
        if let Some(request) = &state.request {
            return Some((request.tokens.0, "with the last request and its answer"));
        }
        if let Some(tokens) = state.tokens_now() {
            return Some((tokens.0, "after the last compaction"));
        }
        let latest = self.records.last();
        if let Some(state) = latest.filter(|record| is_branch(record)) {
            let tokens = state.receipt.tokens_before()?;
            return Some((tokens.0, "before the compaction that was undone"));
        }
        let last = self.digest.as_ref().ok()?.curve.calls.last()?;
        Some((last.tokens.0, "with the last call that was copied"))
    }
}

/// Reads from the journal what the requests and compactions of a session cost.
async fn read_spending(dashboard: &Dashboard, name: &str) -> SpendingReport {
    let (compact, name) = (dashboard.compact.clone(), name.to_owned());
    let read = tokio::task::spawn_blocking(move || {
        compact.spending(&SpendingQuery {
            session: Some(&name),
            ..SpendingQuery::default()
        })
    });
    read.await.unwrap_or_default()
}

/// Shows what is on record of a session.
async fn render_records(
    dashboard: &Dashboard,
    latest: &CompactionRecord,
    facts: &SessionFacts,
) -> Result<Markup, PageError> {
    let compact = &dashboard.compact;
    let protected = compact.protected_entries(&latest.session_id).await?;
    let reading = compact.read_compaction(&latest.receipt_id).await;
    Ok(html! {
        @match &facts.digest {
            Ok(digest) => (render_curve(dashboard, &digest.curve, facts)),
            Err(error) => p.notice.bad { "The original cannot be read: " (error) "." },
        }
        (render_compactions(dashboard, &facts.records, &facts.spent.compactions, facts.now))
        @if let (Ok(reading), Ok(digest)) = (&reading, &facts.digest) {
            (render_window(dashboard, latest, reading, &digest.rules, &protected))
        }
    })
}

/// Shows the gauge and what there is to do.
fn render_state(dashboard: &Dashboard, state: &ListedSession, facts: &SessionFacts) -> Markup {
    let window = facts.window(dashboard);
    let (spent, now) = (&facts.spent, facts.now);
    let digest = facts.digest.as_ref().ok();
    let model = state.model.as_ref();
    let model = model.or(digest.and_then(|digest| digest.curve.model.as_ref()));
    html! {
        section.state aria-label="State" {
            @if let Some((tokens, since)) = facts.tokens_now() {
                @let share = tokens as f64 / window as f64;
                div.gauge {
                    p.figure { strong { (group_digits(tokens)) } " of " (group_digits(window)) " tokens" }
                    (pressure_bar(share, &format!("{} of the window", percent(share))))
                    p.quiet { (percent(share)) " of the window " (since) }
                }
            }
            @if let Some(resume) = spent.resumes.first() { (render_resume(resume)) }
            (render_failure(dashboard, state, now))
            dl.facts {
                div { dt { "Model" } dd { @match model { Some(model) => (foreign(model)), None => "not named" } } }
                div { dt { "Compactions" } dd { (group_digits(state.info.compactions)) } }
                @if let Some(digest) = digest.filter(|digest| digest.curve.entries > 0) {
                    div { dt { "Calls archived" } dd { (group_digits(digest.curve.calls.len() as u64)) } }
                    div { dt { "Entries" } dd { (group_digits(digest.curve.entries as u64)) } }
                }
                @if spent.all.requests > 0 {
                    div { dt { "Cost so far" } dd { (dollars(spent.all.cost_usd)) ", " (count(spent.all.requests, "request", "requests")) } }
                    div { dt { "In the last hour" } dd { (dollars(spent.hour.cost_usd)) } }
                }
                @if let Some(format) = &state.info.format { div { dt { "Format" } dd { (format) } } }
                div { dt { "Last" } dd { (time_ago(state.info.last_at.as_deref(), now)) } }
            }
            @if !facts.records.is_empty() { (render_actions(dashboard, state)) }
        }
    }
}

/// Shows what the next message costs, before somebody sends it.
fn render_resume(resume: &ColdResume) -> Markup {
    html! {
        p #next-message {
            @match resume.seconds_left {
                0 => { "The provider’s cache has let it go: the next message costs " strong { (dollars(resume.cold_usd)) }
                    ", " (dollars(resume.warm_usd)) " had it come in time." },
                left => { "The next message costs " strong { (dollars(resume.warm_usd)) } " while the provider’s cache is warm, for "
                    (left / 60) ":" (format!("{:02}", left % 60)) " min, and " strong { (dollars(resume.cold_usd)) } " once it is cold." },
            }
        }
    }
}

/// Shows a compaction that came to nothing, with the way to try it again.
fn render_failure(dashboard: &Dashboard, state: &ListedSession, now: Timestamp) -> Markup {
    let fields = [("name", state.info.session_id.as_str())];
    html! {
        @if let Some(failed) = &state.failed {
            div.notice.warning role="alert" {
                p { "The last compaction failed, " (time_ago(Some(&failed.at), now)) ", at "
                    (count(failed.tokens, "token", "tokens")) (explain_failure(&failed.outcome)) ". Nothing was changed." }
                (action_button(dashboard, "/do/retry", "Retry", &fields))
            }
        }
    }
}

/// Returns why an attempt came to nothing, in words; nothing where it is not known.
fn explain_failure(outcome: &str) -> &'static str {
    match outcome {
        "insufficient" => ": what must stay leaves the trigger reached",
        "does_not_fit" => ": what must stay does not fit",
        "store_failed" => ": the store could not be written",
        _ => "",
    }
}

/// Shows what there is to do with a session.
fn render_actions(dashboard: &Dashboard, state: &ListedSession) -> Markup {
    let name = state.info.session_id.as_str();
    let to = |page: &str| dashboard.link(&format!("/{page}?name={}", encode(name)));
    html! {
        div.actions {
            @if dashboard.actions == ActionMode::Allowed {
                form.action.inline method="post" action=(dashboard.link("/do/compact")) {
                    input type="hidden" name="token" value=(dashboard.token.as_str());
                    input type="hidden" name="name" value=(name);
                    button.first type="submit" { "Compact now" }
                    span.pair {
                        label for="budget" { "to at most" }
                        input #budget.short type="text" inputmode="numeric" name="budget" placeholder="the policy’s" aria-describedby="budget-unit";
                        span #budget-unit { "tokens" }
                    }
                }
            }
            // A copy that nobody compacted has no summary to go on from.
            @if state.info.compactions > 0 {
                a.button href=(to("new")) { "Start New Session…" }
                a.button href=(to("ledger")) { "What it remembers" }
            }
            a.button href=(to("original")) download { "Download the original" }
        }
        form.search role="search" aria-label="In this session" action=(dashboard.link("/")) {
            input type="hidden" name="session" value=(name);
            label for="q" { "Search what was said in this session" }
            div.field { input #q type="search" name="q" autocomplete="off"; button type="submit" { "Search" } }
        }
    }
}

/// Shows where a session comes from, and what its agent should be given.
fn render_source(dashboard: &Dashboard, own: &str, source: &SessionSource) -> Markup {
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
                    p { "To go on from here, download the state before, give it to your agent as its history, and call the session "
                        code { (foreign(own)) } ": the first argument of " code { "preflight" } " in Python, or "
                        code { "compactctl compact --session" } "." }
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

fn render_curve(dashboard: &Dashboard, curve: &SessionCurve, facts: &SessionFacts) -> Markup {
    let latest = facts.records.last();
    let since = latest.and_then(|record| record.created_at.parse::<Timestamp>().ok());
    let requests = facts.spent.requests.iter();
    let (before, later): (Vec<_>, Vec<_>) = requests.partition(|request| Some(request.at) <= since);
    if curve.calls.is_empty() && later.is_empty() {
        return html! {};
    }
    let window = facts.window(dashboard);
    let mut chart = SessionChart::from_session(curve, &facts.records, Tokens(window));
    let records = facts.records.iter();
    let made = records.filter(|record| record.receipt.tokens_after().is_some());
    for (mark, record) in chart.marks.iter_mut().zip(made) {
        mark.address = Some(compaction_address(dashboard, record));
    }
    // Where every call was counted by its provider, nothing is estimated.
    let is_counted = before.len() == chart.calls.len();
    if is_counted {
        chart.calls = before.iter().map(|request| request.prompt.0).collect();
    }
    if !later.is_empty() {
        chart.last_view = None;
        let prompts = later.iter().map(|request| request.prompt.0);
        chart.calls.extend(prompts);
    }
    let calls = curve.calls.iter();
    let reported = match is_counted {
        true => chart.calls.len(),
        false => calls.filter(|call| call.usage.is_some()).count() + later.len(),
    };
    html! {
        section aria-labelledby="calls" {
            h2 #calls { "Tokens sent with each call" }
            figure {
                div.wide { (PreEscaped(chart.to_svg(ChartSize::Wide))) }
                div.narrow { (PreEscaped(chart.to_svg(ChartSize::Narrow))) }
                figcaption {
                    @match reported {
                        all if all == chart.calls.len() => "As the provider reported it.",
                        0 => "Estimated from the archived original.",
                        some => { (count(some as u64, "call", "calls")) " as the provider reported it, the others estimated." },
                    }
                    @if !chart.marks.is_empty() { " A numbered line is a compaction: follow it to see what it did." }
                    @if chart.calls.iter().all(|sent| sent.saturating_mul(3) < window) {
                        " The window of " (group_digits(window)) " tokens is far above."
                    }
                }
            }
        }
    }
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
            p.quiet { (count(parts.total, "token", "tokens"))
                @match is_branch(latest) {
                    true => " before the compaction that was undone",
                    false => { " before the last compaction, " (minute(&latest.created_at)) },
                }
            }
            div.parts {
                (render_parts("By who spoke", &parts.roles, parts.total))
                (render_parts("By tool", &parts.tools, parts.total))
                (render_parts("By file", &parts.files, parts.total))
                (render_parts("By rule", rules, parts.total))
            }
            h3 { "The largest entries" }
            (render_largest(dashboard, latest, reading, &parts.largest, protected))
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

/// Shows a few of the largest entries, and the rest on demand.
fn render_largest(
    dashboard: &Dashboard,
    latest: &CompactionRecord,
    reading: &CompactionReading,
    entries: &[LargeEntry],
    protected: &BTreeSet<EntryHash>,
) -> Markup {
    let (first, rest) = entries.split_at(entries.len().min(LARGEST_OPEN));
    let show = |entry: &LargeEntry| render_large(dashboard, latest, reading, entry, protected);
    html! {
        ol.large { @for entry in first { (show(entry)) } }
        @if !rest.is_empty() {
            details #more-entries {
                summary { (count(rest.len() as u64, "more", "more")) }
                ol.large start=(first.len() + 1) { @for entry in rest { (show(entry)) } }
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
