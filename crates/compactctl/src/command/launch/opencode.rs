//! opencode merges a variable into its settings. Which providers it has, it says itself: its settings come from
//! many files and servers.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::agent::UpstreamWish;
use crate::failure::{Failure, FailureCode};

/// Settings as JSON, which count more than those of files.
const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";

/// Providers that opencode knows by itself and that the gateway has servers for: the variables that hold a key,
/// and what follows the gateway's address.
const KNOWN: [(&str, &[&str], &str); 3] = [
    ("anthropic", &["ANTHROPIC_API_KEY"], "/v1"),
    ("openai", &["OPENAI_API_KEY"], "/v1"),
    (
        "google",
        &[
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "GOOGLE_API_KEY",
            "GEMINI_API_KEY",
        ],
        "/v1beta",
    ),
];

/// What of its settings says whom it asks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OpenCodeSettings {
    provider: BTreeMap<String, ProviderSettings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProviderSettings {
    options: ProviderOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProviderOptions {
    #[serde(rename = "baseURL")]
    base_url: Option<String>,
}

/// Returns the servers that opencode's settings name.
pub(super) fn upstream_wishes(program: &OsStr) -> Result<Vec<UpstreamWish>, Failure> {
    let asked = Command::new(program)
        .args(["debug", "config"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let asked = asked.map_err(|error| super::process::cannot_run(program, &error))?;
    let settings: OpenCodeSettings = serde_json::from_slice(&asked.stdout).map_err(|error| {
        Failure::from_error(FailureCode::Usage, &error)
            .with_context("cannot read what `opencode debug config` prints")
            .help("run it by hand to see what is wrong with its settings")
    })?;
    Ok(wishes_of(settings))
}

fn wishes_of(settings: OpenCodeSettings) -> Vec<UpstreamWish> {
    let named = settings.provider.into_iter();
    let named = named.filter_map(|(id, provider)| Some((id, provider.options.base_url?)));
    let numbered = named
        .enumerate()
        .map(|(index, (id, url))| UpstreamWish::Named {
            id,
            name: format!("p{index}"),
            url,
        });
    numbered.collect()
}

/// Returns the variable that leads opencode to the gateway at `url`.
pub(super) fn variable_for(
    url: &str,
    wishes: &[UpstreamWish],
) -> Result<(&'static str, String), Failure> {
    let given = std::env::var(CONTENT).unwrap_or_default();
    let usable: Vec<&str> = usable_providers();
    Ok((CONTENT, merged_settings(&given, url, wishes, &usable)?))
}

/// Returns the providers that opencode knows by itself and has a key for. To name one without would offer its
/// models.
fn usable_providers() -> Vec<&'static str> {
    let data = std::env::var_os("XDG_DATA_HOME").filter(|folder| !folder.is_empty());
    let home = || std::env::home_dir().map(|home| home.join(".local/share"));
    let logins = data.map(PathBuf::from).or_else(home);
    let logins = logins.map(|folder| folder.join("opencode/auth.json"));
    let logins = logins.and_then(|file| std::fs::read(file).ok());
    let logins: BTreeMap<String, IgnoredAny> =
        serde_json::from_slice(&logins.unwrap_or_default()).unwrap_or_default();
    let has_key = |variables: &[&str]| {
        variables
            .iter()
            .any(|name| std::env::var_os(name).is_some())
    };
    let usable = KNOWN
        .iter()
        .filter(|(id, variables, _)| logins.contains_key(*id) || has_key(variables));
    usable.map(|(id, _, _)| *id).collect()
}

/// Lays the gateway's addresses over settings.
fn merged_settings(
    given: &str,
    url: &str,
    wishes: &[UpstreamWish],
    usable: &[&str],
) -> Result<String, Failure> {
    let mut settings = match given.trim() {
        "" => Map::new(),
        text => serde_json::from_str(text).map_err(|error| {
            Failure::from_error(FailureCode::Usage, &error)
                .with_context(&format!("{CONTENT} is no JSON object"))
        })?,
    };
    let known = KNOWN.iter().filter(|(id, _, _)| usable.contains(id));
    for (id, _, path) in known {
        set_address(&mut settings, id, format!("{url}{path}"));
    }
    for wish in wishes {
        if let UpstreamWish::Named { id, name, .. } = wish {
            set_address(&mut settings, id, format!("{url}/{name}"));
        }
    }
    Ok(Value::Object(settings).to_string())
}

/// Sets `provider.ID.options.baseURL`.
fn set_address(settings: &mut Map<String, Value>, id: &str, url: String) {
    let mut place = settings;
    for key in ["provider", id, "options"] {
        let entry = place.entry(key).or_insert_with(|| json!({}));
        if !entry.is_object() {
            *entry = json!({});
        }
        match entry.as_object_mut() {
            Some(inner) => place = inner,
            None => return,
        }
    }
    place.insert("baseURL".to_owned(), url.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_providers_are_reached_through_the_gateway_and_other_settings_stay() {
        let settings = r#"{"provider":{"local":{"options":{"baseURL":"http://l/v1"}},"plain":{}}}"#;
        let wishes = wishes_of(serde_json::from_str(settings).unwrap());
        let given = r#"{"model":"local/m1","provider":{"local":{"options":{"apiKey":"k"}}}}"#;
        let merged = merged_settings(given, "http://g", &wishes, &["google"]).unwrap();
        let merged: Value = serde_json::from_str(&merged).unwrap();
        assert_eq!(
            merged,
            json!({
                "model": "local/m1",
                "provider": {
                    "local": {"options": {"apiKey": "k", "baseURL": "http://g/p0"}},
                    "google": {"options": {"baseURL": "http://g/v1beta"}},
                },
            })
        );
    }

    #[test]
    fn settings_that_cannot_be_merged_are_named() {
        let refused = merged_settings("[1]", "http://g", &[], &[]).unwrap_err();
        assert!(refused.message().contains(CONTENT), "{refused:?}");
    }
}
