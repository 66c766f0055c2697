//! `cargo xtask corpus PATH…`: every session below the paths through every command.
//!
//! For each session: inspect, plan, compact to a fifth of its history, validate for the providers
//! that its format can be written for, verify, and restore byte for byte. The sessions are other
//! people's: nothing of them is kept, and the store is a folder of its own that is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell;

/// The least that a view may have; less than this leaves no room for a summary.
const LEAST: u64 = 400;

/// Providers that a session is written for and validated against.
const PROVIDERS: [&str; 3] = ["openai-chat", "openai-responses", "anthropic"];

/// Runs every session through every command; fails when one fails.
pub(crate) fn run(paths: &[PathBuf]) -> Result<()> {
    shell::run("cargo", &["build", "--quiet", "--package", "compactctl"])?;
    let bench = Bench::new()?;
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    files.sort();
    println!(
        "{:<44} {:<13} {:>8} {:>8} {:>8} {:>6}",
        "session", "format", "history", "budget", "after", "kept"
    );
    let mut tally = Tally::default();
    for file in &files {
        bench.file(file, &mut tally)?;
    }
    println!(
        "{} sessions in {} files: {} compacted, {} within their budget, {} failed; {} files hold none",
        tally.sessions,
        files.len(),
        tally.compacted,
        tally.unchanged,
        tally.failed,
        tally.skipped
    );
    match tally.failed {
        0 => Ok(()),
        n => bail!("{n} sessions failed"),
    }
}

#[derive(Default)]
struct Tally {
    sessions: usize,
    compacted: usize,
    unchanged: usize,
    failed: usize,
    skipped: usize,
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let found = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !found.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// The binary with a store and a folder of its own.
struct Bench {
    program: PathBuf,
    folder: PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What is left behind is in target/ and harms nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// One session of a file.
struct Session<'a> {
    file: &'a str,
    index: Option<usize>,
    bytes: Vec<u8>,
}

impl Bench {
    fn new() -> Result<Bench> {
        let root = shell::root();
        let folder = root.join(format!("target/corpus-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Bench {
            program: root.join("target/debug/compactctl"),
            folder,
        })
    }

    fn file(&self, path: &Path, tally: &mut Tally) -> Result<()> {
        let bytes = fs::read(path)?;
        let file = path.to_string_lossy();
        let slices = match compact_formats::sessions(&bytes, None) {
            Ok(slices) => slices,
            Err(error) => {
                tally.skipped += 1;
                println!("{:<44} {error}", short(path));
                return Ok(());
            }
        };
        let many = slices.len() > 1;
        for slice in slices {
            let session = Session {
                file: &file,
                index: many.then_some(slice.index),
                bytes: bytes.get(slice.span).unwrap_or_default().to_vec(),
            };
            tally.sessions += 1;
            let name = match session.index {
                Some(index) => format!("{} #{index}", short(path)),
                None => short(path),
            };
            self.tell(&name, &session, tally);
        }
        Ok(())
    }

    fn tell(&self, name: &str, session: &Session<'_>, tally: &mut Tally) {
        match self.session(session) {
            Ok(Some(row)) => {
                tally.compacted += 1;
                println!("{name:<44} {row}");
            }
            // A long file of short sessions would hide the rest.
            Ok(None) => tally.unchanged += 1,
            Err(error) => {
                tally.failed += 1;
                println!("{name:<44} FAILED: {error:#}");
            }
        }
    }

    /// One session through every command; a row of the table, or nothing when it is small.
    fn session(&self, session: &Session<'_>) -> Result<Option<String>> {
        let found = self.json("inspect", session, &[])?;
        let history = number(&found, "/tokens/history");
        let budget = (history / 5).max(LEAST).to_string();
        self.json("plan", session, &["--budget", &budget])?;
        let out = self.folder.join("view");
        let view = out.to_string_lossy().into_owned();
        let receipt = self.json("compact", session, &["--budget", &budget, "-o", &view])?;
        if receipt.get("outcome").and_then(Value::as_str) == Some("unchanged") {
            if fs::read(&out)? != session.bytes {
                bail!("the copy of an unchanged session differs");
            }
            return Ok(None);
        }
        self.validate(session, &view)?;
        let id = receipt.get("receipt_id").and_then(Value::as_str);
        let id = id.context("compact: no receipt_id")?;
        self.run(&["verify", id])?;
        let restored = self.run(&["restore", id])?;
        if restored.stdout != session.bytes {
            bail!("restore: not the bytes that were compacted");
        }
        let again = self.run(&["inspect", &view, "--json"])?;
        let again: Value = serde_json::from_slice(&again.stdout)?;
        let after = number(&again, "/tokens/history");
        if after > budget.parse()? {
            bail!("the view has {after} tokens, the budget is {budget}");
        }
        let format = found.get("format").and_then(Value::as_str);
        let kept = receipt.pointer("/retention/score").and_then(Value::as_f64);
        Ok(Some(format!(
            "{:<13} {history:>8} {budget:>8} {after:>8} {:>5.0} %",
            format.unwrap_or_default(),
            kept.unwrap_or_default() * 100.0
        )))
    }

    /// The view, written for each provider, must be what that provider accepts, as far as the
    /// session was: one that ends with the model's words, say, is no request to begin with.
    fn validate(&self, session: &Session<'_>, view: &str) -> Result<()> {
        let index = session.index.map(|index| index.to_string());
        let mut whole = vec![session.file];
        whole.extend(index.iter().flat_map(|index| ["--session-index", index]));
        for provider in PROVIDERS {
            let broken = self.broken_rules(&[view], provider)?;
            if broken.is_empty() {
                continue;
            }
            let before = self.broken_rules(&whole, provider)?;
            if let Some(new) = broken.iter().find(|rule| !before.contains(rule)) {
                bail!("validate: the view breaks {new} of {provider}");
            }
        }
        Ok(())
    }

    /// The rules of a provider that a session breaks.
    fn broken_rules(&self, session: &[&str], provider: &str) -> Result<Vec<String>> {
        let body = self.folder.join("body").to_string_lossy().into_owned();
        let convert = ["convert", "--to", provider, "-o", &body, "--quiet"];
        self.run(&[&convert[..], session].concat())?;
        let output = self.output(&["validate", &body, "--provider", provider, "--json"])?;
        let found: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("validate as {provider}: not JSON"))?;
        let violations = found.get("violations").and_then(Value::as_array);
        let rules = violations.context("validate: no violations listed")?.iter();
        Ok(rules
            .filter_map(|violation| violation.get("rule")?.as_str().map(String::from))
            .collect())
    }

    fn json(&self, command: &str, session: &Session<'_>, more: &[&str]) -> Result<Value> {
        let index = session.index.map(|index| index.to_string());
        let mut arguments = vec![command, session.file, "--json"];
        if let Some(index) = &index {
            arguments.extend(["--session-index", index]);
        }
        arguments.extend(more);
        let output = self.run(&arguments)?;
        serde_json::from_slice(&output.stdout).with_context(|| format!("{command}: not JSON"))
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let output = self.output(arguments)?;
        if !output.status.success() {
            let said = [output.stderr.as_slice(), output.stdout.as_slice()].concat();
            let said: String = String::from_utf8_lossy(&said).chars().take(400).collect();
            let command = arguments.first().unwrap_or(&"");
            bail!("{command}: {}", said.trim());
        }
        Ok(output)
    }

    fn output(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        command.env("COMPACT_STORAGE_PATH", self.folder.join("store"));
        Ok(command.output()?)
    }
}

fn number(json: &Value, place: &str) -> u64 {
    json.pointer(place)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

/// The folder and the name of a file, in the width of the table.
fn short(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().and_then(Path::file_name);
    let folder = folder.unwrap_or_default().to_string_lossy();
    format!("{folder}/{name}").chars().take(38).collect()
}
