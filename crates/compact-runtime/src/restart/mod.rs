//! Checkpoint-restart: a task is carried from session to session of an agent (seeds 003 and 004).
//!
//! A runner hears an agent work. When its context fills, the turn is ended where no tool is at work,
//! the session is asked for a checkpoint, and a fresh session goes on from that. An agent that gives
//! none is spoken for by the ledger of everything said so far, so a restart depends on nobody's
//! answer. Run, task, lock holder, working directory and time limit stay the same throughout; only
//! the session, its usage and its prompt are new.

mod checkpoint;
mod event;
mod gauge;
mod progress;
mod session;
mod state;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Duration;

use compact_core::event::{CallOutcome, EventKind, RunStep, TraceContext};
use compact_core::policy::Policy;
use compact_core::redact::{RedactionCounts, Redactor};
use compact_core::restart::{self, RestartLimitReached};
use compact_core::token::{Estimator, Tokens};
use compact_core::usage::ContextPressure;
use compact_core::window::Window;
use compact_formats::stream::{SessionDetails, TurnEnd};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::port::agent::{AgentError, AgentProgram, SessionOpening};
use crate::port::clock::{Clock, SystemClock};
use crate::port::event::call_within;
use checkpoint::CheckpointAnswer;
use gauge::UsageGauge;
use progress::WorkProgress;
use session::{RunSession, SessionStart, TurnOutcome};

pub use event::{AgentWords, StoryLine};
pub use state::{NextStep, RunState};

/// Where a run is written down.
pub trait RunJournal {
    /// Something happened, or somebody said something.
    fn append_story(&mut self, line: &StoryLine);

    /// The agent printed a line in its n-th session. A line that cannot be kept stops nothing.
    fn append_line(&mut self, session: u32, line: &str);

    /// This is what the run goes on from, whatever happens next.
    fn save_state(&mut self, state: &RunState) -> std::io::Result<()>;
}

/// How long things are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitLimits {
    /// For a checkpoint.
    pub checkpoint: Duration,
    /// For the next line of an agent that works.
    pub silence: Duration,
    /// For the end of a turn that was interrupted.
    pub interrupt: Duration,
}

impl Default for WaitLimits {
    fn default() -> WaitLimits {
        WaitLimits {
            checkpoint: Duration::from_secs(120),
            silence: Duration::from_secs(30 * 60),
            interrupt: Duration::from_secs(15),
        }
    }
}

/// How a run is judged.
pub struct RunTerms<'r> {
    policy: &'r Policy,
    window: Option<Tokens>,
    model: Option<&'r str>,
    estimator: &'r dyn Estimator,
    redactor: &'r Redactor,
    patience: WaitLimits,
    clock: &'r dyn Clock,
    caller: Option<&'r TraceContext>,
}

impl<'r> RunTerms<'r> {
    /// Makes the terms of a run whose contexts fill as `policy` says, as `estimator` counts. `redactor`
    /// takes secrets out of what the run goes on from and of its events. The task is the user's own, the
    /// answer the agent's, and the lines of a session the original: they stay as they are. The agent or
    /// the registry says which window there is, and nothing is waited for longer than by default.
    pub fn new(
        policy: &'r Policy,
        estimator: &'r dyn Estimator,
        redactor: &'r Redactor,
    ) -> RunTerms<'r> {
        RunTerms {
            policy,
            window: None,
            model: None,
            estimator,
            redactor,
            patience: WaitLimits::default(),
            clock: &SystemClock,
            caller: None,
        }
    }

    /// Dates what is told by another clock than the machine's.
    #[must_use]
    pub fn with_clock(self, clock: &'r dyn Clock) -> RunTerms<'r> {
        RunTerms { clock, ..self }
    }

    /// Makes the run part of the caller's trace.
    #[must_use]
    pub fn within_span(self, caller: Option<&'r TraceContext>) -> RunTerms<'r> {
        RunTerms { caller, ..self }
    }

    /// Sets the window that counts, whatever the agent says; with `None` the agent or the registry says it.
    #[must_use]
    pub fn with_window(self, window: Option<Tokens>) -> RunTerms<'r> {
        RunTerms { window, ..self }
    }

    /// Names the model for where the agent does not.
    #[must_use]
    pub fn with_model(self, model: Option<&'r str>) -> RunTerms<'r> {
        RunTerms { model, ..self }
    }

    /// Sets how long things are waited for.
    #[must_use]
    pub fn with_wait_limits(self, patience: WaitLimits) -> RunTerms<'r> {
        RunTerms { patience, ..self }
    }

    fn window(&self, about: &SessionDetails) -> Tokens {
        let model = about.model.as_deref().or(self.model);
        Window::for_model(self.window.or(about.window), model).tokens
    }

    fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.redact(text, &mut RedactionCounts::new())
    }

    /// Takes secrets out of what an agent said when it failed: whoever started it prints that.
    fn redact_error(&self, error: RunError) -> RunError {
        match error {
            RunError::Failed(why) => RunError::Failed(self.redact_text(&why).into_owned()),
            RunError::Agent(AgentError::Exited { status, said }) => {
                let said = self.redact_text(&said).into_owned();
                RunError::Agent(AgentError::Exited { status, said })
            }
            other => other,
        }
    }
}

/// Why a run ended before its task did. What it goes on from is kept in any case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Somebody asked it to stop.
    #[error("stopped")]
    Stopped,
    /// A limit was reached.
    #[error(transparent)]
    Limit(#[from] RestartLimitReached),
    /// The agent does not work.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The agent gave up.
    #[error("the agent failed: {0}")]
    Failed(String),
    /// The agent hangs.
    #[error("the agent has said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// The agent stops again and again without doing anything.
    #[error(
        "the agent ended {0} turns in a row without doing anything, and its task is not finished"
    )]
    Idle(u32),
    /// Session after session fills up, and nothing comes of it.
    #[error("{0} sessions in a row filled up without doing anything that was not done before")]
    Fruitless(u32),
    /// Even an empty session is too full.
    #[error("a fresh session already fills its window of {window} tokens to the threshold")]
    NoRoom {
        /// The window.
        window: Tokens,
    },
    /// The run cannot be written down.
    #[error("the run cannot be recorded")]
    Record(#[from] std::io::Error),
}

/// Turns without any deed after which an agent that should go on is given up.
const IDLE_TURNS: u32 = 3;

/// Sessions without a new deed after which the task is given up.
const FRUITLESS_SESSIONS: u32 = 3;

/// What a checkpoint may take of a window.
pub fn checkpoint_budget(window: Tokens) -> Tokens {
    Tokens((window.0 / 16).clamp(1_000, 8_000))
}

/// What it takes when even that is too much.
const SMALLEST: Tokens = Tokens(250);

/// Why a session cannot go on.
enum ExhaustionCause {
    Pressure(ContextPressure),
    TooLong,
}

/// What came of a session.
enum WorkOutcome {
    Finished(String),
    Exhausted(ExhaustionCause),
}

/// Carries one task.
pub struct Runner<'r> {
    agent: &'r dyn AgentProgram,
    record: &'r mut dyn RunJournal,
    terms: RunTerms<'r>,
    state: RunState,
    gauge: UsageGauge,
    deeds: WorkProgress,
    /// What is known of the session that is at work.
    about: SessionDetails,
    /// The run as a span of a trace.
    call: TraceContext,
    stop: watch::Receiver<bool>,
    begun: Instant,
    spent_before: Duration,
}

impl<'r> Runner<'r> {
    /// A runner that goes on from `state` until `stop` turns true.
    pub fn new(
        agent: &'r dyn AgentProgram,
        record: &'r mut dyn RunJournal,
        terms: RunTerms<'r>,
        state: RunState,
        stop: watch::Receiver<bool>,
    ) -> Runner<'r> {
        Runner {
            agent,
            record,
            gauge: UsageGauge::new(terms.policy.usage),
            deeds: WorkProgress::default(),
            about: SessionDetails::default(),
            call: call_within(terms.caller),
            terms,
            begun: Instant::now(),
            spent_before: state.spent,
            state,
            stop,
        }
    }

    /// Works until the task is finished, and answers the agent's last words. However it ends, what it
    /// goes on from is kept first.
    pub async fn run(mut self) -> Result<(String, RunState), RunError> {
        self.report_step(RunStep::RunStarted {
            agent: self.agent.name().to_owned(),
            continuation_count: self.state.continuation_count,
        });
        let outcome = self.run_sessions().await;
        if outcome.is_ok() {
            self.state.next = NextStep::Nothing;
        }
        let kept = self.save_state();
        let outcome = outcome.map_err(|error| self.terms.redact_error(error));
        let outcome = outcome.and_then(|answer| kept.map(|()| answer));
        self.report_end(&outcome);
        Ok((outcome?, self.state))
    }

    /// Tells how the run ended, and what it came to.
    fn report_end(&mut self, outcome: &Result<String, RunError>) {
        let totals = self.state.totals();
        let restarts = totals.continuation_count;
        self.report_step(match outcome {
            Ok(_) => RunStep::RunFinished(totals),
            Err(RunError::Stopped) => RunStep::RunStopped(totals),
            Err(error) => RunStep::RunFailed {
                error: error_with_causes(error),
                totals,
            },
        });
        self.report_event(EventKind::CallEnded {
            call: "run".to_owned(),
            outcome: match outcome {
                Ok(_) if restarts > 0 => CallOutcome::Compacted,
                Ok(_) | Err(RunError::Stopped) => CallOutcome::Unchanged,
                Err(_) => CallOutcome::Failed,
            },
            duration_ms: self.begun.elapsed().as_micros() as f64 / 1000.0,
        });
    }

    async fn run_sessions(&mut self) -> Result<String, RunError> {
        loop {
            self.time_left()?;
            let mut session = self.open_session().await?;
            let worked = self.run_turns(&mut session).await;
            match worked {
                Ok(WorkOutcome::Finished(answer)) => {
                    self.close_session(session).await;
                    return Ok(answer);
                }
                Ok(WorkOutcome::Exhausted(why)) => self.end_full_session(session, why).await?,
                // A session that is gone for good is spoken for by its ledger.
                Err(RunError::Agent(_) | RunError::Failed(_)) if session.is_lost() => {
                    self.close_session(session).await;
                    let prompt =
                        self.ledger_continuation("the session could not be taken up again");
                    self.state.next = self.restart_with(prompt);
                }
                Err(error) => {
                    self.suspend_session(session).await;
                    return Err(error);
                }
            }
        }
    }

    /// Opens the session that the state asks for. A context that is new is measured anew.
    async fn open_session(&mut self) -> Result<RunSession, RunError> {
        let until = self.state.until.clone();
        let prompt = |text: &str| restart::with_until(text, until.as_deref());
        let (opening, prompt) = match self.state.next.clone() {
            NextStep::Begin | NextStep::Nothing => (None, prompt(&self.state.task)),
            NextStep::Continue {
                prompt: text,
                restart,
            } => {
                self.state.limits.allow_restart(restart)?;
                self.state.continuation_count = restart;
                let prompt = prompt(&text);
                self.note_restart(&prompt);
                (None, prompt)
            }
            NextStep::Resume { session_id } => (Some(session_id), prompt(restart::resume_prompt())),
        };
        self.about = SessionDetails::default();
        self.state.counters.sessions += u32::from(opening.is_none());
        let (how, start) = match &opening {
            None => (SessionOpening::Fresh, SessionStart::Fresh),
            Some(id) => (SessionOpening::Resumed(id), SessionStart::Resumed),
        };
        self.gauge.reset(start);
        let prompt_tokens = self.count_tokens(&prompt);
        self.report_step(RunStep::SessionStarted {
            number: self.number(),
            resumed: opening.clone(),
            prompt_tokens,
        });
        let agent = self.agent.open(how, &prompt).await?;
        let begins = self.state.next == NextStep::Begin;
        let task = begins.then_some(self.state.task.as_str());
        Ok(RunSession::new(agent, start, task))
    }

    /// Hears a session until the task is finished or the context is full.
    async fn run_turns(&mut self, session: &mut RunSession) -> Result<WorkOutcome, RunError> {
        self.save_state()?;
        let mut idle = 0;
        loop {
            session.begin_turn();
            let end = match self.run_turn(session).await? {
                TurnOutcome::Ended(end) => end,
                TurnOutcome::Pressed(pressure) => {
                    self.interrupt_turn(session).await?;
                    return Ok(WorkOutcome::Exhausted(ExhaustionCause::Pressure(pressure)));
                }
            };
            self.state.counters.turns += 1;
            let answer = match end {
                TurnEnd::Done(answer) => answer.unwrap_or_else(|| session.last_words()),
                TurnEnd::TooLong => return Ok(WorkOutcome::Exhausted(ExhaustionCause::TooLong)),
                TurnEnd::Failed(why) => return Err(RunError::Failed(why)),
            };
            self.note_missing_usage();
            if self.state.is_finished(&answer) {
                return Ok(WorkOutcome::Finished(answer));
            }
            if let Some(pressure) = self.excess_pressure(session) {
                return Ok(WorkOutcome::Exhausted(ExhaustionCause::Pressure(pressure)));
            }
            idle = if session.has_worked() { 0 } else { idle + 1 };
            if idle >= IDLE_TURNS {
                return Err(RunError::Idle(idle));
            }
            let prompt = restart::with_until(restart::resume_prompt(), self.state.until.as_deref());
            session.agent.send_prompt(&prompt).await?;
        }
    }

    /// Ends a full session with a checkpoint, and prepares the next.
    async fn end_full_session(
        &mut self,
        mut session: RunSession,
        why: ExhaustionCause,
    ) -> Result<(), RunError> {
        let window = self.terms.window(&session.about);
        let no_room = session.is_full_at_start(&why, window, self.terms.policy);
        let asked = match &why {
            ExhaustionCause::TooLong => {
                self.report_step(RunStep::PromptTooLong);
                CheckpointAnswer::without_checkpoint("the prompt is too long")
            }
            ExhaustionCause::Pressure(pressure) => {
                self.report_step(RunStep::ContextPressure {
                    input_tokens: pressure.input_tokens,
                    output_tokens: pressure.output_tokens,
                    cache_read_tokens: pressure.cache_read_tokens,
                    pressure_ratio: pressure.pressure_ratio,
                });
                match self.ask_checkpoint(&mut session).await {
                    Ok(asked) => asked,
                    Err(error) => {
                        self.suspend_session(session).await;
                        return Err(error);
                    }
                }
            }
        };
        self.state.pressure = match &why {
            ExhaustionCause::Pressure(pressure) => Some(pressure.pressure_ratio),
            ExhaustionCause::TooLong => None,
        };
        let fruitless = self.deeds.count_fruitless(session.entries());
        self.close_session(session).await;
        let prompt = match no_room {
            false => self.continuation(&asked, checkpoint_budget(window)),
            // The checkpoint may be what fills a new session: the smallest one gets a try.
            true => self.continuation(
                &CheckpointAnswer::without_checkpoint("a smaller one is tried"),
                SMALLEST,
            ),
        };
        let first = self.state.continuation_count == 0;
        self.state.next = match no_room && first {
            true => NextStep::Begin,
            false => self.restart_with(prompt),
        };
        let tried = std::mem::replace(&mut self.state.narrowed, no_room);
        if no_room && (first || tried) {
            return Err(RunError::NoRoom { window });
        }
        if fruitless >= FRUITLESS_SESSIONS {
            return Err(RunError::Fruitless(fruitless));
        }
        self.save_state()
    }

    fn restart_with(&self, prompt: String) -> NextStep {
        let restart = self.state.continuation_count + 1;
        NextStep::Continue { prompt, restart }
    }

    /// Closes a session that is done with; what it established stays.
    async fn close_session(&mut self, mut session: RunSession) {
        session.agent.close().await;
        self.merge_ledger(&session);
    }

    /// Closes a session that a later run may take up again, or else its ledger speaks for it.
    async fn suspend_session(&mut self, mut session: RunSession) {
        session.agent.close().await;
        self.merge_ledger(&session);
        let id = session.about.id.clone().filter(|_| self.agent.can_resume());
        self.state.next = match id {
            Some(session_id) => NextStep::Resume { session_id },
            None if session.is_empty() => return,
            None => {
                let prompt = self.ledger_continuation("the session was cut off");
                self.restart_with(prompt)
            }
        };
    }

    /// A continuation from the ledger alone.
    fn ledger_continuation(&mut self, why: &str) -> String {
        let window = self.terms.window(&SessionDetails::default());
        self.continuation(
            &CheckpointAnswer::without_checkpoint(why),
            checkpoint_budget(window),
        )
    }

    /// Adds what a session established to what is known of the task.
    fn merge_ledger(&mut self, session: &RunSession) {
        let ledger = session.ledger(self.state.ledger.next, self.terms.redactor);
        self.state.ledger.merge(ledger);
        self.state.counters.usage = self.state.counters.usage.plus(self.gauge.take_totals());
    }

    fn save_state(&mut self) -> Result<(), RunError> {
        self.state.spent = self.spent();
        Ok(self.record.save_state(&self.state)?)
    }

    fn spent(&self) -> Duration {
        self.spent_before + self.begun.elapsed()
    }

    /// The time that is left, all sessions together: a restart does not begin it anew.
    fn time_left(&self) -> Result<Option<Duration>, RestartLimitReached> {
        self.state.limits.time_left(self.spent())
    }

    /// The session's number, from 1.
    fn number(&self) -> u32 {
        self.state.continuation_count + 1
    }

    fn note_restart(&mut self, prompt: &str) {
        let continuation_count = self.state.continuation_count;
        let before = self.gauge.tokens(self.terms.estimator);
        let tokens_after = self.count_tokens(prompt);
        self.report_step(RunStep::ContextRestart {
            continuation_count,
            pressure_ratio: self.state.pressure,
            tokens_before: Some(before).filter(|before| before.0 > 0),
            tokens_after,
        });
        self.report_step(RunStep::UsageReset { continuation_count });
    }
}

/// An error with everything that caused it.
fn error_with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let said: Vec<String> = causes.map(ToString::to_string).collect();
    said.join(": ")
}
