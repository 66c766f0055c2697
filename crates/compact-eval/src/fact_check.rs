//! Generated sessions against their answer keys: what is planted must come through a compaction, and
//! what is void must not.
//!
//! Live rules must stand in the view word for word; a rule that was replaced must not stand in the
//! summary; finished work must not stand among the open; facts of every kind and depth are looked
//! for by their needles.

use compact_core::engine::CompactionOutcome;
use compact_core::frame;
use compact_core::identity::EntryHash;
use compact_core::message::{Conversation, Entry};
use compact_core::token::{Chars4, TokenAccount, TokenCache, Tokens};
use compact_formats::{ParsedTranscript, TranscriptScope};
use compact_runtime::parallel::map_on_all_cores;
use compact_runtime::replay::entries_text;
use serde::Serialize;

use crate::compaction::{CompactionStep, EvalEngine, EvalError};
use crate::generate::{self, GeneratedSession, PlantedFact, PlantedKind};
use crate::interval::{Interval, SessionScores};

/// A kind of generated session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// An API is changed file by file.
    Coding,
    /// One customer, many orders.
    Support,
    /// Reading for a literature review.
    Research,
}

impl Scenario {
    /// Every scenario.
    pub const ALL: [Scenario; 3] = [Scenario::Coding, Scenario::Support, Scenario::Research];

    /// Returns the name of the scenario.
    pub fn as_str(self) -> &'static str {
        match self {
            Scenario::Coding => "coding",
            Scenario::Support => "support",
            Scenario::Research => "research",
        }
    }

    /// Returns a session of this kind. Seeds are moved away from those of the repository's examples.
    pub fn generate(self, seed: u64) -> GeneratedSession {
        match self {
            Scenario::Coding => generate::coding_session(1000 + seed, 80_000),
            Scenario::Support => generate::support_session(2000 + seed, 30_000),
            Scenario::Research => generate::research_session(3000 + seed, 50_000),
        }
    }
}

/// A check of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewCheck {
    /// A rule that holds stands in the view word for word.
    ConstraintVerbatim,
    /// A rule that was replaced does not stand in the summary.
    SupersededAbsent,
    /// Finished work does not stand among the open.
    DoneNotOpen,
    /// Open work stands in the view.
    OpenShown,
    /// A fact of some kind stands in the view.
    Fact(PlantedKind),
    /// A fact from some tenth of the session, 0 to 9, stands in the view.
    Tenth(u8),
}

/// One check on one kind of session at one budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckResult {
    /// The kind of session.
    pub arc: Scenario,
    /// The budget as a share of the history.
    pub budget: f64,
    /// The check that was made.
    pub check: ViewCheck,
    /// How often the check was made.
    pub count: usize,
    /// How often it was so.
    pub passed: Interval,
}

/// Runs every check on so many sessions of each kind.
pub fn run_checks(
    engine: &EvalEngine,
    seeds: u64,
    budgets: &[f64],
) -> Result<Vec<CheckResult>, EvalError> {
    let places: Vec<(Scenario, u64)> = Scenario::ALL
        .iter()
        .flat_map(|arc| (0..seeds).map(move |seed| (*arc, seed)))
        .collect();
    let asked = map_on_all_cores(&places, |(arc, seed)| {
        let session = arc.generate(*seed);
        let looks = budgets.iter().map(|budget| {
            let view = ViewText::from_session(&session, *budget, engine)?;
            Ok((*arc, *budget, view.check_session(&session)))
        });
        looks.collect::<Result<Vec<_>, EvalError>>()
    });
    let asked = asked.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(aggregate_checks(
        &asked.into_iter().flatten().collect::<Vec<_>>(),
    ))
}

/// The answers of one session.
type CheckAnswers = Vec<(ViewCheck, bool)>;

fn aggregate_checks(asked: &[(Scenario, f64, CheckAnswers)]) -> Vec<CheckResult> {
    let mut keys: Vec<(Scenario, u64, ViewCheck)> = Vec::new();
    for (arc, budget, answers) in asked {
        keys.extend(
            answers
                .iter()
                .map(|(check, _)| (*arc, budget.to_bits(), *check)),
        );
    }
    keys.sort_unstable();
    keys.dedup();
    let lines = keys.into_iter().filter_map(|(arc, bits, check)| {
        let budget = f64::from_bits(bits);
        let mine = asked.iter().filter(|(a, b, _)| *a == arc && *b == budget);
        let sample: SessionScores = mine
            .map(|(_, _, answers)| check_scores(answers, check))
            .collect();
        Some(CheckResult {
            arc,
            budget,
            check,
            count: sample.iter().map(Vec::len).sum(),
            passed: Interval::from_scores(&sample)?,
        })
    });
    lines.collect()
}

fn check_scores(answers: &CheckAnswers, check: ViewCheck) -> Vec<f64> {
    let mine = answers.iter().filter(|(asked, _)| *asked == check);
    mine.map(|(_, passed)| f64::from(u8::from(*passed)))
        .collect()
}

/// The texts of a view.
#[derive(Clone, Debug, Default)]
pub struct ViewText {
    /// All texts of the view.
    pub view: String,
    /// The body of its summary.
    pub summary: String,
}

impl ViewText {
    /// Returns the view of a session at a share of its history.
    pub fn from_session(
        session: &GeneratedSession,
        share: f64,
        engine: &EvalEngine,
    ) -> Result<ViewText, EvalError> {
        let parsed = parse_session(session)?;
        let history = history_tokens(&parsed.conversation);
        let step = CompactionStep {
            conversation: &parsed.conversation,
            rules: parsed.document.rules(),
            prior: None,
            budget: Tokens((history as f64 * share) as u64),
        };
        let shown = match engine.compact_step(&step)?.0 {
            CompactionOutcome::Unchanged => parsed.conversation.entries,
            CompactionOutcome::Compacted(made) => made.view.shown_entries(&parsed.conversation),
        };
        Ok(ViewText::from_entries(&shown))
    }

    /// Returns what these entries say.
    pub fn from_entries(entries: &[Entry]) -> ViewText {
        let texts = entries.iter().map(Entry::plain_text);
        let summaries = texts.filter_map(|text| frame::body(&text).map(str::to_owned));
        ViewText {
            view: entries_text(entries),
            summary: summaries.collect::<Vec<_>>().join("\n"),
        }
    }

    fn check_session(&self, session: &GeneratedSession) -> CheckAnswers {
        let facts = session.planted.facts.iter();
        let asked = facts.filter(|fact| !is_back_in_force(fact, session));
        asked.flat_map(|fact| self.check_fact(fact)).collect()
    }

    fn check_fact(&self, fact: &PlantedFact) -> CheckAnswers {
        let mut answers = Vec::new();
        match (fact.kind, fact.is_live()) {
            (PlantedKind::Constraint, true) => {
                answers.push((
                    ViewCheck::ConstraintVerbatim,
                    self.view.contains(&fact.text),
                ));
            }
            (PlantedKind::Constraint, false) => {
                let absent = !self.summary.contains(&fact.text);
                return vec![(ViewCheck::SupersededAbsent, absent)];
            }
            (PlantedKind::Done, _) => {
                answers.push((ViewCheck::DoneNotOpen, !self.shows_as_open(fact)))
            }
            (PlantedKind::Open, _) => answers.push((ViewCheck::OpenShown, fact.is_in(&self.view))),
            _ => {}
        }
        let there = fact.is_in(&self.view);
        let tenth = (fact.depth * 10.0).clamp(0.0, 9.0) as u8;
        answers.extend([
            (ViewCheck::Fact(fact.kind), there),
            (ViewCheck::Tenth(tenth), there),
        ]);
        answers
    }

    fn shows_as_open(&self, fact: &PlantedFact) -> bool {
        let open = open_part(&self.summary);
        let subject = fact.text.split(" (").next().unwrap_or(&fact.text);
        fact.is_in(&open) || open.contains(subject)
    }
}

/// Returns a replaced rule whose very words a later, live one says again: they ought to stand.
fn is_back_in_force(fact: &PlantedFact, session: &GeneratedSession) -> bool {
    let mut rules = session.planted.facts_of(PlantedKind::Constraint);
    !fact.is_live() && rules.any(|other| other.is_live() && other.text == fact.text)
}

/// Words of a heading under which open work stands.
const OPEN: [&str; 7] = [
    "open",
    "to do",
    "todo",
    "next step",
    "pending",
    "remain",
    "unfinished",
];

/// Returns the lines of a summary under headings of open work.
pub fn open_part(summary: &str) -> String {
    let mut is_open = false;
    let lines = summary.lines().filter(|line| {
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.to_lowercase();
            is_open = OPEN.iter().any(|word| heading.contains(word));
        }
        is_open
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a generated session as the engine reads it.
pub(crate) fn parse_session(session: &GeneratedSession) -> Result<ParsedTranscript, EvalError> {
    Ok(compact_formats::parse(
        session.text.clone(),
        None,
        TranscriptScope::Live,
    )?)
}

/// Returns the tokens that a budget bounds.
pub(crate) fn history_tokens(conversation: &Conversation) -> u64 {
    let hashes = EntryHash::from_entries(&conversation.entries);
    let cache = &mut TokenCache::default();
    TokenAccount::count_conversation(conversation, &hashes, &Chars4, cache)
        .history
        .0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "## Goals\n- ship it\n## Left open\n- call Ada\n## Done\n- call Bob";

    fn fact(kind: PlantedKind, text: &str, superseded: Option<&str>) -> PlantedFact {
        PlantedFact {
            id: "f-1".into(),
            kind,
            text: text.into(),
            needles: vec![text.into()],
            entry: 0,
            depth: 0.4,
            superseded_by: superseded.map(str::to_owned),
            fixed_by: None,
            reason: None,
        }
    }

    #[test]
    fn only_lines_under_open_headings_are_open() {
        assert_eq!(open_part(SUMMARY), "## Left open\n- call Ada");
    }

    #[test]
    fn each_kind_is_asked_its_own_question() {
        let look = ViewText {
            view: format!("{SUMMARY}\nnever on Mondays"),
            summary: SUMMARY.into(),
        };
        let ask = |kind, text, by| look.check_fact(&fact(kind, text, by));
        let place = |kind, there| [(ViewCheck::Fact(kind), there), (ViewCheck::Tenth(4), there)];
        let with = |first, kind, there| [vec![first], place(kind, there).to_vec()].concat();
        assert_eq!(
            ask(PlantedKind::Constraint, "never on Mondays", None),
            with(
                (ViewCheck::ConstraintVerbatim, true),
                PlantedKind::Constraint,
                true
            )
        );
        assert_eq!(
            ask(PlantedKind::Constraint, "ship it", Some("f-2")),
            [(ViewCheck::SupersededAbsent, false)]
        );
        assert_eq!(
            ask(PlantedKind::Done, "call Ada", None),
            with((ViewCheck::DoneNotOpen, false), PlantedKind::Done, true)
        );
        assert_eq!(
            ask(PlantedKind::Done, "call Bob", None),
            with((ViewCheck::DoneNotOpen, true), PlantedKind::Done, true)
        );
        assert_eq!(
            ask(PlantedKind::Open, "call Eve", None),
            with((ViewCheck::OpenShown, false), PlantedKind::Open, false)
        );
    }

    #[test]
    fn a_view_that_holds_everything_keeps_everything() {
        let session = Scenario::Support.generate(1);
        let engine = EvalEngine::new(Default::default()).unwrap();
        let look = ViewText::from_session(&session, 1.0, &engine).unwrap();
        let lost: Vec<_> = look
            .check_session(&session)
            .into_iter()
            .filter(|(_, ok)| !ok)
            .collect();
        assert_eq!(lost, []);
    }
}
