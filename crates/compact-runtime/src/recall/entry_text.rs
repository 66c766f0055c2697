//! An entry as a reader sees it: calls as lines, edits as differences, JSON without its escapes.
//!
//! The index, the excerpts of a hit and `expand` all use this one text, so that a line number means the
//! same in each of them. The exact bytes of an entry are another matter ([`RestoredEntry::source`]).
//!
//! [`RestoredEntry::source`]: super::RestoredEntry::source

use std::ops::Range;

use compact_core::message::{Block, Entry};
use serde_json::{Map, Value};

/// What tools call the text before and after an edit.
const EDIT_MEMBERS: [(&str, &str); 5] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
];

/// Unchanged lines that are shown around a difference.
const CONTEXT_LINES: usize = 3;

/// JSON on one line that is longer than this is taken apart, even if it hides no line breaks.
const LONG_LINE: usize = 240;

/// Returns the words of an entry, block by block.
pub fn entry_text(entry: &Entry) -> String {
    let mut out = String::new();
    for block in &entry.blocks {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        match block {
            Block::ToolCall {
                name, arguments, ..
            } => {
                out.push_str(name);
                out.push('\n');
                match serde_json::from_str::<Value>(arguments) {
                    Ok(value) => push_value(&value, "", &mut out),
                    Err(_) => out.push_str(arguments),
                }
            }
            Block::ToolResult { content, .. } => push_result(content, &mut out),
            other => out.push_str(other.text_parts()[0]),
        }
    }
    match out.contains('\u{1b}') {
        true => strip_terminal_codes(&out),
        false => out,
    }
}

/// A result as it is, unless it is JSON that hides lines from its reader.
fn push_result(content: &str, out: &mut String) {
    let trimmed = content.trim();
    let hides_lines = || trimmed.contains("\\n") || trimmed.lines().any(|l| l.len() > LONG_LINE);
    if trimmed.starts_with(['{', '['])
        && hides_lines()
        && let Ok(value) = serde_json::from_str::<Value>(trimmed)
    {
        return push_value(&value, "", out);
    }
    out.push_str(content);
}

/// Appends a value as lines of `path: scalar`.
fn push_value(value: &Value, path: &str, out: &mut String) {
    match value {
        Value::Object(fields) => push_object(fields, path, out),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                push_value(item, &format!("{path}[{at}]"), out);
            }
        }
        scalar => push_scalar(scalar, path, out),
    }
}

fn push_object(fields: &Map<String, Value>, path: &str, out: &mut String) {
    let edit = EDIT_MEMBERS.iter().find_map(|(old, new)| {
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        Some(((*old, *new), (text(old)?, text(new)?)))
    });
    for (key, value) in fields {
        if edit.is_some_and(|((old, new), _)| key == old || key == new) {
            continue;
        }
        match path {
            "" => push_value(value, key, out),
            path => push_value(value, &format!("{path}.{key}"), out),
        }
    }
    if let Some((_, (old, new))) = edit {
        push_difference(old, new, out);
    }
}

/// Appends a scalar; a text of several lines begins on a line of its own.
fn push_scalar(scalar: &Value, path: &str, out: &mut String) {
    let other;
    let text = match scalar {
        Value::String(text) => text.as_str(),
        value => {
            other = value.to_string();
            &other
        }
    };
    if !path.is_empty() {
        out.push_str(path);
        out.push(':');
        out.push(if text.contains('\n') { '\n' } else { ' ' });
    }
    out.push_str(text);
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Appends what an edit changes, with a few of the unchanged lines at its ends.
fn push_difference(old: &str, new: &str, out: &mut String) {
    let (before, after): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let pairs = before.iter().zip(&after);
    let head = pairs.take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - head;
    let pairs = before.iter().rev().zip(after.iter().rev());
    let tail = pairs.take(rest).take_while(|(a, b)| a == b).count();
    push_lines(' ', &before, head.saturating_sub(CONTEXT_LINES)..head, out);
    push_lines('-', &before, head..before.len() - tail, out);
    push_lines('+', &after, head..after.len() - tail, out);
    let end = after.len() - tail;
    push_lines(' ', &after, end..end + CONTEXT_LINES, out);
}

fn push_lines(mark: char, lines: &[&str], range: Range<usize>, out: &mut String) {
    for line in lines.iter().take(range.end).skip(range.start) {
        out.push(mark);
        out.push_str(line);
        out.push('\n');
    }
}

/// Leaves out the sequences by which programs colour a terminal.
fn strip_terminal_codes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
        } else if chars.next_if_eq(&'[').is_some() {
            // Parameters up to a final letter.
            while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {}
            chars.next();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use compact_core::message::Role;

    use super::*;

    fn check_call(arguments: &str, want: &str) {
        let mut entry = Entry::from_text("1", Role::Assistant, "");
        entry.blocks = vec![Block::ToolCall {
            id: "c".to_owned(),
            name: "Tool".to_owned(),
            arguments: arguments.to_owned(),
        }];
        assert_eq!(entry_text(&entry), format!("Tool\n{want}"));
    }

    fn check_result(content: &str, want: &str) {
        let mut entry = Entry::from_text("1", Role::Tool, "");
        entry.blocks = vec![Block::ToolResult {
            call: "c".to_owned(),
            content: content.to_owned(),
            is_error: false,
        }];
        assert_eq!(entry_text(&entry), want);
    }

    #[test]
    fn arguments_are_lines_without_escapes() {
        check_call(
            r#"{"path":"a.rs","content":"one\ntwo","todos":[{"text":"x","done":true}]}"#,
            "path: a.rs\ncontent:\none\ntwo\ntodos[0].text: x\ntodos[0].done: true\n",
        );
        check_call("free text", "free text");
    }

    #[test]
    fn an_edit_is_a_difference() {
        check_call(
            r#"{"file_path":"a.rs","old_string":"fn a() {\n    1\n}","new_string":"fn a() {\n    2\n    3\n}"}"#,
            "file_path: a.rs\n fn a() {\n-    1\n+    2\n+    3\n }\n",
        );
        check_call(
            r#"{"edits":[{"oldText":"a","newText":""},{"oldText":"","newText":"b"}]}"#,
            "-a\n+b\n",
        );
        check_call(r#"{"old_str":"x\nx","new_str":"x\nx\nx"}"#, " x\n x\n+x\n");
    }

    #[test]
    fn results_lose_escapes_and_colours_and_nothing_else() {
        check_result("{\n  \"a\": 1\n}", "{\n  \"a\": 1\n}");
        check_result(
            r#"{"output":"one\ntwo\n","exit":{"code":0}}"#,
            "output:\none\ntwo\nexit.code: 0\n",
        );
        check_result(
            r#"[{"type":"text","text":"a\nb"}]"#,
            "[0].type: text\n[0].text:\na\nb\n",
        );
        check_result("{broken \\n", "{broken \\n");
        check_result("\u{1b}[1;31mred\u{1b}[0m\u{1b}", "red");
    }
}
