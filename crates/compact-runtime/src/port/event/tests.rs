use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

struct Counter(Arc<AtomicUsize>);

impl EventSink for Counter {
    fn emit(&self, _event: &Value) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn silent_and_fanout_conform() {
    conformance::suite(&Silent);
    let count = Arc::new(AtomicUsize::new(0));
    let sink = |count: &Arc<AtomicUsize>| Box::new(Counter(count.clone()));
    conformance::suite(&Fanout(vec![sink(&count), Box::new(Silent), sink(&count)]));
    assert_eq!(count.load(Ordering::Relaxed), 2 * 4 * 400);
}
