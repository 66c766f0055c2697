//! Whether a run gets anywhere: what its sessions did and found out, so far.
//!
//! A call with other arguments is new, and so is another answer to the same one. Words are not: an
//! agent that only talks fills session after session. A run that a person resumes is judged anew.

use std::collections::HashSet;

use compact_core::message::{Block, Entry};

/// What all sessions did.
#[derive(Debug, Default)]
pub(super) struct WorkProgress {
    known: HashSet<blake3::Hash>,
    fruitless: u32,
}

impl WorkProgress {
    /// Takes what a session did, and tells how many in a row did nothing new.
    pub(super) fn count_fruitless(&mut self, session: &[Entry]) -> u32 {
        let blocks = session.iter().flat_map(|entry| &entry.blocks);
        let done: Vec<blake3::Hash> = blocks.filter_map(hash_block).collect();
        let before = self.known.len();
        self.known.extend(done);
        self.fruitless = match self.known.len() > before {
            true => 0,
            false => self.fruitless + 1,
        };
        self.fruitless
    }
}

fn hash_block(block: &Block) -> Option<blake3::Hash> {
    let [first, second] = match block {
        Block::ToolCall { .. } | Block::ToolResult { .. } => block.text_parts(),
        _ => return None,
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(first.len() as u64).to_le_bytes());
    hasher.update(first.as_bytes()).update(second.as_bytes());
    Some(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use compact_core::message::{EntryId, EntryMeta, Role};

    use super::*;

    fn entry(block: Block) -> Entry {
        Entry {
            id: EntryId(String::new()),
            role: Role::Assistant,
            blocks: vec![block],
            meta: EntryMeta::default(),
        }
    }

    fn session(command: &str, answer: &str) -> Vec<Entry> {
        vec![
            entry(Block::Text(format!("Words are new: {command} {answer}"))),
            entry(Block::ToolCall {
                id: "c".to_owned(),
                name: "Bash".to_owned(),
                arguments: command.to_owned(),
            }),
            entry(Block::ToolResult {
                call: "c".to_owned(),
                content: answer.to_owned(),
                is_error: false,
            }),
        ]
    }

    #[test]
    fn another_call_or_another_answer_is_new_and_words_are_not() {
        let mut deeds = WorkProgress::default();
        let talk = [entry(Block::Text("I think about it.".to_owned()))];
        assert_eq!(deeds.count_fruitless(&session("make", "failed")), 0);
        assert_eq!(deeds.count_fruitless(&session("make", "failed")), 1);
        assert_eq!(deeds.count_fruitless(&talk), 2);
        assert_eq!(deeds.count_fruitless(&session("make", "ok")), 0);
        assert_eq!(deeds.count_fruitless(&[]), 1);
        assert_eq!(deeds.count_fruitless(&session("make test", "ok")), 0);
    }
}
