use compact_runtime::replay::entity::MinDigits;

use super::need::{find_contexts, find_need, own_words, words_near};
use super::score::{bound_share, kept_share, strict_share};
use super::{EventVoice, MetricEvent, MetricSession};

fn session() -> MetricSession {
    let events = vec![
        MetricEvent::new(
            EventVoice::User,
            "Please repair the header parser in parse_header soon",
        ),
        MetricEvent::new(EventVoice::Call, "read src/net/wire/header.rs"),
        MetricEvent::new(
            EventVoice::Result,
            "fn parse_header() uses buffer_size and also state_name",
        ),
        MetricEvent::new(
            EventVoice::Assistant,
            "The buffer_size limit breaks large header lines",
        ),
        MetricEvent::new(EventVoice::User, "what of state_name"),
        MetricEvent::new(
            EventVoice::Call,
            "edit net/wire/header.rs parse_header buffer_size",
        ),
        MetricEvent::new(
            EventVoice::Assistant,
            "Now state_name and other_name src/net/wire/header.rs",
        ),
    ];
    MetricSession::new(events, MinDigits::default())
}

#[test]
fn strict_is_what_nobody_handed_back() {
    let session = session();
    let need = find_need(&session, 0..4, 4..7);
    let mut all: Vec<&str> = need.all.keys().copied().collect();
    let mut strict: Vec<&str> = need.strict.keys().copied().collect();
    all.sort_unstable();
    strict.sort_unstable();
    assert_eq!(
        all,
        [
            "buffer_size",
            "parse_header",
            "src/net/wire/header.rs",
            "state_name"
        ]
    );
    assert_eq!(
        strict,
        ["buffer_size", "parse_header", "src/net/wire/header.rs"]
    );
}

#[test]
fn a_path_is_kept_by_its_last_two_parts() {
    let session = session();
    let need = find_need(&session, 0..4, 4..7);
    assert_eq!(
        strict_share(&need.strict, "see wire/header.rs"),
        Some(1.0 / 3.0)
    );
    assert_eq!(
        kept_share(&need.strict, "see header.rs and xbuffer_size"),
        Some(0.0)
    );
}

#[test]
fn a_bare_list_is_not_bound() {
    let session = session();
    let need = find_need(&session, 0..4, 4..7);
    let contexts = find_contexts(&session, 0..4, &need.strict);
    let with_context = contexts.values().filter(|m| !m.is_empty()).count();
    // The path stands alone in its call, so two entities have a context: too few for a score.
    assert_eq!(
        (with_context, bound_share(&contexts, "anything")),
        (2, None)
    );
    let mut three = contexts.clone();
    three.insert("limit_name", contexts["buffer_size"].clone());
    let list = "buffer_size parse_header limit_name";
    assert_eq!(bound_share(&three, list), Some(0.0));
    let told = "the buffer_size limit breaks large lines";
    assert_eq!(bound_share(&three, told), Some(1.0 / 3.0));
}

#[test]
fn the_words_of_an_entity_are_no_context() {
    let text = "the header parse_header parses 123 lines and ab";
    let mut words: Vec<_> = words_near(text, 11, 23, 80, &own_words("parse_header"))
        .into_iter()
        .collect();
    words.sort();
    assert_eq!(words, ["123", "header", "lines", "parses"]);
}

#[test]
fn a_cut_never_parts_a_call_from_its_results() {
    let session = session();
    let shares: Vec<usize> = [0.0, 0.2, 0.3, 0.5, 1.0]
        .iter()
        .map(|s| session.cut_index(*s))
        .collect();
    assert_eq!(shares, [1, 3, 3, 4, 7]);
}
