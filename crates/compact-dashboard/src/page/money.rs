//! Money and cache: what requests cost by project and week, what compactions saved or lost, what going on with a session
//! will cost, and what caches missed.

use compact::event::{CacheMiss, MissOrigin, PromptChange, PromptPart};
use compact::spending::{
    CacheLoss, ColdResume, ProjectWeek, SpendingQuery, SpendingReport, SpendingSum,
};
use jiff::Timestamp;
use maud::{Markup, html};

use crate::Dashboard;
use crate::page::PageError;
use crate::page::chart::stacked_bar;
use crate::page::layout::{Layout, section};
use crate::page::list::session_address;
use crate::text::{count, dollars, foreign, group_digits, percent, short_number, time_ago};
use crate::visit::{PlainAddress, Visit};

/// How many rows of projects and weeks, of sessions, and of misses are shown.
const WEEK_ROWS: usize = 60;
const RESUMES: usize = 12;
const MISSES: usize = 30;

/// Shows what was spent.
pub(crate) async fn show(visit: Visit<PlainAddress>) -> Result<Markup, PageError> {
    let dashboard = visit.dashboard;
    let compact = dashboard.compact.clone();
    let scope = visit.viewer.scope;
    let read = tokio::task::spawn_blocking(move || {
        compact.spending(&SpendingQuery {
            prefix: &scope,
            ..SpendingQuery::default()
        })
    });
    let report = read.await.unwrap_or_default();
    let now = dashboard.compact.clock().now();
    let body = match report.all.requests {
        0 => render_nothing(),
        _ => html! {
            (render_sums(&report))
            (render_weeks(&report.weeks))
            (render_resumes(&dashboard, &report.resumes, now))
            (render_misses(&dashboard, &report.misses, now))
        },
    };
    Ok(Layout::new(&dashboard, "Money and cache")
        .live_since(visit.seen)
        .page(&body))
}

fn render_nothing() -> Markup {
    html! {
        p.lead { "No request was counted yet." }
        p { "Requests are counted that go through " code { "compactctl serve" } " or " code { "compactctl launch" }
            ", and those that a program reports to its session." }
    }
}

/// Shows what the last hour cost, and all of it.
fn render_sums(report: &SpendingReport) -> Markup {
    let all = &report.all;
    let balance = all.saved_usd - all.lost_usd;
    html! {
        section.state aria-label="Sums" {
            p.figure #last-hour { strong { (dollars(report.hour.cost_usd)) } " in the last hour, "
                (count(report.hour.requests, "request", "requests")) }
            (render_shares(all))
            dl.facts {
                div { dt { "In eight weeks" } dd { (dollars(all.cost_usd)) ", " (count(all.requests, "request", "requests")) } }
                div { dt { "Answered" } dd { (count(all.usage.output_tokens, "token", "tokens")) } }
                div { dt { "Compactions saved" } dd { (dollars(all.saved_usd)) } }
                div { dt { "Compactions lost" } dd { (dollars(all.lost_usd)) } }
                div { dt { "Together" } dd { (render_balance(balance)) } }
                div { dt { "Cache misses cost" } dd { (dollars(all.missed_usd)) } }
            }
            @if all.unpriced > 0 {
                p.quiet { (count(all.unpriced, "request", "requests")) " to models without a known price: their tokens are counted, their dollars are not." }
            }
            p.quiet { "Tokens are as the providers counted them, dollars by list prices. A compaction is charged with writing its view to the cache, and credited with what each request after it "
                "no longer had to read; where too few followed, it lost money. Saved and lost are net, the one less the other." }
        }
    }
}

/// Shows an amount, a loss as one.
pub(crate) fn render_balance(amount: f64) -> Markup {
    match amount < 0.0 {
        true => html! { span.loss { (dollars(amount)) } },
        false => html! { (dollars(amount)) },
    }
}

/// Shows how much of all prompts came from a cache.
fn render_shares(sum: &SpendingSum) -> Markup {
    let usage = &sum.usage;
    let prompt = usage.prompt_tokens().0;
    let cached = usage.cache_read_tokens as f64 / prompt.max(1) as f64;
    let parts = [
        ("kept", usage.cache_read_tokens),
        ("cut", usage.cache_creation_tokens),
        ("dropped", usage.input_tokens),
    ];
    html! {
        (stacked_bar(&parts, &format!("{} of all prompt tokens were read from a cache", percent(cached))))
        ul.legend {
            li.kept { (count(usage.cache_read_tokens, "token", "tokens")) " from a cache, " (percent(cached)) }
            li.cut { (count(usage.cache_creation_tokens, "token", "tokens")) " written to one" }
            li.dropped { (count(usage.input_tokens, "token", "tokens")) " sent fresh" }
        }
    }
}

fn render_weeks(weeks: &[ProjectWeek]) -> Markup {
    let body = html! {
            div.scroll tabindex="0" role="region" aria-label="Table of projects and weeks" {
                table.money {
                    thead { tr {
                        th scope="col" { "Project" }
                        th scope="col" { "Week" }
                        th.number scope="col" { "Requests" }
                        th.number scope="col" { "Sent" }
                        th.number scope="col" { "Cached" }
                        th.number scope="col" { "Written" }
                        th.number scope="col" { "Answered" }
                        th.number scope="col" { "Cost" }
                        th.number scope="col" { "Saved" }
                        th.number scope="col" { "Lost" }
                        th.number scope="col" { "Missed" }
                    } }
                    tbody { @for row in weeks.iter().take(WEEK_ROWS) { (render_week(row)) } }
                }
            }
            @if weeks.len() > WEEK_ROWS { p.quiet { "The newest " (WEEK_ROWS) " of " (weeks.len()) "." } }
    };
    section("weeks", &html! { "By project and week" }, &body)
}

fn render_week(row: &ProjectWeek) -> Markup {
    let sum = &row.sum;
    html! {
        tr {
            th scope="row" { @match &row.project { Some(project) => (foreign(project)), None => "not named" } }
            td data-label="Week" { (row.week) }
            td.number data-label="Requests" { (group_digits(sum.requests)) }
            td.number data-label="Sent" { (short_number(sum.usage.prompt_tokens().0)) }
            td.number data-label="Cached" { (short_number(sum.usage.cache_read_tokens)) }
            td.number data-label="Written" { (short_number(sum.usage.cache_creation_tokens)) }
            td.number data-label="Answered" { (short_number(sum.usage.output_tokens)) }
            td.number data-label="Cost" { (dollars(sum.cost_usd)) }
            td.number data-label="Saved" { (dollars(sum.saved_usd)) }
            td.number data-label="Lost" { (render_balance(-sum.lost_usd)) }
            td.number data-label="Missed" { (render_balance(-sum.missed_usd)) }
        }
    }
}

/// Shows what the next message of a session costs, before somebody sends it.
fn render_resumes(dashboard: &Dashboard, resumes: &[ColdResume], now: Timestamp) -> Markup {
    let body = html! {
                p.quiet { "A provider's cache holds a prompt for a few minutes. After that the next message pays for all of it again; a session that is compacted first pays for its view." }
                div.scroll tabindex="0" role="region" aria-label="Table of sessions to go on with" {
                    table.money {
                        thead { tr {
                            th scope="col" { "Session" }
                            th scope="col" { "Model" }
                            th.number scope="col" { "Tokens" }
                            th.number scope="col" { "Next message" }
                            th.number scope="col" { "Warm" }
                            th.number scope="col" { "Cold" }
                            th.number scope="col" { "Last" }
                        } }
                        tbody { @for resume in resumes.iter().take(RESUMES) { (render_resume(dashboard, resume, now)) } }
                    }
                }
                @if resumes.len() > RESUMES { p.quiet { "The " (RESUMES) " dearest of " (resumes.len()) "." } }
    };
    match resumes.is_empty() {
        true => html! {},
        false => section("resumes", &html! { "What it costs to go on" }, &body),
    }
}

fn render_resume(dashboard: &Dashboard, resume: &ColdResume, now: Timestamp) -> Markup {
    let next = match resume.seconds_left {
        0 => resume.cold_usd,
        _ => resume.warm_usd,
    };
    html! {
        tr {
            th scope="row" { (session_link(dashboard, &resume.session)) }
            td data-label="Model" { (foreign(&resume.model)) }
            td.number data-label="Tokens" { (group_digits(resume.tokens.0)) }
            td.number data-label="Next message" {
                span { strong { (dollars(next)) } " "
                    @match resume.seconds_left {
                        0 => span.quiet { "cold" },
                        left => span.quiet { "warm for " (left / 60) ":" (format!("{:02}", left % 60)) },
                    }
                }
            }
            td.number data-label="Warm" { (dollars(resume.warm_usd)) }
            td.number data-label="Cold" { (dollars(resume.cold_usd)) }
            td.number data-label="Last" { (time_ago(Some(&resume.last_at.to_string()), now)) }
        }
    }
}

fn render_misses(dashboard: &Dashboard, misses: &[CacheLoss], now: Timestamp) -> Markup {
    let body = html! {
            @if misses.is_empty() { p.quiet { "Every prompt that a cache should have held was found there." } }
            ol.misses {
                @for loss in misses.iter().take(MISSES) {
                    li {
                        p.source { (session_link(dashboard, &loss.session)) " · " (time_ago(Some(&loss.at.to_string()), now))
                            " · " (count(loss.miss.expected_tokens.0.saturating_sub(loss.miss.read_tokens.0), "token", "tokens")) " not found"
                            @if let Some(extra) = loss.miss.extra_usd { " · " (dollars(extra)) " more" }
                        }
                        p { (explain_miss(&loss.miss)) }
                    }
                }
            }
            @if misses.len() > MISSES { p.quiet { "The newest " (MISSES) " of " (misses.len()) "." } }
    };
    section("misses", &html! { "Why the cache missed" }, &body)
}

/// Returns who is behind a miss and what they changed, in words.
fn explain_miss(miss: &CacheMiss) -> String {
    let place = miss.change.as_ref().map(name_place);
    match (miss.origin, place) {
        (MissOrigin::Expired, _) => format!(
            "Nobody asked for {}: the provider had let it go.",
            name_duration(miss.idle_seconds)
        ),
        (MissOrigin::Compaction, Some(place)) => {
            format!("A compaction replaced the history: the first byte that changed is {place}.")
        }
        (MissOrigin::Compaction, None) => "A compaction replaced the history.".to_owned(),
        (MissOrigin::Agent, Some(place)) => {
            format!("The agent changed what it had sent: the first byte that changed is {place}.")
        }
        (MissOrigin::Agent, None) => "The agent asked another model.".to_owned(),
        (MissOrigin::Provider, _) => format!(
            "Nothing was changed, {} after the request before: the provider did not find it.",
            name_duration(miss.idle_seconds)
        ),
    }
}

fn name_place(change: &PromptChange) -> String {
    let byte = group_digits(change.at_byte);
    match (change.part, change.message) {
        (PromptPart::Tools, _) => format!("byte {byte} of its tools"),
        (PromptPart::Instructions, _) => format!("byte {byte} of its instructions"),
        (PromptPart::Message, Some(number)) => format!("byte {byte} of message {number}"),
        (PromptPart::Message, None) => format!("byte {byte} of a message"),
    }
}

fn name_duration(seconds: u64) -> String {
    match seconds {
        0..120 => count(seconds, "second", "seconds"),
        120..7_200 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3_600),
    }
}

fn session_link(dashboard: &Dashboard, name: &str) -> Markup {
    html! { a href=(session_address(dashboard, name)) { (foreign(name)) } }
}
