use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use compact_core::redact::{RedactionBoundary, RedactionRules};
use serde_json::json;

use super::*;

struct Counter(Arc<AtomicUsize>);

impl EventSink for Counter {
    fn emit(&self, _event: &Value) {
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
struct Heard(Mutex<Vec<Value>>);

impl EventSink for Heard {
    fn emit(&self, event: &Value) {
        self.0.lock().unwrap().push(event.clone());
    }
}

fn heard(rules: &RedactionRules, events: &[Value]) -> Vec<Value> {
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
    event["session_id"] = json!("jane@acme.dev");
    event["error"] = json!("refused: password=hunter2");
    event["list"] = json!([{"phone": "+49 30 1234567"}]);
    // Digits that we made, and that pass for a card's.
    event["span_id"] = json!("4111111111111111");
    let text = serde_json::to_string(&heard(&RedactionRules::default(), &[event.clone()])).unwrap();
    for gone in ["jane", "hunter2", "1234567\""] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
    assert!(text.contains("4111111111111111") && text.contains("2025-10-19T06:00:00Z"));
    let allowing = RedactionRules {
        allow: vec![r".*@acme\.dev".to_owned()],
        ..RedactionRules::default()
    };
    assert_eq!(heard(&allowing, &[event])[0]["session_id"], "jane@acme.dev");
}

#[test]
fn exporting_without_redaction_is_said_first_and_once() {
    let mut rules = RedactionRules::default();
    rules.sinks.export = false;
    let event = conformance::trigger_decision();
    let told = heard(&rules, &[event.clone(), event.clone()]);
    assert_eq!(told.len(), 3);
    assert_eq!(told[0]["event"], "compact.redaction_disabled");
    assert_eq!(told[0]["severity"], "high");
    assert_eq!(told[0]["boundary"], "export");
    assert_eq!(told[0]["session_id"], event["session_id"]);
    assert_eq!(told[1..], [event.clone(), event]);
}
