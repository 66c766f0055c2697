//! From what could be told to what is told: orders, the user's words, then the best bargains among everything else,
//! and as much of it as fits.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::fact_line::{self, FactLine};
use super::form::NameForms;
use super::layout;
use super::piece::{HeadForm, Piece, PieceHead, PieceTable};
use super::revoke::RevokedRules;
use super::root::RootDirectory;
use super::select::{GreedyChoice, PieceOffer, ShownLevel};
use super::speech::{self, QuotedMessage};
use super::template::{SectionRank, SectionTopic, StyleTemplate};
use super::trace::TraceBuilder;
use super::weigh::{self, WeighedName};
use super::{RenderRequest, SummaryBody, SummaryNeighbours, ViewWords};
use crate::ledger::scan_names;

/// Everything that a summary may be made of.
pub(super) struct SummaryMaterial<'m> {
    pub request: &'m RenderRequest<'m>,
    pub template: &'m StyleTemplate,
    pub root: &'m RootDirectory<'m>,
    pub revoked: &'m RevokedRules<'m>,
    pub words: &'m ViewWords,
    /// Names, the heaviest first.
    pub groups: &'m [WeighedName<'m>],
    /// Facts that have lines of their own.
    pub lines: Vec<FactLine>,
}

/// The share of the characters that the user's messages may take before others are told.
const USER_SHARE: f64 = 0.5;
/// Of a message, so many characters are told at least.
const LEAST_MESSAGE: usize = 200;
/// Texts cost different amounts: so much more is chosen than should fit, and the least of it is cut.
const OVERLAP: f64 = 1.1;
/// How many times as much a piece is worth in the section that its style is about.
const LEAD: f64 = 3.0;
/// How much the newest is worth beside the oldest.
const NEWEST: f64 = 1.3;
const OLDEST: f64 = 0.7;

/// What is told first, and everything else.
#[derive(Default)]
struct Claims {
    /// In this order, whatever it costs.
    first: Vec<usize>,
    /// Messages of the user that compete for their share.
    messages: Vec<usize>,
    room: f64,
}

impl SummaryMaterial<'_> {
    /// The summary of about `chars` characters that the budget holds.
    pub(super) fn compose(&self, chars: f64) -> SummaryBody {
        let forms = NameForms::from_names(self.groups);
        let mut table = PieceTable::default();
        let mut claims = self.claim_orders(&mut table);
        self.claim_messages(&mut table, &mut claims, chars);
        self.push_others(&mut table, &forms);
        let mut choice = self.choice(&table, &forms);
        claims.first.iter().for_each(|nth| choice.take(*nth));
        let cost = |nth: &usize| {
            let piece = table.pieces.get(*nth);
            piece.map_or(0, |p| p.cost() + table.head_cost(p.head)) as f64
        };
        let mut spent: f64 = claims.first.iter().map(cost).sum();
        let mut picks = claims.first;
        let (messages, taken) = choice.spend(claims.messages.into_iter(), claims.room);
        picks.extend(messages);
        spent += taken;
        let room = (chars * OVERLAP - spent).max(0.0);
        let (others, _) = choice.spend(0..table.pieces.len(), room);
        picks.extend(others);
        self.write(&table, &picks)
    }

    /// Rules and goals.
    fn claim_orders(&self, table: &mut PieceTable) -> Claims {
        let mut claims = Claims::default();
        for line in self.lines.iter().filter(|l| l.topic.may_instruct()) {
            claims.first.push(push_line(table, line, 1.0));
        }
        claims
    }

    /// The user's messages: all of them whole, or all of them cut alike, or the best of them.
    fn claim_messages(&self, table: &mut PieceTable, claims: &mut Claims, chars: f64) {
        let told: HashSet<u32> = self
            .lines
            .iter()
            .filter(|l| l.whole && l.topic.may_instruct())
            .map(|l| l.ordinal)
            .collect();
        let mut messages = speech::user_messages(self.request.ledger, self.revoked);
        if self.request.company == SummaryNeighbours::AgentSummary {
            // There the room is small, and every rule stands before the messages.
            messages.iter_mut().for_each(|said| {
                said.text = fact_line::strip_rules(&self.request.ledger.facts, &said.text);
            });
            messages.retain(|said| said.text.chars().any(char::is_alphanumeric));
        }
        messages.retain(|said| {
            !told.contains(&said.fact.ordinal) && !self.words.has_message(&said.text)
        });
        claims.room = chars * USER_SHARE;
        let lengths: Vec<usize> = messages
            .iter()
            .map(|m| m.text.chars().count() + MESSAGE_FRAME)
            .collect();
        let most = equal_cut(&lengths, claims.room);
        let pieces: Vec<usize> = messages
            .iter()
            .map(|said| speech::push_message(table, said, most.unwrap_or(LEAST_MESSAGE)))
            .collect();
        match most {
            Some(_) => claims.first.extend(pieces.iter().rev()),
            None => {
                weigh_messages(table, &pieces, &messages);
                claims.messages = pieces;
            }
        }
    }

    fn push_others(&self, table: &mut PieceTable, forms: &NameForms<'_>) {
        for line in self.lines.iter().filter(|l| !l.topic.may_instruct()) {
            let worth = fact_line::topic_worth(line.topic, self.request.company);
            push_line(table, line, worth);
        }
        let is_shown = |text: &str| self.words.has_message(text);
        let ledger = self.request.ledger;
        if self.template.rank(SectionTopic::Story).is_some() {
            speech::push_replies(table, ledger, self.template, &is_shown);
        }
        TraceBuilder {
            table,
            ledger,
            template: self.template,
            root: self.root,
            forms,
        }
        .push_all();
    }

    fn choice(&self, table: &PieceTable, forms: &NameForms<'_>) -> GreedyChoice {
        let last = (self.request.ledger.next.max(2) - 1) as f64;
        let offer = |piece: &Piece| {
            let topic = table.topic_of(piece);
            let factor = match topic.and_then(|topic| self.template.rank(topic)) {
                Some(SectionRank::Lead) => LEAD,
                Some(SectionRank::Plain | SectionRank::Protected) => 1.0,
                None => 0.0,
            };
            let age = f64::from(piece.ordinal) / last;
            let fresh = OLDEST + (NEWEST - OLDEST) * age;
            let label = table.heads.get(piece.head).map_or("", |h| h.label.as_str());
            let mut shows = named_in(&piece.text, forms, piece.shows);
            if factor == 0.0 {
                shows.clear();
            } else if piece.place == 0 {
                shows.extend(named_in(label, forms, ShownLevel::Bare));
            }
            PieceOffer {
                head: piece.head,
                worth: piece.worth * factor * fresh,
                tells: piece.tells,
                cost: piece.cost() as f64,
                opening: table.head_cost(piece.head) as f64,
                shows,
            }
        };
        let offers = table.pieces.iter().map(offer).collect();
        let weights = self.groups.iter().map(|g| g.weight).collect();
        let shown = shown_elsewhere(self.request, forms, self.groups.len());
        GreedyChoice::new(offers, table.heads.len(), weights, shown)
    }

    /// What was chosen as a text that fits.
    fn write(&self, table: &PieceTable, picks: &[usize]) -> SummaryBody {
        let write = |n: usize| {
            let picks = picks.get(..n).unwrap_or_default();
            layout::write_summary(self.template, self.root.name(), table, picks)
        };
        let sizes: Vec<usize> = picks
            .iter()
            .filter_map(|nth| table.pieces.get(*nth))
            .map(|piece| piece.text.len() + 8)
            .collect();
        longest_fitting(self.request, write, &sizes)
    }
}

/// Characters around a message.
const MESSAGE_FRAME: usize = 16;

/// The most characters of a message with which all of them fit the room; `None` when even short ones do not.
fn equal_cut(lengths: &[usize], room: f64) -> Option<usize> {
    let total = |most: usize| lengths.iter().map(|n| (*n).min(most)).sum::<usize>() as f64;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if total(longest) <= room {
        return Some(longest);
    }
    let fits = |most: &usize| total(*most) <= room;
    let levels = (0..24).map(|step| longest * (24 - step) / 24);
    levels.take_while(|most| *most >= LEAST_MESSAGE).find(fits)
}

/// The first and the last message come before others, and what names something or rules before what does not.
fn weigh_messages(table: &mut PieceTable, pieces: &[usize], messages: &[QuotedMessage<'_>]) {
    let last = pieces.len().saturating_sub(1);
    for ((nth, said), at) in pieces.iter().zip(messages).zip(0..) {
        let mut names = false;
        scan_names(&said.text, &mut |_, _, _| names = true);
        let digits = said.text.chars().any(|c| c.is_ascii_digit());
        let worth = match (at == 0 || at == last, names || digits) {
            (true, _) => 8.0,
            (false, true) => 1.0,
            (false, false) => 0.4,
        };
        if let Some(piece) = table.pieces.get_mut(*nth) {
            piece.worth = worth;
        }
    }
}

/// A fact as a bullet; returns its piece.
fn push_line(table: &mut PieceTable, line: &FactLine, worth: f64) -> usize {
    let head = table.open(PieceHead {
        topic: line.topic,
        ordinal: line.ordinal,
        label: String::new(),
        form: HeadForm::Bullet,
    });
    table.push(Piece {
        head,
        ordinal: line.ordinal,
        place: 0,
        text: line.text.clone(),
        worth,
        tells: 1.0,
        shows: match line.topic {
            SectionTopic::Steps | SectionTopic::Plan => ShownLevel::Bare,
            _ => ShownLevel::InContext,
        },
        about: line.about,
    });
    table.pieces.len() - 1
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

/// A text that was cut shows the names in it barely, and prose too, since it may have got the context wrong.
fn shown_elsewhere(
    request: &RenderRequest<'_>,
    forms: &NameForms<'_>,
    groups: usize,
) -> Vec<ShownLevel> {
    let mut shown = vec![ShownLevel::No; groups];
    let texts = request.visible.cut.iter().map(String::as_str);
    let texts = texts.chain([request.prose]);
    for (group, shows) in texts.flat_map(|text| named_in(text, forms, ShownLevel::Bare)) {
        if let Some(state) = shown.get_mut(group as usize) {
            *state = shows.max(*state);
        }
    }
    shown
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
