//! The tests under `tests/wire`: official SDKs and a real server judge the bodies that we make, and
//! the official client of MCP calls our tools.

use crate::chore::Chore;
use crate::environment;

/// Returns the tests as a chore; without what they need there is none.
pub(crate) fn test_chore() -> Option<Chore<'static>> {
    environment::TESTS.is_ready().then(|| {
        Chore::new("SDKs and a model's server (tests/wire)", |console| {
            environment::TESTS.run_pytest(console, "tests/wire", &[], &[])
        })
    })
}
