//! Cuts a text into the pieces within which tokens are merged.
//!
//! The encodings define pieces by a pattern with look-ahead and backtracking. Here each alternative of
//! the pattern is a function, tried in the pattern's order, and what backtracking would come to is
//! worked out beforehand, so that a text is read once. `tests/oracle.rs` holds it against the pattern.

use crate::Encoding;
use crate::class::CharClass;

/// Iterates over the pieces of a text, which together are the text.
pub(crate) struct Splitter<'a> {
    encoding: Encoding,
    text: &'a str,
    at: usize,
}

/// A piece, and the bytes of the text from where it begins.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    /// The text from the piece on.
    pub(crate) from: &'a [u8],
    /// How many bytes of it are the piece.
    pub(crate) length: usize,
}

impl<'a> Piece<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.from.get(..self.length).unwrap_or(self.from)
    }
}

impl<'a> Iterator for Splitter<'a> {
    type Item = Piece<'a>;

    #[inline]
    fn next(&mut self) -> Option<Piece<'a>> {
        let from = self.text.as_bytes().get(self.at..)?;
        if from.is_empty() {
            return None;
        }
        let end = match self.encoding {
            Encoding::O200k => self.end_in_o200k(self.at),
            Encoding::Cl100k => self.end_in_cl100k(self.at),
        };
        let length = end - self.at;
        self.at = end;
        Some(Piece { from, length })
    }
}

impl<'a> Splitter<'a> {
    pub(crate) fn new(encoding: Encoding, text: &'a str) -> Splitter<'a> {
        Splitter {
            encoding,
            text,
            at: 0,
        }
    }

    /// The end of the piece that begins at `at`, by the pattern of o200k: words with their case, and with
    /// one character before them that is no letter, number or newline.
    #[inline]
    fn end_in_o200k(&self, at: usize) -> usize {
        if let Some(end) = self.ascii_word_end(at) {
            return end;
        }
        let (class, width) = self.class_at(at);
        let word = match class {
            CharClass::UPPER | CharClass::LOWER | CharClass::CASELESS => self.word_end(at),
            // A mark may stand before a word or be in it: before it counts first, but not before capitals
            // alone, since by itself it is a word already.
            CharClass::MARK => self
                .lower_word_end(at + width)
                .or_else(|| self.lower_word_end(at)),
            CharClass::OTHER | CharClass::BLANK => self.word_end(at + width),
            _ => None,
        };
        match word {
            Some(end) => end + self.contraction_width(end),
            None => self.end_of_rest(at, class),
        }
    }

    /// The same for a word of ASCII, which most pieces are; `None` where what stands there or follows needs a
    /// closer look.
    #[inline]
    fn ascii_word_end(&self, at: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let first = bytes.get(at).filter(|byte| byte.is_ascii())?;
        let start = match CharClass::of_ascii(*first) {
            CharClass::UPPER | CharClass::LOWER => at,
            CharClass::OTHER | CharClass::BLANK => at + 1,
            _ => return None,
        };
        let mut end = start;
        while bytes.get(end).is_some_and(u8::is_ascii_uppercase) {
            end += 1;
        }
        while bytes.get(end).is_some_and(u8::is_ascii_lowercase) {
            end += 1;
        }
        let is_over = bytes
            .get(end)
            .is_none_or(|next| next.is_ascii() && *next != b'\'');
        (is_over && end > start).then_some(end)
    }

    /// The end of the piece that begins at `at`, by the pattern of cl100k: words whatever their case.
    #[inline]
    fn end_in_cl100k(&self, at: usize) -> usize {
        let contraction = self.contraction_width(at);
        if contraction > 0 {
            return at + contraction;
        }
        let (class, width) = self.class_at(at);
        let start = match class {
            CharClass::OTHER | CharClass::BLANK | CharClass::MARK => at + width,
            _ => at,
        };
        let end = self.skip(start, CharClass::is_letter);
        match end > start {
            true => end,
            false => self.end_of_rest(at, class),
        }
    }

    /// The end of a piece that is no word.
    fn end_of_rest(&self, at: usize, class: CharClass) -> usize {
        if class == CharClass::NUMBER {
            return self.number_end(at);
        }
        let start = at + usize::from(self.byte_at(at) == Some(b' '));
        let end = self.skip(start, CharClass::is_symbol);
        match end > start {
            true => self.skip_line_ends(end),
            false => self.white_end(at),
        }
    }

    fn word_end(&self, start: usize) -> Option<usize> {
        self.lower_word_end(start)
            .or_else(|| self.upper_word_end(start))
    }

    /// Any capitals, then at least one letter that is none. Letters without case are both: where no small
    /// letter follows, the last of them ends the word.
    #[inline]
    fn lower_word_end(&self, start: usize) -> Option<usize> {
        let (mut at, mut caseless_end) = (start, None);
        loop {
            let (class, width) = self.class_at(at);
            match class {
                CharClass::UPPER => {}
                CharClass::CASELESS | CharClass::MARK => caseless_end = Some(at + width),
                CharClass::LOWER => return Some(self.skip(at + width, CharClass::continues_lower)),
                _ => return caseless_end,
            }
            at += width;
        }
    }

    /// At least one capital, and nothing else, since anything else would have made a word with small
    /// letters.
    fn upper_word_end(&self, start: usize) -> Option<usize> {
        let end = self.skip(start, |class| class == CharClass::UPPER);
        (end > start).then_some(end)
    }

    /// The bytes of `'s`, `'re` and the like, in any case, if they stand at `at`.
    #[inline]
    fn contraction_width(&self, at: usize) -> usize {
        if self.byte_at(at) != Some(b'\'') {
            return 0;
        }
        let lower = |offset| {
            self.byte_at(at + offset)
                .map(|byte| byte.to_ascii_lowercase())
        };
        match (lower(1), lower(2)) {
            (Some(b's' | b't' | b'm' | b'd'), _) => 2,
            (Some(b'r' | b'v'), Some(b'e')) | (Some(b'l'), Some(b'l')) => 3,
            // The long s is a small s to a pattern that ignores case.
            (Some(0xC5), Some(0xBF)) => 3,
            _ => 0,
        }
    }

    /// Up to three digits.
    fn number_end(&self, at: usize) -> usize {
        let mut end = at;
        for _ in 0..3 {
            let (class, width) = self.class_at(end);
            if class != CharClass::NUMBER {
                break;
            }
            end += width;
        }
        end
    }

    /// Newlines that belong to the symbols before them; in o200k slashes too.
    fn skip_line_ends(&self, mut at: usize) -> usize {
        while let Some(byte) = self.byte_at(at) {
            let is_slash = byte == b'/' && self.encoding == Encoding::O200k;
            if !is_slash && !matches!(byte, b'\r' | b'\n') {
                break;
            }
            at += 1;
        }
        at
    }

    /// White space up to its last newline; without one, all but the blank that belongs to what follows.
    fn white_end(&self, at: usize) -> usize {
        let (mut end, mut last, mut newline_end) = (at, at, None);
        loop {
            let (class, width) = self.class_at(end);
            match class {
                CharClass::NEWLINE => newline_end = Some(end + width),
                CharClass::BLANK => {}
                CharClass::END => return newline_end.unwrap_or(end),
                _ => break,
            }
            (last, end) = (end, end + width);
        }
        match newline_end {
            Some(newline) => newline,
            None if last > at => last,
            None => end,
        }
    }

    #[inline]
    fn skip(&self, mut at: usize, belongs: impl Fn(CharClass) -> bool) -> usize {
        loop {
            let (class, width) = self.class_at(at);
            if !belongs(class) {
                return at;
            }
            at += width;
        }
    }

    fn byte_at(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The character at `at`: what it is and how many bytes it has.
    #[inline]
    fn class_at(&self, at: usize) -> (CharClass, usize) {
        match self.byte_at(at) {
            Some(byte) if byte.is_ascii() => (CharClass::of_ascii(byte), 1),
            Some(_) => self.wide_class_at(at),
            None => (CharClass::END, 0),
        }
    }

    #[cold]
    fn wide_class_at(&self, at: usize) -> (CharClass, usize) {
        match self.text.get(at..).and_then(|rest| rest.chars().next()) {
            Some(character) => (CharClass::of_char(character), character.len_utf8()),
            None => (CharClass::END, 0),
        }
    }
}
