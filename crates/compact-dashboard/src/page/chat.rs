//! A page to talk in: what happens to a conversation that grows too large, and what a person can do about it.

use axum::extract::Path;
use axum::response::Redirect;
use compact::message::Role;
use compact::reset::{DEAD, InputState};
use maud::{Markup, html};
use serde::Deserialize;

use crate::chat::{ChatItem, ChatNotification, ChatRooms, ChatState};
use crate::notice::{Notice, NoticeSubject};
use crate::page::PageError;
use crate::page::chart::pressure_bar;
use crate::page::layout::{Layout, action_button};
use crate::page::list::session_address;
use crate::text::{encode, estimated_tokens, foreign, group_digits, percent, unify_lines, visible};
use crate::visit::{Asked, Visit};
use crate::{ActionMode, Dashboard, Viewer};

/// What the page says while a compaction runs.
const COMPACTING: &str = "Compacting conversation…";
/// What it says when one ended well.
const COMPACTED: &str = "Session compacted. Conversation history has been summarized.";

/// What the address asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChatQuery {
    session: String,
    done: Option<u64>,
}

/// What a form of the page carries.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChatForm {
    token: String,
    session: String,
    words: String,
}

impl Asked for ChatQuery {
    fn session(&self) -> Option<&str> {
        (!self.session.is_empty()).then_some(&self.session)
    }
}

impl Asked for ChatForm {
    fn session(&self) -> Option<&str> {
        (!self.session.is_empty()).then_some(&self.session)
    }

    fn token(&self) -> &str {
        &self.token
    }
}

/// Shows the conversation.
pub(crate) async fn show(visit: Visit<ChatQuery>) -> Result<Markup, PageError> {
    let dashboard = &*visit.dashboard;
    let session = find_session(dashboard, &visit.viewer, &visit.asked.session).await?;
    let rooms = find_rooms(dashboard, &session)?;
    let model = rooms.model_name();
    let state = rooms.look(&session)?;
    let notice = dashboard.notices.take(visit.asked.done, &session);
    let others = open_chats(dashboard, &visit.viewer);
    let body = html! {
        (render(dashboard, &session, &state, model.as_deref()))
        @if state.compaction_count > 0 {
            p.actions { a.button href=(session_address(dashboard, &session)) { "What was compacted of it" } }
        }
        (render_others(dashboard, &session, &others))
    };
    let title = match visit.asked.session.as_str() {
        "" => "Chat".to_owned(),
        named => format!("Chat “{named}”"),
    };
    let layout = Layout::new(dashboard, &title).live_since(visit.seen);
    Ok(layout.with_notice(notice.as_ref()).page(&body))
}

/// Returns the conversations that are open and the viewer's to see, with how often each was compacted.
pub(crate) fn open_chats(dashboard: &Dashboard, viewer: &Viewer) -> Vec<(String, u64)> {
    let rooms = dashboard.chats.as_ref();
    let rooms = rooms.filter(|_| dashboard.actions == ActionMode::Allowed);
    let mut chats = rooms.map(ChatRooms::begun).unwrap_or_default();
    chats.retain(|(name, _)| viewer.may_see(name));
    chats
}

/// Returns the address of a conversation.
pub(crate) fn chat_address(dashboard: &Dashboard, session: &str) -> String {
    dashboard.link(&format!("/chat?session={}", encode(session)))
}

/// Leads to the other conversations.
fn render_others(dashboard: &Dashboard, session: &str, chats: &[(String, u64)]) -> Markup {
    let others = chats.iter().map(|(name, _)| name);
    let others: Vec<&String> = others.filter(|name| *name != session).collect();
    html! {
        @if !others.is_empty() {
            nav.others aria-label="Other chats" {
                h2 { "Other chats" }
                ul.names { @for name in others { li { a href=(chat_address(dashboard, name)) { (foreign(name)) } } } }
            }
        }
    }
}

/// Does what a form asks for, beside the answer: the page shows how it goes on.
pub(crate) async fn act(
    Path(action): Path<String>,
    visit: Visit<ChatForm>,
) -> Result<Redirect, PageError> {
    let dashboard = &visit.dashboard;
    let session = find_session(dashboard, &visit.viewer, &visit.asked.session).await?;
    let begun = begin(dashboard, &session, &action, visit.asked).await?;
    let address = chat_address(dashboard, &session);
    Ok(Redirect::to(&match begun {
        ChatStep::Begun => format!("{address}#say"),
        ChatStep::Nothing(words) => {
            let number = dashboard.notices.add(Notice {
                session,
                subject: NoticeSubject::Page,
                words: words.to_owned(),
                leads_to: None,
            });
            format!("{address}&done={number}#notice")
        }
    }))
}

/// What came of a form.
enum ChatStep {
    /// It is being done.
    Begun,
    /// Nothing, and why.
    Nothing(&'static str),
}

async fn begin(
    dashboard: &Dashboard,
    session: &str,
    action: &str,
    form: ChatForm,
) -> Result<ChatStep, PageError> {
    let rooms = find_rooms(dashboard, session)?;
    let room = rooms.room(session)?;
    let is_open = room.state().input == InputState::Open;
    match action {
        "send" if !is_open => {
            let reason = "The conversation takes no input now: wait, or begin a new session.";
            return Ok(ChatStep::Nothing(reason));
        }
        "send" if form.words.trim().is_empty() => {
            return Ok(ChatStep::Nothing("Nothing was sent: type a message first."));
        }
        "send" => {
            let words = unify_lines(form.words.trim());
            tokio::spawn(async move { room.send(&words).await });
        }
        "retry" => {
            tokio::spawn(async move { room.retry().await });
        }
        "new" => {
            let at = dashboard.compact.clock().now().as_millisecond();
            room.start_new(&format!("{session}-{at}")).await;
        }
        _ => return Err(PageError::not_found(action)),
    }
    Ok(ChatStep::Begun)
}

/// The session of a conversation: one that is open, or a name that nothing on record has. Words of a chat never stand above
/// what another program archived.
async fn find_session(
    dashboard: &Dashboard,
    viewer: &Viewer,
    asked: &str,
) -> Result<String, PageError> {
    let usual = format!("{}chat", viewer.scope);
    if asked.is_empty() {
        let mut name = usual.clone();
        for nth in 2.. {
            if is_free(dashboard, &name).await? {
                break;
            }
            name = format!("{usual}-{nth}");
        }
        return Ok(name);
    }
    match is_free(dashboard, asked).await? {
        true => Ok(asked.to_owned()),
        false => Err(PageError::wrong(
            "a session of this name is on record, and no chat of it is open",
            "begin a chat of another name; what is on record stands on the page of the session",
        )),
    }
}

/// Whether a chat may have a name: it is the name of an open one, or of nothing on record.
async fn is_free(dashboard: &Dashboard, name: &str) -> Result<bool, PageError> {
    let rooms = find_rooms(dashboard, name)?;
    Ok(rooms.is_open(name)
        || dashboard.compact.describe_session(name).await?.is_none()
            && dashboard.compact.session_source(name).await?.is_none())
}

fn find_rooms<'a>(dashboard: &'a Dashboard, session: &str) -> Result<&'a ChatRooms, PageError> {
    let rooms = dashboard.chats.as_ref();
    let rooms = rooms.filter(|_| dashboard.actions == ActionMode::Allowed);
    rooms.ok_or_else(|| PageError::not_found(session))
}

fn render(dashboard: &Dashboard, session: &str, state: &ChatState, model: Option<&str>) -> Markup {
    let fields = [("session", session)];
    html! {
        @if state.items.is_empty() { (render_purpose(model)) }
        div.chat {
            ol aria-label="Conversation" {
                @for item in &state.items { (render_item(item)) }
                @if state.input == InputState::Compacting { li.item #compacting { span role="status" { (COMPACTING) } } }
            }
            @match &state.notification {
                Some(ChatNotification::Compacted) => p.notice role="status" { (COMPACTED) },
                Some(ChatNotification::Failed { error }) => div.notice.warning role="alert" {
                    p { "Compaction failed: " (visible(error)) ". Nothing was changed." }
                    (action_button(dashboard, "/chat/retry", "Retry", &fields))
                },
                Some(ChatNotification::Unanswered { error }) => div.notice.warning role="alert" {
                    p { "The model did not answer: " (visible(error)) "." }
                },
                Some(ChatNotification::Dead) => div.notice.bad role="alert" {
                    p { (DEAD) }
                    (action_button(dashboard, "/chat/new", "Start New Session", &fields))
                },
                None => "",
            }
            (render_metrics(state, model))
            (render_input(dashboard, session, state))
        }
    }
}

/// Says what the page is for, before something is said.
fn render_purpose(model: Option<&str>) -> Markup {
    html! {
        p.lead { "Talk until the window is full, and see what happens: the conversation is summarized, and goes on from its summary." }
        @match model {
            Some(model) => p.quiet { "You talk to " (visible(model)) "." },
            None => p.quiet { "The model repeats what it is told. Choose a real one with " code { "compactctl dashboard --chat-model NAME" } "." },
        }
    }
}

fn render_metrics(state: &ChatState, model: Option<&str>) -> Markup {
    let share = state.tokens as f64 / state.max_tokens.max(1) as f64;
    html! {
        div.metrics role="group" aria-label="Context" {
            span { "Compactions: " strong #compaction-count { (group_digits(state.compaction_count)) } }
            @if state.tokens > 0 {
                span #context-metrics { "≈ " (group_digits(state.tokens)) " of " (group_digits(state.max_tokens)) " tokens (" (percent(share)) ")" }
                (pressure_bar(share, &format!("{} of the window", percent(share))))
                span.quiet {
                    @match model {
                        Some(_) => "what the provider counted last, and an estimate of what was said since",
                        None => "estimated",
                    }
                }
            } @else {
                span #context-metrics { "window of " (group_digits(state.max_tokens)) " tokens" }
            }
        }
    }
}

fn render_item(item: &ChatItem) -> Markup {
    match item {
        ChatItem::Said(role, words) => html! {
            li.(role.as_str()) {
                p.speaker { @if *role == Role::User { "You" } @else { "Model" } }
                p dir="auto" { (visible(words)) }
            }
        },
        ChatItem::Compacted { tokens_before } => html! {
            li.item { "Conversation compacted at " (estimated_tokens(*tokens_before)) }
        },
    }
}

fn render_input(dashboard: &Dashboard, session: &str, state: &ChatState) -> Markup {
    let is_closed = state.input != InputState::Open;
    let is_failed = matches!(
        state.notification,
        Some(ChatNotification::Failed { .. } | ChatNotification::Dead)
    );
    html! {
        form #say method="post" action=(dashboard.link("/chat/send")) {
            input type="hidden" name="token" value=(dashboard.token.as_str());
            input type="hidden" name="session" value=(session);
            label.unseen for="words" { "Your message" }
            textarea #words name="words" required disabled[is_closed] placeholder="Say something" {}
            div.actions {
                button.first type="submit" disabled[is_closed] { "Send" }
                @if is_failed { button type="submit" formaction=(dashboard.link("/chat/retry")) formnovalidate { "Retry compaction" } }
            }
        }
    }
}
