//! What happens at each moment of an agent's session.
//!
//! Before a compaction the transcript is archived and the summarizer is told what to keep. After it
//! the new context is held against the ledger, and what it lost is told. Claude Code hands its summary
//! out only after the session went on, so then the record itself is told, and at the next prompt what
//! neither shows. Prompts keep the ledger up to date, so that the moment before is short.

use std::io;
use std::path::Path;

use compact_runtime::host::{
    Call, Chars, Memory, Moment, Transcript, compare, live_text, must_keep, still_known,
};
use jiff::Timestamp;

use super::journal::{Journal, Level};
use super::shelf::{self, NotArchived, Open, Shelf};

/// The most that a summarizer is asked to keep.
const KEEP: Chars = Chars(6_000);
/// The most that is told while the summary is not known.
const STANDING: Chars = Chars(4_000);
/// The most that is put back once it is. Codex spills more than about 2,500 tokens to disk.
const LOST: Chars = Chars(6_000);

/// What a call is answered on stdout.
pub fn answer(call: &Call, hooks: &Path, now: Timestamp, journal: &Journal) -> String {
    let visit = Visit {
        call,
        shelf: Shelf::of(hooks, call),
        journal,
    };
    match call.moment {
        Moment::BeforeCompaction => visit.before(now),
        Moment::Resumed => visit.resumed(),
        Moment::AfterCompaction => visit.after(),
        Moment::Prompt => visit.prompt(),
        Moment::Other => String::new(),
    }
}

/// One call with what it needs.
struct Visit<'a> {
    call: &'a Call,
    shelf: Shelf,
    journal: &'a Journal,
}

impl Visit<'_> {
    fn before(&self, now: Timestamp) -> String {
        let archived = match self.shelf.archive(self.call, now) {
            Ok(archived) => archived,
            Err(error) => {
                self.say(level(&error), &error.to_string());
                return String::new();
            }
        };
        self.say(
            Level::Info,
            &format!(
                "archived transcript (trigger={}) to {} ({:.1} KB)",
                self.call.trigger,
                archived.path.display(),
                archived.bytes as f64 / 1024.0
            ),
        );
        let Some(memory) = self.memory(&archived.path) else {
            return String::new();
        };
        let open = Open {
            archive: archived.path,
            summaries: memory.summaries,
            summary: None,
        };
        self.noted(self.shelf.set_open(&open));
        let text = must_keep(&memory.ledger, KEEP);
        self.call.agent.instructions(text.unwrap_or_default())
    }

    /// The session goes on: with a summary that is in the transcript already, or one still to come.
    fn resumed(&self) -> String {
        let open = self.shelf.open().unwrap_or_default();
        let Some((memory, place)) = self.known(&open) else {
            return String::new();
        };
        if memory.summaries > open.summaries {
            return self.tell_lost(&memory, &open, &place);
        }
        let text = still_known(&memory.ledger, &place, STANDING);
        text.map_or_else(String::new, |text| self.context(text))
    }

    /// The summary is known: it is kept until the next prompt, and the log says how good it is.
    fn after(&self) -> String {
        let (Some(mut open), Some(summary)) = (self.shelf.open(), &self.call.summary) else {
            return String::new();
        };
        if let Some((memory, place)) = self.known(&open) {
            let loss = compare(&memory.ledger, summary, &place, LOST);
            let told = format!("the summary shows {} of {}", loss.shown, loss.anchors);
            self.say(Level::Info, &told);
        }
        open.summary = Some(summary.clone());
        self.noted(self.shelf.set_open(&open));
        String::new()
    }

    fn prompt(&self) -> String {
        let Transcript::File(path) = &self.call.transcript else {
            return String::new();
        };
        // Of a new session there is no file before its first prompt.
        if !path.exists() {
            return String::new();
        }
        let Some(memory) = self.memory(path) else {
            return String::new();
        };
        self.noted(self.shelf.keep(&memory));
        match self.shelf.open() {
            Some(open) if memory.summaries > open.summaries || open.summary.is_some() => {
                let place = open.archive.display().to_string();
                self.tell_lost(&memory, &open, &place)
            }
            _ => String::new(),
        }
    }

    /// Holds the new context against the ledger; what is missing goes to the model.
    fn tell_lost(&self, memory: &Memory, open: &Open, place: &str) -> String {
        let live = match &self.call.transcript {
            Transcript::Missing => Ok(String::new()),
            Transcript::Inline(bytes) => live_text(bytes).map_err(unreadable),
            Transcript::File(path) => {
                shelf::read(path).and_then(|bytes| live_text(&bytes).map_err(unreadable))
            }
        };
        let Some(mut visible) = self.noted(live) else {
            return String::new();
        };
        visible.push_str(open.summary.as_deref().unwrap_or_default());
        let loss = compare(&memory.ledger, &visible, place, LOST);
        self.shelf.close();
        let told = match &loss.text {
            Some(text) => format!(
                "the most needed of the rest is told in {} characters",
                text.chars().count()
            ),
            None => "nothing is told again".to_owned(),
        };
        let (shown, all) = (loss.shown, loss.anchors);
        self.say(
            Level::Info,
            &format!("the context shows {shown} of {all}; {told}"),
        );
        loss.text
            .map_or_else(String::new, |text| self.context(text))
    }

    /// The ledger of what the agent says now, or of the archive; and where the original lies.
    fn known(&self, open: &Open) -> Option<(Memory, String)> {
        let memory = match &self.call.transcript {
            Transcript::File(path) => self.memory(path)?,
            Transcript::Inline(bytes) => {
                let mut memory = Memory::default();
                self.noted(memory.follow(bytes).map_err(unreadable))?;
                memory
            }
            Transcript::Missing => self.memory(&open.archive)?,
        };
        let place = match (&self.call.transcript, open.archive.as_os_str().is_empty()) {
            (Transcript::File(path), true) => path.display(),
            _ => open.archive.display(),
        };
        Some((memory, place.to_string()))
    }

    fn memory(&self, file: &Path) -> Option<Memory> {
        let read = self.shelf.follow(file);
        self.noted(read.map_err(|error| {
            let message = format!("cannot tell what to keep of {}: {error}", file.display());
            io::Error::new(error.kind(), message)
        }))
    }

    fn context(&self, text: String) -> String {
        self.call.agent.context(&self.call.event, text)
    }

    fn noted<T>(&self, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.say(Level::Warning, &error.to_string());
                None
            }
        }
    }

    fn say(&self, level: Level, message: &str) {
        let line = format!("{}: {message}", self.call.event);
        self.journal.line(level, &line);
    }
}

fn level(error: &NotArchived) -> Level {
    match error {
        NotArchived::NoPath(_) | NotArchived::NotFound(_) => Level::Warning,
        NotArchived::Failed(_) => Level::Error,
    }
}

fn unreadable(error: compact_formats::FormatError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
