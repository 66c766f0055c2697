//! Chooses the pieces that tell the most for the fewest characters: greedy coverage, evaluated lazily.
//!
//! A piece is worth something for what it is, and for the names in it that nothing shows yet. The first piece under
//! a head pays for the head too.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What a name is worth when it is shown without its context, and when another form of it is shown in
/// context.
const BARE: f64 = 0.7;
const KIN: f64 = 0.91;

/// A piece of so many characters more is no dearer: what is short is not better for it.
const SMALL: f64 = 24.0;

/// How well a name is shown so far.
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

/// A piece that may be told: what it is worth by itself, what it costs, how it shows which names.
#[derive(Debug)]
pub(super) struct PieceOffer {
    pub head: usize,
    pub worth: f64,
    /// How much the names in it count.
    pub tells: f64,
    pub cost: f64,
    /// What it costs to open its head.
    pub opening: f64,
    pub shows: Vec<(u32, ShownLevel)>,
}

/// The state of the choice.
pub(super) struct GreedyChoice {
    offers: Vec<PieceOffer>,
    weights: Vec<f64>,
    shown: Vec<ShownLevel>,
    opened: Vec<bool>,
    /// The offers under each head.
    under: Vec<Vec<usize>>,
}

struct ChoiceCandidate {
    ratio: f64,
    nth: usize,
}

impl Ord for ChoiceCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ratio
            .total_cmp(&other.ratio)
            .then_with(|| other.nth.cmp(&self.nth))
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

impl GreedyChoice {
    /// Starts with nothing chosen; `shown` says what stands elsewhere in the view.
    pub(super) fn new(
        offers: Vec<PieceOffer>,
        heads: usize,
        weights: Vec<f64>,
        shown: Vec<ShownLevel>,
    ) -> Self {
        let mut under = vec![Vec::new(); heads];
        for (offer, nth) in offers.iter().zip(0..) {
            if let Some(under) = under.get_mut(offer.head) {
                under.push(nth);
            }
        }
        GreedyChoice {
            offers,
            weights,
            shown,
            opened: vec![false; heads],
            under,
        }
    }

    /// Chooses among these offers until `chars` are spent, the best bargains first; returns them and
    /// what they cost.
    pub(super) fn spend(
        &mut self,
        among: impl Iterator<Item = usize>,
        chars: f64,
    ) -> (Vec<usize>, f64) {
        let mut offered = vec![false; self.offers.len()];
        let mut heap = BinaryHeap::new();
        for nth in among {
            if let Some(offered) = offered.get_mut(nth) {
                *offered = true;
            }
            self.enter(nth, &mut heap);
        }
        let mut spent = 0.0;
        let mut chosen = Vec::new();
        while let Some(top) = heap.pop() {
            let Some((gain, cost)) = self.value(top.nth) else {
                continue;
            };
            let ratio = gain / (cost + SMALL);
            if gain <= 0.0 || spent + cost > chars {
                continue;
            }
            if heap.peek().is_some_and(|next| next.ratio > ratio) {
                heap.push(ChoiceCandidate { ratio, ..top });
                continue;
            }
            spent += cost;
            let closed = self.offers.get(top.nth).map(|offer| offer.head);
            let closed = closed.filter(|head| self.opened.get(*head) == Some(&false));
            self.take(top.nth);
            chosen.push(top.nth);
            // What stands under a head that this opened has become cheaper.
            let under = closed.and_then(|head| self.under.get(head));
            for nth in under.into_iter().flatten().copied() {
                if offered.get(nth) == Some(&true) {
                    self.enter(nth, &mut heap);
                }
            }
        }
        (chosen, spent)
    }

    fn enter(&self, nth: usize, heap: &mut BinaryHeap<ChoiceCandidate>) {
        if let Some((gain, cost)) = self.value(nth)
            && gain > 0.0
        {
            let ratio = gain / (cost + SMALL);
            heap.push(ChoiceCandidate { ratio, nth });
        }
    }

    /// Takes an offer, whatever it is worth.
    pub(super) fn take(&mut self, nth: usize) {
        let Some(offer) = self.offers.get_mut(nth) else {
            return;
        };
        offer.worth = 0.0;
        if let Some(opened) = self.opened.get_mut(offer.head) {
            *opened = true;
        }
        for (group, shows) in std::mem::take(&mut offer.shows) {
            if let Some(state) = self.shown.get_mut(group as usize) {
                *state = shows.max(*state);
            }
        }
    }

    /// What choosing an offer would gain and cost now.
    fn value(&self, nth: usize) -> Option<(f64, f64)> {
        let offer = self.offers.get(nth)?;
        let names: f64 = offer
            .shows
            .iter()
            .map(|(group, shows)| {
                let more = level_worth(*shows) - level_worth(self.state(*group));
                self.weight(*group) * more.max(0.0)
            })
            .sum();
        let is_open = self.opened.get(offer.head).copied().unwrap_or(true);
        let opening = if is_open { 0.0 } else { offer.opening };
        Some((offer.worth + offer.tells * names, offer.cost + opening))
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

fn level_worth(shown: ShownLevel) -> f64 {
    match shown {
        ShownLevel::No => 0.0,
        ShownLevel::Bare => BARE,
        ShownLevel::Kin => KIN,
        ShownLevel::InContext => 1.0,
    }
}
