//! Conversations over the hard-reset driver: a person, a model, and a history that is cleared when it grows too large.
//!
//! The driver decides and says what happens as events; a room keeps what a page shows of them. Where no model is chosen, a
//! scripted one repeats what it is told: what is shown then is the compaction, not the answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compact::event::{Event, EventSink};
use compact::message::Role;
use compact::reset::{InputState, ResetSession};
use compact::summarizer::Summarizer;
use compact::{Compact, Error};
use serde_json::{Value, json};

use crate::live::ChangeSignal;

/// The instructions of every conversation.
const INSTRUCTIONS: &str = include_str!("../templates/chat_instructions.md");
/// How many conversations are open; the oldest goes when there are more. Its transcript stays.
const ROOMS: usize = 64;

/// The rooms that are open.
pub(crate) struct ChatRooms {
    engine: Compact,
    model: Option<Arc<dyn Summarizer>>,
    changes: ChangeSignal,
    /// By session, the oldest first.
    rooms: Mutex<Vec<(String, Arc<ChatRoom>)>>,
}

/// One conversation.
pub(crate) struct ChatRoom {
    session: tokio::sync::Mutex<ResetSession>,
    model: Option<Arc<dyn Summarizer>>,
    shown: Arc<ShownChat>,
}

/// What a page shows of a conversation, and who is told that it changed.
pub(crate) struct ShownChat {
    /// The session that the conversation was opened under.
    session: String,
    state: Mutex<ChatState>,
    changes: ChangeSignal,
}

/// A conversation as it is now.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChatState {
    /// What was said and what happened, in order.
    pub(crate) items: Vec<ChatItem>,
    /// Whether input is taken.
    pub(crate) input: InputState,
    /// What the page says last of a compaction.
    pub(crate) notification: Option<ChatNotification>,
    /// How many compactions there were.
    pub(crate) compaction_count: u64,
    /// The size of the context.
    pub(crate) tokens: u64,
    /// What the model takes.
    pub(crate) max_tokens: u64,
}

/// One line of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatItem {
    /// A message.
    Said(Role, String),
    /// A compaction that ended well.
    Compacted {
        /// Tokens before.
        tokens_before: u64,
    },
}

/// What a page says of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatNotification {
    /// It ended well.
    Compacted,
    /// It failed, and the conversation can go on.
    Failed {
        /// Why.
        error: String,
    },
    /// It failed, and the context is over its limit.
    Dead,
    /// The model did not answer.
    Unanswered {
        /// Why.
        error: String,
    },
}

impl ChatRooms {
    pub(crate) fn new(
        engine: Compact,
        model: Option<Arc<dyn Summarizer>>,
        changes: ChangeSignal,
    ) -> ChatRooms {
        ChatRooms {
            engine,
            model,
            changes,
            rooms: Mutex::default(),
        }
    }

    /// Returns the name of the model that answers; `None` for the scripted one.
    pub(crate) fn model_name(&self) -> Option<String> {
        Some(self.model.as_ref()?.describe().name)
    }

    /// Returns a conversation as it is now; one that nobody began is empty, and stays unopened.
    pub(crate) fn look(&self, session: &str) -> Result<ChatState, Error> {
        let known = self.find(session);
        let room = match known {
            Some(room) => room,
            None => Arc::new(self.open_room(session)?),
        };
        Ok(room.state())
    }

    /// Returns the sessions of the conversations in which something was said, the newest first, and how often each was
    /// compacted.
    pub(crate) fn begun(&self) -> Vec<(String, u64)> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let rooms = rooms.iter().rev();
        let states = rooms.map(|(name, room)| (name, room.state()));
        let begun = states.filter(|(_, state)| !state.items.is_empty());
        begun
            .map(|(name, state)| (name.clone(), state.compaction_count))
            .collect()
    }

    /// Whether the conversation of a session is open.
    pub(crate) fn is_open(&self, session: &str) -> bool {
        self.find(session).is_some()
    }

    fn find(&self, session: &str) -> Option<Arc<ChatRoom>> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let found = rooms.iter().find(|(name, _)| name == session);
        found.map(|(_, room)| Arc::clone(room))
    }

    /// Returns the room of a session, and opens it first where it is new.
    pub(crate) fn room(&self, session: &str) -> Result<Arc<ChatRoom>, Error> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, room)) = rooms.iter().find(|(name, _)| name == session) {
            return Ok(Arc::clone(room));
        }
        let room = Arc::new(self.open_room(session)?);
        if rooms.len() >= ROOMS {
            rooms.remove(0);
        }
        rooms.push((session.to_owned(), Arc::clone(&room)));
        Ok(room)
    }

    fn open_room(&self, session: &str) -> Result<ChatRoom, Error> {
        let shown = Arc::new(ShownChat {
            session: session.to_owned(),
            state: Mutex::default(),
            changes: self.changes.clone(),
        });
        let base = vec![json!({"role": "system", "content": INSTRUCTIONS.trim_end()})];
        let own: Arc<dyn EventSink> = Arc::clone(&shown) as Arc<dyn EventSink>;
        let mut session = self
            .engine
            .reset_session_with_sink(session, &base, Some(own))?;
        shown.lock().follow(&mut session);
        Ok(ChatRoom {
            session: tokio::sync::Mutex::new(session),
            model: self.model.clone(),
            shown,
        })
    }
}

impl ChatRoom {
    /// Returns the conversation as it is now.
    pub(crate) fn state(&self) -> ChatState {
        self.shown.lock().clone()
    }

    /// A person says something, and the model answers unless the session is dead.
    pub(crate) async fn send(&self, words: &str) {
        let mut session = self.session.lock().await;
        self.shown.add(ChatItem::Said(Role::User, words.to_owned()));
        let message = json!({"role": "user", "content": words});
        let may_call =
            session.begin_turn(&message).await.is_ok() && session.before_call().await.is_ok();
        if may_call {
            match self.answer(&mut session, words).await {
                Ok(answer) => self.shown.add(ChatItem::Said(Role::Assistant, answer)),
                Err(error) => self
                    .shown
                    .lock()
                    .notify(ChatNotification::Unanswered { error }),
            }
        }
        self.follow(&mut session);
    }

    /// Returns what the model says, or why it says nothing.
    async fn answer(&self, session: &mut ResetSession, words: &str) -> Result<String, String> {
        if let Some(model) = &self.model {
            let answered = session.ask_model(&**model).await;
            return answered.map_err(|error| error.to_string());
        }
        let answer = format!("You said: {words}");
        let message = json!({"role": "assistant", "content": answer});
        let appended = session.append(&[message]);
        appended.map(|()| answer).map_err(|error| error.to_string())
    }

    /// A person asks for another attempt.
    pub(crate) async fn retry(&self) {
        let mut session = self.session.lock().await;
        // What comes of it is told as an event.
        let _ = session.retry().await;
        self.follow(&mut session);
    }

    /// A person begins anew: the old conversation's transcript stays.
    pub(crate) async fn start_new(&self, name: &str) {
        let mut session = self.session.lock().await;
        session.start_new(name);
        *self.shown.lock() = ChatState::default();
        self.follow(&mut session);
    }

    fn follow(&self, session: &mut ResetSession) {
        self.shown.lock().follow(session);
        self.shown.announce();
    }
}

impl ChatState {
    /// Takes over where the session stands.
    fn follow(&mut self, session: &mut ResetSession) {
        let status = session.status();
        self.input = status.input;
        self.tokens = status.tokens.0;
        self.max_tokens = status.max_tokens.0;
        self.compaction_count = u64::from(status.compaction_count);
    }

    fn notify(&mut self, notification: ChatNotification) {
        self.notification = Some(notification);
    }
}

impl ShownChat {
    fn lock(&self) -> MutexGuard<'_, ChatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self) {
        self.changes.announce(&self.session);
    }

    fn add(&self, item: ChatItem) {
        self.lock().items.push(item);
        self.announce();
    }
}

/// The handlers of the driver's events.
impl EventSink for ShownChat {
    fn emit(&self, event: &Event) {
        let fields = serde_json::to_value(event).unwrap_or_default();
        let number = |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or(0);
        let mut state = self.lock();
        match event.kind.name().as_str() {
            "context_compaction_started" => {
                state.input = InputState::Compacting;
                state.notification = None;
                state.tokens = number("tokens_before");
                state.max_tokens = number("max_tokens");
            }
            "context_compacted" => {
                state.input = InputState::Open;
                state.notification = Some(ChatNotification::Compacted);
                state.compaction_count = number("compaction_count");
                state.tokens = number("tokens_after");
                let tokens_before = number("tokens_before");
                state.items.push(ChatItem::Compacted { tokens_before });
            }
            "context_compaction_failed" => {
                state.tokens = number("tokens_current");
                state.max_tokens = number("max_tokens");
                let error = fields.get("error").and_then(Value::as_str);
                let is_dead = fields.get("context_exceeded") == Some(&Value::Bool(true));
                state.input = if is_dead {
                    InputState::Dead
                } else {
                    InputState::Open
                };
                state.notification = Some(match is_dead {
                    true => ChatNotification::Dead,
                    false => ChatNotification::Failed {
                        error: error.unwrap_or_default().to_owned(),
                    },
                });
            }
            _ => return,
        }
        drop(state);
        self.announce();
    }
}
