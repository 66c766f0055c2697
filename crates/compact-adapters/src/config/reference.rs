//! `docs/config.md`: the reference of every key, written from the types and their comments.

use std::fmt::Write as _;

use compact_core::profile::{KeyStatus, Profile};
use serde_json::Value;

use super::field::{Field, FieldKind, all_fields};
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

/// Returns the whole reference as Markdown.
pub fn reference_markdown() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Keys\n");
    for section in section_names() {
        let title = if section.is_empty() {
            "Top level"
        } else {
            section
        };
        let _ = write!(
            out,
            "\n### {title}\n\n| key | value | default | a project's file | variable |\n|---|---|---|---|---|\n"
        );
        for field in all_fields()
            .iter()
            .filter(|f| parent_section(&f.path) == section)
        {
            out.push_str(&render_row(field));
        }
    }
    out.push_str(&render_profiles());
    out.push_str(&render_profile_keys());
    out
}

fn parent_section(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}

fn section_names() -> Vec<&'static str> {
    let mut sections: Vec<&str> = all_fields()
        .iter()
        .map(|f| parent_section(&f.path))
        .collect();
    sections.sort_by_key(|s| {
        all_fields()
            .iter()
            .position(|f| parent_section(&f.path) == *s)
    });
    sections.dedup();
    sections
}

fn render_row(field: &Field) -> String {
    let key = field.path.rsplit('.').next().unwrap_or(&field.path);
    let variables: Vec<String> = variable_names(field)
        .map(|name| format!("`{name}`"))
        .collect();
    let kind = match &field.kind {
        FieldKind::Choice(names) => names
            .iter()
            .map(|n| format!("`{n}`"))
            .collect::<Vec<_>>()
            .join(", "),
        kind => kind.to_string(),
    };
    format!(
        "| `{key}` | {} {} | {} | {} | {} |\n",
        escape_cell(&field.description),
        escape_cell(&format!("*{kind}*")),
        escape_cell(&render_value(&field.default)),
        describe_allowance(&field.path).unwrap_or_else(|| "if trusted".to_owned()),
        variables.join(" "),
    )
}

/// Escapes a text so that it cannot end the cell of a table.
fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn render_value(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(render_value).collect::<Vec<_>>().join(" "),
        other => format!("`{other}`"),
    }
}

/// Returns what each profile sets apart from the default one.
fn render_profiles() -> String {
    let mut out = "\n## What profiles set\n\nEverything else is as in the tables above.\n\n| profile | sets |\n|---|---|\n".to_owned();
    for profile in Profile::ALL {
        let policy = serde_json::to_value(profile.policy()).unwrap_or_default();
        let set = all_fields().iter().filter_map(|field| {
            let key = field.path.strip_prefix("policy.")?;
            let value = policy.get(key).filter(|v| **v != field.default)?;
            Some(format!("`{key}` {}", render_value(value)))
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

/// Renders the table of keys that only some profiles know.
fn render_profile_keys() -> String {
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
