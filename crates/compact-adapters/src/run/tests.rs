use super::*;
use compact_runtime::restart::NextStep;

fn saved(run_id: &str) -> SavedRun {
    SavedRun {
        command: "claude".to_owned(),
        arguments: vec!["--model".to_owned(), "m".to_owned()],
        folder: "/somewhere".into(),
        judged: RunLimits {
            threshold: Some(0.7),
            ..RunLimits::default()
        },
        state: RunState {
            next: NextStep::Resume {
                session_id: "s".to_owned(),
            },
            ..RunState::new(run_id, "the task")
        },
    }
}

#[test]
fn a_run_is_read_back_as_it_was_left() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(root.path(), "r1").unwrap();
    folder.save_state(&saved("r0")).unwrap();
    folder.save_state(&saved("r1")).unwrap();
    for (session, line) in [(1, "a"), (1, "b"), (2, "c"), (1, "d")] {
        folder.append_session_line(session, line).unwrap();
    }
    folder.append_event("{}").unwrap();
    let path = folder.path().to_owned();
    drop(folder);
    let (_folder, read) = RunFolder::open(root.path(), "r1").unwrap();
    assert_eq!(read, saved("r1"));
    let text = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    assert_eq!(text("session-001.jsonl"), "a\nb\nd\n");
    assert_eq!(text("session-002.jsonl"), "c\n");
    assert_eq!(text("events.jsonl"), "{}\n");
}

#[test]
fn a_run_has_one_driver_and_one_name() {
    let root = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(root.path(), "../odd name").unwrap();
    assert!(folder.path().starts_with(root.path().join("runs")));
    folder.save_state(&saved("../odd name")).unwrap();
    let again = RunFolder::create(root.path(), "../odd name").unwrap_err();
    assert!(matches!(again, RunFolderError::Exists(_)), "{again}");
    let busy = RunFolder::open(root.path(), "../odd name").unwrap_err();
    assert!(matches!(busy, RunFolderError::Busy(_)), "{busy}");
    let missing = RunFolder::open(root.path(), "other")
        .unwrap_err()
        .to_string();
    assert!(
        missing.starts_with("there is no run 'other'; the latest are "),
        "{missing}"
    );
    let none = RunFolder::open(tempfile::tempdir().unwrap().path(), "other").unwrap_err();
    assert_eq!(
        none.to_string(),
        "there is no run 'other'; none was started yet"
    );
}

#[test]
fn a_broken_state_names_its_file() {
    let root = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(root.path(), "r").unwrap();
    fs::write(folder.path().join("state.json"), "{").unwrap();
    drop(folder);
    let error = RunFolder::open(root.path(), "r").unwrap_err().to_string();
    assert!(error.contains("state.json cannot be read"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_run_is_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(root.path(), "r").unwrap();
    folder.save_state(&saved("r")).unwrap();
    folder.append_session_line(1, "x").unwrap();
    folder.append_event("{}").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.path()), 0o700);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}
