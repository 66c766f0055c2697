//! `cargo xtask test`: all tests, with what they need set up first.
//!
//! What the tests need beyond Rust is installed while cargo compiles, and the tests of other programs (SDKs, agents,
//! the Python package) run beside those of Rust. A requirement says how to see whether it is there, how to get
//! it, and what is skipped without it. On a build server nothing may be skipped.
//!
//! `cargo xtask test --fast` is for the minutes between two changes: the tests of Rust without what they need beyond
//! it, less the slow ones (`.config/nextest.toml` lists them).

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};
use compact_eval::fuzz::FuzzEffort;

use crate::chore::{self, Chore};
use crate::shell::{self, Console, FULL};
use crate::storage::{self, TestServers, flawed};
use crate::{agents, collector, dashboard, environment, fuzz, python, wire};

/// Something outside of Rust that some tests need.
struct TestPrerequisite {
    name: &'static str,
    is_met: fn() -> bool,
    /// Tries to get it; an error says why it could not.
    install: fn(&Console) -> Result<()>,
    /// What does not run without it.
    without_it: &'static str,
}

/// Servers, interpreters and packages go here as the tests come to need them.
const REQUIREMENTS: &[TestPrerequisite] = &[
    TestPrerequisite {
        name: "Python with SDKs, frameworks, Claude Code, a server that speaks S3 and a collector",
        is_met: || environment::TESTS.is_ready(),
        install: |console| environment::TESTS.install(console),
        without_it: "the Python package is neither built nor tested (tests/python); no SDK and no server judges our request bodies, no client but ours calls `mcp` (tests/wire), and no model is asked for summaries; no agent calls our hooks and tools (tests/agents); the archive in a bucket is not tested; no collector but our own judgement hears of events",
    },
    TestPrerequisite {
        name: "Codex, Gemini CLI, opencode and Claude Code from npm",
        is_met: || agents::PACKAGES.complete_folder().is_some(),
        install: |console| agents::PACKAGES.install(console),
        without_it: "of the agents, only Claude Code from PyPI calls us (tests/agents)",
    },
    TestPrerequisite {
        name: "Chromium, and what drives it",
        is_met: dashboard::is_ready,
        install: dashboard::install,
        without_it: "no browser looks at the dashboard (tests/dashboard)",
    },
    TestPrerequisite {
        name: "LiteLLM",
        is_met: || python::LITELLM.is_ready(),
        install: |console| python::LITELLM.install(console),
        without_it: "its hook is not tested (tests/python/test_litellm.py)",
    },
    TestPrerequisite {
        name: "PostgreSQL",
        is_met: storage::has_postgres,
        install: storage::install_postgres,
        without_it: "the shared catalog and recall index are not tested",
    },
    TestPrerequisite {
        name: "a server that speaks S3 and ignores conditions",
        is_met: || flawed::PACKAGES.complete_folder().is_some(),
        install: |console| flawed::PACKAGES.install(console),
        without_it: "conditional writes that do not work are only tested against stores of our own",
    },
];

/// How many inputs each reader of transcripts gets: a hundred thousand for all of them.
const FUZZ_EFFORT: FuzzEffort = FuzzEffort::Inputs(7_000);

/// The same inputs on every machine: a test that fails must fail again.
const FUZZ_SEED: u64 = 1;

/// How much is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestScope {
    /// Everything.
    All,
    /// What needs nothing but Rust and is quick.
    Fast,
}

/// Sets up, tests, sums up.
pub(crate) fn run(scope: TestScope) -> Result<()> {
    let start = Instant::now();
    let skipped = match scope {
        TestScope::All => test_everything()?,
        TestScope::Fast => {
            run_fast_tests()?;
            let rest = "`cargo xtask test` runs what this leaves out";
            vec![format!("everything beyond Rust, and slow tests: {rest}")]
        }
    };
    for line in &skipped {
        println!("skipped: {line}");
    }
    println!(
        "all tests passed ({:.0} s), {} requirements skipped",
        start.elapsed().as_secs_f64(),
        skipped.len()
    );
    Ok(())
}

/// Runs every test; returns what could not be had, and why.
fn test_everything() -> Result<Vec<String>> {
    let skipped = set_up(REQUIREMENTS, compile_tests)?;
    if shell::is_ci() && !skipped.is_empty() {
        bail!(
            "CI is set and nothing may be skipped\n  {}",
            skipped.join("\n  ")
        );
    }
    let servers = TestServers::start()?;
    let mut chores = vec![Chore::new("Rust", |console: &Console| {
        run_rust_tests(console, &servers)
    })];
    chores.extend(python::test_chore(&servers.variables));
    chores.extend(agents::test_chores()?);
    chores.extend(wire::test_chore());
    chores.extend(dashboard::test_chore());
    chores.push(Chore::new("fuzzing", |console: &Console| {
        fuzz::run(console, FUZZ_EFFORT, None, Some(FUZZ_SEED))
    }));
    chore::run_chores(chore::usual_width(), chores)?;
    Ok(skipped)
}

/// Compiles, and installs what is missing meanwhile; returns what could not be had, and why.
fn set_up(
    requirements: &[TestPrerequisite],
    compile: fn(&Console) -> Result<()>,
) -> Result<Vec<String>> {
    let skipped = Mutex::new(Vec::new());
    let mut chores = vec![Chore::new("compile", compile)];
    let missing = requirements
        .iter()
        .filter(|requirement| !(requirement.is_met)());
    chores.extend(missing.map(|requirement| {
        let skipped = &skipped;
        Chore::new(format!("get {}", requirement.name), move |console| {
            if let Err(error) = (requirement.install)(console) {
                let mut skipped = skipped.lock().unwrap_or_else(PoisonError::into_inner);
                skipped.push(format!(
                    "{}: {error:#}; without it: {}",
                    requirement.name, requirement.without_it
                ));
            }
            Ok(())
        })
    }));
    chore::run_chores(chore::usual_width(), chores)?;
    Ok(skipped.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn has_nextest() -> bool {
    shell::run_succeeds("cargo", &["nextest", "--version"])
}

fn compile_tests(console: &Console) -> Result<()> {
    let arguments: &[&str] = match has_nextest() {
        true => &[
            "nextest",
            "run",
            "--workspace",
            "--features",
            FULL,
            "--no-run",
        ],
        false => &["test", "--workspace", "--features", FULL, "--no-run"],
    };
    console.run("cargo", arguments, &[])
}

fn run_rust_tests(console: &Console, servers: &TestServers) -> Result<()> {
    let found = [
        ("COMPACT_WIRE_PYTHON", environment::TESTS.python_path()),
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
    if has_nextest() {
        let arguments = [
            "nextest",
            "run",
            "--workspace",
            "--features",
            FULL,
            "--no-fail-fast",
            "--failure-output=final",
        ];
        console.run("cargo", &arguments, &variables)?;
        // nextest leaves the examples in the documentation out.
        let arguments = [
            "test",
            "--quiet",
            "--workspace",
            "--features",
            FULL,
            "--doc",
        ];
        return console.run("cargo", &arguments, &[]);
    }
    let arguments = ["test", "--quiet", "--workspace", "--features", FULL];
    console.run("cargo", &arguments, &variables)
}

/// Runs what is quick. Without nextest nobody knows which tests are slow, and all of Rust run.
fn run_fast_tests() -> Result<()> {
    let arguments: &[&str] = match has_nextest() {
        true => &[
            "nextest",
            "run",
            "--workspace",
            "--features",
            FULL,
            "--profile",
            "fast",
        ],
        false => &[
            "test",
            "--quiet",
            "--workspace",
            "--features",
            FULL,
            "--tests",
        ],
    };
    shell::run("cargo", arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_that_cannot_be_had_is_told_with_its_reason() {
        let missing = TestPrerequisite {
            name: "server of a self-test",
            is_met: || false,
            install: |_| bail!("needs root"),
            without_it: "its store is not tested",
        };
        let met = TestPrerequisite {
            is_met: || true,
            ..missing
        };
        let nothing = |_: &Console| Ok(());
        assert_eq!(set_up(&[met], nothing).unwrap(), Vec::<String>::new());
        assert_eq!(
            set_up(&[missing], nothing).unwrap(),
            ["server of a self-test: needs root; without it: its store is not tested"]
        );
        assert!(set_up(&[], |_| bail!("does not compile")).is_err());
    }
}
