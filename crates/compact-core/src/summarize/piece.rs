//! Pieces: whole things that a summary may tell, each under the head that says whose or of what it is.
//!
//! A message of the user, a sentence of the model, a line of a tool's answer or of a change to a file: none is ever
//! cut to make it fit beside another. A head is written once, over all its pieces; who opens one pays for it.

use std::collections::HashMap;

use super::select::ShownLevel;
use super::template::SectionTopic;

/// What pieces stand under: a message, a call, a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PieceHead {
    pub topic: SectionTopic,
    /// Where it stands in the session.
    pub ordinal: u32,
    /// What is written once before its pieces.
    pub label: String,
    pub form: HeadForm,
}

/// How the pieces of a head are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadForm {
    /// A bullet of its own.
    Bullet,
    /// A bullet without a pointer, where every word counts.
    Plain,
    /// Behind the label, one after the other.
    Running,
    /// The first behind the label, the others on lines below.
    Log,
    /// Each on a line below the label.
    Lines,
}

/// One whole thing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    /// Its head, as an index.
    pub head: usize,
    pub ordinal: u32,
    /// Its place among the pieces of its head.
    pub place: u32,
    pub text: String,
    /// What it is worth by itself, next to the chance that a name is needed.
    pub worth: f64,
    /// How much it tells of the names in it: a sentence or a signature more than any line that holds them.
    pub tells: f64,
    /// How well it shows the names in it.
    pub shows: ShownLevel,
    /// The rule that the words release: they stand behind it.
    pub about: Option<u32>,
    pub form: PieceForm,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceForm {
    /// A sentence, a line, an outcome.
    Text,
    /// A name; names of one head stand in one line, in the order in which they were seen.
    Name,
}

/// Heads and their pieces.
#[derive(Debug, Default)]
pub(super) struct PieceTable {
    pub heads: Vec<PieceHead>,
    pub pieces: Vec<Piece>,
    named: HashMap<(SectionTopic, String), usize, foldhash::fast::FixedState>,
}

/// Characters that the pointer and the marks of a head take, and those of a piece; without a pointer a head takes no more
/// than a piece.
const POINTER: usize = 8;
const JOINT: usize = 2;

impl PieceTable {
    /// A new head.
    pub(super) fn open(&mut self, head: PieceHead) -> usize {
        self.heads.push(head);
        self.heads.len() - 1
    }

    /// The head of this name, opened by the first who asks for it.
    pub(super) fn open_named(&mut self, name: &str, head: PieceHead) -> usize {
        let key = (head.topic, name.to_owned());
        match self.named.get(&key) {
            Some(known) => *known,
            None => {
                let at = self.open(head);
                self.named.insert(key, at);
                at
            }
        }
    }

    /// The head of a statement in few words, and what stands below it: statements of one label share theirs.
    pub(super) fn open_statement<'t>(
        &mut self,
        topic: SectionTopic,
        ordinal: u32,
        text: &'t str,
    ) -> (usize, &'t str) {
        let head = |label: String| PieceHead {
            topic,
            ordinal,
            label,
            form: HeadForm::Plain,
        };
        match split_label(text) {
            Some((label, rest)) => {
                let head = head(format!("{label}: "));
                (self.open_named(label, head), rest)
            }
            None => (self.open(head(String::new())), text),
        }
    }

    /// Adds what a later table tells behind what this one does; a head that has a name in both is one.
    pub(super) fn append(&mut self, later: PieceTable) {
        let mut known: Vec<Option<usize>> = vec![None; later.heads.len()];
        for (name, at) in &later.named {
            if let Some(known) = known.get_mut(*at) {
                *known = self.named.get(name).copied();
            }
        }
        let heads = later.heads.into_iter().zip(known);
        let places: Vec<usize> = heads
            .map(|(head, known)| known.unwrap_or_else(|| self.open(head)))
            .collect();
        let place = |head: usize| places.get(head).copied().unwrap_or(head);
        let named = later.named.into_iter();
        self.named.extend(named.map(|(name, at)| (name, place(at))));
        let pieces = later.pieces.into_iter();
        self.pieces.extend(pieces.map(|piece| Piece {
            head: place(piece.head),
            ..piece
        }));
    }

    pub(super) fn push(&mut self, piece: Piece) {
        self.pieces.push(piece);
    }

    pub(super) fn topic_of(&self, piece: &Piece) -> Option<SectionTopic> {
        self.heads.get(piece.head).map(|head| head.topic)
    }

    /// Characters that a head takes by itself.
    pub(super) fn head_cost(&self, head: usize) -> usize {
        self.heads.get(head).map_or(0, |head| {
            let marks = match head.form {
                HeadForm::Plain => JOINT,
                _ => POINTER,
            };
            head.label.chars().count() + marks
        })
    }
}

/// `FACT: …`, `Open question: …`: a few words and a colon, and what they announce on the same line.
pub(crate) fn split_label(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.split_once(": ")?;
    let is_label = |c: char| c.is_alphabetic() || c == ' ' || c == '-';
    (label.len() <= LABEL && label.chars().all(is_label) && rest.len() >= 8)
        .then_some((label, rest))
}

/// The longest label, in bytes.
const LABEL: usize = 32;

impl Piece {
    /// Characters that it takes under an open head.
    pub(super) fn cost(&self) -> usize {
        self.text.chars().count() + JOINT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(label: &str) -> PieceHead {
        PieceHead {
            topic: SectionTopic::Files,
            ordinal: 1,
            label: label.to_owned(),
            form: HeadForm::Lines,
        }
    }

    fn table(tell: impl Fn(&mut PieceTable, &str), names: &[&str]) -> PieceTable {
        let mut table = PieceTable::default();
        names.iter().for_each(|name| tell(&mut table, name));
        table
    }

    #[test]
    fn tables_that_are_joined_are_the_one_that_was_filled_in_turn() {
        let tell = |table: &mut PieceTable, name: &str| {
            let head = match name.strip_prefix("own ") {
                Some(_) => table.open(head(name)),
                None => table.open_named(name, head(name)),
            };
            table.push(Piece {
                head,
                ordinal: 1,
                place: 0,
                text: name.to_owned(),
                worth: 1.0,
                tells: 1.0,
                shows: ShownLevel::Bare,
                about: None,
                form: PieceForm::Text,
            });
        };
        let names = [
            "a.rs", "own 1", "b.rs", "b.rs", "own 2", "c.rs", "a.rs", "own 3",
        ];
        for middle in 0..=names.len() {
            let (first, later) = names.split_at(middle);
            let mut joined = table(tell, first);
            joined.append(table(tell, later));
            let filled = table(tell, &names);
            assert_eq!(joined.heads, filled.heads, "{middle}");
            assert_eq!(joined.pieces, filled.pieces, "{middle}");
            assert_eq!(joined.named, filled.named, "{middle}");
        }
    }
}
