//! What a project's file may decide before somebody trusts it.
//!
//! A repository is not its reader: whoever writes `compact.yaml` into one must not choose where
//! conversations go, which variables are sent along, what is kept, or which guard is off. [`ALLOWED`]
//! is the only list of what is left to it; a setting that is not on it is refused, so a new one is
//! refused until it gets a row. What it does with the refused keys is the merge's business.

#[cfg(test)]
mod tests;

use compact_core::redact::is_heavy_pattern;
use serde_json::{Number, Value};

/// What a project's file may do to a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowance {
    /// Set any value that the key takes.
    Any,
    /// Set a share of the whole: more would mean never.
    Share,
    /// Set a number below the one in force.
    Smaller,
    /// Set a number above the one in force.
    Larger,
    /// Set one of these names.
    OneOf(&'static [&'static str]),
    /// Set it to `true` only.
    On,
    /// Add to the list.
    Added,
}

use Allowance::{Added, Any, Larger, On, OneOf, Share, Smaller};

/// The keys that a project's file may set, each with how.
const ALLOWED: &[(&str, Allowance)] = &[
    ("model", Any),
    ("max_context_tokens", Smaller),
    ("policy.trigger_pct", Share),
    ("policy.trigger_inclusive", Any),
    ("policy.trigger_base", Any),
    ("policy.trigger_tokens_left", Larger),
    ("policy.soft_pct", Share),
    ("policy.target_of_trigger", Any),
    ("policy.summary_share", Any),
    ("policy.hard_cap_buffer", Larger),
    ("policy.keep_recent_turns", Any),
    ("policy.keep_tool_io_pairs", Any),
    // `semantic` may ask a model.
    ("policy.prune", OneOf(&["fifo", "recency", "stage_aware"])),
    ("policy.roles_never_prune", Added),
    ("policy.protected_patterns", Added),
    ("policy.strategy", Any),
    ("policy.idle_seconds", Smaller),
    ("policy.economy.expected_requests", Any),
    ("redaction.enabled", On),
    ("redaction.patterns", Added),
    ("redaction.pii_deny", Added),
    ("redaction.sinks.export", On),
    ("redaction.sinks.summary_prompt", On),
];

/// The most values that a project's file may add to one list: each costs time in every hook.
const MOST_ADDED: usize = 32;
/// The longest of them, and the longest name of a model.
const LONGEST_TEXT: usize = 256;

/// Returns what a project's file may do to the key at a path; `None` if nothing.
pub fn find_allowance(path: &str) -> Option<Allowance> {
    let mut rows = ALLOWED.iter();
    rows.find(|(allowed, _)| *allowed == path)
        .map(|(_, allowance)| *allowance)
}

/// Returns the value that a key gets when a project's file sets it to `wanted`, or why it does not.
pub(super) fn permit_value(path: &str, wanted: &Value, current: &Value) -> Result<Value, String> {
    let Some(allowance) = find_allowance(path) else {
        return Err(String::new());
    };
    if wanted.is_null() {
        return Err("it may not be unset".to_owned());
    }
    if is_overlong(wanted) {
        return Err(format!("at most {LONGEST_TEXT} characters"));
    }
    let refused = |reason: String| Err(reason);
    match allowance {
        Share if wanted.as_f64().is_none_or(|share| share > 1.0) => refused("at most 1.0".into()),
        Smaller if !is_tighter(wanted, current, f64::lt) => {
            refused(format!("only below {current}"))
        }
        Larger if !is_tighter(wanted, current, f64::gt) => refused(format!("only above {current}")),
        OneOf(names) if !names.iter().any(|name| wanted == name) => {
            refused(format!("only {}", names.join(", ")))
        }
        On if wanted != &Value::Bool(true) => refused("only true".into()),
        Added => add_to_list(wanted, current),
        _ => Ok(wanted.clone()),
    }
}

/// Returns the limits as words for the reference; `None` for a key that only a trusted file may set.
pub(super) fn describe_allowance(path: &str) -> Option<String> {
    Some(match find_allowance(path)? {
        Any => "yes".to_owned(),
        Share => "at most 1.0".to_owned(),
        Smaller => "smaller".to_owned(),
        Larger => "larger".to_owned(),
        OneOf(names) => names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
        On => "`true`".to_owned(),
        Added => "adds".to_owned(),
    })
}

/// Returns true where nothing is in force, or what is wanted is on the right side of it.
fn is_tighter(wanted: &Value, current: &Value, holds: fn(&f64, &f64) -> bool) -> bool {
    match (
        wanted.as_number().and_then(Number::as_f64),
        current.as_number().and_then(Number::as_f64),
    ) {
        (Some(wanted), Some(current)) => wanted == current || holds(&wanted, &current),
        (wanted, _) => wanted.is_some() && current.is_null(),
    }
}

fn is_overlong(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().count() > LONGEST_TEXT,
        Value::Array(items) => items.iter().any(is_overlong),
        _ => false,
    }
}

/// Returns the list in force with what is new to it behind.
fn add_to_list(wanted: &Value, current: &Value) -> Result<Value, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut all, wanted) = (list(current), list(wanted));
    let most = all.len() + MOST_ADDED;
    // Before anything is compiled: a list may be as long as its file.
    if wanted.len() > most {
        return Err(format!("at most {MOST_ADDED} more"));
    }
    for item in wanted {
        if item.as_str().is_some_and(is_heavy_pattern) {
            return Err("a pattern is too large".to_owned());
        }
        if !all.contains(&item) {
            all.push(item);
        }
    }
    if all.len() > most {
        return Err(format!("at most {MOST_ADDED} more"));
    }
    Ok(all.into())
}
