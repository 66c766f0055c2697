//! `doctor`: a new installation is well, and what is wrong is named with what to do.

use std::fs;

use serde_json::{Value, json};

use crate::place::{Place, lines};

/// A check by its name.
fn find_check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap()
}

#[test]
fn a_new_installation_is_well_and_nothing_is_left_behind() {
    let place = Place::new();
    let report = place.json(&["doctor"]);
    let names: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    let expected = [
        "engine",
        "settings",
        "data directory",
        "store",
        "hooks of claude-code",
        "hooks of codex",
        "hooks of gemini-cli",
        "hooks of opencode",
    ];
    assert_eq!((&report["ok"], names), (&json!(true), expected.to_vec()));
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert!(!place.store().exists() && !place.path("home").exists());
    let text = place.run(&["doctor"]).ok().text();
    assert!(text.starts_with("ok       engine "), "{text}");
}

#[test]
fn what_was_archived_is_counted_and_hooks_are_found() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    place.json(&["compact", "s.jsonl", "--budget", "1500"]);
    place.json(&["hook", "install", "--agent", "claude-code"]);
    let report = place.json(&["doctor"]);
    let store = find_check(&report, "store")["message"].as_str().unwrap();
    assert!(store.starts_with("1 session in "), "{store}");
    let hooks = find_check(&report, "hooks of claude-code");
    let settings = place.path("home/.claude/settings.json");
    // There is no agent on the PATH of the tests.
    let message = format!(
        "installed in {}, but there is no `claude` on the PATH",
        settings.display()
    );
    assert_eq!(
        *hooks,
        json!({ "name": "hooks of claude-code", "status": "warning", "message": message, "help": null })
    );
}

#[test]
fn broken_settings_fail_the_check_and_say_what_to_do() {
    let place = Place::new();
    place.write("compact.yaml", "policy: {keep_recent_turns: many}\n");
    let run = place.run(&["doctor", "--json", "--config", "compact.yaml"]);
    assert_eq!(run.code, 5, "{}", run.stderr);
    let report = run.json();
    let settings = find_check(&report, "settings");
    assert_eq!(
        (&report["ok"], &settings["status"]),
        (&json!(false), &json!("failed"))
    );
    assert!(
        settings["message"]
            .as_str()
            .unwrap()
            .contains("keep_recent_turns")
    );
    assert!(settings["help"].as_str().unwrap().contains("config show"));
}

#[test]
fn a_damaged_catalog_and_a_folder_that_cannot_be_made_fail_the_check() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    place.json(&["compact", "s.jsonl", "--budget", "1500"]);
    let catalogs = fs::read_dir(place.store()).unwrap().flatten();
    for file in catalogs.filter(|file| file.file_name().to_string_lossy().contains("catalog")) {
        fs::write(file.path(), b"no database").unwrap();
    }
    let run = place.run(&["doctor", "--json"]);
    assert_eq!(run.code, 5, "{}", run.stderr);
    let report = run.json();
    let store = find_check(&report, "store");
    assert_eq!(store["status"], "failed", "{store}");
    assert!(
        store["help"].as_str().unwrap().contains("archive rebuild"),
        "{store}"
    );

    let mut elsewhere = place.command(&["doctor", "--json"]);
    elsewhere.env("COMPACT_STORAGE_PATH", "/proc/no-such-place");
    let run = crate::place::Run::of(&mut elsewhere);
    assert_eq!(run.code, 5, "{}", run.stderr);
    let folder = find_check(&run.json(), "data directory").clone();
    assert_eq!(folder["status"], "failed", "{folder}");
}

#[cfg(unix)]
#[test]
fn archives_that_others_can_read_are_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    fs::create_dir(place.store()).unwrap();
    fs::set_permissions(place.store(), fs::Permissions::from_mode(0o755)).unwrap();
    let report = place.json(&["doctor"]);
    let folder = find_check(&report, "data directory");
    assert_eq!(folder["status"], "warning");
    let help = format!("chmod 700 {}", place.store().display());
    assert_eq!(folder["help"], help);
}
