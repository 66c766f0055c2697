//! Posting lists: which passages hold a term.
//!
//! The passages are numbered, 65,536 to a block, and a list holds the numbers within its block, two
//! bytes each. That is no more than a clever code takes for most terms, and it is appended to and read
//! without one.

use std::collections::{BTreeMap, HashSet};

use compact_runtime::port::index::EntrySpeaker;
use rusqlite::{OptionalExtension, Transaction, params};

/// How many passages a block numbers.
pub(super) const BLOCK: usize = 1 << 16;

/// The passages that a person or the model spoke, as a term.
pub(super) const SAID: &str = " said";

/// Returns the passages of a session, as a term.
pub(super) fn session_term(session: i64) -> String {
    format!(" {session}")
}

/// Returns what a passage is filed under besides its words.
pub(super) fn marker_terms(session: i64, voice: EntrySpeaker) -> impl Iterator<Item = String> {
    let said = voice.writes_prose().then(|| SAID.to_owned());
    std::iter::once(session_term(session)).chain(said)
}

/// Returns the number of a block, and of a passage in it.
pub(super) fn locate_passage(passage: i64) -> (i64, u16) {
    (passage >> 16, (passage & 0xFFFF) as u16)
}

/// Returns the numbers of a list.
pub(super) fn decode_list(list: &[u8]) -> impl Iterator<Item = u16> {
    let (pairs, _) = list.as_chunks();
    pairs.iter().map(|pair| u16::from_le_bytes(*pair))
}

/// Returns a list, empty when no passage of the block holds the term.
pub(super) fn read_list(t: &Transaction<'_>, block: i64, term: &str) -> rusqlite::Result<Vec<u8>> {
    let mut select =
        t.prepare_cached("SELECT passages FROM postings WHERE block = ? AND term = ?")?;
    let list = select.query_row(params![block, term], |row| row.get(0));
    Ok(list.optional()?.unwrap_or_default())
}

fn write_list(t: &Transaction<'_>, block: i64, term: &str, list: &[u8]) -> rusqlite::Result<()> {
    const REPLACE: &str = "INSERT INTO postings (block, term, passages) VALUES (?, ?, ?) \
         ON CONFLICT DO UPDATE SET passages = excluded.passages";
    t.prepare_cached(REPLACE)?
        .execute(params![block, term, list])?;
    Ok(())
}

/// Lists that grow, in the order in which they are written.
#[derive(Default)]
pub(super) struct PostingAdditions(BTreeMap<(i64, String), Vec<u8>>);

impl PostingAdditions {
    /// Files a passage whose number is higher than all before.
    pub(super) fn add_passage(&mut self, passage: i64, term: String) {
        let (block, number) = locate_passage(passage);
        let list = self.0.entry((block, term)).or_default();
        list.extend(number.to_le_bytes());
    }

    pub(super) fn write(self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        for ((block, term), new) in self.0 {
            let mut list = read_list(t, block, &term)?;
            list.extend(new);
            write_list(t, block, &term, &list)?;
        }
        Ok(())
    }
}

/// Takes passages out of every list of a block.
pub(super) fn remove_passages(
    t: &Transaction<'_>,
    block: i64,
    gone: &HashSet<u16>,
) -> rusqlite::Result<()> {
    let mut changed: Vec<(String, Vec<u8>)> = Vec::new();
    let mut select = t.prepare_cached("SELECT term, passages FROM postings WHERE block = ?")?;
    let mut rows = select.query([block])?;
    while let Some(row) = rows.next()? {
        let list = row.get_ref(1)?.as_blob()?;
        let kept: Vec<u8> = decode_list(list)
            .filter(|number| !gone.contains(number))
            .flat_map(u16::to_le_bytes)
            .collect();
        if kept.len() < list.len() {
            changed.push((row.get(0)?, kept));
        }
    }
    let mut delete = t.prepare_cached("DELETE FROM postings WHERE block = ? AND term = ?")?;
    for (term, kept) in changed {
        match kept.is_empty() {
            true => _ = delete.execute(params![block, term])?,
            false => write_list(t, block, &term, &kept)?,
        }
    }
    Ok(())
}
