//! The file that `config init` writes: every key with its default, and none of them set.
//!
//! It is the shipped example with its keys behind a `#`. A file that set them would decide over the
//! user's own file, the profile and what is derived (the model's window, the data directory), and so
//! change what is in force by being there.

use super::EXAMPLE;

const INTRODUCTION: &str = "\
# Compact: every setting there is, with its meaning and its default. Nothing is set here yet.
# To set a key, remove the # at the beginning of its line, and of the lines of the sections it stands in.
# Reference: docs/config.md. Any key can also be set by a variable, e.g. COMPACT_POLICY_TRIGGER_PCT=0.8.
";

/// What the example shows otherwise than it is by default, because the founding documents do.
const EXAMPLE_VALUES: [(&str, &str); 4] = [
    ("model: gpt-5-reasoning", "model: null"),
    ("max_context_tokens: 128000", "max_context_tokens: null"),
    ("hard_cap_buffer: 1500", "hard_cap_buffer: 1024"),
    ("path: ./.compact/archive", "path: null"),
];

/// Writes the file: the example with each key behind a `#` at the beginning of its line, so that a key
/// has its indentation once the `#` is gone.
pub fn starter_file() -> String {
    let keys = EXAMPLE.split_once("\n\n").map_or("", |(_, keys)| keys);
    let lines = keys.lines().map(|line| match line.trim_start() {
        "" => "\n".to_owned(),
        words if words.starts_with('#') => format!("{line}\n"),
        _ => format!("#{}\n", with_default(line)),
    });
    format!("{INTRODUCTION}\n{}", lines.collect::<String>())
}

/// Returns a line of the example with the value that holds if nobody sets it.
fn with_default(line: &str) -> String {
    let differs = EXAMPLE_VALUES
        .iter()
        .find(|(shown, _)| line.trim_start() == *shown);
    match differs {
        Some((shown, default)) => line.replace(shown, default),
        None => line.to_owned(),
    }
}
