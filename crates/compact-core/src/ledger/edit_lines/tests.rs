use super::*;

fn of_arguments(arguments: &serde_json::Value) -> String {
    changed_lines(
        "src/a.rs",
        "Edit file_path: src/a.rs",
        &arguments.to_string(),
    )
}

#[test]
fn both_sides_are_marked_and_what_they_share_is_left_out() {
    let edit = serde_json::json!({
        "file_path": "src/a.rs",
        "old_string": "fn port() -> u16 {\n    80\n}",
        "new_string": "fn port() -> u16 {\n    8080\n}",
    });
    assert_eq!(of_arguments(&edit), "-80\n+8080");
    let list = serde_json::json!({"edits": [
        {"oldText": "let a = 1;", "newText": "let a = 2;"},
        {"oldText": "let b = 1;", "newText": ""},
    ]});
    assert_eq!(of_arguments(&list), "-let a = 1;\n-let b = 1;\n+let a = 2;");
    let whole = serde_json::json!({"file_path": "a", "content": "use b;\n\n{\nfn main() {}\n"});
    assert_eq!(of_arguments(&whole), "+use b;\n+fn main() {}");
    assert_eq!(of_arguments(&serde_json::json!({"file_path": "a"})), "");
}

#[test]
fn a_patch_is_read_file_by_file() {
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-old one\n+new one\n same\n*** Add File: src/b.rs\n+other\n*** End Patch";
    assert_eq!(
        changed_lines("src/a.rs", patch, patch),
        "-old one\n+new one"
    );
    assert_eq!(changed_lines("src/b.rs", patch, patch), "+other");
}

#[test]
fn a_large_change_is_cut_to_its_first_lines() {
    let new: String = (0..100).map(|i| format!("line {i}\n")).collect();
    let lines = of_arguments(&serde_json::json!({"old_string": "", "new_string": new}));
    assert_eq!(lines.lines().count(), LINES);
}
