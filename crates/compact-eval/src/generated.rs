//! Generated sessions against their answer keys: what is planted must come through a compaction, and
//! what is void must not.
//!
//! Live rules must stand in the view word for word; a rule that was replaced must not stand in the
//! summary; finished work must not stand among the open; facts of every kind and depth are looked
//! for by their needles.

use compact_core::engine::Outcome;
use compact_core::identity::EntryHash;
use compact_core::message::{Block, Conversation, Entry};
use compact_core::summarize::frame;
use compact_core::token::{Account, Chars4, TokenCache, Tokens};
use compact_formats::{Parsed, Scope};
use serde::Serialize;

use crate::compaction::{Engine, EngineError, Step};
use crate::generate::{self, Fact, Kind, Session};
use crate::interval::{Interval, Sample};
use crate::parallel;

/// A kind of generated session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arc {
    /// An API is changed file by file.
    Coding,
    /// One customer, many orders.
    Support,
    /// A literature review.
    Research,
}

impl Arc {
    /// All.
    pub const ALL: [Arc; 3] = [Arc::Coding, Arc::Support, Arc::Research];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Arc::Coding => "coding",
            Arc::Support => "support",
            Arc::Research => "research",
        }
    }

    /// A session of this kind. Seeds are moved away from those of the repository's examples.
    pub fn session(self, seed: u64) -> Session {
        match self {
            Arc::Coding => generate::coding(1000 + seed, 80_000),
            Arc::Support => generate::support(2000 + seed, 30_000),
            Arc::Research => generate::research(3000 + seed, 50_000),
        }
    }
}

/// What is asked of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// A rule that holds stands in the view word for word.
    ConstraintVerbatim,
    /// A rule that was replaced does not stand in the summary.
    SupersededAbsent,
    /// Finished work does not stand among the open.
    DoneNotOpen,
    /// Open work stands in the view.
    OpenShown,
    /// A fact of some kind stands in the view.
    Fact(Kind),
    /// A fact from some tenth of the session, 0 to 9, stands in the view.
    Tenth(u8),
}

/// One check on one kind of session at one budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The kind of session.
    pub arc: Arc,
    /// The budget as a share of the history.
    pub budget: f64,
    /// What was asked.
    pub check: Check,
    /// How often.
    pub count: usize,
    /// How often it was so.
    pub passed: Interval,
}

/// Runs every check on so many sessions of each kind.
pub fn run(engine: &Engine, seeds: u64, budgets: &[f64]) -> Result<Vec<Line>, EngineError> {
    let places: Vec<(Arc, u64)> = Arc::ALL
        .iter()
        .flat_map(|arc| (0..seeds).map(move |seed| (*arc, seed)))
        .collect();
    let asked = parallel::map(&places, |(arc, seed)| {
        let session = arc.session(*seed);
        let looks = budgets.iter().map(|budget| {
            let view = Look::at(&session, *budget, engine)?;
            Ok((*arc, *budget, view.answers(&session)))
        });
        looks.collect::<Result<Vec<_>, EngineError>>()
    });
    let asked = asked.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(summed(&asked.into_iter().flatten().collect::<Vec<_>>()))
}

/// The answers of one session.
type Answers = Vec<(Check, bool)>;

fn summed(asked: &[(Arc, f64, Answers)]) -> Vec<Line> {
    let mut keys: Vec<(Arc, u64, Check)> = Vec::new();
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
        let sample: Sample = mine.map(|(_, _, answers)| shares(answers, check)).collect();
        Some(Line {
            arc,
            budget,
            check,
            count: sample.iter().map(Vec::len).sum(),
            passed: Interval::of(&sample)?,
        })
    });
    lines.collect()
}

fn shares(answers: &Answers, check: Check) -> Vec<f64> {
    let mine = answers.iter().filter(|(asked, _)| *asked == check);
    mine.map(|(_, passed)| f64::from(u8::from(*passed)))
        .collect()
}

/// What a view says.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// All its texts.
    pub view: String,
    /// The body of its summary.
    pub summary: String,
}

impl Look {
    /// The view of a session at a share of its history.
    pub fn at(session: &Session, share: f64, engine: &Engine) -> Result<Look, EngineError> {
        let parsed = read(session)?;
        let history = history(&parsed.conversation);
        let step = Step {
            conversation: &parsed.conversation,
            rules: parsed.document.rules(),
            prior: None,
            budget: Tokens((history as f64 * share) as u64),
        };
        let shown = match engine.step(&step)?.0 {
            Outcome::Unchanged => parsed.conversation.entries,
            Outcome::Compacted(made) => made.view.entries(&parsed.conversation),
        };
        Ok(Look::of(&shown))
    }

    /// What these entries say.
    pub fn of(entries: &[Entry]) -> Look {
        let texts = entries.iter().map(Entry::plain_text);
        let summaries = texts.filter_map(|text| frame::body(&text).map(str::to_owned));
        Look {
            view: text_of(entries),
            summary: summaries.collect::<Vec<_>>().join("\n"),
        }
    }

    fn answers(&self, session: &Session) -> Answers {
        let facts = session.planted.facts.iter();
        let asked = facts.filter(|fact| !is_back_in_force(fact, session));
        asked.flat_map(|fact| self.answer(fact)).collect()
    }

    fn answer(&self, fact: &Fact) -> Answers {
        let mut answers = Vec::new();
        match (fact.kind, fact.is_live()) {
            (Kind::Constraint, true) => {
                answers.push((Check::ConstraintVerbatim, self.view.contains(&fact.text)));
            }
            (Kind::Constraint, false) => {
                let absent = !self.summary.contains(&fact.text);
                return vec![(Check::SupersededAbsent, absent)];
            }
            (Kind::Done, _) => answers.push((Check::DoneNotOpen, !self.shows_as_open(fact))),
            (Kind::Open, _) => answers.push((Check::OpenShown, fact.is_in(&self.view))),
            _ => {}
        }
        let there = fact.is_in(&self.view);
        let tenth = (fact.depth * 10.0).clamp(0.0, 9.0) as u8;
        answers.extend([
            (Check::Fact(fact.kind), there),
            (Check::Tenth(tenth), there),
        ]);
        answers
    }

    fn shows_as_open(&self, fact: &Fact) -> bool {
        let open = open_part(&self.summary);
        let subject = fact.text.split(" (").next().unwrap_or(&fact.text);
        fact.is_in(&open) || open.contains(subject)
    }
}

/// A replaced rule whose very words a later, live one says again: they ought to stand.
fn is_back_in_force(fact: &Fact, session: &Session) -> bool {
    let mut rules = session.planted.of(Kind::Constraint);
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

/// The lines of a summary under headings of open work.
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

/// A generated session as the engine reads it.
pub(crate) fn read(session: &Session) -> Result<Parsed, EngineError> {
    Ok(compact_formats::parse(
        session.text.clone(),
        None,
        Scope::Live,
    )?)
}

/// The tokens that a budget bounds.
pub(crate) fn history(conversation: &Conversation) -> u64 {
    let hashes = EntryHash::all(&conversation.entries);
    let cache = &mut TokenCache::default();
    Account::of(conversation, &hashes, &Chars4, cache).history.0
}

/// Every text of some entries, calls and results included, reasoning left out.
pub(crate) fn text_of(entries: &[Entry]) -> String {
    let blocks = entries.iter().flat_map(|entry| &entry.blocks);
    let parts = blocks
        .filter(|block| !matches!(block, Block::Reasoning { .. }))
        .flat_map(Block::text_parts)
        .filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "## Goals\n- ship it\n## Left open\n- call Ada\n## Done\n- call Bob";

    fn fact(kind: Kind, text: &str, superseded: Option<&str>) -> Fact {
        Fact {
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
        let look = Look {
            view: format!("{SUMMARY}\nnever on Mondays"),
            summary: SUMMARY.into(),
        };
        let ask = |kind, text, by| look.answer(&fact(kind, text, by));
        let place = |kind, there| [(Check::Fact(kind), there), (Check::Tenth(4), there)];
        let with = |first, kind, there| [vec![first], place(kind, there).to_vec()].concat();
        assert_eq!(
            ask(Kind::Constraint, "never on Mondays", None),
            with((Check::ConstraintVerbatim, true), Kind::Constraint, true)
        );
        assert_eq!(
            ask(Kind::Constraint, "ship it", Some("f-2")),
            [(Check::SupersededAbsent, false)]
        );
        assert_eq!(
            ask(Kind::Done, "call Ada", None),
            with((Check::DoneNotOpen, false), Kind::Done, true)
        );
        assert_eq!(
            ask(Kind::Done, "call Bob", None),
            with((Check::DoneNotOpen, true), Kind::Done, true)
        );
        assert_eq!(
            ask(Kind::Open, "call Eve", None),
            with((Check::OpenShown, false), Kind::Open, false)
        );
    }

    #[test]
    fn a_view_that_holds_everything_keeps_everything() {
        let session = Arc::Support.session(1);
        let engine = Engine::new(Default::default()).unwrap();
        let look = Look::at(&session, 1.0, &engine).unwrap();
        let lost: Vec<_> = look
            .answers(&session)
            .into_iter()
            .filter(|(_, ok)| !ok)
            .collect();
        assert_eq!(lost, []);
    }
}
