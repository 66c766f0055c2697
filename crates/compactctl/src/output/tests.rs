use std::time::{Duration, SystemTime};

use super::*;

#[test]
fn what_killed_processes_left_goes_with_the_next_file() {
    let folder = tempfile::tempdir().unwrap();
    let [old, fresh] = [".compactctl-aB3xYz", ".compactctl-Zz9900"]
        .map(|name| folder.path().join(name))
        .map(|path| (File::create(&path).unwrap(), path));
    let two_days = Duration::from_secs(2 * 24 * 60 * 60);
    old.0.set_modified(SystemTime::now() - two_days).unwrap();
    let target = OutputTarget::open(&folder.path().join("view.jsonl"), None).unwrap();
    assert!(!old.1.exists());
    assert!(fresh.1.exists(), "somebody may be at work");
    assert_eq!(target.write(b"a view".to_vec()).unwrap(), None);
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, [".compactctl-Zz9900", "view.jsonl"]);
}
