//! Conversations over the hard-reset driver: a person, a model, and a history that is cleared when it grows too large.
//!
//! The driver decides and says what happens as events; a room keeps what a page shows of them. The model is a scripted one,
//! which repeats what it is told: what is shown here is the compaction, not the answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compact::event::{Event, EventSink, FanoutSink};
use compact::manager::Manager;
use compact::message::{Conversation, Entry, Role, WireRules};
use compact::reset::{HardReset, InputState, TranscriptFiles, TranscriptStore};
use compact::{Compact, Error};
use serde_json::Value;

use crate::live::ChangeSignal;

/// The folder of transcripts in the data directory.
const TRANSCRIPTS: &str = "sessions";
/// The instructions of every conversation.
const INSTRUCTIONS: &str = include_str!("../templates/chat_instructions.md");

/// The rooms that are open.
pub(crate) struct ChatRooms {
    engine: Compact,
    changes: ChangeSignal,
    rooms: Mutex<HashMap<String, Arc<ChatRoom>>>,
}

/// One conversation.
pub(crate) struct ChatRoom {
    driver: tokio::sync::Mutex<HardReset>,
    shown: Arc<ShownChat>,
}

/// What a page shows of a conversation, and who is told that it changed.
pub(crate) struct ShownChat {
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
    /// The size of the context, as the last event of a reset had it.
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
}

impl ChatRooms {
    pub(crate) fn new(engine: Compact, changes: ChangeSignal) -> ChatRooms {
        ChatRooms {
            engine,
            changes,
            rooms: Mutex::default(),
        }
    }

    /// Returns the room of a session, and opens it first where it is new.
    pub(crate) fn room(&self, session: &str) -> Result<Arc<ChatRoom>, Error> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get(session) {
            return Ok(Arc::clone(room));
        }
        let room = Arc::new(ChatRoom::open(&self.engine, session, self.changes.clone())?);
        rooms.insert(session.to_owned(), Arc::clone(&room));
        Ok(room)
    }
}

impl ChatRoom {
    fn open(engine: &Compact, session: &str, changes: ChangeSignal) -> Result<ChatRoom, Error> {
        let model = engine.config().model.clone();
        let shown = Arc::new(ShownChat {
            state: Mutex::default(),
            changes,
        });
        let mine: Box<dyn EventSink> = Box::new(Arc::clone(&shown));
        let sink = FanoutSink(vec![Box::new(engine.sink()?), mine]);
        let manager = Manager::clone(&*engine.manager()?);
        let manager = manager
            .with_window(engine.window(model.as_deref()).tokens)
            .with_sink(Arc::new(sink));
        shown.lock().max_tokens = manager.window().0;
        let base = Conversation {
            session_id: Some(session.to_owned()),
            model,
            entries: vec![Entry::from_text(
                "instructions",
                Role::System,
                INSTRUCTIONS.trim_end(),
            )],
            tools: None,
        };
        let folder = engine.config().storage.transcripts.clone();
        let folder = folder.or_else(|| Some(engine.data_directory()?.join(TRANSCRIPTS)));
        let store =
            folder.map(|folder| Arc::new(TranscriptFiles::new(folder)) as Arc<dyn TranscriptStore>);
        let driver = HardReset::new(session, base, &WireRules::LENIENT, manager, store);
        let room = ChatRoom {
            driver: tokio::sync::Mutex::new(driver),
            shown,
        };
        Ok(room)
    }

    /// Returns the conversation as it is now.
    pub(crate) fn state(&self) -> ChatState {
        self.shown.lock().clone()
    }

    /// A person says something, and the model answers unless the session is dead.
    pub(crate) async fn send(&self, words: &str) {
        let mut driver = self.driver.lock().await;
        let number = self.shown.lock().items.len();
        self.shown.add(ChatItem::Said(Role::User, words.to_owned()));
        let message = Entry::from_text(format!("user-{number}"), Role::User, words);
        let begun = driver.begin_turn(message).await;
        let may_call = match begun {
            Ok(_) => driver.before_call().await.is_ok(),
            Err(_) => false,
        };
        if may_call {
            let answer = format!("You said: {words}");
            driver.append([Entry::from_text(
                format!("model-{number}"),
                Role::Assistant,
                answer.clone(),
            )]);
            self.shown.add(ChatItem::Said(Role::Assistant, answer));
        }
        self.follow_input(&driver);
    }

    /// A person asks for another attempt.
    pub(crate) async fn retry(&self) {
        let mut driver = self.driver.lock().await;
        // What comes of it is told as an event.
        let _ = driver.retry().await;
        self.follow_input(&driver);
    }

    /// A person begins anew: the old conversation's transcript stays.
    pub(crate) async fn start_new(&self, session: &str) {
        let mut driver = self.driver.lock().await;
        driver.start_new(session);
        let mut state = self.shown.lock();
        let max_tokens = state.max_tokens;
        *state = ChatState {
            max_tokens,
            ..ChatState::default()
        };
        drop(state);
        self.follow_input(&driver);
    }

    fn follow_input(&self, driver: &HardReset) {
        self.shown.lock().input = *driver.input_state().borrow();
        self.shown.changes.announce();
    }
}

impl ShownChat {
    fn lock(&self) -> MutexGuard<'_, ChatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, item: ChatItem) {
        self.lock().items.push(item);
        self.changes.announce();
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
        self.changes.announce();
    }
}
