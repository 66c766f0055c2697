//! One session of a run: what it said, and when it may be cut.

use std::collections::HashSet;
use std::time::Duration;

use compact_core::event::RunStep;
use compact_core::ledger::Ledger;
use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::policy::Policy;
use compact_core::redact::{RedactionCounts, Redactor};
use compact_core::token::{EstimatorExt, Tokens};
use compact_core::trigger;
use compact_core::usage::{ContextPressure, Semantics, window_share};
use compact_formats::stream::{AgentActivity, SessionDetails, TurnEnd, UsageReport};
use serde::de::IgnoredAny;

use super::event::AgentWords;
use super::{ExhaustionCause, RunError, Runner};
use crate::port::agent::{AgentOutput, AgentSession};

/// What came of a turn.
pub(super) enum TurnOutcome {
    Ended(TurnEnd),
    /// The context is full, and no tool is at work.
    Pressed(ContextPressure),
}

/// Whether a session began with an empty context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionStart {
    Fresh,
    Resumed,
}

/// A session with everything that it said.
pub(super) struct RunSession {
    pub agent: Box<dyn AgentSession>,
    pub about: SessionDetails,
    start: SessionStart,
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
const SHOWN_CHARS: usize = 160;

impl RunSession {
    pub(super) fn new(
        agent: Box<dyn AgentSession>,
        start: SessionStart,
        task: Option<&str>,
    ) -> RunSession {
        let asked = task.map(|task| Entry::from_text("task", Role::User, task));
        RunSession {
            agent,
            about: SessionDetails::default(),
            start,
            entries: asked.into_iter().collect(),
            open: HashSet::new(),
            first_prompt: None,
            deeds: 0,
        }
    }

    pub(super) fn id(&self) -> String {
        self.about.id.clone().unwrap_or_default()
    }

    pub(super) fn begin_turn(&mut self) {
        self.deeds = 0;
        self.open.clear();
    }

    /// Whether a tool was called in this turn.
    pub(super) fn has_worked(&self) -> bool {
        self.deeds > 0
    }

    /// True when nothing was said but the task.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.iter().all(|entry| entry.role == Role::User)
    }

    /// True when a fresh session was full before it could do anything: another will be too.
    pub(super) fn is_full_at_start(
        &self,
        why: &ExhaustionCause,
        window: Tokens,
        policy: &Policy,
    ) -> bool {
        let at_once = match why {
            ExhaustionCause::TooLong => self.is_empty(),
            ExhaustionCause::Pressure(_) => self
                .first_prompt
                .is_some_and(|prompt| trigger::decide(prompt, window, policy).verdict.is_now()),
        };
        self.start == SessionStart::Fresh && at_once
    }

    /// True when a session that was to be taken up again never answered.
    pub(super) fn is_lost(&self) -> bool {
        self.start == SessionStart::Resumed && self.is_empty()
    }

    /// Everything that was said.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The agent's last words.
    pub(super) fn last_words(&self) -> String {
        let words = self
            .entries
            .iter()
            .rev()
            .filter(|e| e.role == Role::Assistant && e.meta.kind != EntryKind::HostedTool);
        words
            .map(Entry::plain_text)
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }

    pub(super) fn ledger(&self, first: u64, redactor: &Redactor) -> Ledger {
        Ledger::from_redacted(&self.entries, first, redactor)
    }

    fn track_calls(&mut self, entry: &Entry) {
        self.open.extend(entry.call_ids().map(str::to_owned));
        self.deeds += entry.call_ids().count() as u32;
        for call in entry.result_ids() {
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
    pub(super) async fn run_turn(
        &mut self,
        session: &mut RunSession,
    ) -> Result<TurnOutcome, RunError> {
        loop {
            let heard = self.next_output(session).await?;
            for activity in heard.told {
                match activity {
                    AgentActivity::Session(about) => self.update_session_info(session, about)?,
                    AgentActivity::Used(report) => self.count_report(session, &report),
                    AgentActivity::Said(entry) => self.take_entry(session, entry),
                    AgentActivity::Ended(end) => return Ok(TurnOutcome::Ended(end)),
                }
                let pressure = self.excess_pressure(session);
                if let Some(pressure) = pressure.filter(|_| session.may_be_cut()) {
                    return Ok(TurnOutcome::Pressed(pressure));
                }
            }
        }
    }

    /// Waits for a line, for as long as anybody wants to wait.
    pub(super) async fn next_output(
        &mut self,
        session: &mut RunSession,
    ) -> Result<AgentOutput, RunError> {
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
            self.record.append_line(self.number(), line);
            if heard.told.is_empty() && !is_object(line) {
                let line = self
                    .terms
                    .redact_text(line)
                    .chars()
                    .take(SHOWN_CHARS)
                    .collect();
                self.report_words(AgentWords::Noise { line });
            }
        }
        Ok(heard)
    }

    /// Ends the running turn and hears it out; one that does not end is closed later all the same.
    pub(super) async fn interrupt_turn(
        &mut self,
        session: &mut RunSession,
    ) -> Result<(), RunError> {
        session.agent.interrupt().await?;
        let patience = self.terms.patience.interrupt;
        match tokio::time::timeout(patience, self.finish_interrupted(session)).await {
            Ok(Err(RunError::Agent(_) | RunError::Silent(_))) | Err(_) => Ok(()),
            Ok(ended) => ended,
        }
    }

    /// Hears the rest of a turn that was interrupted: what was begun meanwhile is part of the work.
    async fn finish_interrupted(&mut self, session: &mut RunSession) -> Result<(), RunError> {
        loop {
            for activity in self.next_output(session).await?.told {
                match activity {
                    AgentActivity::Said(entry) => self.take_entry(session, entry),
                    AgentActivity::Used(report) => self.gauge.add_to_totals(&report),
                    AgentActivity::Session(about) => self.update_session_info(session, about)?,
                    AgentActivity::Ended(_) => return Ok(()),
                }
            }
        }
    }

    /// Hears the answer to a question of ours, which is not part of the work.
    pub(super) async fn reply(
        &mut self,
        session: &mut RunSession,
    ) -> Result<(String, TurnEnd), RunError> {
        let mut words = String::new();
        loop {
            for activity in self.next_output(session).await?.told {
                match activity {
                    AgentActivity::Said(entry) if entry.role == Role::Assistant => {
                        words.push_str(&entry.plain_text());
                        words.push('\n');
                    }
                    AgentActivity::Used(report) => self.gauge.add_to_totals(&report),
                    AgentActivity::Ended(end) => return Ok((words, end)),
                    AgentActivity::Said(_) | AgentActivity::Session(_) => {}
                }
            }
        }
    }

    fn update_session_info(
        &mut self,
        session: &mut RunSession,
        about: SessionDetails,
    ) -> Result<(), RunError> {
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
        self.about = session.about.clone();
        self.report_step(RunStep::SessionNamed);
        match session.about.id.clone().filter(|_| self.agent.can_resume()) {
            // Should this process die, the session is where the work goes on.
            Some(session_id) if before.id.as_ref() != Some(&session_id) => {
                self.state.next = super::NextStep::Resume { session_id };
                self.save_state()
            }
            _ => Ok(()),
        }
    }

    fn take_entry(&mut self, session: &mut RunSession, entry: Entry) {
        session.track_calls(&entry);
        self.gauge.grow(&entry, self.terms.estimator);
        for block in &entry.blocks {
            match block {
                Block::Text(text) => {
                    let text = self.terms.redact_text(text).into_owned();
                    self.report_words(AgentWords::Message { text });
                }
                Block::ToolCall {
                    name, arguments, ..
                } => {
                    // A secret that is cut in two may no longer look like one.
                    let redactor = self.terms.redactor;
                    let arguments = redactor.redact_json(arguments, &mut RedactionCounts::new());
                    let arguments = arguments.chars().take(SHOWN_CHARS).collect();
                    let name = name.clone();
                    self.report_words(AgentWords::ToolCalled { name, arguments });
                }
                _ => {}
            }
        }
        session.entries.push(entry);
    }

    fn count_report(&mut self, session: &mut RunSession, report: &UsageReport) {
        if report.measures == Some(Semantics::LastRequest) {
            let prompt = report.usage.prompt_tokens();
            session.first_prompt.get_or_insert(prompt);
        }
        if !self.gauge.take_report(report) {
            return;
        }
        let window = self.terms.window(&session.about);
        self.report_step(RunStep::ContextUsage {
            turn: report.usage,
            cumulative: self.gauge.totals(),
            limit: window,
            pressure_ratio: window_share(self.gauge.tokens(self.terms.estimator), window),
        });
    }

    /// Says once that the agent reports no usage; the session goes on.
    pub(super) fn note_missing_usage(&mut self) {
        if self.gauge.take_missing_notice() {
            self.report_step(RunStep::UsageMissing);
        }
    }

    /// How full the context is, once that is too full.
    pub(super) fn excess_pressure(&self, session: &RunSession) -> Option<ContextPressure> {
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

    pub(super) fn count_tokens(&self, text: &str) -> Tokens {
        let estimator = self.terms.estimator;
        estimator.to_tokens(estimator.count_units(text))
    }

    /// The time that a checkpoint may take: its own, or what is left of all.
    pub(super) fn checkpoint_time(&self) -> Result<Duration, RunError> {
        let own = self.terms.patience.checkpoint;
        Ok(self.time_left()?.map_or(own, |left| left.min(own)))
    }
}
