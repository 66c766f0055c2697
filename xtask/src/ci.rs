//! `cargo xtask ci`: everything that must hold before a change is merged, tests aside.
//!
//! Each check says in one line what it found. All checks run, so that one pass shows every problem.

use anyhow::{Result, bail};

use crate::{architecture, dependencies, examples, licences, requirements, shell, words};

struct Check {
    name: &'static str,
    run: fn() -> Result<String>,
}

/// The cheap ones first: a person wants to know soon.
const CHECKS: &[Check] = &[
    Check {
        name: "words",
        run: words::check,
    },
    Check {
        name: "architecture",
        run: architecture::check,
    },
    Check {
        name: "dependencies",
        run: dependencies::check,
    },
    Check {
        name: "licences",
        run: licences::check,
    },
    Check {
        name: "generated files",
        run: examples::check,
    },
    Check {
        name: "requirements",
        run: requirements::check,
    },
    Check {
        name: "format",
        run: format,
    },
    Check {
        name: "lints",
        run: lints,
    },
    Check {
        name: "documentation",
        run: documentation,
    },
];

/// Runs every check.
pub(crate) fn run() -> Result<()> {
    let mut failed = Vec::new();
    for check in CHECKS {
        match (check.run)() {
            Ok(found) => println!("ok      {}: {found}", check.name),
            Err(error) => {
                println!("FAILED  {}: {error:#}", check.name);
                failed.push(check.name);
            }
        }
    }
    if !failed.is_empty() {
        bail!(
            "{} of {} checks failed: {}",
            failed.len(),
            CHECKS.len(),
            failed.join(", ")
        );
    }
    println!("all {} checks passed", CHECKS.len());
    Ok(())
}

fn format() -> Result<String> {
    shell::run("cargo", &["fmt", "--all", "--check"])?;
    Ok("rustfmt has nothing to change".into())
}

fn lints() -> Result<String> {
    let arguments = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    shell::run("cargo", &arguments)?;
    Ok("clippy has nothing to say".into())
}

fn documentation() -> Result<String> {
    let arguments = [
        "doc",
        "--quiet",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    shell::run_with("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])?;
    Ok("every link leads somewhere".into())
}
