//! What was proved, on which machine and with which versions, as JSON for programs and as a page for people.
//!
//! The page needs nothing but itself. It says what was not run as plainly as what was.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Promise;
use crate::shell;

/// How many of the last lines that a proof printed are kept.
const KEPT_LINES: usize = 12;

/// What came of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProofOutcome {
    Holds,
    Broken(String),
    NotRun(String),
}

impl ProofOutcome {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            ProofOutcome::Holds => "holds",
            ProofOutcome::Broken(_) => "broken",
            ProofOutcome::NotRun(_) => "not run",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            ProofOutcome::Holds => None,
            ProofOutcome::Broken(reason) | ProofOutcome::NotRun(reason) => Some(reason),
        }
    }
}

/// A line of the report.
#[derive(Clone, Debug)]
pub(super) struct ProofRow {
    pub(super) name: &'static str,
    pub(super) promise: Promise,
    pub(super) shows: &'static str,
    pub(super) trials: u32,
    pub(super) outcome: ProofOutcome,
    pub(super) seconds: f64,
    /// What it printed last.
    pub(super) printed: Vec<String>,
}

impl ProofRow {
    /// Returns what to say of a proof that is broken.
    pub(super) fn broken_line(&self) -> Option<String> {
        match &self.outcome {
            ProofOutcome::Broken(reason) => Some(format!("{}: {reason}", self.name)),
            _ => None,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "promise": self.promise.as_str(),
            "shows": self.shows,
            "trials": self.trials,
            "outcome": self.outcome.as_str(),
            "reason": self.outcome.reason(),
            "seconds": (self.seconds * 10.0).round() / 10.0,
            "printed": self.printed,
        })
    }
}

/// Writes the report as JSON and as a page.
pub(super) fn write(folder: &Path, rows: &[ProofRow]) -> Result<()> {
    let json = json!({
        "surroundings": describe_surroundings(),
        "seeds": { "fuzzing": super::SEED, "tests": "fixed in their sources" },
        "promises": sum_promises(rows),
        "proofs": rows.iter().map(ProofRow::to_json).collect::<Vec<_>>(),
    });
    fs::write(folder.join("report.json"), format!("{json:#}\n")).context("report.json")?;
    fs::write(folder.join("report.html"), render_page(&json)).context("report.html")
}

/// Returns what became of each promise: the proofs that hold, with their trials, that are broken, and that were not run.
fn sum_promises(rows: &[ProofRow]) -> Vec<Value> {
    let sum = |promise: Promise| {
        let of_it: Vec<&ProofRow> = rows.iter().filter(|row| row.promise == promise).collect();
        let names = |outcome: &str| -> Vec<&str> {
            let rows = of_it.iter().filter(|row| row.outcome.as_str() == outcome);
            rows.map(|row| row.name).collect()
        };
        let holding = of_it
            .iter()
            .filter(|row| row.outcome == ProofOutcome::Holds);
        json!({
            "promise": promise.as_str(),
            "trials": holding.map(|row| u64::from(row.trials)).sum::<u64>(),
            "holds": names("holds"),
            "broken": names("broken"),
            "not_run": names("not run"),
        })
    };
    Promise::ALL.into_iter().map(sum).collect()
}

/// Returns the machine and the versions of everything that took part.
fn describe_surroundings() -> Value {
    let ask = |program: &str, arguments: &[&str]| {
        let text = shell::quiet_output(program, arguments).unwrap_or_default();
        let line = text.lines().next().unwrap_or("not there");
        line.trim().to_owned()
    };
    let changed = shell::quiet_output("git", &["status", "--porcelain"]).unwrap_or_default();
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    json!({
        "commit": ask("git", &["rev-parse", "HEAD"]),
        "changed_files": changed.lines().count(),
        "date": ask("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        "system": ask("uname", &["-srm"]),
        "processor": find_field(&processor, "model name"),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": find_field(&memory, "MemTotal"),
        "rustc": ask("rustc", &["--version"]),
        "python": ask("python3", &["--version"]),
        "node": ask("node", &["--version"]),
        "postgres": ask("postgres", &["--version"]),
    })
}

/// Returns what stands behind a name and a colon.
fn find_field(text: &str, name: &str) -> String {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.split_once(':'));
    line.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

/// Returns the last lines that say something.
pub(super) fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let first = lines.len().saturating_sub(KEPT_LINES);
    let last = lines.get(first..).unwrap_or_default();
    last.iter().map(|line| (*line).to_owned()).collect()
}

fn render_page(report: &Value) -> String {
    let list = |key: &str| report.get(key).and_then(Value::as_array).cloned();
    let mut page = String::from(HEAD);
    let known = report.get("surroundings").and_then(Value::as_object);
    for (name, value) in known.into_iter().flatten() {
        // A string takes whatever is written.
        let _ = writeln!(page, "<tr><th>{name}</th><td>{}</td></tr>", escape(value));
    }
    page.push_str("</table>\n<table>\n<tr><th>promise</th><th>broken</th><th>holds</th><th>trials</th><th>not run</th></tr>\n");
    for row in list("promises").unwrap_or_default() {
        let names = |key: &str| {
            let names = row.get(key).and_then(Value::as_array).cloned();
            let names: Vec<String> = names.unwrap_or_default().iter().map(escape).collect();
            names.join(", ")
        };
        let field = |key: &str| escape(row.get(key).unwrap_or(&Value::Null));
        let _ = writeln!(
            page,
            "<tr><th>{}</th><td class=\"broken\">{}</td><td class=\"holds\">{}</td><td>{}</td><td class=\"not-run\">{}</td></tr>",
            field("promise"),
            names("broken"),
            names("holds"),
            field("trials"),
            names("not_run"),
        );
    }
    page.push_str("</table>\n<table>\n<tr><th>proof</th><th>outcome</th><th>trials</th><th>seconds</th><th>what holds</th></tr>\n");
    for row in list("proofs").unwrap_or_default() {
        let field = |key: &str| escape(row.get(key).unwrap_or(&Value::Null));
        let printed = row.get("printed").and_then(Value::as_array).cloned();
        let printed: Vec<String> = printed.unwrap_or_default().iter().map(escape).collect();
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}<details><summary>printed last</summary><pre>{}\n{}</pre></details></td></tr>",
            field("name"),
            field("outcome").replace(' ', "-"),
            field("outcome"),
            field("trials"),
            field("seconds"),
            field("shows"),
            printed.join("\n"),
            field("reason"),
        );
    }
    page.push_str("</table>\n");
    page
}

const HEAD: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Compact: what was proved</title>\n<style>\n\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }\n\
table { border-collapse: collapse; margin: 1rem 0; } th, td { text-align: left; vertical-align: top; padding: .25rem .75rem; border-bottom: 1px solid #ddd; }\n\
.holds { color: #176f2c; } .broken { color: #b00020; font-weight: bold; } .not-run { color: #8a6d00; }\n\
</style>\n<h1>What was proved</h1>\n<table>\n";

/// Returns a value as text of a page; nothing for null.
fn escape(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
