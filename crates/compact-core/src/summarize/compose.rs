//! From what could be told to what is told: orders first, then the best bargains among lines and
//! stretches of the record, a short list of names, and as much of it as fits.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::form::Forms;
use super::layout::{self, Pick};
use super::passage::Passage;
use super::root::Root;
use super::select::{Choice, Chosen, Offer, Shown, Span};
use super::tell::{self, Line};
use super::template::{Template, Topic};
use super::weigh::{self, Group};
use super::{Company, Request, Summary};
use crate::ledger::scan;

/// Everything that a summary may be made of.
pub(super) struct Material<'m> {
    pub request: &'m Request<'m>,
    pub template: &'m Template,
    pub root: &'m Root<'m>,
    /// Names, the heaviest first.
    pub groups: &'m [Group<'m>],
    pub passages: &'m [Passage<'m>],
    /// The user's goals and rules: told whatever else is.
    pub orders: Vec<Line>,
    /// Lines that have to earn their place.
    pub offered: Vec<Line>,
}

/// The share of the characters that bare names may take.
const NAMES: f64 = 0.095;
/// Stretches that touch cost less together than alone, and some texts cost less than others: so much
/// more is chosen than should fit, and the least of it is cut.
const OVERLAP: f64 = 1.1;

impl Material<'_> {
    /// The summary of about `chars` characters that the budget holds.
    pub(super) fn compose(&self, chars: f64) -> Summary {
        let ordered: f64 = self.orders.iter().map(cost).sum();
        let room = (chars * (1.0 - NAMES) - ordered).max(0.0);
        let mut choice = self.choice();
        let chosen = choice.spend(room * OVERLAP);
        let names = bare(self.groups, choice.shown(), chars * NAMES);
        self.write(&chosen, names)
    }

    fn choice(&self) -> Choice<'_, '_> {
        let forms = Forms::of(self.groups);
        let shown = shown_by(&self.orders, self.request, &forms, self.groups.len());
        let company = self.request.company;
        let offers = self.offered.iter().map(|l| offer(l, &forms, company));
        let offers = offers.collect();
        Choice::new(self.passages, offers, self.groups, &forms, shown)
    }

    /// What was chosen as a text that fits.
    fn write(&self, chosen: &[Chosen], names: Vec<&str>) -> Summary {
        let picks: Vec<Pick<'_>> = self
            .orders
            .iter()
            .map(Pick::Line)
            .chain(names.into_iter().map(Pick::Name))
            .chain(lines(chosen, &self.offered).map(Pick::Line))
            .chain(spans(chosen, &self.offered, self.passages).map(Pick::Span))
            .collect();
        let write = |n: usize| {
            let picks = picks.get(..n).unwrap_or_default();
            layout::write(self.template, self.root.name(), self.passages, picks)
        };
        let sizes: Vec<usize> = picks.iter().map(Pick::size).collect();
        fit(self.request, write, &sizes)
    }
}

/// Characters that a line costs, with its bullet and provenance.
fn cost(line: &Line) -> f64 {
    line.text.chars().count() as f64 + 10.0
}

/// The chosen lines, in the order in which their topic tells them.
fn lines<'p>(chosen: &[Chosen], offered: &'p [Line]) -> impl Iterator<Item = &'p Line> {
    let mut taken: Vec<usize> = chosen
        .iter()
        .filter_map(|c| match c {
            Chosen::Offer(nth) => Some(*nth),
            Chosen::Span(_) => None,
        })
        .collect();
    taken.sort_unstable();
    taken.into_iter().filter_map(|nth| offered.get(nth))
}

/// The chosen stretches, but for those that a chosen line says already.
fn spans<'p>(
    chosen: &'p [Chosen],
    offered: &'p [Line],
    passages: &'p [Passage<'_>],
) -> impl Iterator<Item = Span> + 'p {
    let told: HashMap<u32, Vec<&str>, foldhash::fast::FixedState> =
        lines(chosen, offered).fold(HashMap::default(), |mut told, line| {
            told.entry(line.ordinal).or_default().push(&*line.text);
            told
        });
    chosen.iter().filter_map(move |c| match c {
        Chosen::Offer(_) => None,
        Chosen::Span(span) => {
            let passage = passages.get(span.passage)?;
            let text = passage.text.get(span.from as usize..span.to as usize)?;
            let lines = told.get(&passage.excerpt.ordinal);
            let repeats = lines.is_some_and(|l| l.iter().any(|l| l.contains(text.trim())));
            (!repeats).then_some(*span)
        }
    })
}

/// A line as something to choose: worth something for what it tells, and for the names in it.
fn offer(line: &Line, forms: &Forms<'_>, company: Company) -> Offer {
    let shows = match line.topic {
        Topic::Files | Topic::Code | Topic::Steps | Topic::Plan => Shown::Bare,
        _ => Shown::InContext,
    };
    Offer {
        worth: tell::worth(line.topic, company),
        cost: cost(line),
        shows: named_in(&line.text, forms, shows),
    }
}

/// The groups that a text shows, and how well.
fn named_in(text: &str, forms: &Forms<'_>, shows: Shown) -> Vec<(u32, Shown)> {
    let mut groups = Vec::new();
    scan(text, &mut |kind, _, name| {
        let within = forms.within(weigh::key(kind, name), name);
        groups.extend(within.map(|group| (group, shows.by_another_form())));
        groups.extend(forms.named(kind, name).iter().map(|group| (*group, shows)));
    });
    groups.sort_unstable_by_key(|(group, shows)| (*group, Reverse(*shows)));
    groups.dedup_by_key(|(group, _)| *group);
    groups
}

/// The user's own words show the names in them in context; a text that was cut barely, and prose too,
/// since it may have got the context wrong.
fn shown_by(lines: &[Line], request: &Request<'_>, forms: &Forms<'_>, groups: usize) -> Vec<Shown> {
    let mut shown = vec![Shown::No; groups];
    let texts = request.visible.cut.iter().map(String::as_str);
    let texts = texts.chain([request.prose]);
    let barely = texts.flat_map(|text| named_in(text, forms, Shown::Bare));
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
fn bare<'g>(groups: &[Group<'g>], shown: &[Shown], chars: f64) -> Vec<&'g str> {
    let cost = |name: &str| name.chars().count() as f64 + 2.0;
    let missing = groups
        .iter()
        .zip(shown)
        .filter(|(_, shown)| **shown == Shown::No);
    let mut told: HashSet<&str, foldhash::fast::FixedState> = HashSet::default();
    let mut left = chars;
    let mut names = Vec::new();
    for (group, _) in missing {
        if left < cost(group.key) || told.contains(group.key) {
            continue;
        }
        left -= cost(group.key);
        scan(group.key, &mut |_, _, part| {
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
fn fit(request: &Request<'_>, write: impl Fn(usize) -> String, sizes: &[usize]) -> Summary {
    let budget = request.budget;
    let all = write(sizes.len());
    let mut cost = cost_by_sample(request, &all);
    let mut guess = sizes.len();
    let (mut low, mut high) = (0, sizes.len());
    let mut best = Summary::default();
    for tried in 0.. {
        if low >= high || (tried >= TRIES && low > 0) {
            break;
        }
        guess = shortened(sizes, guess, budget.0 as f64 / cost).clamp(low + 1, high);
        let text = write(guess);
        let counted = request.estimator.units(&text);
        cost = counted.0 as f64;
        if counted > budget {
            high = guess - 1;
            continue;
        }
        let near = (budget - counted).0 <= budget.0 / NEAR;
        best = Summary {
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
fn cost_by_sample(request: &Request<'_>, text: &str) -> f64 {
    let sample: Vec<&str> = text.lines().step_by(SAMPLE).collect();
    let sample = sample.join("\n");
    let cost = request.estimator.units(&sample).0 as f64;
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
