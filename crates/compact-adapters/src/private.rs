//! Files and directories that only their owner can read, whatever the umask says.
//!
//! A directory that was there before is its owner's business and stays as it is. On systems
//! without Unix permissions the platform's defaults apply.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// What a new directory in a working tree is given: what it holds is nobody else's.
const IGNORE_ALL: &str =
    "# Written by Compact: conversations do not belong into version control.\n*\n";

/// Creates a directory and what is missing above it, each 0700 and on disk before this returns. In a
/// working tree of Git the highest of them is ignored.
pub fn create_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let is_highest = parent.is_none_or(Path::is_dir);
    if let Some(parent) = parent {
        create_dir(parent)?;
    }
    match new_dir().create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            restrict_to_owner(path, PathKind::Dir)?;
            if is_highest && is_in_working_tree(path) {
                fs::write(path.join(".gitignore"), IGNORE_ALL)?;
            }
            parent.map_or(Ok(()), sync_dir)
        }
    }
}

/// One that nobody else can look into, not even for a moment.
fn new_dir() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn is_in_working_tree(path: &Path) -> bool {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.ancestors().any(|folder| folder.join(".git").exists())
}

/// The kind of a path, which decides its permissions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    File,
    Dir,
}

/// Takes every right from everyone but the owner.
#[cfg(unix)]
pub(crate) fn restrict_to_owner(path: &Path, kind: PathKind) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let wanted = match kind {
        PathKind::File => 0o600,
        PathKind::Dir => 0o700,
    };
    if fs::metadata(path)?.permissions().mode() & 0o777 == wanted {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(wanted))
}

/// Takes every right from everyone but the owner.
#[cfg(not(unix))]
pub(crate) fn restrict_to_owner(_path: &Path, _kind: PathKind) -> io::Result<()> {
    Ok(())
}

/// Opens a file that nobody else may read, not even for a moment when it is new.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let file = options.open(path)?;
    restrict_to_owner(path, PathKind::File)?;
    Ok(file)
}

/// Makes a new name in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_created_in_a_working_tree_is_ignored_there() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, plain) = (folder.path().join("tree"), folder.path().join("plain"));
        for place in [&tree, &plain] {
            fs::create_dir(place).unwrap();
        }
        fs::create_dir(tree.join(".git")).unwrap();
        for place in [&tree, &plain] {
            create_dir(&place.join(".compact/archive/packs")).unwrap();
        }
        let ignores = [
            tree.join(".compact/.gitignore"),
            tree.join(".compact/archive/.gitignore"),
            plain.join(".compact/.gitignore"),
        ];
        let found = ignores.map(|file| fs::read_to_string(file).ok());
        assert_eq!(found, [Some(IGNORE_ALL.to_owned()), None, None]);
    }

    /// Permissions are a matter of the process, so the tests that look at them run in new ones.
    #[test]
    fn no_umask_opens_or_breaks_a_store() {
        let this = std::env::current_exe().unwrap();
        for umask in ["000", "022", "077"] {
            let run = Command::new("sh")
                .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")])
                .arg(&this)
                .arg("owner_only")
                .output()
                .unwrap();
            let output = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success(), "umask {umask}: {output}");
            assert!(output.contains("4 passed"), "umask {umask}: {output}");
        }
    }
}
