//! The agent's process: its terminal, its signals, its exit code.
//!
//! It stays in our process group, so a terminal tells it of Ctrl-C itself. Signals that somebody sends to this
//! process alone are passed on, and none of them ends us before the agent.

use std::ffi::OsStr;
use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, Command};

use super::agent::{AgentCommand, LaunchSettings};
use crate::failure::{Failure, FailureCode};

/// What a shell adds to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

/// An agent that runs.
pub(super) struct AgentProcess {
    child: Child,
    signals: Signals,
}

impl AgentProcess {
    /// Starts an agent; call it within the runtime.
    pub(super) fn start(
        command: &AgentCommand,
        settings: &LaunchSettings,
    ) -> Result<AgentProcess, Failure> {
        // Whoever interrupts from now on interrupts the agent.
        let signals = Signals::listen().map_err(|error| {
            Failure::from_error(FailureCode::Unexpected, &error)
                .with_context("cannot catch signals")
        })?;
        let started = Command::new(&command.program)
            .args(&settings.arguments)
            .args(&command.arguments)
            .envs(settings.variables.iter().map(|(name, value)| (name, value)))
            .spawn();
        let child = started.map_err(|error| cannot_run(&command.program, &error))?;
        Ok(AgentProcess { child, signals })
    }

    /// Waits for its end and returns its exit code, as a shell gives it.
    pub(super) async fn wait(&mut self) -> Result<u8, Failure> {
        loop {
            let status = tokio::select! {
                status = self.child.wait() => status,
                signal = self.signals.next() => {
                    self.pass_on(signal);
                    continue;
                }
            };
            let status =
                status.map_err(|error| Failure::from_error(FailureCode::Unexpected, &error))?;
            return Ok(u8::try_from(exit_code(status)).unwrap_or(1));
        }
    }

    #[cfg(unix)]
    fn pass_on(&self, signal: PassedSignal) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(child) = id.and_then(rustix::process::Pid::from_raw)
            && !(signal.comes_from_keys && has_terminal())
        {
            let _ = rustix::process::kill_process(child, signal.signal);
        }
    }

    #[cfg(not(unix))]
    fn pass_on(&self, _signal: PassedSignal) {}
}

/// Says that a program cannot be run.
pub(super) fn cannot_run(program: &OsStr, error: &io::Error) -> Failure {
    let program = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(
            format!("there is no program `{program}`"),
            "install it, or give its path",
        ),
        _ => Failure::from_error(FailureCode::Usage, error)
            .with_context(&format!("cannot run `{program}`")),
    }
}

#[cfg(unix)]
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let signalled = status.signal().map(|signal| SIGNALLED + signal);
    status.code().or(signalled).unwrap_or(1)
}

#[cfg(not(unix))]
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(SIGNALLED)
}

/// Returns whether a terminal sends what its keys mean to us and to the agent alike.
#[cfg(unix)]
fn has_terminal() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// A signal that came.
#[cfg(unix)]
#[derive(Clone, Copy)]
struct PassedSignal {
    signal: rustix::process::Signal,
    /// Whether a terminal sends it for keys, to all that run in it.
    comes_from_keys: bool,
}

#[cfg(not(unix))]
struct PassedSignal;

/// The signals that are the agent's.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> PassedSignal {
        use rustix::process::Signal;
        let (signal, comes_from_keys) = tokio::select! {
            _ = self.interrupt.recv() => (Signal::INT, true),
            _ = self.quit.recv() => (Signal::QUIT, true),
            _ = self.terminate.recv() => (Signal::TERM, false),
            _ = self.hangup.recv() => (Signal::HUP, false),
        };
        PassedSignal {
            signal,
            comes_from_keys,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) -> PassedSignal {
        // The console tells the agent itself; here it must only not end us.
        let _ = tokio::signal::ctrl_c().await;
        PassedSignal
    }
}
