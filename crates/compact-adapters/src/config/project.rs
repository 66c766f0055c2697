//! What a project's file may decide before somebody trusts it.
//!
//! A repository is not its reader: whoever writes `compact.yaml` into one must not choose where
//! conversations go, which variables are sent along, what is kept, or which guard is off. [`ALLOWED`]
//! is the only list of what is left to it; a setting that is not on it is refused, so a new one is
//! refused until it gets a row. What it does with the refused keys is the merge's business.
//!
//! It may ask for more that stays and for less room, within bounds: a stranger's file that pins every message, or
//! leaves no window, would make every compaction fail, and who reads that error did not write the file. What is
//! bounded one by one may still add up to too much; then the error names the file.

#[cfg(test)]
mod tests;

use compact_core::pin::is_everyday_pattern;
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
    /// The same, and not below this one.
    SmallerTo(u64),
    /// Set a number above the one in force, and not above this one.
    LargerTo(u64),
    /// Set one of these names.
    OneOf(&'static [&'static str]),
    /// Set it to `true` only.
    On,
    /// Add to the list.
    Added,
    /// Add these names to the list.
    AddedOf(&'static [&'static str]),
    /// Add patterns to the list that do not match everyday words.
    AddedRare,
}

use Allowance::{Added, AddedOf, AddedRare, Any, LargerTo, On, OneOf, Share, Smaller, SmallerTo};

/// The smallest window: half of it holds an agent's instructions and a view that is worth having.
const LEAST_WINDOW: u64 = 8_192;
/// The most tokens that may be kept free: half of that window.
const MOST_FREE: u64 = LEAST_WINDOW / 2;
/// The smallest share: below, a view is hardly more than its summary's heading, or each call a compaction.
const LEAST_SHARE: f64 = 0.1;

/// The keys that a project's file may set, each with how.
const ALLOWED: &[(&str, Allowance)] = &[
    ("model", Any),
    ("max_context_tokens", SmallerTo(LEAST_WINDOW)),
    ("policy.trigger_pct", Share),
    ("policy.trigger_inclusive", Any),
    ("policy.trigger_base", Any),
    ("policy.trigger_tokens_left", LargerTo(MOST_FREE)),
    ("policy.soft_pct", Share),
    ("policy.target_of_trigger", Share),
    ("policy.summary_share", Any),
    ("policy.hard_cap_buffer", LargerTo(MOST_FREE)),
    ("policy.keep_recent_turns", Any),
    ("policy.keep_tool_io_pairs", Any),
    // `semantic` may ask a model.
    ("policy.prune", OneOf(&["fifo", "recency", "stage_aware"])),
    // What the model and its tools say is most of a session.
    (
        "policy.roles_never_prune",
        AddedOf(&["system", "developer", "user"]),
    ),
    ("policy.protected_patterns", AddedRare),
    ("policy.strategy", Any),
    ("policy.idle_seconds", Smaller),
    ("policy.economy.expected_requests", Any),
    ("redaction.enabled", On),
    ("redaction.patterns", Added),
    ("redaction.pii_deny", Added),
    ("redaction.sinks.export", On),
    ("redaction.sinks.summary_prompt", On),
];

/// Why `null` is refused.
pub(super) const UNSET: &str = "it may not be unset";

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
        return Err(UNSET.to_owned());
    }
    if is_overlong(wanted) {
        return Err(format!("at most {LONGEST_TEXT} characters"));
    }
    let refused = |reason: String| Err(reason);
    match allowance {
        Share if wanted.as_f64().is_none_or(|share| share > 1.0) => refused("at most 1.0".into()),
        // What is no share at all is wrong in any file, and reported as such.
        Share if wanted.as_f64().is_some_and(|s| s > 0.0 && s < LEAST_SHARE) => {
            refused(format!("at least {LEAST_SHARE}"))
        }
        Smaller | SmallerTo(_) if !is_tighter(wanted, current, f64::lt) => {
            refused(format!("only below {current}"))
        }
        LargerTo(_) if !is_tighter(wanted, current, f64::gt) => {
            refused(format!("only above {current}"))
        }
        SmallerTo(least) if wanted != current && wanted.as_u64().is_none_or(|n| n < least) => {
            refused(format!("at least {least}"))
        }
        LargerTo(most) if wanted != current && wanted.as_u64().is_none_or(|n| n > most) => {
            refused(format!("at most {most}"))
        }
        OneOf(names) if !names.iter().any(|name| wanted == name) => {
            refused(format!("only {}", names.join(", ")))
        }
        On if wanted != &Value::Bool(true) => refused("only true".into()),
        Added | AddedOf(_) | AddedRare => {
            let all = add_to_list(wanted, current)?;
            check_added(allowance, &all, current).map(|()| all)
        }
        _ => Ok(wanted.clone()),
    }
}

/// Returns the limits as words for the reference; `None` for a key that only a trusted file may set.
pub(super) fn describe_allowance(path: &str) -> Option<String> {
    Some(match find_allowance(path)? {
        Any => "yes".to_owned(),
        Share => format!("{LEAST_SHARE} to 1.0"),
        Smaller => "smaller".to_owned(),
        SmallerTo(least) => format!("smaller, at least {least}"),
        LargerTo(most) => format!("larger, at most {most}"),
        OneOf(names) => names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
        On => "`true`".to_owned(),
        Added => "adds".to_owned(),
        AddedOf(names) => format!("adds `{}`", names.join("`, `")),
        AddedRare => "adds what does not match everyday words".to_owned(),
    })
}

/// Checks the items of a list that are not in force already.
fn check_added(allowance: Allowance, all: &Value, current: &Value) -> Result<(), String> {
    let in_force = current.as_array();
    let is_new = |item: &&Value| in_force.is_none_or(|list| !list.contains(item));
    let mut new = all.as_array().into_iter().flatten().filter(is_new);
    let mut has =
        |is_refused: &dyn Fn(&str) -> bool| new.any(|i| i.as_str().is_some_and(is_refused));
    match allowance {
        AddedOf(names) if has(&|item| !names.contains(&item)) => {
            Err(format!("only {}", names.join(", ")))
        }
        AddedRare if has(&is_everyday_pattern) => {
            Err("a pattern matches everyday words".to_owned())
        }
        _ => Ok(()),
    }
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
