//! The input as lines and spans, and what a wire makes of it.

use std::ops::Range;

use compact_core::message::{Block, EntryMeta, Role};
use compact_core::wire::WireRules;
use serde::Deserialize;

use crate::TranscriptProblem;
use crate::error::{FormatError, Position};
use crate::halves;
use crate::json::ItemContext;

/// The place of an entry in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryPlace {
    /// The index of its line, or of its message in a list.
    pub(crate) line: usize,
    /// The bytes of its JSON.
    pub(crate) span: Range<usize>,
    /// Which one of several entries on the line, when a line holds several.
    pub(crate) part: Option<usize>,
}

impl EntryPlace {
    /// Returns a name made from the place, for what has none of its own.
    pub(crate) fn name(&self) -> String {
        match self.part {
            None => format!("{}", self.line),
            Some(part) => format!("{}.{part}", self.line),
        }
    }

    /// Returns what places are ordered by; two with another order have another name.
    pub(crate) fn order(&self) -> (usize, Option<usize>) {
        (self.line, self.part)
    }
}

/// An entry that has no id yet.
pub(crate) struct EntryDraft {
    pub(crate) id: Option<String>,
    pub(crate) role: Role,
    pub(crate) blocks: Vec<Block>,
    pub(crate) meta: EntryMeta,
    pub(crate) place: EntryPlace,
}

/// The layout of the source around its entries.
#[derive(Clone, Debug)]
pub(crate) enum SourceLayout {
    /// A JSON list, perhaps within a document.
    List {
        /// The offset after its opening bracket.
        open: usize,
        /// The span of every element.
        messages: Vec<Range<usize>>,
    },
    /// One JSON value per line.
    Lines {
        /// The span of every line, without its newline.
        lines: Vec<Range<usize>>,
        /// The line from which on the transcript is the live context.
        live_from: usize,
    },
}

impl SourceLayout {
    /// Returns the line of a place as people count, where lines are what they see.
    pub(crate) fn line_number(&self, place: &EntryPlace) -> Option<usize> {
        match self {
            SourceLayout::List { .. } => None,
            SourceLayout::Lines { .. } => Some(place.line + 1),
        }
    }
}

/// A transcript as a wire reads it.
pub(crate) struct TranscriptReading {
    pub(crate) session_id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) tools: Option<String>,
    pub(crate) drafts: Vec<EntryDraft>,
    pub(crate) layout: SourceLayout,
    pub(crate) problems: Vec<TranscriptProblem>,
    /// What the provider accepts, where the body says more than the format does.
    pub(crate) rules: Option<&'static WireRules>,
    /// True where a message in the user's place bears a name: whose it is depends on the first one.
    pub(crate) names_users: bool,
}

impl TranscriptReading {
    pub(crate) fn new(layout: SourceLayout) -> Self {
        TranscriptReading {
            session_id: None,
            model: None,
            tools: None,
            drafts: Vec::new(),
            layout,
            problems: Vec::new(),
            rules: None,
            names_users: false,
        }
    }

    /// Puts what stands beside the list before its entries.
    pub(crate) fn put_first(&mut self, drafts: impl IntoIterator<Item = EntryDraft>) {
        let listed = std::mem::replace(&mut self.drafts, drafts.into_iter().collect());
        let first = self.drafts.len();
        self.drafts.extend(listed);
        for entry in self.problems.iter_mut().filter_map(|p| p.entry.as_mut()) {
            *entry += first;
        }
    }

    /// Returns the role of the next entry where it goes by a name that no one knows; `line` is the file's.
    pub(crate) fn unknown_role(&mut self, name: &str, line: Option<usize>) -> Role {
        self.problems.push(TranscriptProblem {
            entry: Some(self.drafts.len()),
            line,
            message: format!("unknown role `{name}`, read as user"),
        });
        Role::User
    }
}

/// Returns the error for lines among which none is of the format asked for.
pub(crate) fn unrecognised_error(source: &[u8]) -> FormatError {
    if source
        .get(start_offset(source)..)
        .unwrap_or_default()
        .trim_ascii()
        .is_empty()
    {
        return FormatError::Empty;
    }
    FormatError::Unrecognised {
        at: Position::at_offset(source, start_offset(source)),
    }
}

/// The byte order mark that some editors put first.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Returns the offset of the first byte after a byte order mark.
pub(crate) fn start_offset(source: &[u8]) -> usize {
    if source.starts_with(BOM) {
        BOM.len()
    } else {
        0
    }
}

/// Returns the span of every line, without its newline.
pub(crate) fn line_spans(source: &[u8]) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut begin = start_offset(source);
    for end in memchr::memchr_iter(b'\n', source) {
        spans.push(begin..end);
        begin = end + 1;
    }
    if begin < source.len() {
        spans.push(begin..source.len());
    }
    spans
}

/// Returns the text of a span.
pub(crate) fn span_text(source: &[u8], span: Range<usize>) -> Result<&str, FormatError> {
    let start = span.start;
    std::str::from_utf8(source.get(span).unwrap_or_default()).map_err(|error| FormatError::Utf8 {
        at: Position::at_offset(source, start + error.valid_up_to()),
    })
}

/// One line that has been read.
pub(crate) struct SourceLine<'s, T> {
    pub(crate) index: usize,
    /// Its JSON, without white space around it.
    pub(crate) json: &'s str,
    pub(crate) offset: usize,
    pub(crate) value: T,
}

impl<T> SourceLine<'_, T> {
    /// Returns false for a line of another kind: a list would be read as an object without names.
    pub(crate) fn is_object(&self) -> bool {
        self.json.starts_with('{')
    }

    /// Returns where an entry that is the whole line stands.
    pub(crate) fn entry_place(&self) -> EntryPlace {
        EntryPlace {
            line: self.index,
            span: self.offset..self.offset + self.json.len(),
            part: None,
        }
    }
}

/// Returns every line that is an object.
pub(crate) fn read_objects<'s, T: Deserialize<'s> + Send>(
    source: &'s [u8],
    spans: &[Range<usize>],
    problems: &mut Vec<TranscriptProblem>,
) -> Result<Vec<SourceLine<'s, T>>, FormatError> {
    let read = |lines: Range<usize>| {
        let mut problems = Vec::new();
        let mut objects = Vec::with_capacity(lines.len());
        for index in lines {
            let line = read_line(source, spans, index, &mut problems)?;
            objects.extend(line.filter(SourceLine::is_object));
        }
        Ok((objects, problems))
    };
    let middle = spans.partition_point(|span| span.start < source.len() / 2);
    let all = 0..spans.len();
    let halves = halves::read_halves(all, middle, source.len(), read)?;
    let mut objects = Vec::new();
    for (read, odd) in halves {
        problems.extend(odd);
        match objects.is_empty() {
            true => objects = read,
            false => objects.extend(read),
        }
    }
    Ok(objects)
}

/// Reads the line at `index`; nothing for a blank one or for a torn last one, which is noted.
pub(crate) fn read_line<'s, T: Deserialize<'s>>(
    source: &'s [u8],
    spans: &[Range<usize>],
    index: usize,
    problems: &mut Vec<TranscriptProblem>,
) -> Result<Option<SourceLine<'s, T>>, FormatError> {
    let Some(span) = spans.get(index) else {
        return Ok(None);
    };
    match parse_line(source, span, index) {
        Err(FormatError::Json { .. } | FormatError::Utf8 { .. })
            if index > 0 && is_torn(source, spans, index) =>
        {
            problems.push(TranscriptProblem {
                entry: None,
                line: Some(index + 1),
                message: "the last line is torn; it is kept but not read".to_owned(),
            });
            Ok(None)
        }
        result => result,
    }
}

/// What the boundaries say that may be appended to a transcript.
const BOUNDARIES: [&str; 5] = [
    "\"compact_boundary\"",
    "\"$set\":{\"messages\"",
    "\"compacted\"",
    "\"type\":\"compaction\"",
    "\"session.compaction_complete\"",
];

/// Returns a line that is no JSON because its writer stopped within it: the last one without its newline,
/// or one that a compaction was appended after.
fn is_torn(source: &[u8], spans: &[Range<usize>], index: usize) -> bool {
    let bytes = |at: usize| spans.get(at).and_then(|span| source.get(span.clone()));
    let is_json = |line: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    let ends_here = match bytes(index + 1) {
        None => !source.ends_with(b"\n"),
        Some(next) => BOUNDARIES
            .iter()
            .any(|mark| memchr::memmem::find(next, mark.as_bytes()).is_some()),
    };
    ends_here && bytes(index).is_some_and(|line| !is_json(line))
}

fn parse_line<'s, T: Deserialize<'s>>(
    source: &'s [u8],
    span: &Range<usize>,
    index: usize,
) -> Result<Option<SourceLine<'s, T>>, FormatError> {
    let line = span_text(source, span.clone())?;
    let json = line.trim_ascii();
    if json.is_empty() {
        return Ok(None);
    }
    let offset = span.start + (line.len() - line.trim_ascii_start().len());
    let value = ItemContext { source, offset }.read(json)?;
    Ok(Some(SourceLine {
        index,
        json,
        offset,
        value,
    }))
}
