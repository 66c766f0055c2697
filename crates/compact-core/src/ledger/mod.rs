//! The ledger: what a session has established, drawn from its entries, each fact with its source.
//!
//! Deterministic, incremental and mergeable: `ledger(a + b) == merge(ledger(a), ledger(b))` at
//! exchange boundaries. Links between facts (error → fix, superseded rule) resolve at render.
//! Names are found by a byte scanner; the text around their newest mentions is kept as excerpts.

mod answer;
mod call_field;
mod check;
mod cue;
mod diffed_file;
mod draw;
mod edit_lines;
mod entity;
mod excerpt;
mod fact;
mod file;
mod language;
mod reading;
mod revocation;
mod scan;
mod sentence;
mod task;
mod withdrawal;

#[cfg(test)]
mod tests;

use std::borrow::{Borrow, Cow};
use std::hash::BuildHasher;

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

pub use check::FailedRun;
pub use diffed_file::DiffedFile;
pub use entity::{BlockPlace, Entity, Mention, Voice};
pub use excerpt::Excerpt;
pub use fact::{Fact, Facts, PlanStep, TaskPlan, ToolRun, ToolRunOutcome};
pub use file::{FileAct, FileChange, FileFact};
pub use scan::{NameKind, scan_names};
pub use task::{BackgroundTask, ShownEnd, TaskEnd};

pub(crate) use cue::{
    complains, is_change, is_completion, is_decision, is_exception, is_lifting, is_own_order,
    is_postponement, is_prohibition, is_release, is_replacement, is_revision, is_standing_rule,
    reports_failure, reports_pass, reports_passing, rule_label,
};
pub(crate) use diffed_file::may_show_diff;
pub(crate) use edit_lines::{comment_text, is_document, is_import, is_test_file};
pub(crate) use language::is_unspaced;
pub(crate) use revocation::{DoubtfulWithdrawal, Revocations, RevokedStatement};
pub(crate) use sentence::{clip, find_phrase, has_sentence, split_sentences};
pub(crate) use withdrawal::Withdrawal;

use crate::message::Entry;
use excerpt::ExcerptWindow;
use reading::BlockReading;

/// Everything known about a session so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The ordinal that the next entry will get.
    pub next: u64,
    /// Names by first appearance.
    pub entities: Vec<Entity>,
    /// The text around their newest mentions, in order of the session.
    pub excerpts: Vec<Excerpt>,
    /// Typed facts.
    pub facts: Facts,
}

impl Ledger {
    /// Draws the facts of `entries`, whose first one has ordinal `first` in its session.
    pub fn from_entries<E: Borrow<Entry>>(entries: &[E], first: u64) -> Ledger {
        let mut names = NameTable::default();
        let mut facts = fact::FactCollector::default();
        let mut readings = KeptReadings::default();
        for (entry, ordinal) in entries.iter().map(E::borrow).zip(first..) {
            for (block, part) in entry.blocks.iter().zip(0..) {
                if let Some(reading) = reading::read_block(entry, block)
                    && facts.collect_block(ordinal as u32, entry, part, block, &reading)
                {
                    let ordinal = ordinal as u32;
                    names.take(ordinal, part, &reading);
                    readings.keep(BlockPlace { ordinal, part }, reading);
                }
            }
        }
        let mut entities = names.entities;
        let excerpts = cut_excerpts(entries, first, readings, &mut entities);
        Ledger {
            next: first + entries.len() as u64,
            entities,
            excerpts,
            facts: facts.finish(),
        }
    }

    /// Adds a later ledger to this one.
    pub fn merge(&mut self, later: Ledger) {
        let next = self.next.max(later.next);
        if self.is_blank() {
            *self = Ledger { next, ..later };
            return;
        }
        let mut names = NameTable::from_entities(std::mem::take(&mut self.entities));
        let mut changed = excerpt::BlockPlaces::default();
        for entity in later.entities {
            names.absorb(entity, &mut changed);
        }
        self.entities = names.entities;
        self.excerpts.extend(later.excerpts);
        excerpt::recut(&self.entities, &changed, &mut self.excerpts);
        self.facts.merge(later.facts);
        self.next = next;
    }

    /// Leaves only the names whose indices are `wanted`, and the text around them.
    pub(crate) fn retain(&mut self, wanted: impl Fn(usize) -> bool) {
        let mut changed = excerpt::BlockPlaces::default();
        let mut nth = 0..;
        self.entities.retain(|entity| {
            let stays = nth.next().is_some_and(&wanted);
            if !stays {
                changed.extend(entity.mentions().map(|m| m.place));
            }
            stays
        });
        excerpt::recut(&self.entities, &changed, &mut self.excerpts);
    }

    /// True while nothing has been drawn.
    fn is_blank(&self) -> bool {
        self.entities.is_empty() && self.facts == Facts::default()
    }
}

/// The names seen so far, found by their hash.
#[derive(Default)]
struct NameTable {
    entities: Vec<Entity>,
    /// Where in `entities` a name stands.
    places: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
}

impl NameTable {
    /// Names that are known already, each once.
    fn from_entities(entities: Vec<Entity>) -> NameTable {
        let mut names = NameTable {
            places: HashTable::with_capacity(entities.len()),
            entities,
            ..NameTable::default()
        };
        for i in 0..names.entities.len() as u32 {
            let hash = hash_name(&names.entities, &names.hasher, i);
            names.place(hash, i);
        }
        names
    }

    fn take(&mut self, ordinal: u32, part: u16, reading: &BlockReading<'_>) {
        let text = &*reading.text;
        scan_names(text, &mut |kind, start, name| {
            // What a call's arguments are named is the agent's own choice of words; what the keys of an
            // answer are named says little.
            let key = reading.keyed && reading.voice != Voice::Call && is_key(text, start, name);
            if name.len() > 200 || key {
                return;
            }
            if reading.voice == Voice::Tool
                && kind == NameKind::Number
                && !is_value(text, start, name)
            {
                return;
            }
            let entity = self.entity(name, kind, ordinal);
            entity.kind = entity.kind.min(kind);
            if kind == NameKind::Ident && is_defined(text, start) {
                entity.defined = Some(ordinal);
            }
            let mention = Mention {
                place: BlockPlace { ordinal, part },
                start: start as u32,
                before: 0,
                after: 0,
            };
            entity.add_mention(reading.voice, mention);
        });
    }

    /// The entity of a name, made if there is none.
    fn entity(&mut self, name: &str, kind: NameKind, ordinal: u32) -> &mut Entity {
        let hash = self.hasher.hash_one(name);
        let is_it = |i: &u32| {
            let known = self.entities.get(*i as usize);
            known.is_some_and(|entity| &*entity.text == name)
        };
        let index = match self.places.find(hash, is_it) {
            Some(i) => *i as usize,
            None => {
                let i = self.entities.len();
                self.entities.push(Entity::new(name, kind, ordinal));
                self.place(hash, i as u32);
                i
            }
        };
        // `index` was just found or pushed.
        #[allow(clippy::indexing_slicing)]
        &mut self.entities[index]
    }

    /// Notes where an entity stands whose name has this hash.
    fn place(&mut self, hash: u64, i: u32) {
        let (entities, hasher) = (&self.entities, &self.hasher);
        let rehash = |i: &u32| hash_name(entities, hasher, *i);
        self.places.insert_unique(hash, i, rehash);
    }

    /// Takes a later entity; where it adds to one that is known, the places of both have changed.
    fn absorb(&mut self, later: Entity, changed: &mut excerpt::BlockPlaces) {
        let known = self.entity(&later.text, later.kind, later.first);
        if known.mentions().next().is_none() {
            *known = later;
        } else {
            changed.extend(known.mentions().chain(later.mentions()).map(|m| m.place));
            known.absorb(&later);
        }
    }
}

/// The hash of the name of an entity.
fn hash_name(entities: &[Entity], hasher: &foldhash::fast::FixedState, i: u32) -> u64 {
    let name = entities.get(i as usize).map_or("", |entity| &entity.text);
    hasher.hash_one(name)
}

/// A key of flattened JSON: it opens a line, or follows the tool's name, and a colon comes after it.
fn is_key(text: &str, start: usize, name: &str) -> bool {
    let head = text.get(..start).unwrap_or("");
    let opens = match head.chars().next_back() {
        None | Some('\n') => true,
        Some(' ') => head.len() < 64 && !head.trim_end().contains([' ', '\n']),
        Some(_) => false,
    };
    opens
        && text
            .get(start + name.len()..)
            .is_some_and(|rest| rest.starts_with(": "))
}

/// Whether the name of a new thing stands after this word of a programming language.
fn is_definer(word: &str) -> bool {
    matches!(
        word,
        "fn" | "def"
            | "func"
            | "function"
            | "class"
            | "struct"
            | "enum"
            | "trait"
            | "interface"
            | "type"
    )
}

/// What such words end in.
const DEFINER_ENDS: &[u8] = b"nfcstme";

/// Whether this word may stand before such a one.
fn is_modifier(word: &str) -> bool {
    matches!(
        word,
        "pub"
            | "export"
            | "default"
            | "async"
            | "static"
            | "public"
            | "private"
            | "protected"
            | "internal"
            | "abstract"
            | "final"
            | "sealed"
            | "override"
            | "unsafe"
            | "const"
            | "extern"
            | "declare"
            | "inline"
    )
}

/// Whether the name at `start` is being defined: `fn name`, `class Name`, `func (r *Receiver) Name`, at
/// the start of a line or after its number or mark. "expected struct Name" is a complaint.
fn is_defined(text: &str, start: usize) -> bool {
    let head = text.get(..start).unwrap_or("");
    // Nearly every name is somewhere else, which two bytes tell.
    let [.., last, b' ' | b'\t'] = head.as_bytes() else {
        return false;
    };
    if !DEFINER_ENDS.contains(last) && *last != b')' {
        return false;
    }
    let head = head.trim_end_matches([' ', '\t']);
    let head = match head.strip_suffix(')') {
        None => head,
        Some(receiver) => match receiver
            .rfind(['(', '\n', ')'])
            .map(|at| receiver.split_at(at))
        {
            Some((head, receiver)) if receiver.starts_with('(') => head.trim_end(),
            _ => return false,
        },
    };
    let (mut head, word) = last_word(head);
    if !is_definer(word) {
        return false;
    }
    loop {
        head = head.trim_end_matches([' ', '\t']);
        let visibility = head.trim_end_matches(|c: char| c.is_ascii_lowercase() || c == ')');
        let (before, word) = match visibility.strip_suffix("pub(") {
            Some(before) => (before, "pub"),
            None => last_word(head),
        };
        if !is_modifier(word) {
            return word.is_empty() && opens_line(head);
        }
        head = before;
    }
}

/// Whether a line defines something, as code does a function or a type, by whatever name.
pub(crate) fn defines(line: &str) -> bool {
    let Some(end) = definer_end(line) else {
        return false;
    };
    let behind = line.get(end..).unwrap_or("");
    let behind = match behind.trim_start().strip_prefix('(') {
        None => behind,
        Some(receiver) => receiver.split_once(')').map_or("", |(_, name)| name),
    };
    let name = behind.trim_start();
    let start = line.len() - name.len();
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && is_code_behind(name)
        && is_defined(line, start)
}

/// Where the first word of a line ends after which the name of a new thing may stand.
fn definer_end(line: &str) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut end = 0;
    for word in line.as_bytes().split(|byte| !is_part(byte)) {
        end += word.len();
        let may_be = word.last().is_some_and(|last| DEFINER_ENDS.contains(last));
        if may_be && line.get(end - word.len()..end).is_some_and(is_definer) {
            return Some(end);
        }
        end += 1;
    }
    None
}

/// Whether what follows the name of a new thing is code, and not the rest of a sentence.
fn is_code_behind(name: &str) -> bool {
    let words = name.split_whitespace().count();
    words == 1
        || words == 2 && !name.ends_with('.')
        || name.contains(['(', '{', '<', '=', ';', ':'])
}

/// A text before its last word, and the word.
fn last_word(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = text.trim_end_matches(is_part);
    (before, text.get(before.len()..).unwrap_or(""))
}

/// Whether a statement may begin after this: nothing, a line break, a line's number, a mark of a patch.
fn opens_line(head: &str) -> bool {
    match head.strip_suffix(':') {
        Some(number) => number.ends_with(|c: char| c.is_ascii_digit()),
        None => {
            head.is_empty() || head.ends_with(['\n', '\r', '→', '|', '+', '-', '@', '{', '}', ';'])
        }
    }
}

/// Numbers in tool output are mostly offsets and counts: short ones must stand as a value.
fn is_value(text: &str, start: usize, name: &str) -> bool {
    if name.len() >= 4 {
        return true;
    }
    let before = text
        .as_bytes()
        .get(start.saturating_sub(2)..start)
        .unwrap_or_default();
    before.iter().any(|b| matches!(b, b':' | b'=' | b'$'))
}

/// A mention among those of one session, and whose it is: its entry, block and start, then the index of the entity, then
/// which of the entity's mentions it is. As one number, because there are many and they are sorted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LocatedMention(u128);

impl LocatedMention {
    fn new(mention: &Mention, entity: u32, nth: u8) -> LocatedMention {
        let BlockPlace { ordinal, part } = mention.place;
        let place = u128::from(ordinal) << 16 | u128::from(part);
        let name = u128::from(mention.start) << 40 | u128::from(entity) << 8 | u128::from(nth);
        LocatedMention(place << 72 | name)
    }

    fn place(self) -> BlockPlace {
        BlockPlace {
            ordinal: (self.0 >> 88) as u32,
            part: (self.0 >> 72) as u16,
        }
    }

    fn entity(self) -> usize {
        (self.0 >> 8) as u32 as usize
    }

    fn nth(self) -> usize {
        usize::from(self.0 as u8)
    }
}

/// Readings of blocks, to be cut into excerpts later.
#[derive(Default)]
struct KeptReadings<'e> {
    /// In the order of the session.
    readings: Vec<(BlockPlace, BlockReading<'e>)>,
    bytes: usize,
}

/// Bytes of readings that are kept: what is beyond them is read again.
const KEPT_BYTES: usize = 4 << 20;

impl<'e> KeptReadings<'e> {
    fn keep(&mut self, place: BlockPlace, reading: BlockReading<'e>) {
        let bytes = match &reading.text {
            Cow::Borrowed(_) => 0,
            Cow::Owned(text) => text.len(),
        };
        if self.bytes + bytes <= KEPT_BYTES {
            self.bytes += bytes;
            self.readings.push((place, reading));
        }
    }
}

/// Measures the mentions that are left and cuts the text around them out of the entries.
fn cut_excerpts<'e, E: Borrow<Entry>>(
    entries: &'e [E],
    first: u64,
    kept: KeptReadings<'e>,
    entities: &mut [Entity],
) -> Vec<Excerpt> {
    let mut all: Vec<LocatedMention> = Vec::new();
    for (entity, e) in entities.iter().zip(0..) {
        let located = |(m, nth): (&Mention, u8)| LocatedMention::new(m, e, nth);
        all.extend(entity.mentions().zip(0..).map(located));
    }
    all.sort_unstable();
    let mut excerpts: Vec<Excerpt> = Vec::new();
    let mut kept = kept.readings.into_iter().peekable();
    for block in all.chunk_by(|a, b| a.place() == b.place()) {
        let Some(place) = block.first().map(|mention| mention.place()) else {
            continue;
        };
        while kept.next_if(|(earlier, _)| *earlier < place).is_some() {}
        let reading = match kept.next_if(|(here, _)| *here == place) {
            Some((_, reading)) => Some(reading),
            None => read_again(entries, first, place),
        };
        if let Some(reading) = reading {
            cut_block(&reading, block, entities, &mut excerpts);
        }
    }
    excerpts
}

fn read_again<E: Borrow<Entry>>(
    entries: &[E],
    first: u64,
    place: BlockPlace,
) -> Option<BlockReading<'_>> {
    let nth = u64::from(place.ordinal) - first;
    let entry: &Entry = entries.get(nth as usize)?.borrow();
    reading::read_block(entry, entry.blocks.get(usize::from(place.part))?)
}

/// Cuts the windows of one block, whose mentions are `block`.
fn cut_block(
    reading: &BlockReading<'_>,
    block: &[LocatedMention],
    entities: &mut [Entity],
    excerpts: &mut Vec<Excerpt>,
) -> Option<()> {
    let BlockPlace { ordinal, part } = block.first()?.place();
    let mut windows: Vec<ExcerptWindow> = Vec::new();
    for located in block {
        let entity = entities.get_mut(located.entity())?;
        let name = entity.text.len();
        let mention = entity.mention_mut(located.nth())?;
        excerpt::measure(mention, name, reading);
        let window = ExcerptWindow::around(mention, name);
        if !windows.last_mut().is_some_and(|last| last.join(window)) {
            windows.push(window);
        }
    }
    let cut = |window: ExcerptWindow| {
        let bytes = window.start as usize..window.end as usize;
        Some(Excerpt {
            ordinal,
            part,
            start: window.start,
            voice: reading.voice,
            text: reading.text.get(bytes)?.into(),
        })
    };
    excerpts.extend(windows.into_iter().filter_map(cut));
    Some(())
}
