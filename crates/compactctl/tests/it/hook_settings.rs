//! `hook install`, `uninstall` and `status`: settings that other people wrote.

use std::fs;

use super::place::Place;

const AGENTS: [(&str, &str); 4] = [
    ("claude-code", "home/.claude/settings.json"),
    ("codex", "home/.codex/hooks.json"),
    ("gemini-cli", "home/.gemini/settings.json"),
    ("opencode", "home/.config/opencode/plugin/compact.js"),
];

fn place_with(file: &str, text: &str) -> Place {
    let place = Place::new();
    let path = place.path(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    place
}

/// Settings as people have them: ours, indented by tabs, on one line, without a newline, empty, behind a byte-order mark.
const SETTINGS: [&str; 7] = [
    "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"PreCompact\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"mine.sh\" }] }\n    ]\n  }\n}\n",
    "{\n\t\"permissions\": {\n\t\t\"allow\": [\"Bash(ls:*)\"]\n\t}\n}\n",
    "{\"a\":1,\"hooks\":{}}",
    "{}",
    "",
    "{\r\n  \"a\": \"\\u00e9\"\r\n}\r\n",
    "\u{feff}{\n  \"a\": 1\n}\n",
];

/// Under the exact key, beside what is there.
#[test]
fn hooks_are_registered_beside_what_is_there() {
    let (agent, file) = AGENTS[0];
    let place = place_with(file, SETTINGS[0]);
    place.run(&["hook", "install", "--agent", agent]).ok();
    let found: serde_json::Value = serde_json::from_slice(&place.read(file)).unwrap();
    assert_eq!(found["model"], "opus");
    assert_eq!(
        found["hooks"]["PreCompact"][0]["hooks"][0]["command"],
        "mine.sh"
    );
    assert_eq!(found["hooks"]["SessionStart"][0]["matcher"], "compact");
    let end = " hook --agent claude-code";
    for (event, nth) in [
        ("PreCompact", 1),
        ("PostCompact", 0),
        ("SessionStart", 0),
        ("UserPromptSubmit", 0),
    ] {
        let command = &found["hooks"][event][nth]["hooks"][0]["command"];
        assert!(
            command.as_str().unwrap().ends_with(end),
            "{event}: {command}"
        );
    }
}

/// Agents run both, so the same would be archived and told twice.
#[test]
fn hooks_for_the_user_and_for_the_project_are_warned_of() {
    let place = Place::new();
    let install = |scope: &str| {
        let arguments = [
            "hook",
            "install",
            "--agent",
            "claude-code",
            "--scope",
            scope,
        ];
        place.run(&arguments).ok().text()
    };
    let told = install("user");
    assert!(!told.contains("warning"), "{told}");
    // There is no PATH here.
    assert!(told.contains("there is no `claude` on the PATH"), "{told}");
    let told = install("project");
    assert!(told.contains("handled twice"), "{told}");
    let status = || {
        place
            .run(&["hook", "status", "--agent", "claude-code"])
            .ok()
    };
    assert!(status().text().contains("handled twice"));
    place
        .run(&["hook", "uninstall", "--agent", "claude-code"])
        .ok();
    assert!(!status().text().contains("warning"));
    fs::write(
        place.path(".claude/settings.json"),
        "{\n  \"a\": 1,\n  b\n}\n",
    )
    .unwrap();
    let told = status().text();
    assert!(
        told.contains("it cannot be read: ") && told.contains("settings.json:3:3"),
        "{told}"
    );
}

#[test]
fn uninstalling_gives_the_same_bytes_back() {
    for (agent, file) in AGENTS {
        for text in SETTINGS {
            if agent == "opencode" {
                continue;
            }
            let place = place_with(file, text);
            place.run(&["hook", "install", "--agent", agent]).ok();
            let with = place.read(file);
            assert_ne!(with, text.as_bytes());
            // Twice is as good as once.
            place.run(&["hook", "install", "--agent", agent]).ok();
            assert_eq!(place.read(file), with);
            place.run(&["hook", "uninstall", "--agent", agent]).ok();
            assert_eq!(
                String::from_utf8(place.read(file)).unwrap(),
                text,
                "{agent}"
            );
        }
        let place = Place::new();
        place.run(&["hook", "install", "--agent", agent]).ok();
        assert!(place.path(file).is_file(), "{agent}");
        place.run(&["hook", "uninstall", "--agent", agent]).ok();
        assert!(!place.path(file).exists(), "{agent}");
    }
}

/// A link is somebody's, whether it leads anywhere or not; what is no file is not waited for.
#[cfg(unix)]
#[test]
fn settings_that_are_no_file_are_left_alone() {
    let place = Place::new();
    fs::create_dir_all(place.path("home/.claude")).unwrap();
    let settings = place.path("home/.claude/settings.json");
    std::os::unix::fs::symlink(place.path("gone/settings.json"), &settings).unwrap();
    for command in ["install", "uninstall"] {
        let run = place.run(&["hook", command, "--agent", "claude-code"]);
        let says = run.failed(2).stderr;
        assert!(says.contains("which is not there"), "{says}");
        assert!(settings.is_symlink());
    }
    fs::remove_file(&settings).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&settings).status();
    assert!(made.unwrap().success());
    for command in ["install", "uninstall", "status"] {
        let run = place.run(&["hook", command, "--agent", "claude-code"]);
        let says = run.text() + &run.stderr;
        assert!(says.contains("not a regular file"), "{command}: {says}");
    }
}

/// A repository's links and files may be anything; a person's own settings may be kept behind a link.
#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link_of_a_project_or_over_a_plugin_of_others() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = Place::new();
    place.write("mine.js", "precious");
    for folder in [
        ".opencode/plugin",
        "home/.config/opencode/plugin",
        "home/.claude",
        "away",
    ] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    let install = |agent: &str, scope: &str| {
        let words = ["hook", "install", "--agent", agent, "--scope", scope];
        place.run(&words)
    };
    let user = place.path("home/.config/opencode/plugin/compact.js");
    symlink(place.path("mine.js"), &user).unwrap();
    install("opencode", "user").failed(2);
    fs::remove_file(&user).unwrap();
    fs::write(&user, "export const Other = 1").unwrap();
    install("opencode", "user").failed(2);
    assert_eq!(fs::read_to_string(&user).unwrap(), "export const Other = 1");
    symlink(
        place.path("mine.js"),
        place.path(".opencode/plugin/compact.js"),
    )
    .unwrap();
    install("opencode", "project").failed(2);
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), place.path(".claude")).unwrap();
    install("claude-code", "project").failed(2);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(place.read("mine.js"), b"precious");

    place.write("away/settings.json", "{}");
    let linked = place.path("home/.claude/settings.json");
    symlink(place.path("away/settings.json"), &linked).unwrap();
    install("claude-code", "user").ok();
    assert!(linked.is_symlink());
    let text = String::from_utf8(place.read("away/settings.json")).unwrap();
    assert!(text.contains("hook --agent claude-code"), "{text}");

    let open = std::process::Command::new("sh")
        .args([
            "-c",
            "umask 000; exec \"$0\" hook install --agent gemini-cli",
        ])
        .arg(env!("CARGO_BIN_EXE_compactctl"))
        .env("HOME", place.path("home"))
        .env("COMPACT_STORAGE_PATH", place.store())
        .output()
        .unwrap();
    assert!(open.status.success(), "{open:?}");
    let mode = fs::metadata(place.path("home/.gemini"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o022, 0, "{mode:o}");
}

/// What was changed since stays changed.
#[test]
fn uninstalling_keeps_what_was_written_since() {
    let (agent, file) = AGENTS[0];
    let place = place_with(file, SETTINGS[0]);
    place.run(&["hook", "install", "--agent", agent]).ok();
    let grown = String::from_utf8(place.read(file))
        .unwrap()
        .replace("opus", "sonnet");
    fs::write(place.path(file), grown).unwrap();
    place.run(&["hook", "uninstall", "--agent", agent]).ok();
    let found = String::from_utf8(place.read(file)).unwrap();
    assert_eq!(found, SETTINGS[0].replace("opus", "sonnet"));
}

#[test]
fn comments_stay_where_the_agent_allows_them() {
    let text = "{\n  // keep me\n  \"a\": 1,\n}\n";
    let place = place_with("home/.gemini/settings.json", text);
    place
        .run(&["hook", "install", "--agent", "gemini-cli"])
        .ok();
    let found = String::from_utf8(place.read("home/.gemini/settings.json")).unwrap();
    assert!(
        found.starts_with("{\n  // keep me\n  \"a\": 1,\n"),
        "{found}"
    );
    assert!(
        found.contains("PreCompress") && found.contains("BeforeAgent"),
        "{found}"
    );
}

#[test]
fn a_broken_file_is_refused_with_its_line_and_left_alone() {
    for (agent, file) in &AGENTS[..3] {
        for (text, told) in [
            ("{\n  \"a\": 1,\n  \"b\" 2\n}\n", ":3:"),
            ("{\n  \"hooks\": [\n", ":2:"),
            ("{ \"hooks\": 3 }", "hooks is not an object"),
            ("[]", "the file is not an object"),
        ] {
            for act in ["install", "uninstall"] {
                if act == "uninstall" && !told.starts_with(':') {
                    continue;
                }
                let place = place_with(file, text);
                let run = place.run(&["hook", act, "--agent", agent]).failed(2);
                assert!(run.stderr.contains(told), "{agent}: {}", run.stderr);
                assert_eq!(place.read(file), text.as_bytes());
            }
        }
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    let (agent, file) = AGENTS[0];
    let place = place_with(file, SETTINGS[0]);
    let run = place
        .run(&["hook", "install", "--agent", agent, "--dry-run"])
        .ok();
    assert!(run.text().contains("would be installed") && run.text().contains("UserPromptSubmit"));
    assert_eq!(place.read(file), SETTINGS[0].as_bytes());
    assert!(!place.store().exists());
}

#[test]
fn a_project_calls_the_command_by_its_name() {
    let place = Place::new();
    place
        .run(&[
            "hook",
            "install",
            "--agent",
            "claude-code",
            "--scope",
            "project",
        ])
        .ok();
    let text = String::from_utf8(place.read(".claude/settings.json")).unwrap();
    assert!(
        text.contains("\"compactctl hook --agent claude-code\""),
        "{text}"
    );
    place
        .run(&[
            "hook",
            "uninstall",
            "--agent",
            "claude-code",
            "--scope",
            "project",
        ])
        .ok();
    assert!(!place.path(".claude").exists());
}

/// Whether the agent compacts by itself is looked up and said.
#[test]
fn status_says_whether_the_agent_compacts_by_itself() {
    for (file, text, agent) in [
        (
            "home/.claude/settings.json",
            "{\"autoCompactEnabled\": false}",
            "claude-code",
        ),
        (
            "home/.claude.json",
            "{\"autoCompactEnabled\": false}",
            "claude-code",
        ),
        (
            "home/.gemini/settings.json",
            "{\"model\": {\"compressionThreshold\": 1.0}}",
            "gemini-cli",
        ),
        (
            "home/.config/opencode/opencode.json",
            "{\"compaction\": {\"auto\": false}}",
            "opencode",
        ),
    ] {
        let on = Place::new().json(&["hook", "status", "--agent", agent]);
        assert_eq!(on["agents"][0]["auto_compaction"], "on", "{agent}");
        let place = place_with(file, text);
        let off = place.json(&["hook", "status", "--agent", agent]);
        assert_eq!(off["agents"][0]["auto_compaction"], "off", "{agent} {file}");
        let run = place.run(&["hook", "install", "--agent", agent]).ok();
        assert!(
            run.text().contains("auto-compaction is off"),
            "{}",
            run.text()
        );
    }
    let place = Place::new();
    let mut command = place.command(&["hook", "status", "--agent", "claude-code"]);
    let run = command.env("DISABLE_AUTO_COMPACT", "1").output().unwrap();
    assert!(String::from_utf8_lossy(&run.stdout).contains("off (DISABLE_AUTO_COMPACT is set)"));
}

#[test]
fn status_tells_installed_from_outdated() {
    let (agent, file) = AGENTS[0];
    let place = Place::new();
    let state = |place: &Place| {
        let status = place.json(&["hook", "status", "--agent", agent]);
        status["agents"][0]["places"][0]["state"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(state(&place), "not installed");
    place.run(&["hook", "install", "--agent", agent]).ok();
    assert_eq!(state(&place), "installed");
    let text = String::from_utf8(place.read(file)).unwrap();
    fs::write(
        place.path(file),
        text.replace("hook --agent", "old hook --agent"),
    )
    .unwrap();
    assert_eq!(state(&place), "outdated");
    place.run(&["hook", "install", "--agent", agent]).ok();
    assert_eq!(state(&place), "installed");
    fs::write(place.path(file), "{").unwrap();
    assert_eq!(state(&place), "unreadable");
}

const VIEW_PLUGIN: [&str; 3] = [
    "home/.claude/skills/compact-view/hooks/view.ts",
    "home/.claude/skills/compact-view/.claude-plugin/plugin.json",
    "home/.claude/skills/compact-view/hooks/hooks.json",
];

const REPLACE: [&str; 5] = [
    "hook",
    "install",
    "--agent",
    "claude-code",
    "--replace-summary",
];

/// Whatever the settings were, they are as before, and nothing of the plugin is left.
#[test]
fn a_plugin_that_replaces_summaries_is_written_and_leaves_no_trace() {
    for before in SETTINGS {
        let (_, file) = AGENTS[0];
        let place = place_with(file, before);
        let told = place.run(&REPLACE).ok().text();
        assert!(told.contains("early access"), "{told}");
        let found = String::from_utf8(place.read(file)).unwrap();
        let found: serde_json::Value =
            serde_json::from_str(found.trim_start_matches('\u{feff}')).unwrap();
        assert_eq!(found["env"]["CLAUDE_CODE_ENABLE_FUNCTION_HOOKS"], "1");
        for file in VIEW_PLUGIN {
            assert!(!place.read(file).is_empty(), "{file}");
        }
        let again = place.json(&REPLACE);
        assert_eq!(
            (&again["changed"], &again["plugin"]["changed"]),
            (&false.into(), &false.into())
        );
        place
            .run(&["hook", "uninstall", "--agent", "claude-code"])
            .ok();
        assert_eq!(String::from_utf8(place.read(file)).unwrap(), before);
        assert!(!place.path("home/.claude/skills").exists());
    }
}

/// Settings that changed since lose only what is ours; a switch that was there before stays.
#[test]
fn the_switch_of_somebody_else_stays() {
    let switch = r#""env": {"CLAUDE_CODE_ENABLE_FUNCTION_HOOKS": "1"}"#;
    for (before, is_left) in [(format!("{{{switch}}}"), true), ("{}".to_owned(), false)] {
        let (_, file) = AGENTS[0];
        let place = place_with(file, &before);
        place.run(&REPLACE).ok();
        let text = String::from_utf8(place.read(file)).unwrap();
        place.write(file, text.replacen('{', r#"{"model": "opus","#, 1));
        place
            .run(&["hook", "uninstall", "--agent", "claude-code"])
            .ok();
        let left: serde_json::Value = serde_json::from_slice(&place.read(file)).unwrap();
        let mut expected = serde_json::json!({"model": "opus"});
        if is_left {
            expected["env"] = serde_json::json!({"CLAUDE_CODE_ENABLE_FUNCTION_HOOKS": "1"});
        }
        assert_eq!(left, expected);
    }
}

#[test]
fn the_status_tells_of_the_plugin_and_why_it_does_not_run() {
    let place = Place::new();
    let plugin =
        || place.json(&["hook", "status", "--agent", "claude-code"])["agents"][0]["plugin"].clone();
    let folder = place.path("home/.claude/skills/compact-view");
    let state = |state: &str, hindrance: serde_json::Value| serde_json::json!({"folder": folder, "state": state, "hindrance": hindrance});
    assert_eq!(plugin(), state("not installed", serde_json::Value::Null));
    place.run(&REPLACE).ok();
    assert_eq!(plugin(), state("installed", serde_json::Value::Null));
    let settings = place.path(AGENTS[0].1);
    place.write(AGENTS[0].1, "{}");
    let missing = format!(
        "env.CLAUDE_CODE_ENABLE_FUNCTION_HOOKS is missing in {}",
        settings.display()
    );
    assert_eq!(plugin(), state("installed", missing.into()));
}

#[test]
fn a_plugin_takes_no_place_of_another_and_is_for_one_agent_and_one_person() {
    let place = place_with(VIEW_PLUGIN[0], "// mine\n");
    place.run(&REPLACE).failed(2);
    assert_eq!(place.read(VIEW_PLUGIN[0]), b"// mine\n");
    assert!(!place.path(AGENTS[0].1).exists(), "nothing was written");
    place
        .run(&[&REPLACE[..], &["--scope", "project"]].concat())
        .failed(2);
    place
        .run(&["hook", "install", "--agent", "codex", "--replace-summary"])
        .failed(2);
}
