//! `cargo xtask prove`: tests of CI once more, with as many trials as a promise needs.
//!
//! A proof is a test that reads how often it tries from `COMPACT_TRIALS` and prints what it counted.
//! CI runs it a few times; here it runs hundreds of times, which takes minutes to a night. A new proof
//! is such a test and a row of [`PROOFS`]. What came of it, and what was not run, is one report ([`report`]).

mod report;

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::report::{ProofOutcome, ProofRow};
use crate::shell::{self, Console, FULL};
use crate::storage::{self, TestServers};
use crate::{environment, fuzz, python};

/// The variable that says how often a test tries.
const TRIALS: &str = "COMPACT_TRIALS";

/// A promise and the test that tries to break it.
struct Proof {
    name: &'static str,
    /// What holds when it passes.
    shows: &'static str,
    trials: u32,
    test: ProofTest,
}

/// Where a test lives.
enum ProofTest {
    /// In a crate, beside a module or in its integration tests.
    Rust {
        package: &'static str,
        name: &'static str,
    },
    /// Several in a crate: those whose names contain this.
    RustFilter {
        package: &'static str,
        part: &'static str,
    },
    /// Below `tests/python`, with the frameworks of agents.
    Python(&'static str),
    /// Below `tests/wire`, with the command as it is released.
    Command(&'static str),
    /// Mutations of the corpus, a trial being a second of each reader.
    Mutations,
    /// libFuzzer, a trial being a second of each reader.
    Guided,
    /// The Python package beside those of others.
    Peers,
}

/// The same inputs in every run: a proof that fails must fail again.
const SEED: u64 = 1;

/// Long runs, one row each.
const PROOFS: &[Proof] = &[
    Proof {
        name: "isolation",
        shows: "no word of one user is in another's prompt, in any integration, at once and after restarts",
        trials: 200,
        test: ProofTest::Python("tests/python/test_isolation.py"),
    },
    Proof {
        name: "python-session",
        shows: "what is added while a session is compacted is kept once and in order",
        trials: 20,
        test: ProofTest::Python("tests/python/test_session.py"),
    },
    Proof {
        name: "soak",
        shows: "sessions of random density never overflow their window, no prompt is refused, and what was said last is never changed while it fits",
        trials: 10_000,
        test: ProofTest::Python("tests/python/test_soak.py"),
    },
    Proof {
        name: "gateway-soak",
        shows: "two gateways on one store, one killed again and again: no client hears of an overflow, no prompt lacks what was said last, holds another session's words or parts a call from its result, every archive restores",
        trials: 10_000,
        test: ProofTest::Command("tests/wire/test_gateway_soak.py"),
    },
    Proof {
        name: "trust",
        shows: "no file of a project changes a setting that projects may not change",
        trials: 20_000,
        test: ProofTest::Rust {
            package: "compact-adapters",
            name: "project::no_project_changes_what_it_may_not",
        },
    },
    Proof {
        name: "kill-compact",
        shows: "`compact` killed at any moment leaves nothing torn, truncated or unlisted",
        trials: 120,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "kill::a_killed_compact_leaves_nothing_torn_or_unlisted",
        },
    },
    Proof {
        name: "kill-hook",
        shows: "a hook killed at any moment leaves no part of a transcript under its name",
        trials: 120,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "kill::a_killed_hook_leaves_no_part_of_a_transcript",
        },
    },
    Proof {
        name: "kill-postgres",
        shows: "the same of `compact` with its receipts in PostgreSQL",
        trials: 60,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "kill::a_killed_compact_leaves_postgresql_whole",
        },
    },
    Proof {
        name: "kill-python",
        shows: "a Python process killed at any moment leaves nothing torn or unlisted",
        trials: 100,
        test: ProofTest::Python("tests/python/test_kill.py"),
    },
    Proof {
        name: "cluster",
        shows: "processes that share PostgreSQL and a bucket, killed while they compact, lose nothing",
        trials: 100,
        test: ProofTest::Rust {
            package: "compact-adapters",
            name: "cluster::killed_processes_lose_nothing_and_leave_one_line_of_views",
        },
    },
    Proof {
        name: "append",
        shows: "no line of an agent is lost or torn while --append writes behind it",
        trials: 20,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "append::no_line_of_an_agent_is_lost_or_torn",
        },
    },
    Proof {
        name: "kill-append",
        shows: "--append killed at any moment leaves the old transcript or the whole view",
        trials: 150,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "append::a_process_that_is_killed_leaves_the_old_transcript_or_the_whole_view",
        },
    },
    Proof {
        name: "pinned",
        shows: "any messages of any history that are protected stand as they stood, six compactions long",
        trials: 3000,
        test: ProofTest::Rust {
            package: "compact-formats",
            name: "legal::pinned::what_is_protected_stands_as_it_stood",
        },
    },
    Proof {
        name: "branches",
        shows: "what only an abandoned branch said is in no later view, ledger or memory",
        trials: 200,
        test: ProofTest::Rust {
            package: "compact-runtime",
            name: "manager::lineage::tests::what_was_taken_back_is_never_told_again",
        },
    },
    Proof {
        name: "forgeries",
        shows: "a frame that anybody wrote has no effect in any format and role",
        trials: 1,
        test: ProofTest::RustFilter {
            package: "compactctl",
            part: "forge::",
        },
    },
    Proof {
        name: "hostile-input",
        shows: "no input makes the command panic, hang or change what it should not",
        trials: 1,
        test: ProofTest::RustFilter {
            package: "compactctl",
            part: "hostile::",
        },
    },
    Proof {
        name: "secrets",
        shows: "secrets of every known kind are redacted, and code that looks like them is not",
        trials: 1,
        test: ProofTest::RustFilter {
            package: "compact-core",
            part: "redact::",
        },
    },
    Proof {
        name: "fuzz-mutations",
        shows: "no mutation of a session makes a reader panic, hang or lose a byte",
        trials: 60,
        test: ProofTest::Mutations,
    },
    Proof {
        name: "fuzz-guided",
        shows: "libFuzzer finds no input that makes a reader panic, hang or lose a byte",
        trials: 60,
        test: ProofTest::Guided,
    },
    Proof {
        name: "peers",
        shows: "the Python package is within its limits beside other packages on one history",
        trials: 1,
        test: ProofTest::Peers,
    },
];

/// What no row runs, and why.
const LEFT_OUT: &[(&str, &str)] = &[(
    "probes",
    "they need sessions that are nobody's to publish: `compactctl eval --probes DIR` runs them",
)];

/// Runs the proofs whose name contains `filter`, with a share of their trials in per cent, and writes the report.
pub(crate) fn run(filter: Option<&str>, share: u32) -> Result<()> {
    let is_wanted = |proof: &Proof| filter.is_none_or(|wanted| proof.name.contains(wanted));
    let proofs: Vec<&Proof> = PROOFS.iter().filter(|proof| is_wanted(proof)).collect();
    if proofs.is_empty() {
        let names: Vec<&str> = PROOFS.iter().map(|proof| proof.name).collect();
        bail!(
            "no proof has this in its name; there are: {}",
            names.join(", ")
        );
    }
    install_needed(&proofs)?;
    let servers = TestServers::start()?;
    let folder = shell::target_folder().join("prove");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut rows = Vec::new();
    for proof in PROOFS {
        rows.push(match is_wanted(proof) {
            true => proof.run_logged(share, &servers, &folder)?,
            false => proof.row(0, ProofOutcome::NotRun("nobody asked for it".to_owned())),
        });
        // What is known is written at once: a run of hours may be ended early.
        report::write(&folder, &rows, LEFT_OUT)?;
    }
    let broken: Vec<String> = rows.iter().filter_map(ProofRow::broken_line).collect();
    println!("{}", folder.join("report.html").display());
    match broken.is_empty() {
        true => Ok(()),
        false => bail!("not proved\n  {}", broken.join("\n  ")),
    }
}

/// Gets what the chosen tests need.
fn install_needed(proofs: &[&Proof]) -> Result<()> {
    if !storage::has_postgres() {
        storage::install_postgres(&Console::Terminal)?;
    }
    environment::TESTS.install_missing()?;
    if proofs
        .iter()
        .any(|proof| matches!(proof.test, ProofTest::Python(_)))
    {
        python::install_release()?;
    }
    Ok(())
}

impl Proof {
    fn row(&self, trials: u32, outcome: ProofOutcome) -> ProofRow {
        ProofRow {
            name: self.name,
            shows: self.shows,
            trials,
            outcome,
            seconds: 0.0,
            printed: Vec::new(),
        }
    }

    /// Runs it, with what it prints in a file beside the report.
    fn run_logged(
        &self,
        share: u32,
        servers: &TestServers,
        folder: &std::path::Path,
    ) -> Result<ProofRow> {
        let trials = (u64::from(self.trials) * u64::from(share)).div_ceil(100);
        let trials = u32::try_from(trials).unwrap_or(u32::MAX);
        println!("{}, {trials} trials: {}", self.name, self.shows);
        let log = folder.join(format!("{}.log", self.name));
        let _ = fs::remove_file(&log);
        let start = Instant::now();
        let result = self.try_to_break(&Console::File(log.clone()), trials, servers);
        let seconds = start.elapsed().as_secs_f64();
        let outcome = match result {
            Ok(()) => ProofOutcome::Holds,
            Err(error) => ProofOutcome::Broken(format!("{error:#}")),
        };
        println!("{} {} ({seconds:.0} s)", self.name, outcome.as_str());
        let printed = report::last_lines(&fs::read_to_string(&log).unwrap_or_default());
        Ok(ProofRow {
            seconds,
            printed,
            ..self.row(trials, outcome)
        })
    }

    fn try_to_break(&self, console: &Console, trials: u32, servers: &TestServers) -> Result<()> {
        let text = trials.to_string();
        let mut variables = vec![(TRIALS, text.as_str())];
        let of_servers = servers.variables.iter();
        variables.extend(of_servers.map(|(name, value)| (*name, value.as_str())));
        let seconds = u64::from(trials);
        match self.test {
            ProofTest::Rust { package, name } => {
                let exact = ["--tests", "--", "--exact", name, "--nocapture"];
                let arguments = [&["test", "-p", package], features_of(package), &exact].concat();
                console.run("cargo", &arguments, &variables)
            }
            ProofTest::RustFilter { package, part } => {
                let filter = ["--tests", "--", part];
                let arguments = [&["test", "-p", package], features_of(package), &filter].concat();
                console.run("cargo", &arguments, &variables)
            }
            ProofTest::Python(test) => python::test_one(console, test, &variables),
            ProofTest::Command(test) => {
                shell::build_command(console, &["--release"])?;
                let program = shell::target_folder().join("release/compactctl");
                let program = program.display().to_string();
                variables.push(("COMPACTCTL", &program));
                python::test_one(console, test, &variables)
            }
            ProofTest::Mutations => fuzz::run(console, seconds, None, Some(SEED)),
            ProofTest::Guided => fuzz::guided::run(console, seconds, None, Some(SEED)),
            ProofTest::Peers => python::bench_wheel(console),
        }
    }
}

/// The features that the tests of a package need.
fn features_of(package: &str) -> &'static [&'static str] {
    match package {
        "compactctl" => &["--features", FULL],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_proof_is_refused_with_the_names_that_there_are() {
        let refusal = run(Some("no such proof"), 100).map_err(|error| error.to_string());
        assert!(refusal.is_err_and(|text| text.starts_with("no proof has this in its name")));
    }
}
