//! `cargo xtask release-check`: what has to be true of a commit before it becomes a version.
//!
//! Every line is checked, so that one pass shows all that is missing. What cannot be checked here is reported as
//! not checked and is no failure. It changes nothing and publishes nothing.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::dependencies::{cargo_metadata, text_field};
use crate::dist::workspace_version;
use crate::{examples, licences, requirements, shell, tidy};

/// What a check found.
enum ReleaseFinding {
    /// It holds.
    Ready(String),
    /// It could not be checked, and why.
    Unchecked(String),
}

/// A line of the list.
struct ReleaseStep {
    name: &'static str,
    check: fn(&str) -> Result<ReleaseFinding>,
}

const STEPS: &[ReleaseStep] = &[
    ReleaseStep {
        name: "working tree",
        check: check_tree,
    },
    ReleaseStep {
        name: "version",
        check: check_versions,
    },
    ReleaseStep {
        name: "changelog",
        check: check_changelog,
    },
    ReleaseStep {
        name: "tag",
        check: check_tag,
    },
    ReleaseStep {
        name: "documents",
        check: |_| {
            tidy::check()?;
            requirements::check()?;
            Ok(ReleaseFinding::Ready(examples::check()?))
        },
    },
    ReleaseStep {
        name: "licences",
        check: |_| Ok(ReleaseFinding::Ready(licences::check()?)),
    },
    ReleaseStep {
        name: "API",
        check: check_api,
    },
];

/// Checks everything.
pub(crate) fn run() -> Result<()> {
    let version = workspace_version()?;
    let mut failed = Vec::new();
    for step in STEPS {
        match (step.check)(&version) {
            Ok(ReleaseFinding::Ready(found)) => println!("ok           {}: {found}", step.name),
            Ok(ReleaseFinding::Unchecked(why)) => println!("not checked  {}: {why}", step.name),
            Err(error) => {
                println!("FAILED       {}: {error:#}", step.name);
                failed.push(step.name);
            }
        }
    }
    println!("then: `.ci/run`, `cargo xtask prove`, `cargo xtask dist`, and the tag v{version}");
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("{version} is not ready: {}", failed.join(", ")),
    }
}

fn check_tree(_: &str) -> Result<ReleaseFinding> {
    let changed = shell::output("git", &["status", "--porcelain"])?;
    match changed.trim() {
        "" => Ok(ReleaseFinding::Ready("everything is committed".to_owned())),
        changed => bail!("commit or remove what is not committed\n{changed}"),
    }
}

/// Checks that every crate has the version, and names it where it uses another.
fn check_versions(version: &str) -> Result<ReleaseFinding> {
    let metadata = cargo_metadata(&["--no-deps"])?;
    let packages = metadata.get("packages").and_then(|value| value.as_array());
    let mut others = Vec::new();
    for package in packages.into_iter().flatten() {
        if text_field(package, "version") != version {
            others.push(text_field(package, "name"));
        }
    }
    let manifest = fs::read_to_string(shell::repo_root().join("Cargo.toml"))?;
    let wanted = format!("version = \"{version}\"");
    let stale = manifest
        .lines()
        .filter(|line| line.contains("path = \"crates/") && !line.contains(&wanted));
    others.extend(stale.map(str::to_owned));
    match others.is_empty() {
        true => Ok(ReleaseFinding::Ready(format!("{version} everywhere"))),
        false => bail!("these have another version\n  {}", others.join("\n  ")),
    }
}

fn check_changelog(version: &str) -> Result<ReleaseFinding> {
    let text =
        fs::read_to_string(shell::repo_root().join("CHANGELOG.md")).context("CHANGELOG.md")?;
    find_dated_entry(&text, version).map(ReleaseFinding::Ready)
}

/// Returns the heading of a version that has a date and something below it.
fn find_dated_entry(changelog: &str, version: &str) -> Result<String> {
    let start = format!("## [{version}]");
    let mut lines = changelog.lines();
    let heading = lines.find(|line| line.starts_with(&start));
    let heading = heading.with_context(|| format!("CHANGELOG.md has no heading `{start}`"))?;
    if heading.contains("Unreleased") {
        bail!("`{heading}` has no date");
    }
    let mut below = lines.take_while(|line| !line.starts_with("## "));
    if !below.any(|line| line.starts_with("- ")) {
        bail!("nothing stands below `{heading}`");
    }
    Ok(heading.to_owned())
}

fn check_tag(version: &str) -> Result<ReleaseFinding> {
    let tag = format!("v{version}");
    match shell::run_succeeds("git", &["rev-parse", "--verify", "--quiet", &tag]) {
        true => bail!("{tag} is there already; a version is released once"),
        false => Ok(ReleaseFinding::Ready(format!("{tag} is free"))),
    }
}

/// Compares what the crates offer with the last version, where there is one and a tool that can.
fn check_api(_: &str) -> Result<ReleaseFinding> {
    let last = ["describe", "--tags", "--abbrev=0", "--match", "v*"];
    let Some(last) = shell::quiet_output("git", &last) else {
        let words = "no version was released yet, so there is nothing to compare with";
        return Ok(ReleaseFinding::Unchecked(words.to_owned()));
    };
    if !shell::run_succeeds("cargo", &["semver-checks", "--version"]) {
        let words = "cargo-semver-checks is not installed (`cargo install cargo-semver-checks`)";
        return Ok(ReleaseFinding::Unchecked(words.to_owned()));
    }
    let last = last.trim();
    shell::run(
        "cargo",
        &["semver-checks", "--workspace", "--baseline-rev", last],
    )?;
    Ok(ReleaseFinding::Ready(format!(
        "nothing breaks since {last}"
    )))
}

#[cfg(test)]
mod tests {
    use super::find_dated_entry;

    #[test]
    fn a_version_needs_a_date_and_a_change() {
        let error = |text: &str| find_dated_entry(text, "1.2.0").unwrap_err().to_string();
        let dated = "# Changelog\n\n## [1.2.0] - 2026-01-31\n\n- A change.\n\n## [1.1.0]\n";
        let found = find_dated_entry(dated, "1.2.0").unwrap();
        assert_eq!(found, "## [1.2.0] - 2026-01-31");
        assert_eq!(
            error("## [1.1.0]\n"),
            "CHANGELOG.md has no heading `## [1.2.0]`"
        );
        let undated = "## [1.2.0] - Unreleased\n\n- A change.\n";
        assert_eq!(error(undated), "`## [1.2.0] - Unreleased` has no date");
        let empty = "## [1.2.0] - 2026-01-31\n\n## [1.1.0]\n- A change.\n";
        assert_eq!(
            error(empty),
            "nothing stands below `## [1.2.0] - 2026-01-31`"
        );
    }
}
