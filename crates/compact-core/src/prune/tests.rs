use super::*;
use crate::message::{Block, Entry, EntryId, EntryMeta, Role};

fn exchange(tool: &str, id: &str) -> [Entry; 2] {
    let entry = |role, block| Entry {
        id: EntryId(format!("{id}-{role}")),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    };
    [
        entry(
            Role::Assistant,
            Block::ToolCall {
                id: id.into(),
                name: tool.into(),
                arguments: "{}".into(),
            },
        ),
        entry(
            Role::Tool,
            Block::ToolResult {
                call: id.into(),
                content: "ok".into(),
                is_error: false,
            },
        ),
    ]
}

/// Three turns; units: user, say, read, read, edit, user, say, test, user, say.
fn sample() -> Conversation {
    let mut entries = vec![
        Entry::from_text("u1", Role::User, "one"),
        Entry::from_text("a1", Role::Assistant, "looking"),
    ];
    entries.extend(exchange("read", "c1"));
    entries.extend(exchange("read", "c2"));
    entries.extend(exchange("edit", "c3"));
    entries.push(Entry::from_text("u2", Role::User, "two"));
    entries.push(Entry::from_text("a2", Role::Assistant, "testing"));
    entries.extend(exchange("test", "c4"));
    entries.push(Entry::from_text("u3", Role::User, "three"));
    entries.push(Entry::from_text("a3", Role::Assistant, "done"));
    Conversation {
        entries,
        ..Conversation::default()
    }
}

fn kept(policy: Prune, turns: u32, pairs: u32) -> Vec<usize> {
    let conversation = sample();
    let outline = Outline::from_conversation(&conversation);
    let sight = PruneInput {
        conversation: &conversation,
        outline: &outline,
        meaning: &meaning::vectors(&conversation, &outline),
    };
    kept_units(policy, sight, KeepCounts { turns, pairs })
}

#[test]
fn fifo_keeps_the_newest_turns_whole() {
    assert_eq!(kept(Prune::Fifo, 2, 1), [5, 6, 7, 8, 9]);
}

#[test]
fn recency_keeps_messages_of_turns_and_the_last_pairs() {
    assert_eq!(kept(Prune::Recency, 1, 2), [4, 7, 8, 9]);
    assert_eq!(kept(Prune::Recency, 6, 4), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn stage_aware_keeps_the_last_pair_of_each_tool() {
    assert_eq!(kept(Prune::StageAware, 1, 3), [3, 4, 7, 8, 9]);
    assert_eq!(kept(Prune::StageAware, 1, 4), [2, 3, 4, 7, 8, 9]);
}

#[test]
fn turns_are_turns_and_not_messages() {
    // Six turns of three messages each are eighteen messages.
    let entries = (0..30)
        .map(|i| {
            let role = if i % 3 == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            Entry::from_text(format!("e{i}"), role, format!("m{i}"))
        })
        .collect();
    let conversation = Conversation {
        entries,
        ..Conversation::default()
    };
    let outline = Outline::from_conversation(&conversation);
    let sight = PruneInput {
        conversation: &conversation,
        outline: &outline,
        meaning: &[],
    };
    let kept = kept_units(Prune::Recency, sight, KeepCounts { turns: 6, pairs: 4 });
    assert_eq!(kept, (12..30).collect::<Vec<_>>());
}

#[test]
fn semantic_keeps_the_last_of_exchanges_that_say_the_same() {
    // The two reads say the same; the edit and the test do not.
    assert_eq!(kept(Prune::Semantic, 1, 4), [3, 4, 7, 8, 9]);
    assert_eq!(kept(Prune::Semantic, 1, 2), [4, 7, 8, 9]);
}

#[test]
fn embeddings_of_the_caller_decide_what_is_alike() {
    let conversation = sample();
    let outline = Outline::from_conversation(&conversation);
    // Every unit points its own way, but the edit (4) and the test (7) share one.
    let mut meaning: Vec<MeaningVector> = (0..outline.units.len())
        .map(|i| (0..16).map(|j| f32::from(u8::from(i == j))).collect())
        .collect();
    meaning[4] = meaning[7].clone();
    let sight = PruneInput {
        conversation: &conversation,
        outline: &outline,
        meaning: &meaning,
    };
    let kept = kept_units(Prune::Semantic, sight, KeepCounts { turns: 1, pairs: 4 });
    assert_eq!(kept, [2, 3, 7, 8, 9]);
}

#[test]
fn without_vectors_nothing_is_alike() {
    let conversation = sample();
    let outline = Outline::from_conversation(&conversation);
    let sight = PruneInput {
        conversation: &conversation,
        outline: &outline,
        meaning: &[],
    };
    let counts = KeepCounts { turns: 1, pairs: 2 };
    assert_eq!(
        kept_units(Prune::Semantic, sight, counts),
        kept_units(Prune::Recency, sight, counts)
    );
}
