//! A session: how full its window is, what each call was sent, what filled the window, and every compaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use compact::Error;
use compact::chart::{ChartSize, SessionChart};
use compact::message::EntryHash;
use compact::overview::{
    CompactionReading, CountedRequest, ListedSession, SessionCurve, SessionSource,
    compaction_numbers,
};
use compact::spending::{ColdResume, SpendingQuery, SpendingReport};
use compact::store::CompactionRecord;
use compact::token::{Tokens, WindowSource};
use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::Value;

use crate::comparison::EntryPlace;
use crate::composition::{Composition, LargeEntry, WindowPart, speaker};
use crate::digest::SessionDigest;
use crate::notice::{Notice, NoticeSubject, render_notice};
use crate::page::PageError;
use crate::page::chart::{pressure_bar, share_bar};
use crate::page::chat::{chat_address, open_chats};
use crate::page::compaction_table::{compaction_address, is_branch, render_compactions};
use crate::page::layout::{Layout, action_button, section};
use crate::page::list::{render_count, session_address};
use crate::page::subject::render_calls;
use crate::text::{
    count, dollars, encode, estimate_note, estimated_tokens, foreign, group_digits, minute,
    percent, time_ago, visible,
};
use crate::visit::{Asked, Visit};
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

impl Asked for SessionQuery {
    fn session(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// Shows a session.
pub(crate) async fn show(visit: Visit<SessionQuery>) -> Result<Markup, PageError> {
    let (dashboard, query) = (&*visit.dashboard, &visit.asked);
    let name = query.name.as_str();
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
        notice: dashboard.notices.take(query.done, name),
        state,
        records,
    };
    let is_copied = source.is_some() && dashboard.compact.is_copied_session(name).await?;
    let body = html! {
        @if let Some(source) = &source {
            section.source-note aria-label="Where it comes from" {
                (render_source(dashboard, name, source))
                @if is_copied { (render_removal(dashboard, name)) }
            }
        }
        @if let Some(state) = &facts.state { (render_state(dashboard, state, &facts)) }
        @match facts.records.last() {
            Some(latest) => (render_records(dashboard, latest, &facts).await?),
            None if source.is_some() => p { "Nothing was compacted in it yet." },
            None => p #no-content { "Nothing was compacted in it yet, and so nothing of what it says is archived: of a request that need not be compacted only the numbers are kept. "
                "What fills its window is shown after its first compaction." },
        }
    };
    let layout = Layout::new(dashboard, name).with_notice(facts.notice.as_ref());
    let layout = layout.live_since(visit.seen);
    Ok(layout.below("Sessions", dashboard.link("/")).page(&body))
}

/// What is known of a session.
struct SessionFacts {
    records: Vec<CompactionRecord>,
    state: Option<ListedSession>,
    digest: Result<Arc<SessionDigest>, Error>,
    spent: SpendingReport,
    notice: Option<Notice>,
    now: Timestamp,
}

/// How full a window is.
struct WindowFill {
    tokens: u64,
    /// When that was counted.
    since: &'static str,
    /// The mark of an estimate; none of what a provider counted.
    mark: &'static str,
}

impl SessionFacts {
    /// Returns the window that its requests were counted against, or else that of its model.
    fn window(&self, dashboard: &Dashboard) -> u64 {
        let is_known = |state: &&ListedSession| {
            state.model.is_some() || state.window.source == WindowSource::Explicit
        };
        let known = self.state.as_ref().filter(is_known);
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

    /// Returns how full the window is; instructions and tools are part of it.
    fn window_fill(&self) -> Option<WindowFill> {
        let fill = |tokens, since, mark| {
            Some(WindowFill {
                tokens,
                since,
                mark,
            })
        };
        let state = self.state.as_ref()?;
        if let Some(request) = &state.request {
            return fill(request.tokens.0, "with the last request and its answer", "");
        }
        if let Some(held) = state.tokens_now() {
            let since = match self.records.last().is_some_and(is_branch) {
                true => "before the compaction that was undone",
                false => "after the last compaction",
            };
            return fill(held.0, since, "≈ ");
        }
        let last = self.digest.as_ref().ok()?.curve.calls.last()?;
        let mark = if last.usage.is_some() { "" } else { "≈ " };
        fill(last.tokens.0, "with the last call that was copied", mark)
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
        (render_compactions(dashboard, &facts.records, &facts.spent.compactions, facts.notice.as_ref(), facts.now))
        @if let (Ok(reading), Ok(digest)) = (&reading, &facts.digest) {
            (render_window(dashboard, latest, reading, &digest.rules, &protected, facts.notice.as_ref()))
        }
    })
}

/// Returns what instructions and tools cost, which receipts count apart.
fn fixed_tokens(record: &CompactionRecord) -> u64 {
    let fixed = record.receipt.as_json().get("tokens_fixed");
    fixed.and_then(Value::as_u64).unwrap_or(0)
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
            @if let Some(fill) = facts.window_fill() {
                @let share = fill.tokens as f64 / window as f64;
                div.gauge {
                    p.figure { strong { (fill.mark) (group_digits(fill.tokens)) } " of " (group_digits(window)) " tokens" }
                    (pressure_bar(share, &format!("{} of the window", percent(share))))
                    p.quiet { (percent(share)) " of the window " (fill.since) }
                }
                (estimate_note())
            }
            @if let Some(resume) = spent.resumes.first() { (render_resume(resume)) }
            (render_failure(dashboard, state, facts))
            dl.facts {
                div { dt { "Model" } dd { @match model { Some(model) => (foreign(model)), None => "not named" } } }
                div { dt { "Compactions" } dd { (render_count(state)) } }
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

/// Shows a compaction that came to nothing, with the way to try it again: from here that takes something archived.
fn render_failure(dashboard: &Dashboard, state: &ListedSession, facts: &SessionFacts) -> Markup {
    let name = state.info.session_id.as_str();
    html! {
        @if let Some(failed) = &state.failed {
            div.notice.warning role="alert" {
                p { "The last compaction failed, " (time_ago(Some(&failed.at), facts.now)) ", at "
                    (estimated_tokens(failed.tokens)) (explain_failure(state)) ". Nothing was changed." }
                @if !facts.records.is_empty() {
                    (action_button(dashboard, "/do/retry", "Retry", &[("name", name)]))
                } @else if is_open_chat(dashboard, name) {
                    a.button href=(chat_address(dashboard, name)) { "Try again in the chat" }
                } @else {
                    p { "Nothing of it is archived, so that it cannot be tried again from here: its own program does so by itself as it goes on." }
                }
            }
        }
    }
}

/// Returns why an attempt came to nothing, in words; nothing where it is not known.
fn explain_failure(state: &ListedSession) -> String {
    let outcome = state.failed.as_ref().map(|failed| failed.outcome.as_str());
    let words = match (&state.failure, outcome) {
        (Some(reason), _) => reason.as_str(),
        (None, Some("insufficient")) => "what must stay leaves the trigger reached",
        (None, Some("does_not_fit")) => "what must stay does not fit",
        (None, Some("store_failed")) => "the store could not be written",
        _ => return String::new(),
    };
    format!(": {}", visible(words.trim_end_matches('.')))
}

/// Returns whether the conversation of a session is open on the page to talk in.
fn is_open_chat(dashboard: &Dashboard, name: &str) -> bool {
    let chats = open_chats(dashboard, &Viewer::default());
    chats.iter().any(|(chat, _)| chat == name)
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
                        label for="budget" { "to at most ≈" }
                        input #budget.short type="text" inputmode="numeric" name="budget" placeholder="the policy’s" aria-describedby="budget-unit";
                        span #budget-unit { "tokens" }
                    }
                }
            }
            // A copy that nobody compacted has no summary to go on from.
            @if state.compactions > 0 {
                a.button href=(to("new")) { "Start New Session…" }
                a.button href=(to("ledger")) { "What it remembers" }
            }
            @if is_open_chat(dashboard, name) {
                a.button href=(chat_address(dashboard, name)) { "Go on talking" }
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

/// Shows how to remove a session that holds nothing of its own.
fn render_removal(dashboard: &Dashboard, name: &str) -> Markup {
    html! {
        @if dashboard.actions == ActionMode::Allowed {
            div.actions {
                (action_button(dashboard, "/do/remove", "Remove this session", &[("name", name)]))
                span.quiet { "It holds nothing that the other one does not." }
            }
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
    let other = session_address(dashboard, session);
    html! {
            @match source {
                SessionSource::Branch { .. } => {
                    p { "It began as " a href=(other) { (foreign(session)) }
                        " as it was before " a href=(compaction) { "a compaction" } "." }
                    p { "To go on from here, download the state before, give it to your agent as its history, and call the session "
                        code { (foreign(own)) } ": the first argument of " code { "preflight" } " in Python, or "
                        code { "compactctl compact --session" } "." }
                    p.actions { a.button.first href=(dashboard.link(&format!("/original?name={name}&receipt={id}"))) download { "Download the state before" } }
                },
                SessionSource::Start { .. } => {
                    p { "It begins with what " a href=(other) { (foreign(session)) }
                        " knew after " a href=(compaction) { "a compaction" } "." }
                    p.actions { a.button.first href=(dashboard.link(&format!("/carried?name={name}&receipt={id}"))) download { "Download the first message" } }
                },
            }
    }
}

fn render_curve(dashboard: &Dashboard, curve: &SessionCurve, facts: &SessionFacts) -> Markup {
    let since = facts.records.last().and_then(made_at);
    let requests = &facts.spent.requests;
    let later: Vec<&CountedRequest> = requests
        .iter()
        .filter(|request| Some(request.at) > since)
        .collect();
    if curve.calls.is_empty() && later.is_empty() {
        return html! {};
    }
    let window = facts.window(dashboard);
    let mut chart = SessionChart::from_session(curve, &facts.records, Tokens(window));
    let numbers = compaction_numbers(&facts.records);
    let made = facts.records.iter().zip(numbers);
    let made = made.filter_map(|(record, number)| number.map(|_| record));
    // Where every call was counted by its provider, nothing is estimated, and it is known when each was.
    let is_counted = !requests.is_empty() && requests.len() >= chart.calls.len();
    for (mark, record) in chart.marks.iter_mut().zip(made) {
        mark.address = Some(compaction_address(dashboard, record));
        if is_counted {
            let before = |request: &&CountedRequest| Some(request.at) <= made_at(record);
            mark.call = requests.iter().filter(before).count();
        }
    }
    if !later.is_empty() {
        chart.last_view = None;
    }
    match is_counted {
        true => chart.calls = requests.iter().map(|request| request.prompt.0).collect(),
        false => chart
            .calls
            .extend(later.iter().map(|request| request.prompt.0)),
    }
    let calls = curve.calls.iter();
    let reported = match is_counted {
        true => chart.calls.len(),
        false => calls.filter(|call| call.usage.is_some()).count() + later.len(),
    };
    let body = html! {
            figure {
                div.wide { (PreEscaped(chart.to_svg(ChartSize::Wide))) }
                div.narrow { (PreEscaped(chart.to_svg(ChartSize::Narrow))) }
                figcaption {
                    @match reported {
                        all if all == chart.calls.len() => "As the provider reported it.",
                        0 => "Estimated from the archived original.",
                        some => { (count(some as u64, "call", "calls")) " as the provider reported it, the others estimated." },
                    }
                    @if !chart.marks.is_empty() { " A line is a compaction. Its number, where there is room for one, leads to what it did." }
                    @if chart.calls.iter().all(|sent| sent.saturating_mul(3) < window) {
                        " The window of " (group_digits(window)) " tokens is far above."
                    }
                }
            }
    };
    section("calls", &html! { "Tokens sent with each call" }, &body)
}

/// Returns when a compaction was recorded.
fn made_at(record: &CompactionRecord) -> Option<Timestamp> {
    record.created_at.parse().ok()
}

/// Shows what filled the window when it was compacted last.
fn render_window(
    dashboard: &Dashboard,
    latest: &CompactionRecord,
    reading: &CompactionReading,
    rules: &[WindowPart],
    protected: &BTreeSet<EntryHash>,
    notice: Option<&Notice>,
) -> Markup {
    let parts = Composition::of_input(reading, fixed_tokens(latest));
    if parts.total == 0 {
        return html! {};
    }
    let largest = LargestEntries {
        latest,
        reading,
        protected,
        notice,
    };
    let body = html! {
            p.quiet { (estimated_tokens(parts.total))
                @match is_branch(latest) {
                    true => " before the compaction that was undone",
                    false => { " before the last compaction, " (minute(&latest.created_at)) },
                }
                ", instructions and tools among them. All of the numbers below are estimated, too."
            }
            div.parts {
                (render_parts("By who spoke", &parts.roles, parts.total))
                (render_parts("By tool", &parts.tools, parts.total))
                (render_parts("By file", &parts.files, parts.total))
                (render_parts("By rule, wherever it stands", rules, parts.total))
            }
            h3 { "The largest entries" }
            (largest.render(dashboard, &parts.largest))
    };
    section("filled", &html! { "What filled the window" }, &body)
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
                            span.name.quiet[part.is_rest] { (foreign(&part.name)) }
                            span.number { (group_digits(part.tokens)) }
                            (share_bar(share, &format!("{} of the window", percent(share))))
                        }
                    }
                }
            }
        }
    }
}

/// The entries that cost most, with what there is to do about them.
struct LargestEntries<'a> {
    latest: &'a CompactionRecord,
    reading: &'a CompactionReading,
    protected: &'a BTreeSet<EntryHash>,
    notice: Option<&'a Notice>,
}

impl LargestEntries<'_> {
    /// Shows a few of them, and the rest on demand.
    fn render(&self, dashboard: &Dashboard, entries: &[LargeEntry]) -> Markup {
        let (first, rest) = entries.split_at(entries.len().min(LARGEST_OPEN));
        html! {
            ol.large { @for entry in first { (self.render_entry(dashboard, entry)) } }
            @if !rest.is_empty() {
                details #more-entries {
                    summary { (count(rest.len() as u64, "more", "more")) }
                    ol.large start=(first.len() + 1) { @for entry in rest { (self.render_entry(dashboard, entry)) } }
                }
            }
        }
    }

    fn render_entry(&self, dashboard: &Dashboard, entry: &LargeEntry) -> Markup {
        let (session, receipt) = (
            encode(&self.latest.session_id),
            encode(&self.latest.receipt_id),
        );
        let address = dashboard.link(&format!(
            "/entry?name={session}&receipt={receipt}&at={}",
            entry.at
        ));
        html! {
            li id={ "large-" (entry.at) } {
                p.source {
                    @if let Some(ordinal) = self.reading.ordinal(entry.at) { "#" (ordinal) " · " }
                    strong { (count(entry.tokens, "token", "tokens")) } " · " (speaker(&entry.subject))
                    (render_calls(&entry.subject))
                    @if !entry.subject.is_summary && EntryPlace::find(self.reading, entry.at, self.latest) == EntryPlace::Left { " · " span.fate.dropped { "not whole in the view any more" } }
                }
                p.opening { a href=(address) { (foreign(&self.reading.opening(entry.at, OPENING))) } }
                @if !entry.subject.is_summary { (self.render_pin(dashboard, entry.at)) }
                (render_notice(self.notice, &NoticeSubject::Entry(entry.at)))
            }
        }
    }

    fn render_pin(&self, dashboard: &Dashboard, at: usize) -> Markup {
        let name = self.reading.entry_name(at);
        let name = name.filter(|_| !self.reading.is_instruction(at));
        let place = at.to_string();
        let fields = [
            ("name", self.latest.session_id.as_str()),
            ("receipt", self.latest.receipt_id.as_str()),
            ("at", place.as_str()),
        ];
        html! {
            @match name.map(|name| self.protected.contains(&name)) {
                Some(true) => (action_button(dashboard, "/do/unpin", "Unpin", &fields)),
                Some(false) => (action_button(dashboard, "/do/pin", "Pin", &fields)),
                None => "",
            }
        }
    }
}
