//! Everything archived is found again, whatever the view left out.

use serde_json::{Value, json};

use crate::place::{Place, claude, lines};

fn message(role: &str, text: &str) -> String {
    json!({ "role": role, "content": text }).to_string() + "\n"
}

/// A session in which five services have a port, with a lot of talk around it.
fn ports() -> String {
    let mut out = String::new();
    for (service, port) in [
        ("admin", 8443),
        ("billing", 7010),
        ("metrics", 9187),
        ("search", 9200),
        ("upload", 7443),
        ("webhook", 8088),
    ] {
        out += &message(
            "user",
            &format!("Which port should the {service} endpoint use?"),
        );
        out += &message(
            "assistant",
            &format!(
                "Looking at what is free. We settle on port {port} for the {service} endpoint."
            ),
        );
        out += &lines(0..4);
    }
    out + &lines(4..40)
}

fn compacted() -> Place {
    let place = Place::new();
    place.write("s.jsonl", ports());
    compact(&place, "s.jsonl", "ports");
    place
}

fn compact(place: &Place, file: &str, session: &str) -> Value {
    place.json(&[
        "compact",
        file,
        "--budget",
        "1500",
        "--estimator",
        "chars4",
        "--session",
        session,
        "-o",
        "out.jsonl",
    ])
}

fn first<'a>(answer: &'a Value, field: &str) -> &'a str {
    answer["hits"][0][field].as_str().unwrap_or_default()
}

#[test]
fn a_question_finds_the_entry_that_answers_it_among_its_likes() {
    let place = compacted();
    let question = "which port did we settle on for the metrics endpoint?";
    let answer = place.json(&["recall", question]);
    assert!(first(&answer, "snippet").contains("9187"), "{answer}");
    assert_eq!(first(&answer, "session_id"), "ports");
    assert_eq!(first(&answer, "role"), "assistant");
    let scores: Vec<f64> = answer["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["score"].as_f64().unwrap())
        .collect();
    assert!(scores.len() > 1 && scores.is_sorted_by(|a, b| a >= b));
    let text = place.run(&["recall", "--limit", "1", question]).ok().text();
    assert!(text.contains("We settle on port 9187"), "{text}");
}

#[test]
fn identifiers_are_found_whole_and_by_their_parts() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..60));
    compact(&place, "s.jsonl", "s");
    for query in ["R-0017", "src/case_17.rs", "case_17", "\"case_17.rs\""] {
        let answer = place.json(&["recall", query, "-n", "1"]);
        assert!(
            first(&answer, "snippet").contains("17"),
            "{query}: {answer}"
        );
    }
}

#[test]
fn a_hit_expands_to_the_entry_byte_for_byte() {
    let place = compacted();
    let answer = place.json(&["recall", "metrics port", "-n", "1"]);
    let pointer = first(&answer, "pointer");
    let want = "Looking at what is free. We settle on port 9187 for the metrics endpoint.";
    let text = place.run(&["expand", pointer]).ok().text();
    assert_eq!(text, format!("{pointer} of 192, model, 1 line\n{want}\n"));
    let raw = place.run(&["expand", pointer, "--raw"]).ok().text();
    assert_eq!(raw, message("assistant", want).trim_end());
    let json = place.json(&["expand", pointer]);
    assert_eq!(json["text"], want);
    assert_eq!(json["entry_id"], answer["hits"][0]["entry_id"]);
    place.run(&["expand", pointer, "-o", "entry.txt"]).ok();
    assert_eq!(place.read("entry.txt"), want.as_bytes());
}

/// A tool result that was cut names the receipt and the place of the whole.
#[test]
fn the_pointer_of_a_cut_text_expands_to_the_whole() {
    let place = Place::new();
    let long: String = (0..4000)
        .map(|n| format!("row {n} of the table\n"))
        .collect();
    let session = lines(0..8) + &message("user", "Here it is:") + &message("user", &long);
    place.write("s.jsonl", session);
    compact(&place, "s.jsonl", "s");
    let view = String::from_utf8(place.read("out.jsonl")).unwrap();
    let at = view.rfind("chars cut: ").expect("a cut text");
    let marker = view[at..].split('…').next().unwrap();
    let json = place.json(&["expand", marker]);
    let whole = json["text"].as_str().unwrap();
    assert!(whole == long, "{} bytes of {}", whole.len(), long.len());
    // A reader gets as much as fits, and how to go on.
    let first = place.run(&["expand", marker]).ok().text();
    let (shown, next) = first.trim_end().rsplit_once('\n').unwrap();
    assert!(
        shown.len() < 16_200 && shown.ends_with(" of the table"),
        "{next}"
    );
    let arguments: Vec<&str> = next
        .split("compactctl ")
        .nth(1)
        .unwrap()
        .split(' ')
        .collect();
    let rest = place.run(&arguments[..4]).ok().text();
    let last = shown.lines().last().unwrap();
    let row: u32 = last.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(
        rest.contains(&format!("\nrow {} of", row + 1)),
        "{last}: {rest:.200}"
    );
    let all = place.run(&["expand", marker, "--all"]).ok().text();
    assert!(all.contains("row 0 of") && all.contains("row 3999 of"));
}

/// The numbers of a summary reach back over every compaction before it.
#[test]
fn pointers_reach_back_to_the_first_compaction() {
    let place = Place::new();
    let mut context = Vec::new();
    let mut receipts = Vec::new();
    for round in 0..4 {
        context.extend_from_slice(lines(round * 20..round * 20 + 20).as_bytes());
        place.write("in.jsonl", &context);
        let receipt = compact(&place, "in.jsonl", "s")["receipt_id"].clone();
        receipts.push(receipt.as_str().unwrap().to_owned());
        context = place.read("out.jsonl");
    }
    let last = receipts.last().unwrap();
    for (ordinal, case) in [(0, 0), (3, 1), (57, 19)] {
        let json = place.json(&["expand", &format!("{last}#{ordinal}")]);
        assert_eq!(
            json["text"],
            format!("Please handle case {case} in src/case_{case}.rs.")
        );
    }
    // Every hit of every round expands to an entry that says what was asked for.
    for case in [2, 25, 50, 70] {
        let answer = place.json(&["recall", &format!("case_{case}"), "-n", "1"]);
        let text = place
            .run(&["expand", first(&answer, "pointer")])
            .ok()
            .text();
        assert!(text.contains(&format!("case_{case}.rs")), "{case}: {text}");
    }
    place.run(&["expand", &format!("{last}#100000")]).failed(3);
}

#[test]
fn a_growing_transcript_is_indexed_once() {
    let place = Place::new();
    for turns in [20, 30, 40] {
        place.write("s.jsonl", claude(turns));
        place
            .run(&["compact", "s.jsonl", "--budget", "2000", "-q"])
            .ok();
    }
    for turn in [3, 25, 38] {
        let answer = place.json(&["recall", &format!("handler_{turn}"), "-n", "100"]);
        let hits = answer["hits"].as_array().unwrap();
        let ids: std::collections::HashSet<&str> = hits
            .iter()
            .filter_map(|hit| hit["entry_id"].as_str())
            .collect();
        assert_eq!(ids.len(), hits.len(), "each entry once");
        let text = place
            .run(&["expand", first(&answer, "pointer")])
            .ok()
            .text();
        assert!(text.contains(&format!("handler_{turn}")), "{text}");
    }
}

#[test]
fn one_session_or_all() {
    let place = compacted();
    place.write("t.jsonl", lines(100..160));
    compact(&place, "t.jsonl", "other");
    let all = place.json(&["recall", "parser record", "-n", "100"]);
    let sessions: std::collections::BTreeSet<&str> = all["hits"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|hit| hit["session_id"].as_str())
        .collect();
    assert_eq!(sessions, ["other", "ports"].into());
    let one = place.json(&["recall", "metrics endpoint port", "--session", "other"]);
    assert!(!one.to_string().contains("9187"), "{one}");
    place
        .run(&["recall", "anything", "--session", "nobody"])
        .failed(3);
}

/// Whatever happens to the index, it is drawn again from the archive.
#[test]
fn an_index_that_is_behind_gone_or_damaged_catches_up() {
    let place = compacted();
    let index = place.store().join("recall.db");
    let before = place.json(&["recall", "metrics port"]);
    assert_eq!(place.json(&["archive", "verify"])["sessions_to_index"], 0);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.store().join(format!("recall.db{suffix}")));
    }
    assert_eq!(place.json(&["archive", "verify"])["sessions_to_index"], 1);
    assert_eq!(place.json(&["recall", "metrics port"]), before);
    std::fs::write(&index, "torn".repeat(5000)).unwrap();
    assert_eq!(place.json(&["recall", "metrics port"]), before);
}

#[test]
fn an_original_that_is_gone_is_told_and_the_rest_is_found() {
    let place = compacted();
    place.write("t.jsonl", lines(100..160));
    let receipt = compact(&place, "t.jsonl", "other");
    let pack = receipt["archive"]["pack"].as_str().unwrap().to_owned();
    let shard = std::fs::read_dir(place.store().join("packs")).unwrap();
    for file in shard.flat_map(|s| std::fs::read_dir(s.unwrap().path()).unwrap()) {
        let path = file.unwrap().path();
        if path.to_string_lossy().contains(&pack[2..]) {
            std::fs::remove_file(path).unwrap();
        }
    }
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.store().join(format!("recall.db{suffix}")));
    }
    let answer = place.json(&["recall", "metrics port"]);
    assert_eq!(answer["unreadable"], 1);
    assert!(first(&answer, "snippet").contains("9187"));
}

#[test]
fn pruned_words_are_not_found_and_the_rest_is() {
    let place = Place::new();
    for (file, turns) in [("a.jsonl", 0..30), ("b.jsonl", 100..130)] {
        place.write(file, lines(turns));
        compact(&place, file, "s");
    }
    let finds = |word: &str| {
        let found = place.json(&["recall", word])["hits"].to_string();
        found.contains(word)
    };
    assert!(finds("R-0007") && finds("R-0107"));
    let done = place.json(&["archive", "prune", "--older-than", "0", "--yes"]);
    assert_eq!(done["removed"].as_array().unwrap().len(), 1);
    assert!(!finds("R-0007") && finds("R-0107"));
}

/// A pointer that a live view shows leads somewhere, whatever is pruned: back along its chain, and
/// into another session that it quotes.
#[test]
fn a_pointer_in_a_live_view_never_expires() {
    let place = Place::new();
    place.write("quoted.jsonl", lines(200..240));
    let quoted = compact(&place, "quoted.jsonl", "quoted")["receipt_id"].clone();
    let quoted = quoted.as_str().unwrap().to_owned();
    // The quoted session begins anew, so that nothing of its own needs the first receipt.
    place.write("quoted.jsonl", lines(300..340));
    compact(&place, "quoted.jsonl", "quoted");
    let mut context = message(
        "user",
        &format!("See {} #5 for the case before.", &quoted[..12]),
    );
    let mut last = String::new();
    for round in 0..4 {
        context += &lines(round * 20..round * 20 + 20);
        place.write("in.jsonl", &context);
        let receipt = compact(&place, "in.jsonl", "s");
        last = receipt["receipt_id"].as_str().unwrap().to_owned();
        context = String::from_utf8(place.read("out.jsonl")).unwrap();
    }
    for limit in [["--older-than", "0"], ["--max-bytes", "0"]] {
        let prune = [&["archive", "prune"][..], &limit, &["--yes"]].concat();
        place.run(&prune).ok();
    }
    for ordinal in (0..240).step_by(17) {
        place.run(&["expand", &format!("{last}#{ordinal}")]).ok();
    }
    place.run(&["expand", &format!("{}#5", &quoted[..12])]).ok();
}

#[test]
fn redacted_archives_are_searched_redacted() {
    let place = Place::new();
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let mut session = message(
        "user",
        &format!("The zebra token is {secret}, keep it safe."),
    );
    session += &lines(0..40);
    place.write("s.jsonl", session);
    place.write("c.yaml", "redaction:\n  sinks:\n    archive: true\n");
    let run = |args: &[&str]| place.json(&[args, &["--config", "c.yaml"]].concat());
    run(&["compact", "s.jsonl", "--budget", "1500", "--session", "s"]);
    assert_eq!(run(&["recall", secret])["hits"], json!([]));
    let answer = run(&["recall", "zebra token", "-n", "1"]);
    assert!(first(&answer, "snippet").contains("zebra"), "{answer}");
    assert!(!answer.to_string().contains(secret));
    let bytes = std::fs::read(place.store().join("recall.db")).unwrap();
    assert!(!bytes.windows(secret.len()).any(|w| w == secret.as_bytes()));
    let run = place.run(&["expand", first(&answer, "pointer")]).ok();
    assert!(!run.text().contains(secret) && run.text().contains("secrets were redacted"));
}

/// What came before a boundary was not compacted by us, but it was archived.
#[test]
fn what_stands_before_a_boundary_is_found_too() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    place
        .run(&["compact", "s.jsonl", "--budget", "1500", "--append", "-q"])
        .ok();
    std::fs::remove_dir_all(place.store()).unwrap();
    let more: String = (0..60)
        .map(|n| {
            json!({
                "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": "/src",
                "sessionId": "5e551040-0000-4000-8000-000000000000", "version": "2.1.7",
                "type": "user", "uuid": format!("10000000-0000-4000-8000-{n:012}"),
                "message": { "role": "user", "content": format!("Go on with {n}. ").repeat(50) },
                "timestamp": "2026-03-02T09:00:00.000Z",
            })
            .to_string()
                + "\n"
        })
        .collect();
    let file = [place.read("s.jsonl"), more.into_bytes()].concat();
    place.write("s.jsonl", file);
    place
        .run(&["compact", "s.jsonl", "--budget", "1500", "-q"])
        .ok();
    let answer = place.json(&["recall", "handler_2", "-n", "1"]);
    let text = place
        .run(&["expand", first(&answer, "pointer")])
        .ok()
        .text();
    assert!(text.contains("handler_2"), "{answer}");
}

#[test]
fn odd_queries_are_words_and_nothing_else() {
    let place = compacted();
    for query in [
        "\"",
        "'",
        "metrics\"",
        "(metrics",
        "metrics)",
        "NEAR(metrics port)",
        "metrics AND",
        "OR metrics",
        "NOT metrics",
        "metrics*",
        "^metrics",
        "{metrics}:port",
        "text:metrics",
        "-metrics",
        "metrics; DROP TABLE entries",
        "%metrics%",
        "metrics\\",
    ] {
        let run = place.run(&["recall", "--json", "--", query]);
        match query.chars().any(char::is_alphabetic) {
            true => assert!(
                first(&run.ok().json(), "snippet").contains("metrics"),
                "{query}"
            ),
            false => assert_eq!(run.code, 2, "{query}: {}", run.stderr),
        }
    }
}

/// Whatever a command line was, its words are looked for.
#[test]
fn flags_in_a_query_are_words() {
    let place = Place::new();
    let start = "Start it with `pnpm --filter api dev -p 4000`.";
    place.write("s.jsonl", message("assistant", start) + &lines(0..40));
    compact(&place, "s.jsonl", "s");
    let query = ["recall", "pnpm", "--filter", "api", "dev", "-p", "4000"];
    let run = place
        .run(&[&query[..], &["-n", "1", "--json"]].concat())
        .ok();
    assert_eq!(first(&run.json(), "snippet"), start);
    assert_eq!(run.json()["has_all_words"], true);
}

#[test]
fn a_receipt_or_a_dot_before_the_words_is_the_session() {
    let place = compacted();
    place.write("t.jsonl", lines(100..160));
    let last = compact(&place, "t.jsonl", "other")["receipt_id"].clone();
    let last = last.as_str().unwrap();
    for scope in [".", last, &last[..12]] {
        let found = place.json(&["recall", scope, "parser", "record"]);
        assert_eq!(found["session_id"], "other", "{scope}");
        assert!(!found["hits"].as_array().unwrap().is_empty());
    }
    // A word that is no receipt is a word.
    let found = place.json(&["recall", "deadbeefcafe", "metrics"]);
    assert_eq!(found["session_id"], Value::Null);
    assert_eq!(found["unknown_words"], json!(["deadbeefcafe"]));
    let text = place
        .run(&["recall", "deadbeefcafe", "metrics"])
        .ok()
        .text();
    assert!(
        text.ends_with(
            "no entry holds all of these words; the first lacks: deadbeefcafe\n\
             nothing archived holds: deadbeefcafe\n"
        ),
        "{text}"
    );
}

#[test]
fn the_newest_comes_first_and_what_is_old_is_left_out() {
    let place = Place::new();
    let say = |n: usize| {
        message(
            "user",
            &format!("The importer for tenant {n} runs at {n} o'clock."),
        )
    };
    let session: String = (1..9).map(|n| say(n) + &lines(n * 4..n * 4 + 4)).collect();
    place.write("s.jsonl", session);
    compact(&place, "s.jsonl", "s");
    let ordinals = |more: &[&str]| -> Vec<u64> {
        let answer = place.json(&[&["recall", "importer tenant"], more].concat());
        let hits = answer["hits"].as_array().unwrap().iter();
        hits.map(|hit| hit["ordinal"].as_u64().unwrap()).collect()
    };
    let newest = ordinals(&["--latest"]);
    assert!(
        newest.len() == 8 && newest.is_sorted_by(|a, b| a > b),
        "{newest:?}"
    );
    let after = ordinals(&["--after", &newest[3].to_string()]);
    assert_eq!(after.len(), 3);
    assert!(after.iter().all(|n| *n > newest[3]), "{after:?}");
}

/// A session with one exchange of a command and an edit.
fn exchange() -> (Place, String) {
    let place = Place::new();
    let call = |id: &str, name: &str, input: Value| {
        let arguments = input.to_string();
        let function = json!({"name": name, "arguments": arguments});
        let calls = json!([{"id": id, "type": "function", "function": function}]);
        json!({"role": "assistant", "content": null, "tool_calls": calls}).to_string() + "\n"
    };
    let result = |id: &str, text: &str| {
        json!({"role": "tool", "tool_call_id": id, "content": text}).to_string() + "\n"
    };
    let log: String = (1..=400)
        .map(|n| format!("step {n} of the zebra build\n"))
        .collect();
    let edit =
        json!({"path": "a.rs", "old_string": "fn a() {\n  1\n}", "new_string": "fn a() {\n  2\n}"});
    let session = lines(0..4)
        + &call("c1", "bash", json!({"command": "make zebra"}))
        + &result("c1", &log)
        + &call("c2", "edit", edit)
        + &result("c2", "{\"ok\":\"done\\nand saved\"}")
        + &lines(4..40);
    place.write("s.jsonl", session);
    let receipt = compact(&place, "s.jsonl", "s")["receipt_id"].clone();
    (place, receipt.as_str().unwrap()[..12].to_owned())
}

#[test]
fn a_reader_gets_calls_results_and_edits_in_lines() {
    let (place, receipt) = exchange();
    let shown = |arguments: &[&str]| {
        let text = place.run(&[&["expand"], arguments].concat()).ok().text();
        text.replace(&receipt, "R")
    };
    let pointer = |place: &str| format!("{receipt}#{place}");
    expect_test::expect![[r#"
        R#14 of 124, model, its result is #15, 6 lines
        edit
        path: a.rs
         fn a() {
        -  1
        +  2
         }
        result #15:
        ok:
        done
        and saved
    "#]]
    .assert_eq(&shown(&[&pointer("14")]));
    expect_test::expect![[r#"
        R#13 of 124, tool, result of #12 bash, 1 matching line of 400
        7- step 7 of the zebra build
        8- step 8 of the zebra build
        9: step 9 of the zebra build
        10- step 10 of the zebra build
        11- step 11 of the zebra build
    "#]]
    .assert_eq(&shown(&[&pointer("13"), "--grep", "STEP 9 "]));
    expect_test::expect![[r#"
        R#13 of 124, tool, result of #12 bash, lines 399 to 400 of 400
        step 399 of the zebra build
        step 400 of the zebra build
    "#]]
    .assert_eq(&shown(&[&pointer("13"), "--lines", "399.."]));
    let row = shown(&[&pointer("12..15")]);
    let headings = row.lines().filter(|line| line.starts_with("R#"));
    assert_eq!(headings.count(), 4, "{row}");
    let around = shown(&[&pointer("14"), "--around", "1"]);
    let headings = around.lines().filter(|line| line.starts_with("R#"));
    assert_eq!(headings.count(), 3, "{around}");
    assert!(shown(&["#14"]).starts_with("R#14 of 124"));
    assert_eq!(
        shown(&[&pointer("14"), "--grep", "nowhere"]),
        "no line matches\n"
    );
    for (bad, code) in [
        (&["--lines", "x"][..], 2),
        (&["--lines", "9..3"], 2),
        (&["--grep", "x", "--raw"], 2),
    ] {
        let pointer = pointer("13");
        assert_eq!(
            place.run(&[&["expand", &pointer], bad].concat()).code,
            code,
            "{bad:?}"
        );
    }
}

#[test]
fn a_hit_shows_the_result_beside_its_call_and_where_in_it() {
    let (place, receipt) = exchange();
    let run = place
        .run(&["recall", "zebra build step 200", "-n", "1"])
        .ok();
    expect_test::expect![[r#"
        R#13 of 124, tool
        call #12:
          | bash
          | command: make zebra
    "#]]
    .assert_eq(
        &run.text()
            .replace(&receipt, "R")
            .lines()
            .take(4)
            .map(|l| format!("{l}\n"))
            .collect::<String>(),
    );
    assert!(
        run.text().contains("of 400:\n") && run.text().contains("| step 200 of the zebra build\n")
    );
    let hit = place.json(&["recall", "zebra build step 200", "-n", "1"])["hits"][0].clone();
    assert_eq!((&hit["ordinal"], &hit["lines"]), (&json!(13), &json!(400)));
    assert_eq!(hit["partner"]["ordinal"], 12);
}

#[test]
fn queries_without_words_are_bad_usage() {
    let place = compacted();
    for query in ["", " ", "???", "what is it"] {
        let run = place.run(&["recall", "--", query]).failed(2);
        assert!(
            run.stderr.contains("no words to look for"),
            "{}",
            run.stderr
        );
    }
    for usage in [&["recall"][..], &["recall", "x", "--limit", "0"]] {
        assert_eq!(place.run(usage).code, 2, "{usage:?}");
    }
}

#[test]
fn a_query_of_a_megabyte_or_of_bytes_is_answered() {
    let place = compacted();
    let long = "metrics port ".repeat(80_000);
    let run = place
        .run_with_stdin(&["recall", "-", "--json"], long.as_bytes())
        .ok();
    assert!(first(&run.json(), "snippet").contains("9187"));
    let noise: String = (0..200_000).map(|n| format!("w{n} ")).collect();
    place
        .run_with_stdin(&["recall", "-"], noise.as_bytes())
        .ok();
    place
        .run_with_stdin(&["recall", "-"], &[0xff, 0xfe, 0x00])
        .failed(3);
}

#[cfg(unix)]
#[test]
fn a_query_that_is_no_text_is_bad_usage() {
    use std::os::unix::ffi::OsStrExt;
    let place = compacted();
    let mut command = place.command(&["recall"]);
    let output = command
        .arg(std::ffi::OsStr::from_bytes(&[0xff, 0xfe]))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn without_an_archive_there_is_nothing_to_recall() {
    let place = Place::new();
    for command in [
        &["recall", "x"][..],
        &["expand", "3f9a1c22#1"],
        &["remember", "s"],
    ] {
        let run = place.run(command).failed(3);
        assert!(run.stderr.contains("help: "), "{}", run.stderr);
    }
    assert!(!place.store().exists());
}

#[test]
fn pointers_that_lead_nowhere_are_told() {
    let place = compacted();
    for (pointer, code) in [
        ("", 2),
        ("nonsense", 2),
        ("3f9a1c22abcd#", 2),
        ("00000000abcd#1", 3),
        ("ports#99999", 3),
        ("ports#0", 0),
    ] {
        let run = place.run(&["expand", "--", pointer]);
        assert_eq!(run.code, code, "{pointer}: {}", run.stderr);
    }
}

#[test]
fn a_session_tells_what_it_remembers() {
    let place = Place::new();
    let mut session = message("system", "You are terse.");
    session += &message("user", "Build the importer. Never touch src/legacy.rs.");
    session += &lines(0..60);
    place.write("s.jsonl", session);
    compact(&place, "s.jsonl", "s");
    let memory = place.json(&["remember", "s"]);
    assert_eq!(memory["pinned"][0]["text"], "You are terse.");
    let summary = memory["summary"].as_str().unwrap();
    assert!(summary.contains("src/case_3.rs"), "{summary}");
    let view = String::from_utf8(place.read("out.jsonl")).unwrap();
    let recent = memory["recent"].as_array().unwrap();
    assert!(!recent.is_empty());
    for entry in recent {
        let text = entry["text"].as_str().unwrap().to_owned();
        assert!(
            view.contains(json!(text).to_string().trim_matches('"')),
            "{text}"
        );
    }
    assert!(
        memory["ledger"]["facts"]["rules"]
            .to_string()
            .contains("Never touch")
    );
    let text = place.run(&["remember", "s"]).ok().text();
    assert!(
        text.contains("You are terse.") && text.contains("src/legacy.rs"),
        "{text}"
    );
    place.run(&["remember", "nobody"]).failed(3);
}

/// What was compacted is indexed by a process that nobody waits for; whoever searches before it is done finds
/// everything all the same, and one that is killed has lost nothing.
#[test]
fn what_was_compacted_is_indexed_behind_the_answer() {
    let place = Place::new();
    place.write("s.jsonl", crate::place::lines(0..60));
    let compacted = place
        .command(&[
            "compact",
            "s.jsonl",
            "--budget",
            "1500",
            "--session",
            "s",
            "-q",
        ])
        .env("COMPACT_STORAGE_INDEXING", "background")
        .output()
        .unwrap();
    assert!(compacted.status.success());
    let found = place.json(&["recall", "record", "R-0007"]);
    assert!(
        found["hits"][0]["snippet"].to_string().contains("0007"),
        "{found}"
    );
    // The process that was started looks once more, and leaves the index as a search needs it.
    let indexed = place.json(&["archive", "index"]);
    assert_eq!(indexed["unreadable"], 0);
    assert_eq!(place.json(&["archive", "verify"])["sessions_to_index"], 0);
}

#[test]
fn indexing_an_empty_place_creates_nothing() {
    let place = Place::new();
    let indexed = place.json(&["archive", "index", "--low-priority"]);
    assert_eq!(indexed["added"], 0);
    assert!(!place.store().exists());
}

/// A chat whose tools answer what nobody else says.
fn chat_of(tag: &str) -> String {
    let mut messages = vec![
        json!({ "role": "user", "content": "Port the parser to Rust." }),
        json!({ "role": "assistant", "content": "I begin." }),
    ];
    for n in 0..20 {
        let (id, filler) = (format!("call_{n}"), format!("{tag} talks on. ").repeat(40));
        messages.extend([
            json!({ "role": "user", "content": format!("{tag} step {n}: go on.") }),
            json!({ "role": "assistant", "content": null, "tool_calls": [{
                "id": id, "type": "function",
                "function": { "name": "run", "arguments": format!("{{\"step\": \"{tag} {n}\"}}") },
            }] }),
            json!({ "role": "tool", "tool_call_id": id, "content": format!("{filler} {tag}_fact_{n}") }),
            json!({ "role": "assistant", "content": format!("{tag} did {n}.") }),
        ]);
    }
    json!({ "model": "gpt-5", "messages": messages }).to_string()
}

/// Two branches number their entries alike: a result stands beside the call of its own.
#[test]
fn the_other_half_of_an_exchange_is_of_the_same_branch() {
    let place = Place::new();
    for tag in ["alice", "bob"] {
        place.write("s.json", chat_of(tag));
        compact(&place, "s.json", "proj");
    }
    for (tag, other) in [("alice", "bob"), ("bob", "alice")] {
        let found = place.json(&["recall", &format!("{tag}_fact_3")]);
        let hit = &found["hits"][0];
        assert!(hit["snippet"].as_str().unwrap().contains(tag), "{found}");
        let partner = hit["partner"]["excerpt"].as_str().unwrap();
        assert!(
            partner.contains(tag) && !partner.contains(other),
            "{partner}"
        );
    }
}

/// Whoever calls a session like a receipt, or a part of its id, is not searched in its place.
#[test]
fn a_session_that_is_called_like_a_receipt_is_refused_where_one_is_searched() {
    let place = compacted();
    let receipt = place.json(&["archive", "list"])["sessions"][0]["last_receipt"].clone();
    let receipt = receipt.as_str().unwrap();
    place.write("other.jsonl", lines(100..140));
    for name in [&receipt[..12], receipt] {
        let search = ["recall", "--session", name, "metrics port"];
        place.run(&search).ok();
        compact(&place, "other.jsonl", name);
        let told = place.run(&search).failed(2).stderr;
        assert!(told.contains("is a session, and the receipt"), "{told}");
        assert!(told.contains(&format!("session:{name}")), "{told}");
    }
    for (name, session) in [
        (format!("receipt:{receipt}"), "ports"),
        (format!("session:{receipt}"), receipt),
        (format!("session:{}", &receipt[..12]), &receipt[..12]),
    ] {
        let remembered = place.json(&["remember", &name]);
        assert_eq!(remembered["session_id"], session, "{name}");
        let shown = place.json(&["expand", &format!("{name}#3")]);
        assert_eq!(shown["session_id"], session, "{name}");
        place.run(&["recall", "--session", &name, "port"]).ok();
        place.run(&["restore", &name]).ok();
    }
    place
        .run(&["recall", "--session", &receipt[..13], "metrics port"])
        .ok();
}

/// Blanks may be part of a session's name.
#[test]
fn a_pointer_to_one_of_two_sessions_that_differ_in_blanks_is_refused() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    compact(&place, "s.jsonl", "alice ");
    let shown = place.json(&["expand", "alice #3"]);
    assert_eq!(shown["session_id"], "alice ");
    compact(&place, "s.jsonl", "alice");
    place.run(&["expand", "alice #3"]).failed(2);
    let shown = place.json(&["expand", "alice#3"]);
    assert_eq!(shown["session_id"], "alice");
}

/// Two sessions of which each entry says whose it is; the second was compacted last.
fn two_sessions() -> Place {
    let place = Place::new();
    for name in ["alice", "bob"] {
        let said = |n| message("user", &format!("{name} says {n}: {}", "word ".repeat(60)));
        place.write("s.jsonl", (0..40).map(said).collect::<String>());
        compact(&place, "s.jsonl", name);
    }
    place
}

/// Nobody who names a session is shown another one's words.
#[test]
fn a_pointer_is_to_the_session_that_is_named() {
    let place = two_sessions();
    let shown = place.json(&["expand", "#3", "--session", "alice"]);
    assert_eq!(shown["session_id"], "alice");
    assert!(shown["text"].as_str().unwrap().starts_with("alice says 3"));
    assert_eq!(place.json(&["expand", "#3"])["session_id"], "bob");

    let other = shown["pointer"].as_str().unwrap();
    for pointer in [other, "alice#3"] {
        let own = place.json(&["expand", pointer, "--session", "alice"]);
        assert_eq!(own["text"], shown["text"]);
        let refused = ["expand", pointer, "--session", "bob"];
        let told = place.run(&refused).failed(2);
        assert!(told.stderr.contains("is no entry of session 'bob'"));
        assert!(told.stderr.contains("write #NUMBER"), "{}", told.stderr);
        assert!(!told.text().contains("says"), "{}", told.text());
    }
    let told = place
        .run(&["expand", "#99", "--session", "alice"])
        .failed(3);
    assert!(told.stderr.contains("no entry alice#99"), "{}", told.stderr);
    place.run(&["expand", "#3", "--session", "carol"]).failed(3);
}

/// What an earlier compaction reached is found, though the session was rewound since.
#[test]
fn a_number_is_looked_up_where_the_session_had_it() {
    let place = Place::new();
    for end in [40, 20] {
        place.write("s.jsonl", lines(0..end));
        compact(&place, "s.jsonl", "s");
    }
    let shown = place.json(&["expand", "#35", "--session", "s"]);
    assert_eq!(shown["ordinal"], 35);
}

/// A receipt that two sessions share, since they compacted the same, is either's.
#[test]
fn a_receipt_of_two_sessions_is_read_in_each() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..40));
    for name in ["first", "second"] {
        compact(&place, "s.jsonl", name);
        let listed = place.json(&["archive", "show", name]);
        let receipt = listed["compactions"][0]["receipt_id"].as_str().unwrap();
        let shown = place.json(&["expand", &format!("{receipt}#3"), "--session", name]);
        assert_eq!(shown["session_id"], name);
    }
}
