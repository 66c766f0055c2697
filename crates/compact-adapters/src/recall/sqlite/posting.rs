//! Posting lists: which passages hold a term.
//!
//! The passages are numbered, 65,536 to a block, and a list holds the numbers within its block: the first in two bytes,
//! for each further one the distance from the one before. The terms of a block stand in order, each without what it
//! shares with the one before, and many to a page, which is compressed: a row for each term would take four times the
//! room, most terms being in one passage only.

use std::collections::{BTreeMap, HashMap, HashSet};

use compact_runtime::port::index::EntrySpeaker;
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Transaction, params};

use super::number;
use crate::recall::row;

/// How many passages a block numbers.
pub(super) const BLOCK: usize = 1 << 16;

/// About how many bytes of terms and lists stand in a page. Larger ones are hardly smaller in all, and each term that is
/// looked for costs one.
const PAGE_BYTES: usize = 16 << 10;

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

/// Which passages of a block hold a term, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PostingList(Vec<u8>);

impl PostingList {
    /// Returns the list of numbers that ascend.
    fn from_numbers(numbers: impl IntoIterator<Item = u16>) -> PostingList {
        let mut list = PostingList::default();
        list.extend(numbers);
        list
    }

    /// Adds numbers that are higher than all before.
    fn extend(&mut self, numbers: impl IntoIterator<Item = u16>) {
        let mut last = self.numbers().last();
        for number in numbers {
            match last {
                None => self.0.extend(number.to_le_bytes()),
                Some(last) => number::write(&mut self.0, u64::from(number.saturating_sub(last))),
            }
            last = Some(number);
        }
    }

    /// Returns the numbers of the list.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u16> {
        let (first, mut rest) = match self.0.split_first_chunk() {
            Some((first, rest)) => (Some(u16::from_le_bytes(*first)), rest),
            None => (None, &[][..]),
        };
        let further = move |last: &u16| {
            let distance = number::read(&mut rest)?;
            last.checked_add(u16::try_from(distance).ok()?)
        };
        std::iter::successors(first, further)
    }

    /// Returns how many numbers the list holds.
    pub(super) fn count(&self) -> u64 {
        let ends_number = |byte: &&u8| **byte < 0x80;
        let further = self.0.get(2..).unwrap_or_default();
        let first = u64::from(!self.0.is_empty());
        first + further.iter().filter(ends_number).count() as u64
    }

    /// Returns whether no passage of the block holds the term.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The terms of a stretch of a block, in order.
type TermPage = BTreeMap<String, PostingList>;

/// Reads the terms of a page one after the other.
struct PageReader<'a> {
    rest: &'a [u8],
    term: Vec<u8>,
}

impl<'a> PageReader<'a> {
    fn new(page: &'a [u8]) -> PageReader<'a> {
        PageReader {
            rest: page,
            term: Vec::new(),
        }
    }

    /// Returns the list of the next term, which is then [`PageReader::term`]; nothing at the end.
    fn next_list(&mut self) -> Option<&'a [u8]> {
        let shared = number::read(&mut self.rest)? as usize;
        let own = number::read(&mut self.rest)? as usize;
        let list = number::read(&mut self.rest)? as usize;
        let (own, rest) = self.rest.split_at_checked(own)?;
        let (list, rest) = rest.split_at_checked(list)?;
        self.rest = rest;
        self.term.truncate(shared);
        self.term.extend_from_slice(own);
        Some(list)
    }

    /// Checks that everything was read.
    fn finish(self) -> rusqlite::Result<()> {
        self.rest.is_empty().then_some(()).ok_or_else(damaged_page)
    }
}

fn read_page(frame: &[u8]) -> rusqlite::Result<TermPage> {
    let page = open_page(frame)?;
    let mut reader = PageReader::new(&page);
    let mut terms = TermPage::new();
    while let Some(list) = reader.next_list() {
        let term = String::from_utf8(reader.term.clone()).map_err(|_| damaged_page())?;
        terms.insert(term, PostingList(list.to_vec()));
    }
    reader.finish().map(|()| terms)
}

fn open_page(frame: &[u8]) -> rusqlite::Result<Vec<u8>> {
    row::decompress(frame).map_err(|_| damaged_page())
}

fn damaged_page() -> rusqlite::Error {
    let reason = "it holds no terms with their passages";
    rusqlite::Error::FromSqlConversionFailure(1, Type::Blob, reason.into())
}

/// A page on its way into the file.
#[derive(Default)]
struct PageWriter {
    /// The smallest term that the page may hold.
    first: String,
    bytes: Vec<u8>,
    last: String,
}

impl PageWriter {
    fn push(&mut self, term: &str, list: &PostingList) {
        let both = self.last.bytes().zip(term.bytes());
        let shared = both.take_while(|(a, b)| a == b).count();
        let own = term.as_bytes().get(shared..).unwrap_or_default();
        for length in [shared, own.len(), list.0.len()] {
            number::write(&mut self.bytes, length as u64);
        }
        self.bytes.extend_from_slice(own);
        self.bytes.extend_from_slice(&list.0);
        term.clone_into(&mut self.last);
    }

    /// Returns whether a list no longer fits.
    fn is_full_with(&self, term: &str, list: &PostingList) -> bool {
        !self.bytes.is_empty() && self.bytes.len() + term.len() + list.0.len() > PAGE_BYTES
    }
}

/// Writes terms in the place of the page that opens with `first`.
fn write_pages(
    t: &Transaction<'_>,
    block: i64,
    first: String,
    terms: &TermPage,
) -> rusqlite::Result<()> {
    const REPLACE: &str = "INSERT INTO postings (block, first, terms) VALUES (?, ?, ?) \
         ON CONFLICT DO UPDATE SET terms = excluded.terms";
    const DELETE: &str = "DELETE FROM postings WHERE block = ? AND first = ?";
    if terms.is_empty() {
        let mut delete = t.prepare_cached(DELETE)?;
        return delete.execute(params![block, first]).map(drop);
    }
    let mut replace = t.prepare_cached(REPLACE)?;
    let mut write = |page: PageWriter| {
        let frame = row::compress(&page.bytes)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        replace.execute(params![block, page.first, frame])
    };
    let mut page = PageWriter {
        first,
        ..PageWriter::default()
    };
    for (term, list) in terms {
        if page.is_full_with(term, list) {
            let next = PageWriter {
                first: term.clone(),
                ..PageWriter::default()
            };
            write(std::mem::replace(&mut page, next))?;
        }
        page.push(term, list);
    }
    write(page).map(drop)
}

/// Returns a list, empty when no passage of the block holds the term.
pub(super) fn read_list(
    t: &Transaction<'_>,
    block: i64,
    term: &str,
) -> rusqlite::Result<PostingList> {
    let find = |frame: &[u8]| {
        let page = open_page(frame)?;
        let mut reader = PageReader::new(&page);
        while let Some(list) = reader.next_list() {
            if reader.term == term.as_bytes() {
                return Ok(PostingList(list.to_vec()));
            }
        }
        reader.finish().map(|()| PostingList::default())
    };
    let mut select = t.prepare_cached(PAGE_OF)?;
    let found = select.query_row(params![block, term], |row| find(row.get_ref(1)?.as_blob()?));
    Ok(found.optional()?.unwrap_or_default())
}

/// The page that a term belongs to.
const PAGE_OF: &str = "SELECT first, terms FROM postings WHERE block = ? AND first <= ? \
     ORDER BY first DESC LIMIT 1";

/// Lists that grow, of one block at a time.
#[derive(Default)]
pub(super) struct PostingAdditions {
    block: i64,
    lists: HashMap<String, Vec<u16>>,
}

impl PostingAdditions {
    /// Files a passage whose number is higher than all before. Once a block is full, its lists are written.
    pub(super) fn add_passage(
        &mut self,
        t: &Transaction<'_>,
        passage: i64,
        terms: impl Iterator<Item = String>,
    ) -> rusqlite::Result<()> {
        let (block, number) = locate_passage(passage);
        if block != self.block {
            self.write(t)?;
            self.block = block;
        }
        for term in terms {
            self.lists.entry(term).or_default().push(number);
        }
        Ok(())
    }

    /// Writes what is there, page by page.
    pub(super) fn write(&mut self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        const NEXT: &str = "SELECT min(first) FROM postings WHERE block = ? AND first > ?";
        let mut lists: Vec<(String, Vec<u16>)> = self.lists.drain().collect();
        lists.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut lists = lists.into_iter().peekable();
        while let Some((term, _)) = lists.peek() {
            let mut select = t.prepare_cached(PAGE_OF)?;
            let page = select.query_row(params![self.block, term], |row| {
                Ok((row.get(0)?, read_page(row.get_ref(1)?.as_blob()?)?))
            });
            let (first, mut page): (String, TermPage) = page.optional()?.unwrap_or_default();
            let mut select = t.prepare_cached(NEXT)?;
            let next: Option<String> =
                select.query_row(params![self.block, first], |row| row.get(0))?;
            let is_before = |(term, _): &(String, _)| next.as_ref().is_none_or(|next| term < next);
            while let Some((term, numbers)) = lists.next_if(is_before) {
                page.entry(term).or_default().extend(numbers);
            }
            write_pages(t, self.block, first, &page)?;
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
    let mut changed: Vec<(String, TermPage)> = Vec::new();
    let mut select = t.prepare_cached("SELECT first, terms FROM postings WHERE block = ?")?;
    let mut rows = select.query([block])?;
    while let Some(row) = rows.next()? {
        let page = read_page(row.get_ref(1)?.as_blob()?)?;
        let kept = without_passages(&page, gone);
        if kept != page {
            changed.push((row.get(0)?, kept));
        }
    }
    for (first, kept) in changed {
        write_pages(t, block, first, &kept)?;
    }
    Ok(())
}

fn without_passages(page: &TermPage, gone: &HashSet<u16>) -> TermPage {
    let kept = page.iter().map(|(term, list)| {
        let numbers = list.numbers().filter(|number| !gone.contains(number));
        (term.clone(), PostingList::from_numbers(numbers))
    });
    kept.filter(|(_, list)| !list.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_list_is_what_it_was_made_of() {
        let lists: [&[u16]; 4] = [&[], &[7], &[0, 1, 127, 128, 300, 65_535], &[65_535]];
        for numbers in lists {
            let list = PostingList::from_numbers(numbers.iter().copied());
            assert_eq!(list.numbers().collect::<Vec<_>>(), numbers);
            assert_eq!(list.count(), numbers.len() as u64);
        }
        let mut grown = PostingList::from_numbers([3, 4]);
        grown.extend([1_000, 1_001]);
        assert_eq!(grown, PostingList::from_numbers([3, 4, 1_000, 1_001]));
    }

    #[test]
    fn a_page_is_read_as_it_was_written_and_damage_is_told() {
        let terms = ["", "a", "äöü", "äöüß", "pars", "parse_config", "z"];
        let mut writer = PageWriter::default();
        let mut page = TermPage::new();
        for (at, term) in terms.into_iter().enumerate() {
            let list = PostingList::from_numbers([at as u16, 60_000]);
            page.insert(term.to_owned(), list);
        }
        page.iter().for_each(|(term, list)| writer.push(term, list));
        let frame = row::compress(&writer.bytes).unwrap();
        assert_eq!(read_page(&frame).unwrap(), page);
        let cut = writer.bytes.get(..writer.bytes.len() - 1).unwrap();
        for damaged in [frame.get(1..).unwrap(), &row::compress(cut).unwrap()] {
            assert!(read_page(damaged).is_err());
        }
    }

    /// The passages of some terms in each block, as they are read.
    fn read_some(t: &Transaction<'_>, terms: &[String]) -> Vec<Vec<i64>> {
        let numbers_of = |term: &String| {
            let in_block = |block| {
                let list = read_list(t, block, term).unwrap();
                let numbers: Vec<u16> = list.numbers().collect();
                assert_eq!(list.count(), numbers.len() as u64);
                let wide = move |number| block * BLOCK as i64 + i64::from(number);
                numbers.into_iter().map(wide).collect::<Vec<i64>>()
            };
            (0..3).flat_map(in_block).collect()
        };
        terms.iter().step_by(STEP).map(numbers_of).collect()
    }

    /// A page takes long to be read without optimisation: one in so many terms is compared, the first among them.
    const STEP: usize = 89;

    /// Terms of many pages, in two blocks, added in parts and then taken out, are where they should be all along.
    #[test]
    fn lists_grow_over_pages_and_blocks_and_shrink_again() {
        let mut connection = Connection::open_in_memory().unwrap();
        for migration in super::super::MIGRATIONS {
            connection.execute_batch(migration).unwrap();
        }
        let t = connection.transaction().unwrap();
        let terms: Vec<String> = (0..9_000).map(|n| format!("{}term-{n}", n % 7)).collect();
        let of = |passage: i64| {
            let rare = terms.get(1 + passage as usize * 31 % 8_999).unwrap();
            [terms[0].clone(), rare.clone()].into_iter()
        };
        let some = |want: &[Vec<i64>]| want.iter().step_by(STEP).cloned().collect::<Vec<_>>();
        let mut want = vec![Vec::new(); terms.len()];
        let passages: Vec<i64> = (64_000..67_000).collect();
        for part in passages.chunks(700) {
            let mut growth = PostingAdditions::default();
            for passage in part {
                growth.add_passage(&t, *passage, of(*passage)).unwrap();
                for term in of(*passage) {
                    want[terms.iter().position(|known| *known == term).unwrap()].push(*passage);
                }
            }
            growth.write(&t).unwrap();
            assert_eq!(read_some(&t, &terms), some(&want));
        }
        assert_eq!(
            read_list(&t, 0, "no such term").unwrap(),
            PostingList::default()
        );
        let is_gone = |passage: &i64| passage % 3 == 0 || *passage > 66_000;
        for block in 0..2 {
            let gone = passages.iter().filter(|p| is_gone(p));
            let gone = gone.map(|p| locate_passage(*p)).filter(|at| at.0 == block);
            remove_passages(&t, block, &gone.map(|(_, number)| number).collect()).unwrap();
        }
        want.iter_mut()
            .for_each(|list| list.retain(|passage| !is_gone(passage)));
        assert_eq!(read_some(&t, &terms), some(&want));
    }
}
