//! The journal: what requests cost, what compactions did about it and what caches missed, as lines in a file for each week.
//!
//! It is a sink for events beside the exporters, and what the pages about money are made from. A line is an event as it
//! was emitted, counts and ids only, with the folder that the program ran in. Files belong to their owner alone; those of
//! half a year ago are removed when a week begins. What cannot be written or read is left out: a journal never fails a
//! call.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use compact_core::event::{CacheMiss, Event, EventKind, MissOrigin, PromptChange, PromptPart};
use compact_core::token::Tokens;
use compact_core::trigger::CompactionCause;
use compact_core::usage::Usage;
use compact_runtime::port::event::EventSink;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::private;

/// The folder in the data directory.
const FOLDER: &str = "journal";
/// How many weeks are kept beside the current one.
const WEEKS: usize = 26;
/// Characters of a time down to the second.
const SECOND_CHARS: usize = 19;
/// What names the project of a session from here on.
const PROJECT: &str = "journal.project";

/// The journal of a data directory.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    /// Where the program runs.
    project: Option<String>,
}

/// Something that was noted.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    /// When.
    pub at: Timestamp,
    /// The session.
    pub session: String,
    /// The folder that the program ran in.
    pub project: Option<String>,
    /// The model, when known.
    pub model: Option<String>,
    /// The window that was counted against.
    pub window: Option<Tokens>,
    /// What happened.
    pub fact: JournalFact,
}

/// What was noted.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalFact {
    /// A request, as its provider reported it.
    Request {
        /// The tokens.
        usage: Usage,
        /// US dollars, where the model's prices were known.
        cost_usd: Option<f64>,
    },
    /// A compaction.
    Compaction {
        /// Its receipt.
        receipt: String,
        /// Why.
        cause: Option<CompactionCause>,
        /// Tokens of the history before and after.
        tokens: (Tokens, Tokens),
    },
    /// A cache that did not have what it should.
    Miss(CacheMiss),
    /// The session's agent says that it works in this folder.
    Project(String),
}

impl Journal {
    /// Opens the journal in a data directory; nothing is made before something is noted.
    pub fn new(root: &Path) -> Journal {
        let here = std::env::current_dir().ok();
        Journal {
            folder: root.join(FOLDER),
            project: here.map(|folder| project_root(&folder).display().to_string()),
        }
    }

    /// Notes the folder that a session's agent works in.
    pub fn note_project(&self, session: &str, folder: &str, now: Timestamp) {
        let line = ProjectLine {
            ts: now.to_string(),
            event: PROJECT,
            session_id: session,
            project: folder,
        };
        self.write_line(&line, now);
    }

    /// Returns what was noted since a time, the oldest first; `wanted` is asked with each line before it is read.
    pub fn read_since(&self, since: Timestamp, wanted: impl Fn(&str) -> bool) -> Vec<JournalEntry> {
        let first = file_name(since);
        let second: String = since.to_string().chars().take(SECOND_CHARS).collect();
        let mut entries = Vec::new();
        for name in self.list_files().into_iter().filter(|name| *name >= first) {
            let Ok(file) = fs::File::open(self.folder.join(&name)) else {
                continue;
            };
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            let read = lines
                .filter(|line| !is_older(line, &second) && wanted(line))
                .filter_map(|line| read_line(&line));
            entries.extend(read.filter(|entry| entry.at >= since));
        }
        // Events tell their time in milliseconds: within one, what was written first comes first.
        entries.sort_by_key(|entry| entry.at.as_millisecond());
        entries
    }

    /// Returns how many bytes the newest file has: more whenever something was noted.
    pub fn newest_bytes(&self) -> u64 {
        let newest = self.list_files().pop();
        let found = newest.and_then(|name| fs::metadata(self.folder.join(name)).ok());
        found.map_or(0, |found| found.len())
    }

    /// Lists the files by name, which is by time.
    fn list_files(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".jsonl")).collect();
        names.sort();
        names
    }

    fn write_line(&self, line: &impl Serialize, at: Timestamp) {
        // What happened is not undone by a disk that is full.
        let _ = self.append(line, at);
    }

    fn append(&self, line: &impl Serialize, at: Timestamp) -> io::Result<()> {
        let path = self.folder.join(file_name(at));
        if !path.exists() {
            private::create_dir(&self.folder)?;
            self.remove_old_files();
        }
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // One write of an appended file is not torn by those of other processes.
        let mut file = private::open(OpenOptions::new().append(true).create(true), &path)?;
        file.write_all(&text)
    }

    fn remove_old_files(&self) {
        let files = self.list_files();
        let old = files.len().saturating_sub(WEEKS);
        for name in files.iter().take(old) {
            let _ = fs::remove_file(self.folder.join(name));
        }
    }
}

impl EventSink for Journal {
    fn emit(&self, event: &Event) {
        let is_noted = matches!(
            event.kind,
            EventKind::Usage(_) | EventKind::Completed { .. } | EventKind::CacheMissed(_)
        );
        if !is_noted {
            return;
        }
        if let Ok(at) = event.ts.parse() {
            let project = self.project.as_deref();
            self.write_line(&EventLine { event, project }, at);
        }
    }
}

/// The closest folder above that is a repository, or else the folder itself.
fn project_root(folder: &Path) -> &Path {
    let mut above = folder.ancestors();
    above
        .find(|folder| folder.join(".git").exists())
        .unwrap_or(folder)
}

/// Returns the file of a time: that of its week.
fn file_name(at: Timestamp) -> String {
    format!("{}.jsonl", week_of(at))
}

/// Returns the week of a time as ISO 8601 names it, such as `2026-W07`.
pub fn week_of(at: Timestamp) -> String {
    let week = at.to_zoned(TimeZone::UTC).date().iso_week_date();
    format!("{}-W{:02}", week.year(), week.week())
}

/// An event as a line.
#[derive(Serialize)]
struct EventLine<'a> {
    #[serde(flatten)]
    event: &'a Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
}

#[derive(Serialize)]
struct ProjectLine<'a> {
    ts: String,
    event: &'static str,
    session_id: &'a str,
    project: &'a str,
}

/// What is read of a line, whichever event it is.
#[derive(Deserialize)]
struct NotedLine {
    ts: String,
    event: String,
    session_id: String,
    project: Option<String>,
    model: Option<String>,
    max: Option<Tokens>,
    cause: Option<CompactionCause>,
    receipt_id: Option<String>,
    #[serde(default)]
    tokens_before: Tokens,
    #[serde(default)]
    tokens_after: Tokens,
    #[serde(default)]
    turn_input: u64,
    #[serde(default)]
    turn_output: u64,
    #[serde(default)]
    turn_cache_read: u64,
    #[serde(default)]
    turn_cache_creation: u64,
    turn_cost_usd: Option<f64>,
    #[serde(default)]
    expected_tokens: Tokens,
    #[serde(default)]
    read_tokens: Tokens,
    #[serde(default)]
    idle_seconds: u64,
    origin: Option<MissOrigin>,
    part: Option<PromptPart>,
    message: Option<u64>,
    at_byte: Option<u64>,
    extra_usd: Option<f64>,
}

/// Returns whether a line was noted before a second, without reading all of it.
fn is_older(line: &str, second: &str) -> bool {
    let opening = "\"ts\":\"";
    let begin = line.find(opening).map(|at| at + opening.len());
    let noted = begin.and_then(|begin| line.get(begin..begin + second.len()));
    noted.is_some_and(|noted| noted < second)
}

fn read_line(line: &str) -> Option<JournalEntry> {
    let mut line: NotedLine = serde_json::from_str(line).ok()?;
    let fact = line.take_fact()?;
    Some(JournalEntry {
        at: line.ts.parse().ok()?,
        session: line.session_id,
        project: line.project,
        model: line.model,
        window: line.max.filter(|max| max.0 > 0),
        fact,
    })
}

impl NotedLine {
    fn take_fact(&mut self) -> Option<JournalFact> {
        Some(match self.event.as_str() {
            "compact.usage" => JournalFact::Request {
                usage: Usage {
                    input_tokens: self.turn_input,
                    output_tokens: self.turn_output,
                    cache_read_tokens: self.turn_cache_read,
                    cache_creation_tokens: self.turn_cache_creation,
                },
                cost_usd: self.turn_cost_usd,
            },
            "compact.completed" => JournalFact::Compaction {
                receipt: self.receipt_id.take()?,
                cause: self.cause,
                tokens: (self.tokens_before, self.tokens_after),
            },
            "compact.cache_missed" => JournalFact::Miss(CacheMiss {
                expected_tokens: self.expected_tokens,
                read_tokens: self.read_tokens,
                idle_seconds: self.idle_seconds,
                origin: self.origin?,
                change: self.change(),
                extra_usd: self.extra_usd,
            }),
            PROJECT => JournalFact::Project(self.project.take()?),
            _ => return None,
        })
    }

    fn change(&self) -> Option<PromptChange> {
        Some(PromptChange {
            part: self.part?,
            message: self.message,
            at_byte: self.at_byte?,
        })
    }
}

#[cfg(test)]
mod tests;
