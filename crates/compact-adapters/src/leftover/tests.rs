use std::collections::BTreeSet;
use std::time::SystemTime;

use super::*;

#[test]
fn only_old_files_under_a_name_of_ours_go() {
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let hours = |n: u64| now - Duration::from_secs(n * 60 * 60);
    let files = [
        (".ours-aB3xYz", hours(25)),
        (".ours-Zz9900", hours(23)),
        (".ours-a-copy", hours(25)),
        (".ours-aB3xYz2", hours(25)),
        ("ours-aB3xYz", hours(25)),
        (".theirs-aB3xYz", hours(25)),
    ];
    for (name, modified) in files {
        let file = fs::File::create(folder.path().join(name)).unwrap();
        file.set_modified(modified).unwrap();
    }
    remove_leftovers(folder.path(), |name| is_staged_name(name, ".ours-"));
    let left: BTreeSet<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let kept = files.iter().skip(1).map(|(name, _)| (*name).to_owned());
    assert_eq!(left, kept.collect());
}

#[cfg(unix)]
#[test]
fn a_link_and_a_folder_stay() {
    let folder = tempfile::tempdir().unwrap();
    let [link, inner] = [".ours-link00", ".ours-folder"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    fs::create_dir(&inner).unwrap();
    let old = SystemTime::now() - 2 * ABANDONED;
    fs::File::open(&inner).unwrap().set_modified(old).unwrap();
    remove_leftovers(folder.path(), |name| is_staged_name(name, ".ours-"));
    assert!(fs::symlink_metadata(link).is_ok() && inner.is_dir());
}

#[test]
fn the_names_that_tempfile_makes_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let staged = tempfile::NamedTempFile::with_prefix_in(".ours-", folder.path()).unwrap();
    let name = staged.path().file_name().unwrap().to_str().unwrap();
    assert!(is_staged_name(name, ".ours-"), "{name}");
}
