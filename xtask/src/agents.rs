//! The tests under `tests/agents`: agents as their makers ship them call our hooks and tools, with a
//! home of their own, against an API on loopback that each test scripts.
//!
//! They run where there is no other network than loopback, if the system allows it, so that nothing
//! that an agent does can leave the machine.

use anyhow::Result;

use crate::environment::node::NodePackages;
use crate::environment::{PipRequirements, PythonEnvironment};
use crate::shell;

/// The test runner and an agent from PyPI: several hundred megabytes.
pub(crate) const ENVIRONMENT: PythonEnvironment = PythonEnvironment {
    name: "agents",
    lists: &[PipRequirements {
        file: "tests/agents/requirements.txt",
        text: include_str!("../../tests/agents/requirements.txt"),
        flags: &[],
    }],
};

/// More agents: a gigabyte.
pub(crate) const PACKAGES: NodePackages = NodePackages {
    name: "agents-npm",
    manifest: include_str!("../../tests/agents/package.json"),
    lock: include_str!("../../tests/agents/package-lock.json"),
};

/// Runs the tests; those of an agent that is not there say so.
pub(crate) fn test_all() -> Result<()> {
    let packages = PACKAGES
        .complete_folder()
        .map(|folder| folder.display().to_string());
    let variables: Vec<(&str, &str)> = packages
        .iter()
        .map(|folder| ("COMPACT_AGENTS", folder.as_str()))
        .collect();
    let alone = isolated_command();
    if alone.is_none() {
        println!(
            "no namespace of their own for the agents: unshare is not allowed or ip is missing"
        );
    }
    ENVIRONMENT.run_pytest(
        "tests/agents",
        &variables,
        alone.as_deref().unwrap_or_default(),
    )
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
    if !ENVIRONMENT.is_ready() {
        ENVIRONMENT.install()?;
    }
    PACKAGES.install()?;
    test_all()
}
