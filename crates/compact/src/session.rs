//! One conversation: what to send before each call to its model, and what its provider answered.
//!
//! A session takes the whole history each time, so it can be dropped and taken up again by its name, in
//! this process or another. When a compaction starts, and what runs beside the calls, is the engine's.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use compact_core::identity::EntryHash;
use compact_core::message::{Conversation, Entry, EntryKind};
use compact_core::receipt::Receipt;
use compact_core::token::Tokens;
use compact_core::trigger::TriggerDecision;
use compact_core::view::View;
use compact_formats::overflow::{self, Overflow};
use compact_formats::usage::{ReportedUsage, UsageSource};
use compact_formats::{Format, TranscriptScope};
use compact_runtime::manager::{Preflight, SessionState};
use compact_runtime::recall::entry_text;
use serde_json::Value;

use crate::compact::Compact;
use crate::error::Error;
use crate::history::History;

/// The members of a request body that may hold its messages.
const MESSAGE_LISTS: [&str; 3] = ["messages", "input", "contents"];

/// A conversation that is compacted when it must be.
pub struct Session {
    compact: Compact,
    id: String,
    /// There is none before the first history: that says what the wire accepts.
    live: Option<compact_runtime::Session>,
    /// The model that counts, where it is not the configured one.
    model: Option<SessionModel>,
}

/// A model that a session's requests name.
struct SessionModel {
    name: Option<String>,
    window: Tokens,
}

/// A text that stands for a whole history.
#[derive(Clone, Debug)]
pub struct SummaryText {
    /// The summary in its frame, and behind it what was said last.
    pub text: String,
    /// The receipt of the compaction.
    pub receipt: Receipt,
}

/// A prompt to send, and the decision behind it.
#[derive(Debug)]
pub struct Prompt {
    emitted: Bytes,
    format: Format,
    is_flagged: bool,
    is_unchanged: bool,
    view: View,
    decision: TriggerDecision,
    receipt: Option<Receipt>,
}

impl Session {
    pub(crate) fn new(compact: Compact, id: String) -> Session {
        Session {
            compact,
            id,
            live: None,
            model: None,
        }
    }

    /// Returns the session's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Counts as this model does and keeps prompts within its window, or within `limit` where a provider said
    /// that it is less; by default the configured model counts. A session whose model changes keeps counting
    /// as it began, within the window of the new one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::{Compact, token::Tokens};
    /// use serde_json::json;
    ///
    /// let compact = Compact::builder().in_memory().build()?;
    /// let mut session = compact.session("small");
    /// session.use_model(Some("gpt-4o"), Some(Tokens(8_192)));
    /// let prompt = session.preflight(&vec![json!({"role": "user", "content": "Hello"})]).await?;
    /// assert_eq!(prompt.decision().window, Tokens(8_192));
    /// # Ok(())
    /// # }
    /// ```
    pub fn use_model(&mut self, model: Option<&str>, limit: Option<Tokens>) {
        let window = self.compact.window(model).at_most(limit).tokens;
        if let Some(live) = &mut self.live {
            live.set_window(window);
        }
        self.model = Some(SessionModel {
            name: model.map(str::to_owned),
            window,
        });
    }

    /// Returns another session of the same name that stands where this one does, for what is done beside it: this one never
    /// hears of it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    /// use serde_json::{Value, json};
    ///
    /// let compact = Compact::builder().in_memory().window(20_000).build()?;
    /// let turn = |n: u32| [
    /// json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// ];
    /// let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// let mut session = compact.session("runs");
    /// session.preflight(&messages[..8].to_vec()).await?;
    /// let mut beside = session.fork();
    /// assert!(beside.compact(&messages, None).await?.receipt().is_some());
    /// assert_eq!(session.state().unwrap().history().entries.len(), 8);
    /// assert_eq!(session.state().unwrap().previous_receipt(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fork(&self) -> Session {
        let model = self.model.as_ref().map(|model| SessionModel {
            name: model.name.clone(),
            window: model.window,
        });
        Session {
            live: self.live.as_ref().map(compact_runtime::Session::fork),
            model,
            ..Session::new(self.compact.clone(), self.id.clone())
        }
    }

    /// Returns the state of the session; `None` before its first history.
    pub fn state(&self) -> Option<&SessionState> {
        self.live.as_ref().map(compact_runtime::Session::state)
    }

    /// Returns what to send: the history itself while there is room, or else a view of it. Compacts if it
    /// must; on an error nothing has changed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    /// use serde_json::json;
    ///
    /// let compact = Compact::builder().in_memory().build()?;
    /// let mut session = compact.session("greeting");
    /// let messages = vec![json!({"role": "user", "content": "Hello"})];
    /// let prompt = session.preflight(&messages).await?;
    /// assert_eq!(prompt.messages()?, messages);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn preflight(&mut self, history: impl Into<History>) -> Result<Prompt, Error> {
        let live = self.take_history(history.into()).await?;
        let ready = live.preflight().await?;
        self.hand_out(ready).await
    }

    /// Adds messages to the history that was passed last and returns what to send, as [`Session::preflight`] does for
    /// the whole of it: only what is new is read and counted. `None` where these messages cannot be told apart
    /// from what came before, or no history was passed as a list of messages yet: then pass the whole of it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    /// use serde_json::json;
    ///
    /// let compact = Compact::builder().in_memory().build()?;
    /// let mut session = compact.session("greeting");
    /// session.preflight(&vec![json!({"role": "user", "content": "Hello"})]).await?;
    /// let answer = json!({"role": "assistant", "content": "Good morning"}).to_string();
    /// let prompt = session.append(&[&answer]).await?.unwrap();
    /// assert_eq!(prompt.messages()?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append(&mut self, messages: &[&str]) -> Result<Option<Prompt>, Error> {
        let Some(live) = &mut self.live else {
            return Ok(None);
        };
        if !live.grow_document(messages).await? {
            return Ok(None);
        }
        let ready = live.preflight().await?;
        self.hand_out(ready).await.map(Some)
    }

    /// Compacts whatever the pressure, and returns what to send. A note says what the summary should
    /// emphasise.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    /// use serde_json::{Value, json};
    ///
    /// let compact = Compact::builder().in_memory().window(20_000).build()?;
    /// let turn = |n: u32| [
    /// json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// ];
    /// let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// let prompt = compact.session("runs").compact(&messages, Some("keep the timings")).await?;
    /// assert!(prompt.receipt().is_some());
    /// assert!(prompt.messages()?.len() < messages.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn compact(
        &mut self,
        history: impl Into<History>,
        note: Option<&str>,
    ) -> Result<Prompt, Error> {
        let live = self.take_history(history.into()).await?;
        let ready = live.manual_compact(note).await?;
        self.hand_out(ready).await
    }

    /// Compacts a history into one text that stands for all of it, for an agent that asks for a summary and
    /// goes on from that. `None` where there is nothing to summarize.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    /// use serde_json::{Value, json};
    ///
    /// let compact = Compact::builder().in_memory().window(20_000).build()?;
    /// let turn = |n: u32| [
    /// json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// ];
    /// let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// let summary = compact.session("runs").summarize(&messages, None).await?.unwrap();
    /// assert!(summary.text.contains(&summary.receipt.receipt_id));
    /// assert!(summary.text.contains("Measure run 7."));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn summarize(
        &mut self,
        history: impl Into<History>,
        note: Option<&str>,
    ) -> Result<Option<SummaryText>, Error> {
        let live = self.take_history(history.into()).await?;
        let ready = live.summarize(note).await?;
        // A history that was summarized before, by a request that is repeated, has its summary already.
        let receipt = match ready.receipt {
            Some(receipt) => Some(receipt),
            None => self.standing_receipt().await?,
        };
        let Some(receipt) = receipt else {
            return Ok(None);
        };
        // What fails here is done after the next compaction.
        let _ = self.compact.apply_retention().await;
        let history = self.state().map(SessionState::history);
        let text = history.map(|history| write_summary(&ready.view, history));
        Ok(text.map(|text| SummaryText { text, receipt }))
    }

    /// Returns a smaller prompt for a history that the provider refused, to be sent once. `None` when its
    /// answer is no overflow, when the smaller prompt was refused too, or when nothing smaller can be
    /// made: then the provider's error is the caller's answer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    /// use serde_json::json;
    ///
    /// let compact = Compact::builder().in_memory().build()?;
    /// let mut session = compact.session("busy");
    /// let messages = vec![json!({"role": "user", "content": "Hello"})];
    /// let refusal = r#"{"error": {"message": "rate limit reached"}}"#;
    /// assert!(session.overflowed(&messages, 429, refusal).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn overflowed(
        &mut self,
        history: impl Into<History>,
        status: u16,
        answer: &str,
    ) -> Result<Option<Prompt>, Error> {
        match overflow::find_in_response(status, None, answer.as_bytes()) {
            Some(overflow) => self.shrink(history, overflow).await,
            None => Ok(None),
        }
    }

    /// Returns a smaller prompt for an overflow that was recognised already; otherwise like
    /// [`Session::overflowed`].
    pub async fn shrink(
        &mut self,
        history: impl Into<History>,
        overflow: Overflow,
    ) -> Result<Option<Prompt>, Error> {
        let live = self.take_history(history.into()).await?;
        match live.overflowed(overflow).await? {
            Some(ready) => self.hand_out(ready).await.map(Some),
            None => Ok(None),
        }
    }

    /// Takes what the provider reported of the last request: its response or its usage object, as JSON;
    /// `None` when it reported nothing. Counting is more exact with it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// use compact::Compact;
    /// use serde_json::json;
    ///
    /// let compact = Compact::builder().in_memory().build()?;
    /// let mut session = compact.session("counted");
    /// let messages = vec![json!({"role": "user", "content": "Hello"})];
    /// session.preflight(&messages).await?;
    /// session.observe(Some(&json!({"prompt_tokens": 9, "completion_tokens": 3})));
    /// let prompt = session.preflight(&messages).await?;
    /// assert_eq!(prompt.decision().tokens.0, 9);
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&mut self, report: Option<&Value>) {
        let format = self.state().and_then(SessionState::document);
        let format = format.map(compact_formats::Document::format);
        let reported = report.and_then(|value| read_usage(format, value));
        self.observe_report(reported);
    }

    /// Records a usage report that was parsed already; `None` if the provider reported nothing.
    pub fn observe_report(&mut self, reported: Option<ReportedUsage>) {
        if let Some(live) = &mut self.live {
            live.observe(reported);
        }
    }

    /// Reports that the session was idle for so long. Starts a background compaction if the policy wants
    /// one; returns whether it did.
    pub async fn report_idle(&mut self, quiet: Duration) -> bool {
        match &mut self.live {
            Some(live) => live.report_idle(quiet).await,
            None => false,
        }
    }

    /// Protects entries by name from now on, in every process: they stay in every view.
    pub async fn protect(&mut self, names: &BTreeSet<EntryHash>) -> Result<(), Error> {
        match &mut self.live {
            Some(live) => live.protect(names).await?,
            None => self.compact.manager()?.protect(&self.id, names).await?,
        }
        Ok(())
    }

    /// Ends the protection of entries by name.
    pub async fn unprotect(&mut self, names: &BTreeSet<EntryHash>) -> Result<(), Error> {
        match &mut self.live {
            Some(live) => live.unprotect(names).await?,
            None => self.compact.manager()?.unprotect(&self.id, names).await?,
        }
        Ok(())
    }

    /// Returns the receipt of the compaction that the session shows; `None` before the first.
    async fn standing_receipt(&self) -> Result<Option<Receipt>, Error> {
        let shown = self.state().and_then(SessionState::previous_receipt);
        let Some(shown) = shown else {
            return Ok(None);
        };
        let manager = self.compact.manager()?;
        let record = manager.catalog().find_record(&shown).await;
        let record = record.map_err(compact_runtime::Error::from)?;
        Ok(record.and_then(|record| record.receipt.to_receipt().ok()))
    }

    /// Takes a history, and up what an earlier process left of it.
    async fn take_history(
        &mut self,
        history: History,
    ) -> Result<&mut compact_runtime::Session, Error> {
        let parsed = history.parse()?;
        let live = match &mut self.live {
            Some(live) => live,
            none => none.insert(compact_runtime::Session::new(
                match &self.model {
                    None => self.compact.manager()?,
                    Some(model) => self
                        .compact
                        .manager_for(model.name.as_deref(), model.window)?,
                },
                &*self.id,
                parsed.document.rules(),
            )),
        };
        live.replace_document(parsed.document, parsed.conversation)
            .await?;
        Ok(live)
    }

    async fn hand_out(&self, ready: Preflight) -> Result<Prompt, Error> {
        if ready.receipt.is_some() {
            // What fails here is done after the next compaction: the prompt does not depend on it.
            let _ = self.compact.apply_retention().await;
        }
        let none = || Error::from(compact_runtime::Error::NotFound(self.id.clone()));
        let state = self.state().ok_or_else(none)?;
        let document = state.document().ok_or_else(none)?;
        let history = state.history();
        let emitted = document.emit_shared(history, &ready.view)?;
        Ok(Prompt {
            is_unchanged: is_same(&emitted, document.original()),
            is_flagged: history.entries.iter().any(|e| !e.meta.flags.is_empty()),
            emitted,
            format: document.format(),
            view: ready.view,
            decision: ready.decision,
            receipt: ready.receipt,
        })
    }
}

impl Prompt {
    /// Returns the body to send in the form of the history: a request body, or a list of messages. Flags,
    /// which only Compact reads, are left out.
    pub fn body(&self) -> Result<Bytes, Error> {
        if !self.is_flagged {
            return Ok(self.emitted.clone());
        }
        let emitted = self.emitted.clone();
        let parsed = compact_formats::parse(emitted, Some(self.format), TranscriptScope::Live)?;
        Ok(parsed.document.without_flags()?.into())
    }

    /// Returns the messages to send.
    pub fn messages(&self) -> Result<Vec<Value>, Error> {
        let body = serde_json::from_slice(&self.body()?).map_err(Error::Emitted)?;
        let list = match body {
            Value::Object(mut members) => MESSAGE_LISTS.iter().find_map(|m| members.remove(*m)),
            list => Some(list),
        };
        match list {
            Some(Value::Array(messages)) => Ok(messages),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the body of the view with its flags.
    pub fn emitted(&self) -> &Bytes {
        &self.emitted
    }

    /// Returns whether the history is sent unchanged.
    pub fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// Returns what is sent, as a view of the history.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Returns the verdict on the history, with its tokens and its reason.
    pub fn decision(&self) -> &TriggerDecision {
        &self.decision
    }

    /// Returns the receipt, when this call compacted or took over what was compacted beside it.
    pub fn receipt(&self) -> Option<&Receipt> {
        self.receipt.as_ref()
    }
}

/// Returns whether two texts are equal; one is most often the other.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// Reads a report by the wire that the history came in; a plain list may be anyone's.
pub(crate) fn read_usage(format: Option<Format>, value: &Value) -> Option<ReportedUsage> {
    let sources: &[UsageSource] = match format {
        Some(Format::Anthropic) => &[UsageSource::Anthropic],
        Some(Format::OpenAiResponses) => &[UsageSource::OpenAiResponses],
        Some(Format::Gemini) => &[UsageSource::Gemini],
        _ => &[
            UsageSource::OpenAiChat,
            UsageSource::Anthropic,
            UsageSource::Gemini,
        ],
    };
    sources.iter().find_map(|source| source.read(value))
}

/// Writes a view as one text: its summary, and what it shows beside that and the instructions.
fn write_summary(view: &View, history: &Conversation) -> String {
    let shown = view.shown_entries(history).into_iter();
    let said = shown.filter(|entry| {
        let is_summary = matches!(entry.meta.kind, EntryKind::Summary { .. });
        !is_summary && !entry.is_leading()
    });
    let said: Vec<String> = said
        .map(|entry| format!("[{}]\n{}", entry.role, entry_text(&entry)))
        .collect();
    let summary = view.summary().map(Entry::plain_text).unwrap_or_default();
    if said.is_empty() {
        return summary;
    }
    let template = include_str!("../templates/said_last.md").trim_end();
    template
        .replace("{summary}", &summary)
        .replace("{entries}", &said.join("\n\n"))
}
