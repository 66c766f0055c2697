//! The compactions of a session as a table: when and why, what each kept, cut, left and put back, and what came of it.

use std::collections::HashMap;

use compact::chart::describe_change;
use compact::overview::{BRANCH_ORIGIN, compaction_numbers};
use compact::policy::CompactionCause;
use compact::policy::economy::CacheWarmth;
use compact::receipt::Retention;
use compact::spending::CompactionCost;
use compact::store::{CompactionRecord, StoredReceipt};
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use crate::Dashboard;
use crate::notice::{Notice, NoticeSubject, render_notice};
use crate::page::layout::{action_button, section};
use crate::page::money::render_balance;
use crate::text::{count, dollars, encode, group_digits, percent, time_ago};

/// How many compactions a page lists, the newest first.
const ROWS: usize = 100;

/// Shows every compaction, the newest first.
pub(crate) fn render_compactions(
    dashboard: &Dashboard,
    records: &[CompactionRecord],
    costs: &HashMap<String, CompactionCost>,
    notice: Option<&Notice>,
    now: Timestamp,
) -> Markup {
    let numbers = compaction_numbers(records);
    let rows = records.iter().zip(numbers).rev().take(ROWS);
    let show = |(record, number): (&CompactionRecord, Option<usize>)| {
        let row = CompactionRow {
            record,
            number,
            cost: costs.get(&record.receipt_id),
        };
        render_compaction_row(dashboard, &row, notice, now)
    };
    let body = html! {
            div.scroll tabindex="0" role="region" aria-label="Table of compactions" {
                table.compactions {
                    thead { tr {
                        th scope="col" { "#" }
                        th scope="col" { "When and why" }
                        th scope="col" { "Tokens, estimated" }
                        th scope="col" { "Kept of what mattered" }
                        th scope="col" { "Entries" }
                        th scope="col" { "Writing its view" }
                        th scope="col" { "Saved, net" }
                        th scope="col" { span.unseen { "Actions" } }
                    } }
                    tbody { @for row in rows { (show(row)) } }
                }
            }
            @if !costs.is_empty() {
                p.quiet { "Writing its view: what sending it for the first time costs more than reading on from the cache, by list prices. "
                    "Saved: what the requests since no longer had to read, less that." }
            }
            @if records.len() > ROWS { p.quiet { "The newest " (ROWS) " of " (records.len()) "." } }
    };
    section("compactions", &html! { "Compactions" }, &body)
}

/// A compaction, or a copy, as the table shows it.
struct CompactionRow<'a> {
    record: &'a CompactionRecord,
    /// A copy has none.
    number: Option<usize>,
    cost: Option<&'a CompactionCost>,
}

fn render_compaction_row(
    dashboard: &Dashboard,
    row: &CompactionRow<'_>,
    notice: Option<&Notice>,
    now: Timestamp,
) -> Markup {
    let CompactionRow { record, cost, .. } = *row;
    let receipt = &record.receipt;
    let retention = receipt.retention();
    let fields = [
        ("name", record.session_id.as_str()),
        ("receipt", record.receipt_id.as_str()),
    ];
    html! {
        tr {
            th scope="row" {
                @match row.number {
                    Some(number) => a href=(compaction_address(dashboard, record)) aria-label={ "Compaction " (number) } { (number) },
                    None => a href=(compaction_address(dashboard, record)) aria-label="What was held" { "–" },
                }
            }
            td data-label="When and why" {
                span.lines { (time_ago(Some(&record.created_at), now))
                    span.quiet { (cost.and_then(|cost| cost.cause).map_or("", name_cause)) } }
            }
            @if let Some(origin) = receipt.origin() {
                td colspan="5" {
                    @match is_branch(record) {
                        true => "what the session held before the compaction that was undone; nothing was compacted",
                        false => { "a copy that a " (origin) " left; nothing was compacted" },
                    }
                }
            } @else {
                td data-label="Tokens, estimated" {
                    span.lines { (describe_change(receipt).trim_end_matches(" tokens"))
                        span.quiet { @if let Some(ms) = receipt.elapsed_ms() { "in " (group_digits(ms)) " ms" } } }
                }
                td data-label="Kept of what mattered" { (render_retention(retention.as_ref())) }
                td data-label="Entries" {
                    span.lines { (count_fates(receipt))
                        @if let Some(back) = retention.as_ref().map(|r| r.repaired).filter(|back| *back > 0) {
                            span.quiet { (count(back, "fact", "facts")) " put back" }
                        } }
                }
                (render_cost_cells(cost))
            }
            td.row-actions data-label="Do" id={ "at-" (record.receipt_id.chars().take(12).collect::<String>()) } {
                (action_button(dashboard, "/do/verify", "Verify", &fields))
                @if receipt.origin().is_none() { (action_button(dashboard, "/do/undo", "Undo", &fields)) }
                (render_notice(notice, &NoticeSubject::Compaction(record.receipt_id.clone())))
            }
        }
    }
}

/// Returns whether a record is what a session held before a compaction that was undone.
pub(crate) fn is_branch(record: &CompactionRecord) -> bool {
    record.receipt.origin() == Some(BRANCH_ORIGIN)
}

/// Shows what the view cost, what the cache was like, and what came of it.
fn render_cost_cells(cost: Option<&CompactionCost>) -> Markup {
    let warmth = cost.and_then(|cost| cost.warmth);
    let warmth = warmth.map(|warmth| match warmth {
        CacheWarmth::Warm => "cache warm",
        CacheWarmth::Cold => "cache cold",
        CacheWarmth::Unused => "cache not used",
    });
    html! {
        td data-label="Writing its view" {
            span.lines { @match cost.and_then(|cost| cost.cost_usd) { Some(usd) => (dollars(usd)), None => "–" }
                span.quiet { (warmth.unwrap_or_default()) } }
        }
        td data-label="Saved, net" {
            @match cost.and_then(|cost| Some((cost, cost.saved_usd?))) {
                Some((cost, usd)) => span.lines { (render_balance(usd)) span.quiet { "in " (count(cost.requests, "request", "requests")) } },
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
            Some(share) => span.lines { span { (percent(share)) } span.quiet { (group_digits(retention.kept)) " of " (group_digits(retention.anchors)) } },
            None => span.quiet { "nothing to keep" },
        }
    }
}

/// Returns the address of a compaction's page.
pub(crate) fn compaction_address(dashboard: &Dashboard, record: &CompactionRecord) -> String {
    let (session, receipt) = (encode(&record.session_id), encode(&record.receipt_id));
    dashboard.link(&format!("/compaction?name={session}&receipt={receipt}"))
}

/// Says how many entries were kept, instructions among them, how many were cut, and how many left.
fn count_fates(receipt: &StoredReceipt) -> Markup {
    let cut = receipt.as_json().pointer("/kept/clipped");
    let cut = cut.and_then(Value::as_u64).unwrap_or(0);
    let left = group_digits(number_field(receipt, "pruned_count"));
    let cut_and_left = format!("{} cut, {left} left", group_digits(cut));
    match count_stayed(receipt) {
        Some(stayed) => {
            html! { span { (group_digits(stayed.saturating_sub(cut))) " kept, " (cut_and_left) } }
        }
        None => html! { span { (cut_and_left) } },
    }
}

/// Counts the entries of the view; earlier receipts do not name them.
fn count_stayed(receipt: &StoredReceipt) -> Option<u64> {
    let spans = receipt.as_json().get("kept_spans")?.as_array()?;
    let lengths = spans.iter().map(|span| {
        let end = |at| span.get(at)?.as_u64();
        Some(end(1)?.saturating_sub(end(0)?) + 1)
    });
    lengths.sum()
}

fn number_field(receipt: &StoredReceipt, field: &str) -> u64 {
    let value = receipt.as_json().get(field);
    value.and_then(Value::as_u64).unwrap_or(0)
}
