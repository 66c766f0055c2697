//! The languages that people give orders in: which one a text is in, and the cues of each.
//!
//! English has lists of its own (`cue`), finer than these. A file of `templates/languages` holds another language, in
//! sections; a script is told by its letters, languages in Latin letters by their function words. What is in none of
//! them is unknown, and a receipt says so: its rules are not recognised, only quoted where the user's words are.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

/// What the cues of a section show of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LanguageCue {
    /// It rules what may be done.
    Rule,
    /// It forbids.
    Prohibition,
    /// It takes back or changes what was said before.
    Revision,
    /// It puts work off.
    Postponement,
    /// It says that something is finished.
    Finished,
    /// It decides, or gives a cause.
    Decision,
}

const CUES: [(&str, LanguageCue); 6] = [
    ("rule", LanguageCue::Rule),
    ("prohibition", LanguageCue::Prohibition),
    ("revision", LanguageCue::Revision),
    ("postponement", LanguageCue::Postponement),
    ("finished", LanguageCue::Finished),
    ("decision", LanguageCue::Decision),
];

/// How a language writes its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spacing {
    /// With blanks between them.
    Words,
    /// Without, or with endings and particles joined to them.
    Joined,
}

/// A language other than English.
#[derive(Debug)]
pub(super) struct Language {
    file: &'static str,
    spacing: Spacing,
    patterns: LazyLock<Vec<Option<Regex>>>,
}

macro_rules! languages {
    ($($name:ident $file:literal $spacing:ident),* $(,)?) => {
        $(static $name: Language = Language {
            file: include_str!(concat!("../../templates/languages/", $file, ".txt")),
            spacing: Spacing::$spacing,
            patterns: LazyLock::new(|| $name.compile_sections()),
        };)*

        /// Every language that has a file.
        #[cfg(test)]
        static ALL: &[&Language] = &[$(&$name),*];
    };
}

languages! {
    GERMAN "german" Words,
    FRENCH "french" Words,
    SPANISH "spanish" Words,
    PORTUGUESE "portuguese" Words,
    ITALIAN "italian" Words,
    RUSSIAN "russian" Words,
    CHINESE "chinese" Joined,
    JAPANESE "japanese" Joined,
    KOREAN "korean" Joined,
    ARABIC "arabic" Words,
}

/// Function words of English, to tell it from the other languages in Latin letters.
static ENGLISH: &str = include_str!("../../templates/languages/english.txt");

/// Languages in Latin letters, which only their words tell apart.
static LATIN: [&Language; 5] = [&GERMAN, &FRENCH, &SPANISH, &PORTUGUESE, &ITALIAN];

/// What language a text is in.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextLanguage {
    /// English, code, or too little to tell.
    English,
    /// One that has cues.
    Known(&'static Language),
    /// One that has none here.
    Unknown,
}

impl TextLanguage {
    /// Whether a sentence holds a cue of this kind, in this language. English has its own lists.
    pub(super) fn shows(self, cue: LanguageCue, sentence: &str) -> bool {
        match self {
            TextLanguage::Known(language) => language.shows(cue, sentence),
            TextLanguage::English | TextLanguage::Unknown => false,
        }
    }
}

impl Language {
    /// The entries of a section.
    fn section(&self, name: &str) -> impl Iterator<Item = &'static str> {
        section_lines(self.file, name)
    }

    fn compile_sections(&self) -> Vec<Option<Regex>> {
        CUES.iter()
            .map(|(name, _)| self.compile_section(name))
            .collect()
    }

    /// None for an empty section, which would match everything. What is escaped always compiles.
    fn compile_section(&self, name: &str) -> Option<Regex> {
        let phrase = |line: &str| {
            let escaped = regex::escape(line).replace(r"\*", r"\S+");
            escaped.replace(r" \.\.\. ", r"(?:\s+\S+){0,6}?\s+")
        };
        let phrases: Vec<String> = self.section(name).map(phrase).collect();
        let any = phrases.join("|");
        let pattern = match self.spacing {
            Spacing::Words => format!(r"(?i)\b(?:{any})\b"),
            Spacing::Joined => any,
        };
        (!phrases.is_empty()).then(|| Regex::new(&pattern).ok())?
    }

    fn shows(&self, cue: LanguageCue, sentence: &str) -> bool {
        let nth = CUES.iter().position(|(_, kind)| *kind == cue);
        let pattern = nth.and_then(|nth| self.patterns.get(nth)?.as_ref());
        pattern.is_some_and(|pattern| pattern.is_match(sentence))
    }
}

/// The lines of a file below `[name]`.
fn section_lines(file: &'static str, name: &str) -> impl Iterator<Item = &'static str> {
    let heading = format!("[{name}]");
    let lines = file
        .lines()
        .skip_while(move |line| *line != heading)
        .skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// How many characters of a text are looked at, and the fewest letters of a script that make it one of the text's.
const SAMPLE: usize = 400;
const LETTERS: usize = 4;

/// Bytes below which a text holds no sentence.
const SHORT: usize = 8;

/// Returns the language of a text.
pub(super) fn text_language(text: &str) -> TextLanguage {
    let sample = || text.chars().take(SAMPLE);
    if text.len() < SHORT {
        return TextLanguage::English;
    }
    if text.is_ascii() {
        return latin_language(text);
    }
    let count = |is_of: fn(char) -> bool| sample().filter(|c| is_of(*c)).count();
    let latin = count(|c| c.is_alphabetic() && (c as u32) < 0x250);
    let scripts: [(usize, TextLanguage); 5] = [
        (count(is_kana), TextLanguage::Known(&JAPANESE)),
        (count(is_hangul), TextLanguage::Known(&KOREAN)),
        (count(is_han), TextLanguage::Known(&CHINESE)),
        (count(is_cyrillic), TextLanguage::Known(&RUSSIAN)),
        (count(is_arabic), TextLanguage::Known(&ARABIC)),
    ];
    // Japanese is written with ideographs, too, and names of code stand in every text.
    let found = scripts.iter().find(|(letters, _)| *letters >= LETTERS);
    if let Some((_, language)) = found {
        return *language;
    }
    let others = count(|c| c.is_alphabetic() && c as u32 >= 0x250);
    match others > latin && others >= LETTERS {
        true => TextLanguage::Unknown,
        false => latin_language(text),
    }
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30FF}')
}

fn is_hangul(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7A3}')
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

fn is_cyrillic(c: char) -> bool {
    matches!(c, '\u{0400}'..='\u{052F}')
}

fn is_arabic(c: char) -> bool {
    matches!(c, '\u{0620}'..='\u{06FF}')
}

/// Whether a character belongs to a script that puts no blanks between words.
pub(crate) fn is_unspaced(c: char) -> bool {
    is_han(c) || is_kana(c)
}

/// Words of prose below which a text in Latin letters is too short to be called unknown.
const PROSE: usize = 8;

/// Letters of languages in Latin letters that have no cues here, and the words that one of them then needs.
const FOREIGN: &str = "ąćęłńśźżőűřšžčěďťňğışåøđățș";
const FEW: usize = 3;

/// Words with the languages that have them.
struct WordLanguages {
    languages: HashMap<&'static [u8], Vec<usize>, foldhash::fast::FixedState>,
    /// For each first byte, a bit for each length of a word: most words of a text need not be looked up.
    lengths: [u32; 256],
}

impl WordLanguages {
    fn from_files(files: impl Iterator<Item = &'static str>) -> WordLanguages {
        let mut words = WordLanguages {
            languages: HashMap::default(),
            lengths: [0; 256],
        };
        for (nth, file) in files.enumerate() {
            for word in section_lines(file, "function").map(str::as_bytes) {
                words.languages.entry(word).or_default().push(nth);
                let lengths = words.lengths.get_mut(first_byte(word));
                lengths.into_iter().for_each(|l| *l |= length_bit(word));
            }
        }
        words
    }

    fn languages_of(&self, word: &[u8]) -> &[usize] {
        let lengths = self.lengths.get(first_byte(word)).copied().unwrap_or(0);
        if lengths & length_bit(word) == 0 {
            return &[];
        }
        let known = self.languages.get(word).map(Vec::as_slice);
        known.unwrap_or_default()
    }
}

fn first_byte(word: &[u8]) -> usize {
    word.first().copied().unwrap_or(0).into()
}

/// The bit of a word's length; long ones share the last.
fn length_bit(word: &[u8]) -> u32 {
    1 << word.len().min(31)
}

/// The function words of English, at 0, and of the languages in Latin letters, each with those that have it.
static FUNCTION_WORDS: LazyLock<WordLanguages> = LazyLock::new(|| {
    let latin = LATIN.iter().map(|language| language.file);
    WordLanguages::from_files([ENGLISH].into_iter().chain(latin))
});

/// The beginning of a text in small letters.
fn lower_sample(text: &str) -> String {
    match text.get(..SAMPLE.min(text.len())) {
        Some(head) if head.is_ascii() => head.to_ascii_lowercase(),
        _ => {
            let head = text.chars().take(SAMPLE);
            head.flat_map(char::to_lowercase).collect()
        }
    }
}

fn is_ascii_part(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte == b'\''
}

/// The language in Latin letters whose function words stand in the text most often.
fn latin_language(text: &str) -> TextLanguage {
    let sample = lower_sample(text);
    let mut hits = [0_usize; LATIN.len() + 1];
    let mut words = 0;
    let is_part = |c: char| match c.is_ascii() {
        true => is_ascii_part(c as u8),
        false => c.is_alphabetic(),
    };
    let mut count_word = |word: &[u8]| {
        words += usize::from(!word.is_empty());
        for nth in FUNCTION_WORDS.languages_of(word) {
            hits.get_mut(*nth).into_iter().for_each(|count| *count += 1);
        }
    };
    let is_ascii = sample.is_ascii();
    match is_ascii {
        // Most texts are such, and their bytes are their letters.
        true => sample
            .as_bytes()
            .split(|byte| !is_ascii_part(*byte))
            .for_each(count_word),
        false => sample
            .split(|c| !is_part(c))
            .for_each(|word| count_word(word.as_bytes())),
    }
    let foreign = !is_ascii && sample.chars().any(|c| FOREIGN.contains(c));
    let [english, others @ ..] = hits;
    let most = others.iter().copied().max().unwrap_or(0);
    let best = others.iter().zip(LATIN).find(|(count, _)| **count == most);
    let has_marks = !is_ascii && sample.chars().any(|c| !c.is_ascii() && c.is_alphabetic());
    match best {
        _ if foreign && english == 0 && most < 2 && words >= FEW => TextLanguage::Unknown,
        Some((_, language)) if most > english => TextLanguage::Known(language),
        _ if most == 0 && english == 0 && has_marks && words >= PROSE => TextLanguage::Unknown,
        _ => TextLanguage::English,
    }
}
