//! `cargo xtask bench peers`: other packages and this one side by side on one generated history (`tests/peers`).
//!
//! Each package has an environment with a pinned version; LiteLLM's also has the tokenizer that judges what each made. OpenHands
//! is left out: its condenser asks a model, and its SDK needs a later Python than the tests have.

use anyhow::{Context, Result};

use crate::environment::{self, PipRequirements, PythonEnvironment, list_file};
use crate::python::{self, LITELLM};
use crate::shell::Console;

const HEADROOM: PythonEnvironment = PythonEnvironment {
    name: "peer-headroom",
    lists: &[PipRequirements {
        files: &[list_file!("tests/peers/headroom.txt")],
        flags: &[],
    }],
};

const PYDANTIC_AI: PythonEnvironment = PythonEnvironment {
    name: "peer-pydantic-ai",
    lists: &[PipRequirements {
        files: &[list_file!("tests/peers/pydantic_ai.txt")],
        flags: &[],
    }],
};

/// The packages as `tests/peers/packages.py` calls them, and where each is installed.
const PEERS: [(&str, &PythonEnvironment); 6] = [
    ("compact", &environment::TESTS),
    ("langchain trim_messages", &environment::TESTS),
    ("langchain ClearToolUsesEdit", &environment::TESTS),
    ("litellm trim_messages", &LITELLM),
    ("headroom compress", &HEADROOM),
    ("pydantic-ai-harness SlidingWindow", &PYDANTIC_AI),
];

/// Installs what is missing, builds the wheel as shipped, measures, and writes `target/bench/peers.json`.
pub(crate) fn bench_peers(console: &Console) -> Result<()> {
    for environment in [&environment::TESTS, &LITELLM, &HEADROOM, &PYDANTIC_AI] {
        environment.install_missing()?;
    }
    python::install_shipped(console)?;
    let python_of = |environment: &PythonEnvironment| {
        let python = environment.python_path();
        python.context("an environment of a package is not there")
    };
    let checker = python_of(&LITELLM)?;
    let mut arguments = vec!["tests/peers/run.py".to_owned()];
    arguments.extend(["target/bench/peers.json".to_owned(), checker]);
    for (name, environment) in PEERS {
        arguments.push(format!("{name}={}", python_of(environment)?));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    console.run(&python_of(&environment::TESTS)?, &arguments, &[])
}
