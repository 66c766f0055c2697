//! The tests under `tests/agents`: agents as their makers ship them call our hooks and tools, with a
//! home of their own, against an API on loopback that each test scripts.
//!
//! They run where there is no other network than loopback, if the system allows it, so that nothing
//! that an agent does can leave the machine.

use anyhow::{Context, Result};

use crate::chore::{self, Chore};
use crate::environment::{self, node::NodePackages};
use crate::shell::{self, Console};

/// Where the tests are.
const TESTS: &str = "tests/agents";

/// More agents: a gigabyte.
pub(crate) const PACKAGES: NodePackages = NodePackages {
    name: "agents-npm",
    manifest: include_str!("../../tests/agents/package.json"),
    lock: include_str!("../../tests/agents/package-lock.json"),
};

/// Returns the tests of each file as a chore; those of an agent that is not there say so. They share no port, since
/// each has a loopback of its own, and no folder.
pub(crate) fn test_chores() -> Result<Vec<Chore<'static>>> {
    if !environment::TESTS.is_ready() {
        return Ok(Vec::new());
    }
    let alone = isolated_command();
    if alone.is_none() {
        println!(
            "no namespace of their own for the agents: unshare is not allowed or ip is missing"
        );
    }
    let around = alone.unwrap_or_default();
    let chores = list_test_files()?.into_iter().map(|file| {
        let around = around.clone();
        let name = format!("agents ({file})");
        Chore::new(name, move |console: &Console| {
            test_file(console, &file, &around)
        })
    });
    Ok(chores.collect())
}

/// Returns the files with tests, by path.
fn list_test_files() -> Result<Vec<String>> {
    let entries = std::fs::read_dir(shell::repo_root().join(TESTS)).context(TESTS)?;
    let mut files = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("test_") && name.ends_with(".py") {
            files.push(format!("{TESTS}/{name}"));
        }
    }
    files.sort();
    Ok(files)
}

fn test_file(console: &Console, file: &str, around: &[&str]) -> Result<()> {
    let packages = PACKAGES
        .complete_folder()
        .map(|folder| folder.display().to_string());
    let variables: Vec<(&str, &str)> = packages
        .iter()
        .map(|folder| ("COMPACT_AGENTS", folder.as_str()))
        .collect();
    environment::TESTS.run_pytest(console, file, &variables, around)
}

/// Returns how a program is run with loopback alone; `None` where that is forbidden.
fn isolated_command() -> Option<Vec<&'static str>> {
    let up = "ip link set lo up && exec \"$@\"";
    let ways = ["-n", "-rn"].map(|flag| vec!["unshare", flag, "sh", "-c", up, "sh"]);
    ways.into_iter().find(|way| {
        let trial = [way.get(1..).unwrap_or_default(), &["true"]].concat();
        shell::run_succeeds("unshare", &trial)
    })
}

/// Gets what is missing and runs the tests, without the rest of `cargo xtask test`.
pub(crate) fn run() -> Result<()> {
    environment::TESTS.install_missing()?;
    PACKAGES.install(&Console::Terminal)?;
    shell::build_command(&Console::Terminal, &[])?;
    chore::run_chores(chore::usual_width(), test_chores()?)
}
