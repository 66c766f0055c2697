use compact_core::event::{EventScope, UsageReport};
use tempfile::tempdir;

use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn event(kind: EventKind, ts: &str) -> Event {
    let scope = EventScope {
        session_id: "s".to_owned(),
        model: Some("gpt-5".to_owned()),
        ..EventScope::default()
    };
    let mut event = scope.event(kind, ts);
    event.receipt.receipt_id = Some("r1".to_owned());
    event
}

fn request(ts: &str) -> Event {
    let report = UsageReport {
        turn_input: 10,
        turn_output: 5,
        turn_cache_read: 90,
        turn_cache_creation: 7,
        turn_cost_usd: Some(0.25),
        ..UsageReport::default()
    };
    event(EventKind::Usage(report), ts)
}

const MISS: CacheMiss = CacheMiss {
    expected_tokens: Tokens(90_000),
    read_tokens: Tokens(2_048),
    idle_seconds: 12,
    origin: MissOrigin::Agent,
    change: Some(PromptChange {
        part: PromptPart::Message,
        message: Some(7),
        at_byte: 118,
    }),
    extra_usd: Some(0.125),
};

#[test]
fn what_is_noted_is_read_again_by_time_and_nothing_else_is_noted() {
    let folder = tempdir().unwrap();
    let journal = Journal::new(folder.path());
    assert_eq!(journal.read_since(Timestamp::UNIX_EPOCH, |_| true), []);
    journal.emit(&event(EventKind::Started, "2026-01-04T23:00:00Z"));
    assert!(!folder.path().join(FOLDER).exists());
    journal.emit(&request("2026-01-05T00:00:01Z"));
    journal.emit(&request("2026-01-04T23:59:59Z"));
    journal.emit(&event(EventKind::CacheMissed(MISS), "2026-01-06T00:00:00Z"));
    journal.note_project("s", "/home/a/shop", time("2026-01-07T00:00:00Z"));
    assert_eq!(journal.list_files(), ["2026-W01.jsonl", "2026-W02.jsonl"]);
    let read = journal.read_since(time("2026-01-04T23:59:59Z"), |_| true);
    let times: Vec<String> = read.iter().map(|entry| entry.at.to_string()).collect();
    assert_eq!(
        times,
        [
            "2026-01-04T23:59:59Z",
            "2026-01-05T00:00:01Z",
            "2026-01-06T00:00:00Z",
            "2026-01-07T00:00:00Z"
        ]
    );
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cache_read_tokens: 90,
        cache_creation_tokens: 7,
    };
    let facts: Vec<&JournalFact> = read.iter().skip(1).map(|entry| &entry.fact).collect();
    assert_eq!(
        facts,
        [
            &JournalFact::Request {
                usage,
                cost_usd: Some(0.25)
            },
            &JournalFact::Miss(MISS),
            &JournalFact::Project("/home/a/shop".to_owned()),
        ]
    );
    assert_eq!(read[0].model.as_deref(), Some("gpt-5"));
    let later = journal.read_since(time("2026-01-05T00:00:02Z"), |line| line.contains("missed"));
    assert_eq!(later.len(), 1);
}

#[test]
fn within_a_millisecond_what_was_noted_first_comes_first() {
    let folder = tempdir().unwrap();
    let journal = Journal::new(folder.path());
    journal.note_project("s", "/home/a/shop", time("2026-01-05T00:00:00.0019Z"));
    journal.emit(&request("2026-01-05T00:00:00.001Z"));
    let read = journal.read_since(Timestamp::UNIX_EPOCH, |_| true);
    let projects = read.iter().map(|entry| &entry.fact);
    let is_project = |fact: &JournalFact| matches!(fact, JournalFact::Project(_));
    assert_eq!(projects.map(is_project).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_torn_line_costs_itself_and_old_weeks_are_removed() {
    let folder = tempdir().unwrap();
    let journal = Journal::new(folder.path());
    for week in 0..30 {
        let at = time("2026-01-05T00:00:00Z") + jiff::SignedDuration::from_hours(week * 168);
        journal.emit(&request(&at.to_string()));
    }
    assert_eq!(journal.list_files().len(), WEEKS + 1);
    let newest = journal.list_files().pop().unwrap();
    let path = folder.path().join(FOLDER).join(newest);
    let mut text = fs::read_to_string(&path).unwrap();
    text.insert_str(0, "{\"ts\":\"2026-\n");
    fs::write(&path, text).unwrap();
    assert_eq!(
        journal.read_since(Timestamp::UNIX_EPOCH, |_| true).len(),
        WEEKS + 1
    );
}
