//! Stores that are not the folder: moved to, moved back from, encrypted, shared.

use serde_json::json;

use crate::place::{Place, Run, lines};

const SESSION: &[&str] = &[
    "compact",
    "s.jsonl",
    "--budget",
    "1500",
    "--session",
    "s",
    "-q",
];

/// A place where one session was compacted.
fn begun() -> Place {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    place.run(SESSION).ok();
    place
}

fn with(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    Run::of(place.command(arguments).envs(variables.iter().copied()))
}

#[test]
fn a_store_is_exported_and_imported_whole_and_only_once() {
    let place = begun();
    let done = place.json(&["archive", "export", "backup"]);
    assert_eq!(
        (done["packs"].as_u64(), done["records"].as_u64()),
        (Some(2), Some(1))
    );
    let elsewhere = place.path("elsewhere");
    let there = [("COMPACT_STORAGE_PATH", elsewhere.to_str().unwrap())];
    with(&place, &["archive", "import", "backup"], &there).ok();
    let again = with(&place, &["archive", "import", "backup", "--json"], &there).ok();
    assert_eq!(again.json()["packs"], 0);
    assert_eq!(
        with(&place, &["restore", "s"], &there).ok().text(),
        lines(0..30)
    );
    assert_eq!(
        with(&place, &["archive", "verify", "--json"], &there)
            .ok()
            .json()["ok"],
        true
    );
    place.run(&["archive", "import", "nowhere"]).failed(3);
}

/// The packs of a store, each with its file.
fn packs(store: &std::path::Path) -> Vec<std::path::PathBuf> {
    let shards = std::fs::read_dir(store.join("packs")).unwrap();
    let files = shards.flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap());
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_receipt_whose_packs_are_gone_is_left_out_of_an_import() {
    let place = begun();
    let whole = compact_elsewhere(&place, "foreign", "whole", &lines(80..120));
    let before = packs(&place.path("foreign"));
    let broken = compact_elsewhere(&place, "foreign", "broken", &lines(40..80));
    let of_broken = packs(&place.path("foreign"));
    let of_broken = of_broken.iter().find(|pack| !before.contains(pack));
    std::fs::remove_file(of_broken.unwrap()).unwrap();
    for records in [1, 0] {
        let run = place.run(&["archive", "import", "foreign", "--json"]);
        assert_eq!(run.code, 5, "{}", run.stderr);
        let done = run.json();
        assert_eq!(
            (&done["records"], &done["left_out"]),
            (&json!(records), &json!([broken]))
        );
        let list = place.json(&["archive", "list"])["sessions"].to_string();
        assert!(list.contains("whole") && !list.contains("broken"), "{list}");
        assert_eq!(place.json(&["archive", "verify"])["ok"], true);
    }
    assert_eq!(place.run(&["restore", &whole]).ok().text(), lines(80..120));
}

#[test]
fn a_pack_that_was_cut_short_is_named_and_the_others_are_checked() {
    let place = begun();
    compact_elsewhere(&place, "store", "other", &lines(40..80));
    let pack = packs(&place.store()).remove(0);
    let bytes = std::fs::read(&pack).unwrap();
    for length in [0, 1, 4, 10, 40, bytes.len() - 1] {
        std::fs::write(&pack, &bytes[..length]).unwrap();
        let checked = place.run(&["archive", "verify", "--json"]);
        assert_eq!(checked.code, 5, "{length}: {}", checked.stderr);
        let checked = checked.json();
        let name = pack.file_stem().unwrap().to_str().unwrap();
        assert_eq!(checked["problems"][0]["pack"], name, "{length}: {checked}");
        assert_eq!(
            (&checked["packs"], &checked["records"]),
            (&json!(4), &json!(2))
        );
    }
    std::fs::write(&pack, &bytes).unwrap();
    place.run(&["archive", "verify"]).ok();
}

#[test]
fn a_catalog_that_says_otherwise_than_the_archive_is_found_and_mended() {
    let place = begun();
    compact_elsewhere(&place, "store", "other", &lines(40..80));
    let last = "(SELECT max(rowid) FROM receipts)";
    for change in [
        format!("input_pack = (SELECT input_pack FROM receipts WHERE rowid = {last})"),
        "receipt = replace(receipt, '\"tokens_after\":', '\"tokens_after\":1')".to_owned(),
        "view_hashes = zeroblob(length(view_hashes))".to_owned(),
        "summary_version = 7".to_owned(),
    ] {
        let catalog = rusqlite::Connection::open(place.store().join("catalog.db")).unwrap();
        let update = format!("UPDATE receipts SET {change} WHERE rowid <> {last}");
        assert_eq!(catalog.execute(&update, []).unwrap(), 1, "{change}");
        drop(catalog);
        let checked = place.run(&["archive", "verify"]);
        assert_eq!(checked.code, 5, "{change}: {}", checked.stderr);
        let checked = checked.text();
        assert!(
            checked.contains("otherwise than the archive"),
            "{change}: {checked}"
        );
        assert_eq!(place.json(&["archive", "rebuild"])["mended"], 1, "{change}");
        place.run(&["archive", "verify"]).ok();
        assert_eq!(place.run(&["restore", "s"]).ok().text(), lines(0..30));
    }
}

/// Two people call two sessions alike: what a name gave before an import, it gives after it.
#[test]
fn an_imported_session_takes_no_other_sessions_name() {
    let place = begun();
    let backup = place.path("foreign");
    let there = [("COMPACT_STORAGE_PATH", backup.to_str().unwrap())];
    place.write("other.jsonl", lines(40..80));
    let compact = [
        "compact",
        "other.jsonl",
        "--budget",
        "1000",
        "--session",
        "s",
    ];
    with(&place, &compact, &there).ok();
    for packs in [2, 0] {
        let done = place.json(&["archive", "import", "foreign"]);
        assert_eq!(done["packs"], packs, "{done}");
        let name = done["renamed"]["s"].as_str().unwrap().to_owned();
        assert_eq!(place.run(&["restore", "s"]).ok().text(), lines(0..30));
        assert_eq!(place.run(&["restore", &name]).ok().text(), lines(40..80));
    }
    // The archive tells the same where the catalog is made again.
    let before = place.json(&["archive", "list"]);
    std::fs::remove_file(place.store().join("catalog.db")).unwrap();
    place.run(&["archive", "rebuild"]).ok();
    assert_eq!(place.json(&["archive", "list"]), before);
    assert_eq!(place.json(&["archive", "verify"])["ok"], true);
}

/// Compacts messages under a name in another store.
fn compact_elsewhere(place: &Place, store: &str, session: &str, messages: &str) -> String {
    let folder = place.path(store);
    let there = [("COMPACT_STORAGE_PATH", folder.to_str().unwrap())];
    place.write("elsewhere.jsonl", messages);
    let arguments = ["compact", "elsewhere.jsonl", "--budget", "1000"];
    let arguments = [&arguments[..], &["--session", session, "--json"]].concat();
    let run = with(place, &arguments, &there).ok();
    run.json()["receipt_id"].as_str().unwrap().to_owned()
}

/// The catalog says the same when it is made again from the archive.
fn assert_rebuilt_alike(place: &Place) {
    let before = place.json(&["archive", "list"]);
    std::fs::remove_file(place.store().join("catalog.db")).unwrap();
    // Packs that came without a record are told, and change nothing.
    let code = place.run(&["archive", "rebuild"]).code;
    assert!([0, 5].contains(&code), "{code}");
    assert_eq!(place.json(&["archive", "list"]), before);
}

/// Somebody who was given a copy of the store adds a conversation of theirs to a session of ours.
#[test]
fn an_import_does_not_change_what_a_session_of_the_same_origin_gives() {
    let place = begun();
    place.run(&["archive", "export", "shared"]).ok();
    compact_elsewhere(&place, "shared", "s", &lines(40..80));
    for _ in 0..2 {
        let done = place.json(&["archive", "import", "shared"]);
        let name = done["renamed"]["s"].as_str().unwrap().to_owned();
        assert_eq!(place.run(&["restore", "s"]).ok().text(), lines(0..30));
        assert_eq!(place.run(&["restore", &name]).ok().text(), lines(40..80));
    }
    assert_rebuilt_alike(&place);
    assert_eq!(place.run(&["restore", "s"]).ok().text(), lines(0..30));
}

/// A session that went on elsewhere holds all that it held here: it keeps its name.
#[test]
fn a_session_that_went_on_elsewhere_is_imported_under_its_name() {
    let place = begun();
    place.run(&["archive", "export", "shared"]).ok();
    compact_elsewhere(&place, "shared", "s", &lines(0..60));
    let done = place.json(&["archive", "import", "shared"]);
    assert_eq!(
        (&done["renamed"], &done["records"]),
        (&json!({}), &json!(1))
    );
    assert_eq!(place.run(&["restore", "s"]).ok().text(), lines(0..60));
    assert_rebuilt_alike(&place);
}

/// Records that only the archive of the other store has are nobody's word.
#[test]
fn an_import_brings_no_record_that_the_other_catalog_does_not_list() {
    let place = begun();
    compact_elsewhere(&place, "foreign", "z", &lines(80..120));
    let catalog = std::fs::read(place.path("foreign/catalog.db")).unwrap();
    compact_elsewhere(&place, "foreign", "s", &lines(40..80));
    for file in ["catalog.db-wal", "catalog.db-shm"] {
        let _ = std::fs::remove_file(place.path("foreign").join(file));
    }
    place.write("foreign/catalog.db", catalog);
    let done = place.json(&["archive", "import", "foreign"]);
    assert_eq!(
        (&done["renamed"], &done["records"]),
        (&json!({}), &json!(1))
    );
    assert_rebuilt_alike(&place);
    assert_eq!(place.run(&["restore", "s"]).ok().text(), lines(0..30));
}

/// Whoever knows a receipt can call a session like the short form of its id.
#[test]
fn a_session_that_is_called_like_a_receipt_does_not_stand_for_it() {
    let place = begun();
    let receipt = place.json(&["archive", "show", "s"])["compactions"][0]["receipt_id"].clone();
    let receipt = receipt.as_str().unwrap().to_owned();
    let short = &receipt[..12];
    let pointer = format!("{short}#3");
    let before = place.run(&["expand", &pointer]).ok().text();
    compact_elsewhere(&place, "foreign", short, &lines(40..80));
    let done = place.json(&["archive", "import", "foreign"]);
    let name = done["renamed"][short].as_str().unwrap();
    assert_eq!(place.run(&["restore", short]).ok().text(), lines(0..30));
    assert_eq!(place.run(&["restore", name]).ok().text(), lines(40..80));
    // The same name from a transcript is no import; nothing takes it for the receipt.
    compact_elsewhere(&place, "store", short, &lines(80..120));
    let (named_receipt, named_session) = (format!("receipt:{receipt}"), format!("session:{short}"));
    for command in ["restore", "verify", "remember"] {
        let failed = place.run(&[command, short]).failed(2);
        let says = |text: &str| failed.stderr.contains(text);
        assert!(
            says(&named_receipt) && says(&named_session),
            "{}",
            failed.stderr
        );
    }
    let restored = |name: &str| place.run(&["restore", name]).ok().text();
    assert_eq!(restored(&named_receipt), lines(0..30));
    assert_eq!(restored(&named_session), lines(80..120));
    assert_eq!(place.run(&["expand", &pointer]).ok().text(), before);
    assert_eq!(place.run(&["restore", &receipt]).ok().text(), lines(0..30));
    let searched = place.run(&["recall", "case", "90", "--session", short]);
    assert!(searched.failed(2).stderr.contains(&receipt));
}

#[test]
fn a_catalog_is_copied_to_another_folder_and_not_onto_itself() {
    let place = begun();
    std::fs::create_dir(place.path("copy")).unwrap();
    let done = place.json(&["catalog", "copy", "--to", "copy"]);
    assert_eq!(
        (done["sessions"].as_u64(), done["records"].as_u64()),
        (Some(1), Some(1))
    );
    let again = place.json(&["catalog", "copy", "--to", "copy"]);
    assert_eq!(again["records"], 0);
    let own = place.store();
    place
        .run(&["catalog", "copy", "--to", own.to_str().unwrap()])
        .failed(2);
    place.run(&["catalog", "copy"]).failed(2);
    place.run(&["catalog", "migrate"]).ok();
}

#[test]
fn an_encrypted_store_shows_no_word_and_needs_its_key() {
    let key = "0f".repeat(32);
    let sealed = [
        ("COMPACT_STORAGE_ARCHIVE_KEY_ENV", "MY_KEY"),
        ("MY_KEY", key.as_str()),
    ];
    let place = Place::new();
    let secret = lines(0..30).replace("parser", "quokkaword");
    place.write("s.jsonl", &secret);
    with(&place, SESSION, &sealed).ok();
    with(&place, &["recall", "quokkaword"], &sealed).ok();
    assert_eq!(with(&place, &["restore", "s"], &sealed).ok().text(), secret);
    let other = [sealed[0], ("MY_KEY", &*"1f".repeat(32))];
    let locked = with(&place, &["restore", "s"], &other).failed(2);
    assert!(locked.stderr.contains("encrypted"), "{}", locked.stderr);
    let unset = with(&place, &["restore", "s"], &sealed[..1]).failed(2);
    assert!(unset.stderr.contains("MY_KEY"), "{}", unset.stderr);
    let short = [sealed[0], ("MY_KEY", "hunter2hunter2")];
    let malformed = with(&place, &["restore", "s"], &short).failed(2);
    assert!(
        !malformed.stderr.contains("hunter2"),
        "{}",
        malformed.stderr
    );
    assert!(!holds(&place.store(), b"quokkaword"));
}

/// True when any file below a folder holds some bytes.
fn holds(folder: &std::path::Path, needle: &[u8]) -> bool {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().path()).any(|path| {
        if path.is_dir() {
            return holds(&path, needle);
        }
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(needle.len()).any(|w| w == needle)
    })
}

#[test]
fn retention_lets_go_after_each_compaction_what_no_view_points_at() {
    let place = Place::new();
    let none = [("COMPACT_STORAGE_RETENTION_MAX_BYTES", "0")];
    for (file, turns) in [("a.jsonl", 0..30), ("b.jsonl", 100..130)] {
        place.write(file, lines(turns));
        let arguments = ["compact", file, "--budget", "1500", "--session", "s", "-q"];
        with(&place, &arguments, &none).ok();
    }
    let listed = place.json(&["archive", "list"]);
    assert_eq!(listed["sessions"][0]["compactions"], 1);
    assert_eq!(place.run(&["restore", "s"]).ok().text(), lines(100..130));
    assert_eq!(place.json(&["archive", "verify"])["ok"], true);
    let pruned = with(&place, &["archive", "prune", "--yes", "--json"], &none).ok();
    assert_eq!(pruned.json()["removed"], serde_json::json!([]));
    place.run(&["archive", "prune", "--yes"]).failed(2);
}

#[test]
fn a_password_in_an_address_is_refused_and_not_repeated() {
    let place = begun();
    let url = "postgres://ann:hunter2@db.example/team";
    for arguments in [&["archive", "list"][..], &["config", "show"]] {
        let run = with(&place, arguments, &[("COMPACT_STORAGE_CATALOG", url)]).failed(2);
        assert!(run.stderr.contains("PGPASSWORD"), "{}", run.stderr);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
    let run = place.run(&["catalog", "copy", "--to", url]).failed(2);
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    let s3 = [("COMPACT_STORAGE_ADAPTER", "s3")];
    let run = with(&place, &["archive", "list"], &s3).failed(2);
    assert!(run.stderr.contains("storage.s3.bucket"), "{}", run.stderr);
}

/// What `cargo xtask test` starts; `None` without it.
fn servers(name: &str) -> Option<Vec<(&'static str, String)>> {
    let prefix = format!("{name}-{}", std::process::id());
    Some(vec![
        ("COMPACT_STORAGE_ADAPTER", "s3".to_owned()),
        ("COMPACT_STORAGE_S3_BUCKET", "compact-test".to_owned()),
        ("COMPACT_STORAGE_S3_PREFIX", prefix),
        ("COMPACT_STORAGE_S3_REGION", "us-east-1".to_owned()),
        (
            "COMPACT_STORAGE_S3_ENDPOINT",
            std::env::var("COMPACT_TEST_S3").ok()?,
        ),
        (
            "COMPACT_STORAGE_CATALOG",
            format!("{}/postgres", std::env::var("COMPACT_TEST_POSTGRES").ok()?),
        ),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
    ])
}

/// What, where, and what to do about it; never a secret.
#[test]
fn stores_that_are_not_as_configured_are_told_with_what_to_do() {
    let Some(servers) = servers("wrong") else {
        return;
    };
    let place = begun();
    let base = std::env::var("COMPACT_TEST_POSTGRES").unwrap();
    let catalog = |url: String| vec![("COMPACT_STORAGE_CATALOG", url)];
    // `cargo xtask test` lets this one in with a password only.
    let guarded = format!("{}/postgres", base.replace("test@", "guarded@"));
    let wrong = ("PGPASSWORD", "hunter2-hunter2".to_owned());
    let bucket = ("COMPACT_STORAGE_S3_BUCKET", "nowhere".to_owned());
    let endpoint = (
        "COMPACT_STORAGE_S3_ENDPOINT",
        "http://127.0.0.1:1".to_owned(),
    );
    let cases = [
        (catalog(guarded.clone()), 2, "password", "PGPASSWORD"),
        (
            [catalog(guarded), vec![wrong]].concat(),
            2,
            "password authentication failed for user \"guarded\"",
            "PGPASSWORD",
        ),
        (
            catalog(format!("{base}/nowhere")),
            2,
            "database \"nowhere\" does not exist",
            "createdb",
        ),
        (
            catalog("postgres://ann@127.0.0.1:1/team".to_owned()),
            1,
            "cannot open catalog postgres://ann@127.0.0.1:1/team",
            "host and port",
        ),
        (
            vec![bucket],
            2,
            "there is no bucket nowhere at http://",
            "storage.s3.bucket",
        ),
        (
            vec![endpoint],
            1,
            "http://127.0.0.1:1 does not answer",
            "storage.s3.endpoint",
        ),
    ];
    for (changed, code, what, advice) in cases {
        let variables: Vec<(&str, &str)> = servers
            .iter()
            .chain(&changed)
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let run = with(&place, &["archive", "verify"], &variables).failed(code);
        let (message, help) = run.stderr.split_once("\nhelp: ").unwrap();
        assert!(message.contains(what), "{}", run.stderr);
        assert!(help.contains(advice), "{}", run.stderr);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
}

/// Archived by one process, restored byte for byte by another that has nothing but the servers.
#[test]
fn what_one_machine_archives_another_restores_and_finds() {
    let Some(servers) = servers("machines") else {
        return;
    };
    let servers: Vec<(&str, &str)> = servers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let (one, two) = (Place::new(), Place::new());
    let session = format!("machines-{}", std::process::id());
    one.write("s.jsonl", lines(0..30));
    with(&one, &["catalog", "migrate"], &servers).ok();
    let compact = [
        "compact",
        "s.jsonl",
        "--budget",
        "1500",
        "--session",
        &session,
        "--json",
    ];
    let receipt = with(&one, &compact, &servers).ok().json();
    assert!(!one.store().exists(), "nothing is left on the machine");
    assert_eq!(
        with(&two, &["restore", &session], &servers).ok().text(),
        lines(0..30)
    );
    let id = receipt["receipt_id"].as_str().unwrap();
    assert_eq!(
        with(&two, &["verify", id, "--json"], &servers).ok().json()["ok"],
        true
    );
    let found = with(
        &two,
        &["recall", "record field", "--session", &session, "--json"],
        &servers,
    );
    assert!(found.code == 0, "{}", found.stderr);
    let verified = with(&two, &["archive", "verify", "--json"], &servers).json();
    // Two writers at once may both be told that they were first: this server is not always atomic.
    let probed = verified["conditional_writes"].as_str().unwrap();
    assert!(["works", "races"].contains(&probed), "{probed}");
    // And back to a folder.
    with(&two, &["archive", "export", "backup"], &servers[..]).ok();
    let folder = two.path("backup");
    let back = [("COMPACT_STORAGE_PATH", folder.to_str().unwrap())];
    assert_eq!(
        with(&two, &["restore", &session], &back).ok().text(),
        lines(0..30)
    );
}
