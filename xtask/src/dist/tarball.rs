//! Archives whose bytes depend on their content alone, and the archive for people who want the command in a folder.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::Release;
use super::binary::BuiltCommand;
use super::third_party::ThirdParty;

/// Something in an archive.
#[derive(Clone)]
pub(super) struct TarEntry {
    path: String,
    mode: u32,
    /// `None` for a folder.
    content: Option<Vec<u8>>,
    /// The user and group that own it.
    owner: u64,
}

impl TarEntry {
    /// Returns a file that all may read.
    pub(super) fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> TarEntry {
        TarEntry {
            path: path.into(),
            mode: 0o644,
            content: Some(content.into()),
            owner: 0,
        }
    }

    /// Returns a file that all may run.
    pub(super) fn program(path: impl Into<String>, content: Vec<u8>) -> TarEntry {
        TarEntry {
            mode: 0o755,
            ..TarEntry::file(path, content)
        }
    }

    /// Returns an empty folder.
    pub(super) fn folder(path: impl Into<String>, mode: u32, owner: u64) -> TarEntry {
        TarEntry {
            path: path.into(),
            mode,
            content: None,
            owner,
        }
    }

    /// Returns the same below a folder.
    pub(super) fn below(self, folder: &str) -> TarEntry {
        TarEntry {
            path: format!("{folder}/{}", self.path),
            ..self
        }
    }
}

/// Returns a tar archive of the entries, with the folders that lead to them.
pub(super) fn pack_tar(entries: &[TarEntry], date: u64) -> Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let given: BTreeSet<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    let mut folders = BTreeSet::new();
    for entry in entries {
        let above = Path::new(&entry.path).ancestors().skip(1);
        let above = above.filter_map(Path::to_str);
        folders.extend(above.filter(|path| !path.is_empty() && !given.contains(path)));
    }
    for path in folders {
        append_entry(&mut builder, &TarEntry::folder(path, 0o755, 0), date)?;
    }
    for entry in entries {
        append_entry(&mut builder, entry, date)?;
    }
    Ok(builder.into_inner()?)
}

fn append_entry(builder: &mut Builder<Vec<u8>>, entry: &TarEntry, date: u64) -> Result<()> {
    let content = entry.content.as_deref().unwrap_or_default();
    let mut header = Header::new_gnu();
    header.set_mode(entry.mode);
    header.set_mtime(date);
    header.set_uid(entry.owner);
    header.set_gid(entry.owner);
    header.set_size(content.len() as u64);
    let path = match entry.content {
        Some(_) => entry.path.clone(),
        None => {
            header.set_entry_type(EntryType::Directory);
            format!("{}/", entry.path)
        }
    };
    builder.append_data(&mut header, path, content)?;
    Ok(())
}

/// Returns bytes compressed, without a name or a date.
pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Makes the archive with the command, its texts and the licences.
pub(super) fn make(
    release: &Release,
    command: &BuiltCommand,
    third_party: &ThirdParty,
) -> Result<PathBuf> {
    let target = release.target.rust;
    let folder = format!("compactctl-{}-{target}", release.version);
    let mut entries = vec![TarEntry::program("compactctl", command.bytes.clone())];
    let texts = command.texts.iter();
    entries
        .extend(texts.map(|(place, text)| TarEntry::file(format!("share/{place}"), text.clone())));
    entries.extend(third_party.licence_entries()?);
    let entries = entries.into_iter().map(|entry| entry.below(&folder));
    let entries: Vec<TarEntry> = entries.collect();
    let archive = compress(&pack_tar(&entries, release.date)?)?;
    release.write(&format!("{target}.tar.gz"), &archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_every_folder_once_and_the_same_bytes_each_time() {
        let entries = [
            TarEntry::program("usr/bin/a", b"run".to_vec()),
            TarEntry::file("usr/share/b", "text"),
            TarEntry::folder("data", 0o700, 65_532),
        ];
        let bytes = pack_tar(&entries, 86_400).unwrap();
        assert_eq!(bytes, pack_tar(&entries, 86_400).unwrap());
        let mut archive = tar::Archive::new(bytes.as_slice());
        let found: Vec<(String, u32, u64, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = entry.path().unwrap().display().to_string();
                let mode = header.mode().unwrap();
                (path, mode, header.uid().unwrap(), header.mtime().unwrap())
            })
            .collect();
        let row = |path: &str, mode, owner| (path.to_owned(), mode, owner, 86_400);
        let expected = [
            row("usr/", 0o755, 0),
            row("usr/bin/", 0o755, 0),
            row("usr/share/", 0o755, 0),
            row("usr/bin/a", 0o755, 0),
            row("usr/share/b", 0o644, 0),
            row("data/", 0o700, 65_532),
        ];
        assert_eq!(found, expected);
    }
}
