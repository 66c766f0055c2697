//! `cargo xtask ci`: everything that must hold before a change is merged, tests aside.
//!
//! Each check says in one line what it found. All checks run, so that one pass shows every problem.

use anyhow::{Result, bail};

use crate::shell::FULL;
use crate::{
    architecture, dependencies, examples, leftover_notes, licences, pages, requirements, shell,
    tidy,
};

struct CiCheck {
    name: &'static str,
    run: fn() -> Result<String>,
}

/// Cheap checks first, so that failures show early.
const CHECKS: &[CiCheck] = &[
    CiCheck {
        name: "leftover notes",
        run: leftover_notes::check,
    },
    CiCheck {
        name: "architecture",
        run: architecture::check,
    },
    CiCheck {
        name: "tidy",
        run: tidy::check,
    },
    CiCheck {
        name: "dependencies",
        run: dependencies::check,
    },
    CiCheck {
        name: "licences",
        run: licences::check,
    },
    CiCheck {
        name: "generated files",
        run: examples::check,
    },
    CiCheck {
        name: "requirements",
        run: requirements::check,
    },
    CiCheck {
        name: "pages",
        run: pages::check,
    },
    CiCheck {
        name: "format",
        run: check_format,
    },
    CiCheck {
        name: "lints",
        run: check_lints,
    },
    CiCheck {
        name: "lean build",
        run: check_lean_build,
    },
    CiCheck {
        name: "documentation",
        run: check_docs,
    },
];

/// Runs every check, and fails with all that failed.
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

fn check_format() -> Result<String> {
    shell::run("cargo", &["fmt", "--all", "--check"])?;
    Ok("rustfmt has nothing to change".into())
}

fn check_lints() -> Result<String> {
    let arguments = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--features",
        FULL,
        "--",
        "-D",
        "warnings",
    ];
    shell::run("cargo", &arguments)?;
    Ok("clippy has nothing to say".into())
}

/// Checks that what is shipped builds without its features, and without the dependencies that only those
/// need.
fn check_lean_build() -> Result<String> {
    let lean = ["--package", "compactctl"];
    shell::run("cargo", &[&["check", "--quiet"], &lean[..]].concat())?;
    let tree = ["tree", "--edges", "normal", "--prefix", "none"];
    let tree = shell::output("cargo", &[&tree[..], &lean].concat())?;
    for optional in ["compact-eval", "compact-gateway", "compact-dashboard"] {
        let is_optional = |line: &str| line.split(' ').next() == Some(optional);
        if tree.lines().any(is_optional) {
            bail!("compactctl depends on {optional} without its feature");
        }
    }
    Ok("compactctl builds without its features, and then without what only those need".into())
}

fn check_docs() -> Result<String> {
    let arguments = [
        "doc",
        "--quiet",
        "--workspace",
        "--features",
        FULL,
        "--no-deps",
        "--document-private-items",
    ];
    shell::run_with("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])?;
    Ok("every link leads somewhere".into())
}
