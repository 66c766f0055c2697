//! `docs/config.md`: the reference of every key, written from the types and their comments.

use std::fmt::Write as _;

use compact_core::profile::{KeyStatus, Profile};
use serde_json::Value;

use super::field::{Field, Kind, fields};
use super::layer::variable_names;
use super::project::describe_allowance;

/// What comes before the tables.
const HEAD: &str = include_str!("reference.md");

/// Keys that only some profiles know.
const PROFILE_KEYS: [&str; 7] = [
    "enabled",
    "summarizer_model",
    "compaction_threshold",
    "context_restart_threshold",
    "context_limit",
    "protected_turns",
    "cooldown_seconds",
];

/// The whole reference as Markdown.
pub fn reference_markdown() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Keys\n");
    for section in sections() {
        let title = if section.is_empty() {
            "Top level"
        } else {
            section
        };
        let _ = write!(
            out,
            "\n### {title}\n\n| key | value | default | a project's file | variable |\n|---|---|---|---|---|\n"
        );
        for field in fields().iter().filter(|f| parent(&f.path) == section) {
            out.push_str(&row(field));
        }
    }
    out.push_str(&profiles());
    out.push_str(&profile_keys());
    out
}

fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}

fn sections() -> Vec<&'static str> {
    let mut sections: Vec<&str> = fields().iter().map(|f| parent(&f.path)).collect();
    sections.sort_by_key(|s| fields().iter().position(|f| parent(&f.path) == *s));
    sections.dedup();
    sections
}

fn row(field: &Field) -> String {
    let key = field.path.rsplit('.').next().unwrap_or(&field.path);
    let variables: Vec<String> = variable_names(field)
        .map(|name| format!("`{name}`"))
        .collect();
    let kind = match &field.kind {
        Kind::Choice(names) => names
            .iter()
            .map(|n| format!("`{n}`"))
            .collect::<Vec<_>>()
            .join(", "),
        kind => kind.to_string(),
    };
    format!(
        "| `{key}` | {} {} | {} | {} | {} |\n",
        cell(&field.description),
        cell(&format!("*{kind}*")),
        cell(&shown(&field.default)),
        describe_allowance(&field.path).unwrap_or_else(|| "if trusted".to_owned()),
        variables.join(" "),
    )
}

/// Text that cannot end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(" "),
        other => format!("`{other}`"),
    }
}

/// What each profile sets apart from the default one.
fn profiles() -> String {
    let mut out = "\n## What profiles set\n\nEverything else is as in the tables above.\n\n| profile | sets |\n|---|---|\n".to_owned();
    for profile in Profile::ALL {
        let policy = serde_json::to_value(profile.policy()).unwrap_or_default();
        let set = fields().iter().filter_map(|field| {
            let key = field.path.strip_prefix("policy.")?;
            let value = policy.get(key).filter(|v| **v != field.default)?;
            Some(format!("`{key}` {}", shown(value)))
        });
        let set: Vec<String> = set.collect();
        let set = if set.is_empty() {
            "the defaults".to_owned()
        } else {
            set.join(", ")
        };
        let _ = writeln!(out, "| `{profile}` | {set} |");
    }
    out
}

/// Old names, and what became of them.
fn profile_keys() -> String {
    let mut out =
        "\n## Keys that only some profiles know\n\n| key | profile | status |\n|---|---|---|\n"
            .to_owned();
    for key in PROFILE_KEYS {
        for profile in Profile::ALL {
            let status = match profile.key_status(key) {
                KeyStatus::Alias(path) => format!("another name for `{path}`"),
                KeyStatus::Switch { path, off } => format!("`false` sets `{path}` to `{off}`"),
                KeyStatus::Deprecated => "accepted with a warning, no effect".to_owned(),
                KeyStatus::Removed => "removed: an error".to_owned(),
                KeyStatus::Unknown => continue,
            };
            let _ = writeln!(out, "| `{key}` | `{profile}` | {status} |");
        }
    }
    out
}
