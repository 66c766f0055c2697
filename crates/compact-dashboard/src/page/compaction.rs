//! One compaction: what went in beside what came out, entry by entry, with the way to each piece that left.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use compact::chart::describe_change;
use compact::overview::{CompactionReading, EntrySubject, LeftOutName, ViewEntry};
use compact::receipt::Receipt;
use compact::store::CompactionRecord;
use maud::{Markup, html};
use serde::Deserialize;

use crate::action::find_compaction;
use crate::composition::speaker;
use crate::page::PageError;
use crate::page::chart::stacked_bar;
use crate::page::compaction_table::render_retention;
use crate::page::layout::{Layout, action_button};
use crate::text::{count, encode, foreign, group_digits, minute, visible};
use crate::{Dashboard, Viewer};

/// How many characters of an entry are shown in a row.
const OPENING: usize = 140;
/// How many rows a page shows.
const PAGE: usize = 120;
/// How many characters of the summary are shown before it is opened as an entry of its own.
const SUMMARY: usize = 24_000;
/// How many names that a view lacks are shown at once, and how many on demand.
const LEFT_OUT_OPEN: usize = 24;
const LEFT_OUT_SHOWN: usize = 400;

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct CompactionQuery {
    name: String,
    receipt: String,
    #[serde(default)]
    page: usize,
    #[serde(default)]
    show: ShownFates,
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
pub(crate) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<CompactionQuery>,
) -> Result<Markup, PageError> {
    let dashboard = &*dashboard;
    let record = find_compaction(dashboard, &viewer, &query.name, &query.receipt).await?;
    let records = dashboard.compact.session_records(&query.name).await?;
    let is_this = |other: &CompactionRecord| other.receipt_id == record.receipt_id;
    let number = records.iter().position(is_this).unwrap_or(0) + 1;
    let reading = dashboard
        .compact
        .read_compaction(&record.receipt_id)
        .await?;
    let comparison = Comparison::new(&reading);
    // What cannot be computed again is counted in the receipt all the same.
    let left_out = dashboard.compact.left_out_names(&record).await;
    let body = html! {
        (render_outcome(dashboard, &record, &comparison))
        @if let Ok(left_out) = &left_out { (render_left_out(dashboard, &record, left_out)) }
        (render_summary(&reading, &comparison))
        (render_rows(dashboard, &record, &reading, &comparison, &query))
    };
    let title = format!("Compaction {number}");
    let session = dashboard.link(&format!("/session?name={}", encode(&query.name)));
    let layout = Layout::new(dashboard, &title).below(visible(&query.name), session);
    Ok(layout.without_updates().page(&body))
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryFate {
    Kept,
    Cut,
    Dropped,
}

impl EntryFate {
    fn class(self) -> &'static str {
        match self {
            EntryFate::Kept => "kept",
            EntryFate::Cut => "cut",
            EntryFate::Dropped => "dropped",
        }
    }

    fn words(self) -> &'static str {
        match self {
            EntryFate::Kept => "kept whole",
            EntryFate::Cut => "cut",
            EntryFate::Dropped => "left to the summary",
        }
    }
}

/// What went in, entry by entry, with what became of each.
struct Comparison {
    subjects: Vec<EntrySubject>,
    fates: Vec<EntryFate>,
    /// Places of the view by the entry that they show.
    shown: HashMap<usize, usize>,
    /// Tokens that went in, and went in and came out again, by fate.
    sums: HashMap<&'static str, (u64, u64)>,
    /// What the engine wrote.
    added: u64,
}

impl Comparison {
    fn new(reading: &CompactionReading) -> Comparison {
        let view = reading.view().unwrap_or_default();
        let places = view.iter().enumerate();
        let shown: HashMap<usize, usize> = places
            .filter_map(|(place, item)| Some((item.source?, place)))
            .collect();
        let has_view = reading.view().is_some();
        let fate = |at: usize| match shown.get(&at).and_then(|place| view.get(*place)) {
            Some(item) if item.is_edited => EntryFate::Cut,
            Some(_) => EntryFate::Kept,
            None if has_view => EntryFate::Dropped,
            None => EntryFate::Kept,
        };
        let fates: Vec<EntryFate> = (0..reading.entry_count()).map(fate).collect();
        let mut sums: HashMap<&'static str, (u64, u64)> = HashMap::new();
        for (at, fate) in fates.iter().enumerate() {
            let sum = sums.entry(fate.class()).or_default();
            sum.0 += 1;
            sum.1 += reading.entry_tokens(at).0;
        }
        let new = view.iter().filter(|item| item.source.is_none());
        Comparison {
            subjects: reading.subjects(),
            added: new.map(|item| item.tokens.0).sum(),
            fates,
            shown,
            sums,
        }
    }

    fn entries_and_tokens(&self, fate: EntryFate) -> (u64, u64) {
        self.sums.get(fate.class()).copied().unwrap_or_default()
    }
}

fn render_outcome(
    dashboard: &Dashboard,
    record: &CompactionRecord,
    comparison: &Comparison,
) -> Markup {
    let receipt = &record.receipt;
    let whole = receipt.to_receipt().ok();
    let fates = [EntryFate::Kept, EntryFate::Cut, EntryFate::Dropped];
    let parts: Vec<(&str, u64)> = fates
        .iter()
        .map(|fate| (fate.class(), comparison.entries_and_tokens(*fate).1))
        .collect();
    let original = format!(
        "/original?name={}&receipt={}",
        encode(&record.session_id),
        encode(&record.receipt_id)
    );
    let fields = [
        ("name", record.session_id.as_str()),
        ("receipt", record.receipt_id.as_str()),
    ];
    html! {
        section.state aria-label="Outcome" {
            p.figure { strong { (describe_change(receipt)) } }
            (stacked_bar(&parts, "What became of the tokens that went in"))
            ul.legend {
                @for fate in fates {
                    @let (entries, tokens) = comparison.entries_and_tokens(fate);
                    li class=(fate.class()) { (count(entries, "entry", "entries")) " " (fate.words()) ", " (count(tokens, "token", "tokens")) }
                }
                li.added { "summary, " (count(comparison.added, "token", "tokens")) }
            }
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
            }
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
        div { dt { "Summary" } dd { "v" (receipt.summary_version) ", " (group_digits(receipt.summary_tokens.0)) " tokens, by " (foreign(&receipt.summarizer)) } }
        @if let Some(model) = &receipt.model { div { dt { "Model" } dd { (foreign(model)) } } }
        @if let Some(note) = &receipt.note { div { dt { "Wish" } dd { (foreign(note)) } } }
    }
}

/// Shows what mattered and is in the archive only, each with the way back.
fn render_left_out(
    dashboard: &Dashboard,
    record: &CompactionRecord,
    left_out: &[LeftOutName],
) -> Markup {
    let address = |name: &LeftOutName| {
        let pointer = format!("{}#{}", record.receipt_id, name.ordinal);
        dashboard.link(&format!("/entry?pointer={}", encode(&pointer)))
    };
    let show = |name: &LeftOutName| html! { li { a href=(address(name)) { (foreign(&clip(&name.text))) } } };
    let (first, rest) = left_out.split_at(left_out.len().min(LEFT_OUT_OPEN));
    html! {
        @if record.receipt.origin().is_none() {
            section aria-labelledby="left-out" {
                h2 #left-out { "What the view no longer says" }
                @if left_out.is_empty() {
                    p { "Nothing that mattered: every name, number, decision and rule of what left stands in the summary or in what was kept." }
                } @else {
                    p { (count(left_out.len() as u64, "name", "names")) " of what left "
                        @if left_out.len() == 1 { "is" } @else { "are" }
                        " in no summary and in nothing that was kept. They are in the archive: follow one to the entry that says it, "
                        "let your agent search for it (" code { "recall" } "), or go back before this compaction." }
                    ul.names { @for name in first { (show(name)) } }
                    @if !rest.is_empty() {
                        details #more-names {
                            summary { (count(rest.len() as u64, "more", "more")) }
                            ul.names { @for name in rest.iter().take(LEFT_OUT_SHOWN) { (show(name)) } }
                            @if rest.len() > LEFT_OUT_SHOWN { (render_search(dashboard, record, rest.len())) }
                        }
                    }
                }
            }
        }
    }
}

/// Says how many of the names are shown, and how to find one of the others.
fn render_search(dashboard: &Dashboard, record: &CompactionRecord, all: usize) -> Markup {
    html! {
        p { "These are " (group_digits(LEFT_OUT_SHOWN as u64)) " of " (group_digits(all as u64)) ", the most needed first. Search for any other one:" }
        form.search role="search" aria-label="In this session" action=(dashboard.link("/")) {
            input type="hidden" name="session" value=(record.session_id);
            label for="q" { "Search what was said in this session" }
            div.field { input #q type="search" name="q" autocomplete="off"; button type="submit" { "Search" } }
        }
    }
}

fn clip(text: &str) -> String {
    match text.chars().count() > OPENING {
        true => text.chars().take(OPENING).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Shows the summary that stands for what left.
fn render_summary(reading: &CompactionReading, comparison: &Comparison) -> Markup {
    let view = reading.view().unwrap_or_default();
    let new: Vec<&ViewEntry> = view.iter().filter(|item| item.source.is_none()).collect();
    let dropped = comparison.entries_and_tokens(EntryFate::Dropped).0;
    html! {
        @if !new.is_empty() {
            section aria-labelledby="summary" {
                h2 #summary { "What stands for " (count(dropped, "entry that left", "entries that left")) }
                @for item in new {
                    @let text = visible(&reading.view_text(item));
                    pre.summary dir="auto" tabindex="0" role="region" aria-label="Text of the summary" { (text.chars().take(SUMMARY).collect::<String>()) }
                }
            }
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
        let fate = comparison.fates.get(*at).copied();
        query.show == ShownFates::All || fate != Some(EntryFate::Kept)
    };
    let wanted: Vec<usize> = (0..reading.entry_count()).filter(is_wanted).collect();
    let first = query.page.saturating_mul(PAGE);
    let rows = wanted.iter().skip(first).take(PAGE);
    html! {
        section aria-labelledby="entries" {
            h2 #entries { "The original beside the view" }
            (render_filter(dashboard, query))
            ol.diff start=(first + 1) {
                @for at in rows { (render_entry_row(dashboard, record, reading, comparison, *at)) }
            }
            (render_pages(dashboard, query, first, wanted.len()))
        }
    }
}

fn address_of(dashboard: &Dashboard, query: &CompactionQuery, show: &str, page: usize) -> String {
    let (name, receipt) = (encode(&query.name), encode(&query.receipt));
    dashboard.link(&format!(
        "/compaction?name={name}&receipt={receipt}&show={show}&page={page}"
    ))
}

fn render_filter(dashboard: &Dashboard, query: &CompactionQuery) -> Markup {
    let choices = [
        (ShownFates::All, "all", "Everything"),
        (ShownFates::Gone, "gone", "Only what was cut or left"),
    ];
    html! {
        nav.choice aria-label="Entries that are shown" {
            @for (shown, name, words) in choices {
                a href={ (address_of(dashboard, query, name, 0)) "#entries" } aria-current=[(query.show == shown).then_some("true")] { (words) }
            }
        }
    }
}

fn render_pages(
    dashboard: &Dashboard,
    query: &CompactionQuery,
    first: usize,
    total: usize,
) -> Markup {
    let last = (first + PAGE).min(total);
    let show = if query.show == ShownFates::All {
        "all"
    } else {
        "gone"
    };
    html! {
        @if total > PAGE {
            nav.pages aria-label="Pages of entries" {
                @if query.page > 0 { a rel="prev" href={ (address_of(dashboard, query, show, query.page - 1)) "#entries" } { "← Earlier" } }
                span { (group_digits(first as u64 + 1)) "–" (group_digits(last as u64)) " of " (group_digits(total as u64)) }
                @if last < total { a rel="next" href={ (address_of(dashboard, query, show, query.page + 1)) "#entries" } { "Later →" } }
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
    let fate = comparison.fates.get(at).copied().unwrap_or(EntryFate::Kept);
    let place = comparison.shown.get(&at);
    let shown = place.and_then(|place| reading.view()?.get(*place));
    let (session, receipt) = (encode(&record.session_id), encode(&record.receipt_id));
    let address = dashboard.link(&format!("/entry?name={session}&receipt={receipt}&at={at}"));
    html! {
        li class=(fate.class()) {
            div.before {
                p.source {
                    @if let Some(subject) = comparison.subjects.get(at) {
                        (speaker(subject))
                        @if let Some(tool) = &subject.tool { " · " (foreign(tool)) }
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
