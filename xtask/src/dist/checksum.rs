//! Hashes, and the list of them that people check downloads with.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::Release;

/// Returns the hash of bytes in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes `SHA256SUMS` beside the artifacts, in the form that `sha256sum -c` reads.
pub(super) fn write(release: &Release, artifacts: &[PathBuf]) -> Result<()> {
    let mut lines = Vec::new();
    for path in artifacts {
        let name = path.file_name().context("an artifact has no name")?;
        let bytes = fs::read(path)?;
        lines.push(format!("{}  {}\n", sha256(&bytes), name.to_string_lossy()));
    }
    lines.sort_by(|a, b| a.get(64..).cmp(&b.get(64..)));
    print!("{}", lines.concat());
    fs::write(release.folder.join("SHA256SUMS"), lines.concat()).context("SHA256SUMS")
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn the_hash_is_the_one_that_everybody_computes() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), known);
    }
}
