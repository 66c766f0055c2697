//! Names that a session used, who used them, and where they were last seen.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use super::scan::NameKind;

/// Who said something. Orders come from the user and the system only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// The person.
    User,
    /// System and developer messages within the history.
    System,
    /// Text that the client injected: reminders, environment.
    Host,
    /// The model's words.
    Model,
    /// What the model asked a tool to do.
    Call,
    /// What a tool answered.
    Tool,
}

impl Voice {
    /// How many voices there are.
    pub const COUNT: usize = 6;

    /// Whether lines of this voice may stand as instructions.
    pub fn may_instruct(self) -> bool {
        matches!(self, Voice::User | Voice::System)
    }

    /// The user's and the model's own voices, as against what was shown to them.
    pub fn speaks(self) -> bool {
        matches!(self, Voice::User | Voice::Model | Voice::Call)
    }
}

/// The place of a block in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockPlace {
    /// The entry's ordinal.
    pub ordinal: u32,
    /// The block's index in the entry.
    pub part: u16,
}

/// The place of a name, and how much text around it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    /// The block it stands in.
    pub place: BlockPlace,
    /// The first byte of the name in the block's reading.
    pub start: u32,
    /// Bytes kept before it.
    pub before: u8,
    /// Bytes kept after it.
    pub after: u8,
}

/// Mentions kept per name in the voices that speak, and in those that are heard.
const SPOKEN: usize = 6;
const HEARD: usize = 3;

/// One name and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "PackedEntity", try_from = "PackedEntity")]
pub struct Entity {
    /// The name.
    pub text: Box<str>,
    /// What it looks like.
    pub kind: NameKind,
    /// In how many blocks each voice named it, indexed by [`Voice`].
    pub counts: [u32; Voice::COUNT],
    /// How often it stands in the text, every occurrence counted.
    pub times: u32,
    /// The ordinal of the newest entry that defines it, as code does a function or a type.
    pub defined: Option<u32>,
    /// The ordinal of the entry that named it first.
    pub first: u32,
    /// The ordinal of the entry that named it last.
    pub last: u32,
    /// The newest mentions by the user or the model, oldest first.
    pub spoken: ArrayVec<Mention, SPOKEN>,
    /// The newest mentions by anyone else, oldest first.
    pub heard: ArrayVec<Mention, HEARD>,
}

impl Entity {
    pub(super) fn new(text: &str, kind: NameKind, first: u32) -> Entity {
        Entity {
            text: text.into(),
            kind,
            counts: [0; Voice::COUNT],
            times: 0,
            defined: None,
            first,
            last: first,
            spoken: ArrayVec::new(),
            heard: ArrayVec::new(),
        }
    }

    /// Blocks in which a voice named it.
    pub fn voice_count(&self, voice: Voice) -> u32 {
        self.counts.get(voice as usize).copied().unwrap_or(0)
    }

    /// Blocks in which the user or the model named it.
    pub fn spoken_count(&self) -> u32 {
        self.voice_count(Voice::User)
            + self.voice_count(Voice::Model)
            + self.voice_count(Voice::Call)
    }

    /// Every mention kept.
    pub fn mentions(&self) -> impl Iterator<Item = &Mention> {
        self.spoken.iter().chain(&self.heard)
    }

    pub(super) fn mention_mut(&mut self, nth: usize) -> Option<&mut Mention> {
        self.spoken.iter_mut().chain(&mut self.heard).nth(nth)
    }

    /// The last occurrence in a block is the one that stays; a block counts once.
    pub(super) fn add_mention(&mut self, voice: Voice, mention: Mention) {
        self.times = self.times.saturating_add(1);
        let is_new = match voice.speaks() {
            true => add_newest(&mut self.spoken, mention),
            false => add_newest(&mut self.heard, mention),
        };
        if !is_new {
            return;
        }
        self.last = self.last.max(mention.place.ordinal);
        if let Some(count) = self.counts.get_mut(voice as usize) {
            *count += 1;
        }
    }

    /// Adds what a later stretch of the session knows of the same name.
    pub(super) fn absorb(&mut self, later: &Entity) {
        self.counts
            .iter_mut()
            .zip(later.counts)
            .for_each(|(a, b)| *a += b);
        self.times = self.times.saturating_add(later.times);
        self.defined = self.defined.max(later.defined);
        self.first = self.first.min(later.first);
        self.last = self.last.max(later.last);
        self.kind = self.kind.min(later.kind);
        later
            .spoken
            .iter()
            .for_each(|m| push_newest(&mut self.spoken, *m));
        later
            .heard
            .iter()
            .for_each(|m| push_newest(&mut self.heard, *m));
    }
}

/// Adds a mention; one in the same block takes the place of the last. Whether it is the first there.
fn add_newest<const MOST: usize>(list: &mut ArrayVec<Mention, MOST>, mention: Mention) -> bool {
    match list.last_mut() {
        Some(last) if last.place == mention.place => {
            *last = mention;
            false
        }
        _ => {
            push_newest(list, mention);
            true
        }
    }
}

/// Adds a mention; where there is no room, the oldest goes.
fn push_newest<const MOST: usize>(list: &mut ArrayVec<Mention, MOST>, mention: Mention) {
    if list.is_full() {
        list.remove(0);
    }
    list.push(mention);
}

/// An entity as it is stored: name, kind and numbers. Sessions have thousands, so the numbers stand in one flat
/// list: counts, times, first, last, how many spoken mentions, then five numbers per mention, and the entry that
/// defines it, if any does.
type PackedEntity = (Box<str>, NameKind, Vec<u32>);

impl From<Entity> for PackedEntity {
    fn from(e: Entity) -> PackedEntity {
        let mut numbers = e.counts.to_vec();
        numbers.extend([e.times, e.first, e.last, e.spoken.len() as u32]);
        for m in e.mentions() {
            let BlockPlace { ordinal, part } = m.place;
            numbers.extend([
                ordinal,
                part.into(),
                m.start,
                m.before.into(),
                m.after.into(),
            ]);
        }
        numbers.extend(e.defined);
        (e.text, e.kind, numbers)
    }
}

impl TryFrom<PackedEntity> for Entity {
    type Error = &'static str;

    fn try_from((text, kind, numbers): PackedEntity) -> Result<Entity, Self::Error> {
        let short = "an entity of the ledger lacks numbers";
        let (counts, rest) = numbers.split_first_chunk().ok_or(short)?;
        let (&[times, first, last, spoken], rest) = rest.split_first_chunk().ok_or(short)?;
        let rest = rest.chunks_exact(5);
        let defined = rest.remainder().first().copied();
        let mentions: Vec<Mention> = rest.filter_map(mention).collect();
        let (spoken, heard) = mentions.split_at(mentions.len().min(spoken as usize));
        Ok(Entity {
            text,
            kind,
            counts: *counts,
            times,
            defined,
            first,
            last,
            spoken: newest(spoken),
            heard: newest(heard),
        })
    }
}

/// The newest of these mentions, as many as are kept.
fn newest<const MOST: usize>(mentions: &[Mention]) -> ArrayVec<Mention, MOST> {
    let surplus = mentions.len().saturating_sub(MOST);
    mentions.iter().skip(surplus).copied().collect()
}

fn mention(numbers: &[u32]) -> Option<Mention> {
    let &[ordinal, part, start, before, after] = numbers else {
        return None;
    };
    Some(Mention {
        place: BlockPlace {
            ordinal,
            part: part.try_into().ok()?,
        },
        start,
        before: before.try_into().ok()?,
        after: after.try_into().ok()?,
    })
}
