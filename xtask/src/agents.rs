//! The tests under `tests/agents`: agents as their makers ship them call our hooks and tools, with a
//! home of their own, against an API on loopback that each test scripts.

use anyhow::Result;

use crate::environment::node::Packages;
use crate::environment::{Environment, List};

/// The test runner and an agent from PyPI: several hundred megabytes.
pub(crate) const ENVIRONMENT: Environment = Environment {
    name: "agents",
    lists: &[List {
        file: "tests/agents/requirements.txt",
        text: include_str!("../../tests/agents/requirements.txt"),
        flags: &[],
    }],
};

/// More agents: a gigabyte.
pub(crate) const PACKAGES: Packages = Packages {
    name: "agents-npm",
    manifest: include_str!("../../tests/agents/package.json"),
    lock: include_str!("../../tests/agents/package-lock.json"),
};

/// Runs the tests; those of an agent that is not there say so.
pub(crate) fn test() -> Result<()> {
    let packages = PACKAGES.ready().map(|folder| folder.display().to_string());
    let variables: Vec<_> = packages
        .iter()
        .map(|folder| ("COMPACT_AGENTS", folder.as_str()))
        .collect();
    ENVIRONMENT.test("tests/agents", &variables)
}

/// Gets what is missing and runs the tests, without the rest of `cargo xtask test`.
pub(crate) fn run() -> Result<()> {
    if !ENVIRONMENT.is_ready() {
        ENVIRONMENT.install()?;
    }
    PACKAGES.install()?;
    test()
}
