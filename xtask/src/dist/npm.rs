//! The package for npm: the command itself, so that nothing is fetched or run when it is installed.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::Release;
use super::binary::BuiltCommand;
use super::tarball::{TarEntry, compress, pack_tar};
use super::third_party::ThirdParty;

/// Makes the package.
pub(super) fn make(
    release: &Release,
    command: &BuiltCommand,
    third_party: &ThirdParty,
) -> Result<PathBuf> {
    let manifest = json!({
        "name": "compactctl",
        "version": release.version,
        "description": "Keeps a long-running LLM agent inside its context window without losing what matters",
        "license": "MIT",
        "repository": "github:compact-engine/compact",
        "bin": { "compactctl": "bin/compactctl" },
        "os": ["linux"],
        "cpu": [release.target.npm],
        "files": ["bin", "LICENSE", "NOTICE", "THIRD-PARTY.txt"],
    });
    let readme = "# compactctl\n\nKeeps a long-running LLM agent inside its context window without losing what matters: \
        <https://github.com/compact-engine/compact>.\n\n`npx compactctl doctor` checks the installation.\n";
    let mut entries = vec![
        TarEntry::file("package.json", format!("{manifest:#}\n")),
        TarEntry::file("README.md", readme),
        TarEntry::program("bin/compactctl", command.bytes.clone()),
    ];
    entries.extend(third_party.licence_entries()?);
    let entries = entries.into_iter().map(|entry| entry.below("package"));
    let entries: Vec<TarEntry> = entries.collect();
    let archive = compress(&pack_tar(&entries, release.date)?)?;
    release.write(&format!("npm-linux-{}.tgz", release.target.npm), &archive)
}
