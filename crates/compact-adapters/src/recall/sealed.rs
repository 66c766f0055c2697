//! A recall index of which nobody without the key can read a word.
//!
//! Terms are stored as keyed hashes, which are as good as terms to whoever looks for them; texts are
//! encrypted. How often a term occurs, and in which entries of which session, stays visible.

use std::sync::Arc;

use async_trait::async_trait;
use compact_runtime::port::index::{
    IndexAddition, IndexError, IndexLookup, IndexedEntry, LookupResult, RecallCandidate,
    RecallIndex,
};

use super::row;
use crate::seal::Seal;

/// An index behind a seal.
#[derive(Clone, Debug)]
pub struct SealedIndex<I> {
    index: I,
    seal: Seal,
}

impl<I> SealedIndex<I> {
    /// Puts an index behind a seal. It must hold nothing that was added without it.
    pub fn new(index: I, seal: Seal) -> SealedIndex<I> {
        SealedIndex { index, seal }
    }

    /// Returns the candidate with its words; `None` when the key does not fit.
    fn open_candidate(&self, candidate: RecallCandidate) -> Option<RecallCandidate> {
        let sealed = decode_hex(&candidate.text)?;
        let packed = self.seal.open(&candidate.hash.0, &[], &sealed).ok()?;
        let plain = zstd::decode_all(packed.as_slice()).ok()?;
        Some(RecallCandidate {
            text: Arc::from(String::from_utf8(plain).ok()?),
            ..candidate
        })
    }
}

fn seal_entry(seal: &Seal, mut entry: IndexedEntry) -> Result<IndexedEntry, IndexError> {
    let packed = row::compress(entry.text.as_bytes()).map_err(sealing_error)?;
    let sealed = seal.seal(&entry.hash.0, &[], &packed);
    let sealed = sealed.map_err(|_| sealing_error(std::io::Error::other("no random numbers")))?;
    entry.text = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
    for term in entry.passages.iter_mut().flat_map(|p| &mut p.terms) {
        *term = seal.blind_word(term);
    }
    Ok(entry)
}

/// Returns what hexadecimal digits stand for.
fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, _) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().map(byte).collect()
}

fn sealing_error(error: std::io::Error) -> IndexError {
    IndexError::Store {
        action: "encrypt a text for the recall index".to_owned(),
        source: error.into(),
    }
}

#[async_trait]
impl<I: RecallIndex> RecallIndex for SealedIndex<I> {
    async fn receipts(&self) -> Result<Vec<(String, String)>, IndexError> {
        self.index.receipts().await
    }

    async fn add(&self, addition: IndexAddition) -> Result<(), IndexError> {
        let seal = self.seal.clone();
        let entries = addition.entries;
        let sealed = entries.map(move |entry| seal_entry(&seal, entry?));
        let entries = Box::new(sealed);
        self.index
            .add(IndexAddition {
                entries,
                ..addition
            })
            .await
    }

    async fn forget(&self, session: &str) -> Result<(), IndexError> {
        self.index.forget(session).await
    }

    async fn find(&self, lookup: &IndexLookup) -> Result<LookupResult, IndexError> {
        let blind = IndexLookup {
            terms: lookup
                .terms
                .iter()
                .map(|t| self.seal.blind_word(t))
                .collect(),
            ..lookup.clone()
        };
        let mut found = self.index.find(&blind).await?;
        let candidates = std::mem::take(&mut found.candidates);
        found.candidates = candidates
            .into_iter()
            .filter_map(|candidate| self.open_candidate(candidate))
            .collect();
        Ok(found)
    }

    async fn entries_at(
        &self,
        session: &str,
        ordinals: &[u64],
    ) -> Result<Vec<RecallCandidate>, IndexError> {
        let found = self.index.entries_at(session, ordinals).await?.into_iter();
        let opened = found.filter_map(|candidate| self.open_candidate(candidate));
        let whole = |candidate: RecallCandidate| RecallCandidate {
            span: 0..candidate.text.len(),
            ..candidate
        };
        Ok(opened.map(whole).collect())
    }
}

#[cfg(test)]
mod tests {
    use compact_runtime::port::index::conformance::{self, sample_addition, sample_entry};

    use super::*;
    use crate::recall::SqliteIndex;

    #[tokio::test]
    async fn a_sealed_index_conforms_and_shows_no_word() {
        let dir = tempfile::TempDir::new().unwrap();
        let file = dir.path().join("recall.db");
        let index = SealedIndex::new(SqliteIndex::open(&file).unwrap(), Seal::new([3; 32]));
        conformance::suite(&index).await;
        let secret = sample_entry(1, "xylophonezebra walrus");
        index
            .add(sample_addition("s", "r", vec![secret]))
            .await
            .unwrap();
        drop(index);
        for name in ["recall.db", "recall.db-wal"] {
            let bytes = std::fs::read(dir.path().join(name)).unwrap_or_default();
            for word in ["xylophonezebra", "walrus"] {
                assert!(!bytes.windows(word.len()).any(|w| w == word.as_bytes()));
            }
        }
    }
}
