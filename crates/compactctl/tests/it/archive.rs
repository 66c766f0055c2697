use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::place::{Place, claude, lines};

#[test]
fn an_empty_archive_is_no_error() {
    let place = Place::new();
    let json = place.json(&["archive", "list"]);
    assert_eq!(
        (json["packs"].as_u64(), json["bytes"].as_u64()),
        (Some(0), Some(0))
    );
    assert_eq!(place.json(&["archive", "verify"])["ok"], true);
    assert!(
        place
            .run(&["archive", "list"])
            .ok()
            .text()
            .contains("nothing has been compacted yet")
    );
    assert!(!place.store().exists());
}

#[test]
fn a_session_whose_every_attempt_failed_is_told_as_that() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    let compact = ["compact", "s.jsonl", "--budget", "1500", "-q"];
    let by_nobody = ["--summarizer", "openai", "--summarizer-model", "m"];
    let nowhere = ["--summarizer-url", "http://127.0.0.1:1/v1"];
    let strict = ["--profile", "hard-reset"];
    let failing = [&compact[..], &by_nobody, &nowhere, &strict].concat();
    place.run(&failing).failed(6);
    let json = place.json(&["archive", "list"]);
    let session = &json["sessions"][0];
    assert_eq!(session["compactions"], 0, "{json}");
    assert_eq!(session["last_attempt"]["outcome"], "failed", "{json}");
    let listed = place.run(&["archive", "list"]).ok().text();
    assert!(listed.contains("none: failed"), "{listed}");
    place.run(&compact).ok();
    let json = place.json(&["archive", "list"]);
    assert_eq!(json["sessions"][0].get("last_attempt"), None, "{json}");
}

#[test]
fn the_store_is_private() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    place.run(&["compact", "s.jsonl", "--budget", "1500"]).ok();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.store()), 0o700);
    assert_eq!(mode(&place.store().join("catalog.db")), 0o600);
}

#[test]
fn without_a_path_the_store_is_in_the_users_data_directory() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let mut command = place.command(&["compact", "s.jsonl", "--budget", "1500", "-q"]);
    assert!(
        command
            .env_remove("COMPACT_STORAGE_PATH")
            .status()
            .unwrap()
            .success()
    );
    assert!(place.path("home/.local/share/compact/catalog.db").exists());
    assert!(!place.store().exists());
}

/// Three compactions of one file under other budgets: two of them no live view points at.
fn forked() -> Place {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    for budget in ["1200", "1500", "1800"] {
        place
            .run(&["compact", "s.jsonl", "--budget", budget, "-q"])
            .ok();
    }
    place
}

#[test]
fn pruning_asks_first_and_says_what_would_go() {
    let place = begun_anew();
    place.run(&["archive", "prune"]).failed(2);
    place
        .run(&["archive", "prune", "--older-than", "0"])
        .failed(2);
    let dry = place.json(&["archive", "prune", "--older-than", "0", "--dry-run"]);
    let sessions = place.json(&["archive", "list"]);
    assert_eq!(dry["dry_run"], true);
    assert_eq!(sessions["sessions"][0]["compactions"], 2);
    assert_eq!(dry["removed"].as_array().unwrap().len(), 1);
    let done = place.json(&["archive", "prune", "--older-than", "0", "--yes"]);
    assert_eq!(dry["removed"], done["removed"]);
    assert_eq!(
        done["bytes_left"],
        place.json(&["archive", "list"])["bytes"]
    );
}

#[test]
fn pruning_keeps_what_the_latest_view_points_at() {
    let place = forked();
    let session = "5e551040-0000-4000-8000-000000000000";
    place
        .run(&["archive", "prune", "--max-bytes", "0", "--yes"])
        .ok();
    assert_eq!(place.run(&["restore", session]).ok().text(), claude(20));
    let latest = place.json(&["archive", "list"])["sessions"][0]["last_receipt"].clone();
    assert_eq!(
        place.json(&["verify", latest.as_str().unwrap()])["ok"],
        true
    );
    assert_eq!(place.json(&["archive", "verify"])["ok"], true);
}

#[test]
fn pruning_a_chain_keeps_every_base() {
    let place = Place::new();
    let mut context = Vec::new();
    for round in 0..4 {
        context.extend_from_slice(lines(round * 20..round * 20 + 20).as_bytes());
        place.write("in.jsonl", &context);
        place
            .run(&[
                "compact",
                "in.jsonl",
                "--budget",
                "1500",
                "-o",
                "out.jsonl",
                "-q",
            ])
            .ok();
        context = place.read("out.jsonl");
    }
    place
        .run(&["archive", "prune", "--older-than", "0", "--yes"])
        .ok();
    assert_eq!(place.json(&["archive", "verify"])["ok"], true);
    let session = place.json(&["archive", "list"])["sessions"][0]["session_id"].clone();
    assert_eq!(
        place
            .run(&["restore", session.as_str().unwrap()])
            .ok()
            .text(),
        lines(0..80)
    );
}

/// The same session, another file: nothing of the first is needed by the second.
fn begun_anew() -> Place {
    let place = Place::new();
    for (file, turns) in [("a.jsonl", 0..30), ("b.jsonl", 100..130)] {
        place.write(file, lines(turns));
        place
            .run(&["compact", file, "--budget", "1500", "--session", "s", "-q"])
            .ok();
    }
    place
}

#[test]
fn old_records_that_nothing_needs_go() {
    let place = begun_anew();
    let before = place.json(&["archive", "list"])["bytes"].as_u64();
    let none = place.json(&["archive", "prune", "--older-than", "1", "--yes"]);
    assert_eq!(none["removed"].as_array().unwrap().len(), 0);
    let done = place.json(&["archive", "prune", "--older-than", "0", "--yes"]);
    assert_eq!(done["removed"].as_array().unwrap().len(), 1);
    assert!(done["bytes_left"].as_u64() < before);
    assert_eq!(
        place.json(&["archive", "list"])["sessions"][0]["compactions"],
        1
    );
}

#[test]
fn an_unusable_store_is_told_and_nothing_is_lost() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    place.write("store", "a file, not a directory");
    let run = place
        .run(&[
            "compact", "s.jsonl", "--budget", "1500", "-o", "s.jsonl", "--json",
        ])
        .failed(1);
    assert_eq!(run.json()["error"]["kind"], "unexpected");
    assert!(run.stderr.contains("help: "), "{}", run.stderr);
    assert_eq!(place.read("s.jsonl"), lines(0..30).as_bytes());
}

#[test]
fn a_damaged_catalog_is_told() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    place
        .run(&["compact", "s.jsonl", "--budget", "1500", "-q"])
        .ok();
    std::fs::write(place.store().join("catalog.db"), "no database").unwrap();
    let run = place
        .run(&["compact", "s.jsonl", "--budget", "1400", "-o", "out.jsonl"])
        .failed(1);
    assert!(run.stderr.contains("catalog.db"), "{}", run.stderr);
    assert!(!place.path("out.jsonl").exists());
    place.run(&["archive", "list"]).failed(1);
}

/// A session without a name of its own goes by a long one: it is listed whole, and found by its beginning
/// wherever a session is named.
#[test]
fn a_session_that_nobody_named_is_listed_whole_and_found_by_its_beginning() {
    let place = Place::new();
    let messages: Vec<Value> = (0..60)
        .map(|n| {
            let role = ["user", "assistant"][n % 2];
            json!({ "role": role, "content": format!("Step {n} of handler_{n}. ").repeat(20) })
        })
        .collect();
    place.write("s.json", json!(messages).to_string());
    let receipt = place.json(&["compact", "s.json", "--budget", "1500", "-o", "v.json"]);
    let session = receipt["session_id"].as_str().unwrap().to_owned();
    let listed = place.run(&["archive", "list"]).ok().text();
    assert!(listed.contains(&session), "{session} is not in {listed}");
    let (short, _) = session.split_at(12);
    let original = place.run(&["restore", short]).ok().stdout;
    assert_eq!(original, place.read("s.json"));
    let verified = place.json(&["verify", short]);
    assert_eq!(verified["session_id"], session);
    let remembered = place.json(&["remember", short]);
    assert_eq!(remembered["session_id"], session);
    let shown = place.json(&["archive", "show", short]);
    assert_eq!(shown["session_id"], session);
    let found = place.json(&["recall", "handler_7", "--session", short]);
    assert_eq!(found["hits"][0]["session_id"], session);
    let (too_short, _) = session.split_at(7);
    place.run(&["restore", too_short]).failed(3);
}

/// A transcript with the id and the first message of one on record takes nothing over, and nothing of that is pruned.
#[test]
fn a_transcript_that_only_begins_alike_leaves_a_name_as_it_is() {
    let place = Place::new();
    let session = "5e551040-0000-4000-8000-000000000000";
    let mine = claude(20);
    let at = mine.match_indices('\n').nth(2).unwrap().0;
    let (head, rest) = mine.split_at(at);
    let strange = format!("{head}{}", rest.replace("handler", "strange"));
    place.write("mine.jsonl", &mine);
    place.write("strange.jsonl", &strange);
    let compact = |file: &str| place.json(&["compact", file, "--budget", "1500", "-o", "v.jsonl"]);
    let (first, second) = (compact("mine.jsonl"), compact("strange.jsonl"));
    assert_eq!(first["session_id"], session);
    let other = second["session_id"].as_str().unwrap();
    assert!(other.starts_with(&format!("{session}@")), "{other}");
    let removed = place.json(&["archive", "prune", "--max-bytes", "0", "--yes"]);
    assert_eq!(removed["removed"], json!([]));
    assert_eq!(place.run(&["restore", session]).ok().text(), mine);
    assert_eq!(place.run(&["restore", other]).ok().text(), strange);
}

/// Two branches of one chat under a name that the caller gives.
#[test]
fn both_branches_of_a_session_stay_and_are_told() {
    let place = Place::new();
    let branch = |turns| {
        place.write("s.jsonl", lines(0..4) + &lines(turns));
        let compact = [
            "compact",
            "s.jsonl",
            "--budget",
            "1500",
            "--session",
            "fork",
        ];
        let made = place.json(&[&compact[..], &["-o", "v.jsonl"]].concat());
        let view = String::from_utf8(place.read("v.jsonl")).unwrap();
        (made["receipt_id"].as_str().unwrap().to_owned(), view)
    };
    let branches = [branch(4..30), branch(100..130)];
    let told = place.run(&["restore", "fork"]).failed(2).stderr;
    for (receipt, _) in &branches {
        assert!(told.contains(&format!("history:{receipt}")), "{told}");
    }
    place
        .run(&["archive", "prune", "--max-bytes", "0", "--yes"])
        .ok();
    for ((receipt, view), turns) in branches.iter().zip([4..30, 100..130]) {
        let whole = lines(0..4) + &lines(turns);
        for name in [receipt.clone(), format!("history:{receipt}")] {
            assert_eq!(place.run(&["restore", &name]).ok().text(), whole);
        }
        let pointers: Vec<&str> = view
            .split("[#")
            .skip(1)
            .filter_map(|after| after.split_once(']').map(|(number, _)| number))
            .filter(|number| number.parse::<u64>().is_ok())
            .collect();
        assert!(!pointers.is_empty(), "{view}");
        for number in pointers {
            place.run(&["expand", &format!("{receipt}#{number}")]).ok();
        }
    }
    assert_eq!(place.json(&["archive", "verify"])["ok"], true);
}
