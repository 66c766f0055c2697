//! One entry, whole: what a view left out, brought back, between its neighbours and with the way to its compaction.

use std::collections::BTreeSet;

use compact::message::EntryHash;
use compact::overview::CompactionReading;
use compact::recall::SecretDisplay;
use maud::{Markup, html};
use serde::Deserialize;

use crate::action::{FoundCompaction, find_compaction};
use crate::comparison::{Comparison, EntryFate, EntryPlace};
use crate::composition::speaker;
use crate::page::PageError;
use crate::page::compaction::{entry_row_address, name_compaction};
use crate::page::compaction_table::compaction_address;
use crate::page::layout::{Layout, action_button};
use crate::page::list::session_address;
use crate::page::subject::render_calls;
use crate::text::{count, encode, estimated_tokens, foreign, group_digits, visible};
use crate::visit::{Asked, Visit};
use crate::{Dashboard, Viewer};

/// How many characters of an entry stand on a page.
const PAGE: usize = 60_000;
/// How many characters of its neighbours are shown.
const OPENING: usize = 120;

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
    done: Option<u64>,
}

impl Asked for EntryQuery {
    fn session(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// An entry of what a compaction was given.
struct FoundEntry {
    compaction: FoundCompaction,
    reading: CompactionReading,
    at: usize,
    text: String,
    protected: BTreeSet<EntryHash>,
}

/// Shows an entry.
pub(crate) async fn show(visit: Visit<EntryQuery>) -> Result<Markup, PageError> {
    let (dashboard, query) = (&*visit.dashboard, &visit.asked);
    if let Some(pointer) = &query.pointer {
        return show_pointed(dashboard, &visit.viewer, pointer, query.page).await;
    }
    let (Some(name), Some(receipt), Some(at)) = (&query.name, &query.receipt, query.at) else {
        return Err(PageError::not_found("the entry"));
    };
    let compaction = find_compaction(dashboard, name, receipt).await?;
    let found = read_entry(dashboard, compaction, at).await?;
    Ok(render(dashboard, &found, query))
}

/// Shows the entry that a pointer names: among the others of its input where that has it.
async fn show_pointed(
    dashboard: &Dashboard,
    viewer: &Viewer,
    pointer: &str,
    page: usize,
) -> Result<Markup, PageError> {
    let compact = &dashboard.compact;
    let entry = compact.expand(pointer, SecretDisplay::Redacted).await?;
    if !viewer.may_see(&entry.session_id) {
        return Err(PageError::not_found(pointer));
    }
    if let Some(at) = entry.input_place {
        let compaction = find_compaction(dashboard, &entry.session_id, &entry.receipt_id).await?;
        let query = EntryQuery {
            name: Some(entry.session_id),
            receipt: Some(entry.receipt_id),
            at: Some(at),
            pointer: None,
            page,
            done: None,
        };
        let found = read_entry(dashboard, compaction, at).await?;
        return Ok(render(dashboard, &found, &query));
    }
    let body = html! {
        p.source { (entry.role.as_str()) " · no compaction was given it" }
        (render_text(&entry.readable_text(), page, &format!("{}?pointer={}", dashboard.link("/entry"), encode(pointer))))
    };
    let layout = Layout::new(dashboard, "An entry")
        .below("Sessions", dashboard.link("/"))
        .below(
            &entry.session_id,
            session_address(dashboard, &entry.session_id),
        );
    Ok(layout.page(&body))
}

async fn read_entry(
    dashboard: &Dashboard,
    compaction: FoundCompaction,
    at: usize,
) -> Result<FoundEntry, PageError> {
    let (compact, record) = (&dashboard.compact, &compaction.record);
    let reading = compact.read_compaction(&record.receipt_id).await?;
    let text = reading.text(at);
    let text = text.ok_or_else(|| PageError::not_found(&format!("entry {at}")))?;
    let protected = compact.protected_entries(&record.session_id).await?;
    Ok(FoundEntry {
        compaction,
        reading,
        at,
        text,
        protected,
    })
}

fn render(dashboard: &Dashboard, found: &FoundEntry, query: &EntryQuery) -> Markup {
    let FoundEntry { compaction, at, .. } = found;
    let record = &compaction.record;
    let comparison = Comparison::new(&found.reading);
    let own_address = entry_address(dashboard, compaction, *at);
    let body = html! {
        (render_source(found, &comparison))
        (render_text(&found.text, query.page, &own_address))
        (render_pin(dashboard, found))
        div.actions {
            a.button href=(entry_row_address(dashboard, record, *at)) { "Among the others of " (name_compaction(compaction)) }
        }
        (render_neighbours(dashboard, found, &comparison))
    };
    let notice = dashboard.notices.take(query.done, &record.session_id);
    let title = name_entry(&found.reading, *at);
    let layout = Layout::new(dashboard, &title)
        .below("Sessions", dashboard.link("/"))
        .below(
            &record.session_id,
            session_address(dashboard, &record.session_id),
        )
        .below(
            &name_compaction(compaction),
            compaction_address(dashboard, record),
        );
    layout.with_notice(notice.as_ref()).page(&body)
}

/// Returns what an entry is called: by the number that pointers have for it.
fn name_entry(reading: &CompactionReading, at: usize) -> String {
    match reading.ordinal(at) {
        Some(ordinal) => format!("Entry #{ordinal}"),
        None => "A summary".to_owned(),
    }
}

/// Shows who says it, about what, at what cost, and what became of it.
fn render_source(found: &FoundEntry, comparison: &Comparison) -> Markup {
    let subject = comparison.subjects.get(found.at);
    let fate = comparison.fate(found.at);
    html! {
        p.source {
            @if let Some(subject) = subject {
                (speaker(subject))
                (render_calls(subject))
                " · "
            }
            (estimated_tokens(found.reading.entry_tokens(found.at).0))
            @if found.reading.view().is_some() { " · " span.fate.(fate.class()) { (fate.words()) } }
        }
    }
}

/// Shows a text; of one that is very long, a part.
fn render_text(text: &str, page: usize, address: &str) -> Markup {
    let all = text.chars().count();
    let first = page.saturating_mul(PAGE);
    let shown: String = text.chars().skip(first).take(PAGE).collect();
    let last = first.saturating_add(PAGE).min(all);
    let part = |page: usize| format!("{address}&page={page}");
    html! {
        @if first < all || all == 0 {
            pre.entry dir="auto" tabindex="0" role="region" aria-label="Text of the entry" { (visible(&shown)) }
        } @else {
            p.notice { "It ends before this part." }
        }
        @if all > PAGE {
            nav.pages aria-label="Parts of the entry" {
                @if page > 0 { a rel="prev" href=(part((page - 1).min(all / PAGE))) { "← Before" } }
                span {
                    @if first < all { "characters " (group_digits(first as u64 + 1)) "–" (group_digits(last as u64)) " of " }
                    (group_digits(all as u64)) @if first >= all { " characters" }
                }
                @if last < all { a rel="next" href=(part(page + 1)) { "After →" } }
            }
        }
    }
}

/// Shows whether the entry is in the view and protected, with the button that changes it.
fn render_pin(dashboard: &Dashboard, found: &FoundEntry) -> Markup {
    let FoundCompaction { record, latest, .. } = &found.compaction;
    let name = found.reading.entry_name(found.at);
    let name = name.filter(|_| !found.reading.is_instruction(found.at));
    // A summary is written anew with each compaction.
    let name = name.filter(|_| found.reading.ordinal(found.at).is_some());
    let Some(name) = name else {
        return html! {};
    };
    let is_pinned = found.protected.contains(&name);
    let place = EntryPlace::find(&found.reading, found.at, latest);
    let at = found.at.to_string();
    let fields = [
        ("page", "entry"),
        ("name", record.session_id.as_str()),
        ("receipt", record.receipt_id.as_str()),
        ("at", at.as_str()),
    ];
    html! {
        p #pin-state { (explain_pin(is_pinned, place)) (count_together(&found.reading, found.at)) }
        div.actions {
            @match is_pinned {
                true => (action_button(dashboard, "/do/unpin", "Unpin", &fields)),
                false => (action_button(dashboard, "/do/pin", "Pin", &fields)),
            }
            @if is_pinned && place == EntryPlace::Left { (action_button(dashboard, "/do/compact", "Compact now", &fields)) }
        }
    }
}

/// Says what is pinned with an entry, where that is more than itself.
fn count_together(reading: &CompactionReading, at: usize) -> Markup {
    let together = reading.pinned_together(at);
    let tokens = together.iter().map(|at| reading.entry_tokens(*at).0).sum();
    html! {
        @if together.len() > 1 {
            " A call and its results are pinned together, also where it was made again: "
            (count(together.len() as u64, "entry", "entries")) ", " (estimated_tokens(tokens)) "."
        }
    }
}

/// Returns what pinning does for an entry, or did.
fn explain_pin(is_pinned: bool, place: EntryPlace) -> &'static str {
    match (is_pinned, place) {
        (false, EntryPlace::InState) => {
            "It stands whole in the session now. Pinned, it stands so in every later view."
        }
        (true, EntryPlace::InState) => {
            "It is pinned: it stands in every view as it is, and a new session begins with it."
        }
        (false, EntryPlace::Left) => {
            "The session does not show it whole any more. Pinned, it comes back with “Compact now”, and a new session begins with it."
        }
        (true, EntryPlace::Left) => {
            "It is pinned, and the session does not show it whole yet: “Compact now” brings it back. A new session begins with it."
        }
    }
}

/// Shows what was said before it and after it.
fn render_neighbours(dashboard: &Dashboard, found: &FoundEntry, comparison: &Comparison) -> Markup {
    let before = found.at.checked_sub(1);
    let after = Some(found.at + 1).filter(|at| *at < found.reading.entry_count());
    let show = |at: usize, rel: &str, words: &str| {
        let subject = comparison.subjects.get(at);
        let fate = comparison.fate(at);
        html! {
            a.neighbour rel=(rel) href=(entry_address(dashboard, &found.compaction, at)) {
                span.source {
                    (words) @if let Some(ordinal) = found.reading.ordinal(at) { " · #" (ordinal) } " · " @if let Some(subject) = subject { (speaker(subject)) }
                    @if fate != EntryFate::Kept { " · " (fate.words()) }
                }
                span.opening { (foreign(&found.reading.opening(at, OPENING))) }
            }
        }
    };
    html! {
        nav.neighbours aria-label="Neighbours" {
            @if let Some(at) = before { (show(at, "prev", "← Before it")) }
            @if let Some(at) = after { (show(at, "next", "After it →")) }
        }
    }
}

fn entry_address(dashboard: &Dashboard, compaction: &FoundCompaction, at: usize) -> String {
    let record = &compaction.record;
    let (session, receipt) = (encode(&record.session_id), encode(&record.receipt_id));
    dashboard.link(&format!("/entry?name={session}&receipt={receipt}&at={at}"))
}
