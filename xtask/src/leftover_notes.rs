//! Words that do not belong on main: notes to oneself, and conflict markers.

use anyhow::{Result, bail};

use crate::shell;

/// Folders whose files quote what others write.
const IN_QUOTES: [&str; 2] = ["examples/", "crates/compact-core/testdata/cues/"];

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
    let is_ours = |file: &&str| !IN_QUOTES.iter().any(|folder| file.starts_with(folder));
    for file in files.lines().filter(is_ours) {
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
