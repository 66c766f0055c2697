//! Rows with aligned columns. Cells are plain text: style whole columns, so that widths stay true.

use owo_colors::{OwoColorize, Style};
use unicode_width::UnicodeWidthStr;

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    align: Align,
    style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

impl Column {
    /// Text.
    pub(crate) fn left() -> Column {
        Column {
            align: Align::Left,
            style: Style::new(),
        }
    }

    /// Numbers.
    pub(crate) fn right() -> Column {
        Column {
            align: Align::Right,
            style: Style::new(),
        }
    }

    /// The same, styled.
    pub(crate) fn style(self, style: Style) -> Column {
        Column { style, ..self }
    }
}

/// Rows of cells.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub(crate) fn new(columns: [Column; N]) -> Self {
        Table {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn add_row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// The rows, indented by two, two spaces between columns, nothing after the last.
    pub(crate) fn render(&self) -> String {
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let mut out = String::new();
        for row in &self.rows {
            out.push_str(&self.render_row(row, &widths));
            out.push('\n');
        }
        out
    }

    fn render_row(&self, row: &[String; N], widths: &[usize; N]) -> String {
        let mut out = String::new();
        let mut pending = 2;
        for ((cell, width), column) in row.iter().zip(widths).zip(&self.columns) {
            let gap = width - cell.width();
            let (before, after) = match column.align {
                Align::Left => (0, gap),
                Align::Right => (gap, 0),
            };
            pending += before;
            if !cell.is_empty() {
                out.push_str(&" ".repeat(pending));
                out.push_str(&cell.style(column.style).to_string());
                pending = 0;
            } else {
                pending += cell.width();
            }
            pending += after + 2;
        }
        out
    }
}
