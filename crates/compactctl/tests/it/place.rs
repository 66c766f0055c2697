//! A directory with its own home and store, and the command run in it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A place to run in.
pub(crate) struct Place {
    dir: TempDir,
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file")
    }

    /// One of the example sessions, as a file here.
    pub(crate) fn example(&self, name: &str) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        self.write(name, std::fs::read(root.join(name)).expect("an example"));
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_compactctl"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", self.path("home"))
            .env("COMPACT_STORAGE_PATH", self.store())
            // No process goes on in a place that is gone; tests of that one ask for it.
            .env("COMPACT_STORAGE_INDEXING", "on_recall");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(arguments))
    }

    pub(crate) fn run_with_stdin(&self, arguments: &[&str], stdin: &[u8]) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // A command that refuses its arguments does not read.
        let _ = child.stdin.take().expect("stdin").write_all(stdin);
        Run::from(child.wait_with_output().expect("the command ends"))
    }

    /// A run that must succeed, as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
        run.json()
    }
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Run {
        Run::from(command.output().expect("the command runs"))
    }

    pub(crate) fn from(output: std::process::Output) -> Run {
        Run {
            code: output.status.code().expect("an exit code, not a signal"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("stderr is text"),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("stdout is text")
    }

    /// The one document on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).expect("one JSON document on stdout")
    }

    /// Succeeded, and said what `want` says.
    pub(crate) fn ok(self) -> Run {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// Failed as told: `error:` and never a panic.
    pub(crate) fn failed(self, code: i32) -> Run {
        assert_eq!(self.code, code, "{}\n{}", self.stderr, self.text());
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

/// Plain messages, one per line: turns of a question, an exchange of words and an answer.
pub(crate) fn lines(turns: std::ops::Range<usize>) -> String {
    let mut out = String::new();
    for turn in turns {
        let filler = format!("the parser reads field {turn} of record R-{turn:04} ").repeat(12);
        for (role, text) in [
            (
                "user",
                format!("Please handle case {turn} in src/case_{turn}.rs."),
            ),
            ("assistant", format!("Working on case {turn}. {filler}")),
            (
                "assistant",
                format!("Case {turn} is done; the build passes."),
            ),
        ] {
            out.push_str(&json!({ "role": role, "content": text }).to_string());
            out.push('\n');
        }
    }
    out
}

/// A Claude Code session of so many turns with a tool exchange each.
pub(crate) fn claude(turns: usize) -> String {
    let mut out = Vec::new();
    let mut parent = Value::Null;
    for turn in 0..turns {
        let result =
            format!("{turn}: fn handler_{turn}() -> Result<(), Error> {{ todo }}\n").repeat(30);
        for (kind, message) in [
            (
                "user",
                json!({ "role": "user", "content": format!("Look at handler {turn}.") }),
            ),
            (
                "assistant",
                json!({
                    "id": format!("msg_{turn}"), "type": "message", "role": "assistant",
                    "model": "claude-sonnet-4-5",
                    "content": [{
                        "type": "tool_use", "id": format!("toolu_{turn}"), "name": "Read",
                        "input": { "file_path": format!("src/handler_{turn}.rs") },
                    }],
                }),
            ),
            (
                "user",
                json!({
                    "role": "user",
                    "content": [{
                        "type": "tool_result", "tool_use_id": format!("toolu_{turn}"),
                        "content": result,
                    }],
                }),
            ),
        ] {
            let uuid = format!("00000000-0000-4000-8000-{:012}", out.len());
            out.push(
                json!({
                    "parentUuid": parent, "isSidechain": false, "userType": "external",
                    "cwd": "/src", "sessionId": "5e551040-0000-4000-8000-000000000000",
                    "version": "2.1.7", "type": kind, "message": message, "uuid": uuid,
                    "timestamp": format!("2026-03-02T08:{turn:02}:00.000Z"),
                })
                .to_string(),
            );
            parent = json!(uuid);
        }
    }
    out.join("\n") + "\n"
}

/// The shape of a report: its words, without the numbers and quotes that the engine answers for.
pub(crate) fn shape(text: &str) -> String {
    let quoted = |line: &&str| line.starts_with("  | - ") || line.starts_with("  | ##");
    let lines = text.lines().filter(|line| !quoted(line));
    lines.map(shape_of_line).collect::<Vec<_>>().join("\n")
}

fn shape_of_line(line: &str) -> String {
    // Times and sizes are the machine's.
    let volatile = ["  archive ", "  time "];
    if let Some(name) = volatile.into_iter().find(|name| line.starts_with(name)) {
        return format!("{name}...");
    }
    let indent = line.len() - line.trim_start().len();
    let words = line.split_whitespace().map(shape_of_word);
    " ".repeat(indent) + &words.collect::<Vec<_>>().join(" ")
}

/// Bars, receipts and numbers by their kind.
fn shape_of_word(word: &str) -> String {
    let all = |set: &str| !word.is_empty() && word.chars().all(|c| set.contains(c));
    if all("#.") && word.len() > 10 {
        return "BAR".to_owned();
    }
    if word.len() >= 12 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        return "RECEIPT".to_owned();
    }
    let mut out = String::new();
    for c in word.chars() {
        let digit = c.is_ascii_digit() || (matches!(c, ',' | '.') && out.ends_with('N'));
        match digit {
            true if out.ends_with('N') => {}
            true => out.push('N'),
            false => out.push(c),
        }
    }
    out
}
