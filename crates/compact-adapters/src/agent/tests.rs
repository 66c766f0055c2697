use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use compact_formats::stream::{AgentActivity, TurnEnd};
use compact_runtime::port::agent::{AgentError, SessionOpening, conformance};
use tempfile::TempDir;

use super::*;

/// Says in upper case what it is told, works when told to; `$1` is where a line has its text.
const POLITE: &str = r#"
say() { printf '%s\n' "$1"; }
shout() { printf '%s' "$1" | sed "s/.*\"$2\":\"\([^\"]*\)\".*/\1/" | tr a-z A-Z; }
"#;

const LINES: &str = r#"
while read -r line; do
  case "$line" in
    *'"interrupt"'*) say '{"type":"result","is_error":true,"message":"interrupted"}' ;;
    *'"work"'* | *'"go on"'*)
      say '{"type":"tool_call","id":"c","name":"t"}'
      say '{"type":"tool_result","id":"c","content":"ok"}'
      case "$line" in *'"work"'*) say '{"type":"result"}' ;; esac ;;
    *) say "{\"type\":\"text\",\"text\":\"$(shout "$line" text)\"}"; say '{"type":"result"}' ;;
  esac
done
"#;

const CLAUDE: &str = r#"
say "not of the stream"
say '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
while read -r line; do
  case "$line" in
    *'"interrupt"'*) say '{"type":"result","is_error":true,"subtype":"error_during_execution"}' ;;
    *'"work"'* | *'"go on"'*)
      say '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"t","input":{}}]}}'
      say '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"ok"}]}}'
      case "$line" in *'"work"'*) say '{"type":"result","is_error":false}' ;; esac ;;
    *) text=$(shout "$line" content)
      say "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}}"
      say '{"type":"result","is_error":false,"session_id":"s1"}' ;;
  esac
done
"#;

const CODEX: &str = r#"
[ "$1" = exec ] || exit 9
prompt=$(cat)
say '{"type":"thread.started","thread_id":"t1"}'
case "$prompt" in
  work | 'go on')
    say '{"type":"item.started","item":{"id":"i","type":"command_execution","command":"ls"}}'
    say '{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"ls","exit_code":0}}'
    [ "$prompt" = work ] || exec sleep 60 ;;
  *) text=$(printf '%s' "$prompt" | tr a-z A-Z)
    say "{\"type\":\"item.completed\",\"item\":{\"id\":\"m\",\"type\":\"agent_message\",\"text\":\"$text\"}}" ;;
esac
say '{"type":"turn.completed","usage":{"input_tokens":5}}'
"#;

/// A program of this name that does what the script says.
fn program(name: &str, script: &str) -> (TempDir, Launch) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{POLITE}{script}")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let launch = Launch {
        command: path.display().to_string(),
        folder: Some(folder.path().to_owned()),
        ..Launch::default()
    };
    (folder, launch)
}

#[tokio::test]
async fn every_agent_conforms() {
    for (name, script) in [("other", LINES), ("claude", CLAUDE), ("codex", CODEX)] {
        let (_folder, launch) = program(name, script);
        conformance::suite(&*launch.into_agent()).await;
    }
}

#[test]
fn an_agent_is_known_by_the_name_of_its_program() {
    let dialect = |command: &str| {
        let command = command.to_owned();
        let launch = Launch {
            command,
            ..Launch::default()
        };
        launch.dialect()
    };
    assert_eq!(dialect("claude"), StreamDialect::ClaudeCode);
    assert_eq!(
        dialect("/opt/node_modules/.bin/codex"),
        StreamDialect::Codex
    );
    assert_eq!(dialect("python3 agent.py"), StreamDialect::Lines);
    assert_eq!(dialect("/opt/claude/agent"), StreamDialect::Lines);
}

async fn refusal(launch: Launch) -> AgentError {
    let mut session = match launch
        .into_agent()
        .open(SessionOpening::Fresh, "first")
        .await
    {
        Ok(session) => session,
        Err(error) => return error,
    };
    loop {
        if let Err(error) = session.next().await {
            return error;
        }
    }
}

#[tokio::test]
async fn what_is_no_agent_is_said_to_be_none() {
    let launch = |command: &str| Launch {
        command: command.to_owned(),
        ..Launch::default()
    };
    let error = refusal(launch("/nowhere/claude")).await;
    assert!(matches!(error, AgentError::Missing(_)), "{error}");
    let homeless = Launch {
        folder: Some("/nowhere".into()),
        ..launch("/bin/sh")
    };
    let error = refusal(homeless).await;
    assert!(
        format!("{error:?}").contains("/nowhere is gone"),
        "{error:?}"
    );
    let (folder, mut broken) = program("claude", "");
    let path = Path::new(&broken.command).to_owned();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let error = refusal(broken.clone()).await;
    assert!(matches!(error, AgentError::NotExecutable(_)), "{error}");
    broken.command = folder.path().display().to_string();
    let error = refusal(broken).await;
    assert!(matches!(error, AgentError::NotExecutable(_)), "{error}");
}

#[tokio::test]
async fn an_agent_that_ends_or_rambles_says_why() {
    let (_folder, dies) = program("claude", "echo 'no such key' >&2; exit 3");
    assert_eq!(
        refusal(dies).await.to_string(),
        "the agent ended with exit status: 3 in the middle of its work: no such key"
    );
    for rambles in ["echo Welcome!; echo How are you?", "yes Welcome!"] {
        let (_folder, launch) = program("codex", rambles);
        assert_eq!(
            refusal(launch).await.to_string(),
            "the agent printed \"Welcome!\" where a JSON object with a `type` was expected"
        );
    }
    let shell = Launch {
        command: "nowhere-to-be-found --flag".to_owned(),
        ..Launch::default()
    };
    let error = refusal(shell).await.to_string();
    assert!(
        error.contains("exit status: 127") && error.contains("nowhere-to-be-found"),
        "{error}"
    );
}

#[tokio::test]
async fn an_agent_ends_with_everything_that_it_started() {
    let script = "sleep 300 & echo $! > child; trap '' INT TERM; say '{\"type\":\"text\",\"text\":\"x\"}'; sleep 300; sleep 300";
    let (folder, launch) = program("stubborn", script);
    let mut session = launch
        .into_agent()
        .open(SessionOpening::Fresh, "first")
        .await
        .unwrap();
    session.next().await.unwrap();
    session.close().await;
    let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
    let process = Path::new("/proc").join(child.trim());
    for _ in 0..50 {
        let state = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("its child {child} lives on");
}

#[tokio::test]
async fn an_agent_keeps_its_surroundings_in_every_session() {
    let script = "while read -r line; do say \"{\\\"type\\\":\\\"result\\\",\\\"text\\\":\\\"$RUN $PWD $*\\\"}\"; done";
    let (folder, mut launch) = program("other", script);
    launch.environment = vec![("RUN".to_owned(), "r1".to_owned())];
    launch.arguments = vec!["--a b".to_owned(), "c".to_owned()];
    let agent = launch.into_agent();
    for _ in 0..2 {
        let mut session = agent.open(SessionOpening::Fresh, "first").await.unwrap();
        let told = session.next().await.unwrap().told;
        let here = folder.path().canonicalize().unwrap();
        let text = format!("r1 {} --a b c", here.display());
        assert_eq!(told, [AgentActivity::Ended(TurnEnd::Done(Some(text)))]);
        session.close().await;
    }
}
