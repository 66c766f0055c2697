//! The texts of entries: many in one frame, since alone a short one hardly gets smaller.

use std::io;

use rusqlite::types::Type;
use rusqlite::{Row, Transaction, params};

use crate::recall::row;

/// How many bytes of texts share a frame. More of them are smaller, and take longer to read one of.
const FRAME_BYTES: usize = 32 << 10;

/// Where a text stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPlace {
    pub(super) frame: i64,
    pub(super) start: i64,
    pub(super) length: i64,
}

/// Texts on their way into the file.
pub(super) struct TextWriter {
    session: i64,
    /// The number of the frame that is being filled.
    frame: i64,
    texts: String,
}

impl TextWriter {
    pub(super) fn new(t: &Transaction<'_>, session: i64) -> rusqlite::Result<TextWriter> {
        // A number is never given twice: an entry of another session may have had it.
        const NEXT: &str =
            "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'texts'";
        Ok(TextWriter {
            session,
            frame: t.query_row(NEXT, [], |row| row.get(0))?,
            texts: String::new(),
        })
    }

    /// Puts a text behind the others.
    pub(super) fn push(&mut self, t: &Transaction<'_>, text: &str) -> rusqlite::Result<TextPlace> {
        if self.texts.len() >= FRAME_BYTES {
            self.write(t)?;
        }
        let place = TextPlace {
            frame: self.frame,
            start: self.texts.len() as i64,
            length: text.len() as i64,
        };
        self.texts.push_str(text);
        Ok(place)
    }

    /// Writes what is there.
    pub(super) fn write(&mut self, t: &Transaction<'_>) -> rusqlite::Result<()> {
        const INSERT: &str = "INSERT INTO texts (id, session, frame) VALUES (?, ?, ?)";
        if self.texts.is_empty() {
            return Ok(());
        }
        let frame = row::compress(self.texts.as_bytes())
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        t.prepare_cached(INSERT)?
            .execute(params![self.frame, self.session, frame])?;
        self.texts.clear();
        self.frame += 1;
        Ok(())
    }
}

/// Reads texts; those that share a frame come out of it together.
#[derive(Default)]
pub(super) struct TextReader {
    open: Option<(i64, Vec<u8>)>,
}

impl TextReader {
    /// Returns the text of a row that has number and bytes of its frame, its first byte and its bytes in the columns from
    /// `column` on.
    pub(super) fn read(&mut self, row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
        let number: i64 = row.get(column)?;
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let frame = row.get_ref(column + 1)?.as_blob()?;
            let texts = row::decompress(frame).map_err(|error| damaged_text(column, error))?;
            self.open = Some((number, texts));
        }
        let (start, length) = (
            row.get::<_, u32>(column + 2)?,
            row.get::<_, u32>(column + 3)?,
        );
        let texts = self.open.as_ref().map(|(_, texts)| texts.as_slice());
        let text = texts.and_then(|texts| texts.get(start as usize..)?.get(..length as usize));
        let text = text.ok_or_else(|| damaged_text(column, io::ErrorKind::UnexpectedEof.into()))?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

fn damaged_text(column: usize, error: io::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, error.into())
}
