//! Words of the model that the user quotes to ask about them: they stand in the user's message and rule nothing.

use crate::ledger::{Fact, Facts, Voice};

/// So many of the replies before a message are searched: bounds the work.
const REPLIES: usize = 32;
/// Fewer letters may be the same by chance.
const LEAST_LETTERS: usize = 24;

/// Whether a rule of the user's is a sentence of the model's, in a message that asks something.
pub(super) fn is_quotation(facts: &Facts, rule: &Fact) -> bool {
    if rule.voice != Voice::User || !asks(facts, rule.ordinal) {
        return false;
    }
    let words = letters(&rule.text);
    let before = facts
        .replies
        .partition_point(|reply| reply.ordinal < rule.ordinal);
    let newest = facts.replies.iter().take(before).rev().take(REPLIES);
    words.len() >= LEAST_LETTERS
        && newest
            .clone()
            .any(|reply| letters(&reply.text).contains(&words))
}

/// Whether the message of this ordinal asks something.
fn asks(facts: &Facts, ordinal: u32) -> bool {
    let at = facts.requests.partition_point(|f| f.ordinal < ordinal);
    let message = facts.requests.get(at).filter(|f| f.ordinal == ordinal);
    message.is_some_and(|message| message.text.contains('?'))
}

/// What is compared: marks of a rendered text get lost in a quotation.
fn letters(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
