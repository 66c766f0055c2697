//! What pages say, and that the words of a transcript stay words.

use compact_dashboard::ActionMode;

use crate::scene::{Scene, compact_session, turns};

const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>\u{202e}gnp.exe";

#[tokio::test]
async fn markup_in_a_transcript_is_text_on_every_page() {
    let scene = Scene::new(ActionMode::Allowed);
    let name = "<i>\"runs\"&amp;";
    let receipt = compact_session(&scene.compact, name, &turns(40, MARKUP)).await;
    let name = "%3Ci%3E%22runs%22%26amp%3B";
    let pages = [
        "/".to_owned(),
        "/?q=%3Cscript%3Ealert".to_owned(),
        format!("/session?name={name}"),
        format!("/compaction?name={name}&receipt={receipt}"),
        format!("/entry?name={name}&receipt={receipt}&at=0"),
    ];
    for path in pages {
        let page = scene.page(&path).await;
        for mark in ["<script>alert", "<img", "<i>", "\u{202e}"] {
            assert!(!page.contains(mark), "{path} has {mark}");
        }
    }
    let entry = scene
        .page(&format!("/entry?name={name}&receipt={receipt}&at=0"))
        .await;
    assert!(entry.contains("&lt;script&gt;alert(1)") && entry.contains("⟨U+202E⟩gnp.exe"));
}

#[tokio::test]
async fn a_line_of_a_megabyte_is_shown_in_parts() {
    let scene = Scene::new(ActionMode::Allowed);
    let mut messages = turns(40, "");
    messages[0]["content"] = "x<y ".repeat(250_000).into();
    let receipt = compact_session(&scene.compact, "long", &messages).await;
    let paths = [
        "/session?name=long".to_owned(),
        format!("/compaction?name=long&receipt={receipt}"),
        format!("/entry?name=long&receipt={receipt}&at=0"),
        format!("/entry?name=long&receipt={receipt}&at=0&page=16"),
    ];
    for path in paths {
        let page = scene.page(&path).await;
        assert!(page.len() <= 250_000, "{path} weighs {}", page.len());
    }
}

#[tokio::test]
async fn a_session_that_is_not_there_is_a_page_that_says_so() {
    let scene = Scene::new(ActionMode::Allowed);
    let answer = scene.send(crate::scene::get("/session?name=gone")).await;
    assert_eq!(answer.status(), http::StatusCode::NOT_FOUND);
    let text = crate::scene::body_text(answer).await;
    assert!(
        text.contains("nothing on record is called “gone”"),
        "{text}"
    );
}
