//! From ledger to text: the deterministic summarizer.
//!
//! The user's goals and live rules come first, verbatim; then what is open; then what was said and done, in
//! order; then the files. Everything told is whole: a message, a sentence, a line, a command with its
//! outcome. Nothing is paraphrased, so nothing is invented.

mod change;
mod checkpoint;
mod compose;
mod diff_table;
mod fact_line;
mod file_state;
mod finish;
mod form;
mod layout;
mod name_line;
mod piece;
pub(crate) mod prose;
mod quotation;
mod release;
mod revoke;
mod root;
mod select;
mod series;
mod speech;
mod template;
mod trace;
mod unused_names;
mod value;
pub(crate) mod weigh;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::{Fact, Ledger, clip, has_sentence, scan_names};
use crate::token::{Estimator, EstimatorExt, Tokens, Units};
use compose::SummaryMaterial;
use fact_line::FactLine;
use revoke::RevokedRules;
use root::RootDirectory;
use template::{SectionTopic, StyleTemplate, SummarySize};
use weigh::WeighedName;

pub use checkpoint::render_checkpoint;
pub(crate) use layout::{FENCE, FENCE_HEAD, as_data, escape_line};
pub(crate) use name_line::{NameLines, is_argument_name};
pub(crate) use piece::split_label;
pub(crate) use trace::is_round_number;
pub use unused_names::drop_unused_names;

/// A named way to tell the ledger.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Goals, constraints, decisions, state, open actions.
    #[default]
    TaskState,
    /// A short bullet brief with key references.
    Brief,
    /// Decisions in order, each with its reason.
    DecisionLog,
    /// What was done, step by step.
    StepLedger,
    /// Requirements and what became of them.
    RequirementsLedger,
    /// Files and what changed in them.
    CodeDelta,
    /// The most telling sentences, as they were said.
    ExtractiveBrief,
}

impl Style {
    /// Its name in settings, receipts and questions to a summarizer.
    pub fn as_str(self) -> &'static str {
        match self {
            Style::TaskState => "task_state",
            Style::Brief => "brief",
            Style::DecisionLog => "decision_log",
            Style::StepLedger => "step_ledger",
            Style::RequirementsLedger => "requirements_ledger",
            Style::CodeDelta => "code_delta",
            Style::ExtractiveBrief => "extractive_brief",
        }
    }
}

/// What the summarizer is asked for.
pub struct RenderRequest<'a> {
    /// The facts.
    pub ledger: &'a Ledger,
    /// Its names in the order of their worth.
    pub ranking: &'a NameRanking<'a>,
    /// How to tell them.
    pub style: Style,
    /// The most that the body may cost.
    pub budget: Units,
    /// How it is counted.
    pub estimator: &'a dyn Estimator,
    /// What it stands beside.
    pub company: SummaryNeighbours,
    /// What stands elsewhere in the view: not worth paying for again.
    pub visible: &'a VisibleTexts<'a>,
    /// A model's words that stand beside the body: the names in them need not be listed again.
    pub prose: &'a str,
}

/// What a summary stands beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryNeighbours {
    /// Little else: it has to show the names too.
    Alone,
    /// As many turns as the window holds.
    Turns,
    /// A summary of the agent's own, which may have left out any rule: all of them come first.
    AgentSummary,
}

/// What a name of a ledger weighs, by its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameWeight {
    nth: u32,
    weight: f64,
}

/// The names of a ledger, the most needed first; weighed once for rendering and for the proof.
pub struct NameRanking<'l>(pub(crate) Vec<WeighedName<'l>>);

impl<'l> NameRanking<'l> {
    /// Weighs the ledger's names as this style does; a person's note raises what it asks for.
    pub fn from_ledger(ledger: &'l Ledger, style: Style, note: Option<&str>) -> Self {
        let mut groups = weigh::weigh_names(ledger, template::style_template(style));
        if let Some(note) = note {
            weigh::favour(&mut groups, note);
        }
        NameRanking(groups)
    }

    /// Ranks the names of a ledger that were weighed before.
    pub(crate) fn from_weights(ledger: &'l Ledger, weights: &[NameWeight]) -> Self {
        let weighed = |known: &NameWeight| {
            let entity = ledger.entities.get(known.nth as usize)?;
            Some(WeighedName::new(known.nth, entity, known.weight))
        };
        NameRanking(weights.iter().filter_map(weighed).collect())
    }

    /// What its names weigh, in its order.
    pub(crate) fn weights(&self) -> Vec<NameWeight> {
        let weight = |name: &WeighedName<'_>| NameWeight {
            nth: name.nth,
            weight: name.weight,
        };
        self.0.iter().map(weight).collect()
    }

    /// The names by their indices in the ledger.
    fn indices(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|group| group.nth as usize)
    }
}

/// A rendered summary body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryBody {
    /// The text, without the `<COMPACT-SUMMARY>` frame.
    pub text: String,
    /// What it costs.
    pub cost: Units,
}

/// Characters below which a name is not worth choosing for: bounds the work by the budget.
const CHARS_PER_NAME: f64 = 12.0;

/// Characters that a topic may have in a small summary: one line, and of the user's rules as many as
/// most sessions have.
const LINE: f64 = 160.0;
const RULES: f64 = 800.0;
/// A summary of fewer characters is little more than the user's words.
const SMALL_SUMMARY: f64 = 2600.0;
/// A goal is hardly more than a rule of half its length and so many characters.
const SHORT_GOAL: usize = 120;
/// Characters by which a message is found among the texts that stand whole in the view: routine messages differ late.
const OPENING: usize = 400;
/// And among those that were cut, of which little may be left.
const CUT_OPENING: usize = 40;

/// Renders the ledger within the budget.
pub fn render_body(request: &RenderRequest<'_>) -> SummaryBody {
    let chars = chars(request);
    let size = match request.style == Style::TaskState && chars < SMALL_SUMMARY {
        true => SummarySize::Small,
        false => SummarySize::Full,
    };
    let template = template::sized_template(request.style, size);
    let words = ViewWords::from_visible(request.visible);
    let names = request.visible.whole_names();
    let revoked = RevokedRules::from_facts(&request.ledger.facts);
    let root = RootDirectory::from_ledger(request.ledger);
    let ranked = request.ranking.0.iter();
    let unseen = ranked.filter(|g| g.weight > 0.0 && !names.contains(g.key));
    let mut lines = fact_line::fact_lines(request.ledger, &revoked, &root, &|text| {
        words.has_message(text)
    });
    lines.extend(fact_line::order_line(
        &request.ledger.facts,
        &request.visible.early,
    ));
    let lines = lines_within_shares(lines, template, &words, chars, request.company);
    let groups = unseen.take((chars / CHARS_PER_NAME) as usize + 8);
    let groups: Vec<WeighedName<'_>> = groups.copied().collect();
    let material = SummaryMaterial {
        request,
        template,
        size,
        root: &root,
        revoked: &revoked,
        words: &words,
        groups: &groups,
        lines,
    };
    material.compose(chars)
}

/// A summary of more tokens is not the smallest, however many rules there are.
const LEAST_BODY: Tokens = Tokens(1_024);

/// What a body costs that tells the rules that hold, and where the work stands. A small summary gives each half of
/// itself at most.
pub(crate) fn least_body_cost(ledger: &Ledger, estimator: &dyn Estimator) -> Units {
    let lines = fact_line::least_lines(ledger);
    let text: String = lines
        .iter()
        .map(|line| format!("- {}\n", line.text))
        .collect();
    let cost = Units(estimator.count_units(&text).0 * 2);
    cost.min(estimator.to_units(LEAST_BODY))
}

/// A sentence of the user's or the host's that rules, and whether it still holds.
pub(crate) struct RuleStatus<'l> {
    pub fact: &'l Fact,
    pub holds: bool,
}

/// What the rules are: releases before the rules that they are about, then those that hold in order,
/// then those that a later word of the user took back.
pub(crate) fn rule_statuses(ledger: &Ledger) -> Vec<RuleStatus<'_>> {
    let revoked = RevokedRules::from_facts(&ledger.facts);
    let releases = release::rule_releases(&ledger.facts, &revoked);
    let rules = ledger.facts.rules.iter();
    let is_release = |fact: &Fact| releases.iter().any(|release| release.fact == fact);
    let live = rules.filter(|fact| revoked.is_live(fact) && !is_release(fact));
    let holding = releases.iter().map(|release| release.fact).chain(live);
    let holding = holding.map(|fact| RuleStatus { fact, holds: true });
    let fallen = revoked
        .facts()
        .map(|fact| RuleStatus { fact, holds: false });
    holding.chain(fallen).collect()
}

/// Whether a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleStanding {
    /// It does.
    Holds,
    /// A later word of the user took it back.
    Revoked,
    /// It was only quoted, and never ruled.
    Quoted,
}

/// Returns how each rule of a ledger stands, in the ledger's order.
pub fn rule_standings(ledger: &Ledger) -> Vec<RuleStanding> {
    let revoked = RevokedRules::from_facts(&ledger.facts);
    let standing = |rule: &Fact| match revoked.is_live(rule) {
        true => RuleStanding::Holds,
        false if revoked.facts().any(|gone| gone == rule) => RuleStanding::Revoked,
        false => RuleStanding::Quoted,
    };
    ledger.facts.rules.iter().map(standing).collect()
}

/// The messages of the user of which no word holds any more.
pub(crate) fn fallen_messages(ledger: &Ledger) -> HashSet<u64> {
    let revoked = RevokedRules::from_facts(&ledger.facts);
    let requests = ledger.facts.requests.iter();
    let fallen = requests.filter(|message| revoked.takes_all_of(message));
    fallen.map(|message| u64::from(message.ordinal)).collect()
}

/// The texts of a view beside its summary.
#[derive(Clone, Debug, Default)]
pub struct VisibleTexts<'v> {
    /// Those that stand there whole.
    pub whole: Vec<&'v str>,
    /// What is left of those that were cut: enough to see a name, not to see what it means.
    pub cut: Vec<String>,
    /// Those as they were before.
    pub cut_from: Vec<&'v str>,
    /// The ordinals of entries that stand there whole.
    pub entries: HashSet<u64>,
    /// The ordinals of messages that stand behind the summary although it tells what came after them.
    pub early: Vec<u64>,
}

impl VisibleTexts<'_> {
    /// The names in texts that stand there whole.
    fn whole_names(&self) -> HashSet<&str, foldhash::fast::FixedState> {
        let mut names = HashSet::default();
        for text in &self.whole {
            scan_names(text, &mut |kind, _, name| {
                names.insert(name);
                names.insert(weigh::shown_key(kind, name));
            });
        }
        names
    }
}

/// The words of a view, to look for quotations in.
struct ViewWords {
    whole: String,
    cut: String,
    /// The whole texts with their line breaks, which end a sentence too.
    unfolded: String,
    /// How the whole texts begin, and those that were cut.
    openings: HashSet<String, foldhash::fast::FixedState>,
    cut_openings: HashSet<String, foldhash::fast::FixedState>,
}

impl ViewWords {
    fn from_visible(visible: &VisibleTexts<'_>) -> Self {
        let joined = |texts: &mut dyn Iterator<Item = &str>| {
            let texts = texts.map(|text| clip(text, usize::MAX - 1));
            texts.collect::<Vec<_>>().join("\n")
        };
        let whole = visible.whole.iter().copied();
        let cut_from = visible.cut_from.iter();
        ViewWords {
            whole: joined(&mut visible.whole.iter().copied()),
            cut: joined(&mut visible.cut.iter().map(String::as_str)),
            unfolded: visible.whole.join("\n"),
            openings: whole.map(|t| clip(t, OPENING)).collect(),
            cut_openings: cut_from.map(|t| clip(t, CUT_OPENING)).collect(),
        }
    }

    /// Whether a message stands there, whole or with its head.
    fn has_message(&self, text: &str) -> bool {
        self.openings.contains(&clip(text, OPENING))
            || self.cut_openings.contains(&clip(text, CUT_OPENING))
    }

    /// Whether a reply stands there whole.
    fn has_reply(&self, text: &str) -> bool {
        self.openings.contains(&clip(text, OPENING))
    }

    /// Whether a reply that was cut still shows a passage.
    fn has_passage(&self, passage: &str) -> bool {
        self.cut.contains(&clip(passage, usize::MAX - 1))
    }

    /// Whether what a line quotes stands there: a rule with all its words, since the last one may be all
    /// that tells it from another; a request by its opening.
    fn has_quotation(&self, line: &FactLine) -> bool {
        let quotation = line.text.trim_matches('"');
        if line.topic == SectionTopic::Rules {
            let rule = quotation.trim_end_matches('…');
            let texts = [&self.whole, &self.cut, &self.unfolded];
            return texts.iter().any(|text| has_sentence(text, rule));
        }
        self.has_message(quotation)
    }
}

/// The characters that the budget holds, going by what this ledger's text costs.
fn chars(request: &RenderRequest<'_>) -> f64 {
    let sample: String = request
        .ledger
        .excerpts
        .iter()
        .rev()
        .take(64)
        .map(|e| &*e.text)
        .collect();
    let units = request.estimator.count_units(&sample).0;
    let per_unit = match units {
        0 => 1.0,
        n => sample.chars().count() as f64 / n as f64,
    };
    request.budget.0 as f64 * per_unit
}

/// The lines that their topics' shares can pay, in the order given.
fn lines_within_shares(
    lines: Vec<FactLine>,
    template: &StyleTemplate,
    words: &ViewWords,
    chars: f64,
    company: SummaryNeighbours,
) -> Vec<FactLine> {
    let mut spent: std::collections::BTreeMap<SectionTopic, f64> = Default::default();
    let mut whole = HashSet::new();
    let released: HashSet<u32> = lines.iter().filter_map(|l| l.about).collect();
    let goals = lines.iter().filter(|l| l.topic == SectionTopic::Goals);
    let goals: Vec<(u32, String)> = goals.map(|l| (l.ordinal, l.text.clone())).collect();
    // A rule that is most of a goal stands there.
    let is_in_goal = |l: &FactLine| {
        let rule = l.text.trim_matches('"');
        let mut goals = goals.iter().filter(|(ordinal, _)| *ordinal == l.ordinal);
        l.topic == SectionTopic::Rules
            && goals
                .any(|(_, goal)| goal.contains(rule) && goal.len() <= 2 * rule.len() + SHORT_GOAL)
    };
    lines
        .into_iter()
        .filter(|l| {
            template.rank(l.topic).is_some() && !(l.topic.may_instruct() && words.has_quotation(l))
        })
        .filter(|l| {
            let spent = spent.entry(l.topic).or_default();
            *spent += l.text.chars().count() as f64 + 10.0;
            let least = match l.topic {
                SectionTopic::Rules | SectionTopic::Goals => RULES.min(chars * 0.5),
                _ => LINE.min(chars / 8.0),
            };
            *spent <= least.max(chars * fact_line::topic_share(l.topic, template, company))
        })
        // What stands as a goal need not stand as a rule too, unless something releases it.
        .filter(|l| {
            let is_told = is_in_goal(l) || l.whole && !whole.insert(l.ordinal);
            !is_told || released.contains(&l.ordinal)
        })
        .collect()
}
