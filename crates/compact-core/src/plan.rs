//! Plan: who is pinned, who stays verbatim, who is clipped, who goes to the ledger.
//!
//! The demotion ladder: verbatim → clipped → ledger lines → archived only. Real sessions have one
//! user turn and five hundred exchanges, or one result that fills the window, so after the policy's
//! counts come fewer turns, then fewer tool pairs, then clipping; each rung is measured again.
//! Beyond the seed's ladder, a unit that alone would eat a fifth of the recent part is clipped
//! from the start, so that one giant result does not push out five ordinary turns.

use crate::clip::{self, Pointer};
use crate::error::CompactError;
use crate::identity::EntryHash;
use crate::memory::Pin;
use crate::message::{Conversation, Entry};
use crate::outline::{Health, Outline, UnitKind};
use crate::policy::{KeepRecent, Policy};
use crate::prune::meaning::Vector;
use crate::prune::{self, Counts, Sight};
use crate::token::{Estimator, EstimatorExt, Tokens, Units};
use crate::view;

/// Share of the free budget that the recent part may take; the ledger's lines pay better beyond it.
const RECENT_SHARE: f64 = 0.1375;

/// A unit that would take more than one part in so many of the recent part is clipped, but not to
/// fewer tokens than these.
const UNIT_SHARE: u64 = 5;
const UNIT_LEAST: Tokens = Tokens(40);

/// Where every text of a unit would be cut to fewer tokens, only pointers would be left of it.
const SCRAP: Tokens = Tokens(24);

/// A request that waits for its answer is clipped when it would take more than one part in so many
/// of the budget; one that is being worked on sooner, since the ledger quotes its goals and rules.
const PENDING_SHARE: u64 = 4;
const REQUEST_SHARE: u64 = 12;
/// A request of so many tokens is worth its place in any budget that holds it.
const REQUEST_LEAST: Tokens = Tokens(100);

/// Everything a plan looks at.
pub struct Scene<'a> {
    /// The conversation.
    pub conversation: &'a Conversation,
    /// Its units.
    pub outline: &'a Outline,
    /// The identity of each entry.
    pub hashes: &'a [EntryHash],
    /// Units of each entry.
    pub costs: &'a [Units],
    /// The pin of each unit.
    pub pins: &'a [Pin],
    /// The ordinal of each entry in its session.
    pub ordinals: &'a [u64],
    /// What each unit is about; empty unless the policy prunes by meaning.
    pub meaning: &'a [Vector],
    /// The user's decisions.
    pub policy: &'a Policy,
    /// How texts are counted.
    pub estimator: &'a dyn Estimator,
    /// The receipt that clipped texts point to.
    pub receipt: &'a str,
    /// What an empty summary costs.
    pub frame: Units,
    /// What the summary's body may cost at most.
    pub summary_limit: Units,
}

/// What becomes of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Stays byte for byte, whatever happens.
    Pinned,
    /// Stays as it is.
    Verbatim,
    /// Stays with each text cut to so many units.
    Clipped(Units),
    /// Leaves the view; its facts go to the summary.
    Demoted,
}

impl Fate {
    /// True when the unit stands in the view.
    pub fn stays(self) -> bool {
        self != Fate::Demoted
    }
}

/// How far down the ladder the plan had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The policy's own counts fit.
    Policy,
    /// Fewer turns.
    FewerTurns,
    /// One turn, fewer tool pairs.
    FewerPairs,
    /// One turn, one pair, only what fits.
    Clipped,
    /// Nothing but what must stay.
    Minimal,
}

/// The plan of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The fate of each unit.
    pub fates: Vec<Fate>,
    /// What is left for the summary's body.
    pub summary: Units,
    /// How far down the ladder it went.
    pub rung: Rung,
}

/// Plans a view of at most `budget` units.
pub fn plan(scene: &Scene<'_>, budget: Units) -> Result<Plan, CompactError> {
    let mut draft = Draft::new(scene, budget);
    draft.keep_pinned()?;
    draft.keep_requests()?;
    let rung = draft.keep_recent();
    Ok(Plan {
        summary: draft.free(),
        fates: draft.fates,
        rung,
    })
}

/// The last rung: one turn, one pair.
const LEAST: Counts = Counts { turns: 1, pairs: 1 };

/// The counts to try, most generous first: fewer turns, then fewer pairs.
fn rungs(whole: Counts) -> impl Iterator<Item = Counts> {
    let turns = (1..=whole.turns)
        .rev()
        .map(move |turns| Counts { turns, ..whole });
    turns.chain(
        (1..whole.pairs)
            .rev()
            .map(|pairs| Counts { turns: 1, pairs }),
    )
}

fn count(there: usize) -> u32 {
    u32::try_from(there).unwrap_or(u32::MAX)
}

/// A unit at a price.
#[derive(Clone, Copy)]
struct Offer {
    unit: usize,
    fate: Fate,
    cost: Units,
}

struct Draft<'s, 'a> {
    scene: &'s Scene<'a>,
    budget: Units,
    spent: Units,
    pinned: Units,
    fates: Vec<Fate>,
}

impl<'s, 'a> Draft<'s, 'a> {
    fn new(scene: &'s Scene<'a>, budget: Units) -> Self {
        Draft {
            scene,
            budget,
            spent: scene.frame,
            pinned: Units(0),
            fates: vec![Fate::Demoted; scene.outline.units.len()],
        }
    }

    fn free(&self) -> Units {
        self.budget - self.spent
    }

    fn set(&mut self, unit: usize, fate: Fate) {
        if let Some(slot) = self.fates.get_mut(unit) {
            *slot = fate;
        }
    }

    fn fate(&self, unit: usize) -> Fate {
        self.fates.get(unit).copied().unwrap_or(Fate::Demoted)
    }

    /// Leading instructions stay for free, protected units at their price.
    fn keep_pinned(&mut self) -> Result<(), CompactError> {
        for (i, unit) in self.scene.outline.units.iter().enumerate() {
            if self.scene.pins.get(i) == Some(&Pin::Pinned) {
                self.set(i, Fate::Pinned);
                if unit.kind != UnitKind::Leading {
                    self.pinned += self.scene.cost(i);
                }
            }
        }
        self.spent += self.pinned;
        if self.spent > self.budget {
            return Err(self.insufficient(self.spent));
        }
        Ok(())
    }

    /// The first request, the latest message and an open tool loop: always there, clipped if huge.
    fn keep_requests(&mut self) -> Result<(), CompactError> {
        let must = self.must();
        let pending = self.scene.outline.units.len().checked_sub(1);
        let mut total = Units(0);
        for &unit in &must {
            let cost = self.scene.cost(unit);
            let user = self.scene.kind(unit) == Some(UnitKind::User);
            let share = match Some(unit) == pending {
                true => PENDING_SHARE,
                false => REQUEST_SHARE,
            };
            let cap =
                Units(self.budget.0 / share).max(self.scene.estimator.capacity(REQUEST_LEAST));
            let (fate, cost) = if user && cost > cap {
                self.scene.clipped(unit, cap)
            } else {
                (Fate::Verbatim, cost)
            };
            self.set(unit, fate);
            total += cost;
        }
        if total > self.free() {
            total = self.squeeze(&must)?;
        }
        self.spent += total;
        Ok(())
    }

    fn must(&self) -> Vec<usize> {
        let outline = self.scene.outline;
        // A hard reset tells the first request in its summary and keeps the pending one alone.
        let first = match self.scene.policy.keep_recent {
            KeepRecent::None => None,
            KeepRecent::LastUserMessage | KeepRecent::Recent => outline.first_user(),
        };
        let users = [first, self.scene.opens_turn(), outline.last_user()];
        let mut must: Vec<usize> = users
            .into_iter()
            .flatten()
            .chain((0..outline.units.len()).filter(|&i| {
                outline
                    .units
                    .get(i)
                    .is_some_and(|u| u.health == Health::Open)
            }))
            .filter(|&i| self.fate(i) == Fate::Demoted)
            .collect();
        must.sort_unstable();
        must.dedup();
        must
    }

    /// Clips everything that must stay to one level; fails when even that is too much.
    fn squeeze(&mut self, must: &[usize]) -> Result<Units, CompactError> {
        let costs: Vec<Units> = must
            .iter()
            .flat_map(|&u| self.scene.block_costs(u))
            .collect();
        let largest = costs.iter().copied().max().unwrap_or_default();
        let mut level = clip::water_level(&costs, self.free()).min(largest);
        for _ in 0..8 {
            let mut total = Units(0);
            for &unit in must {
                let (fate, cost) = self.scene.at_level(unit, level);
                self.set(unit, fate);
                total += cost;
            }
            if total <= self.free() {
                return Ok(total);
            }
            level = Units(level.0 / 2);
        }
        let least: Units = must
            .iter()
            .map(|&u| self.scene.at_level(u, Units(0)).1)
            .sum();
        Err(self.insufficient(self.spent + least))
    }

    fn keep_recent(&mut self) -> Rung {
        let room = self.recent_room();
        let (policy, outline) = (self.scene.policy, self.scene.outline);
        // What the policy wants of what there is: it may want billions, and each is a rung below.
        let whole = Counts {
            turns: policy
                .keep_recent_turns
                .clamp(1, count(outline.turns() + 1)),
            pairs: policy
                .keep_tool_io_pairs
                .clamp(1, count(outline.exchanges().max(1))),
        };
        let least = self.scene.estimator.capacity(UNIT_LEAST).min(room);
        let cap = Units(room.0 / UNIT_SHARE).max(least);
        let offers = self.price(&self.candidates(whole), cap);
        for counts in rungs(whole) {
            let wanted = self.candidates(counts);
            let chosen: Vec<Offer> = offers
                .iter()
                .filter(|offer| wanted.binary_search(&offer.unit).is_ok())
                .copied()
                .collect();
            let fits = chosen.iter().map(|offer| offer.cost).sum::<Units>() <= room;
            if fits || counts == LEAST {
                let taken = self.accept(&chosen, room);
                return match counts {
                    _ if !fits && taken == 0 => Rung::Minimal,
                    _ if !fits => Rung::Clipped,
                    c if c == whole => Rung::Policy,
                    c if c.pairs == whole.pairs => Rung::FewerTurns,
                    _ => Rung::FewerPairs,
                };
            }
        }
        Rung::Minimal
    }

    /// What the recent part may take: its share, and what a bounded summary cannot use.
    fn recent_room(&self) -> Units {
        let share = Units((self.free().0 as f64 * RECENT_SHARE) as u64);
        share.max(self.free() - self.scene.summary_limit)
    }

    /// What the policy would keep beyond what already stays.
    fn candidates(&self, counts: Counts) -> Vec<usize> {
        let scene = self.scene;
        let after = match scene.policy.keep_recent {
            KeepRecent::None => return Vec::new(),
            KeepRecent::LastUserMessage => scene.outline.last_user().unwrap_or(0),
            KeepRecent::Recent => 0,
        };
        let sight = Sight {
            conversation: scene.conversation,
            outline: scene.outline,
            meaning: scene.meaning,
        };
        prune::keep(scene.policy.prune, sight, counts)
            .into_iter()
            .filter(|&i| i >= after && self.fate(i) == Fate::Demoted)
            .filter(|&i| scene.pins.get(i) != Some(&Pin::Repeated))
            .collect()
    }

    /// What each unit costs, clipped where it is larger than `cap`. One of which only pointers would be
    /// left is told better by the summary, unless it is the newest.
    fn price(&self, units: &[usize], cap: Units) -> Vec<Offer> {
        let offer = |&unit: &usize| {
            let cost = self.scene.cost(unit);
            let (fate, cost) = if cost <= cap {
                (Fate::Verbatim, cost)
            } else {
                self.scene.clipped(unit, cap)
            };
            Offer { unit, fate, cost }
        };
        let scrap = self.scene.estimator.capacity(SCRAP);
        let tells = |offer: &Offer| match offer.fate {
            Fate::Clipped(level) => level >= scrap || units.last() == Some(&offer.unit),
            _ => true,
        };
        units.iter().map(offer).filter(tells).collect()
    }

    /// Takes units from the newest on while they fit; returns how many were taken.
    fn accept(&mut self, offers: &[Offer], room: Units) -> usize {
        let mut used = Units(0);
        let mut taken = 0;
        for offer in offers.iter().rev() {
            if used + offer.cost > room {
                break;
            }
            used += offer.cost;
            taken += 1;
            self.set(offer.unit, offer.fate);
        }
        self.spent += used;
        taken
    }

    fn insufficient(&self, needed: Units) -> CompactError {
        let tokens = |units| self.scene.estimator.tokens(units);
        CompactError::InsufficientBudget {
            pinned_tokens: tokens(self.pinned),
            needed: tokens(needed),
            budget: Tokens(self.budget.0 / self.scene.estimator.units_per_token().max(1)),
        }
    }
}

impl Scene<'_> {
    /// What a unit costs as it is.
    pub fn cost(&self, unit: usize) -> Units {
        self.range(unit)
            .and_then(|r| self.costs.get(r))
            .map_or(Units(0), |costs| costs.iter().copied().sum())
    }

    /// The entries of a unit.
    pub fn entries(&self, unit: usize) -> &[Entry] {
        self.range(unit)
            .and_then(|r| self.conversation.entries.get(r))
            .unwrap_or_default()
    }

    /// The pointer to entry `index`.
    pub fn pointer(&self, index: usize) -> Pointer<'_> {
        Pointer {
            receipt: self.receipt,
            ordinal: self.ordinals.get(index).copied().unwrap_or(index as u64),
        }
    }

    fn range(&self, unit: usize) -> Option<std::ops::Range<usize>> {
        self.outline.units.get(unit).map(|u| u.entries.clone())
    }

    /// The latest message of a person that is a message of the wire by itself: words that came with
    /// tool results do not begin a turn for every provider.
    fn opens_turn(&self) -> Option<usize> {
        self.outline.units.iter().rposition(|unit| {
            let first = self.conversation.entries.get(unit.entries.start);
            unit.kind == UnitKind::User && first.is_some_and(|e| !e.meta.continues)
        })
    }

    fn kind(&self, unit: usize) -> Option<UnitKind> {
        self.outline.units.get(unit).map(|u| u.kind)
    }

    fn block_costs(&self, unit: usize) -> Vec<Units> {
        self.entries(unit)
            .iter()
            .flat_map(|e| clip::block_costs(e, self.estimator))
            .collect()
    }

    /// A unit clipped so that it costs at most about `limit`.
    fn clipped(&self, unit: usize, limit: Units) -> (Fate, Units) {
        let fixed: Units = self
            .entries(unit)
            .iter()
            .map(|_| self.estimator.framing())
            .sum();
        let level = clip::water_level(&self.block_costs(unit), limit - fixed);
        self.at_level(unit, level)
    }

    /// A unit with every text cut to `level`, and what it then costs.
    fn at_level(&self, unit: usize, level: Units) -> (Fate, Units) {
        let start = self.range(unit).map_or(0, |r| r.start);
        let cost = self
            .entries(unit)
            .iter()
            .enumerate()
            .map(|(i, entry)| {
                let edits = clip::entry(entry, level, self.estimator, self.pointer(start + i));
                self.estimator.entry(&view::apply(entry, &edits))
            })
            .sum();
        (Fate::Clipped(level), cost)
    }
}
