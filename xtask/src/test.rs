//! `cargo xtask test`: all tests, with what they need set up first.
//!
//! A requirement says how to see whether it is there, how to get it, and what is skipped without it.
//! On a build server nothing may be skipped.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::storage::{self, TestServers, flawed};
use crate::{agents, collector, python, shell, wire};

/// Something outside of Rust that some tests need.
struct TestPrerequisite {
    name: &'static str,
    is_met: fn() -> bool,
    /// Tries to get it; an error says why it could not.
    install: fn() -> Result<()>,
    /// What does not run without it.
    without_it: &'static str,
}

/// Servers, interpreters and packages go here as the tests come to need them.
const REQUIREMENTS: &[TestPrerequisite] = &[
    TestPrerequisite {
        name: "Python with the providers' SDKs",
        is_met: || wire::ENVIRONMENT.is_ready(),
        install: || wire::ENVIRONMENT.install(),
        without_it: "no SDK and no server judges our request bodies, no client but ours calls `mcp` (tests/wire), and no model is asked for summaries",
    },
    TestPrerequisite {
        name: "Claude Code",
        is_met: || agents::ENVIRONMENT.is_ready(),
        install: || agents::ENVIRONMENT.install(),
        without_it: "no agent calls our hooks and tools (tests/agents)",
    },
    TestPrerequisite {
        name: "Codex, Gemini CLI, opencode and Claude Code from npm",
        is_met: || agents::PACKAGES.complete_folder().is_some(),
        install: || agents::PACKAGES.install(),
        without_it: "of the agents, only Claude Code from PyPI calls us (tests/agents)",
    },
    TestPrerequisite {
        name: "PostgreSQL",
        is_met: storage::has_postgres,
        install: storage::install_postgres,
        without_it: "the shared catalog and recall index are not tested",
    },
    TestPrerequisite {
        name: "a server that speaks S3",
        is_met: || storage::S3.is_ready(),
        install: || storage::S3.install(),
        without_it: "the archive in a bucket is not tested",
    },
    TestPrerequisite {
        name: "a server that speaks S3 and ignores conditions",
        is_met: || flawed::PACKAGES.complete_folder().is_some(),
        install: || flawed::PACKAGES.install(),
        without_it: "conditional writes that do not work are only tested against stores of our own",
    },
    TestPrerequisite {
        name: "Python with the frameworks of agents",
        is_met: || python::ENVIRONMENT.is_ready(),
        install: || python::ENVIRONMENT.install(),
        without_it: "the Python package is neither built nor tested (tests/python)",
    },
    TestPrerequisite {
        name: "LiteLLM",
        is_met: || python::LITELLM.is_ready(),
        install: || python::LITELLM.install(),
        without_it: "its hook is not tested (tests/python/test_litellm.py)",
    },
    TestPrerequisite {
        name: "a collector of OpenTelemetry",
        is_met: || collector::find_program().is_some(),
        install: || collector::ENVIRONMENT.install(),
        without_it: "no collector but our own judgement hears of events",
    },
];

/// How long each reader of transcripts is fuzzed: enough to see that it is still whole.
const FUZZ_SECONDS: u64 = 1;

/// The same inputs on every machine: a test that fails must fail again.
const FUZZ_SEED: u64 = 1;

/// Sets up, tests, sums up.
pub(crate) fn run() -> Result<()> {
    let start = Instant::now();
    let skipped = install_missing(REQUIREMENTS);
    if shell::is_ci() && !skipped.is_empty() {
        bail!(
            "CI is set and nothing may be skipped\n  {}",
            skipped.join("\n  ")
        );
    }
    let servers = TestServers::start()?;
    let runner = run_rust_tests(&servers)?;
    if wire::ENVIRONMENT.is_ready() {
        wire::ENVIRONMENT.run_pytest(wire::TESTS, &[], &[])?;
    }
    if agents::ENVIRONMENT.is_ready() {
        agents::test_all()?;
    }
    if python::ENVIRONMENT.is_ready() {
        python::test_package(&servers.variables)?;
    }
    drop(servers);
    crate::fuzz::run(FUZZ_SECONDS, None, Some(FUZZ_SEED))?;
    for line in &skipped {
        println!("skipped: {line}");
    }
    println!(
        "all tests passed ({runner}, {:.0} s), {} requirements skipped",
        start.elapsed().as_secs_f64(),
        skipped.len()
    );
    Ok(())
}

/// Installs what is missing; answers what could not be had, and why.
fn install_missing(requirements: &[TestPrerequisite]) -> Vec<String> {
    let mut skipped = Vec::new();
    for requirement in requirements {
        if (requirement.is_met)() {
            continue;
        }
        if let Err(error) = (requirement.install)() {
            skipped.push(format!(
                "{}: {error:#}; without it: {}",
                requirement.name, requirement.without_it
            ));
        }
    }
    skipped
}

fn run_rust_tests(servers: &TestServers) -> Result<&'static str> {
    let found = [
        ("COMPACT_WIRE_PYTHON", wire::ENVIRONMENT.python_path()),
        ("COMPACT_COLLECTOR", collector::find_program()),
    ];
    let of_servers = servers
        .variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    let variables: Vec<_> = found
        .iter()
        .filter_map(|(name, value)| Some((*name, value.as_deref()?)))
        .chain(of_servers)
        .collect();
    if shell::run_succeeds("cargo", &["nextest", "--version"]) {
        let arguments = ["nextest", "run", "--workspace", "--no-fail-fast"];
        shell::run_with("cargo", &arguments, &variables)?;
        // nextest leaves the examples in the documentation out.
        shell::run("cargo", &["test", "--quiet", "--workspace", "--doc"])?;
        return Ok("cargo nextest");
    }
    shell::run_with("cargo", &["test", "--quiet", "--workspace"], &variables)?;
    Ok("cargo test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_that_cannot_be_had_is_told_with_its_reason() {
        let missing = TestPrerequisite {
            name: "server",
            is_met: || false,
            install: || bail!("needs root"),
            without_it: "its store is not tested",
        };
        let met = TestPrerequisite {
            is_met: || true,
            ..missing
        };
        assert_eq!(install_missing(&[met]), Vec::<String>::new());
        assert_eq!(
            install_missing(&[missing]),
            ["server: needs root; without it: its store is not tested"]
        );
    }
}
