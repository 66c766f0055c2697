//! Codex: one process for a turn, `exec --json`, and the rollout that it writes beside.
//!
//! The stream tells usage only when a turn is over, and a turn may fill many windows; so the rollout
//! is followed for what each request cost. Where it cannot be found, the end of the turn has to do.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use compact_formats::stream::{
    AgentActivity, SessionDetails, StreamDialect, TurnEnd, read_token_count,
};
use compact_runtime::port::agent::{
    AgentError, AgentOutput, AgentProgram, AgentSession, SessionOpening,
};

use super::Launch;
use super::line_agent::TolerantReader;
use super::process::{AgentProcess, ProcessSignal};

/// Keeps it from compacting by itself.
const NO_COMPACTION: &str = "model_auto_compact_token_limit=9000000000000";

/// How often the rollout is looked at while nothing is said.
const ROLLOUT_POLL: Duration = Duration::from_millis(200);

/// Runs Codex, one process for each turn.
#[derive(Clone, Debug)]
pub struct CodexAgent(pub Launch);

#[async_trait]
impl AgentProgram for CodexAgent {
    fn name(&self) -> &str {
        &self.0.command
    }

    fn can_resume(&self) -> bool {
        true
    }

    async fn open(
        &self,
        opening: SessionOpening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError> {
        let thread = match opening {
            SessionOpening::Fresh => None,
            SessionOpening::Resumed(id) => Some(id.to_owned()),
        };
        let rollout = thread
            .as_deref()
            .map(RolloutReader::at_end)
            .unwrap_or_default();
        Ok(Box::new(CodexSession {
            process: start_turn(&self.0, thread.as_deref(), prompt).await?,
            launch: self.0.clone(),
            ear: TolerantReader::new(StreamDialect::Codex),
            rollout,
            thread,
            turn: CodexTurn::Running,
        }))
    }
}

/// Starts a turn: flags before `resume`, which takes fewer of them; the prompt comes by stdin.
async fn start_turn(
    launch: &Launch,
    thread: Option<&str>,
    prompt: &str,
) -> Result<AgentProcess, AgentError> {
    let mut arguments = vec!["exec"];
    arguments.extend(launch.arguments.iter().map(String::as_str));
    arguments.extend(["--json", "-c", NO_COMPACTION]);
    if let Some(thread) = thread {
        arguments.extend(["resume", thread]);
    }
    arguments.push("-");
    let mut process = AgentProcess::spawn(launch, &arguments)?;
    // One that is gone already says why when it is heard.
    let _ = process.send(prompt).await;
    process.close_stdin();
    Ok(process)
}

/// The state of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodexTurn {
    Running,
    Interrupted(Instant),
    Over,
}

/// How long a turn that was interrupted may take to end, before it is asked less kindly.
const GRACE: Duration = Duration::from_secs(3);

struct CodexSession {
    launch: Launch,
    process: AgentProcess,
    ear: TolerantReader,
    rollout: RolloutReader,
    thread: Option<String>,
    turn: CodexTurn,
}

impl CodexSession {
    fn track_activity(&mut self, heard: &AgentOutput) {
        for told in &heard.told {
            match told {
                AgentActivity::Session(SessionDetails { id: Some(id), .. }) => {
                    self.thread = Some(id.clone())
                }
                AgentActivity::Ended(_) => self.turn = CodexTurn::Over,
                _ => {}
            }
        }
    }

    /// Terminates the agent if it ignores an interruption, as a program started in the background may.
    fn enforce_interrupt(&mut self) {
        match self.turn {
            CodexTurn::Interrupted(since) if since.elapsed() > GRACE => {
                self.process.signal_group(ProcessSignal::Terminate);
            }
            _ => {}
        }
    }

    async fn handle_exit(&mut self) -> Result<AgentOutput, AgentError> {
        if matches!(self.turn, CodexTurn::Interrupted(_)) {
            self.turn = CodexTurn::Over;
            return Ok(AgentOutput {
                line: None,
                told: vec![AgentActivity::Ended(TurnEnd::Failed(
                    "interrupted".to_owned(),
                ))],
            });
        }
        Err(self.ear.explain_end(self.process.exit_error().await))
    }
}

#[async_trait]
impl AgentSession for CodexSession {
    async fn next(&mut self) -> Result<AgentOutput, AgentError> {
        loop {
            let told = self.rollout.read_new_usage(self.thread.as_deref());
            if !told.is_empty() {
                return Ok(AgentOutput { line: None, told });
            }
            let Ok(line) = tokio::time::timeout(ROLLOUT_POLL, self.process.next_line()).await
            else {
                self.enforce_interrupt();
                continue;
            };
            let Some(line) = line? else {
                return self.handle_exit().await;
            };
            let heard = self.ear.read_line(line)?;
            self.track_activity(&heard);
            return Ok(heard);
        }
    }

    async fn send_prompt(&mut self, prompt: &str) -> Result<(), AgentError> {
        if !self.process.wait_for_exit().await {
            self.process.stop_group(ProcessSignal::Terminate).await;
        }
        self.process = start_turn(&self.launch, self.thread.as_deref(), prompt).await?;
        self.turn = CodexTurn::Running;
        Ok(())
    }

    async fn interrupt(&mut self) -> Result<(), AgentError> {
        self.turn = CodexTurn::Interrupted(Instant::now());
        self.process.signal_group(ProcessSignal::Interrupt);
        Ok(())
    }

    async fn close(&mut self) {
        if self.turn == CodexTurn::Running || !self.process.wait_for_exit().await {
            self.process.stop_group(ProcessSignal::Interrupt).await;
        }
    }
}

/// The file in which Codex writes a thread down, as far as it was read.
#[derive(Debug, Default)]
struct RolloutReader {
    file: Option<PathBuf>,
    read: u64,
    rest: Vec<u8>,
}

impl RolloutReader {
    /// Returns the rollout of a thread from its end on: what it cost before is of another turn.
    fn at_end(thread: &str) -> RolloutReader {
        let file = find_rollout(thread);
        let size = file.as_ref().and_then(|file| std::fs::metadata(file).ok());
        RolloutReader {
            read: size.map_or(0, |found| found.len()),
            file,
            rest: Vec::new(),
        }
    }

    /// Returns what was written since.
    fn read_new_usage(&mut self, thread: Option<&str>) -> Vec<AgentActivity> {
        if self.file.is_none() {
            self.file = thread.and_then(find_rollout);
        }
        let Some(bytes) = self
            .file
            .as_deref()
            .and_then(|file| read_from(file, self.read))
        else {
            return Vec::new();
        };
        self.read += bytes.len() as u64;
        self.rest.extend(bytes);
        let end = self.rest.iter().rposition(|byte| *byte == b'\n');
        let whole: Vec<u8> = self.rest.drain(..end.map_or(0, |at| at + 1)).collect();
        let text = String::from_utf8_lossy(&whole);
        text.lines()
            .filter_map(read_token_count)
            .flat_map(usage_activities)
            .collect()
    }
}

fn usage_activities(
    (report, window): (
        compact_formats::stream::UsageReport,
        Option<compact_core::token::Tokens>,
    ),
) -> [AgentActivity; 2] {
    let about = SessionDetails {
        window,
        ..SessionDetails::default()
    };
    [AgentActivity::Session(about), AgentActivity::Used(report)]
}

/// Returns the bytes of a file from a place on, if there are any.
fn read_from(file: &Path, place: u64) -> Option<Vec<u8>> {
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
fn find_rollout(thread: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".codex")))?;
    let years = list_newest_first(&home.join("sessions"));
    let days = years.iter().flat_map(|year| list_newest_first(year));
    let days = days.flat_map(|month| list_newest_first(&month));
    let mut files = days.flat_map(|day| list_newest_first(&day));
    let ending = format!("-{thread}.jsonl");
    files.find(|file| file.to_string_lossy().ends_with(&ending))
}

fn list_newest_first(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = found.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.reverse();
    paths
}
