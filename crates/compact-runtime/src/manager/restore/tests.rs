//! Sessions whose history was rewound or forked: what `restore` gives, and what it names.

use compact_core::message::{Conversation, Entry, Role};
use compact_core::wire::WireRules;

use super::super::session_state::{SessionState, serialize_entries};
use super::super::tests::manager;
use super::*;

/// A history in which each letter is an exchange.
fn say(words: &str) -> Vec<Entry> {
    let exchange = |(nth, word): (usize, char)| {
        let filler = format!("{word} is what the work was about. ").repeat(30);
        [
            Entry::from_text(
                format!("u{nth}"),
                Role::User,
                format!("Now do {word}{nth}."),
            ),
            Entry::from_text(format!("a{nth}"), Role::Assistant, filler),
        ]
    };
    words.chars().enumerate().flat_map(exchange).collect()
}

/// Calls a model whenever a history has so many entries.
async fn chat(
    manager: &Manager,
    session: &mut SessionState,
    words: &str,
    lengths: impl Iterator<Item = usize>,
) {
    let whole = say(words);
    for end in lengths {
        session.replace(Conversation {
            entries: whole.iter().take(end).cloned().collect(),
            ..Conversation::default()
        });
        manager.preflight(session).await.unwrap();
    }
}

/// True if an original is the beginning of a history, and long enough to have several compactions behind it.
fn is_beginning(original: &RestoredOriginal, words: &str, least: usize) -> bool {
    let whole = serialize_entries(&say(words));
    whole.starts_with(&original.bytes)
        && original.bytes.len() >= serialize_entries(&say(words)[..least]).len()
}

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

/// The same words said again are one history, however far each of the two came.
#[tokio::test]
async fn a_history_that_was_rewound_and_said_again_is_one() {
    let (manager, _) = manager(3_000);
    let mut session = SessionState::new("again", &WireRules::LENIENT);
    chat(&manager, &mut session, LETTERS, 1..=80).await;
    // It is compacted at other places than the first time.
    chat(&manager, &mut session, LETTERS, (31..=104).step_by(7)).await;
    let original = manager.restore("again").await.unwrap();
    assert!(is_beginning(&original, LETTERS, 88));
}

#[tokio::test]
async fn each_history_of_a_session_that_went_apart_is_restored_whole() {
    let (manager, _) = manager(3_000);
    let mut session = SessionState::new("fork", &WireRules::LENIENT);
    let (same, changed) = LETTERS.split_at(10);
    let other = format!("{same}{}", changed.to_uppercase());
    chat(&manager, &mut session, LETTERS, 1..=104).await;
    chat(&manager, &mut session, &other, 21..=104).await;
    let error = manager.restore("fork").await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("2 histories"), "{told}");
    let Error::Branches { ends, .. } = error else {
        panic!("{told}");
    };
    for (end, words) in ends.iter().zip([LETTERS, &*other]) {
        let name = format!("history:{end}");
        assert!(told.contains(&name), "{told}");
        let original = manager.restore(&name).await.unwrap();
        assert!(is_beginning(&original, words, 88), "{name}");
    }
}
