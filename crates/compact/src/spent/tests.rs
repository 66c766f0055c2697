use compact_core::event::MissOrigin;

use super::*;

const MODEL: &str = "claude-sonnet-4-5";
const HOUR: i64 = 3_600;

fn entry(session: &str, second: i64, fact: JournalFact) -> JournalEntry {
    JournalEntry {
        at: Timestamp::from_second(second).unwrap(),
        session: session.to_owned(),
        project: Some("/srv".to_owned()),
        model: Some(MODEL.to_owned()),
        window: None,
        fact,
    }
}

fn request(session: &str, second: i64, cached: u64) -> JournalEntry {
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 10,
        cache_read_tokens: cached,
        cache_creation_tokens: 50,
    };
    let cost_usd = Some(0.5);
    entry(session, second, JournalFact::Request { usage, cost_usd })
}

fn compaction(session: &str, second: i64) -> JournalEntry {
    let fact = JournalFact::Compaction {
        receipt: format!("r{second}"),
        cause: Some(CompactionCause::Threshold),
        tokens: (Tokens(100_000), Tokens(10_000)),
    };
    entry(session, second, fact)
}

fn report(entries: &[JournalEntry], now: i64) -> SpendingReport {
    build_report(entries, Timestamp::from_second(now).unwrap(), 300)
}

#[test]
fn requests_are_summed_by_project_week_and_for_the_last_hour() {
    let week = 7 * 24 * HOUR;
    let entries = [
        entry("a", 0, JournalFact::Project("/home/a/shop".to_owned())),
        request("a", 10, 1_000),
        request("b", week, 1_000),
        request("a", week + 20, 1_000),
    ];
    let found = report(&entries, week + 30);
    assert_eq!((found.all.requests, found.all.cost_usd), (3, 1.5));
    assert_eq!((found.hour.requests, found.hour.cost_usd), (2, 1.0));
    let rows: Vec<(&str, Option<&str>, u64)> = found
        .weeks
        .iter()
        .map(|row| (row.week.as_str(), row.project.as_deref(), row.sum.requests))
        .collect();
    assert_eq!(
        rows,
        [
            ("1970-W02", Some("/home/a/shop"), 1),
            ("1970-W02", Some("/srv"), 1),
            ("1970-W01", Some("/home/a/shop"), 1)
        ]
    );
}

#[test]
fn a_compaction_is_judged_by_the_requests_that_followed() {
    let price = price_of(Some(MODEL)).unwrap();
    let (read, write) = (price.cache_read.unwrap(), price.cache_write.unwrap());
    let written = 10_000.0 * (write - read) / 1e6;
    let saved = |requests: f64| requests * 90_000.0 * read / 1e6 - written;
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    let mut entries = vec![request("a", 0, 90_000), compaction("a", 10)];
    let unused = report(&entries, 20);
    let cost = unused.compactions["r10"];
    assert_eq!((cost.requests, cost.saved_usd), (0, None));
    assert_eq!(cost.warmth, Some(CacheWarmth::Warm));
    close(cost.cost_usd.unwrap(), written);
    entries.push(request("a", 20, 0));
    let early = report(&entries, 30);
    close(early.compactions["r10"].saved_usd.unwrap(), saved(1.0));
    assert!(saved(1.0) < 0.0);
    close(early.all.lost_usd, -saved(1.0));
    assert_eq!(early.all.saved_usd, 0.0);
    entries.extend((3..13).map(|n| request("a", n * 10, 10_000)));
    let late = report(&entries, 200);
    close(late.all.saved_usd, saved(11.0));
    assert_eq!(late.all.lost_usd, 0.0);
    // The next compaction ends the count.
    entries.push(compaction("a", 900));
    entries.push(request("a", 910, 0));
    let next = report(&entries, 920);
    assert_eq!(next.compactions["r10"].requests, 11);
    assert_eq!(next.compactions["r900"].warmth, Some(CacheWarmth::Cold));
    assert!(next.compactions["r900"].saved_usd.unwrap() > 0.0);
}

/// Two views of a session that goes on as it was, and the requests that go on with the one before them.
#[test]
fn what_was_asked_for_beside_a_session_counts_once_it_is_sent() {
    let asked = |second| {
        let mut entry = compaction("a", second);
        if let JournalFact::Compaction { cause, .. } = &mut entry.fact {
            *cause = Some(CompactionCause::Asked);
        }
        entry
    };
    let mut entries = vec![request("a", 0, 90_000), compaction("a", 10)];
    entries.extend([
        request("a", 20, 10_000),
        asked(30),
        request("a", 40, 11_000),
    ]);
    entries.extend([asked(50), request("a", 60, 12_000)]);
    let beside = report(&entries, 70);
    assert_eq!(beside.compactions["r10"].requests, 3);
    for receipt in ["r30", "r50"] {
        let cost = beside.compactions[receipt];
        assert_eq!((cost.requests, cost.saved_usd), (0, None), "{receipt}");
    }
    entries.push(request("a", 80, 4_000));
    let sent = report(&entries, 90);
    let requests = ["r10", "r30", "r50"].map(|receipt| sent.compactions[receipt].requests);
    assert_eq!(requests, [3, 0, 1]);
}

#[test]
fn what_the_next_message_costs_is_known_before_it_is_sent() {
    let price = price_of(Some(MODEL)).unwrap();
    let found = report(
        &[request("small", 0, 10), request("large", 90, 90_000)],
        100,
    );
    let names: Vec<&str> = found.resumes.iter().map(|r| r.session.as_str()).collect();
    assert_eq!(names, ["large", "small"]);
    let large = &found.resumes[0];
    assert_eq!((large.tokens, large.seconds_left), (Tokens(90_160), 290));
    let cold = 90_160.0 * price.cache_write.unwrap() / 1e6;
    assert!((large.cold_usd - cold).abs() < 1e-9 && large.warm_usd < large.cold_usd / 5.0);
    assert_eq!(
        report(&[request("s", 0, 10)], 400).resumes[0].seconds_left,
        0
    );
}

#[test]
fn misses_are_told_the_newest_first_and_paid_for() {
    let miss = |origin| CacheMiss {
        expected_tokens: Tokens(9_000),
        read_tokens: Tokens(0),
        idle_seconds: 5,
        origin,
        change: None,
        extra_usd: Some(0.25),
    };
    let noted = |second, origin| entry("a", second, JournalFact::Miss(miss(origin)));
    let entries = [
        noted(1, MissOrigin::Expired),
        noted(2, MissOrigin::Provider),
    ];
    let found = report(&entries, 3);
    let origins: Vec<MissOrigin> = found.misses.iter().map(|loss| loss.miss.origin).collect();
    assert_eq!(origins, [MissOrigin::Provider, MissOrigin::Expired]);
    assert_eq!(found.all.missed_usd, 0.5);
}
