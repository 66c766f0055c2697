//! Chooses the stretches of the record that keep the most weight in context for the fewest
//! characters: greedy maximum coverage, evaluated lazily.
//!
//! A name pays once when it is shown in context; less when it is shown at all. A stretch that joins
//! one already chosen costs only what it adds.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::form::NameForms;
use super::passage::{CONTEXT, NameMark, QuotablePassage};
use super::weigh::WeighedName;

/// A chosen stretch of a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChosenStretch {
    pub passage: usize,
    pub from: u32,
    pub to: u32,
}

/// What a name is worth when it is shown without its context, and when another form of it is shown in
/// context.
const BARE: f64 = 0.7;
const KIN: f64 = 0.91;
/// Characters that the first stretch of an entry costs beside its text, and each further one.
const OPENING: f64 = 9.0;
const JOINT: f64 = 3.0;
/// A gap that is not worth marking: it is shown.
pub(super) const GAP: u32 = 6;

/// How well a group is shown so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShownLevel {
    No,
    Bare,
    /// A longer form of it is, in context.
    Kin,
    InContext,
}

impl ShownLevel {
    /// How well that shows the forms within this one.
    pub(super) fn by_another_form(self) -> ShownLevel {
        self.min(ShownLevel::Kin)
    }
}

/// A line that may be told: what it is worth by itself, what it costs, how it shows which groups.
#[derive(Debug)]
pub(super) struct LineOffer {
    pub worth: f64,
    pub cost: f64,
    pub shows: Vec<(u32, ShownLevel)>,
}

/// What was chosen: a stretch of a passage, or an offer by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChosenItem {
    Span(ChosenStretch),
    Offer(usize),
}

/// The state of the choice.
pub(super) struct GreedyChoice<'p, 'l> {
    passages: &'p [QuotablePassage<'l>],
    offers: Vec<LineOffer>,
    weights: Vec<f64>,
    /// The other groups that each group's name shows.
    kin: Vec<Vec<u32>>,
    shown: Vec<ShownLevel>,
    ranges: Vec<Vec<(u32, u32)>>,
    opened: std::collections::HashSet<u32, foldhash::fast::FixedState>,
}

struct ChoiceCandidate {
    ratio: f64,
    place: CandidatePlace,
}

/// What choosing a candidate would show, gain and cost.
struct ChoiceValue {
    item: ChosenItem,
    gain: f64,
    cost: f64,
}

/// Where a candidate is found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CandidatePlace {
    Offer(u32),
    Mark { passage: u32, mark: u32 },
}

impl Ord for ChoiceCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ratio
            .total_cmp(&other.ratio)
            .then_with(|| other.place.cmp(&self.place))
    }
}
impl PartialOrd for ChoiceCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for ChoiceCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for ChoiceCandidate {}

impl<'p, 'l> GreedyChoice<'p, 'l> {
    /// Starts with nothing chosen; `shown` says what stands elsewhere in the view.
    pub(super) fn new(
        passages: &'p [QuotablePassage<'l>],
        offers: Vec<LineOffer>,
        groups: &[WeighedName<'_>],
        forms: &NameForms<'_>,
        shown: Vec<ShownLevel>,
    ) -> Self {
        GreedyChoice {
            passages,
            offers,
            weights: groups.iter().map(|g| g.weight).collect(),
            kin: other_forms(groups, forms),
            shown,
            ranges: vec![Vec::new(); passages.len()],
            opened: Default::default(),
        }
    }

    /// Chooses lines and stretches until `chars` are spent, the best bargains first.
    pub(super) fn spend(&mut self, chars: f64) -> Vec<ChosenItem> {
        let mut heap = self.candidates();
        let mut spent = 0.0;
        let mut all = Vec::new();
        while let Some(top) = heap.pop() {
            let Some(ChoiceValue { item, gain, cost }) = self.evaluate(top.place) else {
                continue;
            };
            if gain <= 0.0 {
                continue;
            }
            let ratio = gain / cost;
            if heap.peek().is_some_and(|next| next.ratio > ratio) {
                heap.push(ChoiceCandidate { ratio, ..top });
                continue;
            }
            if spent + cost > chars {
                continue;
            }
            spent += cost;
            self.choose(item, &mut heap);
            all.push(item);
        }
        self.round_out(chars - spent, &mut all);
        all
    }

    fn choose(&mut self, chosen: ChosenItem, heap: &mut BinaryHeap<ChoiceCandidate>) {
        match chosen {
            ChosenItem::Offer(nth) => self.take(nth),
            ChosenItem::Span(span) => {
                self.cover(span);
                self.revisit(span, heap);
            }
        }
    }

    /// Takes an offer; it is not made twice.
    fn take(&mut self, nth: usize) {
        let Some(offer) = self.offers.get_mut(nth) else {
            return;
        };
        offer.worth = 0.0;
        for (group, shows) in std::mem::take(&mut offer.shows) {
            if let Some(state) = self.shown.get_mut(group as usize) {
                *state = shows.max(*state);
            }
        }
    }

    /// Spends what is left on whole lines where only parts of them were chosen.
    fn round_out(&mut self, mut left: f64, all: &mut Vec<ChosenItem>) {
        for nth in 0..all.len() {
            let Some(ChosenItem::Span(span)) = all.get(nth) else {
                continue;
            };
            let Some(grown) = self.whole_lines(*span) else {
                continue;
            };
            let cost = f64::from(grown.to - grown.from) - f64::from(self.known(grown));
            if cost > 0.0 && cost <= left {
                left -= cost;
                self.cover(grown);
                all.push(ChosenItem::Span(grown));
            }
        }
    }

    /// A stretch widened to the ends of its lines, or of the passage.
    fn whole_lines(&self, span: ChosenStretch) -> Option<ChosenStretch> {
        let text = &self.passages.get(span.passage)?.text;
        let (before, inside) = text.split_at_checked(span.from as usize)?;
        let from = before.rfind('\n').map_or(0, |i| i + 1);
        let tail = inside.get((span.to - span.from) as usize..)?;
        let to = span.to + tail.find('\n').unwrap_or(tail.len()) as u32;
        Some(ChosenStretch {
            from: from as u32,
            to,
            ..span
        })
    }

    /// How much of a stretch is chosen already.
    fn known(&self, span: ChosenStretch) -> u32 {
        let chosen = self
            .ranges
            .get(span.passage)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let overlap = |r: &(u32, u32)| r.1.min(span.to).saturating_sub(r.0.max(span.from));
        chosen.iter().map(overlap).sum()
    }

    /// How well each group is shown.
    pub(super) fn shown(&self) -> &[ShownLevel] {
        &self.shown
    }

    fn candidates(&self) -> BinaryHeap<ChoiceCandidate> {
        let mut heap = BinaryHeap::new();
        for (passage, p) in self.passages.iter().zip(0u32..) {
            self.consider(p, 0..passage.marks.len(), &mut heap);
        }
        for nth in 0..self.offers.len() as u32 {
            self.enter(CandidatePlace::Offer(nth), &mut heap);
        }
        heap
    }

    /// What was chosen is context for its neighbours: they may have become bargains.
    fn revisit(&self, span: ChosenStretch, heap: &mut BinaryHeap<ChoiceCandidate>) {
        let Some(passage) = self.passages.get(span.passage) else {
            return;
        };
        let near = passage.marks_between(
            span.from.saturating_sub(CONTEXT),
            span.to.saturating_add(CONTEXT),
        );
        self.consider(span.passage as u32, near, heap);
    }

    fn consider(&self, passage: u32, marks: Range<usize>, heap: &mut BinaryHeap<ChoiceCandidate>) {
        for mark in marks {
            self.enter(
                CandidatePlace::Mark {
                    passage,
                    mark: mark as u32,
                },
                heap,
            );
        }
    }

    fn enter(&self, place: CandidatePlace, heap: &mut BinaryHeap<ChoiceCandidate>) {
        if let Some(value) = self.evaluate(place)
            && value.gain > 0.0
        {
            let ratio = value.gain / value.cost;
            heap.push(ChoiceCandidate { ratio, place });
        }
    }

    /// What choosing a candidate would gain and cost now; `None` when its own name gains nothing.
    fn evaluate(&self, place: CandidatePlace) -> Option<ChoiceValue> {
        match place {
            CandidatePlace::Offer(nth) => self.evaluate_offer(nth as usize),
            CandidatePlace::Mark { passage, mark } => {
                self.evaluate_mark(passage as usize, mark as usize)
            }
        }
    }

    fn evaluate_offer(&self, nth: usize) -> Option<ChoiceValue> {
        let offer = self.offers.get(nth)?;
        let names: f64 = offer
            .shows
            .iter()
            .map(|(group, shows)| {
                let more = level_worth(*shows) - level_worth(self.state(*group));
                self.weight(*group) * more.max(0.0)
            })
            .sum();
        Some(ChoiceValue {
            item: ChosenItem::Offer(nth),
            gain: offer.worth + names,
            cost: offer.cost,
        })
    }

    fn evaluate_mark(&self, at: usize, mark: usize) -> Option<ChoiceValue> {
        let passage = self.passages.get(at)?;
        let mark = passage.marks.get(mark)?;
        if self.state(mark.group) == ShownLevel::InContext {
            return None;
        }
        let chosen = self.ranges.get(at)?;
        let (low, high) = (mark.from, mark.to);
        let (mut from, mut to, mut known) = (low, high, 0);
        for &(a, b) in chosen
            .iter()
            .filter(|r| r.0 <= high + GAP && low <= r.1 + GAP)
        {
            from = from.min(a);
            to = to.max(b);
            known += b - a;
        }
        let added = f64::from(to - from) - f64::from(known);
        let cost = match (known > 0, self.opened.contains(&passage.excerpt.ordinal)) {
            (true, _) => added.max(1.0),
            (false, true) => added + JOINT,
            (false, false) => {
                let tool = passage.tool_before(from).map_or(0, |tool| tool.len() + 4);
                added + OPENING + tool as f64
            }
        };
        let span = ChosenStretch {
            passage: at,
            from,
            to,
        };
        Some(ChoiceValue {
            item: ChosenItem::Span(span),
            gain: self.gain(at, from, to),
            cost,
        })
    }

    fn gain(&self, passage: usize, from: u32, to: u32) -> f64 {
        let mut gain = 0.0;
        let mut seen: Vec<(u32, ShownLevel)> = Vec::new();
        for (group, shows) in self.effects(passage, from, to) {
            let before = self.state(group);
            let earlier = seen.iter_mut().find(|s| s.0 == group);
            let best = earlier.as_ref().map_or(before, |s| s.1.max(before));
            if shows > best {
                gain += self.weight(group) * (level_worth(shows) - level_worth(best));
                match earlier {
                    Some(s) => s.1 = shows,
                    None => seen.push((group, shows)),
                }
            }
        }
        gain
    }

    /// How well the groups in and around a stretch would be shown if it were chosen.
    fn effects(&self, at: usize, from: u32, to: u32) -> impl Iterator<Item = (u32, ShownLevel)> {
        let passage = self.passages.get(at);
        let chosen = self.ranges.get(at).map(Vec::as_slice).unwrap_or_default();
        let near = passage.map_or(0..0, |p| {
            p.marks_between(from.saturating_sub(CONTEXT), to.saturating_add(CONTEXT))
        });
        passage
            .into_iter()
            .flat_map(move |p| {
                p.marks
                    .get(near.clone())
                    .unwrap_or_default()
                    .iter()
                    .map(move |m| (p, m))
            })
            .filter(|(_, m)| self.state(m.group) < ShownLevel::InContext)
            .filter_map(move |(p, m)| Some((m.group, mark_level(p, m, chosen, (from, to))?)))
            .flat_map(|(group, shows)| {
                let kin = self.kin.get(group as usize).into_iter().flatten();
                kin.map(move |kin| (*kin, shows.by_another_form()))
                    .chain([(group, shows)])
            })
    }

    fn cover(&mut self, span: ChosenStretch) {
        let Some(passage) = self.passages.get(span.passage) else {
            return;
        };
        let effects: Vec<_> = self.effects(span.passage, span.from, span.to).collect();
        for (group, shows) in effects {
            if let Some(state) = self.shown.get_mut(group as usize) {
                *state = (*state).max(shows);
            }
        }
        self.opened.insert(passage.excerpt.ordinal);
        if let Some(ranges) = self.ranges.get_mut(span.passage) {
            ranges.retain(|r| r.1 < span.from || span.to < r.0);
            let at = ranges.partition_point(|r| r.0 < span.from);
            ranges.insert(at, (span.from, span.to));
        }
    }

    fn state(&self, group: u32) -> ShownLevel {
        self.shown
            .get(group as usize)
            .copied()
            .unwrap_or(ShownLevel::InContext)
    }

    fn weight(&self, group: u32) -> f64 {
        self.weights.get(group as usize).copied().unwrap_or(0.0)
    }
}

fn other_forms(groups: &[WeighedName<'_>], forms: &NameForms<'_>) -> Vec<Vec<u32>> {
    let within = |group: &WeighedName<'_>, own: u32| {
        let within = forms.groups_within(group.key, group.text);
        within.filter(|other| *other != own).collect()
    };
    groups
        .iter()
        .zip(0u32..)
        .map(|(group, own)| within(group, own))
        .collect()
}

fn level_worth(shown: ShownLevel) -> f64 {
    match shown {
        ShownLevel::No => 0.0,
        ShownLevel::Bare => BARE,
        ShownLevel::Kin => KIN,
        ShownLevel::InContext => 1.0,
    }
}

/// How well a mark is shown by the chosen ranges and one more; `None` when it is not.
fn mark_level(
    passage: &QuotablePassage<'_>,
    mark: &NameMark,
    chosen: &[(u32, u32)],
    extra: (u32, u32),
) -> Option<ShownLevel> {
    let holds = |r: &(u32, u32)| r.0 <= mark.lo && mark.hi <= r.1;
    let (low, high) = (mark.lo.saturating_sub(CONTEXT), mark.hi + CONTEXT);
    let first = chosen.partition_point(|r| r.1 < low);
    let nearby = || {
        let rest = chosen.iter().skip(first).take_while(|r| r.0 < high);
        rest.filter(|r| r.1 < extra.0 || extra.1 < r.0)
            .chain([&extra])
    };
    if !nearby().any(holds) {
        return None;
    }
    let words: usize = nearby()
        .map(|r| passage.words_in(r.0.max(low), r.1.min(high)))
        .sum();
    let own = passage.words_in(mark.lo, mark.hi);
    match words.saturating_sub(own) >= mark.need as usize {
        true => Some(ShownLevel::InContext),
        false => Some(ShownLevel::Bare),
    }
}
