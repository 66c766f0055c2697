use crate::place::Place;

#[test]
fn replay_compares_policies_over_stores_in_memory() {
    let place = Place::new();
    place.example("support-session.json");
    let played = place.json(&[
        "replay",
        "support-session.json",
        "--window",
        "6000",
        "--model",
        "gpt-4o",
        "--profile",
        "rolling",
        "--profile",
        "native-archive",
        "--html",
        "out.html",
        "--csv",
        "out.csv",
    ]);
    let [rolling, never] = played.as_array().expect("one object per policy").as_slice() else {
        panic!("{played}")
    };
    assert_eq!(
        (&rolling["policy"], &never["policy"]),
        (&"rolling".into(), &"native-archive".into())
    );
    assert!(rolling["compactions"].as_u64() > Some(1));
    assert_eq!(
        (&rolling["overflows"], &rolling["failures"]),
        (&0.into(), &0.into())
    );
    assert_eq!(never["compactions"], 0);
    assert!(never["overflows"].as_u64() > Some(0));
    assert!(never["tokens_sent"].as_u64() > rolling["tokens_sent"].as_u64());
    assert!(never["cost"].as_f64() > rolling["cost"].as_f64());
    assert!(rolling["cost"].as_f64() > Some(0.0));
    let rows = String::from_utf8(place.read("out.csv")).expect("text");
    let calls = rolling["calls"].as_u64().expect("calls") as usize;
    assert_eq!(rows.lines().count(), 1 + 2 * calls);
    let page = String::from_utf8(place.read("out.html")).expect("text");
    assert!(page.contains("<svg") && !page.contains("<script"));
    let made = rolling["compactions"].as_u64().expect("compactions");
    let marks = page.matches("aria-label=\"Compaction ").count();
    assert_eq!(marks as u64, made, "every compaction is marked");
    assert!(!place.store().exists(), "a replay stores nothing");
}

#[test]
fn only_replay_takes_several_profiles() {
    let place = Place::new();
    place.example("support-session.json");
    let twice = ["--profile", "rolling", "--profile", "hard-reset"];
    let inspect = [
        "inspect",
        "support-session.json",
        twice[0],
        twice[1],
        twice[2],
        twice[3],
    ];
    assert_eq!(place.run(&inspect).code, 2);
    assert_eq!(place.run(&["replay", "missing.json"]).code, 3);
}

/// Thresholds alone beside thresholds with the price of cached prompts; every call says its numbers.
#[test]
fn replay_tests_the_price_of_cached_prompts_against_thresholds() {
    let place = Place::new();
    place.example("coding-session.jsonl");
    let played = place.json(&[
        "replay",
        "coding-session.jsonl",
        "--model",
        "claude-sonnet-4-5",
        "--target",
        "0.15",
        "--economy",
        "--csv",
        "out.csv",
    ]);
    let [fixed, economy] = played.as_array().expect("two policies").as_slice() else {
        panic!("{played}")
    };
    assert_eq!(fixed["policy"], "target 0.15");
    assert_eq!(economy["policy"], "target 0.15 economy");
    assert!(economy["compactions"].as_u64() > fixed["compactions"].as_u64());
    assert!(
        economy["cost"].as_f64() < fixed["cost"].as_f64(),
        "{played}"
    );
    let rows = String::from_utf8(place.read("out.csv")).expect("text");
    let of = |name: &'static str| rows.lines().filter(move |row| row.starts_with(name));
    assert!(of("target 0.15,").all(|row| !row.contains("n* = ")));
    // Nothing is known of the cache before the first answer.
    let economy = of("target 0.15 economy,").skip(1);
    assert!(economy.into_iter().all(|row| row.contains("n* = ")));
}
