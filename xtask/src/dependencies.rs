//! Declared dependencies that no source of the crate names.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell;

/// A crate of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// What a crate declares.
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// The name in the source, when the manifest renames it.
    rename: Option<String>,
    pub(crate) only_tests: bool,
}

/// Fails when a crate declares what it does not use.
pub(crate) fn check() -> Result<String> {
    let packages = workspace_packages()?;
    let mut count = 0;
    let mut unused = Vec::new();
    for package in &packages {
        let mut source = String::new();
        read_sources(&package.folder, &mut source)?;
        for dependency in &package.dependencies {
            count += 1;
            if !names_crate(&source, &dependency.source_name()) {
                unused.push(format!("{} does not use {}", package.name, dependency.name));
            }
        }
    }
    if !unused.is_empty() {
        bail!(
            "remove from the manifest what is not used\n  {}",
            unused.join("\n  ")
        );
    }
    Ok(format!("all {count} declared dependencies are used"))
}

/// Returns whether a source names a path of a crate, as in `use serde::Deserialize`.
fn names_crate(source: &str, crate_name: &str) -> bool {
    let path = format!("{crate_name}::");
    source.match_indices(&path).any(|(at, _)| {
        let before = source.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

impl Dependency {
    fn source_name(&self) -> String {
        self.rename.as_ref().unwrap_or(&self.name).replace('-', "_")
    }
}

/// Returns the crates of the workspace.
pub(crate) fn workspace_packages() -> Result<Vec<Package>> {
    let metadata = cargo_metadata(&["--no-deps"])?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    Ok(packages.into_iter().flatten().map(parse_package).collect())
}

/// Returns what `cargo metadata` says.
pub(crate) fn cargo_metadata(more: &[&str]) -> Result<Value> {
    let arguments = [&["metadata", "--format-version", "1", "--locked"], more].concat();
    let text = shell::output("cargo", &arguments)?;
    serde_json::from_str(&text).context("`cargo metadata` printed something else than JSON")
}

fn parse_package(value: &Value) -> Package {
    let dependencies = value.get("dependencies").and_then(Value::as_array);
    let manifest = PathBuf::from(text_field(value, "manifest_path"));
    Package {
        name: text_field(value, "name"),
        folder: manifest.parent().map(Path::to_owned).unwrap_or_default(),
        dependencies: dependencies
            .into_iter()
            .flatten()
            .map(|dependency| Dependency {
                name: text_field(dependency, "name"),
                rename: dependency
                    .get("rename")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                only_tests: dependency.get("kind").and_then(Value::as_str) == Some("dev"),
            })
            .collect(),
    }
}

/// Returns a text field, empty when it is absent.
pub(crate) fn text_field(value: &Value, field: &str) -> String {
    value
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn read_sources(folder: &Path, out: &mut String) -> Result<()> {
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            read_sources(&path, out)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push_str(&std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::names_crate;

    #[test]
    fn a_path_names_its_crate_and_a_longer_name_does_not() {
        assert!(names_crate("use serde::Deserialize;", "serde"));
        assert!(names_crate("#[tokio::test]", "tokio"));
        assert!(!names_crate("use my_serde::Deserialize; // serde", "serde"));
        assert!(!names_crate("", "serde"));
    }
}
