//! A page to talk in: what happens to a conversation that grows too large, and what a person can do about it.

use std::sync::Arc;

use axum::extract::{Form, Path, Query, State};
use axum::response::Redirect;
use compact::message::Role;
use compact::reset::{DEAD, InputState};
use maud::{Markup, html};
use serde::Deserialize;

use crate::action::check_token;
use crate::chat::{ChatItem, ChatNotification, ChatRooms, ChatState};
use crate::page::PageError;
use crate::page::chart::pressure_bar;
use crate::page::layout::{Layout, action_button};
use crate::text::{encode, group_digits, percent, visible};
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
}

/// What a form of the page carries.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChatForm {
    token: String,
    session: String,
    words: String,
}

/// Shows the conversation.
pub(crate) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Query(query): Query<ChatQuery>,
) -> Result<Markup, PageError> {
    let session = session_name(&viewer, &query.session);
    let rooms = find_rooms(&dashboard, &viewer, &session)?;
    let room = rooms.room(&session)?;
    let model = rooms.model_name();
    Ok(render(
        &dashboard,
        &session,
        &room.state(),
        model.as_deref(),
    ))
}

/// Does what a form asks for, beside the answer: the page shows how it goes on.
pub(crate) async fn act(
    State(dashboard): State<Arc<Dashboard>>,
    viewer: Viewer,
    Path(action): Path<String>,
    Form(form): Form<ChatForm>,
) -> Result<Redirect, PageError> {
    let session = begin(&dashboard, &viewer, &action, form).await?;
    let address = format!("/chat?session={}", encode(&session));
    Ok(Redirect::to(&dashboard.link(&address)))
}

async fn begin(
    dashboard: &Dashboard,
    viewer: &Viewer,
    action: &str,
    form: ChatForm,
) -> Result<String, PageError> {
    check_token(dashboard, &form.token)?;
    let session = session_name(viewer, &form.session);
    let rooms = find_rooms(dashboard, viewer, &session)?;
    let room = rooms.room(&session)?;
    let is_open = room.state().input == InputState::Open;
    match action {
        "send" if is_open && !form.words.trim().is_empty() => {
            tokio::spawn(async move { room.send(form.words.trim()).await });
        }
        "retry" => {
            tokio::spawn(async move { room.retry().await });
        }
        "new" => {
            let at = dashboard.compact.clock().now().as_millisecond();
            room.start_new(&format!("{session}-{at}")).await;
        }
        _ => return Err(PageError::refused("the conversation takes no input now")),
    }
    Ok(session)
}

fn session_name(viewer: &Viewer, asked: &str) -> String {
    match asked {
        "" => format!("{}chat", viewer.scope),
        asked => asked.to_owned(),
    }
}

fn find_rooms<'a>(
    dashboard: &'a Dashboard,
    viewer: &Viewer,
    session: &str,
) -> Result<&'a ChatRooms, PageError> {
    let rooms = dashboard.chats.as_ref();
    let rooms =
        rooms.filter(|_| viewer.may_see(session) && dashboard.actions == ActionMode::Allowed);
    rooms.ok_or_else(|| PageError::not_found(session))
}

fn render(dashboard: &Dashboard, session: &str, state: &ChatState, model: Option<&str>) -> Markup {
    let fields = [("session", session)];
    let body = html! {
        @if state.items.is_empty() { (render_purpose(model)) }
        (render_metrics(state))
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
            (render_input(dashboard, session, state))
        }
    };
    Layout::new(dashboard, "Chat").page(&body)
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

fn render_metrics(state: &ChatState) -> Markup {
    let share = state.tokens as f64 / state.max_tokens.max(1) as f64;
    html! {
        div.metrics role="group" aria-label="Context" {
            span { "Compactions: " strong #compaction-count { (group_digits(state.compaction_count)) } }
            @if state.tokens > 0 {
                span #context-metrics { (group_digits(state.tokens)) " of " (group_digits(state.max_tokens)) " tokens (" (percent(share)) ")" }
                (pressure_bar(share, &format!("{} of the window", percent(share))))
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
            li.item { "Conversation compacted at " (group_digits(*tokens_before)) " tokens" }
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
