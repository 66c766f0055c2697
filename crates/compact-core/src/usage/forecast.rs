//! How long the window will last at the pace of the last calls.

use crate::token::Tokens;

/// Calls that make a pace.
const CALLS: usize = 4;

/// The sizes of the last requests of one context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestPace {
    sizes: Vec<Tokens>,
}

impl RequestPace {
    /// Notes the size of a request; one smaller than the last begins a new pace.
    pub fn add_request(&mut self, size: Tokens) {
        if self.sizes.last().is_some_and(|last| size < *last) {
            self.sizes.clear();
        }
        self.sizes.push(size);
        if self.sizes.len() > CALLS + 1 {
            self.sizes.remove(0);
        }
    }

    /// What a call adds: the mean of the last, or the last itself when it is larger.
    pub fn per_call(&self) -> Option<Tokens> {
        let (first, last) = (self.sizes.first()?, self.sizes.last()?);
        let calls = self.sizes.len().checked_sub(1).filter(|n| *n > 0)? as u64;
        let mean = Tokens((*last - *first).0.div_ceil(calls));
        let before = self.sizes.iter().rev().nth(1)?;
        Some(mean.max(*last - *before)).filter(|pace| pace.0 > 0)
    }

    /// How many more calls stay below `limit`.
    pub fn calls_left(&self, limit: Tokens) -> Option<u64> {
        let room = limit - *self.sizes.last()?;
        Some(room.0 / self.per_call()?.0)
    }
}
