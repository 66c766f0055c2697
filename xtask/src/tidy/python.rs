//! Names of functions and classes in the Python package, which avoid the same words as those in Rust.
//!
//! What else there is to say about Python is left to mypy.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::speech_problem;

const PACKAGE: &str = "python/compact";

/// Returns the names of the package that are ruled out, with file and line.
pub(super) fn name_problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut folders = vec![root.join(PACKAGE)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let shown = path.strip_prefix(root).unwrap_or(&path);
            let shown = shown.to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                folders.push(path);
            } else if shown.ends_with(".py") || shown.ends_with(".pyi") {
                let text = fs::read_to_string(&path).with_context(|| shown.clone())?;
                problems.extend(problems_in(&shown, &text));
            }
        }
    }
    Ok(problems)
}

/// Returns the names in one file that are ruled out.
pub(super) fn problems_in(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| speech_problem(path, index + 1, defined_name(line)?))
        .collect()
}

/// Returns the name of the function or class that a line defines.
fn defined_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = line
        .strip_prefix("def ")
        .or_else(|| line.strip_prefix("class "))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}
