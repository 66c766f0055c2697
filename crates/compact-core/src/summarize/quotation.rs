//! Words of the model that the user quotes to ask about them: they stand in the user's message and rule nothing.
//!
//! What the user said before the model did is the user's own, however often it is repeated.

use crate::ledger::{Fact, Facts, Voice};

/// So many of the replies before a message are searched: bounds the work.
const REPLIES: usize = 32;
/// Fewer letters may be the same by chance.
const LEAST_LETTERS: usize = 24;

/// The user's rules that are sentences of the model's, in messages that ask something.
pub(super) fn quoted_rules(facts: &Facts) -> Vec<&Fact> {
    let rules = facts.rules.iter();
    let mut asking: Vec<&Fact> = rules
        .filter(|rule| rule.voice == Voice::User && asks(facts, rule.ordinal))
        .collect();
    if asking.is_empty() {
        return asking;
    }
    let (replies, requests) = (fold_all(&facts.replies), fold_all(&facts.requests));
    let asked_before = |ordinal: u32, words: &str| {
        let mut earlier = requests.iter().take_while(|(at, _)| *at < ordinal);
        earlier.any(|(_, request)| request.contains(words))
    };
    asking.retain(|rule| {
        let words = letters(&rule.text);
        let before = replies.partition_point(|(ordinal, _)| *ordinal < rule.ordinal);
        let mut newest = replies.iter().take(before).rev().take(REPLIES);
        words.len() >= LEAST_LETTERS
            && newest.any(|(at, reply)| reply.contains(&words) && !asked_before(*at, &words))
    });
    asking
}

/// Whether the message of this ordinal asks something.
fn asks(facts: &Facts, ordinal: u32) -> bool {
    let at = facts.requests.partition_point(|f| f.ordinal < ordinal);
    let message = facts.requests.get(at).filter(|f| f.ordinal == ordinal);
    message.is_some_and(|message| message.text.contains('?'))
}

fn fold_all(facts: &[Fact]) -> Vec<(u32, String)> {
    let folded = facts.iter().map(|fact| (fact.ordinal, letters(&fact.text)));
    folded.collect()
}

/// What is compared: marks of a rendered text get lost in a quotation.
fn letters(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
