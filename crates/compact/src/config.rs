//! Settings: what can be configured, and where it comes from.

use serde_json::Value;

use crate::error::Error;

pub use compact_adapters::config::*;

/// Settings that a program made, as a JSON object of keys; messages call it `place`. Keys that are
/// null are left as they are.
///
/// ```
/// # fn main() -> Result<(), compact::Error> {
/// let sources = compact::config::sources_from_json("settings", r#"{"model": "gpt-5"}"#)?;
/// assert_eq!(sources.load()?.config.model.as_deref(), Some("gpt-5"));
/// # Ok(())
/// # }
/// ```
pub fn sources_from_json(place: &str, json: &str) -> Result<ConfigSources, Error> {
    let value: Value = serde_json::from_str(json).map_err(|error| {
        Error::Config(ConfigError::Syntax {
            path: place.into(),
            line: None,
            message: error.to_string(),
        })
    })?;
    let mut flags = Vec::new();
    push_flags(place, "", value, &mut flags);
    Ok(ConfigSources::default().with_flags(flags))
}

/// Adds a flag for every key that has a value.
fn push_flags(place: &str, path: &str, value: Value, flags: &mut Vec<ConfigFlag>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, value) in members {
                let dot = if path.is_empty() { "" } else { "." };
                push_flags(place, &format!("{path}{dot}{name}"), value, flags);
            }
        }
        value => flags.push(ConfigFlag::new(place, path, value)),
    }
}
