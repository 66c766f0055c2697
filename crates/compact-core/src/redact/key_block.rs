//! Keys and certificates in frames of dashes, also where a tool numbered or quoted their lines, or cut a frame off.
//!
//! `-----BEGIN … PRIVATE KEY-----` makes what follows a secret, line by line as long as the lines are of base64; an end
//! without a beginning makes the lines before it one. A frame around anything else (a certificate, a public key, a
//! signature) makes its lines public, which keeps them from being taken for drawn strings.

use std::ops::Range;

/// The most bytes of a line of a key, with what a tool wrote before it.
const LONGEST_LINE: usize = 512;

/// A line of base64 has this many characters at least, unless it is the last one.
const SHORTEST_LINE: usize = 16;

/// The most characters that a tool writes before a line: a path, a number, a sign.
const LONGEST_DECORATION: usize = 160;

/// What ends a string.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Lines in a row that a key may leave empty.
const MOST_BLANKS: usize = 2;

/// A framed text.
pub(super) struct KeyBlock {
    pub(super) range: Range<usize>,
    pub(super) private: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameEdge {
    Begin,
    End,
}

/// What a line within a frame is.
enum BlockLine {
    /// Base64 until this place.
    Body(usize),
    /// The same, and then the end of a string.
    LastBody(usize),
    Blank,
    /// `Proc-Type: 4,ENCRYPTED`.
    Header,
    /// The other frame, until this place.
    Frame(usize),
    Other,
}

/// The text in the frame whose first dash is at `start`.
pub(super) fn find_block(text: &str, start: usize) -> Option<KeyBlock> {
    let (edge, frame_end, private) = read_frame(text, start)?;
    let range = match edge {
        FrameEdge::Begin => start..find_end(text, frame_end)?,
        FrameEdge::End => find_beginning(text, start)?..frame_end,
    };
    Some(KeyBlock { range, private })
}

/// Which edge the frame is, where it ends, and whether it frames a private key.
fn read_frame(text: &str, start: usize) -> Option<(FrameEdge, usize, bool)> {
    let rest = text.get(start..)?.strip_prefix("-----")?;
    let (edge, label) = match (rest.strip_prefix("BEGIN "), rest.strip_prefix("END ")) {
        (Some(label), _) => (FrameEdge::Begin, label),
        (None, Some(label)) => (FrameEdge::End, label),
        (None, None) => return None,
    };
    let is_label = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b' ';
    let length = label.bytes().take(60).take_while(|b| is_label(b)).count();
    let (label, after) = label.split_at_checked(length)?;
    let after = after.strip_prefix("-----")?;
    Some((
        edge,
        text.len() - after.len(),
        label.contains("PRIVATE KEY"),
    ))
}

/// Where the lines of base64 after `from` end; `None` without any.
fn find_end(text: &str, from: usize) -> Option<usize> {
    let (mut at, mut end, mut blanks) = (from, None, 0);
    while let Some(line) = line_from(text, at) {
        match classify_line(text, &line, end.is_some()) {
            BlockLine::Body(line_end) => end = Some(line_end),
            BlockLine::LastBody(line_end) => return Some(line_end),
            BlockLine::Frame(frame_end) => return end.map(|_| frame_end),
            BlockLine::Header if end.is_none() => {}
            BlockLine::Blank if blanks < MOST_BLANKS => {
                blanks += 1;
                at = after_break(text, line.end)?;
                continue;
            }
            BlockLine::Header | BlockLine::Blank | BlockLine::Other => return end,
        }
        blanks = 0;
        let Some(next) = after_break(text, line.end) else {
            return end;
        };
        at = next;
    }
    end
}

/// Where the lines of base64 before `frame` begin; `None` without any.
fn find_beginning(text: &str, frame: usize) -> Option<usize> {
    let frame_line = line_start(text, frame);
    if text.get(frame_line..frame)?.contains(QUOTES) {
        return None;
    }
    let mut line_end = before_break(text, frame_line)?;
    let mut beginning = None;
    loop {
        let start = line_start(text, line_end);
        let line = start..line_end;
        let longest = line.len() <= LONGEST_LINE;
        match classify_line(text, &line, true) {
            BlockLine::Body(end) if longest => beginning = Some(body_start(text, end).max(start)),
            BlockLine::Blank => {}
            _ => return beginning,
        }
        let Some(before) = before_break(text, start) else {
            return beginning;
        };
        line_end = before;
    }
}

/// No line goes on beyond a quote: within JSON that is another string.
fn classify_line(text: &str, line: &Range<usize>, within: bool) -> BlockLine {
    let Some(content) = text.get(line.clone()) else {
        return BlockLine::Other;
    };
    let string = content.split(QUOTES).next().unwrap_or_default();
    if let Some(dashes) = string.find("-----END ") {
        let frame = read_frame(text, line.start + dashes);
        return frame.map_or(BlockLine::Other, |(_, end, _)| BlockLine::Frame(end));
    }
    let bare = string.trim_end();
    if bare.trim_start().is_empty() && string.len() == content.len() {
        return BlockLine::Blank;
    }
    let end = line.start + bare.len();
    match (
        is_body(text, line.end, bare, within),
        string.len() < content.len(),
    ) {
        (true, false) => BlockLine::Body(end),
        (true, true) => BlockLine::LastBody(end),
        (false, _) if is_header(bare) => BlockLine::Header,
        (false, _) => BlockLine::Other,
    }
}

/// Base64, behind what a tool wrote before it; the last line may be short.
fn is_body(text: &str, line_end: usize, bare: &str, within: bool) -> bool {
    let run = bare.bytes().rev().take_while(|b| is_base64(*b)).count();
    let is_alone = bare.trim_start().len() == run;
    let is_short_end =
        within && run > 0 && (bare.ends_with('=') || is_alone && ends_block(text, line_end));
    run >= SHORTEST_LINE && bare.len() - run < LONGEST_DECORATION || is_short_end
}

fn is_header(line: &str) -> bool {
    let name = line.trim_start().split_once(": ").map(|(name, _)| name);
    name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-'))
}

/// True when the line after a break is the closing frame.
fn ends_block(text: &str, line_end: usize) -> bool {
    let next = after_break(text, line_end).and_then(|at| text.get(at..));
    next.is_some_and(|next| next.trim_start().starts_with("-----END "))
}

fn body_start(text: &str, end: usize) -> usize {
    let before = text.get(..end).unwrap_or_default();
    end - before
        .bytes()
        .rev()
        .take(LONGEST_LINE)
        .take_while(|b| is_base64(*b))
        .count()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The rest of the line at a place; `None` for one that is too long or at the end of the text.
fn line_from(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    let mut bytes = rest.bytes().enumerate().take(LONGEST_LINE).peekable();
    while let Some((at, byte)) = bytes.next() {
        let escaped = byte == b'\\'
            && bytes
                .peek()
                .is_some_and(|(_, b)| matches!(b, b'n' | b'r' | b'\\'));
        if byte == b'\n' || escaped {
            return Some(start..start + at);
        }
    }
    (rest.len() <= LONGEST_LINE).then_some(start..text.len())
}

/// Where the line after the break at `end` starts.
fn after_break(text: &str, end: usize) -> Option<usize> {
    let rest = text.get(end..)?;
    if rest.starts_with('\n') {
        return Some(end + 1);
    }
    let slashes = rest.bytes().take_while(|b| *b == b'\\').count();
    let letter = rest.as_bytes().get(slashes)?;
    (slashes > 0 && matches!(letter, b'n' | b'r' | b't')).then_some(end + slashes + 1)
}

/// Where the line ends that the break before `start` closes.
fn before_break(text: &str, start: usize) -> Option<usize> {
    let before = text.get(..start)?;
    if let Some(line) = before.strip_suffix('\n') {
        return Some(line.strip_suffix('\r').unwrap_or(line).len());
    }
    let line = before.strip_suffix(['n', 'r'])?;
    let end = line.trim_end_matches('\\').len();
    (end < line.len()).then_some(end)
}

/// Where the line of a place starts; the place itself where that is far.
fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default().as_bytes();
    let near = before.len().saturating_sub(LONGEST_LINE + 1);
    let window = before.get(near..).unwrap_or_default();
    let breaks = |pair: &[u8]| matches!(pair, [_, b'\n'] | [b'\\', b'n' | b'r']);
    match window.windows(2).rposition(breaks) {
        Some(pair) => near + pair + 2,
        None if near == 0 => usize::from(before.first() == Some(&b'\n')),
        None => at,
    }
}
