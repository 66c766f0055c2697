//! Bridges: a few words where a wire's order of roles needs someone to speak.
//!
//! A bridge gives no order and claims nothing; it says that something stood here. Bridges of an
//! earlier view are used again where they still fit and left out where they do not.

use crate::message::{Block, Conversation, Entry, EntryKind, Role};
use crate::outline::{Health, Outline};
use crate::token::{Estimator, EstimatorExt, Units};
use crate::view::{View, ViewItem};
use crate::wire::{InstructionRule, ReasoningRule, WireRules};

use super::reasoning;

/// What a bridge says. Formats know it again by these words.
pub const BRIDGE: &str = "[messages left out here; the summary covers them]";

/// What bridges may cost, so that a plan can set it aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// For each unit that stays.
    pub each: Units,
    /// For each instruction within the history.
    pub instruction: Units,
    /// Once.
    pub once: Units,
}

/// What a wire's bridges cost at most.
pub fn reserve(rules: &WireRules, estimator: &dyn Estimator) -> Reserve {
    let times = |n: u64| Units(estimator.message(BRIDGE).0 * n);
    let loop_end = if rules.reasoning == ReasoningRule::StripOutsideLoop {
        2
    } else {
        0
    };
    Reserve {
        each: times(u64::from(rules.alternation)),
        instruction: times(match rules.instructions {
            InstructionRule::Anywhere => 0,
            InstructionRule::AfterUser => 2,
        }),
        once: times(
            u64::from(rules.alternation)
                + u64::from(rules.opens_with_user)
                + u64::from(rules.ends_with_user)
                + loop_end,
        ),
    }
}

/// Inserts the bridges that the wire's order needs.
pub(super) fn insert(
    view: View,
    conversation: &Conversation,
    outline: &Outline,
    rules: &WireRules,
) -> View {
    let order_matters = rules.alternation
        || rules.opens_with_user
        || rules.ends_with_user
        || rules.instructions != InstructionRule::Anywhere
        || rules.reasoning == ReasoningRule::StripOutsideLoop;
    if !order_matters {
        return view;
    }
    let is_whole = reasoning::loop_is_whole(&view, conversation, outline, rules);
    let mut road = Road::new(conversation, outline, rules);
    for item in view.items {
        road.go_on(item);
    }
    road.arrive(is_whole);
    View { items: road.items }
}

/// Who speaks, as far as order is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    User,
    Tool,
    Model,
    Instruction,
}

/// What stands last on the road.
#[derive(Clone, Copy)]
struct Stop {
    side: Side,
    entry: Option<usize>,
}

struct Road<'a> {
    conversation: &'a Conversation,
    outline: &'a Outline,
    rules: &'a WireRules,
    items: Vec<ViewItem>,
    last: Option<Stop>,
    /// Bridges of an earlier view that stood here.
    spare: Vec<(Role, ViewItem)>,
    count: usize,
}

impl<'a> Road<'a> {
    fn new(conversation: &'a Conversation, outline: &'a Outline, rules: &'a WireRules) -> Self {
        Road {
            conversation,
            outline,
            rules,
            items: Vec::new(),
            last: None,
            spare: Vec::new(),
            count: 0,
        }
    }

    fn go_on(&mut self, item: ViewItem) {
        let Some(shown) = item.shown(self.conversation) else {
            return;
        };
        if is_bridge(&shown) {
            self.spare.push((shown.role, item));
            return;
        }
        if self.last.is_none() && shown.role.is_instruction() && self.leads(&item) {
            self.items.push(item);
            return;
        }
        let stop = Stop {
            side: side(&shown),
            entry: item.entry(),
        };
        for role in self.between(stop, &shown) {
            self.bridge(*role);
        }
        self.spare.clear();
        self.items.push(item);
        // Instructions are no turn of their own where they may stand anywhere.
        if stop.side != Side::Instruction || self.rules.instructions == InstructionRule::AfterUser {
            self.last = Some(stop);
        }
    }

    /// True for instructions before the history, where they need nobody to speak before them.
    fn leads(&self, item: &ViewItem) -> bool {
        self.rules.instructions == InstructionRule::Anywhere
            || item
                .entry()
                .is_none_or(|entry| entry < self.conversation.leading_instructions())
    }

    /// Who must speak before `next` does.
    fn between(&self, next: Stop, shown: &Entry) -> &'static [Role] {
        let Some(last) = self.last else {
            let opens = next.side == Side::User || shown.meta.kind == EntryKind::ForeignSummary;
            let missing = match next.side {
                Side::Instruction => self.rules.instructions == InstructionRule::AfterUser,
                _ => self.rules.opens_with_user && !opens,
            };
            return if missing { &[Role::User] } else { &[] };
        };
        if self.is_joined(last, next, shown) {
            return &[];
        }
        match (last.side, next.side) {
            (_, Side::Instruction) if self.rules.instructions == InstructionRule::Anywhere => &[],
            (Side::Model, Side::Instruction) => &[Role::User],
            (Side::Instruction, Side::User | Side::Tool) => &[Role::Assistant],
            (Side::Instruction, Side::Instruction) => &[Role::Assistant, Role::User],
            (Side::User | Side::Tool, Side::User) if self.rules.alternation => &[Role::Assistant],
            (Side::Model, Side::Model) if self.rules.alternation => &[Role::User],
            _ => &[],
        }
    }

    /// True for two entries of one message or one unit: nothing may come between them.
    fn is_joined(&self, last: Stop, next: Stop, shown: &Entry) -> bool {
        let (Some(a), Some(b)) = (last.entry, next.entry) else {
            return false;
        };
        if shown.meta.continues && a + 1 == b {
            return true;
        }
        let unit = |entry: usize| {
            self.outline
                .units
                .partition_point(|u| u.entries.end <= entry)
        };
        unit(a) == unit(b)
    }

    /// The end of the view: a loop that cannot go on is closed, and a person speaks last.
    fn arrive(&mut self, loop_is_whole: bool) {
        let waits = self
            .outline
            .units
            .iter()
            .any(|unit| unit.health == Health::Open);
        let Some(last) = self.last.filter(|_| !waits) else {
            return;
        };
        let ended_so = self
            .conversation
            .entries
            .iter()
            .rev()
            .find(|e| !is_bridge(e))
            .is_some_and(|e| e.role == Role::Assistant);
        match last.side {
            Side::Model if self.rules.ends_with_user && !ended_so => self.bridge(Role::User),
            Side::Model => {}
            _ if loop_is_whole => {}
            _ => {
                self.bridge(Role::Assistant);
                self.bridge(Role::User);
            }
        }
    }

    fn bridge(&mut self, role: Role) {
        let spare = self.spare.iter().position(|(r, _)| *r == role);
        let item = match spare {
            Some(at) => self.spare.remove(at).1,
            None => ViewItem::New(self.new_bridge(role)),
        };
        self.items.push(item);
    }

    fn new_bridge(&mut self, role: Role) -> Entry {
        self.count += 1;
        let mut entry = Entry::text(format!("bridge-{}", self.count), role, BRIDGE);
        entry.meta.kind = EntryKind::Injected;
        entry
    }
}

fn side(entry: &Entry) -> Side {
    match entry.role {
        Role::System | Role::Developer => Side::Instruction,
        Role::Assistant => Side::Model,
        _ if entry.has_results() => Side::Tool,
        Role::User | Role::Tool => Side::User,
    }
}

fn is_bridge(entry: &Entry) -> bool {
    entry.meta.kind == EntryKind::Injected
        && matches!(entry.blocks.as_slice(), [Block::Text(text)] if text == BRIDGE)
}
