//! A context as a scripted agent reads it: lines in their order, each under its heading.

use compact_core::message::Entry;
use compact_runtime::replay::entries_text;

/// The context that an agent can see.
pub(super) struct AgentContext {
    lines: Vec<ContextLine>,
}

/// A line and the heading it stands under.
pub(super) struct ContextLine {
    pub(super) text: String,
    heading: String,
}

impl AgentContext {
    /// Returns the lines of all entries but the last, which is the request.
    pub(super) fn from_entries(entries: &[Entry]) -> AgentContext {
        let seen = entries.split_last().map_or(entries, |(_, rest)| rest);
        let mut lines = Vec::new();
        for entry in seen {
            let mut heading = String::new();
            for text in entries_text(std::slice::from_ref(entry)).lines() {
                if text.starts_with('#') {
                    heading = text.to_lowercase();
                }
                lines.push(ContextLine {
                    text: text.to_owned(),
                    heading: heading.clone(),
                });
            }
        }
        AgentContext { lines }
    }

    /// Returns the lines that contain all of these, whatever their case.
    pub(super) fn lines_with<'c>(
        &'c self,
        words: &[&str],
    ) -> impl DoubleEndedIterator<Item = &'c ContextLine> + use<'c> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        self.lines.iter().filter(move |line| {
            let text = line.text.to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        })
    }
}

const FINISHED: [&str; 6] = ["done", "completed", "finished", "applied", "[x]", "✓"];

impl ContextLine {
    /// Returns whether the line or its heading says that the work is behind us.
    pub(super) fn is_finished(&self) -> bool {
        let text = self.text.to_lowercase();
        let says = |text: &str| FINISHED.iter().any(|word| text.contains(word));
        says(&text) || says(&self.heading)
    }

    /// Returns the text between a beginning and an end, at the last place where both are.
    pub(super) fn text_between(&self, start: &str, end: &str) -> Option<&str> {
        let (_, rest) = self.text.rsplit_once(start)?;
        rest.split_once(end).map(|(inner, _)| inner)
    }
}
