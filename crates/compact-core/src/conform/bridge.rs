//! Bridges: a few words where a wire's order of roles needs someone to speak.
//!
//! A bridge gives no order and claims nothing; it says that something stood here. Bridges of an
//! earlier view are used again where they still fit and left out where they do not.

use crate::message::{Block, Conversation, Entry, EntryKind, Role};
use crate::outline::{Outline, UnitHealth};
use crate::token::{Estimator, EstimatorExt, Units};
use crate::view::{View, ViewItem};
use crate::wire::{InstructionRule, ReasoningRule, WireRules};

use super::reasoning;

/// What a bridge says. Formats know it again by these words.
pub const BRIDGE: &str = "[messages left out here; the summary covers them]";

/// What bridges may cost, so that a plan can set it aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BridgeReserve {
    /// For each unit that stays.
    pub each: Units,
    /// For each instruction within the history.
    pub instruction: Units,
    /// Once.
    pub once: Units,
}

/// What a wire's bridges cost at most.
pub(crate) fn reserve(rules: &WireRules, estimator: &dyn Estimator) -> BridgeReserve {
    let times = |n: u64| Units(estimator.count_message(BRIDGE).0 * n);
    let loop_end = if rules.reasoning == ReasoningRule::StripOutsideLoop {
        2
    } else {
        0
    };
    BridgeReserve {
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
    let mut road = BridgeBuilder::new(conversation, outline, rules);
    for item in view.items {
        road.push_item(item);
    }
    road.finish_view(is_whole);
    View { items: road.items }
}

/// Who speaks, as far as order is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpeakerKind {
    User,
    Tool,
    Model,
    Instruction,
}

/// What stands last on the road.
#[derive(Clone, Copy)]
struct Speaker {
    side: SpeakerKind,
    entry: Option<usize>,
}

struct BridgeBuilder<'a> {
    conversation: &'a Conversation,
    outline: &'a Outline,
    rules: &'a WireRules,
    items: Vec<ViewItem>,
    last: Option<Speaker>,
    /// Bridges of an earlier view that stood here.
    spare: Vec<(Role, ViewItem)>,
    count: usize,
}

impl<'a> BridgeBuilder<'a> {
    fn new(conversation: &'a Conversation, outline: &'a Outline, rules: &'a WireRules) -> Self {
        BridgeBuilder {
            conversation,
            outline,
            rules,
            items: Vec::new(),
            last: None,
            spare: Vec::new(),
            count: 0,
        }
    }

    fn push_item(&mut self, item: ViewItem) {
        let Some(shown) = item.shown_entry(self.conversation) else {
            return;
        };
        if is_bridge(&shown) {
            self.spare.push((shown.role, item));
            return;
        }
        if self.last.is_none() && shown.role.is_instruction() && self.is_leading_item(&item) {
            self.items.push(item);
            return;
        }
        let stop = Speaker {
            side: speaker_kind(&shown),
            entry: item.entry_index(),
        };
        for role in self.roles_before(stop, &shown) {
            self.push_bridge(*role);
        }
        self.spare.clear();
        self.items.push(item);
        // Instructions are no turn of their own where they may stand anywhere.
        if stop.side != SpeakerKind::Instruction
            || self.rules.instructions == InstructionRule::AfterUser
        {
            self.last = Some(stop);
        }
    }

    /// True for instructions before the history, where they need nobody to speak before them.
    fn is_leading_item(&self, item: &ViewItem) -> bool {
        self.rules.instructions == InstructionRule::Anywhere
            || item
                .entry_index()
                .is_none_or(|entry| entry < self.conversation.leading_instructions())
    }

    /// Who must speak before `next` does.
    fn roles_before(&self, next: Speaker, shown: &Entry) -> &'static [Role] {
        let Some(last) = self.last else {
            let opens =
                next.side == SpeakerKind::User || shown.meta.kind == EntryKind::ForeignSummary;
            let missing = match next.side {
                SpeakerKind::Instruction => self.rules.instructions == InstructionRule::AfterUser,
                _ => self.rules.opens_with_user && !opens,
            };
            return if missing { &[Role::User] } else { &[] };
        };
        if self.is_joined(last, next, shown) {
            return &[];
        }
        match (last.side, next.side) {
            (_, SpeakerKind::Instruction)
                if self.rules.instructions == InstructionRule::Anywhere =>
            {
                &[]
            }
            (SpeakerKind::Model, SpeakerKind::Instruction) => &[Role::User],
            (SpeakerKind::Instruction, SpeakerKind::User | SpeakerKind::Tool) => &[Role::Assistant],
            (SpeakerKind::Instruction, SpeakerKind::Instruction) => &[Role::Assistant, Role::User],
            (SpeakerKind::User | SpeakerKind::Tool, SpeakerKind::User)
                if self.rules.alternation =>
            {
                &[Role::Assistant]
            }
            (SpeakerKind::Model, SpeakerKind::Model) if self.rules.alternation => &[Role::User],
            _ => &[],
        }
    }

    /// True for two entries of one message or one unit: nothing may come between them.
    fn is_joined(&self, last: Speaker, next: Speaker, shown: &Entry) -> bool {
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
    fn finish_view(&mut self, loop_is_whole: bool) {
        let waits = self
            .outline
            .units
            .iter()
            .any(|unit| unit.health == UnitHealth::Open);
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
            SpeakerKind::Model if self.rules.ends_with_user && !ended_so => {
                self.push_bridge(Role::User)
            }
            SpeakerKind::Model => {}
            _ if loop_is_whole => {}
            _ => {
                self.push_bridge(Role::Assistant);
                self.push_bridge(Role::User);
            }
        }
    }

    fn push_bridge(&mut self, role: Role) {
        let spare = self.spare.iter().position(|(r, _)| *r == role);
        let item = match spare {
            Some(at) => self.spare.remove(at).1,
            None => ViewItem::New(self.new_bridge(role)),
        };
        self.items.push(item);
    }

    fn new_bridge(&mut self, role: Role) -> Entry {
        self.count += 1;
        let mut entry = Entry::from_text(format!("bridge-{}", self.count), role, BRIDGE);
        entry.meta.kind = EntryKind::Injected;
        entry
    }
}

fn speaker_kind(entry: &Entry) -> SpeakerKind {
    match entry.role {
        Role::System | Role::Developer => SpeakerKind::Instruction,
        Role::Assistant => SpeakerKind::Model,
        _ if entry.has_results() => SpeakerKind::Tool,
        Role::User | Role::Tool => SpeakerKind::User,
    }
}

fn is_bridge(entry: &Entry) -> bool {
    entry.meta.kind == EntryKind::Injected
        && matches!(entry.blocks.as_slice(), [Block::Text(text)] if text == BRIDGE)
}
