//! `compactctl serve` as a program: it says where it listens, serves, and ends when it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

fn start(arguments: &[&str], folder: &std::path::Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_compactctl"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("COMPACT_STORAGE_PATH", folder.join("store"))
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
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
fn it_serves_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = start(&["serve", "--listen", "127.0.0.1:0"], folder.path());
    let mut lines = BufReader::new(served.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line.strip_prefix("listening on http://").expect(&line);
    assert!(get(address, "/healthz").ends_with("ok\n"));
    assert!(get(address, "/readyz").ends_with("ready\n"));
    let id = served.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(served.wait().unwrap().code(), Some(0));
}

#[test]
fn a_store_that_cannot_be_used_is_said_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("config/compact");
    std::fs::create_dir_all(&settings).unwrap();
    // Nobody listens on the first port.
    let catalog = "storage: { catalog: \"postgres://nobody@127.0.0.1:1/none?sslmode=disable\" }\n";
    std::fs::write(settings.join("config.yaml"), catalog).unwrap();
    let mut served = start(&["serve", "--listen", "127.0.0.1:0"], folder.path());
    let mut lines = BufReader::new(served.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line.strip_prefix("listening on http://").expect(&line);
    let warning = lines.next().unwrap().unwrap();
    assert!(
        warning.starts_with("warning: the store cannot be used"),
        "{warning}"
    );
    assert!(get(address, "/readyz").ends_with("ready\n"));
    served.kill().unwrap();
    served.wait().unwrap();
}

#[test]
fn an_address_that_others_reach_needs_keys() {
    let folder = tempfile::tempdir().unwrap();
    let refused = start(&["serve", "--listen", "0.0.0.0:0"], folder.path());
    let refused = refused.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("there are no gateway.keys"), "{message}");
    assert!(message.contains("--new-key"), "{message}");
}

#[test]
fn a_name_that_no_line_of_a_key_can_hold_gets_none() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["", " ", "a b", "a=b", "a\nb", "-a"] {
        let name = format!("--new-key={name}");
        let refused = start(&["serve", &name], folder.path());
        let refused = refused.wait_with_output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{name:?}");
        assert!(refused.stdout.is_empty(), "{name:?}");
    }
}

#[test]
fn a_check_refuses_what_serving_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.yaml");
    let path = file.to_str().unwrap();
    for (setting, says) in [
        ("keys: [\"alice=nothing\"]", "no hash"),
        ("listen: 0.0.0.0:0", "there are no gateway.keys"),
        ("upstreams: [\"v1=http://localhost\"]", "cannot be a name"),
        ("store_timeout_seconds: 0", "must be between 1 and 3600"),
    ] {
        std::fs::write(&file, format!("gateway:\n  {setting}\n")).unwrap();
        for command in [&["config", "check"][..], &["serve"]] {
            let refused = start(&[command, &["--config", path]].concat(), folder.path());
            let refused = refused.wait_with_output().unwrap();
            assert_eq!(refused.status.code(), Some(2), "{command:?} {setting}");
            let message = String::from_utf8(refused.stderr).unwrap();
            assert!(message.contains(says), "{command:?} {message}");
        }
    }
    std::fs::write(
        &file,
        "gateway:\n  upstream_keys: [\"openai=NOT_SET_HERE\"]\n",
    )
    .unwrap();
    let checked = start(&["config", "check", "--config", path], folder.path());
    let checked = checked.wait_with_output().unwrap();
    assert_eq!(checked.status.code(), Some(0));
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(
        said.contains("the variable NOT_SET_HERE is not set"),
        "{said}"
    );
}

#[test]
fn a_key_is_made_and_only_its_hash_is_for_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let made = start(&["serve", "--new-key", "alice", "--json"], folder.path());
    let made: Value = serde_json::from_slice(&made.wait_with_output().unwrap().stdout).unwrap();
    let (key, setting) = (
        made["key"].as_str().unwrap(),
        made["setting"].as_str().unwrap(),
    );
    assert!(key.starts_with("cgw_") && key.len() == 68, "{key}");
    assert!(
        setting.starts_with("alice=") && !setting.contains(key),
        "{setting}"
    );
}

#[cfg(unix)]
#[test]
fn settings_are_read_again_when_it_is_told_and_wrong_ones_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.yaml");
    std::fs::write(&file, "gateway:\n  max_body_mb: 8\n").unwrap();
    let path = file.to_str().unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--config", path];
    let mut served = start(&arguments, folder.path());
    let mut lines = BufReader::new(served.stderr.take().unwrap()).lines();
    let mut wait_for = |words: &str| loop {
        let line = lines.next().expect(words).unwrap();
        if line.contains(words) {
            return line;
        }
    };
    let line = wait_for("listening on");
    let address = line.strip_prefix("listening on http://").unwrap();
    let signal = |name: &str| {
        let id = served.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    };
    assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
    std::fs::write(&file, "gateway:\n  keys: [\"alice=nothing\"]\n").unwrap();
    signal("-HUP");
    wait_for("settings were not changed");
    assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
    let keys = format!("gateway:\n  keys: [\"alice={}\"]\n", "0".repeat(64));
    std::fs::write(&file, keys).unwrap();
    signal("-HUP");
    wait_for("settings were read again");
    assert!(get(address, "/metrics").starts_with("HTTP/1.1 401"));
    signal("-TERM");
    assert_eq!(served.wait().unwrap().code(), Some(0));
}

#[cfg(all(unix, feature = "dashboard"))]
#[test]
fn the_dashboard_is_beside_it_for_whom_it_lets_in() {
    let folder = tempfile::tempdir().unwrap();
    let made = start(&["serve", "--new-key", "alice", "--json"], folder.path());
    let made: Value = serde_json::from_slice(&made.wait_with_output().unwrap().stdout).unwrap();
    let file = folder.path().join("settings.yaml");
    let keys = format!(
        "gateway:\n  keys: [\"{}\"]\n",
        made["setting"].as_str().unwrap()
    );
    let ask = |address: &str, more: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let head =
            format!("GET /dashboard/ HTTP/1.1\r\nHost: localhost\r\n{more}Connection: close");
        stream
            .write_all(format!("{head}\r\n\r\n").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for (settings, more, status) in [
        ("{}\n".to_owned(), String::new(), "HTTP/1.1 200"),
        (
            "{}\n".to_owned(),
            "Origin: http://evil.example\r\n".to_owned(),
            "HTTP/1.1 403",
        ),
        (keys.clone(), String::new(), "HTTP/1.1 401"),
        (
            keys.clone(),
            "Authorization: Basic eDp5\r\n".to_owned(),
            "HTTP/1.1 401",
        ),
        (
            keys,
            format!("x-compact-key: {}\r\n", made["key"].as_str().unwrap()),
            "HTTP/1.1 200",
        ),
    ] {
        std::fs::write(&file, settings).unwrap();
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--config",
            file.to_str().unwrap(),
        ];
        let mut served = start(&arguments, folder.path());
        let line = BufReader::new(served.stderr.take().unwrap())
            .lines()
            .next()
            .unwrap()
            .unwrap();
        let answer = ask(line.strip_prefix("listening on http://").unwrap(), &more);
        assert!(answer.starts_with(status), "{answer}");
        assert_eq!(
            status.ends_with("401"),
            answer.contains("www-authenticate: Basic"),
            "{answer}"
        );
        assert_eq!(
            status.ends_with("200"),
            answer.contains("Nothing has been compacted yet"),
            "{answer}"
        );
        served.kill().unwrap();
        served.wait().unwrap();
    }
}
