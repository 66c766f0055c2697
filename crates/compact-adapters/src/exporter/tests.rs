use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use compact_core::event::{Event, EventKind};
use compact_runtime::port::event::EventSink;
use compact_runtime::port::event::conformance::{self, trigger_decision};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// A stream whose content can be read back.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(form: ConsoleFormat, events: &[Event]) -> String {
    let page = Page::default();
    let console = ConsoleSink::new(form, page.clone());
    events.iter().for_each(|event| console.emit(event));
    page.text()
}

/// What a person reads of a host's JSON.
fn check(event: &Value, line: &Expect) {
    line.assert_eq(&ConsoleFormat::Human.format_event(event));
}

#[test]
fn a_line_for_people() {
    let line = expect![[r#"
        06:00:00 compact.trigger_decision session=abc 112,345/128,000 (88%) compact_now kept.pinned=3 kept.recent_turns=6 kept.tool_pairs=4 pruned_count=47 summary_tokens=480 cause=threshold reason="88 % of the window" pressure=0.88
    "#]];
    line.assert_eq(&written(ConsoleFormat::Human, &[trigger_decision()]));
}

#[test]
fn what_is_zero_or_absent_is_not_said_and_what_matters_is() {
    check(
        &json!({"ts": "2026-01-02T03:04:05.678Z", "event": "compact.failed", "severity": "warning",
            "session_id": "s", "model": null, "t_est": 5, "max": 0, "pruned_count": 0,
            "kept": {"pinned": 0}, "error": "no room left", "retention": 0.975, "stored_bytes": 12345}),
        &expect![[r#"
            03:04:05 compact.failed [warning] session=s error="no room left" retention=0.975 stored_bytes=12,345"#]],
    );
}

#[test]
fn nothing_in_an_event_can_move_the_cursor() {
    let odd = "a\nb\u{1b}[2J\0\u{202e}";
    check(
        &json!({"event": odd, "session_id": "x".repeat(100), "key\n": odd, "list": ["\u{7f}"]}),
        &expect![[r#"
            a\nb\u{1b}[2J\u{0}\u{202e} session=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… key\n=a\nb\u{1b}[2J\u{0}\u{202e} list=["\u{7f}"]"#]],
    );
}

#[test]
fn json_lines_carry_the_event_unchanged() {
    let events = conformance::odd_events();
    let lines = written(ConsoleFormat::Json, &events);
    let json = events.iter().map(|event| format!("{}\n", json!(event)));
    assert_eq!(lines, json.collect::<String>());
}

/// A stream that always fails.
struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("broken pipe"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::Error::other("broken pipe"))
    }
}

#[test]
fn consoles_conform_even_on_a_broken_stream() {
    for form in [ConsoleFormat::Human, ConsoleFormat::Json] {
        conformance::suite(&ConsoleSink::new(form, Page::default()));
        conformance::suite(&ConsoleSink::new(form, Broken));
    }
}

#[test]
fn a_callback_gets_every_event() {
    let (heard, events) = channel();
    let callback = CallbackSink::new(move |event| heard.send(event.clone()).unwrap());
    conformance::odd_events()
        .iter()
        .for_each(|event| callback.emit(event));
    drop(callback);
    // Not a number equals nothing, so their JSON is compared.
    let heard: Vec<Value> = events.iter().map(|event: Event| json!(event)).collect();
    assert_eq!(json!(heard), json!(conformance::odd_events()));
}

fn numbered(n: u64) -> Event {
    Event {
        kind: EventKind::Swapped { appended: n },
        ..trigger_decision()
    }
}

#[test]
fn a_background_delivers_in_order() {
    let page = Page::default();
    let background = BackgroundSink::new(ConsoleSink::new(ConsoleFormat::Json, page.clone()));
    let events: Vec<Event> = (0..500).map(numbered).collect();
    events.iter().for_each(|event| background.emit(event));
    assert_eq!(background.flush(Duration::from_secs(10)), 0);
    assert_eq!(background.dropped(), 0);
    let read: Vec<Event> = page
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(read, events);
}

#[test]
fn what_waits_is_delivered_when_a_background_is_dropped() {
    let page = Page::default();
    let slow = page.clone();
    let background = BackgroundSink::new(CallbackSink::new(move |_| {
        std::thread::sleep(Duration::from_millis(5));
        slow.clone().write_all(b".").unwrap();
    }));
    (0..20).for_each(|n| background.emit(&numbered(n)));
    drop(background);
    assert_eq!(page.text(), ".".repeat(20));
}

/// A sink that waits until its sender is gone.
struct Hanging(Mutex<Receiver<()>>);

fn hanging() -> (Sender<()>, Hanging) {
    let (release, wait) = channel();
    (release, Hanging(Mutex::new(wait)))
}

impl EventSink for Hanging {
    fn emit(&self, _event: &Event) {
        let _ = self.0.lock().unwrap().recv();
    }
}

#[test]
fn a_sink_that_hangs_holds_up_nobody() {
    let (release, sink) = hanging();
    let background = BackgroundSink::new(sink);
    conformance::suite(&background);
    let start = Instant::now();
    let waiting = background.flush(Duration::from_millis(50));
    assert!(start.elapsed() < Duration::from_secs(5));
    // Every event of the suite still waits, or found the queue full.
    assert!(waiting > 0 && background.dropped() > 0);
    assert_eq!(waiting + background.dropped(), 4 * 400);
    drop(release);
    assert_eq!(background.flush(Duration::from_secs(10)), 0);
}

#[test]
fn a_sink_that_panics_loses_its_events_and_nothing_else() {
    let background = BackgroundSink::new(CallbackSink::new(|event| {
        assert!(*event != numbered(1), "this one is refused");
    }));
    (0..3).for_each(|n| background.emit(&numbered(n)));
    assert_eq!(background.flush(Duration::from_secs(10)), 0);
    assert_eq!(background.dropped(), 1);
}
