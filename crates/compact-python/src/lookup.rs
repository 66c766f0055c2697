//! What an agent looks up, as the text that its tools answer with.

use compact::Error;
use compact::recall::{
    AnswerStyle, EntryPointer, ExpandQuery, Expansion, LinePattern, QUOTE_NOTE, SearchAnswer,
    SecretDisplay, TextPart, fence_text,
};

/// The most bytes of text in one answer: some four thousand tokens.
const ROOM: usize = 16_000;

const STYLE: AnswerStyle = AnswerStyle {
    quote: fence_text,
    ask_rest: |pointer, line| format!("expand {pointer} with lines {line}.."),
};

/// Reads what an agent asked `expand` for.
pub(crate) fn expand_query(
    pointer: &str,
    session_id: Option<&str>,
    grep: Option<&str>,
    lines: Option<&str>,
    around: u64,
) -> Result<ExpandQuery, Error> {
    Ok(ExpandQuery {
        pointers: vec![EntryPointer::parse(pointer)?],
        session_id: session_id.map(str::to_owned),
        neighbours: around,
        part: match (grep, lines) {
            (Some(pattern), _) => TextPart::Matching(LinePattern::parse(pattern)?),
            (None, Some(lines)) => TextPart::parse_lines(lines)?,
            (None, None) => TextPart::Whole,
        },
        secrets: SecretDisplay::Redacted,
        room: ROOM,
    })
}

pub(crate) fn render_hits(answer: &SearchAnswer) -> String {
    format!("{QUOTE_NOTE}\n\n{}", answer.render(&STYLE))
}

pub(crate) fn render_entries(found: &Expansion) -> String {
    format!("{QUOTE_NOTE}\n\n{}", found.render(&STYLE))
}
