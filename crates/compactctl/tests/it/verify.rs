use std::path::PathBuf;

use serde_json::{Value, json};

use crate::place::{Place, Run, claude, lines};

fn compacted() -> (Place, Value) {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    let json = place.json(&[
        "compact",
        "s.jsonl",
        "--budget",
        "1500",
        "--estimator",
        "chars4",
        "--style",
        "brief",
    ]);
    (place, json)
}

fn packs(place: &Place) -> Vec<PathBuf> {
    let shards = std::fs::read_dir(place.store().join("packs")).unwrap();
    shards
        .flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn a_receipt_recomputes_under_its_own_terms() {
    let (place, receipt) = compacted();
    let id = receipt["receipt_id"].as_str().unwrap();
    for name in [id, &id[..8]] {
        // Other defaults now, the receipt's own then.
        let json = place.json(&[
            "verify",
            name,
            "--estimator",
            "o200k",
            "--profile",
            "hard-reset",
        ]);
        assert_eq!(json["ok"], true, "{json}");
        assert_eq!(json["mismatches"].as_array().unwrap().len(), 0);
    }
    place.write("receipt.json", receipt.to_string());
    assert_eq!(place.json(&["verify", "receipt.json"])["ok"], true);
    let run = place
        .run_with_stdin(&["verify", "-"], receipt.to_string().as_bytes())
        .ok();
    assert!(run.text().starts_with("verified receipt"), "{}", run.text());
}

#[test]
fn a_changed_receipt_fails_the_check() {
    let (place, mut receipt) = compacted();
    receipt["retention"]["score"] = 0.5.into();
    let run = place.run_with_stdin(&["verify", "-", "--json"], receipt.to_string().as_bytes());
    assert_eq!(run.code, 5);
    assert_eq!(run.json()["ok"], false);
    assert_eq!(run.json()["mismatches"][0]["field"], "retention");
}

#[test]
fn a_damaged_archive_fails_the_checks_and_is_no_panic() {
    let (place, receipt) = compacted();
    for pack in packs(&place) {
        let mut bytes = std::fs::read(&pack).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(&pack, bytes).unwrap();
    }
    let id = receipt["receipt_id"].as_str().unwrap();
    let run = place.run(&["verify", id, "--json"]);
    assert_eq!((run.code, run.json()["ok"].as_bool()), (5, Some(false)));
    let run = place.run(&["archive", "verify", "--json"]);
    assert_eq!(
        (run.code, run.json()["problems"].as_array().unwrap().len()),
        (5, packs(&place).len())
    );
    assert_eq!(place.run(&["archive", "verify"]).code, 5);
    place.run(&["restore", id]).failed(1);
}

#[test]
fn a_lost_pack_fails_the_checks() {
    let (place, receipt) = compacted();
    packs(&place)
        .iter()
        .for_each(|pack| std::fs::remove_file(pack).unwrap());
    let id = receipt["receipt_id"].as_str().unwrap();
    assert_eq!(place.run(&["verify", id]).code, 5);
    assert_eq!(place.run(&["archive", "verify"]).code, 5);
    let run = place.run(&["restore", id, "--json"]).failed(1);
    assert!(
        run.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("not in the archive")
    );
}

#[test]
fn unknown_names_and_files_that_are_no_receipts_are_bad_input() {
    let place = Place::new();
    for command in [
        &["verify", "deadbeef00"][..],
        &["restore", "deadbeef00"],
        &["archive", "show", "nope"],
    ] {
        let run = place.run(command).failed(3);
        assert!(
            run.stderr.contains("compactctl archive list"),
            "{}",
            run.stderr
        );
    }
    assert!(!place.store().exists(), "looking creates nothing");
    place.write("s.jsonl", lines(0..2));
    place.run(&["verify", "s.jsonl"]).failed(3);
    place.write("x.json", "{}");
    place.run(&["verify", "x.json"]).failed(3);
}

#[test]
fn restore_writes_to_a_file_or_into_json() {
    let (place, receipt) = compacted();
    let id = receipt["receipt_id"].as_str().unwrap();
    let json = place.json(&["restore", id, "-o", "back.jsonl"]);
    assert_eq!(place.read("back.jsonl"), claude(20).as_bytes());
    assert_eq!(
        (json["exact"].as_bool(), json["bytes"].as_u64()),
        (Some(true), Some(claude(20).len() as u64))
    );
    assert_eq!(place.json(&["restore", id])["content"], claude(20));
}

/// The answer of a command under one more setting.
fn under(place: &Place, setting: (&str, &str), arguments: &[&str]) -> Value {
    let mut command = place.command(&[arguments, &["--json"]].concat());
    Run::of(command.env(setting.0, setting.1)).ok().json()
}

const REDACTED: (&str, &str) = ("COMPACT_REDACTION_SINKS_ARCHIVE", "true");
const HIDDEN: (&str, &str) = ("COMPACT_REDACTION_PATTERNS", "R-00\\d+");

/// The user's file is overwritten by its view: what the report promises must be in the archive.
#[test]
fn an_archive_that_was_redacted_first_keeps_the_exact_original_too() {
    let place = Place::new();
    let key = json!({ "role": "user", "content": "the key is AKIAIOSFODNN7EXAMPLE" });
    let original = format!("{}{key}\n{}", lines(0..10), lines(10..40));
    place.write("s.jsonl", &original);
    let compact = ["compact", "s.jsonl", "--budget", "1500", "-o"];
    let first = under(&place, REDACTED, &[&compact[..], &["v.jsonl"]].concat());
    let second = place.json(&[&compact[..], &["s.jsonl"]].concat());
    assert_eq!(
        (&first["exact"], &second["exact"]),
        (&json!(false), &json!(true))
    );
    let id = second["receipt_id"].as_str().unwrap();
    assert_eq!(place.json(&["restore", id])["content"], original);
    let shown = place.json(&["archive", "show", id]);
    assert_eq!(shown["archive"], second["archive"]);
    assert_eq!(place.json(&["archive", "verify"])["packs_unnamed"], 0);
    let checked = place.json(&["verify", id]);
    assert_eq!(
        (&checked["verified_by"], &checked["reason"]),
        (&json!("engine"), &Value::Null)
    );
    let redacted = first["receipt_id"].as_str().unwrap();
    let checked = under(&place, REDACTED, &["verify", redacted]);
    let reason = json!("secrets were redacted when its original was archived");
    assert_eq!(
        (&checked["verified_by"], &checked["reason"]),
        (&json!("view"), &reason)
    );
}

#[test]
fn a_pattern_that_is_added_makes_another_receipt_that_the_chain_goes_on_from() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..40));
    let compact = ["compact", "s.jsonl", "--budget", "1500", "-o"];
    let first = place.json(&[&compact[..], &["v.jsonl"]].concat());
    let second = under(&place, HIDDEN, &[&compact[..], &["w.jsonl"]].concat());
    assert_ne!(first["receipt_id"], second["receipt_id"]);
    assert_eq!(first["session_id"], second["session_id"]);
    let mut view = place.read("w.jsonl");
    view.extend(lines(40..60).into_bytes());
    place.write("w.jsonl", view);
    let third = under(
        &place,
        HIDDEN,
        &["compact", "w.jsonl", "--budget", "1500", "-q"],
    );
    assert_eq!(third["previous"], second["receipt_id"]);
    assert_eq!(
        (&third["summary_version"], &third["carried"]),
        (&json!(2), &Value::Null)
    );
    for receipt in [&first, &second, &third] {
        let id = receipt["receipt_id"].as_str().unwrap();
        let (open, hidden) = (
            place.json(&["verify", id]),
            under(&place, HIDDEN, &["verify", id]),
        );
        let (same, other) = match receipt["receipt_id"] == first["receipt_id"] {
            true => (open, hidden),
            false => (hidden, open),
        };
        assert_eq!(
            (&same["verified_by"], &same["reason"]),
            (&json!("engine"), &Value::Null)
        );
        let reason = json!("made under other redaction settings");
        assert_eq!(
            (&other["verified_by"], &other["reason"]),
            (&json!("view"), &reason)
        );
    }
    place.write("given.json", second.to_string());
    let told = place.run(&["verify", "given.json"]).ok().text();
    assert!(
        told.contains("made under other redaction settings; hashes, counts"),
        "{told}"
    );
}
