use super::*;
use crate::message::{EntryId, EntryKind, EntryMeta};

/// Counts words: nothing like the built-in estimators.
struct Words;

impl Estimator for Words {
    fn name(&self) -> &str {
        "words"
    }
    fn count_units(&self, text: &str) -> Units {
        Units(text.split_whitespace().count() as u64)
    }
}

fn entry(role: Role, block: Block) -> Entry {
    Entry {
        id: EntryId("e".into()),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    }
}

fn sample() -> Conversation {
    let mut summary = Entry::from_text("m", Role::Assistant, "what happened before");
    summary.meta.kind = EntryKind::Summary {
        version: 1,
        receipt: None,
    };
    Conversation {
        tools: Some("read write grep".to_owned()),
        entries: vec![
            Entry::from_text("s", Role::System, "be kind"),
            summary,
            entry(
                Role::Assistant,
                Block::ToolCall {
                    id: "c".into(),
                    name: "read".into(),
                    arguments: "a b".into(),
                },
            ),
            entry(
                Role::Tool,
                Block::ToolResult {
                    call: "c".into(),
                    content: "one two three four".into(),
                    is_error: false,
                },
            ),
            Entry::from_text("u", Role::User, "now fix it please"),
        ],
        ..Conversation::default()
    }
}

fn account(estimator: &dyn Estimator) -> TokenAccount {
    let conversation = sample();
    let hashes = EntryHash::from_entries(&conversation.entries);
    TokenAccount::count_conversation(
        &conversation,
        &hashes,
        estimator,
        &mut TokenCache::default(),
    )
}

#[test]
fn any_estimator_can_be_plugged_in() {
    assert_eq!(account(&Words).history, Tokens(3 + 3 + 4 + 4));
}

#[test]
fn every_category_has_its_account() {
    let account = account(&Words);
    assert_eq!(account.system, Tokens(2));
    assert_eq!(account.tools, Tokens(3));
    assert_eq!(account.memory, Tokens(3));
    assert_eq!(account.history, Tokens(14));
    assert_eq!(account.user_input, Tokens(4));
    assert_eq!(account.tool_results, Tokens(4));
    assert_eq!(account.by_role.get(&Role::Assistant), Some(&Tokens(6)));
    // Messages, system, developer and tool schemas together.
    assert_eq!(account.total(), Tokens(2 + 3 + 14));
}

#[test]
fn chars4_rounds_once_over_everything() {
    let conversation = Conversation {
        entries: (0..3)
            .map(|i| Entry::from_text(format!("{i}"), Role::User, "ab"))
            .collect(),
        ..Conversation::default()
    };
    let hashes = EntryHash::from_entries(&conversation.entries);
    let account = TokenAccount::count_conversation(
        &conversation,
        &hashes,
        &Chars4,
        &mut TokenCache::default(),
    );
    // "ab\nab\nab" is eight characters; the budget may count one newline more, never one less.
    assert_eq!(account.history, Tokens(3));
    assert_eq!(
        Chars4.to_tokens(Chars4.count_units("日本語です")),
        Tokens(2)
    );
}

#[test]
fn the_heuristic_counts_cjk_by_the_character() {
    assert_eq!(
        Heuristic.to_tokens(Heuristic.count_units("日本語です")),
        Tokens(5)
    );
    assert_eq!(
        Heuristic.to_tokens(Heuristic.count_units("twelve chars")),
        Tokens(3)
    );
}

#[test]
fn a_content_is_counted_once() {
    struct Counting(std::sync::atomic::AtomicU64);
    impl Estimator for Counting {
        fn name(&self) -> &str {
            "counting"
        }
        fn count_units(&self, text: &str) -> Units {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Units(text.len() as u64)
        }
    }
    let conversation = sample();
    let hashes = EntryHash::from_entries(&conversation.entries);
    let (counting, mut cache) = (Counting(0.into()), TokenCache::default());
    let first = TokenAccount::count_conversation(&conversation, &hashes, &counting, &mut cache);
    let calls = counting.0.load(std::sync::atomic::Ordering::Relaxed);
    let again = TokenAccount::count_conversation(&conversation, &hashes, &counting, &mut cache);
    assert_eq!(first, again);
    // Only the tool schemas are counted again.
    assert_eq!(
        counting.0.load(std::sync::atomic::Ordering::Relaxed),
        calls + 1
    );
}
