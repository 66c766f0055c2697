//! The time inside a generated session: it starts on a fixed day and moves only when told.

use jiff::Timestamp;

use crate::random::Random;

/// 2026-03-02T08:14:05Z, a Monday morning.
const START_MS: i64 = 1_772_439_245_000;

/// The time of the next line.
pub(crate) struct SessionClock(i64);

impl SessionClock {
    pub(crate) fn new() -> Self {
        SessionClock(START_MS)
    }

    /// Moves on by up to so many seconds and tells the time as logs write it.
    pub(crate) fn tick(&mut self, seconds: u64, random: &mut Random) -> String {
        self.0 += random.between(40, seconds * 1000) as i64;
        let time = Timestamp::from_millisecond(self.0).unwrap_or(Timestamp::UNIX_EPOCH);
        format!("{time:.3}")
    }
}
