//! Words and phrases that show what a text does, read from files: one cue a line.
//!
//! The files are `templates/cues/NAME.txt`; their lines that begin with `#` say what a list is for. In a phrase, `*`
//! stands for a word or the rest of one, and `<number>` for digits. A list is parsed when it is first used, once. What
//! a match means is for the caller to decide.

mod phrase;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use phrase::{PhrasePlace, PhraseTable};

/// The text of the file `templates/cues/NAME.txt`.
macro_rules! cue_file {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/templates/cues/",
            $name,
            ".txt"
        ))
    };
}
pub(crate) use cue_file;

/// Returns the cues of a file, without its comments.
pub fn cue_lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Phrases that are looked for within a text: as whole words, in upper or lower case.
///
/// ```
/// use compact_core::cue_list::PhraseList;
///
/// static GREETING: PhraseList = PhraseList::anywhere("# How people greet.\nhello\ngood *\n");
/// assert!(GREETING.is_in("Well, good morning!"));
/// assert!(!GREETING.is_in("Othello"));
/// ```
#[derive(Debug)]
pub struct PhraseList {
    file: &'static str,
    place: PhrasePlace,
    table: OnceLock<PhraseTable>,
}

impl PhraseList {
    /// Makes a list whose phrases may stand anywhere in a text.
    pub const fn anywhere(file: &'static str) -> PhraseList {
        PhraseList::at_place(PhrasePlace::Anywhere, file)
    }

    /// Makes a list whose phrases count only at the beginning of a text.
    pub const fn at_start(file: &'static str) -> PhraseList {
        PhraseList::at_place(PhrasePlace::Start, file)
    }

    const fn at_place(place: PhrasePlace, file: &'static str) -> PhraseList {
        PhraseList {
            file,
            place,
            table: OnceLock::new(),
        }
    }

    /// Whether the text holds one of the phrases.
    pub fn is_in(&self, text: &str) -> bool {
        self.phrases().find(text, 0).is_some()
    }

    /// Returns the bytes at which phrases begin in the text.
    pub fn starts_in(&self, text: &str) -> impl Iterator<Item = usize> {
        let first = self.phrases().find(text, 0);
        std::iter::successors(first, move |last| self.phrases().find(text, last.end))
            .map(|found| found.start)
    }

    fn phrases(&self) -> &PhraseTable {
        self.table
            .get_or_init(|| PhraseTable::new(self.place, cue_lines(self.file)))
    }
}

/// Words that are compared with whole words, letter by letter.
#[derive(Debug)]
pub struct WordList {
    file: &'static str,
    words: OnceLock<Vec<&'static str>>,
}

impl WordList {
    /// Makes the list of a file.
    pub const fn new(file: &'static str) -> WordList {
        WordList {
            file,
            words: OnceLock::new(),
        }
    }

    /// Whether the word is on the list.
    pub fn has(&self, word: &str) -> bool {
        self.sorted_words().binary_search(&word).is_ok()
    }

    /// Returns what follows the entry that opens the text, if one does.
    pub fn after_opening<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut words = self.sorted_words().iter();
        words.find_map(|word| text.strip_prefix(word))
    }

    /// Whether one of the entries stands in the text, be it within a word.
    pub fn is_part_of(&self, text: &str) -> bool {
        self.sorted_words().iter().any(|word| text.contains(word))
    }

    /// Returns what follows the first entry that stands in the text.
    pub fn after_part<'t>(&self, text: &'t str) -> Option<&'t str> {
        let words = self.sorted_words().iter();
        let ends = words.filter_map(|word| text.find(word).map(|at| at + word.len()));
        ends.min().and_then(|end| text.get(end..))
    }

    /// Returns what stands before the first entry in the text; all of it where there is none.
    pub fn before_part<'t>(&self, text: &'t str) -> &'t str {
        let starts = self
            .sorted_words()
            .iter()
            .filter_map(|word| text.find(word));
        starts.min().and_then(|at| text.get(..at)).unwrap_or(text)
    }

    fn sorted_words(&self) -> &[&'static str] {
        self.words.get_or_init(|| {
            let mut words: Vec<&'static str> = cue_lines(self.file).collect();
            words.sort_unstable();
            words
        })
    }
}
