//! Drawing a ledger from texts without their secrets, on two threads when there is much to read.
//!
//! A ledger is the merge of its halves, so the halves are read side by side. They part where no tool
//! is still to answer; a session that has no such place is read by one thread.

use std::collections::HashSet;

use super::Ledger;
use crate::halves::do_beside;
use crate::message::{Block, Entry};
use crate::redact::Redactor;

/// What is shorter is read before a second thread has begun, in bytes.
const WORTH_A_THREAD: usize = 64 * 1024;

impl Ledger {
    /// Draws the facts of `entries` without what the redactor finds in them.
    pub fn from_redacted(entries: &[Entry], first: u64, redactor: &Redactor) -> Ledger {
        let draw = |entries, first| Ledger::from_entries(&redactor.redact_entries(entries), first);
        let middle = middle(entries);
        let (head, tail) = entries.split_at_checked(middle).unwrap_or((entries, &[]));
        if head.is_empty() || tail.is_empty() {
            return draw(entries, first);
        }
        let (mut ledger, later) = do_beside(
            || draw(head, first),
            || draw(tail, first + head.len() as u64),
        );
        ledger.merge(later);
        ledger
    }
}

/// The first entry of the second half, where no call waits for an answer; 0 when there is none.
fn middle(entries: &[Entry]) -> usize {
    let total: usize = entries.iter().map(bytes).sum();
    if total < WORTH_A_THREAD {
        return 0;
    }
    let answered: HashSet<&str> = entries.iter().flat_map(Entry::result_ids).collect();
    let mut open: HashSet<&str> = HashSet::new();
    let mut read = 0;
    for (at, entry) in entries.iter().enumerate() {
        if read * 2 >= total && open.is_empty() {
            return at;
        }
        read += bytes(entry);
        open.extend(entry.call_ids().filter(|call| answered.contains(call)));
        for call in entry.result_ids() {
            open.remove(call);
        }
    }
    0
}

fn bytes(entry: &Entry) -> usize {
    let parts = entry.blocks.iter().flat_map(Block::text_parts);
    parts.map(str::len).sum()
}
