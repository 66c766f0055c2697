use super::*;
use crate::engine::session_ledger;
use crate::identity::EntryHash;
use crate::message::{Block, Conversation, Entry, EntryId, EntryMeta, Role};
use crate::redact::Redactor;
use crate::token::{Chars4, TokenAccount, TokenCache, Tokens};

fn entry(kind: EntryKind, flags: &[&str], group: Option<&str>, block: Block) -> Entry {
    Entry {
        id: EntryId("e".to_owned()),
        role: Role::User,
        blocks: vec![block],
        meta: EntryMeta {
            kind,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            group: group.map(str::to_owned),
            ..EntryMeta::default()
        },
    }
}

/// One entry of each kind, with flags, a group, a call and its result.
fn small() -> Conversation {
    let text = |text: &str| Block::Text(text.to_owned());
    let call = Block::ToolCall {
        id: "c1".to_owned(),
        name: "read".to_owned(),
        arguments: "{\"path\": \"a.rs\"}".to_owned(),
    };
    let result = Block::ToolResult {
        call: "c1".to_owned(),
        content: "fn main() {}".to_owned(),
        is_error: false,
    };
    let summary = EntryKind::Summary {
        version: 2,
        receipt: Some("0123456789abcdef0123456789abcdef".to_owned()),
    };
    let message = EntryKind::Message;
    Conversation {
        entries: vec![
            entry(message.clone(), &["keep", "protected"], None, text("hello")),
            entry(summary, &[], None, text("what was")),
            entry(EntryKind::ForeignSummary, &[], None, text("so it seems")),
            entry(EntryKind::Injected, &[], None, text("a reminder")),
            entry(message.clone(), &[], Some("g"), call),
            entry(message, &[], Some("g"), result),
        ],
        ..Conversation::default()
    }
}

/// The id and the shape of a small input.
fn id_and_shape(conversation: &Conversation) -> (String, u64) {
    let hashes = EntryHash::from_entries(&conversation.entries);
    let account = TokenAccount::count_conversation(
        conversation,
        &hashes,
        &Chars4,
        &mut TokenCache::default(),
    );
    let redactor = Redactor::default();
    let ledger = session_ledger(conversation, &hashes, None, &redactor);
    let input = CompactionInput::new(
        conversation,
        &hashes,
        &account,
        &ledger,
        &Chars4,
        Tokens(100),
    )
    .session_id("s")
    .original("digest")
    .originals(Originals::Archived);
    let identity = ReceiptIdentity {
        engine: "compact 0.0.0+0",
        ..receipt_identity(&input, &Preparation::default())
    };
    (identity.receipt_id(), identity.shape)
}

/// Another id for the same input means that receipts on record cannot be verified by running the engine
/// again: count [`ENGINE`] up and put the new one here.
#[test]
fn the_id_of_a_small_input_is_pinned() {
    let id = "8e45db7e35c97955ad77a8d3344486c1";
    let expected = (id.to_owned(), 11_737_349_344_645_272_206);
    assert_eq!(id_and_shape(&small()), expected);
}

#[test]
fn everything_that_a_plan_looks_at_is_in_the_id() {
    let whole = small();
    let changes: [fn(&mut Conversation); 7] = [
        |c| c.entries[0].meta.flags.clear(),
        |c| c.entries[1].meta.kind = EntryKind::Message,
        |c| c.entries[2].meta.kind = EntryKind::Injected,
        |c| c.entries[5].meta.group = None,
        |c| c.entries[5].meta.refused = true,
        |c| c.entries[4].meta.group = Some("h".to_owned()),
        |c| {
            c.entries[0].meta.flags = ["keepprotected".to_owned()].into();
        },
    ];
    for (nth, change) in changes.into_iter().enumerate() {
        let mut other = whole.clone();
        change(&mut other);
        assert_ne!(id_and_shape(&other), id_and_shape(&whole), "{nth}");
    }
    let mut renamed = whole.clone();
    for entry in &mut renamed.entries {
        entry.meta.group = entry.meta.group.as_ref().map(|_| "other".to_owned());
    }
    assert_eq!(
        id_and_shape(&renamed),
        id_and_shape(&whole),
        "a group's name does not count"
    );
}
