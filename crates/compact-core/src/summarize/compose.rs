//! From what could be told to what is told: orders, the user's words, then the best bargains among everything else,
//! and as much of it as fits.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::diff_table::DiffTable;
use super::fact_line::{self, FactLine, RuleSpan};
use super::file_state::FileStates;
use super::form::NameForms;
use super::layout;
use super::piece::{HeadForm, Piece, PieceForm, PieceHead, PieceTable, split_label};
use super::revoke::{self, RevokedRules};
use super::root::RootDirectory;
use super::select::{GreedyChoice, PieceOffer, ShownLevel};
use super::series::SeriesTable;
use super::speech::{self, QuotedMessage};
use super::template::{SectionRank, SectionTopic, StyleTemplate, SummarySize};
use super::trace::{self, AnswerLine, AnswerReader, TraceBuilder};
use super::weigh::{self, WeighedName};
use super::{RenderRequest, SummaryBody, SummaryNeighbours, ViewWords};
use crate::halves::{do_beside, map_in_halves};
use crate::ledger::scan_names;

/// Everything that a summary may be made of.
pub(super) struct SummaryMaterial<'m> {
    pub request: &'m RenderRequest<'m>,
    pub template: &'m StyleTemplate,
    pub size: SummarySize,
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
/// The share that the names of changed files may take before others are told.
const FILES_SHARE: f64 = 0.12;
/// Of a message, so many characters are told at least.
const LEAST_MESSAGE: usize = 200;
/// Texts cost different amounts: so much more is chosen than should fit, and the least of it is cut.
const OVERLAP: f64 = 1.1;
/// How many times as much a piece is worth in the section that its style is about.
const LEAD: f64 = 3.0;
/// How much the newest is worth beside the oldest.
const NEWEST: f64 = 1.3;
const OLDEST: f64 = 0.7;

/// Fewer pieces or excerpts are looked through before a second thread has begun.
const WORTH_A_THREAD: usize = 512;

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
        let (table, mut claims) = self.offer_pieces(&forms, chars);
        claims.first.extend(self.changed_files(&table, chars));
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
        let (others, taken) = choice.spend(0..table.pieces.len(), room);
        picks.extend(others);
        let freed = drop_shown_names(&table, &mut picks);
        let (more, _) = choice.spend(0..table.pieces.len(), room - taken + freed);
        picks.extend(more);
        self.write(&table, &picks)
    }

    /// All pieces, what was said before what was done, and what is told first of them.
    fn offer_pieces(&self, forms: &NameForms<'_>, chars: f64) -> (PieceTable, Claims) {
        let ledger = self.request.ledger;
        let files = FileStates::from_ledger(ledger, self.root);
        let diffs = DiffTable::from_ledger(ledger, self.root, &files);
        let reader = AnswerReader {
            ledger,
            root: self.root,
            files: &files,
            diffs: &diffs,
            forms,
        };
        let answers = reader.read_lines();
        let trace = || self.offer_trace(&reader, answers, chars);
        let words = || self.offer_words(chars);
        let (trace, (mut table, claims)) = match ledger.excerpts.len() < WORTH_A_THREAD {
            true => (trace(), words()),
            false => do_beside(trace, words),
        };
        table.append(trace);
        (table, claims)
    }

    /// What was said, and what is told first of it.
    fn offer_words(&self, chars: f64) -> (PieceTable, Claims) {
        let mut table = PieceTable::default();
        let claims = self.claim_words(&mut table, chars);
        self.push_words(&mut table);
        (table, claims)
    }

    /// What was done.
    fn offer_trace<'l>(
        &self,
        reader: &AnswerReader<'_, 'l>,
        answers: Vec<AnswerLine<'l>>,
        chars: f64,
    ) -> PieceTable {
        let mut table = PieceTable::default();
        let builder = TraceBuilder {
            table: &mut table,
            ledger: reader.ledger,
            template: self.template,
            root: reader.root,
            files: reader.files,
            diffs: reader.diffs,
            names: self.groups,
            opened: HashMap::default(),
            few_names: trace::count_few_names(chars),
            stated: self.stated_runs(),
            closings: trace::closing_ordinals(reader.ledger),
            series: SeriesTable::default(),
            offered: HashSet::default(),
            whole: &self.request.visible.entries,
            newest_changes: Vec::new(),
        };
        builder.push_all(answers);
        table
    }

    /// The user's messages that stand nowhere else: not in the view, and not as a rule for the session.
    fn unquoted_messages(&self) -> Vec<QuotedMessage<'_>> {
        let is_told = |l: &&FactLine| l.whole && l.topic.may_instruct() && !self.holds_for_step(l);
        let told = self.lines.iter().filter(is_told);
        let told: HashSet<u32> = told.map(|l| l.ordinal).collect();
        let mut messages = speech::user_messages(self.request.ledger, self.revoked);
        if self.request.company == SummaryNeighbours::AgentSummary {
            // There the room is small, and every rule stands before the messages.
            messages.iter_mut().for_each(|said| {
                said.text = fact_line::strip_rules(&self.request.ledger.facts, &said.text);
            });
            messages.retain(|said| said.text.chars().any(char::is_alphanumeric));
        }
        messages.retain(|said| {
            !told.contains(&said.fact.ordinal) && !self.words.has_message(&said.fact.text)
        });
        messages
    }

    /// Whether a rule is for the step at hand, and may stand in its message alone.
    fn holds_for_step(&self, line: &FactLine) -> bool {
        line.span == RuleSpan::Step && self.request.company != SummaryNeighbours::AgentSummary
    }

    /// Whether a rule for the step at hand is a message among the others: a request of its time is no standing rule, and
    /// what was said in passing does not come before what the user stated.
    fn competes(&self, line: &FactLine) -> bool {
        line.whole && self.holds_for_step(line)
    }

    /// Rules and goals, then the user's messages: all of them whole, or all of them cut alike, or the best of them.
    fn claim_words(&self, table: &mut PieceTable, chars: f64) -> Claims {
        let room = match self.size {
            SummarySize::Small => chars - self.orders_cost(),
            SummarySize::Full => chars * USER_SHARE,
        };
        let mut messages = self.unquoted_messages();
        let lengths = messages
            .iter()
            .map(|m| m.text.chars().count() + MESSAGE_FRAME);
        let most = equal_cut(&lengths.collect::<Vec<usize>>(), room);
        let whole = messages
            .iter()
            .filter(|m| most.is_some_and(|most| m.text.chars().count() <= most));
        let whole: HashSet<u32> = whole.map(|m| m.fact.ordinal).collect();
        // In a small summary messages and rules stand together: a sentence of one that is told whole is told.
        let in_message = |l: &FactLine| {
            let may_stand_there =
                self.holds_for_step(l) || self.size == SummarySize::Small && !l.whole;
            may_stand_there && l.about.is_none() && whole.contains(&l.ordinal)
        };
        let orders = self.lines.iter().filter(|l| {
            let is_told = self.competes(l) || in_message(l);
            l.topic.may_instruct() && !is_told
        });
        let orders: Vec<&FactLine> = orders.collect();
        messages.retain(|m| {
            !orders
                .iter()
                .any(|l| l.whole && l.ordinal == m.fact.ordinal)
        });
        let state = self.lines.iter().filter(|line| self.is_state(line));
        let first = orders
            .into_iter()
            .chain(state)
            .map(|line| push_line(table, line, 1.0, self.size));
        let mut claims = Claims {
            first: first.collect(),
            messages: Vec::new(),
            room,
        };
        self.claim_messages(table, &mut claims, &messages, most);
        claims
    }

    fn claim_messages(
        &self,
        table: &mut PieceTable,
        claims: &mut Claims,
        messages: &[QuotedMessage<'_>],
        most: Option<usize>,
    ) {
        // Where not all are told, the word that takes another one back must not lose to it.
        let revised = match most {
            Some(_) => Vec::new(),
            None => revoke::revised_messages(messages.iter().map(|said| said.text.as_str())),
        };
        let kept = messages.iter().enumerate();
        let kept = kept.filter(|(at, _)| !revised.contains(at));
        let messages: Vec<&QuotedMessage<'_>> = kept.map(|(_, said)| said).collect();
        let pieces: Vec<usize> = messages
            .iter()
            .map(|said| speech::push_message(table, said, most.unwrap_or(LEAST_MESSAGE), self.size))
            .collect();
        match most {
            Some(_) => {
                let newest = || pieces.iter().zip(&messages).rev();
                let said = |routine| newest().filter(move |(_, m)| (m.times > 1) == routine);
                let ordered = said(false).chain(said(true));
                claims.first.extend(ordered.map(|(piece, _)| piece));
            }
            None => {
                let newest = self.request.ledger.facts.requests.last();
                weigh_messages(table, &pieces, &messages, newest.map_or(0, |f| f.ordinal));
                claims.messages = pieces;
            }
        }
    }

    /// The names of the files that were changed, the newest first, as many as their share holds: whoever goes on must know
    /// them all, also those whose names the view shows for another reason.
    fn changed_files(&self, table: &PieceTable, chars: f64) -> Vec<usize> {
        if self.size == SummarySize::Small || self.template.rank(SectionTopic::Files).is_none() {
            return Vec::new();
        }
        let pieces = table.pieces.iter().enumerate();
        let is_file = |piece: &Piece| {
            let is_name = piece.place == 0 && piece.form == PieceForm::Text;
            is_name && table.topic_of(piece) == Some(SectionTopic::Files)
        };
        let mut files: Vec<(usize, &Piece)> = pieces.filter(|(_, p)| is_file(p)).collect();
        files.sort_by_key(|(_, piece)| Reverse(piece.ordinal));
        let mut seen = HashSet::new();
        files.retain(|(_, piece)| seen.insert(piece.head));
        let mut spent = 0.0;
        let fits = |(_, piece): &&(usize, &Piece)| -> bool {
            spent += (piece.cost() + table.head_cost(piece.head)) as f64;
            spent <= chars * FILES_SHARE
        };
        files.iter().take_while(fits).map(|(nth, _)| *nth).collect()
    }

    /// Whether a line says where the work stands, and comes before what was said; in a small summary the user's words
    /// do.
    fn is_state(&self, line: &FactLine) -> bool {
        self.size == SummarySize::Full && fact_line::is_state(line)
    }

    /// Characters that rules and goals take.
    fn orders_cost(&self) -> f64 {
        let orders = self.lines.iter();
        let orders = orders.filter(|l| l.topic.may_instruct() && !self.competes(l));
        orders.map(|l| l.text.chars().count() as f64 + 3.0).sum()
    }

    /// Lines of facts, and what the model said.
    fn push_words(&self, table: &mut PieceTable) {
        let others = self.lines.iter();
        for line in others.filter(|l| !l.topic.may_instruct() && !self.is_state(l)) {
            let worth = fact_line::topic_worth(line.topic, self.request.company);
            push_line(table, line, worth, SummarySize::Full);
        }
        if self.template.rank(SectionTopic::Story).is_some() {
            let ledger = self.request.ledger;
            speech::push_replies(table, ledger, self.template, self.root, self.words);
        }
    }

    /// The runs whose outcome stands in a section of its own.
    fn stated_runs(&self) -> HashSet<u32> {
        let topics = [SectionTopic::State, SectionTopic::Failures];
        let stated = self.lines.iter().filter(|l| topics.contains(&l.topic));
        stated.map(|line| line.ordinal).collect()
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
        let offers = map_in_halves(&table.pieces, WORTH_A_THREAD, offer);
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

/// Puts the line or sentence that shows a name in the name's place where both were chosen; returns the characters that
/// the names took.
fn drop_shown_names(table: &PieceTable, picks: &mut Vec<usize>) -> f64 {
    let mut shown_by: HashMap<&str, usize, FixedState> = HashMap::default();
    for nth in picks.iter() {
        let Some(piece) = table.pieces.get(*nth) else {
            continue;
        };
        if piece.form == PieceForm::Text {
            scan_names(&piece.text, &mut |_, _, name| {
                shown_by.entry(name).or_insert(*nth);
            });
        }
    }
    let mut freed = 0.0;
    let mut seen: HashSet<usize, FixedState> = HashSet::default();
    let chosen = std::mem::take(picks);
    for nth in chosen {
        let name = table.pieces.get(nth).filter(|p| p.form == PieceForm::Name);
        let shown = name.and_then(|piece| Some((piece, *shown_by.get(piece.text.as_str())?)));
        let nth = match shown {
            Some((piece, by)) => {
                freed += piece.cost() as f64;
                by
            }
            None => nth,
        };
        if seen.insert(nth) {
            picks.push(nth);
        }
    }
    freed
}

/// Characters around a message.
const MESSAGE_FRAME: usize = 12;

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
fn weigh_messages(
    table: &mut PieceTable,
    pieces: &[usize],
    messages: &[&QuotedMessage<'_>],
    newest: u32,
) {
    for ((nth, said), at) in pieces.iter().zip(messages).zip(0..) {
        let mut names = false;
        scan_names(&said.text, &mut |_, _, _| names = true);
        let digits = said.text.chars().any(|c| c.is_ascii_digit());
        let worth = match (at == 0 || said.fact.ordinal == newest, names || digits) {
            (true, _) => 8.0,
            (false, true) => 1.0,
            (false, false) => 0.4,
        };
        let worth = match (said.times > 1, split_label(&said.text).is_some()) {
            (true, _) => worth * ROUTINE,
            (false, true) => worth.max(1.0) * LABELLED,
            (false, false) => worth,
        };
        if let Some(piece) = table.pieces.get_mut(*nth) {
            piece.worth = worth;
        }
    }
}

/// What a message is worth that was sent over and over, and one that says what kind of statement it is.
const ROUTINE: f64 = 0.2;
const LABELLED: f64 = 1.5;

/// A fact as a bullet; returns its piece.
fn push_line(table: &mut PieceTable, line: &FactLine, worth: f64, size: SummarySize) -> usize {
    let (head, text) = match size {
        SummarySize::Small => {
            let text = line.text.trim_matches('"');
            table.open_statement(line.topic, line.ordinal, text)
        }
        SummarySize::Full => {
            let head = PieceHead {
                topic: line.topic,
                ordinal: line.ordinal,
                label: String::new(),
                form: HeadForm::Bullet,
            };
            (table.open(head), line.text.as_str())
        }
    };
    table.push(Piece {
        head,
        ordinal: line.ordinal,
        place: 0,
        text: text.to_owned(),
        worth,
        tells: 1.0,
        shows: match line.topic {
            SectionTopic::Steps | SectionTopic::Plan => ShownLevel::Bare,
            _ => ShownLevel::InContext,
        },
        about: line.about,
        form: PieceForm::Text,
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
