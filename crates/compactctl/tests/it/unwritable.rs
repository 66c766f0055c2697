//! Reading where nothing can be written: a mount that is read-only, and a disk that is full.

use std::process::Command;

use crate::place::{Place, Run, claude};

/// Closes the store to writing.
const READ_ONLY: &str = r#"mount --bind "$STORE" "$STORE" && mount -o remount,bind,ro "$STORE""#;

/// Moves the store to a disk without a byte left.
const FULL: &str = r#"mkdir -p "$FULL" && mount -t tmpfs -o size=8m tmpfs "$FULL" \
    && cp -a "$STORE/." "$FULL" && export COMPACT_STORAGE_PATH="$FULL" TMPDIR="$FULL" \
    && { cat /dev/zero > "$FULL/filler" 2>/dev/null || true; } \
    && ! { echo x > "$FULL/more"; } 2>/dev/null || rm "$FULL/more""#;

/// How a shell gets mounts of its own.
fn namespace() -> Option<[&'static str; 2]> {
    let tries = [["unshare", "-m"], ["unshare", "-rm"]];
    let works = |[program, flag]: &[&str; 2]| {
        let mut command = Command::new(program);
        let tried = command.args([flag, "mount", "-t", "tmpfs", "t", "/mnt"]);
        tried.output().is_ok_and(|output| output.status.success())
    };
    let found = tries.into_iter().find(works);
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "no mount can be made here"
        );
        eprintln!("skipped: no mount can be made here, neither as root nor in a user's namespace");
    }
    found
}

fn run_on(place: &Place, namespace: [&str; 2], medium: &str, arguments: &[&str]) -> Run {
    let script = format!("{medium} || exit 99; exec \"$0\" \"$@\"");
    let inner = place.command(arguments);
    let mut command = Command::new(namespace[0]);
    command
        .args([namespace[1], "sh", "-c", &script])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(place.path(""))
        .env("STORE", place.store())
        .env("FULL", place.path("full"))
        .env("HOME", place.path("home"))
        .env("COMPACT_STORAGE_PATH", place.store());
    Run::of(&mut command)
}

fn compacted() -> (Place, String) {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    let made = place.json(&["compact", "s.jsonl", "--budget", "1800", "--session", "s"]);
    let receipt = made["receipt_id"].as_str().unwrap().to_owned();
    (place, receipt)
}

#[test]
fn reading_needs_no_writing() {
    let Some(namespace) = namespace() else { return };
    let (place, receipt) = compacted();
    let pointer = format!("{}#3", &receipt[..12]);
    let commands: [&[&str]; 8] = [
        &["restore", &receipt],
        &["restore", "s"],
        &["verify", &receipt, "--json"],
        &["recall", "handler", "--json"],
        &["archive", "list"],
        &["archive", "show", "s", "--json"],
        &["remember", "s", "--json"],
        &["expand", &pointer, "--json"],
    ];
    // Before the index was made, and after.
    for _ in 0..2 {
        let known: Vec<Run> = commands.iter().map(|command| place.run(command)).collect();
        for medium in [READ_ONLY, FULL] {
            for (command, known) in commands.iter().zip(&known) {
                let run = run_on(&place, namespace, medium, command);
                assert_eq!(run.code, 0, "{medium} {command:?}: {}", run.stderr);
                if medium == READ_ONLY {
                    assert_eq!(run.text(), known.text(), "{command:?}");
                }
            }
            let checked = run_on(&place, namespace, medium, &["archive", "verify", "--json"]);
            assert_eq!(
                checked.code,
                0,
                "{medium}: {} {}",
                checked.text(),
                checked.stderr
            );
        }
        let _ = std::fs::remove_file(place.store().join("recall.db"));
    }
}

/// An index that lags behind is searched as far as it goes, and that is said.
#[test]
fn an_index_that_cannot_follow_says_so() {
    let Some(namespace) = namespace() else { return };
    let (place, _) = compacted();
    place.run(&["recall", "handler"]).ok();
    std::fs::copy(place.store().join("recall.db"), place.path("old.db")).unwrap();
    place.write("t.jsonl", crate::place::lines(0..30));
    place
        .run(&[
            "compact",
            "t.jsonl",
            "--budget",
            "1500",
            "--session",
            "t",
            "-q",
        ])
        .ok();
    place.run(&["recall", "handler"]).ok();
    std::fs::copy(place.path("old.db"), place.store().join("recall.db")).unwrap();
    for medium in [READ_ONLY, FULL] {
        let run = run_on(&place, namespace, medium, &["recall", "handler", "--json"]).ok();
        assert_eq!(run.json()["sessions_not_indexed"], 1, "{}", run.text());
        let told = run_on(&place, namespace, medium, &["recall", "handler"]).ok();
        assert!(
            told.stderr.contains("the index is not up to date")
                || told.text().contains("the index is not up to date")
        );
    }
}

/// A process that was killed left a log beside the catalog: what it says counts.
#[test]
fn a_log_that_was_left_is_read() {
    let Some(namespace) = namespace() else { return };
    let (place, receipt) = compacted();
    let (file, log) = (
        place.store().join("catalog.db"),
        place.store().join("catalog.db-wal"),
    );
    let holder = rusqlite::Connection::open(&file).unwrap();
    holder
        .execute_batch("UPDATE sessions SET name = 'renamed'")
        .unwrap();
    let kept: Vec<_> = ["catalog.db", "catalog.db-wal", "catalog.db-shm"]
        .map(|name| (name, std::fs::read(place.store().join(name)).unwrap()))
        .into();
    drop(holder);
    for (name, bytes) in kept {
        std::fs::write(place.store().join(name), bytes).unwrap();
    }
    assert!(std::fs::metadata(log).unwrap().len() > 0);
    for medium in [READ_ONLY, FULL] {
        let run = run_on(&place, namespace, medium, &["restore", "renamed"]);
        assert_eq!(run.code, 0, "{medium}: {}", run.stderr);
        run_on(&place, namespace, medium, &["restore", &receipt]).ok();
    }
}
