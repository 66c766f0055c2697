//! From what could be told to what is told: orders first, then the best bargains among lines and
//! stretches of the record, a short list of names, and as much of it as fits.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::fact_line::{self, FactLine};
use super::form::NameForms;
use super::layout::{self, SummaryPick};
use super::passage::QuotablePassage;
use super::root::RootDirectory;
use super::select::{ChosenItem, ChosenStretch, GreedyChoice, LineOffer, ShownLevel};
use super::template::{SectionTopic, StyleTemplate};
use super::weigh::{self, WeighedName};
use super::{RenderRequest, SummaryBody, SummaryNeighbours};
use crate::ledger::scan_names;

/// Everything that a summary may be made of.
pub(super) struct SummaryMaterial<'m> {
    pub request: &'m RenderRequest<'m>,
    pub template: &'m StyleTemplate,
    pub root: &'m RootDirectory<'m>,
    /// Names, the heaviest first.
    pub groups: &'m [WeighedName<'m>],
    pub passages: &'m [QuotablePassage<'m>],
    /// The user's goals and rules: told whatever else is.
    pub orders: Vec<FactLine>,
    /// Lines that have to earn their place.
    pub offered: Vec<FactLine>,
}

/// The share of the characters that bare names may take.
const NAMES: f64 = 0.095;
/// Stretches that touch cost less together than alone, and some texts cost less than others: so much
/// more is chosen than should fit, and the least of it is cut.
const OVERLAP: f64 = 1.1;

impl SummaryMaterial<'_> {
    /// The summary of about `chars` characters that the budget holds.
    pub(super) fn compose(&self, chars: f64) -> SummaryBody {
        let ordered: f64 = self.orders.iter().map(line_cost).sum();
        let room = (chars * (1.0 - NAMES) - ordered).max(0.0);
        let mut choice = self.choice();
        let chosen = choice.spend(room * OVERLAP);
        let names = bare(self.groups, choice.shown(), chars * NAMES);
        self.write(&chosen, names)
    }

    fn choice(&self) -> GreedyChoice<'_, '_> {
        let forms = NameForms::from_names(self.groups);
        let shown = shown_by(&self.orders, self.request, &forms, self.groups.len());
        let company = self.request.company;
        let offers = self.offered.iter().map(|l| offer(l, &forms, company));
        let offers = offers.collect();
        GreedyChoice::new(self.passages, offers, self.groups, &forms, shown)
    }

    /// What was chosen as a text that fits.
    fn write(&self, chosen: &[ChosenItem], names: Vec<&str>) -> SummaryBody {
        let picks: Vec<SummaryPick<'_>> = self
            .orders
            .iter()
            .map(SummaryPick::Line)
            .chain(names.into_iter().map(SummaryPick::Name))
            .chain(chosen_lines(chosen, &self.offered).map(SummaryPick::Line))
            .chain(chosen_stretches(chosen, &self.offered, self.passages).map(SummaryPick::Span))
            .collect();
        let write = |n: usize| {
            let picks = picks.get(..n).unwrap_or_default();
            layout::write_summary(self.template, self.root.name(), self.passages, picks)
        };
        let sizes: Vec<usize> = picks.iter().map(SummaryPick::size).collect();
        longest_fitting(self.request, write, &sizes)
    }
}

/// Characters that a line costs, with its bullet and provenance.
fn line_cost(line: &FactLine) -> f64 {
    line.text.chars().count() as f64 + 10.0
}

/// The chosen lines, in the order in which their topic tells them.
fn chosen_lines<'p>(
    chosen: &[ChosenItem],
    offered: &'p [FactLine],
) -> impl Iterator<Item = &'p FactLine> {
    let mut taken: Vec<usize> = chosen
        .iter()
        .filter_map(|c| match c {
            ChosenItem::Offer(nth) => Some(*nth),
            ChosenItem::Span(_) => None,
        })
        .collect();
    taken.sort_unstable();
    taken.into_iter().filter_map(|nth| offered.get(nth))
}

/// The chosen stretches, but for those that a chosen line says already.
fn chosen_stretches<'p>(
    chosen: &'p [ChosenItem],
    offered: &'p [FactLine],
    passages: &'p [QuotablePassage<'_>],
) -> impl Iterator<Item = ChosenStretch> + 'p {
    let told: HashMap<u32, Vec<&str>, foldhash::fast::FixedState> = chosen_lines(chosen, offered)
        .fold(HashMap::default(), |mut told, line| {
            told.entry(line.ordinal).or_default().push(&*line.text);
            told
        });
    chosen.iter().filter_map(move |c| match c {
        ChosenItem::Offer(_) => None,
        ChosenItem::Span(span) => {
            let passage = passages.get(span.passage)?;
            let text = passage.text.get(span.from as usize..span.to as usize)?;
            let lines = told.get(&passage.excerpt.ordinal);
            let repeats = lines.is_some_and(|l| l.iter().any(|l| l.contains(text.trim())));
            (!repeats).then_some(*span)
        }
    })
}

/// A line as something to choose: worth something for what it tells, and for the names in it.
fn offer(line: &FactLine, forms: &NameForms<'_>, company: SummaryNeighbours) -> LineOffer {
    let shows = match line.topic {
        SectionTopic::Files | SectionTopic::Code | SectionTopic::Steps | SectionTopic::Plan => {
            ShownLevel::Bare
        }
        _ => ShownLevel::InContext,
    };
    LineOffer {
        worth: fact_line::topic_worth(line.topic, company),
        cost: line_cost(line),
        shows: named_in(&line.text, forms, shows),
    }
}

/// The groups that a text shows, and how well.
fn named_in(text: &str, forms: &NameForms<'_>, shows: ShownLevel) -> Vec<(u32, ShownLevel)> {
    let mut groups = Vec::new();
    scan_names(text, &mut |kind, _, name| {
        let within = forms.groups_within(weigh::shown_key(kind, name), name);
        groups.extend(within.map(|group| (group, shows.by_another_form())));
        groups.extend(
            forms
                .groups_named(kind, name)
                .iter()
                .map(|group| (*group, shows)),
        );
    });
    groups.sort_unstable_by_key(|(group, shows)| (*group, Reverse(*shows)));
    groups.dedup_by_key(|(group, _)| *group);
    groups
}

/// The user's own words show the names in them in context; a text that was cut barely, and prose too,
/// since it may have got the context wrong.
fn shown_by(
    lines: &[FactLine],
    request: &RenderRequest<'_>,
    forms: &NameForms<'_>,
    groups: usize,
) -> Vec<ShownLevel> {
    let mut shown = vec![ShownLevel::No; groups];
    let texts = request.visible.cut.iter().map(String::as_str);
    let texts = texts.chain([request.prose]);
    let barely = texts.flat_map(|text| named_in(text, forms, ShownLevel::Bare));
    let quoted = lines.iter();
    let quoted = quoted.flat_map(|l| offer(l, forms, request.company).shows);
    for (group, shows) in barely.chain(quoted) {
        if let Some(state) = shown.get_mut(group as usize) {
            *state = shows.max(*state);
        }
    }
    shown
}

/// The heaviest names that nothing shows yet; a name within another is shown by it.
fn bare<'g>(groups: &[WeighedName<'g>], shown: &[ShownLevel], chars: f64) -> Vec<&'g str> {
    let cost = |name: &str| name.chars().count() as f64 + 2.0;
    let missing = groups
        .iter()
        .zip(shown)
        .filter(|(_, shown)| **shown == ShownLevel::No);
    let mut told: HashSet<&str, foldhash::fast::FixedState> = HashSet::default();
    let mut left = chars;
    let mut names = Vec::new();
    for (group, _) in missing {
        if left < cost(group.key) || told.contains(group.key) {
            continue;
        }
        left -= cost(group.key);
        scan_names(group.key, &mut |_, _, part| {
            told.insert(part);
        });
        names.push(group.key);
    }
    names
}

/// Close enough to the budget to stop looking: one part in so many.
const NEAR: u64 = 100;
/// One line in so many tells what the characters of a text cost.
const SAMPLE: usize = 8;
/// Texts that are counted before the best of them has to do.
const TRIES: usize = 4;

/// A long prefix of picks whose text fits. Counting is dear, so the first guess goes by what a sample
/// of the whole costs, and every further one by what the last text did.
fn longest_fitting(
    request: &RenderRequest<'_>,
    write: impl Fn(usize) -> String,
    sizes: &[usize],
) -> SummaryBody {
    let budget = request.budget;
    let all = write(sizes.len());
    let mut cost = cost_by_sample(request, &all);
    let mut guess = sizes.len();
    let (mut low, mut high) = (0, sizes.len());
    let mut best = SummaryBody::default();
    for tried in 0.. {
        if low >= high || (tried >= TRIES && low > 0) {
            break;
        }
        guess = shortened(sizes, guess, budget.0 as f64 / cost).clamp(low + 1, high);
        let text = write(guess);
        let counted = request.estimator.count_units(&text);
        cost = counted.0 as f64;
        if counted > budget {
            high = guess - 1;
            continue;
        }
        let near = (budget - counted).0 <= budget.0 / NEAR;
        best = SummaryBody {
            text,
            cost: counted,
        };
        low = guess;
        if near {
            break;
        }
    }
    best
}

/// About what a text costs.
fn cost_by_sample(request: &RenderRequest<'_>, text: &str) -> f64 {
    let sample: Vec<&str> = text.lines().step_by(SAMPLE).collect();
    let sample = sample.join("\n");
    let cost = request.estimator.count_units(&sample).0 as f64;
    (cost * text.len() as f64 / sample.len().max(1) as f64).max(1.0)
}

/// How many picks make up this part of what the first `guess` make up, and a little less.
fn shortened(sizes: &[usize], guess: usize, part: f64) -> usize {
    let now: usize = sizes.iter().take(guess).sum();
    let room = now as f64 * part * (1.0 - 0.4 / NEAR as f64);
    let sums = sizes.iter().scan(0.0, |sum, size| {
        *sum += *size as f64;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= room).count()
}
