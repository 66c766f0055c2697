//! The table for people and the JSON for scripts.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use crate::subject::BenchSession;
use crate::time::Timing;

pub(crate) struct BenchReport {
    session: Value,
    ratios: Map<String, Value>,
    worst: Map<String, Value>,
    limits: Map<String, Value>,
    seconds: Map<String, Value>,
    exceeded: Vec<String>,
}

impl BenchReport {
    pub(crate) fn new(subject: &BenchSession) -> BenchReport {
        println!(
            "session: {} tokens, {} entries, {} bytes\n",
            subject.tokens,
            subject.conversation.entries.len(),
            subject.file.len()
        );
        println!(
            "{:<30} {:>9} {:>9} {:>7} {:>11} {:>11}",
            "", "median", "worst", "limit", "seconds", "baseline"
        );
        BenchReport {
            session: json!({"tokens": subject.tokens, "bytes": subject.file.len()}),
            ratios: Map::new(),
            worst: Map::new(),
            limits: Map::new(),
            seconds: Map::new(),
            exceeded: Vec::new(),
        }
    }

    /// Adds a ratio of times: its median over the rounds is held to the limit.
    pub(crate) fn timed(&mut self, name: &str, limit: f64, timing: &Timing) {
        let (candidate, baseline) = (timing.candidate(), timing.baseline());
        let times = format!("{candidate:>11.4} {baseline:>11.4}");
        self.seconds.insert(
            name.into(),
            json!({"candidate": candidate, "baseline": baseline}),
        );
        self.worst.insert(name.into(), json!(timing.worst_ratio()));
        self.row(name, limit, [timing.ratio(), timing.worst_ratio()], &times);
    }

    /// Adds the parts of the time above.
    pub(crate) fn stages(&mut self, stages: Vec<(&'static str, f64)>) {
        for (name, seconds) in stages {
            println!("  {name:<45} {seconds:>13.4}");
            self.seconds.insert(format!("stage {name}"), json!(seconds));
        }
    }

    /// Adds a ratio of sizes.
    pub(crate) fn ratio(&mut self, name: &str, limit: f64, value: f64) {
        self.row(name, limit, [value, value], "");
    }

    fn row(&mut self, name: &str, limit: f64, [value, worst]: [f64; 2], times: &str) {
        let verdict = if value > limit { "  EXCEEDED" } else { "" };
        println!("{name:<30} {value:>9.4} {worst:>9.4} {limit:>7} {times}{verdict}");
        self.ratios.insert(name.into(), json!(value));
        self.limits.insert(name.into(), json!(limit));
        if value > limit {
            self.exceeded.push(name.to_owned());
        }
    }

    /// Writes the file and fails when a limit was exceeded.
    pub(crate) fn finish(self) -> Result<()> {
        let folder = target().join("bench");
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("report.json");
        // The search over a large archive and the hooks are measured by themselves.
        let before = std::fs::read(&file).unwrap_or_default();
        let before: Value = serde_json::from_slice(&before).unwrap_or_default();
        let report = json!({
            "ratios": self.ratios,
            "worst": self.worst,
            "limits": self.limits,
            "seconds": self.seconds,
            "session": self.session,
            "recall": before.get("recall"),
            "hook": before.get("hook"),
        });
        std::fs::write(file, format!("{report:#}\n"))?;
        if !self.exceeded.is_empty() {
            bail!("over the limit: {}", self.exceeded.join(", "));
        }
        Ok(())
    }
}

fn target() -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from(root), PathBuf::from)
}
