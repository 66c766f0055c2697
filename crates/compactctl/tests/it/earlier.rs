//! What versions before this one left on disk: `fixtures/engine-2` holds two compactions of one session,
//! made before the JSON of calls and results was hashed in a canonical form, and their inputs.

use std::path::{Path, PathBuf};

use crate::place::Place;

const FIRST: &str = "481b8b7303754d975cd0fd4de29c583e";
const SECOND: &str = "4cad97bd5de3a3613c02d8e04ac741d9";
const SESSION: &str = "session-2dc9ae3e5957a870f34a6796ac42a77f";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/engine-2")
        .join(name)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        match from.is_dir() {
            true => copy(&from, &to),
            false => std::fs::copy(&from, &to).map(|_| ()).unwrap(),
        }
    }
}

/// A place whose store is the one that the earlier version left.
fn left_behind() -> Place {
    let place = Place::new();
    copy(&fixture("data"), &place.store());
    place
}

#[test]
fn what_an_earlier_version_archived_is_read_verified_and_restored() {
    let place = left_behind();
    let whole = place.run(&["archive", "verify"]).ok().text();
    assert!(
        whole.starts_with("verified 4 packs: all whole\n"),
        "{whole}"
    );
    for (receipt, input) in [(FIRST, "first.json"), (SECOND, "second.json")] {
        let proof = place.json(&["verify", receipt]);
        assert_eq!(
            (&proof["ok"], &proof["verified_by"], &proof["engine"]),
            (&true.into(), &"view".into(), &"compact 0.1.0+2".into()),
            "{proof}"
        );
        let restored = place.run(&["restore", receipt]).ok().stdout;
        assert_eq!(restored, std::fs::read(fixture(input)).unwrap());
    }
    let found = place.run(&["recall", "headlamp serial number"]).ok().text();
    assert!(found.contains("I7kxuePfMx4"), "{found}");
}

/// Its results hold JSON with blanks, which have other hashes now.
#[test]
fn a_session_goes_on_from_a_record_of_an_earlier_version() {
    let place = left_behind();
    place.write("s.json", std::fs::read(fixture("second.json")).unwrap());
    let made = place.json(&["compact", "s.json", "--budget", "2900", "-o", "view.json"]);
    assert_eq!(
        (
            &made["session_id"],
            &made["previous"],
            &made["summary_version"]
        ),
        (&SESSION.into(), &FIRST.into(), &2.into())
    );
    // No entry is numbered anew: the view of the first shows up to 64, its summary is 65.
    assert_eq!(made["view_spans"][1], serde_json::json!([95, 95]));
    let receipt = made["receipt_id"].as_str().unwrap();
    assert_eq!(place.json(&["verify", receipt])["ok"], true);
}
