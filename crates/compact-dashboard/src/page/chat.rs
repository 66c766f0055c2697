//! A page to talk in: what happens to a conversation that grows too large, and what a person can do about it.

use axum::extract::Path;
use axum::response::Redirect;
use compact::message::Role;
use compact::reset::{DEAD, InputState};
use maud::{Markup, html};
use serde::Deserialize;

use crate::chat::{ChatItem, ChatNotification, ChatRooms, ChatState};
use crate::page::PageError;
use crate::page::chart::pressure_bar;
use crate::page::layout::{Layout, action_button};
use crate::text::{encode, estimated_tokens, group_digits, percent, visible};
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
    let session = session_name(&visit.viewer, &visit.asked.session);
    let rooms = find_rooms(dashboard, &session)?;
    let model = rooms.model_name();
    let state = rooms.look(&session)?;
    let body = render(dashboard, &session, &state, model.as_deref());
    let layout = Layout::new(dashboard, "Chat").live_since(visit.seen);
    Ok(layout.page(&body))
}

/// Does what a form asks for, beside the answer: the page shows how it goes on.
pub(crate) async fn act(
    Path(action): Path<String>,
    visit: Visit<ChatForm>,
) -> Result<Redirect, PageError> {
    let session = session_name(&visit.viewer, &visit.asked.session);
    begin(&visit.dashboard, &session, &action, visit.asked).await?;
    let address = format!("/chat?session={}#say", encode(&session));
    Ok(Redirect::to(&visit.dashboard.link(&address)))
}

async fn begin(
    dashboard: &Dashboard,
    session: &str,
    action: &str,
    form: ChatForm,
) -> Result<(), PageError> {
    let rooms = find_rooms(dashboard, session)?;
    let room = rooms.room(session)?;
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
        "send" => {
            let reason = "the conversation takes no input now";
            let hint = "go back and wait, or begin a new session";
            return Err(PageError::refused(reason, hint));
        }
        _ => return Err(PageError::not_found(action)),
    }
    Ok(())
}

fn session_name(viewer: &Viewer, asked: &str) -> String {
    match asked {
        "" => format!("{}chat", viewer.scope),
        asked => asked.to_owned(),
    }
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
