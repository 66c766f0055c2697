//! The tests under `tests/dashboard`: a real browser looks at pages over archives that the real command, hooks, a run and
//! a gateway made.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::chore::{self, Chore};
use crate::environment::node::NodePackages;
use crate::shell::{self, Console};

/// Where the tests are.
const TESTS: &str = "tests/dashboard";

/// The browser, where Debian and others put it.
const BROWSERS: [&str; 3] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// What drives the browser and judges pages: 17 megabytes.
pub(crate) const PACKAGES: NodePackages = NodePackages {
    name: "dashboard-npm",
    manifest: include_str!("../../tests/dashboard/package.json"),
    lock: include_str!("../../tests/dashboard/package-lock.json"),
};

/// Returns whether the browser and what drives it are there.
pub(crate) fn is_ready() -> bool {
    find_browser().is_some() && PACKAGES.complete_folder().is_some()
}

/// Gets the browser from the system's packages, and what drives it.
pub(crate) fn install(console: &Console) -> Result<()> {
    if find_browser().is_none() {
        if !shell::is_root() {
            bail!("needs root: `apt-get install chromium`");
        }
        shell::install_debian_packages(console, &["chromium"])?;
    }
    PACKAGES.install(console)
}

/// Returns the tests as a chore; none without a browser.
pub(crate) fn test_chore() -> Option<Chore<'static>> {
    let browser = find_browser()?;
    let packages = PACKAGES.complete_folder()?.display().to_string();
    Some(Chore::new("dashboard", move |console: &Console| {
        let variables = [
            ("COMPACT_CHROMIUM", browser),
            ("COMPACT_BROWSER_PACKAGES", packages.as_str()),
        ];
        let files = list_test_files()?;
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let arguments = [&["--test", "--test-concurrency=1"][..], &files].concat();
        console.run("node", &arguments, &variables)
    }))
}

/// Returns the files with tests, by path: older versions of Node know no patterns.
fn list_test_files() -> Result<Vec<String>> {
    let entries = std::fs::read_dir(shell::repo_root().join(TESTS)).context(TESTS)?;
    let mut files = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.mjs") {
            files.push(format!("{TESTS}/{name}"));
        }
    }
    files.sort();
    Ok(files)
}

fn find_browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|path| Path::new(path).exists())
}

/// Gets what is missing and runs the tests, without the rest of `cargo xtask test`.
pub(crate) fn run() -> Result<()> {
    install(&Console::Terminal)?;
    shell::build_command(&Console::Terminal, &[])?;
    let chores = test_chore().into_iter().collect();
    chore::run_chores(chore::usual_width(), chores)
}
