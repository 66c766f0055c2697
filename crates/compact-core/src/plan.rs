//! Plan: who is pinned, who stays verbatim, who is clipped, who goes to the ledger.
//!
//! Room is claimed in this order: what is pinned; the newest, which is what was said last, but for the
//! user's rules and short requests, which it is cut for; the requests; the policy's recent turns and tool pairs; the summary's share; earlier turns from the
//! newest back; and what is left is the summary's again. The demotion ladder of the recent part:
//! verbatim → clipped → fewer turns → fewer pairs, because real sessions have one user turn and five
//! hundred exchanges, or one result that fills the window. Units that would take more than a fifth
//! of it are clipped before turns are given up.

use crate::budget::SMALL_VIEW;
use crate::clip::{self, ClipPointer, CutEntries, CutEntry};
use crate::error::CompactError;
use crate::message::{Conversation, Entry};
use crate::outline::{Outline, UnitHealth, UnitKind};
use crate::pin::PinState;
use crate::policy::{KeepRecent, Policy};
use crate::prune::meaning::MeaningVector;
use crate::prune::{self, KeepCounts, PruneInput};
use crate::token::{Estimator, EstimatorExt, Tokens, Units};

/// Share of the free budget that the recent part may take where the summary may have all the rest: a
/// ledger's lines pay better beyond it.
const RECENT_SHARE: f64 = 0.16;
/// Beside a bounded summary, the recent part is whole up to one part in so many.
const RECENT_PART: u64 = 2;

/// A unit that would take more than one part in so many of the recent part is clipped, but not to
/// fewer tokens than these.
const UNIT_SHARE: u64 = 5;
const UNIT_LEAST: Tokens = Tokens(40);
/// The newest unit is what the model has yet to answer: it may take so many tenths of the recent part.
const NEWEST_SHARE: u64 = 7;
/// The reply before the latest request says what that is about: it may take so many.
const ASKED_SHARE: u64 = 4;

/// Where every text of a unit would be cut to fewer tokens, only scraps and pointers would be left of it.
const SCRAP: Tokens = Tokens(28);

/// In a budget that somebody named and that is a small part of the history, fresh answers of tools are whole while they leave
/// the summary so many tokens, or four fifths of a small budget: there the ledger's lines tell more than an answer
/// that takes their room. In a larger one they are whole while they fit.
const SMALL_SUMMARY: Tokens = Tokens(8_192);
/// Fresh answers that are not whole, and the calls that they answer, are cut to no less than this each: the head and the
/// tail of a text of some 300 characters, or a short one whole. What is older gives way to that, but for the smallest
/// summary, of which one part in so many of what is left may have to do, and a smaller one beside answers that are whole.
const ANSWER_LEAST: Tokens = Tokens(128);
const BESIDE_CUT_ANSWERS: u64 = 2;
const BESIDE_SHORT_ANSWERS: u64 = 3;

/// The newest request is clipped when it would take more than one part in so many of the budget; the first
/// one sooner, since the ledger quotes its goals and rules.
const PENDING_SHARE: u64 = 4;
const REQUEST_SHARE: u64 = 12;
/// A request of so many tokens is worth its place in any budget that holds it.
const REQUEST_LEAST: Tokens = Tokens(100);

/// What was said last is cut where it would leave the smallest summary less than it takes, or less than one
/// part in so many of the budget; and then, since a longer cut hides little more, to leave it twice that.
const LEAST_SUMMARY_PART: u64 = 8;

/// What the texts of tools are cut to in earlier turns, the most generous first: the first at which
/// all of them fit, else the last.
const LEVELS: [Tokens; 6] = [
    Tokens(4096),
    Tokens(2048),
    Tokens(1024),
    Tokens(512),
    Tokens(256),
    Tokens(128),
];
/// Turns come before the summary, in so many tenths of a budget that somebody named, where that is one part in so many of
/// the history and about holds all of them (in tenths of it) with the texts of tools cut.
const TURNS_SHARE: u64 = 9;
const TURNS_PART: u64 = 6;
const TURNS_ABOUT: u64 = 12;
/// What people and the model said is cut to so many times that.
const WORDS_SHARE: u64 = 4;

/// Everything a plan looks at.
pub(crate) struct PlanInput<'a> {
    /// The conversation.
    pub conversation: &'a Conversation,
    /// Its units.
    pub outline: &'a Outline,
    /// Units of each entry.
    pub costs: &'a [Units],
    /// The pin of each unit.
    pub pins: &'a [PinState],
    /// The ordinal of each entry in its session.
    pub ordinals: &'a [u64],
    /// What each unit is about; empty unless the policy prunes by meaning.
    pub meaning: &'a [MeaningVector],
    /// The user's decisions.
    pub policy: &'a Policy,
    /// How texts are counted.
    pub estimator: &'a dyn Estimator,
    /// What was cut of it so far.
    pub cuts: &'a CutEntries,
    /// The receipt that clipped texts point to.
    pub receipt: &'a str,
    /// What an empty summary costs.
    pub frame: Units,
    /// What the smallest summary's body costs: the user's rules, and where the work stands.
    pub least_summary: Units,
    /// What the summary's body may take before earlier turns are kept beside it.
    pub summary_limit: Units,
    /// Whether somebody named the budget: then it need not hold more than is worth it.
    pub is_named: bool,
    /// Whether no word of the message with this ordinal holds any more.
    pub has_fallen: &'a dyn Fn(u64) -> bool,
}

/// What a view must hold, whatever its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomClaims {
    /// Protected units, and an empty summary.
    pub pinned: Units,
    /// What was said last, whole.
    pub newest: Units,
    /// The requests beside it: short ones whole, others cut as far as they can be.
    pub requests: Units,
    /// The body of the smallest summary.
    pub summary: Units,
}

impl RoomClaims {
    /// All of it but what the summary says.
    pub fn total(self) -> Units {
        self.pinned + self.newest + self.requests
    }
}

/// What becomes of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitFate {
    /// Stays byte for byte, whatever happens.
    Pinned,
    /// Stays as it is.
    Verbatim,
    /// Stays with each text cut to so many units.
    Clipped(Units),
    /// Leaves the view; its facts go to the summary.
    Demoted,
}

impl UnitFate {
    /// True when the unit stands in the view.
    pub fn stays(self) -> bool {
        self != UnitFate::Demoted
    }
}

/// How far down the ladder the plan had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LadderRung {
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
    pub fates: Vec<UnitFate>,
    /// What the summary's body may cost.
    pub summary: Units,
    /// What everything else leaves: the same, unless the policy keeps nothing but a summary.
    pub free: Units,
    /// How far down the ladder it went.
    pub rung: LadderRung,
}

/// Plans a view of at most `budget` units.
pub(crate) fn plan_view(scene: &PlanInput<'_>, budget: Units) -> Result<Plan, CompactError> {
    let mut draft = PlanDraft::new(scene, budget);
    draft.keep_pinned()?;
    draft.keep_newest();
    draft.keep_requests()?;
    let rung = draft.keep_recent();
    draft.keep_earlier();
    let free = draft.free();
    let named = scene.policy.summary_tokens.map(Tokens);
    let most = named.map_or(free, |named| scene.estimator.to_units(named).min(free));
    Ok(Plan {
        // A reset is not there to be filled.
        summary: match scene.policy.keep_recent {
            KeepRecent::None => most.min(scene.summary_limit),
            KeepRecent::LastUserMessage | KeepRecent::Recent => most,
        },
        free,
        fates: draft.fates,
        rung,
    })
}

/// What a view of this scene must hold.
pub(crate) fn count_claims(scene: &PlanInput<'_>) -> RoomClaims {
    let mut draft = PlanDraft::new(scene, Units(u64::MAX));
    draft.pin();
    let newest = draft.unpinned_newest();
    for unit in &newest {
        draft.set(*unit, UnitFate::Verbatim);
    }
    RoomClaims {
        pinned: scene.frame + draft.pinned,
        newest: newest.iter().map(|unit| scene.cost(*unit)).sum(),
        requests: draft.least_of_requests(),
        summary: scene.least_summary,
    }
}

/// True where the newest fits a budget beside what must stay and the smallest summary: cut all the same, it was
/// answers of tools that left no small one.
pub(crate) fn newest_fits(scene: &PlanInput<'_>, budget: Units) -> bool {
    let claims = count_claims(scene);
    claims.total() + scene.least_summary_within(budget) <= budget
}

/// The last rung: one turn, one pair.
const LEAST: KeepCounts = KeepCounts { turns: 1, pairs: 1 };

/// The counts to try, most generous first: fewer turns, then fewer pairs.
fn rungs(whole: KeepCounts) -> impl Iterator<Item = KeepCounts> {
    let turns = (1..=whole.turns)
        .rev()
        .map(move |turns| KeepCounts { turns, ..whole });
    turns.chain(
        (1..whole.pairs)
            .rev()
            .map(|pairs| KeepCounts { turns: 1, pairs }),
    )
}

fn saturating_count(there: usize) -> u32 {
    u32::try_from(there).unwrap_or(u32::MAX)
}

/// A unit at a price.
#[derive(Clone, Copy)]
struct UnitOffer {
    unit: usize,
    fate: UnitFate,
    cost: Units,
}

/// How a level is lowered: by which percentage it is kept, how often, and then to nothing.
#[derive(Clone, Copy)]
struct LevelSteps {
    keep: u64,
    count: u32,
}
const GENTLY: LevelSteps = LevelSteps {
    keep: 94,
    count: 24,
};
const HARD: LevelSteps = LevelSteps { keep: 50, count: 8 };

struct PlanDraft<'s, 'a> {
    scene: &'s PlanInput<'a>,
    budget: Units,
    spent: Units,
    pinned: Units,
    /// What is held back for the summary's body because the newest was cut for it.
    held: Units,
    /// What fresh answers take that were cut.
    cut_answers: Units,
    fates: Vec<UnitFate>,
}

impl<'s, 'a> PlanDraft<'s, 'a> {
    fn new(scene: &'s PlanInput<'a>, budget: Units) -> Self {
        PlanDraft {
            scene,
            budget,
            spent: scene.frame,
            pinned: Units(0),
            held: Units(0),
            cut_answers: Units(0),
            fates: vec![UnitFate::Demoted; scene.outline.units.len()],
        }
    }

    fn free(&self) -> Units {
        self.budget - self.spent
    }

    fn set(&mut self, unit: usize, fate: UnitFate) {
        if let Some(slot) = self.fates.get_mut(unit) {
            *slot = fate;
        }
    }

    fn fate(&self, unit: usize) -> UnitFate {
        self.fates.get(unit).copied().unwrap_or(UnitFate::Demoted)
    }

    /// Leading instructions stay for free, protected units at their price.
    fn keep_pinned(&mut self) -> Result<(), CompactError> {
        self.pin();
        self.spent += self.pinned;
        if self.spent > self.budget {
            return Err(self.insufficient(self.spent));
        }
        Ok(())
    }

    fn pin(&mut self) {
        for (i, unit) in self.scene.outline.units.iter().enumerate() {
            if self.scene.pins.get(i) == Some(&PinState::Pinned) {
                self.set(i, UnitFate::Pinned);
                if unit.kind != UnitKind::Leading {
                    self.pinned += self.scene.cost(i);
                }
            }
        }
    }

    /// What was said last, whole where it fits beside the least that must be there and the smallest summary,
    /// else cut as little as that takes; a fresh answer of a tool also where it would leave a budget that somebody named no
    /// small summary. What cannot be cut to fit is left to the rungs below.
    fn keep_newest(&mut self) {
        let newest = self.unpinned_newest();
        newest.iter().for_each(|u| self.set(*u, UnitFate::Verbatim));
        let rest = self.least_of_requests();
        let has_answers = |u: usize| self.scene.entries(u).iter().any(Entry::has_results);
        let is_apart = |u: &usize| !self.is_bounded() && has_answers(*u);
        let (answers, words): (Vec<usize>, Vec<usize>) = newest.iter().partition(|u| is_apart(u));
        let least = self.scene.least_summary_within(self.budget);
        let room = self.free() - rest - self.least(&answers);
        if !self.take_whole(&words, room - least) {
            self.held = Units(least.0 * 2).min(self.scene.least_summary);
            let room = room - self.held;
            match self.clip_to_fit(&words, room, GENTLY) {
                Some(taken) => self.spent += taken,
                None => self.demote(&words),
            }
        }
        let beside = match self.has_large_budget() {
            true => rest + least,
            false => rest.max(self.small_summary()),
        };
        if !self.take_whole(&answers, self.free() - beside) {
            self.keep_answers_cut(&answers);
        }
    }

    /// Fresh answers cut to their share of the recent part, or to what each must keep where that is more.
    fn keep_answers_cut(&mut self, answers: &[usize]) {
        self.demote(answers);
        let level = self.scene.estimator.to_units(ANSWER_LEAST);
        let (least, whole) = (
            self.cost_at_level(answers, level),
            self.cost_at_level(answers, Units(u64::MAX)),
        );
        let left = self.free() - self.cost_of_requests_beside(answers);
        let part = match least == whole {
            true => BESIDE_SHORT_ANSWERS,
            false => BESIDE_CUT_ANSWERS,
        };
        let room = left - self.scene.least_summary.min(Units(left.0 / part));
        let share = Units((left.0 as f64 * RECENT_SHARE) as u64 / 10 * NEWEST_SHARE);
        self.cut_answers = match (share..=room).contains(&least) {
            true => {
                let fate = UnitFate::Clipped(level);
                answers.iter().for_each(|u| self.set(*u, fate));
                least
            }
            false => {
                let taken = self.clip_to_fit(answers, share.max(least).min(room), GENTLY);
                if taken.is_none() {
                    self.demote(answers);
                }
                taken.unwrap_or_default()
            }
        };
        self.spent += self.cut_answers;
    }

    fn demote(&mut self, units: &[usize]) {
        for unit in units {
            self.set(*unit, UnitFate::Demoted);
        }
    }

    fn cost_at_level(&self, units: &[usize], level: Units) -> Units {
        let costs = units
            .iter()
            .map(|unit| self.scene.clip_at_level(*unit, level).1);
        costs.sum()
    }

    /// Pays for units as they are, if they fit `room`.
    fn take_whole(&mut self, units: &[usize], room: Units) -> bool {
        let whole: Units = units.iter().map(|unit| self.scene.cost(*unit)).sum();
        if whole <= room {
            self.spent += whole;
        }
        whole <= room
    }

    /// Whether somebody named a budget that is a large part of the history: there turns are worth more than lines about them.
    fn has_large_budget(&self) -> bool {
        let history: Units = self.scene.costs.iter().copied().sum();
        self.scene.is_named && self.budget.0.saturating_mul(TURNS_PART) >= history.0
    }

    /// The smallest summary beside fresh answers in a budget that somebody named and that is a small part of the history.
    fn small_summary(&self) -> Units {
        let most = Units(self.budget.0 * 4 / 5);
        self.scene.estimator.to_units(SMALL_SUMMARY).min(most)
    }

    /// Whether the summary has a share, and turns the rest of the room.
    fn is_bounded(&self) -> bool {
        self.scene.summary_limit < self.budget
    }

    /// The newest units, unless they are pinned.
    fn unpinned_newest(&self) -> Vec<usize> {
        let mut newest = self.scene.newest_units();
        newest.retain(|&unit| self.fate(unit) == UnitFate::Demoted && !self.is_repeated(unit));
        newest
    }

    /// Whether the same words stand pinned later: a copy that is cut would be protected as it is cut.
    fn is_repeated(&self, unit: usize) -> bool {
        self.scene.pins.get(unit) == Some(&PinState::Repeated)
    }

    /// What units cost when their texts are cut as far as they can be.
    fn least(&self, units: &[usize]) -> Units {
        self.cost_at_level(units, Units(0))
    }

    /// What the requests cost that must stay: the task in a sentence or two is worth its place whole.
    fn least_of_requests(&self) -> Units {
        let short = self.scene.estimator.to_units(REQUEST_LEAST);
        let least = |unit: &usize| match self.scene.cost(*unit) {
            cost if cost <= short => cost,
            _ => self.least(&[*unit]),
        };
        self.required_units().iter().map(least).sum()
    }

    /// The first request, the one being worked on and an open tool loop: always there, clipped if huge.
    fn keep_requests(&mut self) -> Result<(), CompactError> {
        let must = self.required_units();
        let mut total = Units(0);
        for &unit in &must {
            let offer = self.offer_request(unit);
            self.set(unit, offer.fate);
            total += offer.cost;
        }
        if total > self.free() - self.held {
            total = self.clip_required(&must)?;
        }
        self.spent += total;
        Ok(())
    }

    /// A request at its share of the budget.
    fn offer_request(&self, unit: usize) -> UnitOffer {
        let cost = self.scene.cost(unit);
        let user = self.scene.kind(unit) == Some(UnitKind::User);
        let newest = [self.scene.pending(), self.scene.latest_request()];
        let share = match newest.contains(&Some(unit)) {
            true => PENDING_SHARE,
            false => REQUEST_SHARE,
        };
        let cap = Units(self.budget.0 / share).max(self.scene.estimator.to_units(REQUEST_LEAST));
        // Answers that came while other calls still wait leave a named budget its summary.
        let waits = !self.is_bounded() && self.scene.entries(unit).iter().any(Entry::has_results);
        let cap = match waits {
            true => self.budget - self.small_summary(),
            false => cap,
        };
        let (fate, cost) = match (user || waits) && cost > cap {
            true => self.scene.clipped(unit, cap),
            false => (UnitFate::Verbatim, cost),
        };
        UnitOffer { unit, fate, cost }
    }

    /// What the requests beside these units take at their shares.
    fn cost_of_requests_beside(&self, units: &[usize]) -> Units {
        let required = self.required_units().into_iter();
        let beside = required.filter(|unit| !units.contains(unit));
        beside.map(|unit| self.offer_request(unit).cost).sum()
    }

    fn required_units(&self) -> Vec<usize> {
        let outline = self.scene.outline;
        // A hard reset tells the first request in its summary and keeps the pending one alone.
        let first = match self.scene.policy.keep_recent {
            KeepRecent::None => None,
            KeepRecent::LastUserMessage | KeepRecent::Recent => outline.first_user(),
        };
        let users = [first, self.scene.latest_request(), outline.last_user()];
        let mut must: Vec<usize> = users
            .into_iter()
            .flatten()
            .chain((0..outline.units.len()).filter(|&i| {
                outline
                    .units
                    .get(i)
                    .is_some_and(|u| u.health == UnitHealth::Open)
            }))
            .filter(|&i| self.fate(i) == UnitFate::Demoted && !self.is_repeated(i))
            .collect();
        must.sort_unstable();
        must.dedup();
        must
    }

    /// Clips everything that must stay to one level; fails when even that is too much.
    fn clip_required(&mut self, must: &[usize]) -> Result<Units, CompactError> {
        let beside_summary = self.free() - self.held;
        let taken = self.clip_to_fit(must, beside_summary, HARD);
        let taken = taken.or_else(|| self.clip_to_fit(must, self.free(), HARD));
        taken.ok_or_else(|| self.insufficient(self.spent + self.least(must)))
    }

    /// Clips units to the level at which they take at most `room`, lowered until they do; `None` when
    /// they never do.
    fn clip_to_fit(&mut self, units: &[usize], room: Units, steps: LevelSteps) -> Option<Units> {
        let costs: Vec<Units> = units
            .iter()
            .flat_map(|&u| self.scene.block_costs(u))
            .collect();
        let largest = costs.iter().copied().max().unwrap_or_default();
        let mut level = clip::water_level(&costs, room).min(largest);
        for step in 0..=steps.count {
            if step == steps.count {
                level = Units(0);
            }
            let mut total = Units(0);
            for &unit in units {
                let (fate, cost) = self.scene.clip_at_level(unit, level);
                self.set(unit, fate);
                total += cost;
            }
            if total <= room {
                return Some(total);
            }
            level = Units(level.0 * steps.keep / 100);
        }
        None
    }

    fn keep_recent(&mut self) -> LadderRung {
        let room = self.recent_room();
        let (policy, outline) = (self.scene.policy, self.scene.outline);
        // What the policy wants of what there is: it may want billions, and each is a rung below.
        let whole = KeepCounts {
            turns: policy
                .keep_recent_turns
                .clamp(1, saturating_count(outline.turns() + 1)),
            pairs: policy
                .keep_tool_io_pairs
                .clamp(1, saturating_count(outline.exchanges().max(1))),
        };
        let least = self.scene.estimator.to_units(UNIT_LEAST).min(room);
        let cap = Units(room.0 / UNIT_SHARE).max(least);
        let offers = self.price(&self.candidates(whole), cap);
        for counts in rungs(whole) {
            let wanted = self.candidates(counts);
            let chosen: Vec<UnitOffer> = offers
                .iter()
                .filter(|offer| wanted.binary_search(&offer.unit).is_ok())
                .copied()
                .collect();
            let fits = chosen.iter().map(|offer| offer.cost).sum::<Units>() <= room;
            if fits || counts == LEAST {
                let taken = self.accept(chosen.iter().rev().copied(), room);
                return match counts {
                    _ if !fits && taken == 0 => LadderRung::Minimal,
                    _ if !fits => LadderRung::Clipped,
                    c if c == whole => LadderRung::Policy,
                    c if c.pairs == whole.pairs => LadderRung::FewerTurns,
                    _ => LadderRung::FewerPairs,
                };
            }
        }
        LadderRung::Minimal
    }

    /// What the recent part may take: its share, or beside a bounded summary as much as half, and nothing of a small view
    /// whose size nobody named, or of one that what was said last was cut for.
    fn recent_room(&self) -> Units {
        let is_named = self.scene.summary_limit == Units(u64::MAX);
        if self.held > Units(0) {
            return Units(0);
        }
        if !is_named && self.budget < self.scene.estimator.to_units(SMALL_VIEW) {
            return Units(0);
        }
        // Answers that were cut are recent, too.
        let free = self.free() + self.cut_answers;
        let share = Units((free.0 as f64 * RECENT_SHARE) as u64) - self.cut_answers;
        let part = Units(self.free().0 / RECENT_PART);
        share.max(part.min(self.free() - self.scene.summary_limit))
    }

    /// Earlier turns from the newest back, their long texts cut, in what the summary leaves.
    fn keep_earlier(&mut self) {
        if self.scene.policy.keep_recent != KeepRecent::Recent {
            return;
        }
        let units = self.earlier();
        if let Some(offers) = self.offer_turns(&units) {
            self.accept(offers.into_iter(), self.free());
            return;
        }
        let room = self.free() - self.scene.summary_limit;
        if room > Units(0) {
            let level = self.level_for(&units, room);
            let offers = self.offered_at(&units, room, |u| self.scene.level_of(u, level));
            self.accept(offers.into_iter(), room);
        }
    }

    /// What was said, whole, then what was done, with the texts of tools cut, from the newest back: where most of a large
    /// budget that somebody named about holds it. Turns read better than lines about them, and the summary has the rest.
    fn offer_turns(&self, units: &[usize]) -> Option<Vec<UnitOffer>> {
        let scene = self.scene;
        // Behind an earlier summary stands far more than the turns that are left beside it.
        let mut kinds = scene.outline.units.iter().map(|unit| &unit.kind);
        let goes_on = kinds.any(|kind| matches!(kind, UnitKind::Summary));
        if !self.has_large_budget() || goes_on {
            return None;
        }
        let rest = self.budget - Units(self.budget.0 / 10 * TURNS_SHARE);
        let room = self.free() - rest.min(scene.summary_limit);
        let is_done = |unit: usize| scene.kind(unit) == Some(UnitKind::Exchange);
        let level_of = |unit: usize, level: Units| match is_done(unit) {
            true => level,
            false => Units(u64::MAX),
        };
        let cost = |level: Units| -> Units {
            let cost = |u: &usize| scene.estimate_at_level(*u, level_of(*u, level));
            units.iter().map(cost).sum()
        };
        let levels = LEVELS.map(|tokens| scene.estimator.to_units(tokens));
        let least = levels.last().copied().unwrap_or_default();
        if cost(least) > Units(room.0 / 10 * TURNS_ABOUT) {
            return None;
        }
        let (done, said): (Vec<usize>, Vec<usize>) = units.iter().partition(|u| is_done(**u));
        let units = [said, done].concat();
        let offered = |level: Units| self.offered_at(&units, room, |u| level_of(u, level));
        let fitting = levels.into_iter().filter(|level| cost(*level) <= room);
        let all = fitting
            .map(offered)
            .find(|offers| offers.len() == units.len());
        Some(all.unwrap_or_else(|| offered(least)))
    }

    /// Every unit that could still be kept, the newest first.
    fn earlier(&self) -> Vec<usize> {
        let free = |i: &usize| {
            self.fate(*i) == UnitFate::Demoted && self.scene.pins.get(*i) == Some(&PinState::Free)
        };
        let units = self.scene.outline.units.iter().enumerate().rev();
        let sendable = units.filter(|(_, unit)| unit.is_sendable());
        let units = sendable.map(|(i, _)| i).filter(free);
        units.filter(|unit| !self.scene.is_fallen(*unit)).collect()
    }

    /// The most generous level at which about all of these units fit, else the least.
    fn level_for(&self, units: &[usize], room: Units) -> Units {
        let levels = LEVELS.map(|tokens| self.scene.estimator.to_units(tokens));
        let fits = |level: &Units| {
            let cost = |u: &usize| {
                self.scene
                    .estimate_at_level(*u, self.scene.level_of(*u, *level))
            };
            units.iter().map(cost).sum::<Units>() <= room
        };
        let fitting = levels.iter().copied().find(fits);
        fitting.or(levels.last().copied()).unwrap_or_default()
    }

    /// Units at their levels, as far as they fit.
    fn offered_at(
        &self,
        units: &[usize],
        room: Units,
        level_of: impl Fn(usize) -> Units,
    ) -> Vec<UnitOffer> {
        let mut left = room;
        let mut offers = Vec::new();
        for &unit in units {
            let level = level_of(unit);
            let (fate, cost) = match self.scene.longest_block(unit) <= level {
                true => (UnitFate::Verbatim, self.scene.cost(unit)),
                false => self.scene.clip_at_level(unit, level),
            };
            if cost > left {
                break;
            }
            left = left - cost;
            offers.push(UnitOffer { unit, fate, cost });
        }
        offers
    }

    /// What the policy would keep beyond what already stays.
    fn candidates(&self, counts: KeepCounts) -> Vec<usize> {
        let scene = self.scene;
        let after = match scene.policy.keep_recent {
            KeepRecent::None => return Vec::new(),
            KeepRecent::LastUserMessage => scene.outline.last_user().unwrap_or(0),
            KeepRecent::Recent => 0,
        };
        let sight = PruneInput {
            conversation: scene.conversation,
            outline: scene.outline,
            meaning: scene.meaning,
        };
        let mut kept = prune::kept_units(scene.policy.prune, sight, counts);
        kept.extend(scene.answered_reply());
        kept.extend(scene.replies_behind(&kept, counts));
        kept.sort_unstable();
        kept.dedup();
        kept.retain(|&i| i >= after && self.fate(i) == UnitFate::Demoted);
        kept.retain(|&i| scene.pins.get(i) != Some(&PinState::Repeated) && !scene.is_fallen(i));
        kept
    }

    /// What each unit costs, clipped where it is larger than `cap`, unless all of them fit whole beside
    /// a bounded summary. One of which only pointers would be left is told better by the summary,
    /// unless it is the newest.
    fn price(&self, units: &[usize], cap: Units) -> Vec<UnitOffer> {
        let whole = |&unit: &usize| UnitOffer {
            unit,
            fate: UnitFate::Verbatim,
            cost: self.scene.cost(unit),
        };
        let offers: Vec<UnitOffer> = units.iter().map(whole).collect();
        let total: Units = offers.iter().map(|offer| offer.cost).sum();
        if self.is_bounded() && total <= self.recent_room() {
            return offers;
        }
        let has_newest = self.cut_answers == Units(0);
        let newest = units.last().copied().filter(|_| has_newest);
        let asked_of = self.scene.reply_before_request();
        let share = |share: u64| cap.max(Units(self.recent_room().0 * share / 10));
        let clipped = |offer: UnitOffer| {
            let cap = match Some(offer.unit) {
                unit if unit == newest => share(NEWEST_SHARE),
                unit if unit == asked_of => share(ASKED_SHARE),
                _ => cap,
            };
            if offer.cost <= cap {
                return offer;
            }
            let (fate, cost) = self.scene.clipped(offer.unit, cap);
            UnitOffer {
                fate,
                cost,
                ..offer
            }
        };
        let scrap = self.scene.estimator.to_units(SCRAP);
        let reply = self.scene.answered_reply();
        let is_newest = |unit: usize| newest == Some(unit) && reply != Some(unit);
        let tells = |offer: &UnitOffer| match offer.fate {
            UnitFate::Clipped(level) => level >= scrap || is_newest(offer.unit),
            _ => true,
        };
        offers.into_iter().map(clipped).filter(tells).collect()
    }

    /// Takes units in the order given while they fit; returns how many were taken.
    fn accept(&mut self, offers: impl Iterator<Item = UnitOffer>, room: Units) -> usize {
        let mut used = Units(0);
        let mut taken = 0;
        for offer in offers {
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
        let tokens = |units| self.scene.estimator.to_tokens(units);
        CompactError::InsufficientBudget {
            pinned_tokens: tokens(self.pinned),
            needed: tokens(needed),
            budget: Tokens(self.budget.0 / self.scene.estimator.units_per_token().max(1)),
        }
    }
}

impl PlanInput<'_> {
    /// What a unit costs as it is.
    pub(crate) fn cost(&self, unit: usize) -> Units {
        self.range(unit)
            .and_then(|r| self.costs.get(r))
            .map_or(Units(0), |costs| costs.iter().copied().sum())
    }

    /// The entries of a unit.
    pub(crate) fn entries(&self, unit: usize) -> &[Entry] {
        self.range(unit)
            .and_then(|r| self.conversation.entries.get(r))
            .unwrap_or_default()
    }

    /// What the smallest summary may take of a budget.
    fn least_summary_within(&self, budget: Units) -> Units {
        Units(budget.0 / LEAST_SUMMARY_PART).min(self.least_summary)
    }

    /// The units that hold what was said last. Of those, a reset keeps requests alone.
    pub(crate) fn newest_units(&self) -> Vec<usize> {
        let after = self.conversation.newest_start();
        let resets = self.policy.keep_recent == KeepRecent::None;
        let units = self.outline.units.iter().zip(self.pins).enumerate();
        units
            .filter(|(_, (unit, pin))| unit.is_sendable() && **pin != PinState::Repeated)
            .filter(|(_, (unit, _))| unit.entries.end > after)
            .filter(|(_, (unit, _))| !resets || unit.kind == UnitKind::User)
            .map(|(i, _)| i)
            .collect()
    }

    /// The pointer to entry `index`.
    pub(crate) fn pointer(&self, index: usize) -> ClipPointer<'_> {
        ClipPointer {
            receipt: self.receipt,
            ordinal: self.ordinals.get(index).copied().unwrap_or(index as u64),
        }
    }

    /// The entry at a place with every text cut to `level`.
    pub(crate) fn cut_entry(&self, at: usize, entry: &Entry, level: Units) -> CutEntry {
        let pointer = self.pointer(at);
        self.cuts
            .cut_entry((at, entry), level, self.estimator, pointer)
    }

    fn range(&self, unit: usize) -> Option<std::ops::Range<usize>> {
        self.outline.units.get(unit).map(|u| u.entries.clone())
    }

    /// The latest message of a person that is a message of the wire by itself: words that came with
    /// tool results do not begin a turn for every provider.
    fn latest_request(&self) -> Option<usize> {
        self.outline.units.iter().rposition(|unit| {
            let first = self.conversation.entries.get(unit.entries.start);
            unit.kind == UnitKind::User && first.is_some_and(|e| !e.meta.continues)
        })
    }

    /// The reply that the message at the end answers: without it "yes, go on" says nothing.
    fn answered_reply(&self) -> Option<usize> {
        let last = self.outline.units.len().checked_sub(1)?;
        let reply = last.checked_sub(1)?;
        let is_answered = self.kind(last) == Some(UnitKind::User);
        (is_answered && self.kind(reply) == Some(UnitKind::Message)).then_some(reply)
    }

    /// The reply that stands before the latest request.
    fn reply_before_request(&self) -> Option<usize> {
        let reply = self.latest_request()?.checked_sub(1)?;
        (self.kind(reply) == Some(UnitKind::Message)).then_some(reply)
    }

    /// What was said behind the first tool pair that is kept of the turn before the recent ones: a later message does
    /// not go where an earlier result stays.
    fn replies_behind(&self, kept: &[usize], counts: KeepCounts) -> Vec<usize> {
        let units = &self.outline.units;
        let last = units.last().map_or(0, |unit| unit.turn);
        let Some(before) = last.checked_sub(counts.turns as usize) else {
            return Vec::new();
        };
        let is_there = |unit: usize| units.get(unit).is_some_and(|unit| unit.turn == before);
        let is_pair = |unit: usize| self.kind(unit) == Some(UnitKind::Exchange);
        let pairs = kept.iter().copied();
        let Some(first) = pairs.filter(|unit| is_there(*unit) && is_pair(*unit)).min() else {
            return Vec::new();
        };
        let behind = (first..units.len()).take_while(|unit| is_there(*unit));
        behind
            .filter(|unit| self.kind(*unit) == Some(UnitKind::Message))
            .collect()
    }

    /// The request that waits for its answer; where turns have the room, also one that is worked on.
    fn pending(&self) -> Option<usize> {
        match self.summary_limit == Units(u64::MAX) {
            true => self.outline.units.len().checked_sub(1),
            false => self.latest_request(),
        }
    }

    /// Whether a unit is a message that a later one replaced, or the answer to it.
    fn is_fallen(&self, unit: usize) -> bool {
        let question = match self.kind(unit) {
            Some(UnitKind::User) => Some(unit),
            Some(UnitKind::Message) => unit.checked_sub(1),
            _ => None,
        };
        let entry = question
            .filter(|question| self.kind(*question) == Some(UnitKind::User))
            .and_then(|question| self.range(question))
            .and_then(|entries| self.ordinals.get(entries.start));
        entry.is_some_and(|ordinal| (self.has_fallen)(*ordinal))
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

    /// What the longest text of a unit costs.
    fn longest_block(&self, unit: usize) -> Units {
        let costs = self.range(unit).and_then(|r| self.costs.get(r));
        // An entry is no longer than its cost: most need no closer look.
        costs.map_or(Units(0), |c| c.iter().copied().max().unwrap_or_default())
    }

    /// The level for a unit where tools are cut to `level`.
    fn level_of(&self, unit: usize, level: Units) -> Units {
        match self.kind(unit) {
            Some(UnitKind::Exchange) => level,
            _ => Units(level.0 * WORDS_SHARE),
        }
    }

    /// About what a unit costs at a level.
    fn estimate_at_level(&self, unit: usize, level: Units) -> Units {
        let costs = self.range(unit).and_then(|r| self.costs.get(r));
        let costs = costs.unwrap_or_default().iter().zip(self.entries(unit));
        let least = |(cost, entry): (&Units, &Entry)| {
            let texts = entry.blocks.len().max(1) as u64;
            (*cost).min(Units(clip::level_for(entry, level).0.saturating_mul(texts)))
        };
        costs.map(least).sum()
    }

    /// A unit clipped so that it costs at most about `limit`.
    fn clipped(&self, unit: usize, limit: Units) -> (UnitFate, Units) {
        let fixed: Units = self
            .entries(unit)
            .iter()
            .map(|_| self.estimator.framing_units())
            .sum();
        let level = clip::water_level(&self.block_costs(unit), limit - fixed);
        self.clip_at_level(unit, level)
    }

    /// A unit with every text cut to `level`, and what it then costs.
    fn clip_at_level(&self, unit: usize, level: Units) -> (UnitFate, Units) {
        let start = self.range(unit).map_or(0, |r| r.start);
        let entries = self.entries(unit).iter().zip(start..);
        // By how much texts are cut: an entry may hold blocks that do not count.
        let saved = entries.map(|(entry, at)| self.cut_entry(at, entry, level).saved);
        let saved: Units = saved.sum();
        let cost = self.cost(unit) - saved;
        (UnitFate::Clipped(level), cost)
    }
}
