use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use compact_core::event::{EventKind, Severity, TraceContext};
use compact_core::redact::{RedactionBoundary, RedactionRules};

use super::*;

struct Counter(Arc<AtomicUsize>);

impl EventSink for Counter {
    fn emit(&self, _event: &Event) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn silent_and_fanout_conform() {
    conformance::suite(&SilentSink);
    let count = Arc::new(AtomicUsize::new(0));
    let sink = |count: &Arc<AtomicUsize>| Box::new(Counter(count.clone()));
    conformance::suite(&FanoutSink(vec![
        sink(&count),
        Box::new(SilentSink),
        sink(&count),
    ]));
    assert_eq!(count.load(Ordering::Relaxed), 2 * 4 * 400);
}

#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl EventSink for Heard {
    fn emit(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

fn heard(rules: &RedactionRules, events: &[Event]) -> Vec<Event> {
    let heard = Arc::new(Heard::default());
    let redactor = Arc::new(rules.redactor(RedactionBoundary::Export).unwrap());
    let redacting = RedactingSink::new(redactor, Arc::clone(&heard) as Arc<dyn EventSink>);
    events.iter().for_each(|event| redacting.emit(event));
    heard.0.lock().unwrap().clone()
}

#[test]
fn redaction_in_front_conforms() {
    for enabled in [true, false] {
        let rules = RedactionRules {
            enabled,
            ..RedactionRules::default()
        };
        let redactor = Arc::new(rules.redactor(RedactionBoundary::Export).unwrap());
        conformance::suite(&RedactingSink::new(redactor, Arc::new(SilentSink)));
    }
}

#[test]
fn what_is_exported_holds_no_secret_and_nothing_personal() {
    let mut event = conformance::trigger_decision();
    event.scope.session_id = "jane@acme.dev".to_owned();
    event.scope.model = Some("the model of +49 30 1234567".to_owned());
    event.kind = EventKind::Failed {
        error: "refused: password=hunter2".to_owned(),
    };
    // Digits that we made, and that pass for a card's.
    event.scope.call = Some(TraceContext {
        trace_id: "0".repeat(32),
        span_id: "4111111111111111".to_owned(),
        parent_span_id: None,
    });
    let text = serde_json::to_string(&heard(&RedactionRules::default(), &[event.clone()])).unwrap();
    for gone in ["jane", "hunter2", "1234567\""] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
    assert!(text.contains("4111111111111111") && text.contains("2025-10-19T06:00:00Z"));
    let allowing = RedactionRules {
        allow: vec![r".*@acme\.dev".to_owned()],
        ..RedactionRules::default()
    };
    let exported = heard(&allowing, &[event]);
    assert_eq!(exported[0].scope.session_id, "jane@acme.dev");
}

/// Whoever looks a session up by the name in an event must find it.
#[test]
fn a_session_s_name_is_exported_as_it_is_unless_it_names_a_person_or_holds_a_key() {
    let exported = |name: &str| {
        let mut event = conformance::trigger_decision();
        event.scope.session_id = name.to_owned();
        let exported = heard(&RedactionRules::default(), &[event]);
        exported[0].scope.session_id.clone()
    };
    let card = "4111111111111111";
    let drawn = ["V1StGXR8Z5jdHi6BmyT0", "qW8xZr4LtYp2"].concat();
    for name in [
        "+49 30 1234567",
        "555-867-5309",
        "123-45-6789",
        card,
        &drawn,
    ] {
        assert_eq!(exported(name), name);
    }
    let key = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    for name in ["jane@acme.dev", &key] {
        assert!(exported(name).starts_with("[REDACTED:"), "{name}");
    }
}

#[test]
fn exporting_without_redaction_is_said_first_and_once() {
    let mut rules = RedactionRules::default();
    rules.sinks.export = false;
    let event = conformance::trigger_decision();
    let warning = Event {
        kind: EventKind::RedactionDisabled {
            boundary: RedactionBoundary::Export,
        },
        ..event.clone()
    };
    assert_eq!(warning.kind.severity(), Severity::High);
    let exported = heard(&rules, &[event.clone(), event.clone()]);
    assert_eq!(exported, [warning, event.clone(), event]);
}
