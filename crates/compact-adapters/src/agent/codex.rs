//! Codex: one process for a turn, `exec --json`, and the rollout that it writes beside.
//!
//! The stream tells usage only when a turn is over, and a turn may fill many windows; so the rollout
//! is followed for what each request cost. Where it cannot be found, the end of the turn has to do.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use compact_formats::stream::{About, Activity, Dialect, End, token_count};
use compact_runtime::port::agent::{Agent, AgentError, AgentSession, Heard, Opening};

use super::Launch;
use super::lines::Ear;
use super::process::{Ask, Process};

/// Keeps it from compacting by itself.
const NO_COMPACTION: &str = "model_auto_compact_token_limit=9000000000000";

/// How often the rollout is looked at while nothing is said.
const GLANCE: Duration = Duration::from_millis(200);

/// Codex.
#[derive(Clone, Debug)]
pub struct Codex(pub Launch);

#[async_trait]
impl Agent for Codex {
    fn name(&self) -> &str {
        &self.0.command
    }

    fn resumes(&self) -> bool {
        true
    }

    async fn open(
        &self,
        opening: Opening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError> {
        let thread = match opening {
            Opening::Fresh => None,
            Opening::Resumed(id) => Some(id.to_owned()),
        };
        let rollout = thread.as_deref().map(Rollout::at_end).unwrap_or_default();
        Ok(Box::new(Thread {
            process: turn(&self.0, thread.as_deref(), prompt).await?,
            launch: self.0.clone(),
            ear: Ear::new(Dialect::Codex),
            rollout,
            thread,
            turn: State::Running,
        }))
    }
}

/// Starts a turn: flags before `resume`, which takes fewer of them; the prompt comes by stdin.
async fn turn(launch: &Launch, thread: Option<&str>, prompt: &str) -> Result<Process, AgentError> {
    let mut arguments = vec!["exec"];
    arguments.extend(launch.arguments.iter().map(String::as_str));
    arguments.extend(["--json", "-c", NO_COMPACTION]);
    if let Some(thread) = thread {
        arguments.extend(["resume", thread]);
    }
    arguments.push("-");
    let mut process = Process::spawn(launch, &arguments)?;
    // One that is gone already says why when it is heard.
    let _ = process.send(prompt).await;
    process.hang_up();
    Ok(process)
}

/// How far a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Interrupted(Instant),
    Over,
}

/// How long a turn that was interrupted may take to end, before it is asked less kindly.
const GRACE: Duration = Duration::from_secs(3);

struct Thread {
    launch: Launch,
    process: Process,
    ear: Ear,
    rollout: Rollout,
    thread: Option<String>,
    turn: State,
}

impl Thread {
    fn note(&mut self, heard: &Heard) {
        for told in &heard.told {
            match told {
                Activity::Session(About { id: Some(id), .. }) => self.thread = Some(id.clone()),
                Activity::Ended(_) => self.turn = State::Over,
                _ => {}
            }
        }
    }

    /// A program that was started in the background may not hear an interruption.
    fn insist(&mut self) {
        match self.turn {
            State::Interrupted(since) if since.elapsed() > GRACE => {
                self.process.ask(Ask::Terminate);
            }
            _ => {}
        }
    }

    async fn gone(&mut self) -> Result<Heard, AgentError> {
        if matches!(self.turn, State::Interrupted(_)) {
            self.turn = State::Over;
            return Ok(Heard {
                line: None,
                told: vec![Activity::Ended(End::Failed("interrupted".to_owned()))],
            });
        }
        Err(self.ear.silence(self.process.farewell().await))
    }
}

#[async_trait]
impl AgentSession for Thread {
    async fn next(&mut self) -> Result<Heard, AgentError> {
        loop {
            let told = self.rollout.follow(self.thread.as_deref());
            if !told.is_empty() {
                return Ok(Heard { line: None, told });
            }
            let Ok(line) = tokio::time::timeout(GLANCE, self.process.line()).await else {
                self.insist();
                continue;
            };
            let Some(line) = line? else {
                return self.gone().await;
            };
            let heard = self.ear.hear(line)?;
            self.note(&heard);
            return Ok(heard);
        }
    }

    async fn say(&mut self, prompt: &str) -> Result<(), AgentError> {
        if !self.process.ends().await {
            self.process.end(Ask::Terminate).await;
        }
        self.process = turn(&self.launch, self.thread.as_deref(), prompt).await?;
        self.turn = State::Running;
        Ok(())
    }

    async fn interrupt(&mut self) -> Result<(), AgentError> {
        self.turn = State::Interrupted(Instant::now());
        self.process.ask(Ask::Interrupt);
        Ok(())
    }

    async fn close(&mut self) {
        if self.turn == State::Running || !self.process.ends().await {
            self.process.end(Ask::Interrupt).await;
        }
    }
}

/// The file in which Codex writes a thread down, as far as it was read.
#[derive(Debug, Default)]
struct Rollout {
    file: Option<PathBuf>,
    read: u64,
    rest: Vec<u8>,
}

impl Rollout {
    /// The rollout of a thread from its end on: what it cost before is of another turn.
    fn at_end(thread: &str) -> Rollout {
        let file = find(thread);
        let size = file.as_ref().and_then(|file| std::fs::metadata(file).ok());
        Rollout {
            read: size.map_or(0, |found| found.len()),
            file,
            rest: Vec::new(),
        }
    }

    /// What was written since.
    fn follow(&mut self, thread: Option<&str>) -> Vec<Activity> {
        if self.file.is_none() {
            self.file = thread.and_then(find);
        }
        let Some(bytes) = self.file.as_deref().and_then(|file| from(file, self.read)) else {
            return Vec::new();
        };
        self.read += bytes.len() as u64;
        self.rest.extend(bytes);
        let end = self.rest.iter().rposition(|byte| *byte == b'\n');
        let whole: Vec<u8> = self.rest.drain(..end.map_or(0, |at| at + 1)).collect();
        let text = String::from_utf8_lossy(&whole);
        text.lines()
            .filter_map(token_count)
            .flat_map(told)
            .collect()
    }
}

fn told(
    (report, window): (
        compact_formats::stream::Report,
        Option<compact_core::token::Tokens>,
    ),
) -> [Activity; 2] {
    let about = About {
        window,
        ..About::default()
    };
    [Activity::Session(about), Activity::Used(report)]
}

/// The bytes of a file from a place on, if there are any.
fn from(file: &Path, place: u64) -> Option<Vec<u8>> {
    let mut file = File::open(file).ok()?;
    if file.metadata().ok()?.len() <= place {
        return None;
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(place)).ok()?;
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Looks for a thread's rollout below Codex's home, by year, month and day, the latest first.
fn find(thread: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".codex")))?;
    let years = below(&home.join("sessions"));
    let days = years.iter().flat_map(|year| below(year));
    let days = days.flat_map(|month| below(&month));
    let mut files = days.flat_map(|day| below(&day));
    let ending = format!("-{thread}.jsonl");
    files.find(|file| file.to_string_lossy().ends_with(&ending))
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = found.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.reverse();
    paths
}
