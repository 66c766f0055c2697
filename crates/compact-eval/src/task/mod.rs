//! Task success: scripted agents whose last step succeeds only with what the context still holds.
//!
//! A task scatters scenes over a long generated session: a rule, a to-do list, an id, work that was
//! run, an error with its fix. At the end a request comes that cannot be met without them. The agent
//! is a rule, not a model: it reads the context line by line, as it stands, and acts. Without
//! compaction every task succeeds, by construction and by test; so a failure is the compaction's.

mod constraint;
mod context;
mod fix;
mod identifier;
mod redo;
mod scene;
mod todo;

use compact_core::engine::{CompactionOutcome, Prior};
use compact_core::message::{Conversation, Entry, Role};
use compact_core::token::{Chars4, EstimatorExt, Tokens, Units};
use compact_core::wire::WireRules;
use compact_runtime::parallel::map_on_all_cores;
use compact_runtime::replay::play::{CallSnapshot, play_conversation};
use serde::Serialize;

use crate::compaction::{CompactionStep, EvalEngine, EvalError, block_on};
use crate::fact_check::{Scenario, parse_session};
use crate::interval::{Interval, SessionScores};
use crate::random::Random;
use context::AgentContext;
use scene::{TaskScene, weave_scenes};

/// The kind of memory that a task needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Obey a rule that was given early, or the one that replaced it.
    FollowConstraint,
    /// Finish what is open, and nothing else.
    FinishOpenTodos,
    /// Name an id that a tool gave early.
    UseEarlyId,
    /// Do not run again what was run.
    DontRedoDone,
    /// Meet a known error with its known fix.
    ReuseFix,
}

impl TaskKind {
    /// Every kind of task.
    pub const ALL: [TaskKind; 5] = [
        TaskKind::FollowConstraint,
        TaskKind::FinishOpenTodos,
        TaskKind::UseEarlyId,
        TaskKind::DontRedoDone,
        TaskKind::ReuseFix,
    ];

    /// Returns the name of the task as the report prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskKind::FollowConstraint => "follow an early rule",
            TaskKind::FinishOpenTodos => "finish open work",
            TaskKind::UseEarlyId => "use an early id",
            TaskKind::DontRedoDone => "not redo done work",
            TaskKind::ReuseFix => "reuse a known fix",
        }
    }

    fn write_task(self, random: &mut Random) -> ScriptedTask {
        match self {
            TaskKind::FollowConstraint => constraint::write_task(random),
            TaskKind::FinishOpenTodos => todo::write_task(random),
            TaskKind::UseEarlyId => identifier::write_task(random),
            TaskKind::DontRedoDone => redo::write_task(random),
            TaskKind::ReuseFix => fix::write_task(random),
        }
    }
}

/// A task: what is said when, the last request, and whether an agent that reads a context meets it.
struct ScriptedTask {
    scenes: Vec<TaskScene>,
    request: String,
    /// What the agent asks the archive before it acts.
    questions: Vec<String>,
    succeeds: Box<dyn Fn(&AgentContext) -> bool + Send + Sync>,
}

/// One kind of task at one budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskResult {
    /// The kind of task.
    pub kind: TaskKind,
    /// What a view may cost, as a share of the whole session.
    pub budget: f64,
    /// The number of tasks.
    pub tasks: usize,
    /// The fewest compactions on the way.
    pub compactions: usize,
    /// The share that succeeds with the whole context.
    pub whole: Interval,
    /// The share that succeeds with the compacted one.
    pub compacted: Interval,
    /// The share that succeeds when the runtime keeps the session in a window of the budget's size,
    /// so that its views are smaller still.
    pub windowed: Interval,
    /// The same when the agent, before it acts, recalls from the archive what the request is about.
    pub recalled: Interval,
}

/// Runs so many tasks of each kind at each budget.
pub fn run_trials(
    engine: &EvalEngine,
    seeds: u64,
    budgets: &[f64],
) -> Result<Vec<TaskResult>, EvalError> {
    let mut lines = Vec::new();
    for kind in TaskKind::ALL {
        let trials = (0..seeds).map(|seed| TaskTrial::new(kind, seed));
        let trials = trials.collect::<Result<Vec<_>, _>>()?;
        for budget in budgets {
            let ends = map_on_all_cores(&trials, |trial| trial.play_to_end(engine, *budget));
            let ends = ends.into_iter().collect::<Result<Vec<_>, _>>()?;
            lines.extend(score_trials(kind, *budget, &trials, &ends));
        }
    }
    Ok(lines)
}

fn score_trials(
    kind: TaskKind,
    budget: f64,
    trials: &[TaskTrial],
    ends: &[TrialEnd],
) -> Option<TaskResult> {
    let score = |met: bool| vec![f64::from(u8::from(met))];
    let whole: SessionScores = trials
        .iter()
        .map(|t| score(t.succeeds_with(&t.entries)))
        .collect();
    let by = |of: fn(&TrialEnd) -> &Vec<Entry>| -> SessionScores {
        let pairs = trials.iter().zip(ends);
        pairs
            .map(|(trial, end)| score(trial.succeeds_with(of(end))))
            .collect()
    };
    let (compacted, windowed) = (by(|end| &end.live), by(|end| &end.windowed));
    let recalled = by(|end| &end.recalled);
    Some(TaskResult {
        kind,
        budget,
        tasks: trials.len(),
        compactions: ends.iter().map(|end| end.compactions).min()?,
        whole: Interval::from_scores(&whole)?,
        compacted: Interval::from_scores(&compacted)?,
        windowed: Interval::from_scores(&windowed)?,
        recalled: Interval::from_scores(&recalled)?,
    })
}

/// How many entries the agent recalls by one question.
const HITS: usize = 10;

/// A task in its session.
struct TaskTrial {
    task: ScriptedTask,
    entries: Vec<Entry>,
}

/// The contexts at the time of the request.
struct TrialEnd {
    live: Vec<Entry>,
    compactions: usize,
    /// The context when the runtime kept it in a window of that size.
    windowed: Vec<Entry>,
    /// The same behind what recall found for the request.
    recalled: Vec<Entry>,
}

impl TaskTrial {
    fn new(kind: TaskKind, seed: u64) -> Result<TaskTrial, EvalError> {
        let mut random = Random::new(0x7A5C ^ (seed << 8) ^ kind as u64);
        let task = kind.write_task(&mut random);
        let arc = random
            .pick(&Scenario::ALL)
            .copied()
            .unwrap_or(Scenario::Coding);
        let session = parse_session(&arc.generate(500 + seed))?;
        let mut entries = weave_scenes(session.conversation.entries, &task.scenes);
        entries.push(Entry::from_text(
            "request",
            Role::User,
            task.request.as_str(),
        ));
        Ok(TaskTrial { task, entries })
    }

    fn succeeds_with(&self, entries: &[Entry]) -> bool {
        (self.task.succeeds)(&AgentContext::from_entries(entries))
    }

    /// Plays the session forward; whenever the context is twice the budget it is compacted, and once
    /// more when the request has come.
    fn play_to_end(&self, engine: &EvalEngine, share: f64) -> Result<TrialEnd, EvalError> {
        let whole = Chars4.to_tokens(count_units(&self.entries));
        let budget = Tokens((whole.0 as f64 * share) as u64);
        let mut live = Conversation::default();
        let mut prior: Option<Prior> = None;
        let (windowed, recalled) = self.play_in_window(engine, budget)?;
        let mut end = TrialEnd {
            live: Vec::new(),
            compactions: 0,
            windowed,
            recalled,
        };
        let mut size = Units(0);
        let mut rest = self.entries.iter().peekable();
        while let Some(entry) = rest.next() {
            live.entries.push(entry.clone());
            size += Chars4.count_entry(entry);
            let is_inside = rest
                .peek()
                .is_some_and(|next| next.has_results() || next.meta.continues);
            let is_due = rest.peek().is_none() || Chars4.to_tokens(size).0 > budget.0 * 2;
            if is_inside || !is_due {
                continue;
            }
            let step = CompactionStep {
                conversation: &live,
                rules: &WireRules::LENIENT,
                prior: prior.as_ref(),
                budget,
            };
            if let (CompactionOutcome::Compacted(made), next) = engine.compact_step(&step)? {
                live.entries = made.view.shown_entries(&live);
                size = count_units(&live.entries);
                prior = next;
                end.compactions += 1;
            }
        }
        end.live = live.entries;
        Ok(end)
    }
}

impl TaskTrial {
    /// Returns what the runtime shows at the request, in a window of this size, without and with recall.
    fn play_in_window(
        &self,
        engine: &EvalEngine,
        window: Tokens,
    ) -> Result<(Vec<Entry>, Vec<Entry>), EvalError> {
        let answer = Entry::from_text("answer", Role::Assistant, "I see to it.");
        let conversation = Conversation {
            entries: self.entries.iter().cloned().chain([answer]).collect(),
            ..Conversation::default()
        };
        let terms = engine.play_settings(window);
        let mut shown = Vec::new();
        let watch = |moment: &CallSnapshot<'_>| {
            if moment.said.entries.len() == self.entries.len() {
                shown = moment.view.shown_entries(moment.said);
            }
        };
        let found = block_on(async {
            let played =
                play_conversation(&conversation, &WireRules::LENIENT, &terms, watch).await?;
            played.recall(&self.task.questions, HITS).await
        })?;
        Ok((shown.clone(), [found, shown].concat()))
    }
}

fn count_units(entries: &[Entry]) -> Units {
    entries.iter().map(|e| Chars4.count_entry(e)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_succeeds_with_the_whole_context_and_none_without_any() {
        for kind in TaskKind::ALL {
            for seed in 0..4 {
                let trial = TaskTrial::new(kind, seed).unwrap();
                assert!(trial.succeeds_with(&trial.entries), "{kind:?} {seed}");
                let last = trial
                    .entries
                    .last()
                    .cloned()
                    .into_iter()
                    .collect::<Vec<_>>();
                assert!(!trial.succeeds_with(&last), "{kind:?} {seed} needs nothing");
            }
        }
    }

    #[test]
    fn a_tenth_of_the_window_keeps_orders_and_work_and_recall_finds_the_rest() {
        let engine = EvalEngine::new(Default::default()).unwrap();
        for (kind, seed) in TaskKind::ALL.into_iter().flat_map(|k| [(k, 0), (k, 2)]) {
            let trial = TaskTrial::new(kind, seed).unwrap();
            let whole = Chars4.to_tokens(count_units(&trial.entries));
            let (shown, recalled) = trial.play_in_window(&engine, Tokens(whole.0 / 10)).unwrap();
            let is_looked_up = matches!(kind, TaskKind::UseEarlyId | TaskKind::ReuseFix);
            assert!(
                is_looked_up || trial.succeeds_with(&shown),
                "{kind:?} {seed}"
            );
            assert!(
                trial.succeeds_with(&recalled),
                "{kind:?} {seed} with recall"
            );
        }
    }

    #[test]
    fn a_task_is_compacted_on_the_way() {
        let engine = EvalEngine::new(Default::default()).unwrap();
        let trial = TaskTrial::new(TaskKind::UseEarlyId, 1).unwrap();
        let end = trial.play_to_end(&engine, 0.1).unwrap();
        assert!(end.compactions >= 5, "{}", end.compactions);
        let (live, whole) = (count_units(&end.live).0, count_units(&trial.entries).0);
        // The system prompt is not in the budget.
        assert!(live * 9 <= whole, "{live} of {whole}");
    }
}
