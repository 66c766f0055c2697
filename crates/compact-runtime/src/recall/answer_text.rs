//! What was found, as text for a model or a person: a heading for each entry, and its words as a quotation.
//!
//! Every door shows the same; how a quotation is set off and how the rest is asked for is the door's
//! ([`AnswerStyle`]).

use compact_core::message::Role;

use super::read::{Expansion, ShownEntry, ShownPartner};
use super::{SearchAnswer, SearchHit};

/// Stands before all that a model reads out of the archive.
pub const QUOTE_NOTE: &str = include_str!("../../templates/quoted.md");

/// Puts a text between fences that it cannot close itself.
pub fn fence_text(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}\n")
}

/// How a door writes what was found.
#[derive(Clone, Copy, Debug)]
pub struct AnswerStyle {
    /// Sets a text off as a quotation, with a line break at its end.
    pub quote: fn(&str) -> String,
    /// How to ask for an entry from a line on: its pointer, and the line.
    pub ask_rest: fn(&str, u64) -> String,
}

impl SearchAnswer {
    /// Writes the hits, and what none of them holds.
    pub fn render(&self, style: &AnswerStyle) -> String {
        let mut out = String::new();
        let sessions: std::collections::BTreeSet<&str> = self
            .hits
            .iter()
            .map(|hit| hit.session_id.as_str())
            .collect();
        for hit in &self.hits {
            out.push_str(&hit.heading());
            if sessions.len() > 1 {
                out.push_str(&format!(", session {}", short_name(&hit.session_id)));
            }
            out.push('\n');
            out.push_str(&hit.render_body(style));
            out.push('\n');
        }
        out.push_str(&self.render_gaps());
        out
    }

    /// Says when nothing was found, and which words were not.
    pub fn render_gaps(&self) -> String {
        let mut out = String::new();
        if self.hits.is_empty() {
            out.push_str("nothing archived says that; try other words, or fewer\n");
        } else if !self.has_all_words() {
            let missing = self.hits.first().map(|hit| hit.missing_words.join(", "));
            let missing = missing.unwrap_or_default();
            out.push_str(&format!(
                "no entry holds all of these words; the first lacks: {missing}\n"
            ));
        }
        if !self.unknown_words.is_empty() {
            let unknown = self.unknown_words.join(", ");
            out.push_str(&format!("nothing archived holds: {unknown}\n"));
        }
        out
    }
}

impl SearchHit {
    /// Returns one line: where the entry stands, who speaks, when.
    pub fn heading(&self) -> String {
        let mut out = self.pointer.clone();
        if self.ordinal.is_some() && self.session_entries > 0 {
            out.push_str(&format!(" of {}", self.session_entries));
        }
        out.push_str(&format!(", {}", speaker_name(self.role)));
        out.push_str(&time_note(self.said_at.as_deref()));
        out
    }

    /// Writes what was found of it, beside the other half of its exchange.
    pub fn render_body(&self, style: &AnswerStyle) -> String {
        let mut out = String::new();
        let partner = self.partner.as_ref();
        if let Some(call) = partner.filter(|partner| partner.role != Role::Tool) {
            out.push_str(&format!("call #{}:\n", call.ordinal));
            out.push_str(&(style.quote)(&call.excerpt));
        }
        for window in &self.windows {
            if window.line > 1 || self.windows.len() > 1 {
                out.push_str(&format!("line {} of {}:\n", window.line, self.lines));
            } else if partner.is_some() && self.role == Role::Tool {
                out.push_str("result:\n");
            }
            out.push_str(&(style.quote)(&window.text));
        }
        if let Some(result) = partner.filter(|partner| partner.role == Role::Tool) {
            out.push_str(&format!("result #{}:\n", result.ordinal));
            out.push_str(&(style.quote)(&result.excerpt));
        }
        out
    }
}

impl Expansion {
    /// Writes the entries, and how to ask for what there was no room for.
    pub fn render(&self, style: &AnswerStyle) -> String {
        let entries = self.entries.iter().map(|entry| entry.render(style));
        let mut out = entries.collect::<Vec<_>>().join("\n");
        if self.entries.is_empty() {
            out.push_str("no line matches\n");
        }
        if let (Some(first), Some(last)) = (self.left_out.first(), self.left_out.last()) {
            out.push_str(&format!(
                "no room for {first} to {last}: ask for them apart\n"
            ));
        }
        out
    }
}

impl ShownEntry {
    /// Returns one line: where the entry stands, who speaks, when, how long it is.
    pub fn heading(&self) -> String {
        let restored = &self.restored;
        let mut out = restored.pointer.to_string();
        if restored.ordinal.is_some() {
            out.push_str(&format!(" of {}", restored.session_entries));
        }
        out.push_str(&format!(", {}", speaker_name(restored.role)));
        if let Some(partner) = &restored.partner {
            let what = match partner.tool_name() {
                Some(tool) => format!(", result of #{} {tool}", partner.ordinal),
                None => format!(", its result is #{}", partner.ordinal),
            };
            out.push_str(&what);
        }
        out.push_str(&time_note(restored.said_at.as_deref()));
        let selected = &self.selected;
        let whole = selected.first_line <= 1 && selected.last_line == selected.lines;
        match whole && selected.matches.is_none() {
            true => out.push_str(&count_note(selected.lines, "line", "lines")),
            false => out.push_str(&part_note(self)),
        }
        if !self.exact {
            out.push_str("; secrets were redacted");
        }
        out
    }

    fn render(&self, style: &AnswerStyle) -> String {
        let mut out = format!("{}\n", self.heading());
        let partner = self.partner.as_ref();
        if let Some(call) = partner.filter(|partner| partner.is_call) {
            out.push_str(&render_partner("call", call, self, style));
            out.push_str("result:\n");
        }
        out.push_str(&(style.quote)(&self.selected.text));
        if let Some(next) = self.selected.next_line {
            let ask = (style.ask_rest)(&self.restored.pointer.to_string(), next);
            let left = self.selected.lines.saturating_sub(next) + 1;
            let lines = if left == 1 { "line" } else { "lines" };
            out.push_str(&format!("{left} more {lines}: {ask}\n"));
        }
        if let Some(result) = partner.filter(|partner| !partner.is_call) {
            out.push_str(&render_partner("result", result, self, style));
        }
        out
    }
}

fn render_partner(
    what: &str,
    partner: &ShownPartner,
    entry: &ShownEntry,
    style: &AnswerStyle,
) -> String {
    let quoted = (style.quote)(&partner.selected.text);
    let mut out = format!("{what} #{}:\n{quoted}", partner.ordinal);
    if let Some(next) = partner.selected.next_line {
        let pointer = format!("{}#{}", entry.restored.pointer.name, partner.ordinal);
        out.push_str(&format!("more: {}\n", (style.ask_rest)(&pointer, next)));
    }
    out
}

/// Which lines are shown of how many.
fn part_note(entry: &ShownEntry) -> String {
    let selected = &entry.selected;
    match selected.matches {
        Some(matches) => format!(
            "{} of {}",
            count_note(matches, "matching line", "matching lines"),
            selected.lines
        ),
        None => format!(
            ", lines {} to {} of {}",
            selected.first_line, selected.last_line, selected.lines
        ),
    }
}

fn count_note(count: u64, one: &str, many: &str) -> String {
    format!(", {count} {}", if count == 1 { one } else { many })
}

fn time_note(said_at: Option<&str>) -> String {
    let minutes = said_at.and_then(|at| at.get(..16));
    minutes.map_or(String::new(), |at| {
        format!(", {} UTC", at.replace('T', " "))
    })
}

/// A session's name, which may be as long as it likes.
fn short_name(name: &str) -> String {
    let words = name.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(60).collect()
}

fn speaker_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "model",
        Role::Tool => "tool",
        Role::System | Role::Developer => "instructions",
    }
}
