//! Flags, configuration, completions, the manual: everything around the sessions.

use serde_json::Value;

use crate::place::{Place, lines};

#[test]
fn bad_usage_is_exit_2_with_advice() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..3));
    for arguments in [
        &["frobnicate"][..],
        &[],
        &["inspect"],
        &["inspect", "s.jsonl", "--frob"],
        &["inspect", "s.jsonl", "--window", "0"],
        &["inspect", "s.jsonl", "--profile", "nope"],
        &["inspect", "s.jsonl", "--color", "blue"],
        &["inspect", "s.jsonl", "--format", "nope"],
        &["inspect", "s.jsonl", "--estimator", "nope"],
        &["plan", "s.jsonl", "--budget", "1", "--target", "0.5"],
        &["plan", "s.jsonl", "--target", "1.5"],
        &["plan", "s.jsonl", "--budget", "-3"],
        &["archive", "prune", "--older-than", "x"],
        &["inspect", "s.jsonl", "--config", "missing.yaml"],
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(
            !run.stderr.is_empty() && run.stdout.is_empty(),
            "{arguments:?}"
        );
        let run = place.run(&[arguments, &["--json"]].concat());
        assert_eq!(run.code, 2);
        assert_eq!(run.json()["error"]["kind"], "usage", "{arguments:?}");
    }
}

#[test]
fn an_unknown_key_is_told_with_the_one_that_was_meant() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..3));
    place.write("bad.yaml", "policy:\n  trigger_pc: 0.5\n");
    for arguments in [&["config", "check"][..], &["inspect", "s.jsonl"]] {
        let run = place
            .run(&[arguments, &["--config", "bad.yaml"]].concat())
            .failed(2);
        assert!(
            run.stderr.contains(
                "unknown field 'policy.trigger_pc' in bad.yaml, did you mean 'trigger_pct'?"
            ),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn passwords_in_addresses_are_not_shown() {
    let place = Place::new();
    let settings = "summarizer:\n  url: https://ann:hunter2@models.example/v1\n\
                    storage:\n  s3:\n    endpoint: https://ann:hunter2@s3.example\n";
    place.write("c.yaml", settings);
    let human = place
        .run(&["config", "show", "--config", "c.yaml"])
        .ok()
        .text();
    let json = place
        .json(&["config", "show", "--config", "c.yaml"])
        .to_string();
    for shown in [human, json] {
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(
            shown.contains("https://ann:[REDACTED:url-password:"),
            "{shown}"
        );
    }
}

#[test]
fn configuration_is_written_checked_and_shown() {
    let place = Place::new();
    place.run(&["config", "init"]).ok();
    place.run(&["config", "check"]).ok();
    place.run(&["config", "init"]).failed(2);
    place.run(&["config", "init", "--force"]).ok();
    let printed = place.run(&["config", "init", "-"]).ok();
    assert_eq!(printed.stdout, place.read("compact.yaml"));
    let json = place.json(&["config", "show", "--profile", "hard-reset"]);
    let profile = json["values"]
        .as_array()
        .unwrap()
        .iter()
        .find(|v| v["path"] == "profile")
        .unwrap();
    assert_eq!(
        (&profile["value"], &profile["source"]),
        (&"hard-reset".into(), &"--profile".into())
    );
    let schema = place.run(&["config", "schema"]).ok().json();
    assert_eq!(schema, place.json(&["config", "schema"]));
    assert!(schema["properties"]["policy"].is_object());
    assert!(
        place
            .run(&["config", "show"])
            .ok()
            .text()
            .contains("policy.trigger_pct")
    );
}

#[test]
fn the_profile_decides_how_a_session_is_compacted() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let json = place.json(&[
        "compact",
        "s.jsonl",
        "--budget",
        "1500",
        "--profile",
        "hard-reset",
    ]);
    assert_eq!(json["policy"]["keep_recent"], "none");
    let id = json["receipt_id"].as_str().unwrap();
    assert_eq!(place.json(&["verify", id])["ok"], true);
}

#[test]
fn events_go_to_stderr_for_those_who_ask() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let arguments = ["compact", "s.jsonl", "--budget", "1500", "--json"];
    let quiet = place.run(&arguments).ok();
    assert_eq!(quiet.stderr, "");
    let mut command = place.command(&["compact", "s.jsonl", "--budget", "1400", "--json"]);
    let output = command
        .env("COMPACT_TELEMETRY_EXPORTER", "console")
        .env("COMPACT_TELEMETRY_FORMAT", "json")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.lines().any(|l| l.contains("compact.completed")),
        "{stderr}"
    );
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok());
}

#[test]
fn adapters_that_are_not_here_are_refused_not_ignored() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    for (key, value) in [
        ("COMPACT_STORAGE_ADAPTER", "s3"),
        ("COMPACT_STORAGE_ADAPTER", "custom"),
        ("COMPACT_STORAGE_ADAPTER", "none"),
    ] {
        let mut command = place.command(&["compact", "s.jsonl", "--budget", "1500"]);
        let output = command.env(key, value).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{key}={value}");
    }
    assert!(!place.store().exists());
}

#[test]
fn without_an_archive_the_report_promises_no_way_back() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let mut command = place.command(&["compact", "s.jsonl", "--budget", "1500"]);
    command
        .env("COMPACT_STORAGE_ADAPTER", "none")
        .env("COMPACT_STORAGE_ARCHIVE_REQUIRED", "false");
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(text.contains("the original was not kept"), "{text}");
    assert!(!text.contains("compactctl restore"), "{text}");
}

#[test]
fn colour_is_for_those_who_want_it() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..3));
    let escapes = |arguments: &[&str], utf8: bool| {
        let mut command = place.command(&[&["inspect", "s.jsonl"], arguments].concat());
        if utf8 {
            command.env("LANG", "en_US.UTF-8");
        }
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        (out.contains('\u{1b}'), out.is_ascii())
    };
    assert_eq!(escapes(&[], true), (false, true));
    assert_eq!(escapes(&["--color", "never"], true), (false, true));
    assert_eq!(escapes(&["--color", "always"], false), (true, true));
    assert_eq!(escapes(&["--color", "always"], true), (true, false));
}

#[test]
fn models_are_listed_and_found() {
    let place = Place::new();
    let all = place.json(&["models"]);
    assert!(all.as_array().unwrap().len() > 20);
    let one = place.json(&["models", "gpt-4o-mini"]);
    assert_eq!(one[0]["input"], 128_000);
    let spelled = place.json(&["models", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"]);
    assert_eq!(spelled[0]["input"], 200_000);
    assert!(
        place
            .run(&["models", "claude"])
            .ok()
            .text()
            .contains("200,000")
    );
    place.run(&["models", "no-such-model"]).failed(3);
}

#[test]
fn completions_and_manual_are_generated() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = place.run(&["completions", shell]).ok().text();
        assert!(
            text.contains("compactctl") && text.contains("restore"),
            "{shell}"
        );
        assert_eq!(place.json(&["completions", shell])["script"], text);
    }
    let page = place.run(&["man"]).ok().text();
    for part in [
        ".TH compactctl",
        "COMPACTCTL ARCHIVE PRUNE",
        "Example: compactctl",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(place.json(&["man"])["man"], page);
}

#[test]
fn help_is_quick_and_writes_nothing() {
    let place = Place::new();
    for arguments in [
        &["--help"][..],
        &["compact", "--help"],
        &["--version"],
        &["help", "archive"],
    ] {
        let run = place.run(arguments).ok();
        assert!(!run.stdout.is_empty());
    }
    assert!(!place.store().exists() && !place.path("home").exists());
}

/// A file that was only written changes nothing: not what is in force, not who decides it, not what is
/// printed, and not where the archive is.
#[test]
fn a_file_that_init_wrote_changes_nothing() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("home/.config/compact")).unwrap();
    place.write(
        "home/.config/compact/config.yaml",
        "policy: {keep_recent_turns: 3}\n",
    );
    place.write("s.jsonl", lines(0..30));
    let in_force = || place.json(&["config", "show", "--profile", "hard-reset"])["values"].clone();
    let compacted = || {
        let mut command = place.command(&["compact", "s.jsonl", "--budget", "1500", "--json"]);
        let run = command.env_remove("COMPACT_STORAGE_PATH").output().unwrap();
        let receipt: Value = serde_json::from_slice(&run.stdout).unwrap();
        (
            receipt["receipt_id"].clone(),
            String::from_utf8(run.stderr).unwrap(),
        )
    };
    let before = (in_force(), compacted());
    place.run(&["config", "init"]).ok();
    assert_eq!((in_force(), compacted()), before);
    assert!(!place.path(".compact").exists());
}
