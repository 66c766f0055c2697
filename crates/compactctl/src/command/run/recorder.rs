//! What a person or a program sees of a run, and what is written down of it.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use compact::agent::{AgentWords, RunFolder, RunJournal, RunState, SavedRun, StoryLine};
use compact::event::{EventSink, RunStep};
use compact::redact::{RedactionBoundary, RedactionCounts, Redactor};
use owo_colors::OwoColorize;
use serde_json::Value;

use super::event_json;
use crate::app::App;
use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::output;
use crate::report::text::printable;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DisplayMode {
    /// Every event, as a line of JSON on stdout.
    Json,
    /// What the agent says and does, and what became of its sessions, on stderr.
    Words,
    /// Nothing.
    Nothing,
}

/// The longest line that a message or a call is shown with.
const SHOWN: usize = 160;

/// The record of a run: its folder, and a screen.
pub(super) struct RunRecorder {
    folder: RunFolder,
    saved: SavedRun,
    /// What is taken out of the story, and out of the sessions themselves.
    story: Arc<Redactor>,
    archive: Arc<Redactor>,
    show: DisplayMode,
    /// The last line that was shown.
    shown: String,
    /// The event with which the run ended.
    ended: Value,
    /// Who hears of events beside the screen.
    sink: Arc<dyn EventSink>,
    broken: Option<io::ErrorKind>,
}

impl RunRecorder {
    pub(super) fn new(
        global: &GlobalArgs,
        app: &App,
        folder: RunFolder,
        saved: SavedRun,
    ) -> Result<RunRecorder, Failure> {
        let show = match (global.json, global.quiet) {
            (true, _) => DisplayMode::Json,
            (false, true) => DisplayMode::Nothing,
            (false, false) => DisplayMode::Words,
        };
        Ok(RunRecorder {
            folder,
            saved,
            story: Arc::clone(app.compact().redactor(RedactionBoundary::Export)),
            archive: Arc::clone(app.compact().redactor(RedactionBoundary::Archive)),
            show,
            shown: String::new(),
            ended: Value::Null,
            sink: app.compact().sink()?,
            broken: None,
        })
    }

    /// Whether a person who sees the story and the answer in one place has seen the answer already.
    pub(super) fn has_shown(&self, answer: &str) -> bool {
        let is_one_place = io::stdout().is_terminal() && io::stderr().is_terminal();
        is_one_place && !self.shown.is_empty() && self.shown == answer.trim_end()
    }

    /// The event with which the run ended.
    pub(super) fn into_ended(self) -> Value {
        self.ended
    }

    /// Removes what was written down of a run that never began, and says whether it was one.
    pub(super) fn discard(self) -> bool {
        // What cannot be removed is an empty run among others.
        self.folder.discard_if_unused().unwrap_or(true)
    }

    /// Says once that something cannot be written down.
    fn warn_once(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && self.broken.replace(error.kind()).is_none()
        {
            let place = self.folder.path().display();
            output::print_stderr(&format!("warning: cannot write to {place}: {error}\n"));
        }
    }

    fn show_line(&mut self, told: &StoryLine) {
        match self.show {
            DisplayMode::Json => {
                // A reader who left has seen enough.
                let _ = output::print_line(&event_json(told).to_string());
            }
            DisplayMode::Words => {
                if let Some(line) = screen_line(told) {
                    output::print_stderr(&format!("{line}\n"));
                    self.shown = line;
                }
            }
            DisplayMode::Nothing => {}
        }
    }
}

/// A line for people; nothing when it is of no interest to them, or the command says it itself.
fn screen_line(told: &StoryLine) -> Option<String> {
    let line: String = printable(&told.describe()?).chars().take(SHOWN).collect();
    match told {
        StoryLine::Words { words, .. } => Some(match words {
            AgentWords::Message { .. } => line,
            AgentWords::ToolCalled { .. } | AgentWords::Noise { .. } => line.dimmed().to_string(),
        }),
        StoryLine::Event(_) => match told.step()? {
            RunStep::UsageMissing | RunStep::PromptTooLong => {
                Some(format!("{} {line}", "warning:".yellow().bold()))
            }
            RunStep::ContextUsage { .. }
            | RunStep::UsageReset { .. }
            | RunStep::RunFinished(_)
            | RunStep::RunStopped(_)
            | RunStep::RunFailed { .. }
            | RunStep::CheckpointRequested => None,
            _ => Some(line.cyan().to_string()),
        },
    }
}

impl RunJournal for RunRecorder {
    fn append_story(&mut self, told: &StoryLine) {
        if let StoryLine::Event(event) = told {
            self.sink.emit(event);
        }
        let line = event_json(told);
        // What the agent says comes as it gave it; on disk it is a line of the story like the others.
        let text = line.to_string();
        let text = self.story.redact_json(&text, &mut RedactionCounts::new());
        let written = self.folder.append_event(&text);
        self.warn_once(written);
        match told.step() {
            // It is the answer of the command, which is delivered last.
            Some(RunStep::RunFinished(_) | RunStep::RunStopped(_)) => self.ended = line,
            _ => self.show_line(told),
        }
    }

    fn append_line(&mut self, session: u32, line: &str) {
        let mut counts = RedactionCounts::new();
        let line = match serde_json::from_str::<serde::de::IgnoredAny>(line) {
            Ok(_) => self.archive.redact_json(line, &mut counts),
            Err(_) => self.archive.redact(line, &mut counts),
        };
        let written = self.folder.append_session_line(session, &line);
        self.warn_once(written);
    }

    fn save_state(&mut self, state: &RunState) -> io::Result<()> {
        self.saved.state = state.clone();
        self.folder.save_state(&self.saved)
    }
}
