//! What happens at each moment of an agent's session.
//!
//! Before a compaction the transcript is archived and the summarizer is told what to keep. After it
//! the new context is held against the ledger, and what it lost is told. Claude Code hands its summary
//! out only after the session went on, so then the record itself is told, and at the next prompt what
//! neither shows. Prompts keep the ledger up to date, so that the moment before is short.

use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::thread;

use compact_adapters::shelf::{self, Archived, NotArchived, Open, Shelf};
use compact_core::redact::{Boundary, Counts, RedactError, RedactionRules, Redactor};
use compact_runtime::host::{
    Agent, Call, Chars, Memory, Moment, Transcript, compare, live_text, must_keep, still_known,
};
use jiff::{SignedDuration, Timestamp};

use super::journal::{Journal, Level};

/// The most that a summarizer is asked to keep.
const KEEP: Chars = Chars(6_000);
/// The most that is told while the summary is not known.
const STANDING: Chars = Chars(4_000);
/// The most that is put back once it is. Codex spills more than about 2,500 tokens to disk.
const LOST: Chars = Chars(6_000);

/// What is remembered of a session that nobody went on with for so long is removed.
const STALE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What a hook goes by.
#[derive(Debug)]
pub struct Terms {
    /// The folder of everything that hooks leave behind.
    pub hooks: PathBuf,
    /// What is redacted of it, and of what is told.
    pub redaction: RedactionRules,
}

/// What a call is answered on stdout.
pub fn answer(call: &Call, terms: &Terms, now: Timestamp, journal: &Journal) -> String {
    let visit = Visit {
        call,
        terms,
        shelf: Shelf::of(&terms.hooks, call),
        journal,
    };
    let told = match call.moment {
        Moment::BeforeCompaction => {
            let told = visit.before(now);
            shelf::sweep(&terms.hooks, now - STALE);
            told.map(|text| call.agent.instructions(text))
        }
        Moment::Resumed => visit.resumed().map(|text| visit.context(text)),
        Moment::AfterCompaction => visit.after(),
        Moment::Prompt => visit.prompt().map(|text| visit.context(text)),
        Moment::Other => None,
    };
    told.unwrap_or_default()
}

/// One call with what it needs.
struct Visit<'a> {
    call: &'a Call,
    terms: &'a Terms,
    shelf: Shelf,
    journal: &'a Journal,
}

impl Visit<'_> {
    /// The copy waits for the disk and the ledger for the processor, so they are made side by side.
    fn before(&self, now: Timestamp) -> Option<String> {
        let redactor = self.redactor(Boundary::Archive)?;
        let (shelf, call, terms) = (&self.shelf, self.call, self.terms);
        let copy = || shelf.archive(&call.transcript, now, &redactor);
        let (archived, memory) = thread::scope(|scope| {
            let Ok(copying) = thread::Builder::new().spawn_scoped(scope, copy) else {
                // The system has no thread to give, and the archive must not wait for one.
                return (copy(), None);
            };
            let memory = match &call.transcript {
                Transcript::File(path) => Some(read(shelf, terms, path)),
                _ => None,
            };
            let stopped = |_| Err(io::Error::other("the copy stopped").into());
            (copying.join().unwrap_or_else(stopped), memory)
        });
        let archived = self.archived(archived)?;
        let memory = memory.unwrap_or_else(|| read(shelf, terms, &archived.path));
        // The process ends with this call, and a person waits for it: a ledger of megabytes is not taken
        // apart piece by piece first.
        let memory = ManuallyDrop::new(self.noted(memory)?);
        self.supersede(&memory, &archived.path);
        let open = Open {
            archive: archived.path,
            summaries: memory.summaries,
            summary: None,
        };
        self.noted(self.shelf.set_open(&open));
        self.within(KEEP, |most| must_keep(&memory.ledger, most))
    }

    /// What became of the copy goes to the log.
    fn archived(&self, archived: Result<Archived, NotArchived>) -> Option<Archived> {
        match &archived {
            Ok(Archived { path, bytes }) => self.say(
                Level::Info,
                &format!(
                    "archived transcript (trigger={}) to {} ({:.1} KB)",
                    self.call.trigger,
                    path.display(),
                    *bytes as f64 / 1024.0
                ),
            ),
            Err(error) => self.say(level(error), &error.to_string()),
        }
        archived.ok()
    }

    /// Gemini CLI calls before it knows whether it will compress. An archive after which nothing was
    /// compressed goes once a later one holds all of it.
    fn supersede(&self, memory: &Memory, archive: &Path) {
        if self.call.agent != Agent::GeminiCli {
            return;
        }
        let earlier = self.shelf.open();
        let earlier = earlier.filter(|open| open.summaries == memory.summaries);
        if let Some(open) = earlier {
            self.noted(shelf::replace(&open.archive, archive));
        }
    }

    /// The session goes on: with a summary that is in the transcript already, or one still to come.
    fn resumed(&self) -> Option<String> {
        let open = self.shelf.open().unwrap_or_default();
        let (memory, place) = self.known(&open)?;
        if memory.summaries > open.summaries {
            // Others are told at this moment only; Claude Code has the same room whatever it knows.
            let most = match self.call.agent {
                Agent::ClaudeCode => STANDING,
                _ => LOST,
            };
            return self.lost(&memory, &open, &place, most);
        }
        self.within(STANDING, |most| still_known(&memory.ledger, &place, most))
    }

    /// The summary is known: it is kept until the next prompt, and the log says how good it is.
    fn after(&self) -> Option<String> {
        let (mut open, summary) = (self.shelf.open()?, self.call.summary.as_ref()?);
        if let Some((memory, place)) = self.known(&open) {
            let visible = self.told(summary)?;
            let loss = compare(&memory.ledger, &visible, &place, LOST);
            let told = format!("the summary shows {} of {}", loss.shown, loss.anchors);
            self.say(Level::Info, &told);
        }
        let redactor = self.redactor(Boundary::Archive)?;
        open.summary = Some(redactor.redact(summary, &mut Counts::new()).into_owned());
        self.noted(self.shelf.set_open(&open));
        None
    }

    fn prompt(&self) -> Option<String> {
        let Transcript::File(path) = &self.call.transcript else {
            return None;
        };
        // Of a new session there is no file before its first prompt.
        if !path.exists() {
            return None;
        }
        let mut memory = self.memory(path)?;
        memory.shed();
        // Where archives are redacted, nothing is kept in its own words.
        if self.redactor(Boundary::Archive)?.is_off() {
            self.noted(self.shelf.keep(&memory));
        }
        let open = self.shelf.open()?;
        if memory.summaries <= open.summaries && open.summary.is_none() {
            return None;
        }
        let place = place(&open.archive);
        self.lost(&memory, &open, &place, LOST)
    }

    /// Holds the new context against the ledger; what is missing goes to the model.
    fn lost(&self, memory: &Memory, open: &Open, place: &str, most: Chars) -> Option<String> {
        let live = match &self.call.transcript {
            Transcript::Missing => Ok(String::new()),
            Transcript::Inline(bytes) => live_text(bytes).map_err(unreadable),
            Transcript::File(path) => {
                shelf::read(path).and_then(|bytes| live_text(&bytes).map_err(unreadable))
            }
        };
        let mut visible = self.noted(live)?;
        visible.push_str(open.summary.as_deref().unwrap_or_default());
        // The ledger names secrets by their placeholders.
        let visible = self.told(&visible)?;
        let (mut shown, mut all) = (0, 0);
        let text = self.within(most, |most| {
            let loss = compare(&memory.ledger, &visible, place, most);
            (shown, all) = (loss.shown, loss.anchors);
            loss.text
        });
        self.shelf.close();
        let told = match &text {
            Some(text) => format!(
                "the most needed of the rest is told in {} characters",
                text.chars().count()
            ),
            None => "nothing is told again".to_owned(),
        };
        self.say(
            Level::Info,
            &format!("the context shows {shown} of {all}; {told}"),
        );
        text
    }

    /// What can be composed in so many characters, as it may leave the process. Redaction may lengthen a
    /// text, which is then composed again with that much less room.
    fn within(
        &self,
        most: Chars,
        mut compose: impl FnMut(Chars) -> Option<String>,
    ) -> Option<String> {
        let mut room = most;
        loop {
            let text = self.told(&compose(room)?)?;
            let excess = (text.chars().count() as u64).saturating_sub(most.0);
            if excess == 0 {
                return Some(text);
            }
            room = Chars(room.0.checked_sub(excess)?);
        }
    }

    /// A text as it may leave the process.
    fn told(&self, text: &str) -> Option<String> {
        let redactor = self.redactor(Boundary::Summary)?;
        Some(redactor.redact(text, &mut Counts::new()).into_owned())
    }

    /// Nothing is archived or told under rules that cannot be used.
    fn redactor(&self, boundary: Boundary) -> Option<Redactor> {
        let made = self.terms.redaction.redactor(boundary);
        self.noted(made.map_err(unusable))
    }

    /// The ledger of what the agent says now, or of the archive; and where the original lies.
    fn known(&self, open: &Open) -> Option<(Memory, String)> {
        let memory = match &self.call.transcript {
            Transcript::File(path) => self.memory(path)?,
            Transcript::Inline(bytes) => {
                let mut memory = Memory::default();
                let redactor = self.redactor(Boundary::Summary)?;
                self.noted(memory.follow(bytes, &redactor).map_err(unreadable))?;
                memory
            }
            Transcript::Missing => self.memory(&open.archive)?,
        };
        let archive = match open.archive.as_os_str().is_empty() {
            true => self.shelf.last(),
            false => Some(open.archive.clone()),
        };
        let place = match (archive, &self.call.transcript) {
            (Some(archive), _) => place(&archive),
            (None, Transcript::File(path)) => path.display().to_string(),
            (None, _) => "nowhere".to_owned(),
        };
        Some((memory, place))
    }

    fn memory(&self, file: &Path) -> Option<Memory> {
        self.noted(read(&self.shelf, self.terms, file))
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

/// The ledger of a file.
fn read(shelf: &Shelf, terms: &Terms, file: &Path) -> io::Result<Memory> {
    let redactor = terms.redaction.redactor(Boundary::Summary);
    let redactor = redactor.map_err(unusable)?;
    shelf.follow(file, &redactor).map_err(|error| {
        let message = format!("cannot tell what to keep of {}: {error}", file.display());
        io::Error::new(error.kind(), message)
    })
}

/// Where an archive is, and what its lines go by.
fn place(archive: &Path) -> String {
    let receipt = shelf::receipt_of(archive).to_string();
    let receipt: String = receipt.chars().take(12).collect();
    format!(
        "{} (what is marked [#N]: `compactctl expand {receipt}#N`, or the tool expand)",
        archive.display()
    )
}

fn level(error: &NotArchived) -> Level {
    match error {
        NotArchived::NoPath(_) | NotArchived::NotFound(_) => Level::Warning,
        NotArchived::Failed(_) => Level::Error,
    }
}

fn unusable(error: RedactError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

fn unreadable(error: compact_formats::FormatError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
