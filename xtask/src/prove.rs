//! `cargo xtask prove`: tests of CI once more, with as many trials as a promise needs.
//!
//! A proof is a test that reads how often it tries from `COMPACT_TRIALS` and prints what it counted.
//! CI runs it a few times; here it runs hundreds of times, which takes minutes to a night. A new proof
//! is such a test and a row of [`PROOFS`]. What came of it, and what was not run, is one report ([`report`]), which
//! begins with what all of them stand for together ([`Promise`]).

mod probe;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use compact_eval::fuzz::FuzzEffort;

use self::report::{ProofOutcome, ProofRow};
use crate::shell::{self, Console, FULL};
use crate::storage::{self, TestServers};
use crate::{dist, environment, fuzz, peers, python};

/// How long one program of a proof may run: ten thousand sessions take an hour, and more on a busy machine.
const LONGEST_PROOF: Duration = Duration::from_secs(8 * 60 * 60);

/// What proofs stand for together; the report counts them by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    Overflows,
    LostBytes,
    Leaks,
    Panics,
    Takeovers,
    Others,
}

impl Promise {
    const ALL: [Promise; 6] = [
        Promise::Overflows,
        Promise::LostBytes,
        Promise::Leaks,
        Promise::Panics,
        Promise::Takeovers,
        Promise::Others,
    ];

    /// Returns it in words.
    fn as_str(self) -> &'static str {
        match self {
            Promise::Overflows => "no overflow",
            Promise::LostBytes => "no byte lost or torn",
            Promise::Leaks => "no leak",
            Promise::Panics => "no panic",
            Promise::Takeovers => "nothing that others wrote decides",
            Promise::Others => "no worse than others",
        }
    }
}

/// The variable that says how often a test tries.
const TRIALS: &str = "COMPACT_TRIALS";

/// A promise and the test that tries to break it.
struct Proof {
    name: &'static str,
    promise: Promise,
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
    /// Below `tests/wire`, with the command as it ships.
    Command(&'static str),
    /// Mutations of the corpus, a trial being a second of each reader.
    Mutations,
    /// libFuzzer, a trial being a second of each reader.
    Guided,
    /// Packages of others and this one on one history.
    Peers,
    /// Questions about recorded sessions, which the caller has.
    Probes,
}

/// The same inputs in every run: a proof that fails must fail again.
const SEED: u64 = 1;

/// Long runs, one row each.
const PROOFS: &[Proof] = &[
    Proof {
        name: "isolation",
        promise: Promise::Leaks,
        shows: "no word of one user is in another's prompt, in any integration, at once and after restarts",
        trials: 200,
        test: ProofTest::Python("tests/python/test_isolation.py"),
    },
    Proof {
        name: "python-session",
        promise: Promise::LostBytes,
        shows: "what is added while a session is compacted is kept once and in order",
        trials: 20,
        test: ProofTest::Python("tests/python/test_session.py"),
    },
    Proof {
        name: "soak",
        promise: Promise::Overflows,
        shows: "sessions of random density never overflow their window, no prompt is refused, and what was said last is never changed while it fits",
        trials: 10_000,
        test: ProofTest::Python("tests/python/test_soak.py"),
    },
    Proof {
        name: "gateway-soak",
        promise: Promise::Overflows,
        shows: "two gateways on one store, one killed again and again: no client hears of an overflow, no prompt lacks what was said last, holds another session's words or parts a call from its result, every archive restores",
        trials: 10_000,
        test: ProofTest::Command("tests/wire/test_gateway_soak.py"),
    },
    Proof {
        name: "trust",
        promise: Promise::Takeovers,
        shows: "no file of a project changes a setting that projects may not change",
        trials: 20_000,
        test: ProofTest::Rust {
            package: "compact-adapters",
            name: "project::no_project_changes_what_it_may_not",
        },
    },
    Proof {
        name: "kill-compact",
        promise: Promise::LostBytes,
        shows: "`compact` killed at any moment leaves nothing torn, truncated or unlisted",
        trials: 120,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "kill::a_killed_compact_leaves_nothing_torn_or_unlisted",
        },
    },
    Proof {
        name: "kill-hook",
        promise: Promise::LostBytes,
        shows: "a hook killed at any moment leaves no part of a transcript under its name",
        trials: 120,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "kill::a_killed_hook_leaves_no_part_of_a_transcript",
        },
    },
    Proof {
        name: "kill-postgres",
        promise: Promise::LostBytes,
        shows: "the same of `compact` with its receipts in PostgreSQL",
        trials: 60,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "kill::a_killed_compact_leaves_postgresql_whole",
        },
    },
    Proof {
        name: "kill-python",
        promise: Promise::LostBytes,
        shows: "a Python process killed at any moment leaves nothing torn or unlisted",
        trials: 100,
        test: ProofTest::Python("tests/python/test_kill.py"),
    },
    Proof {
        name: "cluster",
        promise: Promise::LostBytes,
        shows: "processes that share PostgreSQL and a bucket, killed while they compact, lose nothing",
        trials: 100,
        test: ProofTest::Rust {
            package: "compact-adapters",
            name: "cluster::killed_processes_lose_nothing_and_leave_one_line_of_views",
        },
    },
    Proof {
        name: "append",
        promise: Promise::LostBytes,
        shows: "no line of an agent is lost or torn while --append writes behind it",
        trials: 20,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "append::no_line_of_an_agent_is_lost_or_torn",
        },
    },
    Proof {
        name: "kill-append",
        promise: Promise::LostBytes,
        shows: "--append killed at any moment leaves the old transcript or the whole view",
        trials: 150,
        test: ProofTest::Rust {
            package: "compactctl",
            name: "append::a_process_that_is_killed_leaves_the_old_transcript_or_the_whole_view",
        },
    },
    Proof {
        name: "pinned",
        promise: Promise::LostBytes,
        shows: "any messages of any history that are protected stand as they stood, six compactions long",
        trials: 3000,
        test: ProofTest::Rust {
            package: "compact-formats",
            name: "legal::pinned::what_is_protected_stands_as_it_stood",
        },
    },
    Proof {
        name: "branches",
        promise: Promise::Leaks,
        shows: "what only an abandoned branch said is in no later view, ledger or memory",
        trials: 200,
        test: ProofTest::Rust {
            package: "compact-runtime",
            name: "manager::lineage::tests::what_was_taken_back_is_never_told_again",
        },
    },
    Proof {
        name: "forgeries",
        promise: Promise::Takeovers,
        shows: "a frame that anybody wrote has no effect in any format and role",
        trials: 1,
        test: ProofTest::RustFilter {
            package: "compactctl",
            part: "forge::",
        },
    },
    Proof {
        name: "hostile-input",
        promise: Promise::Panics,
        shows: "no input makes the command panic, hang or change what it should not",
        trials: 1,
        test: ProofTest::RustFilter {
            package: "compactctl",
            part: "hostile::",
        },
    },
    Proof {
        name: "secrets",
        promise: Promise::Leaks,
        shows: "secrets of every known kind are redacted, and code that looks like them is not",
        trials: 1,
        test: ProofTest::RustFilter {
            package: "compact-core",
            part: "redact::",
        },
    },
    Proof {
        name: "fuzz-mutations",
        promise: Promise::Panics,
        shows: "no mutation of a session makes a reader panic, hang or lose a byte",
        trials: 60,
        test: ProofTest::Mutations,
    },
    Proof {
        name: "fuzz-guided",
        promise: Promise::Panics,
        shows: "libFuzzer finds no input that makes a reader panic, hang or lose a byte",
        trials: 60,
        test: ProofTest::Guided,
    },
    Proof {
        name: "peers",
        promise: Promise::Others,
        shows: "of what packages make of one history, ours is within its budget, keeps calls with their results, and has most facts",
        trials: 1,
        test: ProofTest::Peers,
    },
    Proof {
        name: "probes",
        promise: Promise::Others,
        shows: "no method that could be used answers more questions about recorded sessions, at the sizes recorded with them",
        trials: 1,
        test: ProofTest::Probes,
    },
];

/// Recorded sessions with questions, which are nobody's to publish.
#[derive(Clone, Debug)]
pub(crate) struct ProbeFolders {
    /// What `compactctl eval --probes` reads.
    pub(crate) probes: PathBuf,
    /// Where the sessions are.
    pub(crate) data: PathBuf,
}

/// Which proofs run, and how much of them.
#[derive(Clone, Debug)]
pub(crate) struct ProofSelection {
    /// Parts of their names; all where there is none.
    pub(crate) filters: Vec<String>,
    /// The share of their trials in per cent.
    pub(crate) share: u32,
    pub(crate) probes: Option<ProbeFolders>,
}

impl ProofSelection {
    /// Returns why a proof does not run.
    fn reason_against(&self, proof: &Proof) -> Option<String> {
        let mut filters = self.filters.iter();
        if !self.filters.is_empty() && !filters.any(|part| proof.name.contains(part)) {
            return Some("nobody asked for it".to_owned());
        }
        let lacks_probes = matches!(proof.test, ProofTest::Probes) && self.probes.is_none();
        lacks_probes.then(|| {
            "it needs sessions that are nobody's to publish; `--probes DIR` names some".to_owned()
        })
    }
}

/// Runs the proofs that are selected, and writes the report.
pub(crate) fn run(selection: &ProofSelection) -> Result<()> {
    let is_wanted = |proof: &&Proof| selection.reason_against(proof).is_none();
    let proofs: Vec<&Proof> = PROOFS.iter().filter(is_wanted).collect();
    if proofs.is_empty() {
        let names: Vec<&str> = PROOFS.iter().map(|proof| proof.name).collect();
        bail!(
            "no proof that can run has this in its name; there are: {}",
            names.join(", ")
        );
    }
    let _held = install_needed(&proofs)?;
    let servers = TestServers::start()?;
    let folder = shell::target_folder().join("prove");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut rows = Vec::new();
    for proof in PROOFS {
        rows.push(match selection.reason_against(proof) {
            None => proof.run_logged(selection, &servers, &folder)?,
            Some(reason) => proof.row(0, ProofOutcome::NotRun(reason)),
        });
        // What is known is written at once: a run of hours may be ended early.
        report::write(&folder, &rows)?;
    }
    let broken: Vec<String> = rows.iter().filter_map(ProofRow::broken_line).collect();
    println!("{}", folder.join("report.html").display());
    match broken.is_empty() {
        true => Ok(()),
        false => bail!("not proved\n  {}", broken.join("\n  ")),
    }
}

/// Gets what the chosen tests need, and keeps it from other clones while they run.
fn install_needed(proofs: &[&Proof]) -> Result<fs::File> {
    if !storage::has_postgres() {
        storage::install_postgres(&Console::Terminal)?;
    }
    environment::TESTS.install_missing()?;
    let held = environment::TESTS.hold()?;
    if proofs
        .iter()
        .any(|proof| matches!(proof.test, ProofTest::Python(_)))
    {
        python::install_shipped(&Console::Terminal)?;
    }
    Ok(held)
}

impl Proof {
    fn row(&self, trials: u32, outcome: ProofOutcome) -> ProofRow {
        ProofRow {
            name: self.name,
            promise: self.promise,
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
        selection: &ProofSelection,
        servers: &TestServers,
        folder: &Path,
    ) -> Result<ProofRow> {
        let trials = (u64::from(self.trials) * u64::from(selection.share)).div_ceil(100);
        let trials = u32::try_from(trials).unwrap_or(u32::MAX);
        println!("{}, {trials} trials: {}", self.name, self.shows);
        let log = folder.join(format!("{}.log", self.name));
        let _ = fs::remove_file(&log);
        let start = Instant::now();
        let console = Console::File {
            path: log.clone(),
            longest: LONGEST_PROOF,
        };
        let tried = self.try_to_break(&console, trials, servers, selection.probes.as_ref());
        let text = fs::read_to_string(&log).unwrap_or_default();
        let result = tried.and_then(|()| self.check_that_tests_ran(&text));
        let seconds = start.elapsed().as_secs_f64();
        let outcome = match result {
            Ok(()) => ProofOutcome::Holds,
            Err(error) => ProofOutcome::Broken(format!("{error:#}")),
        };
        println!("{} {} ({seconds:.0} s)", self.name, outcome.as_str());
        let mut printed = report::last_lines(&text);
        if matches!(self.test, ProofTest::Guided) {
            printed.push(format!("{} inputs", fuzz::guided::count_inputs(&text)));
        }
        Ok(ProofRow {
            seconds,
            printed,
            ..self.row(trials, outcome)
        })
    }

    /// Fails when no test has the name: cargo is content with none.
    fn check_that_tests_ran(&self, log: &str) -> Result<()> {
        let is_of_rust = matches!(
            self.test,
            ProofTest::Rust { .. } | ProofTest::RustFilter { .. }
        );
        let mut results = log
            .lines()
            .filter_map(|line| line.strip_prefix("test result: ok. "));
        let has_run = results.any(|result| !result.starts_with("0 passed"));
        ensure!(has_run || !is_of_rust, "no test of this name ran");
        Ok(())
    }

    fn try_to_break(
        &self,
        console: &Console,
        trials: u32,
        servers: &TestServers,
        probes: Option<&ProbeFolders>,
    ) -> Result<()> {
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
                let program = dist::build_own_command(console)?;
                variables.push(("COMPACTCTL", &program));
                python::test_one(console, test, &variables)
            }
            ProofTest::Mutations => {
                let effort = FuzzEffort::Time(Duration::from_secs(seconds));
                fuzz::run(console, effort, None, Some(SEED))
            }
            ProofTest::Guided => fuzz::guided::run(console, seconds, None, Some(SEED)),
            ProofTest::Peers => peers::bench_peers(console),
            ProofTest::Probes => probe::compare_methods(console, probes),
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

    fn select(filter: &str) -> ProofSelection {
        ProofSelection {
            filters: vec![filter.to_owned()],
            share: 100,
            probes: None,
        }
    }

    #[test]
    fn an_unknown_proof_is_refused_with_the_names_that_there_are() {
        for filter in ["no such proof", "probes"] {
            let refusal = run(&select(filter)).map_err(|error| error.to_string());
            let start = "no proof that can run has this in its name";
            assert!(refusal.is_err_and(|text| text.starts_with(start)));
        }
    }

    #[test]
    fn a_name_that_no_test_has_proves_nothing() {
        let none = "running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored\n";
        let some = format!("{none}test result: ok. 12 passed; 0 failed; 0 ignored\n");
        let check = |name: &str, log: &str| {
            let proof = PROOFS.iter().find(|proof| proof.name == name).unwrap();
            proof.check_that_tests_ran(log).is_ok()
        };
        assert!(!check("secrets", none) && check("secrets", &some));
        assert!(!check("cluster", none) && check("soak", none));
    }
}
