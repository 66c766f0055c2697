//! Which part of a person's message is their own, and which they brought along: pasted, quoted, attached.
//!
//! A stranger's order that is told as the person's is far worse than a rule that only stands in its message, so
//! whatever may be somebody else's is taken for it. What opens and closes (a fence, an element, lines that quote)
//! ends where it closes last; what only opens (`Here is the mail:`, `Subject: …`, `--- notes.md ---`) goes on to the
//! end of the message. A line shows a text where it names one (`this README`), asks to work on one (`summarize`) or
//! points to it; any other line that ends in a colon goes on in its writer's own words, and a writer who directs
//! (`Fix these errors:`) does so where the list ends, or with their next heading.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::element_name;
use crate::cue_list::{PhraseList, WordList, cue_file};

static PASTE_WORDS: PhraseList = PhraseList::anywhere(cue_file!("paste_word"));
static QUOTING_HEADS: PhraseList = PhraseList::anywhere(cue_file!("quoting_head"));
static LETTER_HEADERS: WordList = WordList::new(cue_file!("letter_header"));
static GREETINGS: PhraseList = PhraseList::at_start(cue_file!("greeting"));
static SIGNATURES: WordList = WordList::new(cue_file!("signature"));
static SPEAKERS: WordList = WordList::new(cue_file!("speaker"));
static TEXT_TASKS: PhraseList = PhraseList::anywhere(cue_file!("text_task"));
static TALK_WORDS: PhraseList = PhraseList::anywhere(cue_file!("talk_word"));
static OWN_LABELS: WordList = WordList::new(cue_file!("own_label"));
static OWN_HEADINGS: WordList = WordList::new(cue_file!("own_heading"));
static OWN_ELEMENTS: WordList = WordList::new(cue_file!("own_element"));
static CASE_OPENERS: PhraseList = PhraseList::at_start(cue_file!("case_opener"));
static DIRECTIVES: PhraseList = PhraseList::at_start(cue_file!("directive"));
static POINTING_WORDS: PhraseList = PhraseList::anywhere(cue_file!("pointing_word"));
static RULE_LABELS: PhraseList = PhraseList::anywhere(cue_file!("rule_label"));

/// The parts of a message that its writer brought along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastedParts {
    /// Where they stand, in order, apart from each other.
    pub places: Vec<Range<usize>>,
    /// Whether the last of them was never closed, so that what follows the text belongs to it too.
    pub is_open: bool,
}

impl PastedParts {
    /// Finds them.
    pub fn find(text: &str) -> PastedParts {
        if let Some(request) = closing_request(text) {
            return PastedParts {
                places: std::iter::once(0..request).collect(),
                is_open: false,
            };
        }
        let mut reader = PasteReader::new(text);
        let mut next = 0;
        for line in text.split_inclusive('\n') {
            let start = next;
            next += line.len();
            reader.take_line(start, line);
        }
        reader.finish()
    }

    /// Returns the text with what `replace` makes of each part in its place.
    pub fn replace<'t>(&self, text: &'t str, replace: impl Fn(&str) -> String) -> Cow<'t, str> {
        if self.places.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for place in &self.places {
            out.push_str(text.get(done..place.start).unwrap_or(""));
            out.push_str(&replace(text.get(place.clone()).unwrap_or("")));
            done = place.end;
        }
        out.push_str(text.get(done..).unwrap_or(""));
        Cow::Owned(out)
    }
}

/// Returns the words of a message that are its writer's own.
pub fn own_words(text: &str) -> Cow<'_, str> {
    PastedParts::find(text).replace(text, |_| "\n\n".to_owned())
}

/// Returns a message with a mark around what its writer brought along.
pub fn mark_pasted(text: &str) -> Cow<'_, str> {
    PastedParts::find(text).replace(text, |part| {
        let (before, after) = blanks_around(part);
        format!("{before}[pasted: {}]{after}", part.trim())
    })
}

/// Returns a message with a word in the place of what its writer brought along.
pub fn leave_out_pasted(text: &str) -> Cow<'_, str> {
    PastedParts::find(text).replace(text, |part| {
        let count = part.trim().chars().count();
        let (before, after) = blanks_around(part);
        format!("{before}[pasted: {count} characters]{after}")
    })
}

/// The blanks before the first and behind the last word of a part.
fn blanks_around(part: &str) -> (&str, &str) {
    let rest = part.trim_start();
    let before = part.get(..part.len() - rest.len()).unwrap_or("");
    (before, rest.get(rest.trim_end().len()..).unwrap_or(""))
}

/// Whether a message closes like a letter: it may be one that its writer got.
pub fn is_letter(text: &str) -> bool {
    let mut lines = text.lines().map(|line| line.trim().to_lowercase());
    lines.any(|line| {
        let rest = SIGNATURES.after_opening(&line);
        rest.is_some_and(|rest| {
            let is_sentence = rest.len() > 1 && rest.ends_with('.');
            rest.len() <= SIGNED && !is_sentence && !rest.starts_with(char::is_alphanumeric)
        })
    })
}

/// Bytes of a name behind `Best regards,`.
const SIGNED: usize = 40;

/// What a line is inside of.
enum PasteState {
    /// Nothing: the writer speaks.
    Own,
    /// A fence that so many others opened within.
    Fence(usize),
    /// An element, to this byte.
    Element(usize),
    /// Something that no mark of its own closes.
    Open(PasteEnd),
}

/// Where something ends that no mark of its own closes.
#[derive(Clone, Copy)]
enum PasteEnd {
    /// With the message.
    Message,
    /// At a heading such as the writer used before.
    Heading,
    /// There, or with the list that it is.
    List,
}

/// What a line that ends in a colon says of what follows.
#[derive(Clone, Copy)]
enum Announcement {
    /// It is not the writer's.
    Foreign,
    /// The writer directs, and shows something.
    Shown,
    /// The writer directs, and points to it: a list of steps, or a text.
    Pointed,
}

struct PasteReader<'t> {
    text: &'t str,
    state: PasteState,
    places: Vec<Range<usize>>,
    /// What the line above announces.
    announced: Option<Announcement>,
    /// The first line with words was read.
    begun: bool,
    /// Whether the writer's last line shows a text.
    shows: bool,
    /// Whether lines that open with names are somebody's talk, once one was met.
    is_talk: Option<bool>,
    /// The levels of the writer's own headings.
    heading_levels: Vec<usize>,
    /// Where the line above stands, if it opens with somebody's name.
    spoken: Option<Range<usize>>,
    /// Elements with the end of their last closing tag.
    closings: Option<HashMap<&'t str, usize, foldhash::fast::FixedState>>,
}

impl<'t> PasteReader<'t> {
    fn new(text: &'t str) -> Self {
        PasteReader {
            text,
            state: PasteState::Own,
            places: Vec::new(),
            announced: None,
            begun: false,
            shows: false,
            is_talk: None,
            heading_levels: Vec::new(),
            spoken: None,
            closings: None,
        }
    }

    fn take_line(&mut self, start: usize, line: &'t str) {
        let place = start..start + line.len();
        let text = line.trim();
        match self.state {
            PasteState::Open(end) if !self.closes(end, line) => self.add(place),
            PasteState::Fence(depth) => {
                self.add(place);
                self.state = match fence_mark(text) {
                    Some("") if depth == 0 => PasteState::Own,
                    Some("") => PasteState::Fence(depth - 1),
                    Some(_) => PasteState::Fence(depth + 1),
                    None => PasteState::Fence(depth),
                };
            }
            PasteState::Element(end) if place.start < end => {
                self.add(place.start..place.end.min(end));
                if end < place.end {
                    self.state = PasteState::Own;
                    self.take_rest(end, place.end);
                }
            }
            PasteState::Element(_) | PasteState::Own | PasteState::Open(_) => {
                self.state = PasteState::Own;
                self.take_own_line(place, text);
            }
        }
    }

    /// Takes what is left of a line behind an element.
    fn take_rest(&mut self, start: usize, end: usize) {
        if let Some(rest) = self.text.get(start..end) {
            self.take_own_line(start..end, rest.trim());
        }
    }

    fn take_own_line(&mut self, place: Range<usize>, text: &str) {
        if text.is_empty() {
            return;
        }
        let announced = self.announced.take();
        let is_first = !std::mem::replace(&mut self.begun, true);
        if fence_mark(text).is_some() {
            self.state = PasteState::Fence(0);
            self.add(place);
        } else if let Some((start, end)) = self.element_in(&place) {
            self.take_opening(place.start..start);
            self.add(start..end.min(place.end));
            self.state = PasteState::Element(end);
            if end < place.end {
                self.state = PasteState::Own;
                self.take_rest(end, place.end);
            }
        } else if ends_within_string(text) {
            self.state = PasteState::Open(PasteEnd::Message);
            self.add(place);
        } else if text.starts_with('>') || is_machine_line(text) {
            self.add(place);
        } else if let Some(end) = self.opened_end(text, announced, is_first) {
            self.state = PasteState::Open(end);
            self.add(place);
        } else {
            self.heading_levels.extend(heading_level(text));
            self.take_speech(place.clone(), text);
            self.take_opening(place);
        }
    }

    /// Where what a line opens ends, if it opens something that no mark of its own closes.
    fn opened_end(
        &self,
        text: &str,
        announced: Option<Announcement>,
        is_first: bool,
    ) -> Option<PasteEnd> {
        let is_heading = heading_level(text).is_some();
        match announced {
            Some(Announcement::Foreign) => return Some(PasteEnd::Message),
            Some(Announcement::Shown) if is_listed(text) => return Some(PasteEnd::List),
            Some(Announcement::Shown) if !is_heading => return Some(PasteEnd::Heading),
            Some(Announcement::Pointed) if !is_heading && !is_listed(text) => {
                return Some(PasteEnd::Heading);
            }
            _ => {}
        }
        // A bare line between two parts of a message is the writer's, unless they show something.
        let is_own_divider = || is_bare_divider(text) && !self.shows;
        (opens_paste(text, is_first) && !is_own_divider()).then_some(PasteEnd::Message)
    }

    fn is_own_heading(&self, line: &str) -> bool {
        heading_level(line).is_some_and(|level| self.heading_levels.contains(&level))
    }

    /// Whether the writer speaks again from this line on.
    fn closes(&self, end: PasteEnd, line: &str) -> bool {
        let goes_on = || line.starts_with([' ', '\t']) || line.trim().is_empty() || is_listed(line);
        match end {
            PasteEnd::Message => false,
            PasteEnd::Heading => self.is_own_heading(line.trim()),
            PasteEnd::List => !goes_on(),
        }
    }

    /// Takes words before an element, or a whole line: what they announce is not the writer's.
    fn take_opening(&mut self, place: Range<usize>) {
        let line = self.text.get(place.clone()).unwrap_or("");
        if let Some(at) = quoting_colon(line) {
            // A point of the writer's list ends with its line.
            if !is_listed(line) {
                self.state = PasteState::Open(PasteEnd::Heading);
            }
            self.add(place.start + at..place.end);
        }
        self.announced = announcement(line.trim());
        let words = [&POINTING_WORDS, &PASTE_WORDS, &TEXT_TASKS];
        self.shows = line.len() <= SHOWING && words.iter().any(|words| words.is_in(line));
    }

    /// Two lines that open with different names are somebody's talk.
    fn take_speech(&mut self, place: Range<usize>, text: &str) {
        let whole = self.text;
        let mut is_talk = || *self.is_talk.get_or_insert_with(|| TALK_WORDS.is_in(whole));
        let named = speaker(text).is_some() && is_talk();
        match self.spoken.take() {
            Some(above) if named => {
                self.add(above);
                self.add(place.clone());
            }
            _ => {}
        }
        self.spoken = named.then_some(place);
    }

    /// The first element on a line that is not the writer's own, to its last closing tag; one that stands alone on its
    /// line and is never closed was cut.
    fn element_in(&mut self, place: &Range<usize>) -> Option<(usize, usize)> {
        let line = self.text.get(place.clone())?;
        for at in memchr::memchr_iter(b'<', line.as_bytes()) {
            let tag = line.get(at + 1..)?;
            let name = element_name(tag);
            if name.is_empty() || OWN_ELEMENTS.has(name) || tag.starts_with('/') {
                continue;
            }
            let start = place.start + at;
            let closings = self
                .closings
                .get_or_insert_with(|| last_closings(self.text));
            if let Some(end) = closings.get(name).filter(|end| **end > start) {
                return Some((start, *end));
            }
            let is_alone =
                line.trim_start().len() == line.len() - at && tag.trim_end().ends_with('>');
            if is_alone && !tag.trim_end().ends_with("/>") {
                return Some((start, self.text.len()));
            }
        }
        None
    }

    fn add(&mut self, place: Range<usize>) {
        if place.is_empty() {
            return;
        }
        match self.places.last_mut() {
            Some(last) if last.end >= place.start => last.end = last.end.max(place.end),
            _ => self.places.push(place),
        }
    }

    fn finish(self) -> PastedParts {
        let is_open = match self.state {
            PasteState::Own => self.announced.is_some(),
            PasteState::Element(end) => {
                end >= self.text.len() && !self.text.trim_end().ends_with('>')
            }
            PasteState::Fence(_) | PasteState::Open(_) => true,
        };
        PastedParts {
            places: self.places,
            is_open,
        }
    }
}

/// What follows the mark of a fence that a line is.
fn fence_mark(line: &str) -> Option<&str> {
    let marks = ["```", "~~~", "\"\"\"", "'''"];
    let rest = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
    let rest = rest.trim_start_matches(['`', '~']).trim();
    // ```one line``` opens nothing.
    (!marks.iter().any(|mark| rest.ends_with(mark))).then_some(rest)
}

/// The end of the last closing tag of each element.
fn last_closings(text: &str) -> HashMap<&str, usize, foldhash::fast::FixedState> {
    let mut closings = HashMap::default();
    for at in memchr::memmem::find_iter(text.as_bytes(), "</") {
        let tag = text.get(at + 2..).unwrap_or("");
        let name = element_name(tag);
        let width = name.len() + usize::from(tag.as_bytes().get(name.len()) == Some(&b'>'));
        if !name.is_empty() {
            closings.insert(name, at + 2 + width);
        }
    }
    closings
}

/// Whether a line is one of JSON.
fn is_json_line(line: &str) -> bool {
    line.starts_with("{\"")
        || line.starts_with("[{")
        || (line.starts_with('"') && line.contains("\": "))
}

/// Whether a line of JSON ends within a string, so that the string goes on below it.
fn ends_within_string(line: &str) -> bool {
    is_json_line(line) && line.replace("\\\"", "").matches('"').count() % 2 == 1
}

/// Whether a program wrote a line: of a patch, of JSON, of a log.
fn is_machine_line(line: &str) -> bool {
    let digits = |n: usize| line.bytes().take(n).filter(u8::is_ascii_digit).count() == n;
    line.starts_with('+')
        || line.starts_with("@@")
        || is_json_line(line)
        || line.starts_with("// ")
        || line.starts_with("-- ")
        || names_place(line)
        || (digits(4) && line.as_bytes().get(4) == Some(&b'-') && line.len() > 10)
        || line
            .strip_prefix('[')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a line opens with a place in a file, as what compilers print: `main.c:10: …`.
fn names_place(line: &str) -> bool {
    let mut parts = line.splitn(3, ':');
    let (file, number) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && parts.next().is_some() && file.contains('.') && !file.contains(' ')
}

/// Whether a line opens something that is not the writer's and that nothing closes.
fn opens_paste(line: &str, is_first: bool) -> bool {
    is_divider(line)
        || line.starts_with("$ ")
        || line.starts_with("diff --git ")
        || LETTER_HEADERS.after_opening(line).is_some()
        || is_greeting(line, is_first)
        || speaker(line).is_some_and(|name| SPEAKERS.has(&name.to_lowercase()))
}

/// `---` or `=====` and nothing else.
fn is_bare_divider(line: &str) -> bool {
    is_divider(line) && !line.contains(char::is_alphanumeric)
}

/// `---`, `--- notes.md ---`, `===== Page 2 =====`.
fn is_divider(line: &str) -> bool {
    let is_mark = |c: char| matches!(c, '-' | '=' | '*' | '_' | '~' | '#' | '—' | '─');
    let run = |chars: &mut dyn Iterator<Item = char>| chars.take_while(|c| is_mark(*c)).count();
    let (before, after) = (run(&mut line.chars()), run(&mut line.chars().rev()));
    let is_bold = line.starts_with("**") && before < 5;
    !is_bold && before >= 3 && (after >= 3 || line.starts_with("--- "))
}

/// Bytes of a line that greets and says nothing else.
const GREETING: usize = 60;

/// Whether a line greets somebody. In the first line that is whom the writer speaks to, unless it reads like a letter.
fn is_greeting(line: &str, is_first: bool) -> bool {
    line.len() <= GREETING
        && line.ends_with([',', '!', ':', '，', '！'])
        && GREETINGS.is_in(line)
        && (!is_first || line.to_ascii_lowercase().starts_with("dear"))
}

/// The name before the colon that a line opens with, be it in a list: `- Tom: no`.
fn speaker(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['-', '*', '•', ' ', '[']);
    let (name, said) = line.split_once(':')?;
    let name = name.trim_end_matches(['*', ']']);
    let is_name = name.chars().all(char::is_alphabetic) && name.starts_with(char::is_uppercase);
    let is_known = || SPEAKERS.has(&name.to_lowercase());
    let says = said.trim_start_matches('*').starts_with(' ');
    (says && name.len() <= 20 && (is_known() || (is_name && !RULE_LABELS.is_in(name))))
        .then_some(name)
}

/// What a line announces: a text, where it shows one. Only the writer's own labels and wishes announce nothing.
fn announcement(line: &str) -> Option<Announcement> {
    let line = line.trim_end_matches(['*', '_', ' ']);
    let Some(head) = line.strip_suffix([':', '：']) else {
        return is_showing(line).then_some(Announcement::Foreign);
    };
    let head = head.trim_start_matches(['*', '#', ' ']).to_lowercase();
    let head = head.trim();
    let directs = DIRECTIVES.is_in(without_list_mark(head));
    let is_text = PASTE_WORDS.is_in(head) || names_file(head);
    let points = POINTING_WORDS.is_in(head);
    let is_own = RULE_LABELS.is_in(head) || OWN_HEADINGS.is_part_of(head);
    match (directs, is_text) {
        _ if OWN_LABELS.has(head) || CASE_OPENERS.is_in(head) => None,
        _ if TEXT_TASKS.is_in(head) => Some(Announcement::Foreign),
        (_, false) if is_own => None,
        (true, true) => Some(Announcement::Shown),
        (true, false) => points.then_some(Announcement::Pointed),
        (false, true) => Some(Announcement::Foreign),
        (false, false) => points.then_some(Announcement::Foreign),
    }
}

/// Characters of a line that does nothing but show a text.
const SHOWING: usize = 160;

/// Whether a line without a colon shows a text that follows it, by its last sentence: it points to one by its kind, asks
/// to work on one or asks about what it points to. Who directs does something else.
fn is_showing(line: &str) -> bool {
    let sentence = line.rsplit_once(". ").map_or(line, |(_, last)| last).trim();
    let directs = || DIRECTIVES.is_in(sentence);
    let asks = || sentence.ends_with('?') && POINTING_WORDS.is_in(sentence);
    let shows = || TEXT_TASKS.is_in(sentence) || !directs() && (asks() || points_to_text(sentence));
    !is_listed(line) && heading_level(line).is_none() && sentence.len() <= SHOWING && shows()
}

/// Words between one that points and what it points to.
const NEAR: usize = 3;

/// Whether a word for a text stands beside one that points: `this README`, `the page below`, `here is the log`.
fn points_to_text(sentence: &str) -> bool {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let mut windows = words.windows(words.len().clamp(1, NEAR + 1));
    windows.any(|near| {
        let has = |list: &PhraseList| near.iter().any(|word| list.is_in(word));
        has(&POINTING_WORDS) && has(&PASTE_WORDS)
    })
}

/// Lines before a request that closes a message: fewer are no text that it is about.
const TEXT_LINES: usize = 3;

/// Where a message closes with a request about the text before it: `^ shorten this`.
fn closing_request(text: &str) -> Option<usize> {
    let trimmed = text.trim_end();
    let start = trimmed.rfind('\n')? + 1;
    let (before, request) = trimmed.split_at_checked(start)?;
    let is_text = before
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count()
        >= TEXT_LINES;
    let opens = before.trim_start().lines().next().unwrap_or("");
    let is_document = heading_level(opens.trim()) == Some(1) || request.starts_with('^');
    (is_text && is_document && is_showing(request.trim())).then_some(start)
}

/// Whether a head names a file: `notes/today.md`.
fn names_file(head: &str) -> bool {
    let is_file = |word: &str| {
        let (name, extension) = word.rsplit_once('.').unwrap_or(("", ""));
        let is_extension = (1..=5).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_extension && name.chars().any(char::is_alphabetic)
    };
    head.split_whitespace()
        .any(|word| is_file(word.trim_matches(['`', '"', '(', ')'])))
}

/// The level of a heading: how many marks it opens with, or a line in bold letters below all of them.
fn heading_level(line: &str) -> Option<usize> {
    let marks = line.bytes().take_while(|byte| *byte == b'#').count();
    let is_marked = (1..=6).contains(&marks) && line.as_bytes().get(marks) == Some(&b' ');
    let is_bold = || line.len() > 4 && line.starts_with("**") && line.ends_with("**");
    match is_marked {
        true => Some(marks),
        false => is_bold().then_some(BOLD_LEVEL),
    }
}

/// The level of a heading in bold letters.
const BOLD_LEVEL: usize = 7;

/// Whether a line is a point of a list.
fn is_listed(line: &str) -> bool {
    let line = line.trim_start();
    without_list_mark(line).len() < line.len()
}

/// A line without the mark or number of its point in a list.
fn without_list_mark(line: &str) -> &str {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = number
        .strip_prefix(['.', ')'])
        .filter(|_| number.len() < line.len());
    let marked = || line.strip_prefix(['-', '*', '•', '+']);
    let rest = numbered
        .or_else(marked)
        .and_then(|rest| rest.strip_prefix(' '));
    rest.unwrap_or(line)
}

/// Bytes of a sentence before the colon behind which it quotes.
const HEAD: usize = 160;

/// Where a line goes on with somebody else's words: behind the colon of a sentence that says so. Where those stand in
/// quotation marks, the marks close them.
fn quoting_colon(line: &str) -> Option<usize> {
    let colons = line.match_indices([':', '：']);
    let mut ends = colons.map(|(at, colon)| at + colon.len());
    ends.find(|end| {
        let (before, after) = line.split_at_checked(*end).unwrap_or((line, ""));
        let sentence = before.rsplit(['.', '!', '?', ';']).next().unwrap_or(before);
        let said = after.trim_start();
        let is_quoted = |mark: char| before.matches(mark).count() % 2 == 1;
        (after.starts_with(' ') || before.ends_with('：'))
            && !is_quoted('`')
            && !is_quoted('"')
            && !said.is_empty()
            && !said.starts_with(['"', '\'', '“', '„', '«', '‘', '「', '`'])
            && sentence.len() <= HEAD
            && QUOTING_HEADS
                .starts_in(sentence)
                .any(|at| !is_by_writer(sentence, at))
    })
}

/// Whether the writer is who said something: "forget what I told you".
fn is_by_writer(sentence: &str, at: usize) -> bool {
    let before = sentence.get(..at).unwrap_or("").trim_end();
    matches!(before.rsplit(' ').next(), Some("I" | "i" | "we" | "We"))
}
