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

use compact::event::HookStep;
use compact::hook::{
    self, ArchivedTranscript, CharCount, HookAgent, HookArchiveError, HookMemory, HookMoment,
    HookPayload, HookStore, HookTranscript, PendingCompaction, find_loss, live_text, must_keep,
    still_known,
};
use compact::redact::{RedactError, RedactionBoundary, RedactionCounts, RedactionRules, Redactor};
use compact::token::{Chars4, Estimator, EstimatorExt, Tokens};
use jiff::{SignedDuration, Timestamp};

use super::hook_events::HookEvents;
use super::hook_log::{HookLog, LogLevel};

/// How agents call a compaction that nobody asked for.
const AUTOMATIC: &str = "auto";

/// The most that a summarizer is asked to keep.
const KEEP: CharCount = CharCount(6_000);
/// The most that is told while the summary is not known.
const STANDING: CharCount = CharCount(4_000);
/// The most that is put back once it is. Codex spills more than about 2,500 tokens to disk.
const LOST: CharCount = CharCount(6_000);

/// What is remembered of a session that nobody went on with for so long is removed.
const STALE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What a hook goes by.
#[derive(Debug)]
pub(crate) struct HookOptions {
    /// The folder of everything that hooks leave behind.
    pub hooks: PathBuf,
    /// What is redacted of it, and of what is told.
    pub redaction: RedactionRules,
}

/// What a call is answered on stdout.
pub(crate) fn answer_call(
    call: &HookPayload,
    terms: &HookOptions,
    now: Timestamp,
    journal: &HookLog,
    events: &HookEvents<'_>,
) -> String {
    let visit = HookCall {
        call,
        terms,
        shelf: HookStore::for_call(&terms.hooks, call),
        journal,
        events,
    };
    let told = match call.moment {
        HookMoment::BeforeCompaction => {
            let told = visit.before_compaction(now);
            hook::remove_stale(&terms.hooks, now - STALE);
            told.map(|text| call.agent.format_instructions(text))
        }
        HookMoment::Resumed => visit.after_resume().map(|text| visit.wrap_context(text)),
        HookMoment::AfterCompaction => visit.after_compaction(),
        HookMoment::Prompt => visit.at_prompt().map(|text| visit.wrap_context(text)),
        HookMoment::Other => None,
    };
    told.unwrap_or_default()
}

/// One call with what it needs.
struct HookCall<'a> {
    call: &'a HookPayload,
    terms: &'a HookOptions,
    shelf: HookStore,
    journal: &'a HookLog,
    events: &'a HookEvents<'a>,
}

impl HookCall<'_> {
    /// The copy waits for the disk and the ledger for the processor, so they are made side by side.
    fn before_compaction(&self, now: Timestamp) -> Option<String> {
        let redactor = self.redactor(RedactionBoundary::Archive)?;
        let (shelf, call, terms) = (&self.shelf, self.call, self.terms);
        let copy = || shelf.archive(&call.transcript, now, &redactor);
        let (archived, memory) = thread::scope(|scope| {
            let Ok(copying) = thread::Builder::new().spawn_scoped(scope, copy) else {
                // The system has no thread to give, and the archive must not wait for one.
                return (copy(), None);
            };
            let memory = match &call.transcript {
                HookTranscript::File(path) => Some(follow_file(shelf, terms, path)),
                _ => None,
            };
            let stopped = |_| Err(io::Error::other("the copy stopped").into());
            (copying.join().unwrap_or_else(stopped), memory)
        });
        let archived = self.log_archived(archived)?;
        let memory = memory.unwrap_or_else(|| follow_file(shelf, terms, &archived.path));
        let tokens_before = memory.as_ref().ok().and_then(|known| known.context_tokens);
        self.report_archived(&archived, tokens_before.map(Tokens));
        // The process ends with this call, and a person waits for it: a ledger of megabytes is not taken
        // apart piece by piece first.
        let memory = ManuallyDrop::new(self.log_error(memory)?);
        let earlier = self.shelf.pending_compaction();
        self.remove_superseded(earlier.as_ref(), &memory, &archived.path);
        let open = PendingCompaction {
            archive: archived.path,
            tokens_before,
            summaries: memory.summaries,
            earlier: earlier.and_then(|earlier| earlier.into_earlier(memory.summaries)),
            ..PendingCompaction::default()
        };
        self.log_error(self.shelf.set_pending(&open));
        self.within(KEEP, |most| must_keep(&memory.ledger, most))
    }

    /// What became of the copy goes to the log; that of an agent which makes one before every request goes
    /// there once it compacted.
    fn log_archived(
        &self,
        archived: Result<ArchivedTranscript, HookArchiveError>,
    ) -> Option<ArchivedTranscript> {
        match &archived {
            Ok(_) if self.is_before_every_request() => {}
            Ok(ArchivedTranscript { path, bytes }) => self.log_line(
                LogLevel::Info,
                &format!(
                    "archived transcript (trigger={}) to {} ({:.1} KB)",
                    self.call.trigger,
                    path.display(),
                    *bytes as f64 / 1024.0
                ),
            ),
            Err(error) => {
                self.log_line(error_level(error), &error.to_string());
                self.report_failure(error.to_string(), true);
            }
        }
        archived.ok()
    }

    /// Gemini CLI calls before every request, not only before it compacts.
    fn is_before_every_request(&self) -> bool {
        self.call.agent == HookAgent::GeminiCli && self.call.trigger == AUTOMATIC
    }

    fn report_archived(&self, archived: &ArchivedTranscript, tokens_before: Option<Tokens>) {
        if self.is_before_every_request() {
            return;
        }
        let step = HookStep::HookArchived {
            trigger: self.call.trigger.clone(),
            path: archived.path.display().to_string(),
            bytes: archived.bytes,
            tokens_before,
        };
        self.events.add_step(self.call, tokens_before, step);
    }

    fn report_failure(&self, error: String, unarchived: bool) {
        let step = HookStep::HookFailed { error, unarchived };
        self.events.add_step(self.call, None, step);
    }

    /// Gemini CLI calls before it knows whether it will compress. An archive after which nothing was
    /// compressed goes once a later one holds all of it.
    fn remove_superseded(
        &self,
        earlier: Option<&PendingCompaction>,
        memory: &HookMemory,
        archive: &Path,
    ) {
        if self.call.agent != HookAgent::GeminiCli {
            return;
        }
        let earlier = earlier.filter(|open| open.summaries == memory.summaries);
        if let Some(open) = earlier {
            self.log_error(hook::remove_if_contained(&open.archive, archive));
        }
    }

    /// The session goes on: with a summary that is in the transcript already, or one still to come.
    fn after_resume(&self) -> Option<String> {
        let open = self.shelf.pending_compaction().unwrap_or_default();
        if open.is_view {
            return None;
        }
        let (memory, place) = self.known_memory(&open)?;
        if open.is_done(memory.summaries) {
            // Others are told at this moment only; Claude Code has the same room whatever it knows.
            let most = match self.call.agent {
                HookAgent::ClaudeCode => STANDING,
                _ => LOST,
            };
            return self.find_lost(&memory, &open, &place, most);
        }
        self.within(STANDING, |most| still_known(&memory.ledger, &place, most))
    }

    /// The summary is known: it is kept until the next prompt, and the log says how good it is.
    fn after_compaction(&self) -> Option<String> {
        let (mut open, summary) = (
            self.shelf.pending_compaction()?,
            self.call.summary.as_ref()?,
        );
        if open.is_view {
            return None;
        }
        if let Some((memory, place)) = self.known_memory(&open) {
            let visible = self.redact_text(summary)?;
            let loss = find_loss(&memory.ledger, &visible, &place, LOST);
            let told = format!("the summary shows {} of {}", loss.shown, loss.anchors);
            self.log_line(LogLevel::Info, &told);
        }
        let redactor = self.redactor(RedactionBoundary::Archive)?;
        open.summary = Some(
            redactor
                .redact(summary, &mut RedactionCounts::new())
                .into_owned(),
        );
        self.log_error(self.shelf.set_pending(&open));
        None
    }

    fn at_prompt(&self) -> Option<String> {
        let HookTranscript::File(path) = &self.call.transcript else {
            return None;
        };
        // Of a new session there is no file before its first prompt.
        if !path.exists() {
            return None;
        }
        let mut memory = self.read_memory(path)?;
        memory.shed_names();
        // Where archives are redacted, nothing is kept in its own words.
        if self.redactor(RedactionBoundary::Archive)?.is_off() {
            self.log_error(self.shelf.save_ledger(&memory));
        }
        let open = self.shelf.pending_compaction()?;
        if open.is_view {
            self.shelf.clear_pending();
            return None;
        }
        if !open.is_done(memory.summaries) && open.summary.is_none() {
            return None;
        }
        let place = archive_hint(open.original());
        self.find_lost(&memory, &open, &place, LOST)
    }

    /// Holds the new context against the ledger; what is missing goes to the model.
    fn find_lost(
        &self,
        memory: &HookMemory,
        open: &PendingCompaction,
        place: &str,
        most: CharCount,
    ) -> Option<String> {
        let live = match &self.call.transcript {
            HookTranscript::Missing => Ok(String::new()),
            HookTranscript::Inline(bytes) => live_text(bytes).map_err(unreadable_error),
            HookTranscript::File(path) => hook::read_regular_file(path)
                .and_then(|bytes| live_text(&bytes).map_err(unreadable_error)),
        };
        let mut visible = self.log_error(live)?;
        visible.push_str(open.summary.as_deref().unwrap_or_default());
        // The ledger names secrets by their placeholders.
        let visible = self.redact_text(&visible)?;
        let (mut shown, mut all) = (0, 0);
        let text = self.within(most, |most| {
            let loss = find_loss(&memory.ledger, &visible, place, most);
            (shown, all) = (loss.shown, loss.anchors);
            loss.text
        });
        self.shelf.clear_pending();
        let tokens_after = Chars4.to_tokens(Chars4.count_units(&visible));
        let step = HookStep::HookCompacted {
            tokens_before: open.tokens_before.map(Tokens),
            tokens_after,
            anchors: all,
            shown,
            repeated_chars: text.as_ref().map_or(0, |text| text.chars().count()) as u64,
        };
        self.events.add_step(self.call, Some(tokens_after), step);
        let told = match &text {
            Some(text) => format!(
                "the most important of the rest is repeated in {} characters",
                text.chars().count()
            ),
            None => "nothing is repeated".to_owned(),
        };
        let original = match open.original() {
            none if none.as_os_str().is_empty() => String::new(),
            archive => format!("; the original is {}", archive.display()),
        };
        self.log_line(
            LogLevel::Info,
            &format!("the context shows {shown} of {all}; {told}{original}"),
        );
        text
    }

    /// What can be composed in so many characters, as it may leave the process. Redaction may lengthen a
    /// text, which is then composed again with that much less room.
    fn within(
        &self,
        most: CharCount,
        mut compose: impl FnMut(CharCount) -> Option<String>,
    ) -> Option<String> {
        let mut room = most;
        loop {
            let text = self.redact_text(&compose(room)?)?;
            let excess = (text.chars().count() as u64).saturating_sub(most.0);
            if excess == 0 {
                return Some(text);
            }
            room = CharCount(room.0.checked_sub(excess)?);
        }
    }

    /// A text as it may leave the process.
    fn redact_text(&self, text: &str) -> Option<String> {
        let redactor = self.redactor(RedactionBoundary::Summary)?;
        Some(
            redactor
                .redact(text, &mut RedactionCounts::new())
                .into_owned(),
        )
    }

    /// Nothing is archived or told under rules that cannot be used.
    fn redactor(&self, boundary: RedactionBoundary) -> Option<Redactor> {
        let made = self.terms.redaction.redactor(boundary);
        self.log_error(made.map_err(redaction_error))
    }

    /// The ledger of what the agent says now, or of the archive; and where the original lies.
    fn known_memory(&self, open: &PendingCompaction) -> Option<(HookMemory, String)> {
        let memory = match &self.call.transcript {
            HookTranscript::File(path) => self.read_memory(path)?,
            HookTranscript::Inline(bytes) => {
                let mut memory = HookMemory::default();
                let redactor = self.redactor(RedactionBoundary::Summary)?;
                self.log_error(memory.read_more(bytes, &redactor).map_err(unreadable_error))?;
                memory
            }
            HookTranscript::Missing => self.read_memory(open.original())?,
        };
        let archive = match open.original() {
            none if none.as_os_str().is_empty() => self.shelf.latest_archive(),
            archive => Some(archive.to_owned()),
        };
        let place = match (archive, &self.call.transcript) {
            (Some(archive), _) => archive_hint(&archive),
            (None, HookTranscript::File(path)) => path.display().to_string(),
            (None, _) => "nowhere".to_owned(),
        };
        Some((memory, place))
    }

    fn read_memory(&self, file: &Path) -> Option<HookMemory> {
        self.log_error(follow_file(&self.shelf, self.terms, file))
    }

    fn wrap_context(&self, text: String) -> String {
        self.call.agent.format_context(&self.call.event, text)
    }

    fn log_error<T>(&self, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.log_line(LogLevel::Warning, &error.to_string());
                self.report_failure(error.to_string(), false);
                None
            }
        }
    }

    fn log_line(&self, level: LogLevel, message: &str) {
        let line = format!("{}: {message}", self.call.event);
        self.journal.write_line(level, &line);
    }
}

/// The ledger of a file.
fn follow_file(shelf: &HookStore, terms: &HookOptions, file: &Path) -> io::Result<HookMemory> {
    let redactor = terms.redaction.redactor(RedactionBoundary::Summary);
    let redactor = redactor.map_err(redaction_error)?;
    shelf.load_ledger(file, &redactor).map_err(|error| {
        let message = format!("cannot tell what to keep of {}: {error}", file.display());
        io::Error::new(error.kind(), message)
    })
}

/// Where an archive is, and what its lines go by.
fn archive_hint(archive: &Path) -> String {
    let receipt = hook::receipt_of(archive).to_string();
    let receipt: String = receipt.chars().take(12).collect();
    format!(
        "{} (what is marked [#N]: `compactctl expand {receipt}#N`, or the tool expand)",
        archive.display()
    )
}

fn error_level(error: &HookArchiveError) -> LogLevel {
    match error {
        HookArchiveError::NoPath(_) | HookArchiveError::NotFound(_) => LogLevel::Warning,
        HookArchiveError::Failed(_) => LogLevel::Error,
    }
}

fn redaction_error(error: RedactError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

fn unreadable_error(error: compact::format::FormatError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
