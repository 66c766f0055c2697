//! Questions about recorded sessions: whether a method that needs no hindsight answers more of them than the engine.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::ProbeFolders;
use crate::dependencies::text_field;
use crate::dist;
use crate::shell::Console;

/// Methods that anybody could use instead.
const METHODS: &str = "compact,keep_last,head_tail,trim_tools,entity_ledger";

/// Asks all questions of what each method keeps.
pub(super) fn compare_methods(console: &Console, folders: Option<&ProbeFolders>) -> Result<()> {
    let folders = folders.context("no folder of probes was named")?;
    let program = dist::build_own_command(console)?;
    let output = Command::new(program)
        .args(["eval", "--json", "--methods", METHODS, "--probes"])
        .arg(fs::canonicalize(&folders.probes)?)
        .arg("--data")
        .arg(fs::canonicalize(&folders.data)?)
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let scores = read_scores(&serde_json::from_slice(&output.stdout)?);
    for (method, score) in &scores {
        console.print_line(&format!("{method:<14} {score:.3}"))?;
    }
    check_scores(&scores)
}

fn read_scores(answer: &Value) -> Vec<(String, f64)> {
    let means = answer.get("means").and_then(Value::as_array);
    let means = means.into_iter().flatten();
    let score = |mean: &Value| mean.get("score").and_then(Value::as_f64);
    means
        .filter_map(|mean| Some((text_field(mean, "method"), score(mean)?)))
        .collect()
}

/// Fails when a method is better than the engine, or the engine is not there.
fn check_scores(scores: &[(String, f64)]) -> Result<()> {
    let ours = scores.iter().find(|(method, _)| method == "compact");
    let (_, ours) = ours.context("the engine was not measured")?;
    ensure!(scores.len() > 1, "nothing was measured beside the engine");
    match scores.iter().find(|(_, score)| score > ours) {
        Some((method, score)) => bail!("{method} answers {score:.3}, the engine {ours:.3}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_scores, read_scores};
    use serde_json::json;

    #[test]
    fn a_better_method_and_a_missing_engine_are_failures() {
        let check = |means| check_scores(&read_scores(&json!({ "means": means }))).is_ok();
        let mean = |method: &str, score: f64| json!({ "method": method, "score": score });
        assert!(check([mean("compact", 0.5), mean("keep_last", 0.5)]));
        assert!(!check([mean("compact", 0.5), mean("keep_last", 0.6)]));
        assert!(!check([mean("trim_tools", 0.5), mean("keep_last", 0.6)]));
        assert!(check_scores(&[("compact".to_owned(), 0.5)]).is_err());
    }
}
