//! `cargo xtask prove`: tests of CI once more, with as many trials as a promise needs.
//!
//! A proof is a test that reads how often it tries from `COMPACT_TRIALS` and prints what it counted.
//! CI runs it a few times; here it runs hundreds of times, which takes minutes to an hour. A new proof
//! is such a test and a row of [`PROOFS`].

use std::time::Instant;

use anyhow::{Result, bail};

use crate::storage::{self, TestServers};
use crate::{agents, python, shell};

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
    /// Below `tests/python`, with the frameworks of agents.
    Python(&'static str),
}

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
        trials: 1000,
        test: ProofTest::Python("tests/python/test_soak.py"),
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
];

/// Runs the proofs whose name contains `filter`.
pub(crate) fn run(filter: Option<&str>) -> Result<()> {
    let is_wanted = |proof: &&Proof| filter.is_none_or(|wanted| proof.name.contains(wanted));
    let proofs: Vec<&Proof> = PROOFS.iter().filter(is_wanted).collect();
    if proofs.is_empty() {
        let names: Vec<&str> = PROOFS.iter().map(|proof| proof.name).collect();
        bail!(
            "no proof has this in its name; there are: {}",
            names.join(", ")
        );
    }
    install_needed(&proofs)?;
    let servers = TestServers::start()?;
    let mut failed = Vec::new();
    for proof in &proofs {
        println!("{}, {} trials: {}", proof.name, proof.trials, proof.shows);
        let start = Instant::now();
        let result = proof.try_to_break(&servers);
        let seconds = start.elapsed().as_secs();
        match result {
            Ok(()) => println!("{} holds ({seconds} s)", proof.name),
            Err(error) => failed.push(format!("{}: {error:#} ({seconds} s)", proof.name)),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("not proved\n  {}", failed.join("\n  ")),
    }
}

/// Gets what the chosen tests need.
fn install_needed(proofs: &[&Proof]) -> Result<()> {
    if !storage::has_postgres() {
        storage::install_postgres()?;
    }
    for environment in [&storage::S3, &python::ENVIRONMENT, &agents::ENVIRONMENT] {
        if !environment.is_ready() {
            environment.install()?;
        }
    }
    if proofs
        .iter()
        .any(|proof| matches!(proof.test, ProofTest::Python(_)))
    {
        python::install_release()?;
    }
    Ok(())
}

impl Proof {
    fn try_to_break(&self, servers: &TestServers) -> Result<()> {
        let trials = self.trials.to_string();
        let mut variables = vec![(TRIALS, trials.as_str())];
        let of_servers = servers.variables.iter();
        variables.extend(of_servers.map(|(name, value)| (*name, value.as_str())));
        match self.test {
            ProofTest::Rust { package, name } => {
                let test = ["test", "-p", package, "--tests", "--", "--exact"];
                let arguments = [&test[..], &[name, "--nocapture"]].concat();
                shell::run_with("cargo", &arguments, &variables)
            }
            ProofTest::Python(test) => python::test_one(test, &variables),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_proof_is_refused_with_the_names_that_there_are() {
        let refusal = run(Some("no such proof")).map_err(|error| error.to_string());
        assert!(refusal.is_err_and(|text| text.starts_with("no proof has this in its name")));
    }
}
