use std::borrow::Cow;

use super::readable_json;

#[test]
fn only_halves_are_mended() {
    for (json, read) in [
        (r#""cut \ud83d""#, r#""cut \ufffd""#),
        (r#""\uDE42 low first""#, r#""\ufffd low first""#),
        (
            r#""\ud83d\ud83d\ude42\ude42""#,
            r#""\ufffd\ud83d\ude42\ufffd""#,
        ),
        (r#""\ud83dx\ude42""#, r#""\ufffdx\ufffd""#),
        (r#""\\\ud83d""#, r#""\\\ufffd""#),
    ] {
        assert_eq!(readable_json(json.as_bytes()), read.as_bytes(), "{json}");
        assert!(serde_json::from_str::<String>(read).is_ok());
    }
}

#[test]
fn whole_text_is_not_copied() {
    for json in [
        r#""\ud83d\ude42 and \u00e9""#,
        r#""a path \\ud83d""#,
        r#""\ud83""#,
        "\\u",
        "",
    ] {
        assert!(
            matches!(readable_json(json.as_bytes()), Cow::Borrowed(_)),
            "{json}"
        );
    }
}
