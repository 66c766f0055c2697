//! Codex takes addresses from its configuration, where arguments may replace them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::agent::UpstreamWish;
use crate::failure::{Failure, FailureCode};

/// Whom Codex asks when it is logged in with an account of ChatGPT.
const CHATGPT_URL: &str = "https://chatgpt.com/backend-api/codex";

/// What Codex calls the provider that it knows by itself.
const OWN_PROVIDER: &str = "openai";

/// What of its configuration says whom it asks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexConfig {
    openai_base_url: Option<String>,
    model_providers: BTreeMap<String, ProviderTable>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProviderTable {
    base_url: Option<String>,
}

/// How it is logged in; no key is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexLogin {
    tokens: Option<IgnoredAny>,
    #[serde(rename = "OPENAI_API_KEY")]
    key: Option<IgnoredAny>,
}

/// Returns the servers that Codex would ask.
pub(super) fn upstream_wishes() -> Result<Vec<UpstreamWish>, Failure> {
    let Some(folder) = settings_folder() else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(folder.join("config.toml")).unwrap_or_default();
    let config: CodexConfig = toml::from_str(&text).map_err(|error| {
        let message = format!("cannot read {}", folder.join("config.toml").display());
        Failure::from_error(FailureCode::Usage, &error).with_context(&message)
    })?;
    let login = std::fs::read(folder.join("auth.json")).unwrap_or_default();
    let login: CodexLogin = serde_json::from_slice(&login).unwrap_or_default();
    let has_key = std::env::var_os("CODEX_API_KEY").is_some() || login.key.is_some();
    let uses_account = login.tokens.is_some() && !has_key;
    Ok(wishes_of(config, uses_account.then_some(CHATGPT_URL)))
}

fn wishes_of(config: CodexConfig, login_url: Option<&str>) -> Vec<UpstreamWish> {
    let own = config.openai_base_url;
    let own = own.or_else(|| login_url.map(str::to_owned));
    let own = own.map(|url| (OWN_PROVIDER.to_owned(), url));
    let others = config.model_providers.into_iter();
    let others = others.filter_map(|(id, table)| Some((id, table.base_url?)));
    let named = own.into_iter().chain(others);
    // A name with a dot in it would be read as two.
    let named = named.filter(|(id, _)| {
        id.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    });
    let numbered = named
        .enumerate()
        .map(|(index, (id, url))| UpstreamWish::Named {
            id,
            name: format!("p{index}"),
            url,
        });
    numbered.collect()
}

fn settings_folder() -> Option<PathBuf> {
    let named = std::env::var_os("CODEX_HOME").filter(|folder| !folder.is_empty());
    let home = || std::env::home_dir().map(|home| home.join(".codex"));
    named.map(PathBuf::from).or_else(home)
}

/// Returns the arguments that lead Codex to the gateway at `url`.
pub(super) fn arguments_for(url: &str, wishes: &[UpstreamWish]) -> Vec<String> {
    let mut own = format!("{url}/v1");
    let mut keys: Vec<(String, String)> = Vec::new();
    for wish in wishes {
        let UpstreamWish::Named { id, name, .. } = wish else {
            continue;
        };
        match id.as_str() {
            OWN_PROVIDER => own = format!("{url}/{name}"),
            id => keys.push((
                format!("model_providers.{id}.base_url"),
                format!("{url}/{name}"),
            )),
        }
    }
    keys.insert(0, ("openai_base_url".to_owned(), own));
    let arguments = keys.into_iter();
    arguments
        .flat_map(|(key, value)| ["-c".to_owned(), format!("{key}=\"{value}\"")])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(config: &str, login_url: Option<&str>) -> Vec<String> {
        let wishes = wishes_of(toml::from_str(config).unwrap(), login_url);
        let all = arguments_for("http://g/x", &wishes);
        all.into_iter()
            .filter(|argument| argument != "-c")
            .collect()
    }

    #[test]
    fn without_settings_it_asks_the_gateways_own_openai() {
        assert_eq!(arguments("", None), [r#"openai_base_url="http://g/x/v1""#]);
    }

    #[test]
    fn each_provider_of_its_settings_is_reached_through_the_gateway() {
        let config = "model_provider = \"local\"\n[model_providers.local]\nname = \"local\"\n\
                      base_url = \"http://127.0.0.1:1/v1\"\n[model_providers.bare]\nname = \"bare\"\n";
        assert_eq!(
            arguments(config, Some(CHATGPT_URL)),
            [
                r#"openai_base_url="http://g/x/p0""#,
                r#"model_providers.local.base_url="http://g/x/p1""#
            ]
        );
    }

    #[test]
    fn what_the_settings_say_counts_more_than_the_login() {
        let config: CodexConfig = toml::from_str("openai_base_url = \"https://relay/v1\"").unwrap();
        let wish = UpstreamWish::Named {
            id: OWN_PROVIDER.to_owned(),
            name: "p0".to_owned(),
            url: "https://relay/v1".to_owned(),
        };
        assert_eq!(wishes_of(config, Some(CHATGPT_URL)), [wish]);
    }
}
