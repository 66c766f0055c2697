//! Everything a person would otherwise do by hand, as `cargo xtask <command>`.
//!
//! One file per command. Commands run from any folder of the repository, print what they do, and
//! end with a line that says how it went.

mod agents;
mod architecture;
mod bench;
mod chore;
mod ci;
mod collector;
mod corpus;
mod dashboard;
mod dependencies;
mod dist;
mod docs;
mod environment;
mod examples;
mod fuzz;
mod gateway_bench;
mod leftover_notes;
mod licences;
mod pages;
mod peers;
mod prove;
mod python;
mod registry;
mod release_check;
mod requirements;
mod shell;
mod storage;
mod test;
mod tidy;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use compact_eval::fuzz::FuzzEffort;

use crate::prove::{ProbeFolders, ProofSelection};
use crate::shell::Console;

/// Chores of the Compact repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum XtaskCommand {
    /// Everything that must hold before a change is merged, tests aside.
    Ci,
    /// How the code reads, in numbers; fails on names, sizes and edges that are ruled out.
    Tidy,
    /// All tests, with what they need set up first.
    Test {
        /// Only what needs nothing but Rust and is quick.
        #[arg(long)]
        fast: bool,
    },
    /// Of all tests, those with real agents.
    Agents,
    /// Of all tests, those of the dashboard in a real browser.
    Dashboard,
    /// The archive against servers whose conditional writes do not work; builds one of them.
    Storage,
    /// Tests of CI once more, with as many trials as a promise needs: minutes to a night. Writes target/prove/report.html
    /// and .json.
    Prove {
        /// Only proofs whose name contains one of these.
        filters: Vec<String>,
        /// How many of the trials are made, in per cent.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        share: u32,
        /// Recorded sessions with questions, as `compactctl eval --probes` reads them.
        #[arg(long, value_name = "DIR")]
        probes: Option<PathBuf>,
        /// Where those sessions are, if not below DIR.
        #[arg(long, value_name = "DIR", requires = "probes")]
        data: Option<PathBuf>,
    },
    /// Measures in release against limits; writes target/bench/report.json.
    Bench {
        /// Only benchmarks whose name contains this; `recall` for the search over a large archive.
        filter: Option<String>,
    },
    /// Everything that is shipped, in target/artifacts, each tested in a root of its own.
    Dist {
        /// The target to build for, as rustup names it.
        #[arg(long, default_value = dist::USUAL_TARGET)]
        target: String,
        /// Packs this command, which was built elsewhere, instead of building one.
        #[arg(long, value_name = "FILE")]
        command: Option<PathBuf>,
        /// Makes only these.
        #[arg(long, value_delimiter = ',')]
        only: Vec<dist::ArtifactKind>,
    },
    /// What has to be true of a commit before it becomes a version.
    ReleaseCheck,
    /// Writes the documents that are generated from the code.
    Docs,
    /// Writes the generated sessions into examples/.
    Examples,
    /// Runs every session below the paths through every command of compactctl.
    Corpus {
        /// Files and folders with sessions.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Throws mutations of the corpus at every reader of transcripts.
    Fuzz {
        /// How long each reader is tried.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// How many inputs each reader gets instead, the same on every machine.
        #[arg(long, conflicts_with_all = ["seconds", "guided"])]
        inputs: Option<u64>,
        /// Only fuzz this format.
        #[arg(long)]
        target: Option<String>,
        /// Tries the inputs of an earlier run again; another run tries others.
        #[arg(long)]
        seed: Option<u64>,
        /// With libFuzzer, guided by the code that an input reaches.
        #[arg(long)]
        guided: bool,
    },
    /// Writes the models' limits and prices anew, from litellm and genai-prices.
    Registry,
}

fn main() -> ExitCode {
    let result = match XtaskCommand::parse() {
        XtaskCommand::Ci => ci::run(),
        XtaskCommand::Tidy => tidy::run(),
        XtaskCommand::Test { fast: true } => test::run(test::TestScope::Fast),
        XtaskCommand::Test { fast: false } => test::run(test::TestScope::All),
        XtaskCommand::Agents => agents::run(),
        XtaskCommand::Dashboard => dashboard::run(),
        XtaskCommand::Storage => storage::flawed::run(),
        XtaskCommand::Prove {
            filters,
            share,
            probes,
            data,
        } => prove::run(&ProofSelection {
            filters,
            share,
            probes: probes.map(|probes| ProbeFolders {
                data: data.unwrap_or_else(|| probes.clone()),
                probes,
            }),
        }),
        XtaskCommand::Bench { filter } => bench::run(filter.as_deref()),
        XtaskCommand::Dist {
            target,
            command,
            only,
        } => dist::run(&target, command.as_deref(), &only),
        XtaskCommand::ReleaseCheck => release_check::run(),
        XtaskCommand::Docs => docs::write(),
        XtaskCommand::Examples => examples::write(),
        XtaskCommand::Corpus { paths } => corpus::run(&paths),
        XtaskCommand::Fuzz {
            seconds,
            inputs,
            target,
            seed,
            guided,
        } => match guided {
            true => fuzz::guided::run(&Console::Terminal, seconds, target.as_deref(), seed),
            false => {
                let time = FuzzEffort::Time(Duration::from_secs(seconds));
                let effort = inputs.map_or(time, FuzzEffort::Inputs);
                fuzz::run(&Console::Terminal, effort, target.as_deref(), seed)
            }
        },
        XtaskCommand::Registry => registry::write(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
