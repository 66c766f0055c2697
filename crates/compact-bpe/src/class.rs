//! What kind of character each one is, as far as the patterns of the encodings ask.

use std::fmt;

include!(concat!(env!("OUT_DIR"), "/ascii.rs"));

/// Which block of [`KINDS`] holds the characters whose number begins with the index.
static BLOCKS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/blocks"));

/// Kinds of characters, 256 to a block.
static KINDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kinds"));

/// A kind of character. The build script writes the numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CharClass(u8);

impl CharClass {
    /// Punctuation, symbols, controls, and what is not assigned.
    pub(crate) const OTHER: CharClass = CharClass(0);
    /// A line feed or a carriage return.
    pub(crate) const NEWLINE: CharClass = CharClass(1);
    /// Any other white space.
    pub(crate) const BLANK: CharClass = CharClass(2);
    /// A capital or title-case letter.
    pub(crate) const UPPER: CharClass = CharClass(3);
    /// A small letter.
    pub(crate) const LOWER: CharClass = CharClass(4);
    /// A letter that is neither: an ideograph, a modifier.
    pub(crate) const CASELESS: CharClass = CharClass(5);
    /// A combining mark.
    pub(crate) const MARK: CharClass = CharClass(6);
    /// A number.
    pub(crate) const NUMBER: CharClass = CharClass(7);
    /// There is no character: the text has ended.
    pub(crate) const END: CharClass = CharClass(8);

    /// The kind of an ASCII byte.
    pub(crate) fn of_ascii(byte: u8) -> CharClass {
        CharClass(ASCII.get(usize::from(byte)).copied().unwrap_or(0))
    }

    /// The kind of any character.
    pub(crate) fn of_char(character: char) -> CharClass {
        let number = character as usize;
        let block = BLOCKS.get(number >> 8).copied().unwrap_or(0);
        let at = usize::from(block) << 8 | number & 0xFF;
        CharClass(KINDS.get(at).copied().unwrap_or(0))
    }

    pub(crate) fn is_letter(self) -> bool {
        matches!(
            self,
            CharClass::UPPER | CharClass::LOWER | CharClass::CASELESS
        )
    }

    /// True of what may follow a capital within a word, for encodings that look at case.
    pub(crate) fn continues_lower(self) -> bool {
        matches!(
            self,
            CharClass::LOWER | CharClass::CASELESS | CharClass::MARK
        )
    }

    /// True of what is neither white space nor letter nor number.
    pub(crate) fn is_symbol(self) -> bool {
        matches!(self, CharClass::OTHER | CharClass::MARK)
    }
}

impl fmt::Debug for CharClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CharClass({})", self.0)
    }
}
