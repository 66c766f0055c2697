//! What the command is made of: a bill of materials in the form of CycloneDX, and the licences that have to travel with
//! a binary.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Release;
use super::tarball::TarEntry;
use crate::dependencies::{cargo_metadata, text_field};
use crate::shell;

/// How files with licences begin.
const LICENCE_NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "copyright"];

/// What others contributed.
pub(super) struct ThirdParty {
    pub(super) sbom: Vec<u8>,
    licences: String,
}

/// Collects it for the command and a target.
pub(super) fn collect(release: &Release) -> Result<ThirdParty> {
    let metadata = cargo_metadata(&["--filter-platform", release.target.rust])?;
    let packages = used_packages(&metadata)?;
    let sbom = bill_of_materials(release, &metadata, &packages);
    Ok(ThirdParty {
        sbom: format!("{sbom:#}\n").into_bytes(),
        licences: licence_texts(&packages)?,
    })
}

impl ThirdParty {
    /// Returns the licences of ours and of others as files.
    pub(super) fn licence_entries(&self) -> Result<Vec<TarEntry>> {
        let root = shell::repo_root();
        let read = |name: &str| fs::read(root.join(name)).with_context(|| name.to_owned());
        Ok(vec![
            TarEntry::file("LICENSE", read("LICENSE")?),
            TarEntry::file("NOTICE", read("NOTICE")?),
            TarEntry::file("THIRD-PARTY.txt", self.licences.clone()),
        ])
    }
}

/// Returns the packages that end up in the command, by id: those that it reaches without builds and tests.
fn used_packages(metadata: &Value) -> Result<BTreeMap<String, &Value>> {
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned();
    let nodes = metadata
        .get("resolve")
        .and_then(|resolve| list(resolve, "nodes"));
    let nodes: BTreeMap<String, Value> = nodes
        .context("`cargo metadata` resolved nothing")?
        .into_iter()
        .map(|node| (text_field(&node, "id"), node))
        .collect();
    let packages = metadata.get("packages").and_then(Value::as_array);
    let packages: BTreeMap<String, &Value> = packages
        .into_iter()
        .flatten()
        .map(|package| (text_field(package, "id"), package))
        .collect();
    let first = packages
        .iter()
        .find(|(_, package)| text_field(package, "name") == "compactctl");
    let mut waiting: Vec<String> = first.map(|(id, _)| id.clone()).into_iter().collect();
    let mut used = BTreeMap::new();
    while let Some(id) = waiting.pop() {
        let Some(package) = packages.get(&id) else {
            continue;
        };
        if used.insert(id.clone(), *package).is_some() {
            continue;
        }
        let uses = nodes.get(&id).and_then(|node| list(node, "deps"));
        let uses = uses.unwrap_or_default();
        let linked = uses.iter().filter(|dependency| is_linked(dependency));
        waiting.extend(linked.map(|dependency| text_field(dependency, "pkg")));
    }
    Ok(used)
}

/// Returns whether a dependency is part of what runs.
fn is_linked(dependency: &Value) -> bool {
    let kinds = dependency.get("dep_kinds").and_then(Value::as_array);
    let mut kinds = kinds.into_iter().flatten();
    kinds.any(|kind| kind.get("kind").is_none_or(Value::is_null))
}

fn bill_of_materials(
    release: &Release,
    metadata: &Value,
    packages: &BTreeMap<String, &Value>,
) -> Value {
    let components = packages.values().map(|package| component(package));
    let nodes = metadata.pointer("/resolve/nodes").and_then(Value::as_array);
    let nodes = nodes.into_iter().flatten();
    let edges = nodes.filter_map(|node| {
        let package = packages.get(&text_field(node, "id"))?;
        let uses = node.get("dependencies").and_then(Value::as_array);
        let uses = uses.into_iter().flatten().filter_map(Value::as_str);
        let uses: BTreeSet<String> = uses
            .filter_map(|id| packages.get(id).map(|package| package_url(package)))
            .collect();
        Some(json!({ "ref": package_url(package), "dependsOn": uses }))
    });
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "compactctl",
                "version": release.version,
                "bom-ref": format!("compactctl-{}", release.target.rust),
            },
            "properties": [{ "name": "target", "value": release.target.rust }],
        },
        "components": components.collect::<Vec<_>>(),
        "dependencies": edges.collect::<Vec<_>>(),
    })
}

fn component(package: &Value) -> Value {
    let licence = text_field(package, "license").replace('/', " OR ");
    json!({
        "type": "library",
        "bom-ref": package_url(package),
        "name": text_field(package, "name"),
        "version": text_field(package, "version"),
        "purl": package_url(package),
        "licenses": [{ "expression": licence }],
    })
}

fn package_url(package: &Value) -> String {
    let (name, version) = (text_field(package, "name"), text_field(package, "version"));
    format!("pkg:cargo/{name}@{version}")
}

/// Returns every text of a licence once, under the names of the packages that come with it.
fn licence_texts(packages: &BTreeMap<String, &Value>) -> Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages.values() {
        if text_field(package, "source").is_empty() {
            continue;
        }
        let name = format!(
            "{} {}",
            text_field(package, "name"),
            text_field(package, "version")
        );
        let manifest = text_field(package, "manifest_path");
        let folder = Path::new(&manifest)
            .parent()
            .context("a manifest in no folder")?;
        let found = read_licences(folder)?;
        if found.is_empty() {
            let words = format!(
                "(no text; its manifest says {})",
                text_field(package, "license")
            );
            texts.entry(words).or_default().insert(name.clone());
        }
        for text in found {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    let sections = texts.into_iter().map(|(text, names)| {
        let names: Vec<String> = names.into_iter().collect();
        format!("{}\n{}\n\n{text}\n", "=".repeat(80), names.join(", "))
    });
    Ok(format!(
        "compactctl contains these packages under these licences.\n\n{}",
        sections.collect::<String>()
    ))
}

fn read_licences(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_licence = LICENCE_NAMES.iter().any(|start| name.starts_with(start));
        if is_licence && entry.path().is_file() {
            let text = fs::read(entry.path())?;
            texts.push(String::from_utf8_lossy(&text).trim().to_owned());
        }
    }
    Ok(texts)
}
