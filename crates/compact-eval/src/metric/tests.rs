use super::entity::{EntityClass, MinDigits, find_entities};
use super::need::{find_contexts, find_need, own_words, words_near};
use super::score::{bound_share, kept_share, strict_share};
use super::{EventVoice, MetricEvent, MetricSession};

fn found(text: &str) -> Vec<(String, EntityClass)> {
    find_entities(text, MinDigits::default())
}

fn names(text: &str) -> Vec<String> {
    found(text).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn every_class_has_its_shape() {
    use EntityClass::{Email, Hash, Id, Ident, Num, Path, Url, Uuid};
    for (text, name, class) in [
        ("see https://a.io/x?y=1).", "https://a.io/x?y=1", Url),
        (
            "to <jo.doe@mail.example.org>,",
            "jo.doe@mail.example.org",
            Email,
        ),
        (
            "id 0b0582d1-1bea-4535-a85d-f7e68c9a0001.",
            "0b0582d1-1bea-4535-a85d-f7e68c9a0001",
            Uuid,
        ),
        ("in ~/code/api/src/", "~/code/api/src", Path),
        ("edit src/store/file.rs:10", "src/store/file.rs", Path),
        ("the README.md is", "README.md", Path),
        ("commit 1bea535 is", "1bea535", Hash),
        ("ticket ABC-123.", "ABC-123", Id),
        ("pull #4711 and", "#4711", Id),
        ("user mia_chen_9402 said", "mia_chen_9402", Id),
        ("call parse_header now", "parse_header", Ident),
        ("call parseHeader now", "parseHeader", Ident),
        ("a TokenCache here", "TokenCache", Ident),
        ("use std::sync::Mutex here", "std::sync::Mutex", Ident),
        ("costs 12,345.50 dollars", "12345.50", Num),
    ] {
        assert_eq!(found(text), [(name.to_owned(), class)], "{text}");
    }
}

#[test]
fn what_tells_nothing_is_no_entity() {
    for text in [
        "plain words only",
        "run --release-all now",
        "in 2026 or 5000 or 999",
        "tool_use file_path",
        "> /dev/null/x",
        "noreply@x.io",
        "abcdefa deadbeef 1234567x",
        "----abc_def",
        "x123",
    ] {
        let found = names(text);
        assert!(
            found.iter().all(|name| name == "abc_def"),
            "{text}: {found:?}"
        );
    }
    assert_eq!(
        find_entities("flight 512", MinDigits(3)),
        [("512".to_owned(), EntityClass::Num)]
    );
}

#[test]
fn entities_come_once_and_in_order_and_escapes_are_read() {
    assert_eq!(
        names(r"b_name a_name\nb_name c_name"),
        ["b_name", "a_name", "c_name"]
    );
}

#[test]
fn letters_beyond_ascii_are_letters() {
    assert_eq!(names("éa_name a_nameé"), Vec::<String>::new());
    assert_eq!(names("→a_name✓"), ["a_name"]);
}

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
