use super::*;
use crate::ledger::Ledger;
use crate::message::{Block, Entry, EntryId, EntryKind, EntryMeta, Role};

#[test]
fn an_answer_gives_a_task_its_id() {
    let rows = [
        (
            "Command running in background with ID: bash_3",
            Some("bash_3"),
        ),
        (
            "Command running in background with ID: b7f2a1. Output is being written to: /srv/x",
            Some("b7f2a1"),
        ),
        ("Process running with session ID 48213", Some("48213")),
        (
            "Async agent launched successfully.\nagentId: a81c22d (internal ID)",
            Some("a81c22d"),
        ),
        (
            "The server started. Nothing runs in the background with this id either",
            None,
        ),
        ("ok", None),
    ];
    assert_eq!(
        rows.map(|(answer, _)| started_id(answer)),
        rows.map(|(_, id)| id)
    );
}

#[test]
fn a_notice_tells_an_end() {
    let rows = [
        (
            "<task-notification>\n<task-id>b7f2a1</task-id>\n<output-file>x</output-file>\n<status>completed</status>",
            Some(("b7f2a1", "completed")),
        ),
        (
            "<system-reminder>\nBackground Bash bash_3 (command: make) (status: killed) Has new output",
            Some(("bash_3", "killed")),
        ),
        (
            "<task-notification>\n<task-id>b7f2a1</task-id>\n<status>running</status>",
            None,
        ),
    ];
    for (notice, expected) in rows {
        let ends = ends_in_notice(4, notice);
        let found = ends.first().map(|end| (&*end.id, &*end.how));
        assert_eq!(found, expected, "{notice}");
    }
}

fn exchange(nth: usize, tool: &str, arguments: &str, answer: &str) -> [Entry; 2] {
    let entry = |role, block| Entry {
        id: EntryId(format!("{nth}")),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    };
    let id = format!("c{nth}");
    let call = Block::ToolCall {
        id: id.clone(),
        name: tool.into(),
        arguments: arguments.into(),
    };
    let result = Block::ToolResult {
        call: id,
        content: answer.into(),
        is_error: false,
    };
    [entry(Role::Assistant, call), entry(Role::Tool, result)]
}

/// The same in one go and in two halves: an end closes a task of an earlier stretch.
#[test]
fn only_tasks_that_nobody_ended_are_running() {
    let start = |nth, id: &str| {
        exchange(
            nth,
            "Bash",
            r#"{"command":"make watch"}"#,
            &format!("Command running in background with ID: {id}"),
        )
    };
    let mut notice = Entry::from_text(
        "n",
        Role::User,
        "<task-notification><task-id>t_1</task-id><status>failed</status></task-notification>",
    );
    notice.meta.kind = EntryKind::Injected;
    let head = [
        start(0, "t_1"),
        start(1, "t_2"),
        start(2, "t_3"),
        start(3, "t_4"),
    ]
    .concat();
    let tail = [
        &[notice],
        &exchange(4, "KillShell", r#"{"shell_id":"t_2"}"#, "ok")[..],
        &exchange(
            5,
            "BashOutput",
            r#"{"bash_id":"t_3"}"#,
            "<status>completed</status>",
        )[..],
        &exchange(
            6,
            "BashOutput",
            r#"{"bash_id":"t_4"}"#,
            "<status>running</status>",
        )[..],
    ]
    .concat();
    let mut merged = Ledger::from_entries(&head, 0);
    merged.merge(Ledger::from_entries(&tail, head.len() as u64));
    let whole = Ledger::from_entries(&[head, tail].concat(), 0);
    for ledger in [whole, merged] {
        let running: Vec<(u32, &str, &str)> = ledger
            .facts
            .running_tasks()
            .map(|t| (t.ordinal, &*t.id, &*t.text))
            .collect();
        assert_eq!(running, [(6, "t_4", "Bash: make watch")]);
    }
}

/// The same in one go and in two halves.
#[test]
fn a_command_in_the_background_ends_as_a_later_look_at_it_shows() {
    let begun = |nth, command: &str, id: &str| {
        exchange(
            nth,
            "exec_command",
            &format!(r#"{{"cmd":"{command}"}}"#),
            &format!("Wall time: 1.0 seconds\nProcess running with session ID {id}\nOutput:\n"),
        )
    };
    let look = |nth, id: &str, answer: &str| {
        let answer = format!("Wall time: 4.2 seconds\n{answer}");
        exchange(
            nth,
            "write_stdin",
            &format!(r#"{{"session_id":{id}}}"#),
            &answer,
        )
    };
    let head = [
        begun(0, "go test ./...", "81"),
        begun(1, "go vet ./...", "82"),
    ]
    .concat();
    let tail = [
        look(2, "81", "Process exited with code 0\nOutput:\nok  \tapp/a\t1s\nok  \tapp/b\t2s\n?   \tapp/c\t[no test files]\n"),
        look(3, "82", "Process exited with code 1\nOutput:\napp/a.go:3: error: missing return\n"),
    ]
    .concat();
    let mut merged = Ledger::from_entries(&head, 0);
    merged.merge(Ledger::from_entries(&tail, head.len() as u64));
    let whole = Ledger::from_entries(&[head, tail].concat(), 0);
    for ledger in [whole, merged] {
        let [test, vet, ..] = ledger.facts.runs.as_slice() else {
            panic!("{:?}", ledger.facts.runs);
        };
        assert_eq!(
            test.end.as_deref(),
            Some("2 times ok, the last: ok app/b 2s; ? app/c [no test files]")
        );
        assert_eq!(test.outcome, ToolRunOutcome::Ok);
        assert!(
            matches!(&vet.outcome, ToolRunOutcome::Failed(why) if why.contains("missing return"))
        );
    }
}

#[test]
fn patterns_compile() {
    assert!(
        [&STARTED, &AGENT_ID, &NOTICE, &ENDED]
            .iter()
            .all(|p| p.is_some())
    );
}
