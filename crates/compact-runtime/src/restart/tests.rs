use std::sync::atomic::{AtomicUsize, Ordering};

use compact_core::event::CheckpointSource;
use compact_core::message::{Block, Entry, EntryId, EntryMeta, Role};
use compact_core::profile::Profile;
use compact_core::redact::{RedactionBoundary, RedactionRules};
use compact_core::restart::RestartLimits;
use compact_core::token::Chars4;
use compact_core::usage::{OnMissing, Semantics, Usage};
use compact_formats::stream::{AgentActivity, UsageReport};

use super::*;
use crate::port::agent::{AgentStep, ScriptedAgent, ScriptedPrompt};

const RULE: &str = "Never touch the table billing_events.";

/// Everything that is written down, and the test's view of it.
#[derive(Default)]
struct Paper {
    story: Vec<StoryLine>,
    lines: Vec<(u32, String)>,
    kept: Vec<RunState>,
}

impl RunJournal for Paper {
    fn append_story(&mut self, line: &StoryLine) {
        self.story.push(line.clone());
    }
    fn append_line(&mut self, session: u32, line: &str) {
        self.lines.push((session, line.to_owned()));
    }
    fn save_state(&mut self, state: &RunState) -> std::io::Result<()> {
        self.kept.push(state.clone());
        Ok(())
    }
}

impl Paper {
    fn state(&self) -> &RunState {
        self.kept.last().unwrap()
    }
    fn steps(&self) -> impl Iterator<Item = &RunStep> {
        self.story.iter().filter_map(StoryLine::step)
    }
    fn lines(&self) -> Vec<String> {
        let lines = self.story.iter().filter_map(StoryLine::describe);
        lines.collect()
    }
    fn restarts(&self) -> Vec<(u32, Option<f64>)> {
        let restarts = self.steps().filter_map(|step| match step {
            RunStep::ContextRestart {
                continuation_count,
                pressure_ratio,
                ..
            } => Some((*continuation_count, *pressure_ratio)),
            _ => None,
        });
        restarts.collect()
    }
    fn sources(&self) -> Vec<CheckpointSource> {
        let sources = self.steps().filter_map(|step| match step {
            RunStep::Checkpoint { source, .. } => Some(*source),
            _ => None,
        });
        sources.collect()
    }
    fn has(&self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }
}

struct Scene {
    policy: Policy,
    window: u64,
    redactor: Redactor,
    patience: WaitLimits,
    state: RunState,
    paper: Paper,
}

impl Scene {
    fn new() -> Scene {
        Scene {
            policy: Profile::CheckpointRestart.policy(),
            window: 1_000,
            redactor: RedactionRules::default()
                .redactor(RedactionBoundary::Summary)
                .unwrap(),
            patience: WaitLimits {
                checkpoint: Duration::from_millis(200),
                silence: Duration::from_secs(20),
                interrupt: Duration::from_millis(200),
            },
            state: RunState {
                until: Some("DONE".to_owned()),
                ..RunState::new("r1", format!("Fix the parser. {RULE}"))
            },
            paper: Paper::default(),
        }
    }

    fn limited(mut self, max_restarts: Option<u32>, millis: Option<u64>) -> Scene {
        self.state.limits = RestartLimits {
            max_restarts,
            time: millis.map(Duration::from_millis),
        };
        self
    }

    async fn run(&mut self, agent: &ScriptedAgent) -> Result<String, RunError> {
        let (_sender, stop) = watch::channel(false);
        self.run_until(agent, stop).await
    }

    async fn run_until(
        &mut self,
        agent: &ScriptedAgent,
        stop: watch::Receiver<bool>,
    ) -> Result<String, RunError> {
        let terms = RunTerms::new(&self.policy, &Chars4, &self.redactor)
            .with_window(Some(Tokens(self.window)))
            .with_wait_limits(self.patience);
        let runner = Runner::new(agent, &mut self.paper, terms, self.state.clone(), stop);
        runner.run().await.map(|(answer, _)| answer)
    }
}

fn named(id: &str) -> AgentStep {
    AgentStep::Tells(AgentActivity::Session(SessionDetails {
        id: Some(id.to_owned()),
        ..SessionDetails::default()
    }))
}

fn said(role: Role, block: Block) -> AgentStep {
    AgentStep::Tells(AgentActivity::Said(Entry {
        id: EntryId(String::new()),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    }))
}

fn says(text: &str) -> AgentStep {
    said(Role::Assistant, Block::Text(text.to_owned()))
}

fn calls(id: &str, command: &str) -> AgentStep {
    let arguments = format!(r#"{{"command":"{command}"}}"#);
    said(
        Role::Assistant,
        Block::ToolCall {
            id: id.to_owned(),
            name: "Bash".to_owned(),
            arguments,
        },
    )
}

fn answers(id: &str) -> AgentStep {
    said(
        Role::Tool,
        Block::ToolResult {
            call: id.to_owned(),
            content: "fine".to_owned(),
            is_error: false,
        },
    )
}

fn used(input: i64, output: i64, cached: i64, measures: Option<Semantics>) -> AgentStep {
    AgentStep::Tells(AgentActivity::Used(UsageReport {
        usage: Usage::of_turn(input, output, cached),
        measures,
    }))
}

fn ends() -> AgentStep {
    AgentStep::Tells(AgentActivity::Ended(TurnEnd::Done(None)))
}

fn ends_with(end: TurnEnd) -> AgentStep {
    AgentStep::Tells(AgentActivity::Ended(end))
}

fn is_request(told: &ScriptedPrompt) -> bool {
    told.prompt == restart::checkpoint_request()
}

const CHECKPOINT: &str =
    "```xml\n<checkpoint>\n## Remaining Tasks\n1. the lexer\n</checkpoint>\n```";

/// An agent whose sessions report `usage` at the end of their first turn, until the last is done.
fn tiring(sessions: usize, usage: i64) -> ScriptedAgent {
    ScriptedAgent::new(move |told| {
        if is_request(told) {
            return vec![says(CHECKPOINT), ends()];
        }
        let id = named(&format!("s{}", told.session));
        let work = [id, says("working"), calls("c", "make"), answers("c")];
        let last = match told.session >= sessions {
            true => vec![says("DONE"), used(10, 0, 0, None), ends()],
            false => vec![used(usage, 0, 0, None), ends()],
        };
        work.into_iter().chain(last).collect()
    })
}

#[tokio::test(start_paused = true)]
async fn sessions_follow_each_other() {
    let agent = tiring(4, 900);
    let mut scene = Scene::new();
    assert_eq!(scene.run(&agent).await.unwrap(), "DONE");
    let paper = &scene.paper;
    let restarts: Vec<u32> = paper.restarts().iter().map(|(n, _)| *n).collect();
    assert_eq!(restarts, [1, 2, 3]);
    assert_eq!(paper.restarts()[0].1, Some(0.9));
    assert_eq!(paper.sources(), [CheckpointSource::Tagged; 3]);
    assert!(paper.has("Session r1: context restart #2 at 90.0%"));
    assert!(paper.has("Context pressure: 90.0%"));
    // Each session is fresh, and is told the user's words and its predecessor's.
    let heard = agent.received_prompts();
    let openings: Vec<&ScriptedPrompt> = heard.iter().filter(|told| told.turn == 1).collect();
    assert_eq!(openings.len(), 4);
    assert!(
        openings
            .iter()
            .all(|told| told.resumed.is_none() && told.prompt.contains(RULE))
    );
    for told in &openings[1..] {
        assert!(told.prompt.starts_with("CONTINUING FROM PREVIOUS SESSION"));
        assert!(told.prompt.contains("1. the lexer") && !told.prompt.contains("<checkpoint>"));
    }
    // The request went to the session that was full, once its turn was over.
    let asked: Vec<(usize, usize)> = heard
        .iter()
        .filter(|told| is_request(told))
        .map(|told| (told.session, told.turn))
        .collect();
    assert_eq!(asked, [(1, 2), (2, 2), (3, 2)]);
    let state = paper.state();
    assert_eq!(
        (state.continuation_count, &state.next),
        (3, &NextStep::Nothing)
    );
    assert_eq!(state.counters.sessions, 4);
    assert_eq!(state.counters.checkpoints_tagged, 3);
    assert!(paper.lines.iter().any(|(session, _)| *session == 4));
}

#[tokio::test(start_paused = true)]
async fn the_threshold_itself_is_enough() {
    for (usage, restarts) in [(890, 0), (900, 1), (910, 1)] {
        let mut scene = Scene::new().limited(Some(0), None);
        let agent = ScriptedAgent::new(move |told| match told.turn {
            1 => vec![
                calls("c", "make"),
                answers("c"),
                used(usage, 0, 0, None),
                ends(),
            ],
            _ => vec![says("DONE"), ends()],
        });
        let outcome = scene.run(&agent).await;
        assert_eq!(outcome.is_err(), restarts == 1, "{usage}");
        assert_eq!(scene.paper.sources().len(), restarts, "{usage}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_threshold_above_one_never_ends_a_session() {
    let mut scene = Scene::new();
    scene.policy.trigger_pct = 1.1;
    let agent = ScriptedAgent::new(|_| vec![used(5_000, 0, 0, None), says("DONE"), ends()]);
    assert_eq!(scene.run(&agent).await.unwrap(), "DONE");
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_cut_where_no_tool_is_at_work() {
    let full = Some(Semantics::LastRequest);
    let agent = ScriptedAgent::new(move |told| {
        if is_request(told) {
            return vec![says(CHECKPOINT), ends()];
        }
        match told.session {
            1 => vec![
                used(500, 0, 0, full),
                calls("a", "make parser"),
                calls("b", "make lexer"),
                used(3, 9, 950, full),
                says("two at a time"),
                answers("a"),
                says("one is left"),
                answers("b"),
                calls("c", "never"),
                AgentStep::Hangs,
            ],
            _ => vec![says("DONE"), ends()],
        }
    });
    let mut scene = Scene::new();
    assert_eq!(scene.run(&agent).await.unwrap(), "DONE");
    let called: Vec<String> = scene.paper.lines();
    let called = called.iter().filter(|line| line.starts_with("Bash"));
    assert_eq!(
        called.count(),
        2,
        "both were answered before the turn was cut"
    );
    // Cached tokens fill a window too: the last request's whole prompt guards.
    assert!(scene.paper.restarts()[0].1.unwrap() > 0.95);
}

#[tokio::test(start_paused = true)]
async fn a_finished_task_needs_no_restart() {
    let mut scene = Scene::new();
    scene.state.until = None;
    let agent = ScriptedAgent::new(|_| vec![used(950, 0, 0, None), says("That is all."), ends()]);
    assert_eq!(scene.run(&agent).await.unwrap(), "That is all.");
    assert_eq!(scene.paper.restarts(), []);
}

#[tokio::test(start_paused = true)]
async fn turns_add_up_under_the_profile_of_deltas() {
    let delta = Profile::CheckpointRestartDelta;
    let turns = |usages: &'static [(i64, i64, i64)]| {
        ScriptedAgent::new(move |told| {
            if is_request(told) {
                return vec![says(CHECKPOINT), ends()];
            }
            let (input, output, cached) = usages.get(told.turn - 1).copied().unwrap_or_default();
            let work = [named("s"), calls("c", "make"), answers("c")];
            let end = match told.session > 1 || told.turn > usages.len() {
                true => vec![says("DONE"), ends()],
                false => vec![used(input, output, cached, None), ends()],
            };
            work.into_iter().chain(end).collect()
        })
    };
    let mut scene = Scene::new();
    scene.policy = Policy {
        trigger_pct: 0.5,
        ..delta.policy()
    };
    scene
        .run(&turns(&[(200, 200, 7), (100, 100, 5)]))
        .await
        .unwrap();
    let pressure = RunStep::ContextPressure {
        input_tokens: 300,
        output_tokens: 300,
        cache_read_tokens: 12,
        pressure_ratio: 0.6,
    };
    let lines = scene.paper.lines();
    assert!(
        scene.paper.steps().any(|step| *step == pressure),
        "{lines:?}"
    );
    // Huge cache reads that nobody says are of one request restart nothing.
    let mut scene = Scene::new();
    scene.policy = delta.policy();
    scene.window = 200_000;
    scene.run(&turns(&[(487, 5_880, 1_432_262)])).await.unwrap();
    assert_eq!(scene.paper.restarts(), []);
}

#[tokio::test(start_paused = true)]
async fn a_restart_counts_from_zero() {
    let mut scene = Scene::new();
    scene.policy = Profile::CheckpointRestartDelta.policy();
    let agent = ScriptedAgent::new(|told| {
        if is_request(told) {
            return vec![says(CHECKPOINT), ends()];
        }
        let work = [calls("c", "make"), answers("c")];
        let rest = match (told.session, told.turn) {
            (1, 1) => vec![used(600, 0, 0, None), ends()],
            (1, _) | (2, 1) => vec![used(350, 0, 0, None), ends()],
            _ => vec![says("DONE"), ends()],
        };
        work.into_iter().chain(rest).collect()
    });
    scene.run(&agent).await.unwrap();
    let log: Vec<String> = scene
        .paper
        .lines()
        .into_iter()
        .filter(|line| line.starts_with("Context usage") || line.starts_with("Resetting"))
        .collect();
    let usage = |turn: u64, sum: u64, pressure: &str| {
        format!(
            "Context usage: turn=(input={turn} output=0 cache_read=0) cumulative=(input={sum} output=0 \
             cache_read=0) limit=1000 pressure={pressure}%"
        )
    };
    assert_eq!(
        log,
        [
            usage(600, 600, "60.0"),
            usage(350, 950, "95.0"),
            "Resetting context usage for restart (continuation #1)".to_owned(),
            usage(350, 350, "35.0"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn without_usage_the_session_goes_on_untracked() {
    let silent = |told: &ScriptedPrompt| match (is_request(told), told.session, told.turn) {
        (true, ..) => vec![says(CHECKPOINT), ends()],
        (_, 1, 1..4) => vec![calls("c", &"x".repeat(2_000)), answers("c"), ends()],
        _ => vec![says("DONE"), ends()],
    };
    let mut scene = Scene::new();
    scene.run(&ScriptedAgent::new(silent)).await.unwrap();
    let missing = |paper: &Paper| {
        let lines = paper.lines().into_iter();
        lines
            .filter(|line| line.contains("did not provide token usage, context tracking disabled"))
            .count()
    };
    assert_eq!(missing(&scene.paper), 1, "told once");
    assert_eq!(scene.paper.restarts(), []);
    // Another policy counts by itself.
    let mut scene = Scene::new();
    scene.policy.usage.on_missing = OnMissing::Estimator;
    scene.run(&ScriptedAgent::new(silent)).await.unwrap();
    assert!(!scene.paper.restarts().is_empty());
}

type Answer = fn() -> Vec<AgentStep>;

/// What agents answer when they are asked for a checkpoint, what becomes of it, and what the next
/// session is told.
fn answers_with_a_checkpoint() -> Vec<(Answer, CheckpointSource, &'static str)> {
    use CheckpointSource::{Raw, Tagged};
    vec![
        (
            || vec![says("<checkpoint>left: the lexer</checkpoint>"), ends()],
            Tagged,
            "left: the lexer",
        ),
        (
            || vec![says("<checkpoint>left: {the lexer"), ends()],
            Tagged,
            "left: {the lexer",
        ),
        (
            || vec![says("<checkpoint>left: a"), says("b</checkpoint>"), ends()],
            Tagged,
            "left: a\nb",
        ),
        (
            || vec![says("the lexer is left"), ends()],
            Raw,
            "the lexer is left",
        ),
        (
            || {
                vec![ends_with(TurnEnd::Done(Some(
                    "the lexer is left".to_owned(),
                )))]
            },
            Raw,
            "the lexer is left",
        ),
        (
            || {
                let result = "<checkpoint>left: the lexer</checkpoint>";
                let end = TurnEnd::Done(Some(result.to_owned()));
                vec![says("Let me write the checkpoint."), ends_with(end)]
            },
            Tagged,
            "left: the lexer",
        ),
        (
            || {
                vec![
                    says("<checkpoint>whole</checkpoint>"),
                    ends_with(TurnEnd::Failed("x".to_owned())),
                ]
            },
            Tagged,
            "whole",
        ),
    ]
}

/// Answers that hold none, as [`answers_with_a_checkpoint`] tells them.
fn answers_without_a_checkpoint() -> Vec<(Answer, CheckpointSource, &'static str)> {
    use CheckpointSource::Built;
    vec![
        (|| vec![ends()], Built, "make parser"),
        (
            || vec![says("I'm sorry, I can't."), ends()],
            Built,
            "make parser",
        ),
        (
            || vec![says(restart::checkpoint_request()), ends()],
            Built,
            "make parser",
        ),
        (|| vec![ends_with(TurnEnd::TooLong)], Built, "make parser"),
        (
            || {
                vec![
                    says("half an answ"),
                    ends_with(TurnEnd::Failed("overloaded".to_owned())),
                ]
            },
            Built,
            "make parser",
        ),
        (
            || vec![says("thinking"), AgentStep::Hangs],
            Built,
            "make parser",
        ),
        (
            || {
                vec![AgentStep::Breaks(AgentError::Exited {
                    status: "1".to_owned(),
                    said: String::new(),
                })]
            },
            Built,
            "make parser",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_answer_leads_to_a_restart() {
    let all = [answers_with_a_checkpoint(), answers_without_a_checkpoint()].concat();
    for (answer, source, told_next) in all {
        let agent = ScriptedAgent::new(move |told| match (is_request(told), told.session) {
            (true, _) => answer(),
            (_, 1) => vec![
                calls("c", "make parser"),
                answers("c"),
                used(950, 0, 0, None),
                ends(),
            ],
            _ => vec![says("DONE"), ends()],
        });
        let mut scene = Scene::new();
        assert_eq!(scene.run(&agent).await.unwrap(), "DONE");
        assert_eq!(scene.paper.sources(), [source], "{told_next}");
        let heard = agent.received_prompts();
        let next = heard.iter().find(|told| told.session == 2).unwrap();
        assert!(next.prompt.contains(told_next), "{}", next.prompt);
        assert!(next.prompt.contains(RULE), "{}", next.prompt);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_prompt_is_a_boundary_too_and_nobody_is_asked_in_vain() {
    let agent = ScriptedAgent::new(|told| match told.session {
        1 => vec![
            calls("c", "make parser"),
            answers("c"),
            ends_with(TurnEnd::TooLong),
        ],
        _ => vec![says("DONE"), ends()],
    });
    let mut scene = Scene::new();
    assert_eq!(scene.run(&agent).await.unwrap(), "DONE");
    assert_eq!(scene.paper.restarts(), [(1, None)]);
    assert!(!agent.received_prompts().iter().any(is_request));
    assert!(scene.paper.has("context restart #1 after a refused prompt"));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_full_at_once_is_tried_smaller_and_then_given_up() {
    let agent = ScriptedAgent::new(|told| match told.session {
        1 => vec![
            calls("c", "make parser"),
            answers("c"),
            ends_with(TurnEnd::TooLong),
        ],
        _ => vec![ends_with(TurnEnd::TooLong)],
    });
    let mut scene = Scene::new();
    let error = scene.run(&agent).await.unwrap_err();
    assert!(
        matches!(
            error,
            RunError::NoRoom {
                window: Tokens(1_000)
            }
        ),
        "{error}"
    );
    let sizes: Vec<usize> = agent
        .received_prompts()
        .iter()
        .map(|told| told.prompt.len())
        .collect();
    assert_eq!(sizes.len(), 3);
    assert!(sizes[2] <= sizes[1]);
    assert!(matches!(
        scene.paper.state().next,
        NextStep::Continue { .. }
    ));
    // A task that does not fit by itself is not tried again.
    let mut scene = Scene::new();
    let agent = ScriptedAgent::new(|_| vec![named("s"), ends_with(TurnEnd::TooLong)]);
    assert!(matches!(
        scene.run(&agent).await,
        Err(RunError::NoRoom { .. })
    ));
    assert_eq!(agent.received_prompts().len(), 1);
    assert_eq!(scene.paper.state().next, NextStep::Begin);
}

#[tokio::test(start_paused = true)]
async fn the_depth_limit_holds_and_the_next_prompt_is_kept() {
    let mut scene = Scene::new().limited(Some(2), None);
    let agent = tiring(9, 950);
    let error = scene.run(&agent).await.unwrap_err();
    assert!(
        matches!(error, RunError::Limit(RestartLimitReached::Restarts(2))),
        "{error}"
    );
    let state = scene.paper.state().clone();
    assert_eq!(state.continuation_count, 2);
    let NextStep::Continue { prompt, restart: 3 } = &state.next else {
        panic!("{:?}", state.next)
    };
    assert!(prompt.contains("1. the lexer"));
    // With more of them, it goes on from there.
    let mut again = Scene::new();
    again.state = RunState {
        limits: RestartLimits::default(),
        ..state
    };
    assert_eq!(again.run(&tiring(1, 0)).await.unwrap(), "DONE");
    assert_eq!(again.paper.restarts().first().map(|(n, _)| *n), Some(3));
}

#[tokio::test(start_paused = true)]
async fn sessions_that_do_nothing_new_end_the_run_which_can_be_resumed() {
    let agent = ScriptedAgent::new(|told| match is_request(told) {
        true => vec![says(CHECKPOINT), ends()],
        false => vec![
            calls("c", "make"),
            answers("c"),
            used(950, 0, 0, None),
            ends(),
        ],
    });
    let mut scene = Scene::new();
    let error = scene.run(&agent).await.unwrap_err();
    assert!(matches!(error, RunError::Fruitless(3)), "{error}");
    // The first did something; three more did not.
    assert_eq!(scene.paper.restarts().len(), 3);
    assert!(matches!(
        scene.paper.state().next,
        NextStep::Continue { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_is_that_of_all_sessions_together() {
    let turns = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&turns);
    let agent = ScriptedAgent::new(move |told| {
        if is_request(told) {
            return vec![says(CHECKPOINT), ends()];
        }
        let turn = counted.fetch_add(1, Ordering::Relaxed);
        vec![
            AgentStep::Works(Duration::from_millis(60)),
            calls("c", &format!("make part_{turn}")),
            answers("c"),
            used(950, 0, 0, None),
            ends(),
        ]
    });
    let mut scene = Scene::new().limited(None, Some(300));
    let error = scene.run(&agent).await.unwrap_err();
    assert!(
        matches!(error, RunError::Limit(RestartLimitReached::Time(_))),
        "{error}"
    );
    assert_eq!(turns.load(Ordering::Relaxed), 5);
    assert!(scene.paper.state().spent >= Duration::from_millis(300));
    // What was spent stays spent.
    let mut again = Scene::new();
    again.state = scene.paper.state().clone();
    assert!(matches!(
        again.run(&agent).await,
        Err(RunError::Limit(RestartLimitReached::Time(_)))
    ));
    // It also ends a turn that runs, and a checkpoint that is waited for.
    for hangs_at in ["work", "checkpoint"] {
        let agent = ScriptedAgent::new(move |told| match (hangs_at, is_request(told)) {
            ("checkpoint", false) => {
                vec![calls("c", "m"), answers("c"), used(950, 0, 0, None), ends()]
            }
            _ => vec![AgentStep::Hangs],
        });
        let mut scene = Scene::new().limited(None, Some(100));
        scene.patience.checkpoint = Duration::from_secs(20);
        let outcome = scene.run(&agent).await;
        assert!(
            matches!(outcome, Err(RunError::Limit(RestartLimitReached::Time(_)))),
            "{hangs_at}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_goes_on_in_the_session_that_was_cut_off() {
    let (sender, stop) = watch::channel(false);
    let agent = ScriptedAgent::new(move |told| match told.resumed.as_deref() {
        None => {
            sender.send_replace(true);
            vec![named("s1"), calls("c", "make parser"), AgentStep::Hangs]
        }
        Some(_) => vec![says("DONE"), ends()],
    });
    let mut scene = Scene::new();
    // The stop is seen before the session's first line: nothing is known of it yet.
    let outcome = scene.run_until(&agent, stop).await;
    assert!(matches!(outcome, Err(RunError::Stopped)));
    assert_eq!(scene.paper.state().next, NextStep::Begin);

    let agent = ScriptedAgent::new(|told| match told.resumed.as_deref() {
        None => vec![named("s1"), calls("c", "make parser"), AgentStep::Hangs],
        Some(_) => vec![says("DONE"), ends()],
    });
    let (sender, stop) = watch::channel(false);
    let mut scene = Scene::new();
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        sender.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(scene.run_until(&agent, stop), stopping);
    assert!(matches!(outcome, Err(RunError::Stopped)));
    let state = scene.paper.state().clone();
    assert_eq!(
        state.next,
        NextStep::Resume {
            session_id: "s1".to_owned()
        }
    );
    assert!(
        !state.ledger.facts.runs.is_empty(),
        "what was begun is on record"
    );
    let mut again = Scene::new();
    again.state = state;
    assert_eq!(again.run(&agent).await.unwrap(), "DONE");
    let heard = agent.received_prompts();
    assert_eq!(heard[1].resumed.as_deref(), Some("s1"));
    assert!(heard[1].prompt.starts_with(restart::resume_prompt()));
    assert_eq!(again.paper.restarts(), []);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_taken_up_again_is_spoken_for() {
    let gone = || AgentError::Exited {
        status: "exit status: 1".to_owned(),
        said: "No conversation found".to_owned(),
    };
    let agent = ScriptedAgent::new(move |told| match told.resumed {
        Some(_) => vec![AgentStep::Breaks(gone())],
        None => vec![says("DONE"), ends()],
    });
    let mut scene = Scene::new();
    scene.state.next = NextStep::Resume {
        session_id: "gone".to_owned(),
    };
    assert_eq!(scene.run(&agent).await.unwrap(), "DONE");
    assert_eq!(scene.paper.sources(), [CheckpointSource::Built]);
    assert_eq!(scene.paper.restarts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_fails_dies_hangs_or_idles_is_said_to() {
    let outcome = |steps: fn() -> Vec<AgentStep>| async move {
        let mut scene = Scene::new();
        scene.patience.silence = Duration::from_millis(50);
        let error = scene
            .run(&ScriptedAgent::new(move |_| steps()))
            .await
            .unwrap_err();
        error.to_string()
    };
    assert_eq!(
        outcome(|| vec![ends_with(TurnEnd::Failed("no key".to_owned()))]).await,
        "the agent failed: no key"
    );
    let died = outcome(|| {
        vec![AgentStep::Breaks(AgentError::Exited {
            status: "exit status: 3".to_owned(),
            said: "boom".to_owned(),
        })]
    });
    assert_eq!(
        died.await,
        "the agent ended with exit status: 3 in the middle of its work: boom"
    );
    assert_eq!(
        outcome(|| vec![AgentStep::Hangs]).await,
        "the agent has said nothing for 0 s"
    );
    assert_eq!(
        outcome(|| vec![says("I wait."), ends()]).await,
        "the agent ended 3 turns in a row without doing anything, and its task is not finished"
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_belong_is_told_and_borne() {
    let agent = ScriptedAgent::new(|_| {
        vec![
            AgentStep::Prints("npm warn"),
            AgentStep::Prints("{}"),
            AgentStep::Prints(r#"{"type":"text","text":"half"#),
            says("DONE"),
            ends(),
        ]
    });
    let mut scene = Scene::new();
    scene.run(&agent).await.unwrap();
    let noise = scene.paper.story.iter().filter(|line| {
        matches!(line, StoryLine::Words { words, .. } if matches!(words, AgentWords::Noise { .. }))
    });
    assert_eq!(noise.count(), 2);
    assert_eq!(scene.paper.lines[0], (1, "npm warn".to_owned()));
}

/// What a real agent reports: every request with each block of its answer, every turn, and the session.
#[tokio::test(start_paused = true)]
async fn totals_are_what_all_requests_cost_however_they_are_reported() {
    let request = |input, output, cached| used(input, output, cached, Some(Semantics::LastRequest));
    let agent = ScriptedAgent::new(move |told| {
        if is_request(told) {
            return vec![request(30, 40, 900), says(CHECKPOINT), ends()];
        }
        let work = vec![
            named("s"),
            request(100, 10, 0),
            request(100, 25, 0),
            calls("c", "make"),
            answers("c"),
        ];
        let rest = match told.session {
            1 => vec![request(50, 20, 900), calls("d", "make"), answers("d")],
            _ => vec![
                request(50, 20, 100),
                says("DONE"),
                used(150, 45, 100, Some(Semantics::PerTurnDelta)),
                used(170, 50, 100, Some(Semantics::Cumulative)),
                ends(),
            ],
        };
        work.into_iter().chain(rest).collect()
    });
    let mut scene = Scene::new();
    scene.run(&agent).await.unwrap();
    let usage = |input_tokens, output_tokens, cache_read_tokens| Usage {
        input_tokens,
        output_tokens,
        cache_read_tokens,
        ..Usage::default()
    };
    let sums: Vec<Usage> = scene
        .paper
        .steps()
        .filter_map(|step| match step {
            RunStep::ContextUsage { cumulative, .. } => Some(*cumulative),
            _ => None,
        })
        .collect();
    assert_eq!(
        sums,
        [
            usage(100, 10, 0),
            usage(100, 25, 0),
            usage(150, 45, 900),
            usage(100, 10, 0),
            usage(100, 25, 0),
            usage(150, 45, 100),
            usage(170, 50, 100),
        ]
    );
    let totals = scene.paper.steps().find_map(|step| match step {
        RunStep::RunFinished(totals) => Some(totals.counters.usage),
        _ => None,
    });
    assert_eq!(totals, Some(usage(180 + 170, 85 + 50, 1_800 + 100)));
}

#[tokio::test(start_paused = true)]
async fn every_line_has_its_time_session_and_trace_and_a_restart_its_tokens() {
    let work = |told: &ScriptedPrompt| match (is_request(told), told.session) {
        (true, _) => vec![says(CHECKPOINT), ends()],
        (_, 1) => vec![
            named("s1"),
            calls("c", "make"),
            answers("c"),
            used(950, 0, 0, None),
            ends(),
        ],
        _ => vec![named("s2"), says("DONE"), ends()],
    };
    let mut scene = Scene::new();
    scene.run(&ScriptedAgent::new(work)).await.unwrap();
    let story: Vec<serde_json::Value> = scene
        .paper
        .story
        .iter()
        .map(|line| serde_json::to_value(line).unwrap())
        .collect();
    let span = &story[0]["span_id"];
    for line in &story {
        assert!(line["ts"].as_str().unwrap().ends_with('Z'), "{line}");
        assert!(
            ["r1", "s1", "s2"]
                .map(Into::into)
                .contains(&line["session_id"]),
            "{line}"
        );
        // Words are the agent's, and no event.
        let is_event = line.get("severity").is_some();
        assert!(!is_event || line["span_id"] == *span, "{line}");
    }
    let last = |name: &str| story.iter().rfind(|line| line["event"] == name).unwrap();
    for name in ["checkpoint", "context_restart"] {
        let told = last(name);
        assert!(told["tokens_before"].as_u64() >= Some(950), "{told}");
        let after = told["tokens_after"].as_u64().unwrap();
        assert!((1..950).contains(&after), "{told}");
        assert_eq!(
            (&told["run_id"], &told["session_id"]),
            (&"r1".into(), &"s1".into())
        );
    }
    assert_eq!(last("run_finished")["severity"], "info");
    assert_eq!(last("compact.call_ended")["outcome"], "compacted");
    assert!(scene.paper.has("Session r1: context restart #1 at 9"));

    let mut scene = Scene::new().limited(Some(0), None);
    assert!(scene.run(&ScriptedAgent::new(work)).await.is_err());
    let failed = scene.paper.story.iter().find_map(|line| match line {
        StoryLine::Event(event) if event.kind.name() == "run_failed" => Some(event.clone()),
        _ => None,
    });
    let failed = serde_json::to_value(failed.unwrap()).unwrap();
    assert_eq!(failed["severity"], "error");
    assert!(
        failed["error"].as_str().unwrap().contains("0 restarts"),
        "{failed}"
    );
}

#[test]
fn a_state_is_read_back_whatever_version_wrote_it() {
    let state = Scene::new().state;
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<RunState>(&text).unwrap(), state);
    let old: RunState = serde_json::from_str(r#"{"run_id":"r","task":"t"}"#).unwrap();
    assert_eq!(old, RunState::new("r", "t"));
}

const KEY: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// An agent that fails may quote what it was given.
#[tokio::test(start_paused = true)]
async fn no_secret_is_in_the_reason_why_a_run_failed() {
    let failed = || ends_with(TurnEnd::Failed(format!("no access with {KEY}")));
    let died = || {
        AgentStep::Breaks(AgentError::Exited {
            status: "exit status: 3".to_owned(),
            said: format!("no access with {KEY}"),
        })
    };
    for end in [failed as fn() -> AgentStep, died] {
        let agent = ScriptedAgent::new(move |_| vec![end()]);
        let error = Scene::new().run(&agent).await.unwrap_err().to_string();
        assert!(error.contains("no access with"), "{error}");
        assert!(!error.contains(KEY), "{error}");
    }
}

/// DESIGN, archive and redaction: sessions and the state know a secret only by its placeholder, however
/// the checkpoint came about; the lines of the session are the original.
#[tokio::test(start_paused = true)]
async fn no_secret_of_a_session_reaches_the_next_one_or_the_state() {
    for answer in ["", "<checkpoint>\nRemaining: push with KEY\n</checkpoint>"] {
        let answer = answer.replace("KEY", KEY);
        let agent = ScriptedAgent::new(move |told| {
            if is_request(told) {
                return vec![says(&answer), ends()];
            }
            if told.session > 1 {
                return vec![says("DONE"), ends()];
            }
            let padding = "x".repeat(120);
            vec![
                says(&format!("I decided to push the parser with {KEY}.")),
                // What is told of the call ends in the middle of the key.
                calls("c", &format!("{padding} {KEY} git push")),
                said(
                    Role::Tool,
                    Block::ToolResult {
                        call: "c".to_owned(),
                        content: format!("error: {KEY} was refused for src/parser.rs"),
                        is_error: true,
                    },
                ),
                AgentStep::Prints("warning: ghp_0123456789abcdefghijABCDEFGHIJ012345 expires soon"),
                used(950, 0, 0, None),
                ends(),
            ]
        });
        let mut scene = Scene::new();
        assert_eq!(scene.run(&agent).await.unwrap(), "DONE");
        let heard = agent.received_prompts();
        let continued = heard.iter().find(|told| told.session == 2).unwrap();
        assert!(continued.prompt.contains("parser"), "{}", continued.prompt);
        assert!(!continued.prompt.contains("ghp_"), "{}", continued.prompt);
        for state in &scene.paper.kept {
            let state = serde_json::to_string(state).unwrap();
            assert!(!state.contains("ghp_"), "{state}");
        }
        for line in &scene.paper.story {
            let line = serde_json::to_string(line).unwrap();
            assert!(!line.contains("ghp_"), "{line}");
        }
        let lines = &scene.paper.lines;
        assert!(lines.iter().any(|(_, line)| line.contains(KEY)));
    }
}
