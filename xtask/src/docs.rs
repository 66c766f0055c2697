//! `cargo xtask docs`: documents that are generated from the code.
//!
//! A test of the crate that owns a document compares it, so `cargo test` finds one that is out of
//! date; this command lets the same test write it. The index of requirements belongs to no crate.

use anyhow::Result;

use crate::{requirements, shell};

/// Packages and the tests that hold a document.
const DOCUMENTS: &[(&str, &str)] = &[
    (
        "compact-core",
        "event::typescript::the_types_are_up_to_date",
    ),
    (
        "compact-adapters",
        "config::tests::the_reference_is_up_to_date",
    ),
    (
        "compact-formats",
        "validate::tests::the_reference_is_up_to_date",
    ),
];

/// Writes every generated document.
pub(crate) fn write() -> Result<()> {
    for (package, test) in DOCUMENTS {
        let arguments = [
            "test",
            "--quiet",
            "--package",
            package,
            "--lib",
            "--",
            "--exact",
            test,
        ];
        shell::run_with("cargo", &arguments, &[("UPDATE_EXPECT", "1")])?;
    }
    requirements::write()?;
    println!("docs/ is up to date");
    Ok(())
}
