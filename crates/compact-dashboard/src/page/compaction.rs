//! One compaction: what went in beside what came out, entry by entry, with the way to each piece that left.

use compact::chart::describe_change;
use compact::overview::{CompactionReading, ViewEntry};
use compact::receipt::Receipt;
use compact::store::CompactionRecord;
use maud::{Markup, html};
use serde::Deserialize;

use crate::Dashboard;
use crate::action::{FoundCompaction, find_compaction};
use crate::comparison::{Comparison, EntryFate, FateSum};
use crate::composition::speaker;
use crate::page::PageError;
use crate::page::chart::stacked_bar;
use crate::page::compaction_table::render_retention;
use crate::page::layout::{Layout, ListPages, action_button, section};
use crate::page::left_out::render_left_out;
use crate::page::list::session_address;
use crate::page::subject::render_tools;
use crate::text::{count, encode, foreign, group_digits, minute, visible};
use crate::visit::{Asked, Visit};

/// How many characters of an entry are shown in a row.
const OPENING: usize = 140;
/// How many rows a page shows.
const PAGE: usize = 50;
/// How many characters of the summary are shown before it is opened as an entry of its own.
const SUMMARY: usize = 24_000;
/// What may become of what a compaction was given.
const FATES: [EntryFate; 3] = [EntryFate::Kept, EntryFate::Cut, EntryFate::Dropped];

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct CompactionQuery {
    name: String,
    receipt: String,
    #[serde(default)]
    page: usize,
    #[serde(default)]
    show: ShownFates,
    done: Option<u64>,
}

impl Asked for CompactionQuery {
    fn session(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// Which entries are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ShownFates {
    /// All of them.
    #[default]
    All,
    /// Those that the view lacks, or has in part.
    Gone,
}

/// Shows a compaction.
pub(crate) async fn show(visit: Visit<CompactionQuery>) -> Result<Markup, PageError> {
    let (dashboard, query) = (&*visit.dashboard, &visit.asked);
    let found = find_compaction(dashboard, &query.name, &query.receipt).await?;
    let record = &found.record;
    let reading = dashboard
        .compact
        .read_compaction(&record.receipt_id)
        .await?;
    let comparison = Comparison::new(&reading);
    // What cannot be computed again is counted in the receipt all the same.
    let left_out = dashboard.compact.left_out_names(record).await;
    let body = html! {
        (render_outcome(dashboard, record, &comparison))
        @if let Ok(left_out) = &left_out { (render_left_out(dashboard, record, left_out)) }
        (render_summary(&reading, &comparison))
        (render_rows(dashboard, record, &reading, &comparison, query))
    };
    let title = name_compaction(&found);
    let notice = dashboard.notices.take(query.done, &query.name);
    let layout = Layout::new(dashboard, &title)
        .below("Sessions", dashboard.link("/"))
        .below(&query.name, session_address(dashboard, &query.name));
    Ok(layout.with_notice(notice.as_ref()).page(&body))
}

/// Returns what a compaction is called among those of its session.
pub(crate) fn name_compaction(found: &FoundCompaction) -> String {
    match found.number {
        Some(number) => format!("Compaction {number}"),
        None => format!("Copy of {}", minute(&found.record.created_at)),
    }
}

/// Returns the address of an entry's row beside the others.
pub(crate) fn entry_row_address(
    dashboard: &Dashboard,
    record: &CompactionRecord,
    at: usize,
) -> String {
    let (name, receipt) = (encode(&record.session_id), encode(&record.receipt_id));
    let page = at / PAGE;
    dashboard.link(&format!(
        "/compaction?name={name}&receipt={receipt}&page={page}#entry-{at}"
    ))
}

fn render_outcome(
    dashboard: &Dashboard,
    record: &CompactionRecord,
    comparison: &Comparison,
) -> Markup {
    let receipt = &record.receipt;
    let whole = receipt.to_receipt().ok();
    let parts: Vec<(&str, u64)> = FATES
        .iter()
        .map(|fate| (fate.class(), comparison.sum(*fate).before))
        .collect();
    let original = format!(
        "/original?name={}&receipt={}",
        encode(&record.session_id),
        encode(&record.receipt_id)
    );
    let fields = [
        ("page", "compaction"),
        ("name", record.session_id.as_str()),
        ("receipt", record.receipt_id.as_str()),
    ];
    html! {
        section.state aria-label="Outcome" {
            p.figure { strong { @if comparison.has_view { "≈ " (describe_change(receipt)) } @else { "A copy" } } }
            (stacked_bar(&parts, "What became of the tokens that went in"))
            @if comparison.has_view { (render_sums(comparison, whole.as_ref())) }
            dl.facts {
                div { dt { "When" } dd { (minute(&record.created_at)) } }
                div { dt { "Kept of what mattered" } dd { (render_retention(receipt.retention().as_ref())) } }
                @if let Some(whole) = &whole { (render_terms(whole)) }
                div { dt { "Receipt" } dd { code { (record.receipt_id.chars().take(12).collect::<String>()) } } }
            }
            @if let Some(whole) = &whole { @for note in &whole.notes { p.notice { (visible(&note.to_string())) "." } } }
            div.actions {
                (action_button(dashboard, "/do/verify", "Verify the receipt", &fields))
                @if receipt.origin().is_none() { (action_button(dashboard, "/do/undo", "Undo: go back before it", &fields)) }
                a.button href=(dashboard.link(&original)) download { "Download what went in" }
                @if comparison.has_view { a.button href={ (dashboard.link(&original)) "&part=view" } download { "Download what came out" } }
            }
        }
    }
}

/// Shows what went in and what came out by fate, so that both columns add up.
fn render_sums(comparison: &Comparison, receipt: Option<&Receipt>) -> Markup {
    let sums = FATES.map(|fate| comparison.sum(fate));
    let all = |tokens: fn(&FateSum) -> u64| sums.iter().map(tokens).sum::<u64>();
    let after = all(|sum| sum.after) + comparison.added.after;
    let instructions = comparison.sum(EntryFate::Instruction);
    let fixed = receipt.map_or(instructions.before, |receipt| receipt.tokens_fixed.0);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table of what became of the entries" {
            table.sums {
                thead { tr {
                    th scope="col" { span.unseen { "What became of them" } }
                    th.number scope="col" { "Entries" }
                    th.number scope="col" { "Went in" }
                    th.number scope="col" { "Came out" }
                } }
                tbody {
                    @for (fate, sum) in FATES.iter().zip(sums) { (render_sum(fate.class(), fate.words(), sum)) }
                    (render_sum("added", "the summary", comparison.added))
                    tr.total {
                        th scope="row" { "together" }
                        td.number data-label="Entries" { (group_digits(all(|sum| sum.entries) + comparison.added.entries)) }
                        td.number data-label="Went in" { (group_digits(all(|sum| sum.before))) }
                        td.number data-label="Came out" { (group_digits(after)) }
                    }
                    @if instructions.entries > 0 { (render_sum("fixed", "besides, instructions as they were", instructions)) }
                }
            }
        }
        p.quiet {
            "Tokens on this page are estimated" @if let Some(receipt) = receipt { " by " (foreign(&receipt.estimator)) } "."
            @if fixed > 0 { " Instructions and tools, " (count(fixed, "token", "tokens")) " together, are sent with every call and never compacted." }
        }
    }
}

fn render_sum(class: &str, words: &str, sum: FateSum) -> Markup {
    html! {
        tr class=(class) {
            th scope="row" { (words) }
            td.number data-label="Entries" { (group_digits(sum.entries)) }
            td.number data-label="Went in" { (group_digits(sum.before)) }
            td.number data-label="Came out" { (group_digits(sum.after)) }
        }
    }
}

fn render_terms(receipt: &Receipt) -> Markup {
    let retention = &receipt.retention;
    html! {
        div { dt { "Put back" } dd { (group_digits(retention.repaired)) } }
        @if retention.recoverable > 0 {
            div { dt { "Not in the view, but in the archive" } dd { a href="#left-out" { (group_digits(retention.recoverable)) } } }
        }
        @if retention.lost > 0 { div { dt { "In neither: lost" } dd { (group_digits(retention.lost)) } } }
        div { dt { "Allowed" } dd { (group_digits(receipt.budget.0)) " tokens" } }
        div { dt { "Summary" } dd { "v" (receipt.summary_version) ", by " (foreign(&receipt.summarizer)) } }
        @if let Some(model) = &receipt.model { div { dt { "Model" } dd { (foreign(model)) } } }
        @if let Some(note) = &receipt.note { div { dt { "Wish" } dd { (foreign(note)) } } }
    }
}

/// Shows the summary that stands for what left.
fn render_summary(reading: &CompactionReading, comparison: &Comparison) -> Markup {
    let view = reading.view().unwrap_or_default();
    let new: Vec<&ViewEntry> = view.iter().filter(|item| item.source.is_none()).collect();
    let dropped = comparison.sum(EntryFate::Dropped).entries;
    let title =
        html! { "What stands for " (count(dropped, "entry that left", "entries that left")) };
    let body = html! {
        @for item in &new {
            @let text = visible(&reading.view_text(item));
            pre.summary dir="auto" tabindex="0" role="region" aria-label="Text of the summary" { (text.chars().take(SUMMARY).collect::<String>()) }
        }
    };
    html! {
        @if !new.is_empty() {
            (section("summary", &title, &body))
        } @else if reading.view().is_none() {
            p.notice { "No view is archived: this is a copy of a transcript, or an earlier version made it." }
        }
    }
}

fn render_rows(
    dashboard: &Dashboard,
    record: &CompactionRecord,
    reading: &CompactionReading,
    comparison: &Comparison,
    query: &CompactionQuery,
) -> Markup {
    let is_wanted = |at: &usize| {
        let is_gone = [EntryFate::Cut, EntryFate::Dropped].contains(&comparison.fate(*at));
        query.show == ShownFates::All || is_gone
    };
    let wanted: Vec<usize> = (0..reading.entry_count()).filter(is_wanted).collect();
    let first = query.page.saturating_mul(PAGE);
    let rows = wanted.iter().skip(first).take(PAGE);
    let pages = ListPages {
        page: query.page,
        rows: PAGE,
        total: wanted.len(),
        words: ("Earlier", "Later"),
    };
    let address =
        |page: usize| format!("{}#entries", address_of(dashboard, query, query.show, page));
    let body = html! {
        (render_filter(dashboard, query))
        ol.diff {
            @for at in rows { (render_entry_row(dashboard, record, reading, comparison, *at)) }
        }
        (pages.render("Pages of entries", address))
    };
    section("entries", &html! { "The original beside the view" }, &body)
}

fn address_of(
    dashboard: &Dashboard,
    query: &CompactionQuery,
    show: ShownFates,
    page: usize,
) -> String {
    let (name, receipt) = (encode(&query.name), encode(&query.receipt));
    let show = match show {
        ShownFates::All => "all",
        ShownFates::Gone => "gone",
    };
    dashboard.link(&format!(
        "/compaction?name={name}&receipt={receipt}&show={show}&page={page}"
    ))
}

fn render_filter(dashboard: &Dashboard, query: &CompactionQuery) -> Markup {
    let choices = [
        (ShownFates::All, "Everything"),
        (ShownFates::Gone, "Only what was cut or left"),
    ];
    html! {
        nav.choice aria-label="Entries that are shown" {
            @for (shown, words) in choices {
                a href={ (address_of(dashboard, query, shown, 0)) "#entries" } aria-current=[(query.show == shown).then_some("true")] { (words) }
            }
        }
    }
}

fn render_entry_row(
    dashboard: &Dashboard,
    record: &CompactionRecord,
    reading: &CompactionReading,
    comparison: &Comparison,
    at: usize,
) -> Markup {
    let fate = comparison.fate(at);
    let place = comparison.shown_at(at);
    let shown = place.and_then(|place| reading.view()?.get(place));
    let (session, receipt) = (encode(&record.session_id), encode(&record.receipt_id));
    let address = dashboard.link(&format!("/entry?name={session}&receipt={receipt}&at={at}"));
    html! {
        li class=(fate.class()) id={ "entry-" (at) } {
            div.before {
                p.source {
                    @if let Some(ordinal) = reading.ordinal(at) { "#" (ordinal) " · " }
                    @if let Some(subject) = comparison.subjects.get(at) {
                        (speaker(subject))
                        (render_tools(subject))
                    }
                    " · " (count(reading.entry_tokens(at).0, "token", "tokens"))
                    " · " a href=(address) { "whole entry" }
                }
                p.opening { (foreign(&reading.opening(at, OPENING))) }
            }
            div.after {
                p.source { (fate.words())
                    @if let (EntryFate::Cut, Some(item)) = (fate, shown) { " to " (count(item.tokens.0, "token", "tokens")) }
                }
                @if let (EntryFate::Cut, Some(item)) = (fate, shown) { p.opening { (foreign(&reading.view_opening(item, OPENING))) } }
            }
        }
    }
}
