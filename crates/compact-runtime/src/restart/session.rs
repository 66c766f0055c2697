//! One session of a run: what it said, and when it may be cut.

use std::collections::HashSet;
use std::time::Duration;

use compact_core::ledger::Ledger;
use compact_core::message::{Block, Entry, Role};
use compact_core::policy::Policy;
use compact_core::redact::{Counts, Redactor};
use compact_core::token::{EstimatorExt, Tokens};
use compact_core::trigger;
use compact_core::usage::{ContextPressure, Semantics, Usage};
use compact_formats::stream::{About, Activity, End, Report};
use serde::de::IgnoredAny;

use super::event::RunEvent;
use super::{Exhausted, RunError, Runner};
use crate::port::agent::{AgentSession, Heard};

/// What came of a turn.
pub(super) enum Turn {
    Ended(End),
    /// The context is full, and no tool is at work.
    Pressed(ContextPressure),
}

/// Whether a session began with an empty context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Fresh,
    Resumed,
}

/// A session with everything that it said.
pub(super) struct Session {
    pub agent: Box<dyn AgentSession>,
    pub about: About,
    pub used: Usage,
    start: Start,
    entries: Vec<Entry>,
    open: HashSet<String>,
    first_prompt: Option<Tokens>,
    deeds: u32,
}

/// Whether a line that tells nothing is at least of the kind that an agent prints.
fn is_object(line: &str) -> bool {
    line.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok()
}

/// How much of a call's arguments is told.
const SHOWN: usize = 160;

impl Session {
    pub fn new(agent: Box<dyn AgentSession>, start: Start, task: Option<&str>) -> Session {
        let asked = task.map(|task| Entry::text("task", Role::User, task));
        Session {
            agent,
            about: About::default(),
            used: Usage::default(),
            start,
            entries: asked.into_iter().collect(),
            open: HashSet::new(),
            first_prompt: None,
            deeds: 0,
        }
    }

    pub fn id(&self) -> String {
        self.about.id.clone().unwrap_or_default()
    }

    pub fn begin_turn(&mut self) {
        self.deeds = 0;
        self.open.clear();
    }

    /// Whether a tool was called in this turn.
    pub fn has_worked(&self) -> bool {
        self.deeds > 0
    }

    /// True when nothing was said but the task.
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(|entry| entry.role == Role::User)
    }

    /// True when a fresh session was full before it could do anything: another will be too.
    pub fn is_barren(&self, why: &Exhausted, window: Tokens, policy: &Policy) -> bool {
        let at_once = match why {
            Exhausted::TooLong => self.is_empty(),
            Exhausted::Pressure(_) => self
                .first_prompt
                .is_some_and(|prompt| trigger::decide(prompt, window, policy).verdict.is_now()),
        };
        self.start == Start::Fresh && at_once
    }

    /// True when a session that was to be taken up again never answered.
    pub fn is_lost(&self) -> bool {
        self.start == Start::Resumed && self.is_empty()
    }

    /// Everything that was said.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The agent's last words.
    pub fn last_words(&self) -> String {
        let words = self
            .entries
            .iter()
            .rev()
            .filter(|e| e.role == Role::Assistant);
        words
            .map(Entry::plain_text)
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }

    pub fn ledger(&self, first: u64, redactor: &Redactor) -> Ledger {
        Ledger::redacted(&self.entries, first, redactor)
    }

    fn follow(&mut self, entry: &Entry) {
        self.open.extend(entry.calls().map(str::to_owned));
        self.deeds += entry.calls().count() as u32;
        for call in entry.results() {
            self.open.remove(call);
        }
    }

    /// True where a turn may be cut: a tool has just answered, and none is at work.
    fn may_be_cut(&self) -> bool {
        let last = self.entries.last().map(|entry| entry.role);
        last == Some(Role::Tool) && self.open.is_empty()
    }
}

impl Runner<'_> {
    /// Hears a turn until it ends or has to.
    pub(super) async fn turn(&mut self, session: &mut Session) -> Result<Turn, RunError> {
        loop {
            let heard = self.hear(session).await?;
            for activity in heard.told {
                match activity {
                    Activity::Session(about) => self.meet(session, about)?,
                    Activity::Used(report) => self.count(session, &report),
                    Activity::Said(entry) => self.take(session, entry),
                    Activity::Ended(end) => return Ok(Turn::Ended(end)),
                }
                let pressure = self.pressure(session);
                if let Some(pressure) = pressure.filter(|_| session.may_be_cut()) {
                    return Ok(Turn::Pressed(pressure));
                }
            }
        }
    }

    /// Waits for a line, for as long as anybody wants to wait.
    pub(super) async fn hear(&mut self, session: &mut Session) -> Result<Heard, RunError> {
        let silence = self.terms.patience.silence;
        let left = self.time_left()?;
        let wait = left.map_or(silence, |left| left.min(silence));
        let heard = tokio::select! {
            biased;
            Ok(_) = self.stop.wait_for(|stop| *stop) => return Err(RunError::Stopped),
            heard = tokio::time::timeout(wait, session.agent.next()) => heard,
        };
        let heard = match heard {
            Ok(heard) => heard?,
            Err(_) => {
                self.time_left()?;
                return Err(RunError::Silent(silence));
            }
        };
        if let Some(line) = &heard.line {
            self.record.heard(self.number(), line);
            if heard.told.is_empty() && !is_object(line) {
                let line = self.terms.redacted(line).chars().take(SHOWN).collect();
                self.record.told(&RunEvent::Noise { line });
            }
        }
        Ok(heard)
    }

    /// Ends the running turn and hears it out; one that does not end is closed later all the same.
    pub(super) async fn interrupt(&mut self, session: &mut Session) -> Result<(), RunError> {
        session.agent.interrupt().await?;
        let patience = self.terms.patience.interrupt;
        match tokio::time::timeout(patience, self.wind_down(session)).await {
            Ok(Err(RunError::Agent(_) | RunError::Silent(_))) | Err(_) => Ok(()),
            Ok(ended) => ended,
        }
    }

    /// Hears the rest of a turn that was interrupted: what was begun meanwhile is part of the work.
    async fn wind_down(&mut self, session: &mut Session) -> Result<(), RunError> {
        loop {
            for activity in self.hear(session).await?.told {
                match activity {
                    Activity::Said(entry) => self.take(session, entry),
                    Activity::Used(report) => self.add(session, &report),
                    Activity::Session(about) => self.meet(session, about)?,
                    Activity::Ended(_) => return Ok(()),
                }
            }
        }
    }

    /// Hears the answer to a question of ours, which is not part of the work.
    pub(super) async fn reply(&mut self, session: &mut Session) -> Result<(String, End), RunError> {
        let mut words = String::new();
        loop {
            for activity in self.hear(session).await?.told {
                match activity {
                    Activity::Said(entry) if entry.role == Role::Assistant => {
                        words.push_str(&entry.plain_text());
                        words.push('\n');
                    }
                    Activity::Used(report) => self.add(session, &report),
                    Activity::Ended(end) => return Ok((words, end)),
                    Activity::Said(_) | Activity::Session(_) => {}
                }
            }
        }
    }

    fn meet(&mut self, session: &mut Session, about: About) -> Result<(), RunError> {
        let before = session.about.clone();
        let known = &mut session.about;
        known.id = about.id.or(known.id.take());
        known.model = about.model.or(known.model.take());
        known.window = about.window.or(known.window.take());
        let window = self.terms.window(known);
        let is_new = known.id != before.id || known.model != before.model;
        if !is_new && window == self.terms.window(&before) {
            return Ok(());
        }
        self.record.told(&RunEvent::SessionNamed {
            session_id: session.id(),
            model: session.about.model.clone(),
            window: window.0,
        });
        match session.about.id.clone().filter(|_| self.agent.resumes()) {
            // Should this process die, the session is where the work goes on.
            Some(session_id) if before.id.as_ref() != Some(&session_id) => {
                self.state.next = super::Next::Resume { session_id };
                self.keep()
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, session: &mut Session, entry: Entry) {
        session.follow(&entry);
        self.gauge.grow(&entry, self.terms.estimator);
        for block in &entry.blocks {
            match block {
                Block::Text(text) => {
                    let text = self.terms.redacted(text).into_owned();
                    self.record.told(&RunEvent::Message { text });
                }
                Block::ToolCall {
                    name, arguments, ..
                } => {
                    // A secret that is cut in two may no longer look like one.
                    let redactor = self.terms.redactor;
                    let arguments = redactor.redact_json(arguments, &mut Counts::new());
                    let arguments = arguments.chars().take(SHOWN).collect();
                    let name = name.clone();
                    self.record.told(&RunEvent::ToolCalled { name, arguments });
                }
                _ => {}
            }
        }
        session.entries.push(entry);
    }

    fn add(&mut self, session: &mut Session, report: &Report) {
        if report
            .measures
            .is_none_or(|measures| measures == Semantics::LastRequest)
        {
            session.used = session.used.plus(report.usage);
        }
    }

    fn count(&mut self, session: &mut Session, report: &Report) {
        self.add(session, report);
        if report.measures == Some(Semantics::LastRequest) {
            let prompt = report.usage.prompt();
            session.first_prompt.get_or_insert(prompt);
        }
        if !self.gauge.report(report) {
            return;
        }
        let window = self.terms.window(&session.about);
        self.record.told(&RunEvent::ContextUsage {
            turn: report.usage,
            cumulative: self.gauge.totals(),
            limit: window.0,
            pressure_ratio: trigger::ratio(self.gauge.tokens(self.terms.estimator), window),
        });
    }

    /// Says once that the agent reports no usage; the session goes on (S4-89).
    pub(super) fn check_usage(&mut self, session: &Session) {
        if self.gauge.is_missing() {
            let named = session.about.id.clone();
            let session_id = named.unwrap_or_else(|| self.state.run_id.clone());
            self.record.told(&RunEvent::UsageMissing { session_id });
        }
    }

    /// How full the context is, once that is too full (S4-88).
    pub(super) fn pressure(&self, session: &Session) -> Option<ContextPressure> {
        let window = self.terms.window(&session.about);
        let tokens = self.gauge.tokens(self.terms.estimator);
        let decision = trigger::decide(tokens, window, self.terms.policy);
        let totals = self.gauge.totals();
        decision.verdict.is_now().then(|| ContextPressure {
            session_id: session.id(),
            input_tokens: totals.input_tokens,
            output_tokens: totals.output_tokens,
            cache_read_tokens: totals.cache_read_tokens,
            pressure_ratio: decision.pressure,
        })
    }

    pub(super) fn tokens(&self, text: &str) -> u64 {
        let estimator = self.terms.estimator;
        estimator.tokens(estimator.units(text)).0
    }

    /// The time that a checkpoint may take: its own, or what is left of all.
    pub(super) fn checkpoint_time(&self) -> Result<Duration, RunError> {
        let own = self.terms.patience.checkpoint;
        Ok(self.time_left()?.map_or(own, |left| left.min(own)))
    }
}
