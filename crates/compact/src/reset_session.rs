//! A session that is reset when it grows too large, for hosts that speak JSON.
//!
//! The host says what happens and sends [`ResetSession::messages`]; whether the session takes input, what
//! it costs and how often it was reset is read at any time, also while it compacts.

use std::path::PathBuf;
use std::sync::Arc;

use compact_adapters::transcript::TranscriptFiles;
use compact_core::event::TraceContext;
use compact_core::message::{Conversation, Entry, Role};
use compact_core::profile::Profile;
use compact_core::summarize::Style;
use compact_core::token::Tokens;
use compact_core::usage::Usage;
use compact_core::wire::WireRules;
use compact_formats::{Format, FormatError, TranscriptScope};
use compact_runtime::port::catalog::StoredReceipt;
use compact_runtime::port::event::{EventSink, FanoutSink};
use compact_runtime::port::summarizer::{ModelQuestion, Summarizer, SummarizerError};
use compact_runtime::port::transcript::TranscriptStore;
use compact_runtime::reset::{HardReset, InputState, ResetCheck};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::compact::Compact;
use crate::error::Error;
use crate::history::History;
use crate::session::read_usage;

/// The most tokens of an answer that is asked for here.
const ANSWER_LIMIT: Tokens = Tokens(2_000);
/// The folder of transcripts in the data directory.
const TRANSCRIPTS_FOLDER: &str = "sessions";

/// One session under the profile `hard-reset`, in messages of the chat format.
pub struct ResetSession {
    driver: HardReset,
}

/// What a host asks of a session, as JSON: `{"do": "send", "message": "Port the parser."}`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ResetCommand {
    /// A person says something: a text, or a message.
    Send {
        /// What.
        message: Value,
    },
    /// The model and its tools answered.
    Append {
        /// What.
        messages: Vec<Value>,
    },
    /// The provider counted the last call.
    Usage {
        /// As it reported it.
        usage: Value,
    },
    /// A call within the turn is about to be made.
    BeforeCall,
    /// A person wants a compaction now.
    Compact,
    /// A person wants another attempt.
    Retry,
    /// A person gives up on the session.
    New {
        /// The name of the next one.
        session_id: String,
    },
    /// Something else is to stand in the transcript.
    Record {
        /// What.
        event: Value,
    },
    /// What is to be sent to the model?
    Messages,
    /// Where does the session stand?
    Status,
}

/// What a session answers to a command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResetAnswer {
    /// What came of it, where a reset was possible.
    #[serde(flatten)]
    pub outcome: Option<ResetOutcome>,
    /// What to send, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Value>>,
    /// Where the session stands now.
    pub status: ResetStatus,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ResetOutcome {
    /// There is room, or this turn's attempt has been made.
    Unchanged,
    /// The history was replaced by a summary.
    Compacted {
        /// The receipt, by which the history comes back.
        receipt_id: String,
        /// The file of what the summarizer was given, if it could be kept.
        summarizer_input_path: Option<String>,
        /// The file of the summary, if it could be kept.
        summary_path: Option<String>,
    },
    /// The attempt failed and nothing was changed; there is still room to go on.
    Failed {
        /// Why.
        error: String,
    },
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResetStatus {
    /// The session.
    pub session_id: String,
    /// Whether it takes input.
    pub input: InputState,
    /// The model whose limit counts.
    pub model: Option<String>,
    /// What the next request would cost.
    pub tokens: Tokens,
    /// What the model takes.
    pub max_tokens: Tokens,
    /// How many compactions the session has had.
    pub compaction_count: u32,
    /// Whether compaction was attempted in this turn.
    pub attempted_this_turn: bool,
}

impl Compact {
    /// Begins a session that is reset when it grows too large. It begins with `base`: its instructions,
    /// and after a restart of the host all that it had come to. Its events go where all events go.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    /// use compact::reset::{InputState, ResetOutcome};
    /// use serde_json::json;
    ///
    /// let compact = Compact::builder().in_memory().window(4_000).build()?;
    /// let base = vec![json!({"role": "system", "content": "You port parsers."})];
    /// let mut session = compact.reset_session("my-chat", &base)?;
    /// session.begin_turn(&json!({"role": "user", "content": "Port the parser."})).await?;
    /// session.append(&[json!({"role": "assistant", "content": "Step done. ".repeat(1_200)})])?;
    /// let next = json!({"role": "user", "content": "Now the lexer."});
    /// assert!(matches!(session.begin_turn(&next).await?, ResetOutcome::Compacted { .. }));
    /// assert_eq!(session.messages()?.len(), 3); // instructions, summary, the request
    /// assert_eq!(session.status().input, InputState::Open);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset_session(
        &self,
        id: impl Into<String>,
        base: impl Into<History>,
    ) -> Result<ResetSession, Error> {
        self.reset_session_with_sink(id, base, None)
    }

    /// The same with a sink of its own beside those of all sessions.
    pub fn reset_session_with_sink(
        &self,
        id: impl Into<String>,
        base: impl Into<History>,
        own: Option<Arc<dyn EventSink>>,
    ) -> Result<ResetSession, Error> {
        let (mut base, rules) = parse_base(base.into())?;
        base.model = base.model.or_else(|| self.config().model.clone());
        let model = base.model.clone();
        let policy = match self.config().profile {
            Profile::HardReset => self.config().policy.clone(),
            _ => Profile::HardReset.policy(),
        };
        let sinks = own.into_iter().chain([self.sink()?]);
        let sinks = sinks.map(|sink| Box::new(sink) as Box<dyn EventSink>);
        let manager = self
            .build_manager(
                self.store_to_write()?,
                policy,
                self.estimator(model.as_deref()),
            )?
            .with_window(self.window(model.as_deref()).tokens)
            .with_summarizer(self.summarizer(model.as_deref())?)
            .with_embedder(self.embedder())
            .with_sink(Arc::new(FanoutSink(sinks.collect())));
        let files = self.transcript_folder().map(TranscriptFiles::new);
        let files = files.map(|files| Arc::new(files) as Arc<dyn TranscriptStore>);
        Ok(ResetSession {
            driver: HardReset::new(id, base, rules, manager, files),
        })
    }

    /// Returns where sessions that are reset keep their files; `None` where nothing is kept in files.
    pub fn transcript_folder(&self) -> Option<PathBuf> {
        let configured = self.config().storage.transcripts.clone();
        let in_store = || Some(self.data_directory()?.join(TRANSCRIPTS_FOLDER));
        configured.or_else(in_store)
    }
}

impl ResetSession {
    /// Does what a host asks for.
    pub async fn perform(&mut self, command: ResetCommand) -> Result<ResetAnswer, Error> {
        let (mut outcome, mut messages) = (None, None);
        match command {
            ResetCommand::Send {
                message: Value::String(text),
            } => {
                let message = json!({"role": "user", "content": text});
                outcome = Some(self.begin_turn(&message).await?);
            }
            ResetCommand::Send { message } => outcome = Some(self.begin_turn(&message).await?),
            ResetCommand::BeforeCall => outcome = Some(self.before_call().await?),
            ResetCommand::Compact | ResetCommand::Retry => outcome = Some(self.retry().await?),
            ResetCommand::Append { messages } => self.append(&messages)?,
            ResetCommand::Usage { usage } => self.report_usage(&usage),
            ResetCommand::New { session_id } => self.start_new(session_id),
            ResetCommand::Record { event } => self.record_event(&event),
            ResetCommand::Messages => messages = Some(self.messages()?),
            ResetCommand::Status => {}
        }
        let status = self.status();
        Ok(ResetAnswer {
            outcome,
            messages,
            status,
        })
    }

    /// Begins a turn with what a person says: the only moment at which a session is reset by choice. An
    /// error means that the session is dead and nobody will answer.
    pub async fn begin_turn(&mut self, message: &Value) -> Result<ResetOutcome, Error> {
        let mut checked = ResetCheck::Unchanged;
        for entry in parse_messages(std::slice::from_ref(message))? {
            checked = self.driver.begin_turn(entry).await?;
        }
        Ok(checked.into())
    }

    /// Checks before a call within a turn: resets only if the call would be refused otherwise.
    pub async fn before_call(&mut self) -> Result<ResetOutcome, Error> {
        Ok(self.driver.before_call().await?.into())
    }

    /// Makes an attempt because a person asks for it, whatever the pressure; a dead session that succeeds
    /// lives.
    pub async fn retry(&mut self) -> Result<ResetOutcome, Error> {
        Ok(self.driver.retry().await?.into())
    }

    /// Adds what the model and its tools said.
    pub fn append(&mut self, messages: &[Value]) -> Result<(), Error> {
        self.driver.append(parse_messages(messages)?);
        Ok(())
    }

    /// Asks a model for the answer to what was said last, and adds it with the provider's count.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use compact::Compact;
    /// use compact::summarizer::{ScriptedAnswer, ScriptedSummarizer};
    /// use serde_json::json;
    ///
    /// let compact = Compact::builder().in_memory().build()?;
    /// let mut session = compact.reset_session("my-chat", &Vec::new())?;
    /// session.begin_turn(&json!({"role": "user", "content": "Which port?"})).await?;
    /// let model = ScriptedSummarizer::new([ScriptedAnswer::Says("Port 8790.".to_owned())]);
    /// assert_eq!(session.ask_model(&model).await?, "Port 8790.");
    /// assert_eq!(session.messages()?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ask_model(&mut self, model: &dyn Summarizer) -> Result<String, SummarizerError> {
        let question = self.next_question(model)?;
        let answer = model.answer(&question).await?;
        if let Some(prompt) = answer.prompt_tokens {
            self.driver.report_usage(Usage {
                input_tokens: prompt,
                ..Usage::default()
            });
        }
        let entry = Entry::from_text("answer", Role::Assistant, answer.text.clone());
        self.driver.append([entry]);
        Ok(answer.text)
    }

    /// Returns what was said last as a question, behind all that was said before.
    fn next_question(&self, model: &dyn Summarizer) -> Result<ModelQuestion, SummarizerError> {
        let mut earlier = self.driver.messages().clone();
        let last = earlier.entries.pop();
        let system = earlier.entries.iter().take(earlier.leading_instructions());
        let system: Vec<String> = system.map(Entry::plain_text).collect();
        let is_first = system.len() == earlier.entries.len();
        let format = model.describe().continues.filter(|_| !is_first);
        let conversation = match format.and_then(|format| format.parse::<Format>().ok()) {
            Some(format) => {
                let written = compact_formats::convert(&earlier, format);
                Some(written.map_err(|error| SummarizerError::Unsuitable(error.to_string()))?)
            }
            None => None,
        };
        Ok(ModelQuestion {
            system: system.join("\n\n"),
            style: Style::default(),
            messages: Vec::new(),
            prompt: last.map(|entry| entry.plain_text()).unwrap_or_default(),
            conversation: conversation.map(|written| written.bytes.into()),
            limit: ANSWER_LIMIT,
            model: earlier.model,
        })
    }

    /// Takes the provider's count of the last call, before its answer is appended.
    pub fn report_usage(&mut self, usage: &Value) {
        if let Some(reported) = read_usage(Some(Format::OpenAiChat), usage) {
            self.driver.report_usage(reported.usage);
        }
    }

    /// Writes an event of the host into the transcript: an approval, a refusal, an error.
    pub fn record_event(&self, event: &Value) {
        self.driver.record_event(event);
    }

    /// Returns what to send.
    pub fn messages(&self) -> Result<Vec<Value>, Error> {
        let conversation = Conversation {
            model: None,
            ..self.driver.messages().clone()
        };
        let written = compact_formats::convert(&conversation, Format::OpenAiChat)?;
        let body: Value = serde_json::from_slice(&written.bytes).unwrap_or_default();
        let messages = body.get("messages").unwrap_or(&body);
        Ok(messages.as_array().cloned().unwrap_or_default())
    }

    /// Starts a new session with the same instructions; the old one's transcript stays.
    pub fn start_new(&mut self, id: impl Into<String>) {
        self.driver.start_new(id);
    }

    /// Returns a channel with whether input is taken, and every change of it.
    pub fn watch_input(&self) -> watch::Receiver<InputState> {
        self.driver.input_state()
    }

    /// Returns where the session stands.
    pub fn status(&mut self) -> ResetStatus {
        let (tokens, max_tokens) = self.driver.context_size();
        let state = self.driver.state();
        ResetStatus {
            session_id: self.driver.session_id().to_owned(),
            input: *self.driver.input_state().borrow(),
            model: self.driver.messages().model.clone(),
            tokens,
            max_tokens,
            compaction_count: state.compaction_count,
            attempted_this_turn: state.attempted_this_turn,
        }
    }

    /// Makes the attempts that follow part of the caller's trace.
    pub fn trace_within(&mut self, parent: Option<TraceContext>) {
        self.driver.trace_within(parent);
    }

    /// Waits until everything said so far is durable in the transcript.
    pub async fn flush(&self) -> Result<(), Error> {
        Ok(self.driver.flush().await?)
    }
}

impl From<ResetCheck> for ResetOutcome {
    fn from(check: ResetCheck) -> ResetOutcome {
        match check {
            ResetCheck::Unchanged => ResetOutcome::Unchanged,
            ResetCheck::Compacted(reset) => ResetOutcome::Compacted {
                receipt_id: receipt_id(&reset.receipt),
                summarizer_input_path: reset.summarizer_input,
                summary_path: reset.summary,
            },
            ResetCheck::Failed(error) => ResetOutcome::Failed {
                error: error.to_string(),
            },
        }
    }
}

/// A history of nothing is one to begin with.
fn parse_base(base: History) -> Result<(Conversation, &'static WireRules), Error> {
    match base.parse() {
        Ok(parsed) => Ok((parsed.conversation, parsed.document.rules())),
        Err(Error::Runtime(compact_runtime::Error::Format(FormatError::Empty))) => {
            Ok((Conversation::default(), Format::OpenAiChat.rules()))
        }
        Err(error) => Err(error),
    }
}

fn receipt_id(receipt: &StoredReceipt) -> String {
    let id = receipt.as_json().get("receipt_id").and_then(Value::as_str);
    id.unwrap_or_default().to_owned()
}

fn parse_messages(messages: &[Value]) -> Result<Vec<Entry>, Error> {
    let text = Value::from(messages).to_string();
    let parsed = compact_formats::parse(text, Some(Format::OpenAiChat), TranscriptScope::Whole)?;
    Ok(parsed.conversation.entries)
}
