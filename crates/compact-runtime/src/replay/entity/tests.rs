use super::*;

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

#[test]
fn escapes_are_written_out() {
    assert_eq!(unescape_json(r#"a\nb\"c"#), "a\nb\"c");
}
