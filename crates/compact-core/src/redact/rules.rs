//! The maintained rules: one pass looks for the words that give secrets away; what a word means is
//! looked at only where it stands.
//!
//! `form` has secrets with a form of their own, `context` those that stand in a telling place, `assignment` values behind
//! a name, `column` those below one, `key_block` framed keys, `stray` strings that a machine drew. When two find the same text, the first of these
//! names it. Ordinary text costs one pass and a look at its long words; hostile text stays linear.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::assignment::AssignmentScan;
use super::column::ColumnScan;
use super::context::{CONTEXTS, ContextScan};
use super::form::{self, FORMS, RunEnds};
use super::secret_check::KnownNames;
use super::word_filter::WordFilter;
use super::{RedactionFindings, RedactionSpan, assignment, escape, key_block, secret_check, stray};

/// The rule that finds what nothing names.
pub(super) const RANDOM_STRING: &str = "random-string";

/// Changes whenever a text may be redacted otherwise than before, though table and patterns stayed.
const RULES_VERSION: u32 = 5;

/// What a word gives away.
#[derive(Clone, Copy)]
enum ClueMeaning {
    /// What an earlier pass left in a secret's place.
    Placeholder,
    /// A frame of dashes.
    Frame,
    /// A form, by its line.
    Form(usize),
    /// A place, by its number.
    Context(usize),
    /// A name whose value may be a secret.
    Name,
}

static CLUE_WORDS: LazyLock<WordFilter<ClueMeaning>> =
    LazyLock::new(|| WordFilter::new(clue_words()));

fn clue_words() -> Vec<(String, ClueMeaning)> {
    let mut words = vec![
        ("[REDACTED:".to_owned(), ClueMeaning::Placeholder),
        ("-----BEGIN ".to_owned(), ClueMeaning::Frame),
        ("-----END ".to_owned(), ClueMeaning::Frame),
    ];
    let forms = FORMS.iter().enumerate();
    words.extend(forms.map(|(at, form)| (form.anchor.to_owned(), ClueMeaning::Form(at))));
    for (at, context) in CONTEXTS.iter().enumerate() {
        let triggers = context.triggers.iter();
        words.extend(triggers.map(|word| ((*word).to_owned(), ClueMeaning::Context(at))));
    }
    let names = secret_check::name_parts().into_iter();
    words.extend(names.map(|word| (word, ClueMeaning::Name)));
    words
}

/// Finds every secret and every placeholder of a text.
pub(super) fn scan_secrets(text: &str, found: &mut RedactionFindings<'_>) {
    let mut scan = SecretScan::new(text, found);
    CLUE_WORDS.scan(text, |meaning, word| scan.look_at(meaning, word));
    scan.look_at_strays();
}

/// One pass over a text.
struct SecretScan<'s, 't, 'r> {
    text: &'t str,
    found: &'s mut RedactionFindings<'r>,
    assignments: AssignmentScan,
    columns: ColumnScan,
    run_ends: RunEnds,
    /// Until where the last form reaches: what begins within it is part of it.
    form_end: usize,
    /// Until where the last framed text reaches.
    frame_end: usize,
    contexts: ContextScan,
    known_names: KnownNames<'t>,
    public: Vec<Range<usize>>,
}

impl<'s, 't, 'r> SecretScan<'s, 't, 'r> {
    fn new(text: &'t str, found: &'s mut RedactionFindings<'r>) -> Self {
        SecretScan {
            text,
            found,
            assignments: AssignmentScan::default(),
            columns: ColumnScan::default(),
            run_ends: RunEnds::default(),
            form_end: 0,
            frame_end: 0,
            contexts: ContextScan::default(),
            known_names: KnownNames::default(),
            public: Vec::new(),
        }
    }

    fn look_at(&mut self, meaning: ClueMeaning, word: Range<usize>) {
        match meaning {
            ClueMeaning::Placeholder => self.look_at_placeholder(word.start),
            ClueMeaning::Frame => self.look_at_frame(word.start),
            ClueMeaning::Form(at) => self.look_at_form(at, word.start),
            ClueMeaning::Context(at) => self.look_at_context(at, word.start),
            ClueMeaning::Name => self.look_at_name(word),
        }
    }

    fn look_at_placeholder(&mut self, start: usize) {
        if let Some(length) = placeholder_length(self.text.get(start..).unwrap_or_default()) {
            self.found.placeholders.push(start..start + length);
        }
    }

    fn look_at_frame(&mut self, start: usize) {
        if start < self.frame_end {
            return;
        }
        let Some(block) = key_block::find_block(self.text, start) else {
            return;
        };
        self.frame_end = block.range.end;
        match block.private {
            true => self.add(block.range, FRAME_PRIORITY, "private-key"),
            false => self.public.push(block.range),
        }
    }

    fn look_at_form(&mut self, at: usize, start: usize) {
        let Some(form) = FORMS.get(at).filter(|_| start >= self.form_end) else {
            return;
        };
        if let Some(range) = form.find_at(self.text, start, &mut self.run_ends) {
            self.form_end = range.end;
            if form.name == "aws-key" {
                self.look_beside_key(range.end);
            }
            self.add(range, FORM_PRIORITY + at, form.name);
        }
    }

    /// The secret of an AWS key, where it stands beside the key's id.
    fn look_beside_key(&mut self, end: usize) {
        if let Some(range) = form::find_aws_secret(self.text, end) {
            self.add(range, FORM_PRIORITY, "aws-secret");
        }
    }

    fn look_at_context(&mut self, at: usize, start: usize) {
        let Some(context) = CONTEXTS.get(at) else {
            return;
        };
        let (found, text) = (&mut *self.found, self.text);
        context.find_at(text, start, &mut self.contexts, |range| {
            add_span(found, text, range, CONTEXT_PRIORITY + at, context.name);
        });
    }

    fn look_at_name(&mut self, word: Range<usize>) {
        self.look_below_name(&word);
        let assigned = self.assignments.read(self.text, word);
        let judged = assigned.and_then(|a| {
            secret_check::judge_assignment(&a, &mut self.known_names).map(|rule| (a.range, rule))
        });
        if let Some((range, rule)) = judged {
            self.add(range, NAME_PRIORITY, rule);
        }
    }

    /// The cells below the name of a column.
    fn look_below_name(&mut self, word: &Range<usize>) {
        let (found, names, text) = (&mut *self.found, &mut self.known_names, self.text);
        let name = assignment::name_around(text, word);
        self.columns.read_below(text, &name, |cell| {
            if let Some(rule) = secret_check::judge_assignment(&cell, names) {
                add_span(found, text, cell.range, NAME_PRIORITY, rule);
            }
        });
    }

    /// What is neither found yet nor public.
    fn look_at_strays(&mut self) {
        let mut known: Vec<Range<usize>> =
            self.found.spans.iter().map(|s| s.range.clone()).collect();
        known.append(&mut self.public);
        known.extend(self.found.placeholders.iter().cloned());
        let known = join_ranges(known);
        let mut known = known.iter().peekable();
        let spans = &mut self.found.spans;
        stray::scan_strays(self.text, |range| {
            while known.next_if(|k| k.end <= range.start).is_some() {}
            if known.peek().is_none_or(|k| k.start >= range.end) {
                spans.push(RedactionSpan {
                    range,
                    priority: STRAY_PRIORITY,
                    rule: RANDOM_STRING,
                });
            }
        });
    }

    fn add(&mut self, range: Range<usize>, priority: usize, rule: &'static str) {
        add_span(self.found, self.text, range, priority, rule);
    }
}

/// Adds what was found, without the half of an escape.
fn add_span(
    found: &mut RedactionFindings<'_>,
    text: &str,
    range: Range<usize>,
    priority: usize,
    rule: &'static str,
) {
    let range = escape::after_escape(text, range.start)..range.end;
    if !range.is_empty() {
        found.spans.push(RedactionSpan {
            range,
            priority,
            rule,
        });
    }
}

/// Which finding names a text that several found: the lower one.
const FRAME_PRIORITY: usize = 0;
const FORM_PRIORITY: usize = 1;
const CONTEXT_PRIORITY: usize = 1 << 16;
const NAME_PRIORITY: usize = 1 << 17;
const STRAY_PRIORITY: usize = 1 << 18;

/// Sorted and without overlaps.
fn join_ranges(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The length of the placeholder that a text begins with.
fn placeholder_length(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("[REDACTED:")?;
    let label = inside
        .bytes()
        .take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
        .count();
    let digits = inside.get(label..)?.strip_prefix(':')?;
    let hex = digits
        .bytes()
        .take_while(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        .count();
    let closes = digits.get(hex..)?.starts_with(']');
    (label > 0 && hex == 4 && closes).then(|| "[REDACTED:".len() + label + 1 + hex + 1)
}

/// What tells one set of maintained rules from another: its version, and a hash of its tables and patterns.
pub(super) type RulesIdentity = (u32, String);

/// Names the maintained rules.
pub(super) fn identify_rules() -> RulesIdentity {
    let mut hasher = blake3::Hasher::new();
    for text in [form::FORMATS]
        .into_iter()
        .chain(super::letters::TABLES)
        .chain(secret_check::LISTS)
        .chain(stray::LISTS)
    {
        hasher.update(text.as_bytes());
    }
    for context in &CONTEXTS {
        hasher.update(context.pattern.as_bytes());
        for trigger in context.triggers {
            hasher.update(trigger.as_bytes());
        }
    }
    (RULES_VERSION, hasher.finalize().to_hex().to_string())
}

/// Compiles a pattern of this crate.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants and a test compiles each"
)]
pub(super) fn constant(pattern: &'static str) -> Regex {
    Regex::new(pattern).expect("a maintained pattern compiles")
}
