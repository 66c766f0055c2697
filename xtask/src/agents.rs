//! The tests under `tests/agents`: agents as their makers ship them call our hooks and tools, with a
//! home of their own, against an API on loopback that each test scripts.

use crate::environment::{Environment, List};

/// The agents: several hundred megabytes.
pub(crate) const ENVIRONMENT: Environment = Environment {
    name: "agents",
    lists: &[List {
        file: "tests/agents/requirements.txt",
        text: include_str!("../../tests/agents/requirements.txt"),
        flags: &[],
    }],
};

/// Where the tests are.
pub(crate) const TESTS: &str = "tests/agents";
