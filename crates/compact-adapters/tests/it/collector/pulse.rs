//! Whether the machine kept pace: a thread that sleeps for moments notes when it was woken too late.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

const BEAT: Duration = Duration::from_millis(5);

/// Nobody who is woken so much later than asked can be expected to be quick.
const LATE: Duration = Duration::from_millis(40);

/// A heart that beats until it is dropped.
pub(super) struct Pulse {
    stops: Arc<AtomicBool>,
    /// Beats that came late: from when on, until when.
    late: Arc<Mutex<Vec<(SystemTime, SystemTime)>>>,
}

impl Pulse {
    pub(super) fn start() -> Pulse {
        let pulse = Pulse {
            stops: Arc::default(),
            late: Arc::default(),
        };
        let (stops, late) = (Arc::clone(&pulse.stops), Arc::clone(&pulse.late));
        thread::spawn(move || {
            while !stops.load(Ordering::Relaxed) {
                let from = SystemTime::now();
                thread::sleep(BEAT);
                let to = SystemTime::now();
                if to.duration_since(from).is_ok_and(|took| took > BEAT + LATE) {
                    late.lock().unwrap().push((from, to));
                }
            }
        });
        pulse
    }

    /// True when it was late at any time in between.
    pub(super) fn stood_still(&self, from: SystemTime, to: SystemTime) -> bool {
        let late = self.late.lock().unwrap();
        late.iter()
            .any(|(began, ended)| *began < to && *ended > from)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
    }
}
