//! How answers look: numbers, bars, tables and safe text, at 80 columns, in colour or not.
//!
//! Pure: values in, text out. Styles are ANSI sequences that the stream drops where they are not
//! wanted, so nothing here asks what it is printed on.

pub(crate) mod bar;
pub(crate) mod compaction;
pub(crate) mod number;
pub(crate) mod plot;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use std::env;
use std::io::IsTerminal;

use crate::args::{Color, GlobalArgs};

/// The most columns that a report uses.
pub(crate) const COLUMNS: usize = 80;

/// Which characters may be used for drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    /// Blocks and arrows.
    Unicode,
    /// Nothing beyond ASCII.
    Ascii,
}

impl Charset {
    /// What the reader's terminal can show, as far as it says.
    pub(crate) fn detect(global: &GlobalArgs) -> Charset {
        let seen = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none(),
        };
        if seen && speaks_utf8() {
            Charset::Unicode
        } else {
            Charset::Ascii
        }
    }

    /// Between two facts on a line.
    pub(crate) fn separator(self) -> &'static str {
        match self {
            Charset::Unicode => " · ",
            Charset::Ascii => ", ",
        }
    }

    /// Before a quoted line.
    pub(crate) fn quote_mark(self) -> &'static str {
        match self {
            Charset::Unicode => "│ ",
            Charset::Ascii => "| ",
        }
    }
}

fn speaks_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}
