//! A session through the commands of `compactctl`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use compact_formats::validate::Provider;
use compact_formats::{TranscriptScope, parse};
use serde_json::Value;

use super::{CorpusSession, conversion};
use crate::shell;

/// The least that a view may have; less than this leaves no room for a summary.
const LEAST: u64 = 400;

/// The binary with a store and a folder of its own.
pub(super) struct CommandRunner {
    program: PathBuf,
    folder: PathBuf,
}

impl Drop for CommandRunner {
    fn drop(&mut self) {
        // What is left behind is in target/ and harms nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl CommandRunner {
    pub(super) fn new(job: usize) -> Result<CommandRunner> {
        let target = shell::target_folder();
        let folder = target.join(format!("corpus-{}-{job}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(CommandRunner {
            program: target.join("release/compactctl"),
            folder,
        })
    }

    /// Runs every command on one session; returns a row of the table, or nothing if it is small.
    pub(super) fn try_session(&self, session: &CorpusSession) -> super::SessionOutcome {
        let found = self.run_json("inspect", session, &[])?;
        let history = number_at(&found, "/tokens/history");
        let budget = (history / 5).max(LEAST).to_string();
        self.run_json("plan", session, &["--budget", &budget])?;
        let out = self.folder.join("view");
        let view = out.to_string_lossy().into_owned();
        let receipt = self.run_json("compact", session, &["--budget", &budget, "-o", &view])?;
        if receipt.get("outcome").and_then(Value::as_str) == Some("unchanged") {
            if fs::read(&out)? != session.bytes {
                bail!("the copy of an unchanged session differs");
            }
            return Ok(None);
        }
        self.validate_view(&view)?;
        let id = receipt.get("receipt_id").and_then(Value::as_str);
        let id = id.context("compact: no receipt_id")?;
        self.run(&["verify", id])?;
        let restored = self.run(&["restore", id])?;
        if restored.stdout != session.bytes {
            bail!("restore: not the bytes that were compacted");
        }
        let after = self.view_tokens(&view)?;
        if after > budget.parse()? {
            bail!("the view has {after} tokens, the budget is {budget}");
        }
        let format = found.get("format").and_then(Value::as_str);
        let kept = receipt.pointer("/retention/score").and_then(Value::as_f64);
        Ok(Some(format!(
            "{:<13} {history:>8} {budget:>8} {after:>8} {:>7}",
            format.unwrap_or_default(),
            kept.map_or_else(
                || "unknown".to_owned(),
                |kept| format!("{:.0} %", kept * 100.0)
            )
        )))
    }

    fn view_tokens(&self, view: &str) -> Result<u64> {
        let output = self.run(&["inspect", view, "--json"])?;
        let found: Value = serde_json::from_slice(&output.stdout)?;
        Ok(number_at(&found, "/tokens/history"))
    }

    /// Checks that each provider accepts the view written for it.
    fn validate_view(&self, view: &str) -> Result<()> {
        for provider in Provider::ALL {
            let body = self.folder.join("body").to_string_lossy().into_owned();
            let name = provider.name();
            self.run(&["convert", view, "--to", name, "-o", &body, "--quiet"])?;
            let output = self.output(&["validate", &body, "--provider", name])?;
            if !output.status.success() {
                let bytes = fs::read(&body)?;
                let read = parse(
                    bytes.clone(),
                    Some(provider.format()),
                    TranscriptScope::Whole,
                )?;
                conversion::check_accepted(&read.conversation, provider, &bytes)
                    .with_context(|| format!("validate the view for {name}"))?;
            }
        }
        Ok(())
    }

    fn run_json(&self, command: &str, session: &CorpusSession, more: &[&str]) -> Result<Value> {
        let file = session.path.to_string_lossy();
        let index = session.index.map(|index| index.to_string());
        let mut arguments = vec![command, &file, "--json"];
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

/// Returns how many messages a body has.
pub(super) fn count_messages(body: &[u8]) -> Result<usize> {
    let body: Value = serde_json::from_slice(body)?;
    let mut lists = ["messages", "input", "contents"].into_iter();
    let list = lists.find_map(|key| body.get(key)?.as_array());
    Ok(list.context("a body without messages")?.len())
}

fn number_at(json: &Value, place: &str) -> u64 {
    json.pointer(place)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}
