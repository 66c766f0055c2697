//! Exact counts of tokens in OpenAI's encodings o200k and cl100k.
//!
//! A text is cut into pieces as the encoding's pattern says (`split`), and a piece costs as many tokens
//! as byte-pair merging leaves of it (`merge`, `backtrack`, by the ranks in `vocabulary`). What a short piece costs is
//! remembered (`cache`), since texts repeat their words. The vocabularies are laid out by the build script
//! as hash tables in the program: nothing is loaded, and only the pages that are looked at are read.
//!
//! ```
//! use compact_bpe::Encoding;
//!
//! assert_eq!(Encoding::O200k.count("Nothing is lost."), 4);
//! ```

mod backtrack;
mod cache;
mod class;
mod hash;
mod merge;
mod split;
mod vocabulary;

use cache::PieceCache;
use merge::Merger;
use split::Splitter;

/// A way to cut text into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// That of gpt-4o and the models since.
    O200k,
    /// That of gpt-4 and gpt-3.5.
    Cl100k,
}

impl Encoding {
    /// Counts the tokens of a text, in which the names of special tokens are text like any other.
    pub fn count(self, text: &str) -> usize {
        let vocabulary = self.vocabulary();
        PieceCache::with(self, |cache, scratch| {
            let mut merger = Merger::new(vocabulary, scratch);
            Splitter::new(self, text)
                .map(|piece| cache.count_or(piece, |bytes| merger.count(bytes)))
                .sum()
        })
    }
}
