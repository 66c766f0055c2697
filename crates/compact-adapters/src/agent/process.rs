//! A program in a process group of its own: lines in, lines out, and an end that nothing survives.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use compact_runtime::port::agent::AgentError;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::Launch;

/// How much of what a program says on its way out is kept, in bytes.
const LAST_WORDS: usize = 2_000;

/// How long a program that was asked to end may take, before it is asked less kindly.
const GRACE: Duration = Duration::from_secs(2);

/// How long the rest of what it says is waited for.
const STDERR_WAIT: Duration = Duration::from_millis(500);

/// A signal that asks a program to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessSignal {
    /// Asks the program to end its turn, as Ctrl-C does.
    Interrupt,
    /// Asks the program to end, as `kill` does.
    Terminate,
    /// It is not asked.
    Kill,
}

/// A running agent with its pipes and its process group.
pub(super) struct AgentProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    stderr: Arc<Mutex<Vec<u8>>>,
    listener: tokio::task::JoinHandle<()>,
    group: Option<u32>,
}

impl AgentProcess {
    pub(super) fn spawn(launch: &Launch, arguments: &[&str]) -> Result<AgentProcess, AgentError> {
        let (program, arguments) = launch.resolve_program(arguments);
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(launch.environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &launch.folder {
            command.current_dir(folder);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| spawn_error(launch, error))?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("the program has no streams").into());
        };
        let last_words = Arc::default();
        Ok(AgentProcess {
            listener: tokio::spawn(keep_stderr_tail(stderr, Arc::clone(&last_words))),
            stdin: child.stdin.take(),
            group: child.id(),
            stdout: BufReader::new(stdout),
            line: Vec::new(),
            stderr: last_words,
            child,
        })
    }

    /// The next line of stdout; nothing at its end. Dropping the future loses nothing.
    pub(super) async fn next_line(&mut self) -> io::Result<Option<String>> {
        let read = self.stdout.read_until(b'\n', &mut self.line).await?;
        if read == 0 && self.line.is_empty() {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// Writes a line to stdin.
    pub(super) async fn send(&mut self, line: &str) -> Result<(), AgentError> {
        let Some(stdin) = &mut self.stdin else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        };
        stdin.write_all(line.as_bytes()).await?;
        stdin.write_all(b"\n").await?;
        Ok(stdin.flush().await?)
    }

    /// Closes stdin.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Why it ended: what it answered its parent, and the last it said.
    pub(super) async fn exit_error(&mut self) -> AgentError {
        let waited = tokio::time::timeout(GRACE, self.child.wait()).await;
        let status = match waited {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no status".to_owned(),
        };
        // What it started may hold the stream open, so its end is not waited for.
        let _ = tokio::time::timeout(STDERR_WAIT, &mut self.listener).await;
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&stderr).trim().to_owned();
        AgentError::Exited { status, said }
    }

    /// Asks the program, and everything that it started, to end.
    pub(super) fn signal_group(&self, how: ProcessSignal) {
        #[cfg(unix)]
        if let Some(group) = self.group.and_then(|id| i32::try_from(id).ok())
            && let Some(group) = rustix::process::Pid::from_raw(group)
        {
            use rustix::process::Signal;
            let signal = match how {
                ProcessSignal::Interrupt => Signal::INT,
                ProcessSignal::Terminate => Signal::TERM,
                ProcessSignal::Kill => Signal::KILL,
            };
            // A group that is gone needs no end.
            let _ = rustix::process::kill_process_group(group, signal);
        }
        #[cfg(not(unix))]
        let _ = how;
    }

    /// Waits until it has ended by itself, for a moment.
    pub(super) async fn wait_for_exit(&mut self) -> bool {
        // What it still prints must not keep it from ending.
        let drained = async {
            while let Ok(Some(_)) = self.next_line().await {}
            self.child.wait().await
        };
        let ended = tokio::time::timeout(GRACE, drained).await.is_ok();
        if ended {
            self.kill_leftovers();
        }
        ended
    }

    /// Ends what a program that has ended left behind, once: its number may be another's later.
    fn kill_leftovers(&mut self) {
        self.signal_group(ProcessSignal::Kill);
        self.group = None;
    }

    /// Ends it, kindly if it lets us, together with everything that it started.
    pub(super) async fn stop_group(&mut self, first: ProcessSignal) {
        self.close_stdin();
        let steps = [ProcessSignal::Interrupt, ProcessSignal::Terminate];
        for how in steps.into_iter().skip_while(|how| *how != first) {
            self.signal_group(how);
            if self.wait_for_exit().await {
                break;
            }
        }
        self.kill_leftovers();
        let _ = self.child.start_kill();
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.signal_group(ProcessSignal::Kill);
    }
}

fn spawn_error(launch: &Launch, error: io::Error) -> AgentError {
    let command = launch.command.clone();
    let is_folder = || std::path::Path::new(&launch.command).is_dir();
    // The system says the same of a program that is missing and of the folder that it is to run in.
    if let Some(gone) = launch.folder.as_deref().filter(|folder| !folder.is_dir()) {
        let message = format!("the folder {} is gone", gone.display());
        return io::Error::new(error.kind(), message).into();
    }
    match error.kind() {
        io::ErrorKind::NotFound => AgentError::Missing(command),
        io::ErrorKind::PermissionDenied => AgentError::NotExecutable(command),
        _ if error.raw_os_error() == Some(EXEC_FORMAT) || is_folder() => {
            AgentError::NotExecutable(command)
        }
        _ => error.into(),
    }
}

/// What Unix answers to a file that is no program.
const EXEC_FORMAT: i32 = 8;

/// Keeps the end of what is said on stderr.
async fn keep_stderr_tail(mut stderr: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(buffer.iter().take(read));
        let surplus = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..surplus);
    }
}
