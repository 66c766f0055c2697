use std::fs::OpenOptions;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;

const OURS: &[u8] = b"{\"ours\":1}\n{\"ours\":2}\n{\"ours\":3}\n";

fn transcript(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.jsonl");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn write_behind(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn lines_stand_behind_what_was_read() {
    let (folder, path) = transcript("{\"a\":1}\n");
    let mut transcript = SharedTranscript::open(&path).unwrap();
    let source = transcript.read_at_rest().unwrap();
    let outcome = transcript.append(&source, OURS).unwrap();
    assert_eq!(outcome, AppendOutcome::Written);
    assert_eq!(fs::read(&path).unwrap(), [b"{\"a\":1}\n", OURS].concat());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_line_that_came_since_outruns_ours_and_stays() {
    let (_folder, path) = transcript("{\"a\":1}\n");
    let mut transcript = SharedTranscript::open(&path).unwrap();
    let source = transcript.read_at_rest().unwrap();
    write_behind(&path, "{\"b\":1}\n");
    let outcome = transcript.append(&source, OURS).unwrap();
    assert_eq!(outcome, AppendOutcome::FileChanged);
    assert_eq!(fs::read(&path).unwrap(), b"{\"a\":1}\n{\"b\":1}\n");
}

#[test]
fn a_file_of_the_same_size_is_another_one() {
    let (_folder, path) = transcript("{\"a\":1}\n");
    let mut transcript = SharedTranscript::open(&path).unwrap();
    let source = transcript.read_at_rest().unwrap();
    fs::write(&path, "{\"a\":2}\n").unwrap();
    let outcome = transcript.append(&source, OURS).unwrap();
    assert_eq!(outcome, AppendOutcome::FileChanged);
    let other = path.with_extension("new");
    fs::write(&other, "{\"a\":1}\n").unwrap();
    fs::rename(&other, &path).unwrap();
    let outcome = transcript.append(&source, OURS).unwrap();
    assert_eq!(outcome, AppendOutcome::FileChanged);
    assert_eq!(fs::read(&path).unwrap(), b"{\"a\":1}\n");
}

/// What an agent writes between the look at the file and the room that is taken, and behind it.
#[test]
fn room_that_does_not_stand_behind_what_was_read_stays_blank() {
    let (_folder, path) = transcript("{\"a\":1}\n");
    let mut transcript = SharedTranscript::open(&path).unwrap();
    write_behind(&path, "{\"b\":1}\n");
    let room = transcript.take_room(OURS.len()).unwrap();
    assert_eq!(room.start, 16);
    write_behind(&path, "{\"c\":1}\n");
    let text = fs::read_to_string(&path).unwrap();
    let said: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    assert_eq!(said, ["{\"a\":1}", "{\"b\":1}", "{\"c\":1}"]);
}

#[test]
fn a_line_that_is_not_finished_is_waited_for_and_then_refused() {
    let (_folder, path) = transcript("{\"a\":1}\n{\"b\":");
    let mut transcript = SharedTranscript::open(&path).unwrap();
    let failure = transcript.read_at_rest().unwrap_err();
    assert_eq!(failure.code(), FailureCode::Busy);
    assert!(failure.message().contains("its last line is not finished"));
    let agent = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        write_behind(&path, "2}\n");
    });
    let source = transcript.read_at_rest().unwrap();
    agent.join().unwrap();
    assert_eq!(source, "{\"a\":1}\n{\"b\":2}\n");
}

#[test]
fn two_of_us_do_not_meet() {
    let (_folder, path) = transcript("{\"a\":1}\n");
    let held = SharedTranscript::open(&path).unwrap();
    let failure = SharedTranscript::open(&path).unwrap_err();
    assert_eq!(failure.code(), FailureCode::Busy);
    drop(held);
    SharedTranscript::open(&path).unwrap();
}

#[test]
fn a_session_that_codex_has_open_is_refused() {
    let (folder, path) = transcript("{\"a\":1}\n");
    let locks = folder.path().join("thread-writer-locks");
    fs::create_dir(&locks).unwrap();
    let lock = File::create(locks.join("t.lock")).unwrap();
    lock.lock().unwrap();
    let mut transcript = SharedTranscript::open(&path).unwrap();
    let failure = transcript.read_at_rest().unwrap_err();
    assert_eq!(failure.code(), FailureCode::Busy);
    assert!(failure.message().contains("Codex has the session open"));
    lock.unlock().unwrap();
    transcript.read_at_rest().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_not_a_file() {
    let failure = SharedTranscript::open(Path::new("/dev/full")).unwrap_err();
    assert_eq!(failure.code(), FailureCode::Input);
}

/// An agent that appends through a handle, and one that writes anew and renames, as fast as they can,
/// while lines are put behind theirs over and over.
#[test]
fn no_line_is_lost_or_torn_whoever_writes_how_fast() {
    for by_rename in [false, true] {
        let (_folder, path) = transcript("{\"agent\":-1}\n");
        let done = AtomicBool::new(false);
        let appended = thread::scope(|scope| {
            let agent = scope.spawn(|| {
                (0..1000).for_each(|n| write_as_agent(&path, n, by_rename));
                done.store(true, Ordering::SeqCst);
            });
            let mut appended = 0;
            while !done.load(Ordering::SeqCst) || appended == 0 {
                let mut transcript = SharedTranscript::open(&path).unwrap();
                let source = transcript.read_bytes().unwrap();
                if !ends_with_whole_line(&source) {
                    continue;
                }
                let outcome = transcript.append(&source, OURS).unwrap();
                appended += usize::from(outcome == AppendOutcome::Written);
            }
            agent.join().unwrap();
            appended
        });
        check(&fs::read_to_string(&path).unwrap(), appended, by_rename);
    }
}

fn write_as_agent(path: &Path, n: usize, by_rename: bool) {
    let line = format!("{{\"agent\":{n}}}\n");
    if by_rename && n % 10 == 9 {
        // It may copy a file that somebody appends to: its own lines are all that it vouches for.
        let old = fs::read_to_string(path).unwrap();
        let own: String = old
            .lines()
            .filter(|l| l.starts_with("{\"agent"))
            .map(|l| format!("{l}\n"))
            .collect();
        let other = path.with_extension("new");
        fs::write(&other, own + &line).unwrap();
        fs::rename(&other, path).unwrap();
    } else {
        write_behind(path, &line);
    }
}

fn check(text: &str, appended: usize, by_rename: bool) {
    let said = text.lines().filter(|line| !line.trim().is_empty());
    let (agents, ours): (Vec<&str>, Vec<&str>) = said.partition(|line| line.contains("agent"));
    let expected: Vec<String> = (-1..1000).map(|n| format!("{{\"agent\":{n}}}")).collect();
    assert_eq!(agents, expected);
    assert!(
        ours.chunks(3)
            .all(|lines| lines.join("\n").as_bytes() == OURS.trim_ascii_end())
    );
    assert!(
        by_rename || ours.len() == 3 * appended,
        "{} of {appended}",
        ours.len()
    );
}
