//! Files of many sessions.

use crate::{Format, FormatError, TranscriptScope, parse, sessions};

fn slices(source: &str) -> Vec<(Option<String>, Format, &str)> {
    let slices = sessions(source.as_bytes(), None).unwrap();
    assert!(slices.iter().enumerate().all(|(i, slice)| slice.index == i));
    slices
        .into_iter()
        .map(|slice| (slice.name, slice.format, source.get(slice.span).unwrap()))
        .collect()
}

const RUN: &str = r#"{"task_id":7,"trial":1,"traj":[{"role":"user","content":"hi"}]}"#;

#[test]
fn a_list_of_runs_holds_a_session_each() {
    let source = format!("[\n  {RUN},\n  {RUN}\n]\n");
    let name = Some("task_id 7, trial 1".to_owned());
    assert_eq!(slices(&source), vec![(name, Format::TauBench, RUN); 2]);
    let parsed = parse(RUN, None, TranscriptScope::Live).unwrap();
    assert_eq!(parsed.document.format(), Format::TauBench);
    assert_eq!(parsed.conversation.entries[0].plain_text(), "hi");
}

#[test]
fn a_run_per_line_and_simulations_hold_many() {
    let line = r#"{"instance_id":"x-1","history":[{"action":"message","args":{"content":"hi"},"source":"user"}]}"#;
    let lines = format!("{line}\n\n{line}\n");
    let name = Some("x-1".to_owned());
    assert_eq!(slices(&lines), vec![(name, Format::OpenHands, line); 2]);
    let run = r#"{"id":"a","messages":[{"role":"user","content":"hi"}]}"#;
    let nested = format!("{{\"info\":{{}},\n\"simulations\":[{run},{run}]}}");
    let name = Some("a".to_owned());
    assert_eq!(slices(&nested), vec![(name, Format::OpenAiChat, run); 2]);
}

#[test]
fn one_session_is_the_whole_file() {
    for source in [
        r#"{"messages":[{"role":"user","content":"hi"}]}"#,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n",
        r#"[{"role":"user","content":"hi"}]"#,
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"b\"}\n",
    ] {
        let found = slices(source);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].2, source);
    }
}

#[test]
fn reading_a_file_of_many_asks_which_one() {
    let error = parse(format!("[{RUN},{RUN},{RUN}]"), None, TranscriptScope::Live).unwrap_err();
    assert!(matches!(error, FormatError::ManySessions { count: 3 }));
    assert_eq!(
        error.to_string(),
        "the file holds 3 sessions; choose one by its index, 0 to 2"
    );
}

#[test]
fn elements_that_are_no_sessions_are_named() {
    let error = sessions(b"[{\"traj\":[]},7]", None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1: `the document[]` must be an object that is a session, found a number"
    );
}
