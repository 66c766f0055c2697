//! The tutorials, typed as they stand there: every command in order, in one shell, and what it should print.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::place::Place;

/// A command of a tutorial, with the lines that should come out of it.
struct TypedCommand<'t> {
    line: &'t str,
    expected: Vec<&'t str>,
}

/// The commands in the `console` blocks of a page, in order.
fn typed_commands(page: &str) -> Vec<TypedCommand<'_>> {
    let mut commands: Vec<TypedCommand<'_>> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (line, inside) {
            ("```console", false) => inside = true,
            ("```", true) => inside = false,
            (_, true) => match line.strip_prefix("$ ") {
                Some(line) => commands.push(TypedCommand {
                    line,
                    expected: Vec::new(),
                }),
                None => commands.last_mut().unwrap().expected.push(line),
            },
            _ => {}
        }
    }
    commands
}

/// Whether `line` is `pattern`, where `…` stands for anything.
fn matches_line(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut ends_open = !pattern.contains('…');
    for part in parts {
        ends_open = part.is_empty();
        match rest.find(part) {
            Some(at) if !part.is_empty() => rest = &rest[at + part.len()..],
            Some(_) => rest = if ends_open { "" } else { rest },
            None => return false,
        }
    }
    rest.is_empty() || (ends_open && pattern.ends_with('…'))
}

/// Asserts that the lines of `output` are those of `expected`, where a line `…` stands for any number of them.
fn assert_printed(command: &TypedCommand<'_>, output: &str) {
    let mut lines = output.lines();
    let mut any = false;
    for pattern in &command.expected {
        if *pattern == "…" {
            any = true;
            continue;
        }
        let found = match any {
            true => lines.any(|line| matches_line(pattern, line)),
            false => lines.next().is_some_and(|line| matches_line(pattern, line)),
        };
        assert!(found, "`{}` lacks {pattern:?}:\n{output}", command.line);
        any = false;
    }
    let rest: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    assert!(
        any || rest.is_empty(),
        "`{}` also prints {rest:?}",
        command.line
    );
}

/// Types a page's commands into one shell, with a mark behind the output of each.
fn type_page(name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs").join(name)).unwrap();
    let commands = typed_commands(&page);
    assert!(commands.len() > 5, "{name} has commands");
    let place = Place::new();
    let mark = "=== typed ===";
    let script: String = (commands.iter())
        .map(|command| format!("{}\necho\necho '{mark}'\n", command.line))
        .collect();
    let folder = Path::new(env!("CARGO_BIN_EXE_compactctl"))
        .parent()
        .unwrap();
    let run = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(place.path("."))
        .env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()),
        )
        .env("HOME", place.path("home"))
        .env("COMPACT_STORAGE_PATH", place.store())
        .env("COMPACT_REPOSITORY", &root)
        .output()
        .unwrap();
    let printed = String::from_utf8(run.stdout).unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{name}: {printed}\n{errors}");
    let outputs: Vec<&str> = printed.split(&format!("\n{mark}\n")).collect();
    for (command, output) in commands.iter().zip(outputs) {
        assert_printed(command, output);
    }
}

#[test]
fn every_command_of_the_tutorial_works_as_printed() {
    type_page("tutorial.md");
}

#[test]
fn a_printed_line_is_compared_around_what_may_be_anything() {
    assert!(matches_line("a …", "a b"));
    assert!(matches_line("…#1 of 8…c", "x#1 of 8, c"));
    assert!(matches_line("whole", "whole"));
    assert!(!matches_line("a …", "b b"));
    assert!(!matches_line("…#1 of 8…c", "x#1 of 8, d"));
    assert!(!matches_line("whole", "whole and more"));
}
