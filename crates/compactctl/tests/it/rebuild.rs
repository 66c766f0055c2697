//! The archive stands alone: a catalog that is gone is told, and made again from what the archive says.

use std::fs;

use serde_json::{Value, json};

use crate::place::{Place, Run, claude, lines};

/// What a store is configured to be.
const VARIANTS: [&[(&str, &str)]; 3] = [
    &[],
    &[
        ("COMPACT_STORAGE_ARCHIVE_KEY_ENV", "KEY"),
        (
            "KEY",
            "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        ),
    ],
    &[("COMPACT_REDACTION_SINKS_ARCHIVE", "true")],
];

struct Archive {
    place: Place,
    variables: &'static [(&'static str, &'static str)],
    receipts: Vec<String>,
}

impl Archive {
    /// Two sessions, one of them compacted three times, and what a hook left.
    fn new(variables: &'static [(&'static str, &'static str)]) -> Archive {
        let mut archive = Archive {
            place: Place::new(),
            variables,
            receipts: Vec::new(),
        };
        archive.place.write("chat.jsonl", lines(0..30));
        let chat = [
            "compact",
            "chat.jsonl",
            "--session",
            "chat",
            "--budget",
            "1500",
        ];
        archive.compact(&chat);
        for turns in [20, 24, 28] {
            archive.place.write("code.jsonl", claude(turns));
            archive.compact(&["compact", "code.jsonl", "--budget", "1800"]);
        }
        let hook = json!({
            "session_id": "hooked", "transcript_path": archive.place.path("chat.jsonl"),
            "cwd": archive.place.path(""), "hook_event_name": "PreCompact",
        });
        archive.feed(&["hook"], hook.to_string().as_bytes());
        archive.run(&["recall", "handler"]).ok();
        archive
    }

    fn compact(&mut self, arguments: &[&str]) {
        let made = self.run(&[arguments, &["--json", "-o", "view.jsonl"]].concat());
        let receipt = made.ok().json()["receipt_id"].as_str().unwrap().to_owned();
        self.receipts.push(receipt);
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let mut command = self.place.command(arguments);
        Run::of(command.envs(self.variables.iter().copied()))
    }

    fn feed(&self, arguments: &[&str], stdin: &[u8]) {
        self.place.write("payload.json", stdin);
        let mut command = self.place.command(arguments);
        let stdin = fs::File::open(self.place.path("payload.json")).unwrap();
        Run::of(command.envs(self.variables.iter().copied()).stdin(stdin)).ok();
    }

    /// What every command says that looks into the store.
    fn everything(&self) -> Vec<(String, i32, String, String)> {
        let mut commands: Vec<Vec<&str>> = vec![
            vec!["archive", "list"],
            vec!["archive", "list", "--json"],
            vec!["archive", "verify"],
            vec!["archive", "verify", "--json"],
            vec!["recall", "handler", "--json"],
            vec!["recall", "parser", "--session", "hooked", "--json"],
        ];
        let names = ["chat", "5e551040-0000-4000-8000-000000000000", "hooked"];
        for name in names.into_iter().chain(self.receipts.iter().map(|r| &**r)) {
            commands.push(vec!["archive", "show", name, "--json"]);
            commands.push(vec!["restore", name]);
            commands.push(vec!["verify", name, "--json"]);
            commands.push(vec!["remember", name, "--json"]);
        }
        let told = commands.iter().map(|command| {
            let run = self.run(command);
            (command.join(" "), run.code, run.text(), run.stderr)
        });
        told.collect()
    }
}

/// A catalog that was begun anew beside an old archive.
fn empty(catalog: &std::path::Path) {
    let connection = rusqlite::Connection::open(catalog).unwrap();
    connection
        .execute_batch("DELETE FROM receipts; DELETE FROM sessions;")
        .unwrap();
}

#[test]
fn a_catalog_made_again_says_what_it_said() {
    for variables in VARIANTS {
        let archive = Archive::new(variables);
        let before = archive.everything();
        let (catalog, store) = (
            archive.place.store().join("catalog.db"),
            archive.place.store(),
        );
        let losses: [(&str, &dyn Fn()); 4] = [
            ("missing", &|| fs::remove_file(&catalog).unwrap()),
            ("empty", &|| fs::write(&catalog, "").unwrap()),
            ("emptied", &|| empty(&catalog)),
            ("damaged", &|| {
                fs::write(&catalog, "no database at all".repeat(500)).unwrap()
            }),
        ];
        // One way to lose it is enough where it is stored in another way.
        let ways = if variables.is_empty() { 4 } else { 1 };
        for (state, lose) in losses.into_iter().take(ways) {
            for name in ["catalog.db-wal", "catalog.db-shm"] {
                let _ = fs::remove_file(store.join(name));
            }
            lose();
            let checked = archive.run(&["archive", "verify", "--json"]);
            assert_eq!(checked.code, 5, "{state}: {}", checked.text());
            assert!(
                checked.text().contains("archive rebuild"),
                "{}",
                checked.text()
            );
            for command in [
                vec!["archive", "list"],
                vec!["restore", &archive.receipts[0]],
                vec!["verify", "chat"],
                vec!["remember", "chat"],
                vec!["recall", "handler"],
                vec!["compact", "chat.jsonl", "--budget", "1400"],
            ] {
                let run = archive.run(&command).failed(1);
                assert!(
                    run.stderr.contains("archive rebuild"),
                    "{command:?}: {}",
                    run.stderr
                );
                assert!(
                    run.stderr.contains(state.trim_end_matches("ied")),
                    "{command:?}: {}",
                    run.stderr
                );
            }
            let rebuilt = archive.run(&["archive", "rebuild", "--json"]).ok().json();
            let counts = ["sessions", "receipts", "added", "packs_unnamed"];
            assert_eq!(
                counts.map(|name| rebuilt[name].clone()),
                [2, 4, 4, 0].map(|n| json!(n))
            );
            assert_eq!(rebuilt["moved_aside"] != Value::Null, state == "damaged");
            let after = archive.everything();
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(before, after, "{state}");
            }
        }
        let again = archive.run(&["archive", "rebuild", "--json"]).ok().json();
        assert_eq!(again["added"], 0, "{again}");
    }
}

/// A catalog from an older backup lacks what came since.
#[test]
fn what_an_older_catalog_lacks_is_told_and_added() {
    let archive = Archive::new(&[]);
    let store = archive.place.store();
    fs::copy(store.join("catalog.db"), archive.place.path("backup.db")).unwrap();
    archive.place.write("late.jsonl", lines(40..80));
    let late = [
        "compact",
        "late.jsonl",
        "--session",
        "late",
        "--budget",
        "1500",
    ];
    archive
        .run(&[&late[..], &["-o", "view.jsonl"]].concat())
        .ok();
    fs::copy(archive.place.path("backup.db"), store.join("catalog.db")).unwrap();
    let checked = archive.run(&["archive", "verify", "--json"]);
    assert_eq!(checked.code, 5);
    let problem = &checked.json()["problems"][0]["message"];
    assert_eq!(
        problem.as_str().unwrap(),
        "the archive holds 1 compaction that the catalog lacks: `compactctl archive rebuild` \
         makes the catalog again"
    );
    let rebuilt = archive.place.json(&["archive", "rebuild"]);
    assert_eq!(
        (&rebuilt["added"], &rebuilt["receipts"]),
        (&json!(1), &json!(5))
    );
    archive.run(&["restore", "late"]).ok();
    assert_eq!(archive.place.json(&["archive", "verify"])["ok"], true);
}

/// What an earlier version left: packs and a catalog, and no records beside them.
#[test]
fn what_only_the_catalog_knows_is_written_down() {
    let archive = Archive::new(&[]);
    let store = archive.place.store();
    fs::remove_dir_all(store.join("receipts")).unwrap();
    let checked = archive.run(&["archive", "verify", "--json"]);
    assert_eq!(checked.code, 5);
    let checked = checked.json();
    assert_eq!(
        (&checked["ok"], &checked["records_missing"]),
        (&json!(false), &json!(4))
    );
    let before = archive.everything();
    let rebuilt = archive.place.json(&["archive", "rebuild"]);
    assert_eq!(
        (&rebuilt["added"], &rebuilt["records_written"]),
        (&json!(0), &json!(4))
    );
    fs::remove_file(store.join("catalog.db")).unwrap();
    archive.place.json(&["archive", "rebuild"]);
    let after = archive.everything();
    let is_check = |told: &&(String, i32, String, String)| told.0.starts_with("archive verify");
    assert!(
        before
            .iter()
            .filter(|t| !is_check(t))
            .eq(after.iter().filter(|t| !is_check(t)))
    );
}

/// Neither catalog nor records: a pack is given back by its own name.
#[test]
fn a_pack_that_nothing_names_is_counted_and_given_back() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    let made = place.json(&["compact", "s.jsonl", "--budget", "1800", "-o", "view.jsonl"]);
    fs::remove_file(place.store().join("catalog.db")).unwrap();
    fs::remove_dir_all(place.store().join("receipts")).unwrap();
    assert_eq!(place.run(&["archive", "verify"]).code, 5);
    let rebuilt = place.run(&["archive", "rebuild", "--json"]);
    assert_eq!(rebuilt.code, 5);
    let rebuilt = rebuilt.json();
    assert_eq!(
        (&rebuilt["receipts"], &rebuilt["packs_unnamed"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(place.json(&["archive", "verify"])["packs_unnamed"], 2);
    let pack = made["archive"]["pack"].as_str().unwrap();
    assert_eq!(place.run(&["restore", pack]).ok().text(), claude(20));
    place.run(&["restore", &"0".repeat(64)]).failed(3);
}

/// A record that was changed on disk is named, and nothing is made of it.
#[test]
fn a_damaged_record_is_named() {
    let archive = Archive::new(&[]);
    let receipts = archive.place.store().join("receipts");
    let shard = fs::read_dir(receipts)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let file = fs::read_dir(shard).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let checked = archive.run(&["archive", "verify", "--json"]);
    assert_eq!(
        (
            checked.code,
            checked.json()["problems"].as_array().unwrap().len()
        ),
        (5, 1)
    );
    fs::remove_file(archive.place.store().join("catalog.db")).unwrap();
    let rebuilt = archive.run(&["archive", "rebuild", "--json"]);
    assert_eq!((rebuilt.code, &rebuilt.json()["added"]), (5, &json!(3)));
}

/// What was pruned stays gone.
#[test]
fn what_was_pruned_is_not_made_again() {
    let place = Place::new();
    for (file, turns) in [("a.jsonl", 0..30), ("b.jsonl", 100..130)] {
        place.write(file, lines(turns));
        let compact = ["compact", file, "--budget", "1500", "--session", "s", "-q"];
        place.run(&compact).ok();
    }
    let pruned = place.json(&["archive", "prune", "--older-than", "0", "--yes"]);
    assert_eq!(pruned["removed"].as_array().unwrap().len(), 1, "{pruned}");
    let before = place.run(&["archive", "list", "--json"]).ok().text();
    fs::remove_file(place.store().join("catalog.db")).unwrap();
    assert_eq!(place.json(&["archive", "rebuild"])["receipts"], 1);
    let after = place.run(&["archive", "list", "--json"]).ok().text();
    assert_eq!(after, before);
}
