//! What versions before this one left on disk: a folder of `fixtures` for each engine holds two compactions
//! of one session and their inputs. That of `engine-2` was made before the JSON of calls and results was
//! hashed in a canonical form, `engine-3` before views put the dialogue first, `engine-4` before they told the state of
//! the work, `engine-5` before a fence said which of its lines are the user's.

use std::path::{Path, PathBuf};

use crate::place::Place;

/// A store that an earlier engine left, with the ids that it gave out.
struct EarlierStore {
    folder: &'static str,
    engine: &'static str,
    session: &'static str,
    first: &'static str,
    second: &'static str,
}

const EARLIER: [EarlierStore; 4] = [
    EarlierStore {
        folder: "engine-2",
        engine: "compact 0.1.0+2",
        session: "session-2dc9ae3e5957a870f34a6796ac42a77f",
        first: "481b8b7303754d975cd0fd4de29c583e",
        second: "4cad97bd5de3a3613c02d8e04ac741d9",
    },
    EarlierStore {
        folder: "engine-3",
        engine: "compact 0.1.0+3",
        session: "session-8e23fc4364dc78e73eab745f6e8df3ec",
        first: "58397931ceece2e983c71e5a79beb093",
        second: "e4ebb62751212d9703a07ede1edb4692",
    },
    EarlierStore {
        folder: "engine-4",
        engine: "compact 0.1.0+4",
        session: "session-8e23fc4364dc78e73eab745f6e8df3ec",
        first: "0121ee0a13982dd3b2f7b270a216c0f9",
        second: "3a6d5e36e00727faab9797ce4023588c",
    },
    EarlierStore {
        folder: "engine-5",
        engine: "compact 0.1.0+5",
        session: "session-8e23fc4364dc78e73eab745f6e8df3ec",
        first: "fc1fa3135bbca5f534fd13fe81c6456c",
        second: "02635e0eaa0ba5e39a61bbf397e7db39",
    },
];

impl EarlierStore {
    fn fixture(&self, name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(self.folder)
            .join(name)
    }

    /// A place whose store is a copy of this one.
    fn place(&self) -> Place {
        let place = Place::new();
        copy(&self.fixture("data"), &place.store());
        place
    }
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

#[test]
fn what_an_earlier_version_archived_is_read_verified_and_restored() {
    for earlier in EARLIER {
        let place = earlier.place();
        let whole = place.run(&["archive", "verify"]).ok().text();
        assert!(
            whole.starts_with("verified 4 packs: all whole\n"),
            "{whole}"
        );
        for (receipt, input) in [
            (earlier.first, "first.json"),
            (earlier.second, "second.json"),
        ] {
            let proof = place.json(&["verify", receipt]);
            assert_eq!(
                (&proof["ok"], &proof["verified_by"], &proof["engine"]),
                (&true.into(), &"view".into(), &earlier.engine.into()),
                "{proof}"
            );
            let restored = place.run(&["restore", receipt]).ok().stdout;
            assert_eq!(restored, std::fs::read(earlier.fixture(input)).unwrap());
        }
        let found = place.run(&["recall", "headlamp serial number"]).ok().text();
        assert!(found.contains("I7kxuePfMx4"), "{found}");
    }
}

/// Its results hold JSON with blanks, which have other hashes since engine 3.
#[test]
fn a_session_goes_on_from_a_record_of_an_earlier_version() {
    for earlier in EARLIER {
        let place = earlier.place();
        place.write(
            "s.json",
            std::fs::read(earlier.fixture("second.json")).unwrap(),
        );
        let made = place.json(&["compact", "s.json", "--budget", "2900", "-o", "view.json"]);
        assert_eq!(
            (
                &made["session_id"],
                &made["previous"],
                &made["summary_version"]
            ),
            (&earlier.session.into(), &earlier.first.into(), &2.into())
        );
        // No entry is numbered anew: the view of the first shows up to 64, its summary is 65.
        assert_eq!(made["view_spans"][1], serde_json::json!([95, 95]));
        let receipt = made["receipt_id"].as_str().unwrap();
        assert_eq!(place.json(&["verify", receipt])["ok"], true);
    }
}
