//! Names of repositories, archives that are whole, and ledgers that are carried on.

use std::fs;
use std::path::Path;

use compact_core::redact::{RedactionBoundary, RedactionRules, Redactor};
use compact_runtime::host::{CharCount, HookPayload, HookTranscript, must_keep};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    HookArchive, HookStore, list_archives, list_lost_archives, remove_stale, repository_key,
};

#[test]
fn the_key_of_a_repository_is_its_path() {
    let key = |path: &str| repository_key(Path::new(path));
    assert_eq!(key("/home/cyou/mala"), "-home-cyou-mala");
    assert_ne!(key("/home/a-b/c"), key("/home/a/b-c"));
    assert_ne!(key("/home/a/b"), key("/home/a-b"));
    let odd = [
        key(""),
        key("/"),
        key("/a b"),
        key("/ü/../x"),
        key(&"/deep".repeat(200)),
    ];
    for name in odd {
        assert!(
            !name.is_empty() && name.len() < 200 && !name.contains('/'),
            "{name}"
        );
    }
}

fn archived(hooks: &Path, session: &str, text: &str) -> HookArchive {
    let off = RedactionRules::default().redactor(RedactionBoundary::Archive);
    let shelf = HookStore::for_session(hooks, Some(Path::new("/src")), session);
    let transcript = HookTranscript::Inline(text.as_bytes().to_vec());
    let made = shelf.archive(&transcript, Timestamp::now(), &off.unwrap());
    let path = made.unwrap().path;
    let mut found = list_archives(hooks).filter(|archive| archive.path == path);
    found.next().unwrap()
}

#[test]
fn an_archive_is_held_against_what_was_written_down() {
    let hooks = tempfile::tempdir().unwrap();
    let archive = archived(hooks.path(), "a session/of: any name", "all that was said");
    assert_eq!(archive.session, "a session/of: any name");
    assert!(archive.exact && archive.check().is_ok());
    fs::write(&archive.path, "all that").unwrap();
    assert_eq!(
        archive.check().unwrap_err().to_string(),
        "it has 8 bytes and 17 were written"
    );
    fs::write(&archive.path, "all that was sold").unwrap();
    assert_eq!(
        archive.check().unwrap_err().to_string(),
        "its checksum does not match"
    );
}

/// A hook that is killed leaves a staged copy. A sum without its archive is no such thing: it tells what is gone.
#[test]
fn what_killed_hooks_left_goes_after_a_day() {
    let hooks = tempfile::tempdir().unwrap();
    let whole = archived(hooks.path(), "s", "whole");
    let folder = whole.path.parent().unwrap();
    let sums = folder.with_file_name("sums");
    let staged = folder.join(".staged-aB3xYz");
    fs::write(&staged, "ha").unwrap();
    let lost = archived(hooks.path(), "s", "lost").path;
    fs::remove_file(&lost).unwrap();
    remove_stale(hooks.path(), Timestamp::UNIX_EPOCH);
    assert!(staged.exists(), "a hook may be at work");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 60 * 60);
    let files = fs::read_dir(folder)
        .unwrap()
        .chain(fs::read_dir(&sums).unwrap());
    for file in files {
        let file = fs::File::open(file.unwrap().path()).unwrap();
        file.set_modified(old).unwrap();
    }
    remove_stale(hooks.path(), Timestamp::UNIX_EPOCH);
    assert!(!staged.exists());
    assert!(whole.check().is_ok());
    let found: Vec<_> = list_lost_archives(hooks.path()).collect();
    assert_eq!(found, [lost]);
    whole.remove().unwrap();
    assert_eq!(list_lost_archives(hooks.path()).count(), 1);
}

fn redactor() -> Redactor {
    let rules = RedactionRules::default();
    rules.redactor(RedactionBoundary::Summary).unwrap()
}

/// What happens in a session, one line of its transcript each.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Prompt,
    /// A prompt that takes back what was said since an earlier one.
    Rewind,
    Words,
    Call,
    Answer,
    Failure,
    Summary,
}

fn deed() -> impl Strategy<Value = Deed> {
    use Deed::*;
    prop_oneof![
        3 => Just(Prompt), 1 => Just(Rewind), 3 => Just(Words), 5 => Just(Call),
        5 => Just(Answer), 1 => Just(Failure), 1 => Just(Summary),
    ]
}

/// A transcript of Claude Code, line by line.
fn transcript(deeds: &[Deed]) -> Vec<String> {
    let mut lines: Vec<Value> = Vec::new();
    for (nth, deed) in deeds.iter().enumerate() {
        let parent = match deed {
            Deed::Rewind => nth.checked_sub(3),
            _ => nth.checked_sub(1),
        };
        let call = (0..nth).rev().find(|at| matches!(deeds[*at], Deed::Call));
        let answer = |text: String, is_error: bool| {
            json!([{
                "type": "tool_result", "tool_use_id": format!("call-{}", call.unwrap_or(0)),
                "content": text, "is_error": is_error,
            }])
        };
        let (kind, content) = match deed {
            Deed::Prompt | Deed::Rewind => (
                "user",
                json!(format!(
                    "Never touch table_{nth}. Look at src/part_{nth}.rs next."
                )),
            ),
            Deed::Summary => ("user", json!(format!("So far part_{nth} was moved."))),
            Deed::Words => (
                "assistant",
                json!([{ "type": "text", "text": format!("I decided to keep cursor_{nth}.") }]),
            ),
            Deed::Call => (
                "assistant",
                json!([{
                    "type": "tool_use", "id": format!("call-{nth}"), "name": "Bash",
                    "input": { "command": format!("make part_{nth}") },
                }]),
            ),
            Deed::Answer => (
                "user",
                answer(format!("built target_{nth} in src/a.rs"), false),
            ),
            Deed::Failure => ("user", answer(format!("error: E0{nth} in src/b.rs"), true)),
        };
        let mut line = json!({
            "parentUuid": parent.map(|at| format!("u{at}")), "isSidechain": false, "type": kind,
            "uuid": format!("u{nth}"), "sessionId": "s", "version": "2.1.7",
            "message": { "role": kind, "content": content },
        });
        if matches!(deed, Deed::Summary) {
            line["isCompactSummary"] = json!(true);
        }
        lines.push(line);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn shelf(folder: &Path) -> HookStore {
    let call = json!({ "hook_event_name": "PreCompact", "session_id": "s", "cwd": "/src" });
    let call = HookPayload::read(call.to_string().as_bytes(), None).unwrap();
    HookStore::for_call(folder, &call)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever the last prompts found the transcript, half a line included, the list that comes of it
    /// is the one that reading all of it gives.
    #[test]
    fn a_ledger_that_is_carried_on_is_the_one_of_the_whole(
        deeds in prop::collection::vec(deed(), 2..24),
        cuts in prop::collection::vec((0.0..1.0f64, 0usize..40), 1..4),
    ) {
        let (folder, lines) = (tempfile::tempdir().unwrap(), transcript(&deeds));
        let (file, shelf) = (folder.path().join("t.jsonl"), shelf(folder.path()));
        let mut places: Vec<(usize, usize)> = cuts
            .iter()
            .map(|(at, more)| ((*at * lines.len() as f64) as usize, *more))
            .collect();
        places.sort_unstable();
        for (line, more) in places {
            let half: String = lines[line].chars().take(more).collect();
            fs::write(&file, lines[..line].concat() + &half).unwrap();
            if let Ok(memory) = shelf.load_ledger(&file, &redactor()) {
                shelf.save_ledger(&memory).unwrap();
                prop_assert_eq!(shelf.read_saved_ledger(), Some(memory));
            }
        }
        fs::write(&file, lines.concat()).unwrap();
        let warm = shelf.load_ledger(&file, &redactor()).unwrap();
        let cold = self::shelf(&folder.path().join("other")).load_ledger(&file, &redactor()).unwrap();
        prop_assert_eq!(must_keep(&warm.ledger, CharCount(6_000)), must_keep(&cold.ledger, CharCount(6_000)));
        prop_assert_eq!((warm.summaries, warm.ledger), (cold.summaries, cold.ledger));
    }
}

/// A ledger that is torn, of somebody else or of another session is drawn again.
#[test]
fn a_ledger_that_is_not_whole_is_drawn_again() {
    let lines = transcript(&[Deed::Prompt, Deed::Words, Deed::Prompt, Deed::Words]);
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (file, shelf) = (folder.path().join("t.jsonl"), shelf(folder.path()));
    fs::write(&file, lines.concat()).unwrap();
    let cold = self::shelf(other.path())
        .load_ledger(&file, &redactor())
        .unwrap();
    shelf.save_ledger(&cold).unwrap();
    let kept = folder.path().join("-src/sessions/s.ledger.sealed");
    let whole = fs::read(&kept).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let torn = [
        &whole[..0],
        &whole[..7],
        &whole[..40],
        &whole[..whole.len() - 1],
    ];
    for bytes in torn.into_iter().chain([&flipped[..], b"{\"read\":7}"]) {
        fs::write(&kept, bytes).unwrap();
        assert_eq!(shelf.load_ledger(&file, &redactor()).unwrap(), cold);
    }
    // The same name, another transcript.
    fs::write(&kept, &whole).unwrap();
    let another = transcript(&[
        Deed::Prompt,
        Deed::Call,
        Deed::Answer,
        Deed::Prompt,
        Deed::Words,
    ]);
    fs::write(&file, another.concat()).unwrap();
    let expected = self::shelf(other.path())
        .load_ledger(&file, &redactor())
        .unwrap();
    assert_eq!(shelf.load_ledger(&file, &redactor()).unwrap(), expected);
}
