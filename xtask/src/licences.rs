//! Licences of everything we build on, and known advisories, by `deny.toml`.
//!
//! With `cargo-deny` installed it decides. It takes many minutes to compile, so without it the
//! licences are checked here against the same allow list; advisories and bans then go unchecked, and
//! the result says so.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::dependencies::{cargo_metadata, text_field};
use crate::shell;

/// Fails on a licence that `deny.toml` does not allow.
pub(crate) fn check() -> Result<String> {
    if shell::run_succeeds("cargo", &["deny", "--version"]) {
        return by_cargo_deny();
    }
    let allowed = allow_list()?;
    let metadata = cargo_metadata(&[])?;
    let packages: Vec<&Value> = metadata
        .get("packages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| {
            !is_allowed(&text_field(package, "license"), &allowed) || !is_registered(package)
        })
        .map(|package| {
            format!(
                "{} {}: {:?}",
                text_field(package, "name"),
                text_field(package, "version"),
                text_field(package, "license")
            )
        })
        .collect();
    if !refused.is_empty() {
        bail!(
            "licences or sources that deny.toml does not allow\n  {}",
            refused.join("\n  ")
        );
    }
    Ok(format!(
        "{} packages have allowed licences and sources (own check; cargo-deny is not installed, so advisories and bans were not checked)",
        packages.len()
    ))
}

/// Returns whether a package comes from the public registry; our own crates have no source.
fn is_registered(package: &Value) -> bool {
    let source = text_field(package, "source");
    source.is_empty() || source.starts_with("registry+https://github.com/rust-lang/crates.io-index")
}

fn by_cargo_deny() -> Result<String> {
    shell::run("cargo", &["deny", "check", "licenses", "bans", "sources"])?;
    if shell::run_succeeds("cargo", &["deny", "fetch", "db"]) {
        shell::run("cargo", &["deny", "check", "advisories"])?;
        return Ok("cargo-deny accepts licences, bans, sources and advisories".into());
    }
    Ok("cargo-deny accepts licences, bans and sources (advisories were skipped: their database cannot be fetched)".into())
}

/// Returns the quoted names of `allow = [ … ]` under `[licenses]`.
fn allow_list() -> Result<Vec<String>> {
    let path = shell::repo_root().join("deny.toml");
    let file = std::fs::read_to_string(&path).context("could not read deny.toml")?;
    let (_, after) = file
        .split_once("[licenses]")
        .context("deny.toml has no [licenses]")?;
    let list = after
        .split_once("allow = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(list, _)| list)
        .context("deny.toml has no licenses.allow")?;
    Ok(list
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect())
}

/// Returns whether an SPDX expression can be satisfied: one side of `OR`, every part of `AND`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let mut tokens = split_tokens(expression).into_iter().peekable();
    !expression.is_empty() && any_of(&mut tokens, allowed) && tokens.peek().is_none()
}

type LicenceTokens = std::iter::Peekable<std::vec::IntoIter<String>>;

fn split_tokens(expression: &str) -> Vec<String> {
    // `MIT/Apache-2.0` is how old manifests write `OR`.
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    spaced
        .replace(" WITH ", "+WITH+")
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

fn any_of(tokens: &mut LicenceTokens, allowed: &[String]) -> bool {
    let mut satisfied = all_of(tokens, allowed);
    while tokens.next_if(|token| token == "OR").is_some() {
        satisfied |= all_of(tokens, allowed);
    }
    satisfied
}

fn all_of(tokens: &mut LicenceTokens, allowed: &[String]) -> bool {
    let mut satisfied = is_one_allowed(tokens, allowed);
    while tokens.next_if(|token| token == "AND").is_some() {
        satisfied &= is_one_allowed(tokens, allowed);
    }
    satisfied
}

fn is_one_allowed(tokens: &mut LicenceTokens, allowed: &[String]) -> bool {
    if tokens.next_if(|token| token == "(").is_some() {
        let satisfied = any_of(tokens, allowed);
        return tokens.next_if(|token| token == ")").is_some() && satisfied;
    }
    let name = tokens
        .next()
        .unwrap_or_default()
        .replace("+WITH+", " WITH ");
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_needs_one_side_of_or_and_every_part_of_and() {
        let allowed = [
            "MIT".to_owned(),
            "Apache-2.0 WITH LLVM-exception".to_owned(),
        ];
        let cases = [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND Zlib", false),
            ("(GPL-3.0 OR MIT) AND MIT", true),
            ("(GPL-3.0 OR Zlib) AND MIT", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("", false),
            ("MIT)", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }
}
