//! Values that stand below their name: the columns of a table, as spreadsheets, databases and Markdown write them.
//!
//! A line is a header if all its cells are short names. The lines behind it belong to the table as long as they have as
//! many cells. No line is read twice.

use std::ops::Range;

use super::assignment::{AssignedValue, ValueOperator};

/// The most bytes of a header, and of the rows that are read behind it.
const HEADER_REACH: usize = 256;
const TABLE_REACH: usize = 8192;

/// What parts cells, also as it stands within a string of JSON.
const SEPARATORS: [&str; 5] = [",", "\t", "\\t", ";", "|"];

/// What parts lines.
const LINE_ENDS: [&str; 2] = ["\n", "\\n"];

/// What one pass over a text remembers.
#[derive(Default)]
pub(super) struct ColumnScan {
    /// Until where tables were read.
    read: usize,
}

impl ColumnScan {
    /// Calls `found` with each cell below the column that is called `name`.
    pub(super) fn read_below<'t>(
        &mut self,
        text: &'t str,
        name: &Range<usize>,
        mut found: impl FnMut(AssignedValue<'t>),
    ) {
        let Some(separator) = separator_beside(text, name).filter(|_| name.start >= self.read)
        else {
            return;
        };
        let Some((line_end, rows)) = rest_of_line(text, name.end) else {
            return;
        };
        let header = line_start(text, name.start)..line_end;
        let Some(column) = Column::from_header(text, separator, &header, name) else {
            return;
        };
        let Some(rows) = column.first_row(text, rows) else {
            return;
        };
        let limit = text.floor_char_boundary((rows + TABLE_REACH).min(text.len()));
        let mut at = rows;
        while at < limit {
            let (end, next) = rest_of_line(text, at).unwrap_or((text.len(), text.len()));
            let Some(cell) = column.cell_of(text, at..end.min(limit)) else {
                break;
            };
            found(AssignedValue {
                name: text.get(name.clone()).unwrap_or_default(),
                name_quoted: false,
                operator: ValueOperator::Argument,
                spaced: false,
                value: text.get(cell.clone()).unwrap_or_default(),
                quoted: true,
                next: None,
                range: cell,
            });
            at = next;
        }
        self.read = at;
    }
}

/// Where a column stands in its table.
struct Column {
    separator: &'static str,
    cells: usize,
    nth: usize,
}

impl Column {
    fn from_header(
        text: &str,
        separator: &'static str,
        header: &Range<usize>,
        name: &Range<usize>,
    ) -> Option<Column> {
        let line = text.get(header.clone())?;
        let is_name = |cell: &str| {
            let cell = cell.trim_matches([' ', '"', '\'', '\\', '\r']);
            let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
            cell.len() <= 40 && cell.bytes().all(is_name) && (separator == "|" || !cell.is_empty())
        };
        let cells = line.split(separator).count();
        // A command that writes the table may stand before its first cell.
        let line = match line.split(separator).next()?.rfind(['"', '\'', ':']) {
            Some(opening) => line.get(opening + 1..)?,
            None => line,
        };
        let nth = text
            .get(header.start..name.start)?
            .matches(separator)
            .count();
        (cells > 1 && line.split(separator).all(is_name)).then_some(Column {
            separator,
            cells,
            nth,
        })
    }

    /// Where the first row begins: columns between strokes have a ruled line below their header.
    fn first_row(&self, text: &str, rows: usize) -> Option<usize> {
        if self.separator != "|" {
            return Some(rows);
        }
        let (end, next) = rest_of_line(text, rows)?;
        text.get(rows..end)?.contains("---").then_some(next)
    }

    /// The cell of a row, without blanks and quotes; nothing where the table has ended.
    fn cell_of(&self, text: &str, row: Range<usize>) -> Option<Range<usize>> {
        let line = text.get(row.clone())?;
        if line.matches(self.separator).count() + 1 != self.cells {
            return None;
        }
        let before = line.split(self.separator).take(self.nth);
        let before: usize = before.map(|cell| cell.len() + self.separator.len()).sum();
        let cell = line.split(self.separator).nth(self.nth)?;
        let start = row.start + before;
        let inner = cell.trim_start_matches([' ', '"', '\'', '\\']);
        let from = start + cell.len() - inner.len();
        let inner = inner.trim_end_matches([' ', '"', '\'', '\\', '\r']);
        Some(from..from + inner.len())
    }
}

/// What parts the cell of a name from the next or the one before.
fn separator_beside(text: &str, name: &Range<usize>) -> Option<&'static str> {
    let (before, after) = (text.get(..name.start)?, text.get(name.end..)?);
    let before = before.trim_end_matches([' ', '"', '\'']);
    let after = after.trim_start_matches([' ', '"', '\'']);
    let is_beside =
        |separator: &&str| after.starts_with(*separator) || before.ends_with(*separator);
    SEPARATORS.into_iter().find(is_beside)
}

/// Where the line begins that a place is in, as far back as a header may reach.
fn line_start(text: &str, at: usize) -> usize {
    let near = text.floor_char_boundary(at.saturating_sub(HEADER_REACH));
    let before = text.get(near..at).unwrap_or_default();
    let starts = LINE_ENDS
        .iter()
        .filter_map(|end| Some(before.rfind(end)? + end.len()));
    near + starts.max().unwrap_or(0)
}

/// Where the line ends that a place is in, and where the next begins; nothing where it is long.
fn rest_of_line(text: &str, at: usize) -> Option<(usize, usize)> {
    let limit = text.floor_char_boundary((at + HEADER_REACH).min(text.len()));
    let rest = text.get(at..limit)?;
    let ends = LINE_ENDS
        .iter()
        .filter_map(|end| Some((rest.find(end)?, end.len())));
    ends.min()
        .map(|(end, length)| (at + end, at + end + length))
}
