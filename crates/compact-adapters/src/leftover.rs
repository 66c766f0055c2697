//! Files that were staged by processes which were killed before they gave them their names.
//!
//! Whoever stages a file beside its place also takes away what others left there. Only regular files of
//! the same owner go, under a name that the caller knows as its own, and only after a day.

#[cfg(test)]
mod tests;

use std::fs::{self, Metadata};
use std::path::Path;
use std::time::Duration;

/// Nobody writes one file for so long.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// How many letters and digits `tempfile` puts behind a prefix.
const RANDOM_LETTERS: usize = 6;

/// Removes the abandoned files of a folder whose names are those of staged files. One that cannot be removed
/// is left for the next time.
pub fn remove_leftovers(folder: &Path, is_staged: impl Fn(&str) -> bool) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        if file.file_name().to_str().is_some_and(&is_staged) {
            remove_if_abandoned(&file.path());
        }
    }
}

/// Removes a file of ours that nobody has written for a day.
pub fn remove_if_abandoned(file: &Path) {
    if fs::symlink_metadata(file).is_ok_and(|found| is_abandoned(&found)) {
        let _ = fs::remove_file(file);
    }
}

/// Whether a name is what `tempfile` makes of a prefix.
pub fn is_staged_name(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|random| {
        random.len() == RANDOM_LETTERS && random.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

fn is_abandoned(found: &Metadata) -> bool {
    let age = found.modified().ok().and_then(|at| at.elapsed().ok());
    found.is_file() && is_own(found) && age.is_some_and(|age| age > ABANDONED)
}

#[cfg(unix)]
fn is_own(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_: &Metadata) -> bool {
    true
}
