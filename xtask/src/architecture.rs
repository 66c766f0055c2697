//! The map of the crates, as a check: which may know which, and what the core must never name.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::dependencies::{Package, workspace_packages};
use crate::shell;

/// What each crate may depend on within the workspace. A crate that is listed nowhere may know every
/// layer.
const LAYERS: &[(&str, &[&str])] = &[
    ("compact-bpe", &[]),
    ("compact-core", &[]),
    ("compact-formats", &["compact-core"]),
    ("compact-runtime", &["compact-core", "compact-formats"]),
    (
        "compact-adapters",
        &[
            "compact-bpe",
            "compact-core",
            "compact-formats",
            "compact-runtime",
        ],
    ),
    (
        "compact-context",
        &[
            "compact-core",
            "compact-formats",
            "compact-runtime",
            "compact-adapters",
        ],
    ),
];

/// What each door may depend on: the crate that people add, and what a command is about.
const DOORS: &[(&str, &[&str])] = &[
    (
        "compactctl",
        &[
            "compact-context",
            "compact-dashboard",
            "compact-eval",
            "compact-formats",
            "compact-gateway",
        ],
    ),
    ("compact-dashboard", &["compact-context"]),
    ("compact-gateway", &["compact-context"]),
    ("compact-python", &["compact-context", "compact-formats"]),
];

/// What a crate that is listed nowhere may know beside the layers.
const BESIDE_LAYERS: &[(&str, &[&str])] = &[("xtask", &["compact-eval"])];

/// What the core must not say, and why.
const FORBIDDEN_IN_CORE: &[(&str, &str)] = &[
    ("std::fs", "core never touches a file"),
    ("std::net", "core never touches a network"),
    ("std::env", "core never reads its surroundings"),
    ("std::process", "core never starts a program"),
    ("SystemTime", "time is an argument"),
    ("Instant::", "time is an argument"),
    ("tokio", "core is synchronous"),
    ("async fn", "core is synchronous"),
    ("rand::", "the same input gives the same bytes"),
    (
        "openai",
        "core never names a provider: formats hand over WireRules",
    ),
    (
        "anthropic",
        "core never names a provider: formats hand over WireRules",
    ),
    (
        "claude",
        "core never names a provider: formats hand over WireRules",
    ),
    (
        "gemini",
        "core never names a provider: formats hand over WireRules",
    ),
    (
        "codex",
        "core never names a provider: formats hand over WireRules",
    ),
];

/// Fails on an edge or a word that the map forbids.
pub(crate) fn check() -> Result<String> {
    let packages = workspace_packages()?;
    let mut problems: Vec<String> = packages
        .iter()
        .flat_map(|package| forbidden_edges(package, &packages))
        .collect();
    let sources = rust_files(&shell::repo_root().join("crates/compact-core/src"))?;
    for file in &sources {
        problems.extend(forbidden_words(file)?);
    }
    if !problems.is_empty() {
        bail!(
            "the map of the crates is broken\n  {}",
            problems.join("\n  ")
        );
    }
    Ok(format!(
        "{} crates keep their layers, {} files of the core stay pure",
        packages.len(),
        sources.len()
    ))
}

/// Edges of a crate that the map does not draw; what only its tests use may be anything.
fn forbidden_edges(package: &Package, all: &[Package]) -> Vec<String> {
    let is_layer = |name: &str| LAYERS.iter().any(|(layer, _)| *layer == name);
    let listed = |table: &[(&str, &'static [&'static str])]| {
        table
            .iter()
            .find(|(name, _)| *name == package.name)
            .map(|(_, allowed)| *allowed)
    };
    let allowed = |name: &str| match listed(LAYERS).or_else(|| listed(DOORS)) {
        Some(allowed) => allowed.contains(&name),
        None => is_layer(name) || listed(BESIDE_LAYERS).unwrap_or_default().contains(&name),
    };
    package
        .dependencies
        .iter()
        .filter(|dependency| {
            !dependency.only_tests && all.iter().any(|p| p.name == dependency.name)
        })
        .filter(|dependency| !allowed(&dependency.name))
        .map(|dependency| format!("{} must not depend on {}", package.name, dependency.name))
        .collect()
}

/// Finds forbidden words in the code of a file, comments aside.
fn forbidden_words(file: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("could not read {}", file.display()))?;
    let shown = file
        .strip_prefix(shell::repo_root())
        .unwrap_or(file)
        .display()
        .to_string();
    let code = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default();
        for (word, reason) in FORBIDDEN_IN_CORE {
            if line.to_lowercase().contains(&word.to_lowercase()) {
                found.push(format!("{shown}:{}: `{word}`: {reason}", number + 1));
            }
        }
    }
    Ok(found)
}

/// Returns every Rust file below a folder, tests left out.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("tests") {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
