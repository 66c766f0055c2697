//! The package for Debian and its kin. The command is static, so it depends on nothing.

use std::path::PathBuf;

use anyhow::Result;

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
    let mut entries = command.system_entries();
    let licences = third_party.licence_entries()?;
    let documents = "usr/share/doc/compactctl";
    entries.extend(licences.into_iter().map(|entry| entry.below(documents)));
    let kilobytes = command.bytes.len().div_ceil(1024);
    let control = TarEntry::file("control", control_text(release, kilobytes));
    let parts = [
        ("debian-binary", b"2.0\n".to_vec()),
        (
            "control.tar.gz",
            compress(&pack_tar(&[control], release.date)?)?,
        ),
        ("data.tar.gz", compress(&pack_tar(&entries, release.date)?)?),
    ];
    release.write(
        &format!("{}.deb", release.target.debian),
        &pack_ar(&parts, release.date)?,
    )
}

fn control_text(release: &Release, kilobytes: usize) -> String {
    let Release {
        version, target, ..
    } = release;
    let architecture = target.debian;
    format!(
        "Package: compactctl\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The Compact developers <compact-engine@users.noreply.github.com>\n\
         Installed-Size: {kilobytes}\n\
         Section: utils\n\
         Priority: optional\n\
         Homepage: https://github.com/compact-engine/compact\n\
         Description: keeps a long-running LLM agent inside its context window\n \
         Compacts transcripts of agents into smaller views that are verified and\n \
         reversible, archives the originals, and searches them.\n"
    )
}

fn pack_ar(parts: &[(&str, Vec<u8>)], date: u64) -> Result<Vec<u8>> {
    let mut builder = ar::Builder::new(Vec::new());
    for (name, content) in parts {
        let mut header = ar::Header::new(name.as_bytes().to_vec(), content.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime(date);
        builder.append(&header, content.as_slice())?;
    }
    Ok(builder.into_inner()?)
}
