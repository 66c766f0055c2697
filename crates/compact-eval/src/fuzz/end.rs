//! How a session ends. A history at rest ends with the model's words and one that was cut off with
//! calls that wait: neither is a request yet, and what a provider says to that is no fault.

use compact_core::message::{Conversation, Role};
use compact_formats::validate::Violation;

/// The rules that a history may break because of how it ends: two about the model's words, and each
/// provider's about calls without results.
const RULES: [&str; 6] = ["A7a", "A7c", "A1", "C2", "R2", "G2"];

/// The end of a history.
pub struct HistoryEnd {
    /// How many messages may break those rules.
    reach: usize,
}

impl HistoryEnd {
    /// Returns the end of a conversation, as it was read from the body in question.
    pub fn of_conversation(conversation: &Conversation) -> HistoryEnd {
        let entries = &conversation.entries;
        let is_answer = |role: Role| role == Role::Tool;
        let spoken = entries.iter().rposition(|entry| !is_answer(entry.role));
        let model = entries
            .get(..spoken.map_or(0, |at| at + 1))
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|entry| entry.role == Role::Assistant);
        let (blocks, calls) = model.fold((0, 0), |(blocks, calls), entry| {
            (
                blocks + entry.blocks.len(),
                calls + entry.call_ids().count(),
            )
        });
        let behind = entries.iter().skip(spoken.map_or(0, |at| at + 1));
        let answers: usize = behind.map(|entry| entry.result_ids().count()).sum();
        let reach = match (calls, answers) {
            (calls, answers) if calls > answers => calls + answers + 1,
            _ => usize::from(blocks > 0),
        };
        HistoryEnd { reach }
    }

    /// Returns true for what is refused only because of the end; `messages` is how many there are.
    pub fn excuses(&self, violation: &Violation, messages: usize) -> bool {
        let from = messages.saturating_sub(self.reach);
        RULES.contains(&violation.rule.id) && violation.entry >= Some(from)
    }
}
