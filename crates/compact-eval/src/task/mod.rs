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

use compact_core::engine::{Outcome, Prior};
use compact_core::message::{Conversation, Entry, Role};
use compact_core::token::{Chars4, EstimatorExt, Tokens, Units};
use compact_core::wire::WireRules;
use serde::Serialize;

use crate::compaction::{Engine, EngineError, Step};
use crate::generated::{Arc, read};
use crate::interval::{Interval, Sample};
use crate::parallel;
use crate::play::{Terms, play};
use crate::random::Random;
use context::Context;
use scene::{Scene, woven};

/// What a task asks of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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

impl Kind {
    /// All.
    pub const ALL: [Kind; 5] = [
        Kind::FollowConstraint,
        Kind::FinishOpenTodos,
        Kind::UseEarlyId,
        Kind::DontRedoDone,
        Kind::ReuseFix,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::FollowConstraint => "follow an early rule",
            Kind::FinishOpenTodos => "finish open work",
            Kind::UseEarlyId => "use an early id",
            Kind::DontRedoDone => "not redo done work",
            Kind::ReuseFix => "reuse a known fix",
        }
    }

    fn write(self, random: &mut Random) -> Task {
        match self {
            Kind::FollowConstraint => constraint::write(random),
            Kind::FinishOpenTodos => todo::write(random),
            Kind::UseEarlyId => identifier::write(random),
            Kind::DontRedoDone => redo::write(random),
            Kind::ReuseFix => fix::write(random),
        }
    }
}

/// A task: what is said when, the last request, and whether an agent that reads a context meets it.
struct Task {
    scenes: Vec<Scene>,
    request: String,
    /// What the agent asks the archive before it acts.
    questions: Vec<String>,
    succeeds: Box<dyn Fn(&Context) -> bool + Send + Sync>,
}

/// One kind of task at one budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What is asked.
    pub kind: Kind,
    /// What a view may cost, as a share of the whole session.
    pub budget: f64,
    /// How many tasks.
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
pub fn run(engine: &Engine, seeds: u64, budgets: &[f64]) -> Result<Vec<Line>, EngineError> {
    let mut lines = Vec::new();
    for kind in Kind::ALL {
        let trials = (0..seeds).map(|seed| Trial::new(kind, seed));
        let trials = trials.collect::<Result<Vec<_>, _>>()?;
        for budget in budgets {
            let ends = parallel::map(&trials, |trial| trial.end(engine, *budget));
            let ends = ends.into_iter().collect::<Result<Vec<_>, _>>()?;
            lines.extend(line(kind, *budget, &trials, &ends));
        }
    }
    Ok(lines)
}

fn line(kind: Kind, budget: f64, trials: &[Trial], ends: &[End]) -> Option<Line> {
    let score = |met: bool| vec![f64::from(u8::from(met))];
    let whole: Sample = trials
        .iter()
        .map(|t| score(t.succeeds(&t.entries)))
        .collect();
    let by = |of: fn(&End) -> &Vec<Entry>| -> Sample {
        let pairs = trials.iter().zip(ends);
        pairs
            .map(|(trial, end)| score(trial.succeeds(of(end))))
            .collect()
    };
    let (compacted, windowed) = (by(|end| &end.live), by(|end| &end.windowed));
    let recalled = by(|end| &end.recalled);
    Some(Line {
        kind,
        budget,
        tasks: trials.len(),
        compactions: ends.iter().map(|end| end.compactions).min()?,
        whole: Interval::of(&whole)?,
        compacted: Interval::of(&compacted)?,
        windowed: Interval::of(&windowed)?,
        recalled: Interval::of(&recalled)?,
    })
}

/// How many entries the agent recalls by one question.
const HITS: usize = 10;

/// A task in its session.
struct Trial {
    task: Task,
    entries: Vec<Entry>,
}

/// What the context is when the request comes.
struct End {
    live: Vec<Entry>,
    compactions: usize,
    /// The context when the runtime kept it in a window of that size.
    windowed: Vec<Entry>,
    /// The same behind what recall found for the request.
    recalled: Vec<Entry>,
}

impl Trial {
    fn new(kind: Kind, seed: u64) -> Result<Trial, EngineError> {
        let mut random = Random::new(0x7A5C ^ (seed << 8) ^ kind as u64);
        let task = kind.write(&mut random);
        let arc = random.pick(&Arc::ALL).copied().unwrap_or(Arc::Coding);
        let session = read(&arc.session(500 + seed))?;
        let mut entries = woven(session.conversation.entries, &task.scenes);
        entries.push(Entry::text("request", Role::User, task.request.as_str()));
        Ok(Trial { task, entries })
    }

    fn succeeds(&self, entries: &[Entry]) -> bool {
        (self.task.succeeds)(&Context::of(entries))
    }

    /// Plays the session forward; whenever the context is twice the budget it is compacted, and once
    /// more when the request has come.
    fn end(&self, engine: &Engine, share: f64) -> Result<End, EngineError> {
        let whole = Chars4.tokens(units(&self.entries));
        let budget = Tokens((whole.0 as f64 * share) as u64);
        let mut live = Conversation::default();
        let mut prior: Option<Prior> = None;
        let (windowed, recalled) = self.windowed(engine, budget)?;
        let mut end = End {
            live: Vec::new(),
            compactions: 0,
            windowed,
            recalled,
        };
        let mut size = Units(0);
        let mut rest = self.entries.iter().peekable();
        while let Some(entry) = rest.next() {
            live.entries.push(entry.clone());
            size += Chars4.entry(entry);
            let is_inside = rest
                .peek()
                .is_some_and(|next| next.has_results() || next.meta.continues);
            let is_due = rest.peek().is_none() || Chars4.tokens(size).0 > budget.0 * 2;
            if is_inside || !is_due {
                continue;
            }
            let step = Step {
                conversation: &live,
                rules: &WireRules::LENIENT,
                prior: prior.as_ref(),
                budget,
            };
            if let (Outcome::Compacted(made), next) = engine.step(&step)? {
                live.entries = made.view.entries(&live);
                size = units(&live.entries);
                prior = next;
                end.compactions += 1;
            }
        }
        end.live = live.entries;
        Ok(end)
    }
}

impl Trial {
    /// What the runtime shows at the request, in a window of this size, without and with recall.
    fn windowed(
        &self,
        engine: &Engine,
        window: Tokens,
    ) -> Result<(Vec<Entry>, Vec<Entry>), EngineError> {
        let answer = Entry::text("answer", Role::Assistant, "I see to it.");
        let conversation = Conversation {
            entries: self.entries.iter().cloned().chain([answer]).collect(),
            ..Conversation::default()
        };
        let terms = Terms {
            policy: engine.policy().clone(),
            window,
            estimator: std::sync::Arc::new(Chars4),
        };
        let mut shown = Vec::new();
        let played = play(&conversation, &WireRules::LENIENT, &terms, |moment| {
            if moment.said.entries.len() == self.entries.len() {
                shown = moment.view.entries(moment.said);
            }
        })?;
        let found = played.recall(&self.task.questions, HITS)?;
        Ok((shown.clone(), [found, shown].concat()))
    }
}

fn units(entries: &[Entry]) -> Units {
    entries.iter().map(|e| Chars4.entry(e)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_succeeds_with_the_whole_context_and_none_without_any() {
        for kind in Kind::ALL {
            for seed in 0..4 {
                let trial = Trial::new(kind, seed).unwrap();
                assert!(trial.succeeds(&trial.entries), "{kind:?} {seed}");
                let last = trial
                    .entries
                    .last()
                    .cloned()
                    .into_iter()
                    .collect::<Vec<_>>();
                assert!(!trial.succeeds(&last), "{kind:?} {seed} needs nothing");
            }
        }
    }

    #[test]
    fn a_tenth_of_the_window_keeps_orders_and_work_and_recall_finds_the_rest() {
        let engine = Engine::new(Default::default()).unwrap();
        for (kind, seed) in Kind::ALL.into_iter().flat_map(|k| [(k, 0), (k, 2)]) {
            let trial = Trial::new(kind, seed).unwrap();
            let whole = Chars4.tokens(units(&trial.entries));
            let (shown, recalled) = trial.windowed(&engine, Tokens(whole.0 / 10)).unwrap();
            let is_looked_up = matches!(kind, Kind::UseEarlyId | Kind::ReuseFix);
            assert!(is_looked_up || trial.succeeds(&shown), "{kind:?} {seed}");
            assert!(trial.succeeds(&recalled), "{kind:?} {seed} with recall");
        }
    }

    #[test]
    fn a_task_is_compacted_on_the_way() {
        let engine = Engine::new(Default::default()).unwrap();
        let trial = Trial::new(Kind::UseEarlyId, 1).unwrap();
        let end = trial.end(&engine, 0.1).unwrap();
        assert!(end.compactions >= 5, "{}", end.compactions);
        let (live, whole) = (units(&end.live).0, units(&trial.entries).0);
        // The system prompt is not in the budget.
        assert!(live * 9 <= whole, "{live} of {whole}");
    }
}
