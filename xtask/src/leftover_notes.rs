//! Words that do not belong on main: notes to oneself, and conflict markers.

use anyhow::{Result, bail};

use crate::shell;

/// Fails on a forbidden word in any tracked text of our own.
pub(crate) fn check() -> Result<String> {
    // Composed, so that this file does not find itself.
    let words = [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["<<<<", "<<< "].concat(),
    ];
    let files = shell::output("git", &["ls-files"])?;
    let mut found = Vec::new();
    for file in files.lines().filter(|file| !file.starts_with("examples/")) {
        let Ok(text) = std::fs::read_to_string(shell::repo_root().join(file)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(word.as_str())) {
                found.push(format!("{file}:{}: {word}", number + 1));
            }
        }
    }
    if !found.is_empty() {
        bail!(
            "notes belong in an issue, not on main\n  {}",
            found.join("\n  ")
        );
    }
    Ok(format!(
        "{} files without notes to oneself",
        files.lines().count()
    ))
}
