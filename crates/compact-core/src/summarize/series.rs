//! Names and lines that are alike but for their numbers: a few of them say what the others do.
//!
//! The rows of a log, the parts of a file that was read in thirty steps, a test's `user1` to `user9`: each is a name by
//! itself, and together they would fill a summary. Of each kind under one head so many are offered.

use std::collections::HashMap;
use std::hash::Hasher;

use foldhash::fast::FixedState;

/// How many of a kind are told.
const ALIKE: u32 = 3;

/// How often each kind was met, by where it was.
#[derive(Default)]
pub(super) struct SeriesTable {
    met: HashMap<u64, u32, FixedState>,
}

impl SeriesTable {
    /// Whether there is room for one more of this text's kind at a place.
    pub(super) fn admits(&mut self, place: usize, text: &str) -> bool {
        if !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return true;
        }
        self.count(place, text) <= ALIKE
    }

    /// How many of this text's kind were met at a place, with this one.
    pub(super) fn count(&mut self, place: usize, text: &str) -> u32 {
        let met = self.met.entry(series_key(place, text)).or_default();
        *met += 1;
        *met
    }
}

/// What texts have in common that differ in their numbers alone.
fn series_key(place: usize, text: &str) -> u64 {
    use std::hash::BuildHasher;
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_usize(place);
    let mut parts = text.split(|c: char| c.is_ascii_digit());
    parts
        .by_ref()
        .filter(|part| !part.is_empty())
        .for_each(|part| {
            hasher.write(part.as_bytes());
            hasher.write_u8(0);
        });
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_differs_in_numbers_alone_three_are_admitted_at_each_place() {
        let mut series = SeriesTable::default();
        let orders = [
            "/v1/orders/5940",
            "/v1/orders/77",
            "/v1/orders/1",
            "/v1/orders/2",
        ];
        assert_eq!(
            orders.map(|order| series.admits(0, order)),
            [true, true, true, false]
        );
        assert!(series.admits(0, "/v2/bills/5940"), "another kind");
        assert!(series.admits(1, "/v1/orders/5940"), "another place");
        assert_eq!([0; 5].map(|_| series.admits(0, "parse_config")), [true; 5]);
    }
}
