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
    assert_eq!(of_arguments(&whole), "+fn main() {}\n+use b;");
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

#[test]
fn a_declaration_over_several_lines_is_one() {
    let go = "func Plan(\n\twant Ref,\n\texists bool,\n) (Plan, error) {\n\treturn x, nil\n}\n\n// A session.\ntype Kept struct {\n\tID string\n\n\t// What was said.\n\tText []byte\n}\n";
    assert_eq!(
        of_arguments(&serde_json::json!({ "content": go })),
        "+func Plan(want Ref, exists bool) (Plan, error) {\n+// A session.\n+type Kept struct { ID string; Text []byte }"
    );
    let python =
        "def load_rows(\n    path: str,\n    limit: int = 5,\n) -> list[Row]:\n    return []\n";
    assert_eq!(
        of_arguments(&serde_json::json!({ "content": python })),
        "+def load_rows(path: str, limit: int = 5) -> list[Row]:"
    );
}

#[test]
fn a_declaration_with_a_changed_parameter_is_another_one() {
    let edit = serde_json::json!({
        "old_string": "fn plan_rows(\n    rows: u32,\n    dry: bool,\n) {\n    go();",
        "new_string": "fn plan_rows(\n    rows: u64,\n    dry: bool,\n) {\n    go();",
    });
    let expected = "-fn plan_rows(rows: u32, dry: bool) {\n+fn plan_rows(rows: u64, dry: bool) {";
    assert_eq!(of_arguments(&edit), expected);
    let patch = "*** Update File: src/a.rs\n@@\n fn plan_rows(\n-    rows: u32,\n+    rows: u64,\n     dry: bool,\n ) {\n@@\n-a b\n+b c\n*** End Patch";
    assert_eq!(
        changed_lines("src/a.rs", patch, patch),
        "-fn plan_rows(rows: u32, dry: bool) {\n-a b\n+fn plan_rows(rows: u64, dry: bool) {\n+b c"
    );
}

#[test]
fn a_declaration_that_is_long_or_has_no_end_stays_as_it_is() {
    let open = "fn plan_rows(\n    rows: u32,\n\nlet x = 1;\n";
    assert_eq!(
        of_arguments(&serde_json::json!({ "content": open })),
        "+fn plan_rows(\n+rows: u32,\n+let x = 1;"
    );
    let fields: String = (0..30).map(|n| format!("    field_{n}: u32,\n")).collect();
    let long = format!("struct RowSet {{\n{fields}}}\n");
    let lines = of_arguments(&serde_json::json!({ "content": long }));
    assert!(
        lines.starts_with("+struct RowSet {\n+field_0: u32,\n"),
        "{lines}"
    );
}

#[test]
fn a_comment_over_several_lines_is_one() {
    let text =
        "// The helper is asked last,\n// so that explicit tokens win.\nfn ask() {}\n# one\n";
    assert_eq!(
        of_arguments(&serde_json::json!({ "content": text })),
        "+// The helper is asked last, so that explicit tokens win.\n+fn ask() {}\n+# one"
    );
}

#[test]
fn what_is_imported_stands_behind_what_is_done() {
    let rows = [
        (
            "import (\n\t\"fmt\"\n\t\"io\"\n)\nvar limit = 5\n",
            "+var limit = 5\n+import (\n+\"fmt\"\n+\"io\"",
        ),
        (
            "import {\n  one,\n} from 'two'\nrun()\n",
            "+run()\n+import {\n+one,\n+} from 'two'",
        ),
        ("from a import b\nb.run()\n", "+b.run()\n+from a import b"),
        ("use the table below\n", "+use the table below"),
    ];
    let made = rows.map(|(text, _)| of_arguments(&serde_json::json!({ "content": text })));
    assert_eq!(made, rows.map(|(_, expected)| expected.to_owned()));
}

#[test]
fn what_stands_in_every_program_says_nothing() {
    let fillers = [
        "",
        "}",
        "a)",
        "return nil",
        "} else {",
        "if err != nil {",
        "default:",
        "try:",
    ];
    let lines = [
        "port: high",
        "a = b",
        "x.y",
        "- run it",
        "return Nil",
        "port80",
        "run the tests before you go",
        "größe ändern",
        "# why",
    ];
    let told = |line: &&str| is_telling(line);
    assert_eq!(fillers.iter().find(|line| told(line)), None);
    assert_eq!(lines.iter().find(|line| !told(line)), None);
}
