//! The time of day, passed in: what is recorded, told or kept for so many days is dated by it.
//!
//! A program has one clock and hands it to whatever dates something; a test hands over one that it
//! sets. How long a thing took or is waited for is another matter: that is Tokio's time, which tests
//! pause.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Tells the time of day.
pub trait Clock: Debug + Send + Sync {
    /// Returns the present time.
    fn now(&self) -> Timestamp;

    /// Returns the present time as every record and event spells it: RFC 3339 in UTC, to the
    /// millisecond.
    fn timestamp(&self) -> String {
        format!("{:.3}", self.now())
    }
}

/// The clock of the machine: the default everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands still until somebody sets it: time for tests and for runs that must repeat.
#[derive(Debug, Default)]
pub struct ManualClock {
    time: Mutex<Timestamp>,
}

impl ManualClock {
    /// Makes a clock that stands at `time`.
    pub fn new(time: Timestamp) -> ManualClock {
        ManualClock {
            time: Mutex::new(time),
        }
    }

    /// Sets the clock forward by `span`, or back where it is negative. It stops at the ends of the
    /// calendar.
    pub fn advance(&self, span: impl Into<SignedDuration>) {
        let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        *time = time.saturating_add(span.into()).unwrap_or(*time);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_it_is_set() {
        let clock = ManualClock::new("2026-03-01T12:00:00.0005Z".parse().unwrap());
        assert_eq!(clock.timestamp(), "2026-03-01T12:00:00.000Z");
        clock.advance(SignedDuration::from_millis(1));
        assert_eq!(clock.timestamp(), "2026-03-01T12:00:00.001Z");
        clock.advance(SignedDuration::from_hours(-24));
        assert_eq!(clock.timestamp(), "2026-02-28T12:00:00.001Z");
        clock.advance(SignedDuration::MAX);
        assert_eq!(clock.now(), Timestamp::MAX);
    }
}
