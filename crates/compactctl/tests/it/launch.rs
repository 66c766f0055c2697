//! `compactctl launch`: a command gets a gateway of its own, and everything else is the command's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn launch(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compactctl"));
    command
        .arg("launch")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .env("COMPACT_STORAGE_PATH", folder.join("store"))
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    launch(folder, arguments).output().unwrap()
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[cfg(unix)]
#[test]
fn a_gateway_lives_as_long_as_its_command_and_only_that_knows_where() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo $COMPACT_GATEWAY_URL; read line; exit 7";
    let mut child = launch(folder.path(), &["sh", "-c", script])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    let (address, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    assert!(get(address, &format!("/{path}/healthz")).ends_with("ok\n"));
    for elsewhere in ["/healthz", "/metrics", "/v1/models"] {
        let answer = get(address, elsewhere);
        assert!(answer.starts_with("HTTP/1.1 404"), "{elsewhere}: {answer}");
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert!(TcpStream::connect(address).is_err(), "nobody listens there");
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .collect();
    let left: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name == "store"), "{left:?}");
}

#[cfg(unix)]
#[test]
fn the_variables_of_sdks_lead_to_the_gateway_and_arguments_are_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"printf '%s\n' "$1" "$2" "$ANTHROPIC_BASE_URL" "$OPENAI_BASE_URL" "$GOOGLE_GEMINI_BASE_URL" "$ENABLE_TOOL_SEARCH""#;
    let done = run(
        folder.path(),
        &["--", "sh", "-c", script, "sh", "--json", "-q"],
    );
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let said = String::from_utf8(done.stdout).unwrap();
    let said: Vec<&str> = said.lines().collect();
    let [json, quiet, anthropic, openai, gemini, tool_search] = said[..] else {
        panic!("{said:?}");
    };
    assert_eq!((json, quiet, tool_search), ("--json", "-q", "true"));
    assert_eq!((gemini, openai), (anthropic, &*format!("{anthropic}/v1")));
    assert!(
        done.stderr.is_empty(),
        "{:?}",
        String::from_utf8(done.stderr)
    );
}

#[cfg(unix)]
#[test]
fn a_gateway_that_runs_already_is_used_instead() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo $ANTHROPIC_BASE_URL";
    let arguments = ["--gateway", "http://127.0.0.1:1/", "sh", "-c", script];
    let done = run(folder.path(), &arguments);
    assert_eq!(
        String::from_utf8(done.stdout).unwrap(),
        "http://127.0.0.1:1\n"
    );
}

#[cfg(unix)]
#[test]
fn a_signal_is_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    // Without a terminal of its own nobody else would tell the command.
    let script = "trap 'echo told; exit 9' TERM INT; echo ready; while :; do sleep 0.1; done";
    for signal in ["-TERM", "-INT"] {
        let mut command = launch(folder.path(), &["sh", "-c", script]);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let id = child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        assert_eq!(lines.next().unwrap().unwrap(), "told", "{signal}");
        assert_eq!(child.wait().unwrap().code(), Some(9), "{signal}");
    }
}

#[cfg(unix)]
#[test]
fn a_command_that_a_signal_ended_says_so_as_a_shell_does() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["sh", "-c", "kill -KILL $$"]);
    assert_eq!(done.status.code(), Some(128 + 9));
}

#[test]
fn what_cannot_be_launched_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (
            &["no-such-agent"][..],
            "there is no program `no-such-agent`",
        ),
        (&["--json", "sh"], "launch has no --json"),
    ] {
        let done = run(folder.path(), arguments);
        assert_eq!(done.status.code(), Some(2));
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
        assert!(said.contains(words), "{said}");
    }
}
