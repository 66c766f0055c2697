//! The first page: every session, and everything archived by words.

use compact::ErrorKind;
use compact::overview::{
    ListedSession, SessionEvent, SessionList, SessionListQuery, SessionOrigin,
};
use compact::recall::{RecallQuery, SearchAnswer, SearchHit};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use crate::page::PageError;
use crate::page::chart::pressure_bar;
use crate::page::chat::{chat_address, open_chats};
use crate::page::layout::{Layout, ListPages, section};
use crate::text::{
    count, encode, estimate_note, foreign, group_digits, percent, short_number, time_ago,
};
use crate::visit::{Asked, Visit};
use crate::{Dashboard, Viewer};

/// How many sessions a page shows.
const PAGE: usize = 25;
/// How many characters of a question are looked for.
const LONGEST_QUESTION: usize = 1_000;
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
    done: Option<u64>,
}

impl Asked for ListQuery {
    fn session(&self) -> Option<&str> {
        (!self.session.is_empty()).then_some(&self.session)
    }
}

/// Shows the list.
pub(crate) async fn show(visit: Visit<ListQuery>) -> Result<Markup, PageError> {
    let (dashboard, query) = (&*visit.dashboard, &visit.asked);
    let wanted = SessionListQuery {
        prefix: &visit.viewer.scope,
        contains: if query.session.is_empty() {
            query.q.trim()
        } else {
            &query.session
        },
        skip: query.page.saturating_mul(PAGE),
        limit: PAGE,
    };
    let list = dashboard.compact.list_sessions(&wanted).await?;
    let words = query.q.trim();
    if words.chars().count() > LONGEST_QUESTION {
        return Err(PageError::wrong(
            &format!("a question has at most {LONGEST_QUESTION} characters"),
            "ask with a name, a path or a few distinctive words",
        ));
    }
    let found = match words {
        "" => None,
        words => Some(find_entries(dashboard, &visit.viewer, words, &query.session).await?),
    };
    let now = dashboard.compact.clock().now();
    let notice = dashboard.notices.take(query.done, &visit.viewer.scope);
    let sessions = render_sessions(dashboard, &list, query, now);
    // Whoever types a part of a session's name wants that session.
    let is_named = !words.is_empty() && query.session.is_empty() && list.total > 0;
    let body = html! {
        (search_form(dashboard, query))
        @if is_named { (sessions) }
        @if let Some(found) = &found { (render_answer(dashboard, found)) }
        @if !is_named { (sessions) }
        @if words.is_empty() && query.page == 0 { (render_chats(dashboard, &visit.viewer)) }
    };
    let title = if words.is_empty() {
        "Sessions"
    } else {
        "Search"
    };
    let mut layout = Layout::new(dashboard, title).live_since(visit.seen);
    layout = layout.with_notice(notice.as_ref());
    if !words.is_empty() {
        layout = layout.below("Sessions", dashboard.link("/"));
    }
    if !query.session.is_empty() {
        layout = layout.below(&query.session, session_address(dashboard, &query.session));
    }
    Ok(layout.page(&body))
}

/// Finds entries by their words; where nothing was archived there is nothing to find.
async fn find_entries(
    dashboard: &Dashboard,
    viewer: &Viewer,
    words: &str,
    session: &str,
) -> Result<SearchAnswer, PageError> {
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
    let mut found = match dashboard.compact.search(&query).await {
        Err(compact::Error::NothingArchived(_)) => SearchAnswer::default(),
        // There is no word in it.
        Err(error @ compact::Error::Runtime(_)) if error.kind() == ErrorKind::Config => {
            SearchAnswer::default()
        }
        found => found?,
    };
    found.hits.retain(|hit| viewer.may_see(&hit.session_id));
    found.hits.truncate(HITS);
    if !viewer.scope.is_empty() {
        // They were looked for in the archives of others, too, and would tell what those say.
        found.unknown_words.clear();
    }
    Ok(found)
}

/// Returns the number by which a pointer names an entry; none where it has another name.
fn pointer_number(hit: &SearchHit) -> Option<&str> {
    hit.pointer.rsplit_once('#').map(|(_, number)| number)
}

fn search_form(dashboard: &Dashboard, query: &ListQuery) -> Markup {
    let session = &query.session;
    html! {
        form.search role="search" action=(dashboard.link("/")) {
            @if !session.is_empty() { input type="hidden" name="session" value=(session); }
            label for="q" {
                @if session.is_empty() { "Search names, and everything that was ever said" }
                @else { "Search what was said in " (foreign(session)) }
            }
            div.field {
                input #q type="search" name="q" value=(query.q) placeholder="which port serves the metrics" autocomplete="off";
                button type="submit" { "Search" }
            }
        }
    }
}

/// Shows what a search found, and what it did not find.
fn render_answer(dashboard: &Dashboard, found: &SearchAnswer) -> Markup {
    let body = html! {
        (render_gaps(found))
        ol.hits { @for hit in &found.hits { (render_hit(dashboard, hit)) } }
    };
    section("found", &html! { "Said" }, &body)
}

/// Says how what was found falls short of what was asked.
fn render_gaps(found: &SearchAnswer) -> Markup {
    html! {
        @if found.hits.is_empty() { p.gap { "Nothing archived answers these words." } }
        @else if !found.has_all_words() { p.gap { "No entry has all of these words. These come closest." } }
        @if !found.hits.is_empty() && !found.unknown_words.is_empty() {
            p.gap { "Nothing archived says " (join_words(&found.unknown_words)) "." }
        }
    }
}

fn join_words(words: &[String]) -> Markup {
    html! {
        @for (at, word) in words.iter().enumerate() { @if at > 0 { ", " } "“" (foreign(word)) "”" }
    }
}

/// Shows an entry that was found, with the way to it and to its session.
fn render_hit(dashboard: &Dashboard, hit: &SearchHit) -> Markup {
    let entry = dashboard.link(&format!("/entry?pointer={}", encode(&hit.pointer)));
    html! {
        li {
            p.source {
                a href=(session_address(dashboard, &hit.session_id)) { (foreign(&hit.session_id)) }
                " · " @if let Some(number) = pointer_number(hit) { "#" (number) " · " }
                (hit.role.as_str())
                " · " a href=(entry) { "whole entry" }
                @if !hit.missing_words.is_empty() { span.gap { " · without " (join_words(&hit.missing_words)) } }
            }
            blockquote { (foreign(&hit.snippet)) }
        }
    }
}

/// Shows the conversations that are open on the page to talk in: they are in the list once they were compacted.
fn render_chats(dashboard: &Dashboard, viewer: &Viewer) -> Markup {
    let chats = open_chats(dashboard, viewer).into_iter();
    let chats = chats.filter(|(_, compactions)| *compactions == 0);
    let chats: Vec<String> = chats.map(|(name, _)| name).collect();
    let body = html! {
        ul.names { @for chat in &chats { li { a href=(chat_address(dashboard, chat)) { (foreign(chat)) } } } }
        p.quiet { "They stand in the list of sessions, too, as soon as they were compacted." }
    };
    match chats.is_empty() {
        true => html! {},
        false => section("chats", &html! { "Open chats" }, &body),
    }
}

/// Returns the address of a session's page.
pub(crate) fn session_address(dashboard: &Dashboard, session: &str) -> String {
    dashboard.link(&format!("/session?name={}", encode(session)))
}

fn render_sessions(
    dashboard: &Dashboard,
    list: &SessionList,
    query: &ListQuery,
    now: Timestamp,
) -> Markup {
    let pages = ListPages {
        page: query.page,
        rows: PAGE,
        total: list.total,
        words: ("Newer", "Older"),
    };
    let address = |page: usize| {
        let (words, session) = (encode(&query.q), encode(&query.session));
        dashboard.link(&format!("/?q={words}&session={session}&page={page}"))
    };
    let title = html! { (count(list.total as u64, "session", "sessions")) };
    let body = html! {
            @if list.total == 0 { (render_nothing(query)) }
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
                (pages.render("Pages of the list", address))
                (estimate_note())
            }
    };
    section("sessions", &title, &body)
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
    let address = session_address(dashboard, &info.session_id);
    html! {
        tr {
            th scope="row" { a href=(address) { (foreign(&info.session_id)) } }
            td.from data-label="From" { (source_name(listed)) }
            td data-label="Model" { @match &listed.model { Some(model) => (foreign(model)), None => span.quiet.none { "–" } } }
            td.number data-label="Window" { (render_pressure(listed)) }
            td.number data-label="Compactions" { (render_count(listed)) }
            td.number data-label="Kept" { @match listed.retention { Some(share) => (percent(share)), None => span.quiet.none { "–" } } }
            td.number data-label="Last" { (render_last_event(listed, now)) }
        }
    }
}

/// Shows how often a session was compacted; of one that only copies were left of, nobody here knows.
pub(crate) fn render_count(listed: &ListedSession) -> Markup {
    match listed.last_event() {
        SessionEvent::Copy => html! { span.quiet.none { "–" } },
        _ => html! { (group_digits(listed.compactions)) },
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
        return html! { span.quiet.none { "–" } };
    };
    let window = listed.window.tokens.0.max(1);
    let share = tokens.0 as f64 / window as f64;
    let mark = if listed.is_counted() { "" } else { "≈ " };
    let label = format!(
        "{mark}{} of {} tokens, {}",
        group_digits(tokens.0),
        group_digits(window),
        percent(share)
    );
    html! {
        span.pressure title=(label) {
            span { (mark) (short_number(tokens.0)) span.quiet { " of " (short_number(window)) } }
            (pressure_bar(share, &label))
        }
    }
}

/// Returns where a session came from, in words.
pub(crate) fn source_name(listed: &ListedSession) -> String {
    match listed.origin {
        SessionOrigin::Hook => "hook".to_owned(),
        SessionOrigin::Run => "run".to_owned(),
        SessionOrigin::Branch => "undo".to_owned(),
        SessionOrigin::Compaction => match listed.info.format.as_deref() {
            None if listed.request.is_some() => "live session".to_owned(),
            None => "–".to_owned(),
            Some("entries") => "live session".to_owned(),
            Some(format) => format.replace(['-', '_'], " "),
        },
    }
}
