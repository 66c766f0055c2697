//! The tests under `tests/wire`: official SDKs and a real server judge the bodies that we make, and
//! the official client of MCP calls our tools.

use crate::environment::{PipRequirements, PythonEnvironment};

/// Some hundred megabytes of packages.
pub(crate) const ENVIRONMENT: PythonEnvironment = PythonEnvironment {
    name: "wire",
    lists: &[
        PipRequirements {
            file: "tests/wire/requirements.txt",
            text: include_str!("../../tests/wire/requirements.txt"),
            flags: &[],
        },
        PipRequirements {
            file: "tests/wire/server.txt",
            text: include_str!("../../tests/wire/server.txt"),
            flags: &["--no-deps"],
        },
    ],
};

/// Where the tests are.
pub(crate) const TESTS: &str = "tests/wire";
