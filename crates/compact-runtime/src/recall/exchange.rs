//! Which result belongs to which call.

use std::collections::HashMap;

use compact_core::message::Entry;

/// The places of calls and results in a list of entries, by the call's id. Some agents use an id again, so
/// the nearest counts: a result follows its call.
#[derive(Default)]
pub(super) struct ExchangePlaces<'a> {
    calls: HashMap<&'a str, Vec<usize>>,
    results: HashMap<&'a str, Vec<usize>>,
}

impl<'a> ExchangePlaces<'a> {
    pub(super) fn new(entries: &'a [Entry]) -> ExchangePlaces<'a> {
        let mut places = ExchangePlaces::default();
        for (at, entry) in entries.iter().enumerate() {
            for id in entry.call_ids() {
                places.calls.entry(id).or_default().push(at);
            }
            for id in entry.result_ids() {
                places.results.entry(id).or_default().push(at);
            }
        }
        places
    }

    /// Returns the place of the first result of a call, or of the call of a result.
    pub(super) fn partner_of(&self, at: usize, entry: &Entry) -> Option<usize> {
        let result = entry.call_ids().find_map(|id| {
            let results = self.results.get(id)?;
            results.iter().find(|result| **result > at)
        });
        let call = || {
            entry.result_ids().find_map(|id| {
                let calls = self.calls.get(id)?;
                calls.iter().rev().find(|call| **call < at)
            })
        };
        result.or_else(call).copied()
    }
}

#[cfg(test)]
mod tests {
    use compact_core::message::{Block, Role};

    use super::*;

    fn call(id: &str) -> Entry {
        let mut entry = Entry::from_text("", Role::Assistant, "");
        entry.blocks = vec![Block::ToolCall {
            id: id.to_owned(),
            name: "ls".to_owned(),
            arguments: String::new(),
        }];
        entry
    }

    fn result(id: &str) -> Entry {
        let mut entry = Entry::from_text("", Role::Tool, "");
        entry.blocks = vec![Block::ToolResult {
            call: id.to_owned(),
            content: String::new(),
            is_error: false,
        }];
        entry
    }

    #[test]
    fn the_nearest_of_an_id_belongs_to_it() {
        let entries = [
            call("1"),
            call("2"),
            result("1"),
            result("2"),
            call("1"),
            result("1"),
        ];
        let places = ExchangePlaces::new(&entries);
        let partners: Vec<Option<usize>> = entries
            .iter()
            .enumerate()
            .map(|(at, entry)| places.partner_of(at, entry))
            .collect();
        let want = [Some(2), Some(3), Some(0), Some(1), Some(5), Some(4)];
        assert_eq!(partners, want);
        let alone = [call("1"), Entry::from_text("", Role::User, "x")];
        let places = ExchangePlaces::new(&alone);
        assert_eq!(places.partner_of(0, &alone[0]), None);
        assert_eq!(places.partner_of(1, &alone[1]), None);
    }
}
