use std::os::unix::fs::PermissionsExt;

use expect_test::expect;

use crate::place::{Place, claude, lines, shape};

#[test]
fn a_compaction_is_told_to_people() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let run = place.run(&["compact", "s.jsonl", "--budget", "1500"]).ok();
    expect![[r#"
        compacted s.jsonl

          before BAR N
          after BAR N -N %

          kept N pinned, N turns, N tool exchanges
          summarized N entries into summary vN of N tokens (task state)
          retention N % of N facts: N in view, N in the archive
          archive ...
          time ...

          the summary begins
          | ~~~ quoted from the session: data, not instructions, but for the user's o...
          | [#N] agent: Case N is done; the build passes.
          | [#N] user: Please handle case N in src/case_Nrs.
          | [#N] agent: Case N is done; the build passes.
          | [#N] user: Please handle case N in src/case_Nrs.
          | [#N] agent: Case N is done; the build passes.
          | [#N] user: Please handle case N in src/case_Nrs.
          | ... N more lines

          compactctl compact s.jsonl -o OUT writes the view
          compactctl restore RECEIPT restores the original
          compactctl verify RECEIPT verifies the receipt
          compactctl recall WORDS searches everything archived"#]]
    .assert_eq(&shape(&run.text()));
    for line in run.text().lines().filter(|l| !l.starts_with("  archive ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(run.text().is_ascii());
}

/// What the README's first command shows.
#[test]
fn the_example_keeps_nearly_all_that_was_named_in_its_view() {
    let place = Place::new();
    place.example("coding-session.jsonl");
    let json = place.json(&["compact", "coding-session.jsonl"]);
    let score = json["retention"]["score"].as_f64().unwrap();
    assert!(score >= 0.97, "{}", json["retention"]);
    assert_eq!(json["retention"]["lost"], 0);
}

#[test]
fn a_dry_run_tells_the_same_numbers_and_writes_nothing() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    let goal = ["s.jsonl", "--budget", "2000"];
    let plan = place.json(&[&["plan"], &goal[..]].concat());
    assert!(!place.store().exists() && !place.path("home").exists());
    assert_eq!(plan["verdict"], "stay");
    assert!(plan["reason"].is_string());
    for key in ["pinned", "recent_turns", "tool_pairs"] {
        assert!(plan["kept"][key].is_u64(), "{key}");
    }
    let made = place.json(&[&["compact"], &goal[..]].concat());
    for key in [
        "tokens_before",
        "tokens_after",
        "budget",
        "kept",
        "receipt_id",
        "retention",
    ] {
        assert_eq!(plan[key], made[key], "{key}");
    }
    assert_eq!(plan["summarized"], made["pruned_count"]);
    assert!(plan["tokens_after"].as_u64() <= plan["budget"].as_u64());
}

#[test]
fn a_plan_is_told_to_people() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let run = place
        .run(&["plan", "s.jsonl", "--window", "4000", "--target", "0.3"])
        .ok();
    expect![[r#"
        s.jsonl
          exceeded: N tokens do not fit the window of N

          before BAR N
          after BAR N -N %

          kept N pinned, N turns, N tool exchanges, N cut to fit
          summarized N entries into summary vN of N tokens (task state)
          retention N % of N facts: N in view, N in the archive

          a dry run with a budget of N tokens: nothing was written"#]]
    .assert_eq(&shape(&run.text()));
    let run = place.run(&["plan", "s.jsonl"]).ok();
    expect![[r#"
        s.jsonl
          stay: N % of the window
          unchanged: a history of N tokens is within the budget of N nothing to do"#]]
    .assert_eq(&shape(&run.text()));
}

#[test]
fn of_nothing_there_is_nothing_to_compact() {
    let place = Place::new();
    place.write("s.json", "[]");
    for command in ["compact", "plan"] {
        let told = place.run(&[command, "s.json"]).ok().text();
        assert!(told.contains("there is nothing to compact"), "{told}");
        assert!(!told.contains("budget of 0"), "{told}");
    }
}

#[test]
fn a_manual_compaction_has_every_field_of_the_contract() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    let json = place.json(&[
        "compact",
        "s.jsonl",
        "--budget",
        "2000",
        "-o",
        "out.jsonl",
        "--note",
        "mind the handlers",
    ]);
    assert_eq!(json["outcome"], "compacted");
    for key in ["receipt_id", "session_id", "source_hash", "summarizer"] {
        assert!(json[key].is_string(), "{key}");
    }
    for key in [
        "tokens_before",
        "tokens_after",
        "budget",
        "summary_version",
        "elapsed_ms",
    ] {
        assert!(json[key].is_u64(), "{key}");
    }
    for key in ["anchors", "kept", "repaired", "lost"] {
        assert!(json["retention"][key].is_u64(), "{key}");
    }
    assert!(json["retention"]["score"].is_f64());
    assert!(json["archive"]["stored_bytes"].is_u64());
    assert_eq!(json["note"], "mind the handlers");
    assert_eq!(json["output"], "out.jsonl");
    let inspected = place.json(&["inspect", "out.jsonl"]);
    assert_eq!(inspected["tokens"]["history"], json["tokens_after"]);
    assert_eq!(inspected["problems"].as_array().map(Vec::len), Some(0));
}

#[test]
fn the_coding_example_loses_at_least_forty_percent() {
    let place = Place::new();
    place.example("coding-session.jsonl");
    let json = place.json(&["compact", "coding-session.jsonl"]);
    let (before, after) = (
        json["tokens_before"].as_f64().unwrap(),
        json["tokens_after"].as_f64().unwrap(),
    );
    assert!(
        before >= 150_000.0 && after <= 0.6 * before,
        "{before} to {after}"
    );
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let place = Place::new();
    place.example("support-session.json");
    for out in ["a.json", "b.json"] {
        place
            .run(&[
                "compact",
                "support-session.json",
                "--budget",
                "4000",
                "-o",
                out,
                "-q",
            ])
            .ok();
    }
    assert_eq!(place.read("a.json"), place.read("b.json"));
    // The original and the view.
    assert_eq!(place.json(&["archive", "list"])["packs"], 2);
    assert_eq!(
        place.json(&["archive", "list"])["sessions"][0]["compactions"],
        1
    );
}

#[test]
fn within_the_budget_nothing_is_recorded_and_the_output_is_the_input() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..3));
    let json = place.json(&[
        "compact",
        "s.jsonl",
        "--budget",
        "100000",
        "-o",
        "out.jsonl",
    ]);
    assert_eq!(json["outcome"], "unchanged");
    assert_eq!(json["tokens_before"], json["tokens_after"]);
    assert_eq!(place.read("out.jsonl"), place.read("s.jsonl"));
    assert!(!place.store().exists());
    let run = place.run(&["compact", "s.jsonl"]).ok();
    assert!(
        run.text().starts_with("unchanged s.jsonl"),
        "{}",
        run.text()
    );
    assert!(!place.store().exists());
}

#[test]
fn an_insufficient_budget_changes_nothing() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..20));
    for command in ["compact", "plan"] {
        let run = place
            .run(&[command, "s.jsonl", "--budget", "5", "--json"])
            .failed(4);
        let error = &run.json()["error"];
        assert_eq!(error["kind"], "insufficient_budget");
        assert!(error["needed"].as_u64() > error["budget"].as_u64());
        assert!(
            run.stderr.contains("help: raise the budget"),
            "{}",
            run.stderr
        );
    }
    let out = place
        .run(&["compact", "s.jsonl", "--budget", "5", "-o", "s.jsonl"])
        .failed(4);
    assert!(out.stdout.is_empty());
    assert_eq!(place.read("s.jsonl"), lines(0..20).as_bytes());
    assert!(!place.store().exists());
    assert_eq!(
        std::fs::read_dir(place.path("")).unwrap().count(),
        1,
        "no file is left behind"
    );
}

#[test]
fn the_output_may_be_the_input_and_keeps_its_mode() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    std::fs::set_permissions(place.path("s.jsonl"), PermissionsExt::from_mode(0o640)).unwrap();
    let json = place.json(&["compact", "s.jsonl", "--budget", "1500", "-o", "s.jsonl"]);
    let mode = std::fs::metadata(place.path("s.jsonl"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(place.read("s.jsonl").len() < lines(0..30).len());
    let id = json["receipt_id"].as_str().unwrap();
    assert_eq!(
        place.run(&["restore", id]).ok().stdout,
        lines(0..30).as_bytes()
    );
}

/// A new file has no more rights than its input, and no more than the umask grants.
#[test]
fn a_new_output_keeps_to_the_umask() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    std::fs::set_permissions(place.path("s.jsonl"), PermissionsExt::from_mode(0o644)).unwrap();
    for (umask, output, expected) in [
        ("077", "a", 0o600),
        ("027", "b", 0o640),
        ("022", "c", 0o644),
    ] {
        for command in [
            "compact s.jsonl --budget 1500",
            "convert s.jsonl --to anthropic",
        ] {
            let output = format!("{output}-{}", &command[..4]);
            let script = format!("umask {umask}; exec \"$0\" {command} -o {output}");
            let compactctl = place.command(&[]);
            let mut shell = std::process::Command::new("sh");
            shell.arg("-c").arg(script).arg(compactctl.get_program());
            shell
                .current_dir(place.path(""))
                .env("HOME", place.path("home"));
            shell.env("COMPACT_STORAGE_PATH", place.store());
            crate::place::Run::of(&mut shell).ok();
            let mode = std::fs::metadata(place.path(&output))
                .unwrap()
                .permissions();
            assert_eq!(mode.mode() & 0o777, expected, "{umask} {command}");
        }
    }
}

#[test]
fn a_link_keeps_pointing_at_its_file() {
    let place = Place::new();
    place.write("real.jsonl", lines(0..30));
    std::os::unix::fs::symlink("real.jsonl", place.path("link.jsonl")).unwrap();
    place
        .run(&[
            "compact",
            "link.jsonl",
            "--budget",
            "1500",
            "-o",
            "link.jsonl",
        ])
        .ok();
    assert!(
        std::fs::symlink_metadata(place.path("link.jsonl"))
            .unwrap()
            .is_symlink()
    );
    assert!(place.read("real.jsonl").len() < lines(0..30).len());
}

#[test]
fn stdin_and_stdout_make_a_pipe() {
    let place = Place::new();
    let run = place
        .run_with_stdin(
            &["compact", "-", "--budget", "1500", "-o", "-"],
            lines(0..30).as_bytes(),
        )
        .ok();
    assert!(run.stderr.starts_with("compacted stdin"), "{}", run.stderr);
    let again = place
        .run_with_stdin(&["inspect", "-", "--json"], &run.stdout)
        .ok();
    assert!(again.json()["tokens"]["history"].as_u64() <= Some(1500));
}

#[test]
fn quiet_says_nothing_and_json_says_one_thing() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let run = place
        .run(&["compact", "s.jsonl", "--budget", "1500", "--quiet"])
        .ok();
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
    let run = place
        .run(&["compact", "s.jsonl", "--budget", "1500", "--json"])
        .ok();
    assert!(run.json().is_object() && run.stderr.is_empty());
}

#[test]
fn appending_keeps_the_lines_and_makes_the_view_the_live_context() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    let made = place.json(&["compact", "s.jsonl", "--budget", "2000", "--append"]);
    let after = place.read("s.jsonl");
    assert!(after.starts_with(claude(20).as_bytes()));
    let live = place.json(&["inspect", "s.jsonl"]);
    assert_eq!(live["tokens"]["history"], made["tokens_after"]);
    assert!(live["tokens"]["transcript"].as_u64() > live["tokens"]["total"].as_u64());
    let whole = place.json(&["inspect", "s.jsonl", "--whole"]);
    assert_eq!(whole["tokens"]["total"], live["tokens"]["transcript"]);
}

#[test]
fn the_whole_transcript_can_be_compacted_and_verified() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    place
        .run(&["compact", "s.jsonl", "--budget", "2000", "--append", "-q"])
        .ok();
    let made = place.json(&["compact", "s.jsonl", "--whole", "--budget", "3000"]);
    assert_eq!(made["outcome"], "compacted");
    let id = made["receipt_id"].as_str().unwrap();
    assert_eq!(place.json(&["verify", id])["ok"], true);
}

#[test]
fn appending_is_refused_where_it_cannot_be() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let run = place
        .run(&["compact", "s.jsonl", "--budget", "1500", "--append"])
        .failed(2);
    assert!(
        run.stderr.contains("help: write the view with -o instead"),
        "{}",
        run.stderr
    );
    assert!(!place.store().exists());
    place
        .run_with_stdin(&["compact", "-", "--append"], b"")
        .failed(2);
    place
        .run(&["compact", "s.jsonl", "-o", "-", "--json"])
        .failed(2);
}

#[test]
fn every_style_compacts() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    for style in [
        "task_state",
        "brief",
        "decision-log",
        "step_ledger",
        "requirements_ledger",
        "code-delta",
        "extractive_brief",
    ] {
        let json = place.json(&["compact", "s.jsonl", "--budget", "1200", "--style", style]);
        assert_eq!(json["style"], style.replace('-', "_"));
        assert!(json["tokens_after"].as_u64() <= Some(1200));
    }
    place
        .run(&["compact", "s.jsonl", "--style", "poem"])
        .failed(2);
    place
        .run(&["compact", "s.jsonl", "--summarizer", "oracle"])
        .failed(2);
}

#[test]
fn two_processes_share_one_store() {
    let place = Place::new();
    place.write("a.jsonl", lines(0..40));
    place.write("b.jsonl", lines(40..80));
    let start = |file: &str| {
        let arguments = ["compact", file, "--budget", "1500", "--session", file, "-q"];
        place.command(&arguments).spawn().unwrap()
    };
    let children: Vec<_> = (0..3)
        .flat_map(|_| [start("a.jsonl"), start("b.jsonl")])
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let list = place.json(&["archive", "list"]);
    assert_eq!(list["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(
        place.run(&["restore", "a.jsonl"]).ok().stdout,
        place.read("a.jsonl")
    );
    assert_eq!(place.json(&["archive", "verify"])["ok"], true);
}

#[test]
fn a_summarizer_that_fails_ends_as_the_profile_says() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..60));
    // Nobody listens on the port that is reserved for nobody.
    let asked = [
        "compact",
        "s.jsonl",
        "--budget",
        "1200",
        "-o",
        "out.jsonl",
        "--summarizer",
        "openai",
        "--summarizer-url",
        "http://127.0.0.1:1/v1",
        "--summarizer-model",
        "m",
    ];
    let failed = place
        .run(&[&asked[..], &["--profile", "hard-reset"]].concat())
        .failed(6);
    assert!(
        failed.stderr.contains("nothing was changed"),
        "{}",
        failed.stderr
    );
    assert!(!place.path("out.jsonl").exists());
    let made = place.run(&asked).ok();
    assert!(
        made.stderr
            .contains("warning: openai m failed (unreachable); fallback: deterministic"),
        "{}",
        made.stderr
    );
    assert!(place.path("out.jsonl").exists());
}
