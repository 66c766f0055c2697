use std::fs;

use compact_core::message::Role;
use compact_core::profile::Profile;
use compact_core::redact::{RedactionBoundary, RedactionRules, SEED_PATTERNS};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::{
    Config, ConfigFile, ConfigSources, FieldKind, FileRole, IgnoredKey, LoadedConfig, LoadedFile,
    all_fields,
};
use super::*;

/// A user's file and a project's, which nobody trusts.
fn sources(user: &str, project: &str) -> (TempDir, ConfigSources) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, role| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        ConfigFile { path, role }
    };
    let files = vec![
        file("config.yaml", user, FileRole::User),
        file("compact.yaml", project, FileRole::Project),
    ];
    let sources = ConfigSources {
        files,
        ..ConfigSources::default()
    };
    (folder, sources)
}

fn load(user: &str, project: &str) -> LoadedConfig {
    let (_folder, sources) = sources(user, project);
    sources.load().unwrap()
}

/// What the project's file set in vain.
fn ignored(user: &str, project: &str) -> Vec<IgnoredKey> {
    load(user, project).files.remove(1).ignored
}

fn key(key: &str, line: u64, reason: &str) -> IgnoredKey {
    IgnoredKey {
        key: key.to_owned(),
        line,
        reason: reason.to_owned(),
    }
}

/// Values of a kind that are not the default, tame and wild.
fn values(kind: &FieldKind) -> Vec<Value> {
    match kind {
        FieldKind::Bool => vec![json!(true), json!(false)],
        FieldKind::Integer => [0, 1, 7, 600, 5_000, 90_000_000].map(Value::from).to_vec(),
        FieldKind::Number => [0.01, 0.5, 0.99, 1.5, 600.0].map(Value::from).to_vec(),
        FieldKind::Text => ["x", "http://127.0.0.1:9", "AWS_SECRET_ACCESS_KEY", "/tmp/x"]
            .map(Value::from)
            .to_vec(),
        FieldKind::Choice(names) => names.iter().map(|name| json!(name)).collect(),
        FieldKind::List(item) => values(item).into_iter().map(|v| json!([v])).collect(),
    }
}

/// Every key of the schema: what is not on the list changes nothing, whatever its value, and is named.
#[test]
fn a_key_is_refused_unless_the_list_allows_it() {
    let mut refused = Vec::new();
    for field in all_fields()
        .iter()
        .filter(|f| find_allowance(&f.path).is_none())
    {
        for value in values(&field.kind).into_iter().chain([Value::Null]) {
            let project = format!("{}: {value}\n", field.path);
            let loaded = load("", &project);
            assert_eq!(loaded.config, Config::default(), "{project}");
            assert_eq!(loaded.files[1].ignored, [key(&field.path, 1, "")]);
            let (path, text) = (&field.path, &loaded.warnings[0]);
            assert!(
                text.contains("compact.yaml: a project may not set"),
                "{text}"
            );
            assert!(
                text.contains(&format!("{path} (line 1); read the file")),
                "{text}"
            );
        }
        refused.push(field.path.as_str());
    }
    // Nothing that names a place, a secret or a receiver is ever on the list.
    let never = ["summarizer.", "embeddings.", "telemetry.", "storage."];
    for field in all_fields() {
        let is_never = never.iter().any(|section| field.path.starts_with(section));
        assert!(
            !is_never || refused.contains(&&*field.path),
            "{}",
            field.path
        );
    }
    for path in [
        "profile",
        "estimator",
        "redaction.allow",
        "redaction.sinks.archive",
    ] {
        assert!(refused.contains(&path), "{path}");
    }
}

#[test]
fn every_row_of_the_list_is_a_key_and_stands_there_once() {
    for (i, (path, allowance)) in ALLOWED.iter().enumerate() {
        let field = all_fields().iter().find(|field| field.path == *path);
        let field = field.unwrap_or_else(|| panic!("{path} is no key"));
        let is_list = matches!(field.kind, FieldKind::List(_));
        let adds = matches!(allowance, Added | AddedOf(_) | AddedRare);
        assert_eq!(is_list, adds, "{path}");
        assert!(ALLOWED.iter().skip(i + 1).all(|(other, _)| other != path));
    }
}

#[test]
fn a_project_sets_what_it_may() {
    let loaded = load(
        "model: a\npolicy: {protected_patterns: [mine]}\nredaction: {patterns: [own]}\n",
        "model: b\nmax_context_tokens: 9000\npolicy:\n  trigger_pct: 0.5\n  strategy: brief\n  \
         keep_recent_turns: 2\n  hard_cap_buffer: 2000\n  prune: fifo\n  \
         protected_patterns: [theirs, mine]\n  roles_never_prune: [user]\n\
         redaction:\n  patterns: [more]\n",
    );
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let (config, policy) = (&loaded.config, &loaded.config.policy);
    assert_eq!(config.model.as_deref(), Some("b"));
    assert_eq!((policy.trigger_pct, policy.keep_recent_turns), (0.5, 2));
    assert_eq!(policy.protected_patterns, ["mine", "theirs"]);
    assert_eq!(
        policy.roles_never_prune,
        [Role::System, Role::Developer, Role::User]
    );
    assert_eq!(config.redaction.patterns, ["own"]);
    assert_eq!(config.redaction.foreign_patterns, ["more"]);
    let shown = loaded
        .values
        .iter()
        .find(|v| v.path == "redaction.patterns");
    assert_eq!(shown.unwrap().value, json!(["own", "more"]));
    let origin = loaded.values.iter().find(|v| v.path == "model").unwrap();
    assert_eq!(origin.origin.layer(), "project");
}

#[test]
fn a_project_replaces_nothing_of_the_user_s_file() {
    let user = "redaction:\n  sinks: {archive: true}\n  patterns: [own]\n\
                storage: {path: /mine}\npolicy: {trigger_pct: 0.6}\n";
    let alone = load(user, "");
    let both = load(user, "model: b\nredaction: {patterns: []}\n");
    let expected = Config {
        model: Some("b".to_owned()),
        ..alone.config
    };
    assert_eq!(both.config, expected);
}

#[test]
fn values_that_loosen_are_refused_with_what_is_accepted() {
    let user =
        "max_context_tokens: 50000\npolicy: {trigger_tokens_left: 500, protected_patterns: [a]}\n";
    for (project, refused) in [
        (
            "max_context_tokens: 60000",
            key("max_context_tokens", 1, "only below 50000"),
        ),
        (
            "policy: {trigger_pct: 1.1}",
            key("policy.trigger_pct", 1, "at most 1.0"),
        ),
        (
            "policy: {trigger_tokens_left: 10}",
            key("policy.trigger_tokens_left", 1, "only above 500"),
        ),
        (
            "policy: {trigger_tokens_left: null}",
            key("policy.trigger_tokens_left", 1, "it may not be unset"),
        ),
        (
            "policy: {hard_cap_buffer: 0}",
            key("policy.hard_cap_buffer", 1, "only above 1024"),
        ),
        (
            "policy: {prune: semantic}",
            key("policy.prune", 1, "only fifo, recency, stage_aware"),
        ),
        (
            "redaction: {enabled: false}",
            key("redaction.enabled", 1, "only true"),
        ),
        (
            "redaction: {sinks: {export: false}}",
            key("redaction.sinks.export", 1, "only true"),
        ),
        (
            "redaction: {patterns: ['\\w{200}']}",
            key("redaction.patterns", 1, "a pattern is too large"),
        ),
        ("model: null", key("model", 1, "it may not be unset")),
        ("policy: null", key("policy", 1, "it may not be unset")),
        ("redaction:", key("redaction", 1, "it may not be unset")),
    ] {
        assert_eq!(ignored(user, project), [refused], "{project}");
    }
    let long = format!("redaction: {{patterns: ['{}']}}", "x".repeat(257));
    assert_eq!(
        ignored("", &long),
        [key("redaction.patterns", 1, "at most 256 characters")]
    );
    let many: Vec<String> = (0..33).map(|n| format!("p{n}")).collect();
    let many = format!("policy: {{protected_patterns: [{}]}}", many.join(", "));
    assert_eq!(
        ignored("", &many),
        [key("policy.protected_patterns", 1, "at most 32 more")]
    );
    let flood: Vec<String> = (0..15_000).map(|n| format!("p{n}")).collect();
    let flood = format!("policy: {{protected_patterns: [{}]}}", flood.join(", "));
    assert_eq!(
        ignored("", &flood),
        [key("policy.protected_patterns", 1, "at most 32 more")]
    );
}

/// A stranger's file may ask for less room and more that stays, but not so that nothing fits.
#[test]
fn a_project_leaves_room_to_work_in() {
    let rare = "a pattern matches everyday words";
    let roles = "only system, developer, user";
    for (path, wanted, reason) in [
        ("max_context_tokens", "1", "at least 8192"),
        ("policy.trigger_pct", "0.00001", "at least 0.1"),
        ("policy.soft_pct", "0.01", "at least 0.1"),
        ("policy.target_of_trigger", "0.00001", "at least 0.1"),
        ("policy.hard_cap_buffer", "4097", "at most 4096"),
        ("policy.trigger_tokens_left", "1000000", "at most 4096"),
        ("policy.roles_never_prune", "[user, assistant]", roles),
        ("policy.roles_never_prune", "[tool]", roles),
        ("policy.protected_patterns", "['.*']", rare),
        ("policy.protected_patterns", "[fine, '(?s).']", rare),
        ("policy.protected_patterns", "['']", rare),
        ("policy.protected_patterns", "['[aeiou]']", rare),
        ("policy.protected_patterns", "['\\b\\w+\\b']", rare),
        ("policy.protected_patterns", "['(?i)the|and']", rare),
    ] {
        let project = format!("{path}: {wanted}");
        assert_eq!(ignored("", &project), [key(path, 1, reason)], "{project}");
    }
    // What the user has set is no request of the project's.
    let user = "max_context_tokens: 4000\npolicy: {roles_never_prune: [tool], protected_patterns: ['.*']}\n";
    for project in [
        "max_context_tokens: 4000",
        "policy: {roles_never_prune: [tool, user]}",
        "policy: {protected_patterns: ['.*', ADR-\\d+]}",
        "policy: {hard_cap_buffer: 3000, target_of_trigger: 0.3}",
    ] {
        assert_eq!(ignored(user, project), [], "{project}");
    }
}

#[test]
fn a_window_is_only_ever_made_smaller() {
    let window =
        |user: &str, project: &str, model| load(user, project).config.window(model).tokens.0;
    let small = "max_context_tokens: 50000";
    assert_eq!(window("", small, Some("gpt-4o")), 50_000);
    let large = "max_context_tokens: 5000000";
    assert_eq!(window("", large, Some("gpt-4o")), 128_000);
    assert_eq!(window("", large, None), 128_000);
    assert_eq!(window("max_context_tokens: 60000", large, None), 60_000);
    assert_eq!(
        window("max_context_tokens: 60000", small, Some("gpt-4")),
        50_000
    );
    let (_folder, mut sources) = sources("", small);
    sources.env = vec![("COMPACT_MAX_CONTEXT_TOKENS".into(), "900000".into())];
    assert_eq!(
        sources.load().unwrap().config.window(None).tokens.0,
        900_000
    );
}

#[test]
fn a_profile_and_its_keys_are_not_for_projects() {
    let project =
        "profile: hard-reset\nenabled: false\ncompaction_threshold: 0.9\nsummarizer_model: x\n";
    let elsewhere = "not a key of profile rolling";
    assert_eq!(
        ignored("", project),
        [
            key("profile", 1, ""),
            key("enabled", 2, elsewhere),
            key("compaction_threshold", 3, elsewhere),
            key("summarizer_model", 4, elsewhere),
        ]
    );
    let loaded = load("profile: hard-reset\n", project);
    assert_eq!(loaded.config.policy.trigger_pct, 0.9);
    assert_eq!(
        loaded.files[1].ignored,
        [
            key("profile", 1, ""),
            key("enabled", 2, "at most 1.0"),
            key("summarizer_model", 4, ""),
        ]
    );
    assert_eq!(loaded.config.profile, Profile::HardReset);
    let context = load("profile: hard-reset\n", "context: {summarizer_model: x}\n");
    assert_eq!(context.config.summarizer.model, None);
}

/// Whatever YAML offers to say a thing in another way.
#[test]
fn no_spelling_gets_past_the_list() {
    for project in [
        "storage.path: /tmp/x",
        "\"storage\": {\"path\": \"/tmp/x\"}",
        "base: &b {path: /tmp/x}\nstorage: *b\n",
        "base: &b {path: /tmp/x}\nstorage:\n  <<: *b\n",
        "storage:\n  <<: {path: /tmp/x}\n",
        "<<: {storage: {path: /tmp/x}}\n",
        "? storage\n: ? path\n  : /tmp/x\n",
        "!!map {storage: !!map {path: !!str /tmp/x}}",
        "storage: {path: a}\nstorage: {path: /tmp/x}\n",
        "---\nmodel: a\n---\nstorage: {path: /tmp/x}\n",
        "\u{feff}storage: {path: /tmp/x}\n",
    ] {
        let (_folder, sources) = sources("", project);
        let Ok(loaded) = sources.load() else {
            continue;
        };
        assert_eq!(
            loaded.config.storage,
            Config::default().storage,
            "{project}"
        );
        assert_eq!(loaded.files[1].ignored.len(), 1, "{project}");
    }
}

#[test]
fn lines_of_aliases_and_merges_are_named() {
    let merged = "storage:\n  <<: {path: /tmp/x}\n  catalog: sqlite:x\n";
    let lines: Vec<(String, u64)> = ignored("", merged)
        .into_iter()
        .map(|key| (key.key, key.line))
        .collect();
    assert_eq!(
        lines,
        [
            ("storage.catalog".to_owned(), 3),
            ("storage.path".to_owned(), 2)
        ]
    );
}

#[test]
fn files_that_are_none_end_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("compact.yaml");
    let error = |path: &std::path::Path| {
        let file = ConfigFile {
            path: path.to_owned(),
            role: FileRole::Project,
        };
        let sources = ConfigSources {
            files: vec![file],
            ..ConfigSources::default()
        };
        let error = sources.load().unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        cause.unwrap_or_else(|| error.to_string())
    };
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_eq!(error(&path), "it is larger than 1 MiB");
    fs::write(&path, b"model: \xff\xfe").unwrap();
    assert!(error(&path).contains("invalid utf-8"), "{}", error(&path));
    for deep in [
        "[".repeat(500_000),
        "a: {".repeat(200_000),
        "- ".repeat(500_000),
    ] {
        fs::write(&path, deep).unwrap();
        assert!(error(&path).contains("is not valid YAML or JSON"));
    }
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (this, last) in ('b'..='j').zip('a'..) {
        let refs = format!("*{last}, ").repeat(9);
        bomb.push_str(&format!("{this}: &{this} [{refs}]\n"));
    }
    let keys: String = (0..15_000).map(|n| format!("k{n}: 1\n")).collect();
    for many in [bomb, keys] {
        fs::write(&path, many).unwrap();
        assert!(error(&path).contains("is not valid YAML or JSON"));
    }
    let keys: String = (0..9_000).map(|n| format!("k{n}: 1\n")).collect();
    fs::write(&path, keys).unwrap();
    assert_eq!(error(&path).lines().count(), 50);
    if cfg!(target_os = "linux") {
        assert_eq!(error("/dev/zero".as_ref()), "it is not a regular file");
        fs::remove_file(&path).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let secret = elsewhere.path().join("secret");
        fs::write(&secret, "hunter2: swordfish\n").unwrap();
        for target in ["/dev/zero".as_ref(), secret.as_path()] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let told = error(&path);
            assert!(told.contains("leads out of its folder"), "{told}");
            fs::remove_file(&path).unwrap();
        }
        fs::write(folder.path().join("shared.yaml"), "model: gpt-5\n").unwrap();
        std::os::unix::fs::symlink("shared.yaml", &path).unwrap();
        assert!(crate::config::FileText::read_own(&path).is_ok());
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        assert_eq!(error(&path), "it is not a regular file");
        let mut found = ConfigSources::default();
        found.search_folder(folder.path(), "compact", FileRole::Project);
        assert_eq!((found.files.len(), found.notes.len()), (0, 1));
    }
}

#[cfg(unix)]
#[test]
fn a_user_s_file_that_others_may_write_is_limited() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, sources) = sources("storage: {path: /tmp/x}\nmodel: a\n", "");
    let user = folder.path().join("config.yaml");
    assert_eq!(
        sources.load().unwrap().config.storage.path,
        Some("/tmp/x".into())
    );
    fs::set_permissions(&user, fs::Permissions::from_mode(0o666)).unwrap();
    let loaded = sources.load().unwrap();
    assert_eq!(loaded.config.storage.path, None);
    assert_eq!(loaded.config.model.as_deref(), Some("a"));
    let expected = LoadedFile {
        path: user,
        role: FileRole::User,
        trusted: false,
        ignored: vec![key("storage.path", 1, "")],
    };
    assert_eq!(loaded.files[0], expected);
    assert!(
        loaded.warnings[0].contains("other users may write to it"),
        "{}",
        loaded.warnings[0]
    );
}

#[test]
fn a_project_hides_but_does_not_destroy() {
    let user = "redaction: {sinks: {archive: true}, patterns: [own]}\n";
    let project = "redaction: {patterns: ['(?s).+']}\nredaction.patterns: ['(?s).']\n";
    let rules = load(user, project).config.redaction;
    let shown = |boundary| {
        let redactor = rules.redactor(boundary).unwrap();
        let text = "own words, and others";
        redactor.redact(text, &mut Default::default()).into_owned()
    };
    let archived = shown(RedactionBoundary::Archive);
    assert!(
        archived.starts_with("[REDACTED:pattern-1:") && archived.ends_with("] words, and others")
    );
    assert!(!shown(RedactionBoundary::Summary).contains("words"));
    // What somebody says later is the user's again.
    let (_folder, mut sources) = sources(user, project);
    sources.env = vec![("COMPACT_REDACTION_PATTERNS".into(), "mine".into())];
    let rules = sources.load().unwrap().config.redaction;
    assert_eq!(
        (rules.patterns, rules.foreign_patterns),
        (vec!["mine".to_owned()], vec![])
    );
}

#[test]
fn a_number_that_is_too_large_is_named_with_its_line() {
    let (folder, sources) = sources("", "policy:\n  keep_recent_turns: 4294967296\n");
    let error = sources.load().unwrap_err().to_string();
    assert_eq!(
        error.replace(&format!("{}/", folder.path().display()), ""),
        "policy.keep_recent_turns in compact.yaml: invalid value: integer `4294967296`, expected u32, found 4294967296 (compact.yaml:2)"
    );
}

#[test]
fn a_survey_shows_what_a_file_sets_and_what_it_may_not() {
    let (folder, sources) = sources("max_context_tokens: 9000\n", "");
    let text = |content: &str| {
        super::super::FileText::from_written(&folder.path().join("c.yaml"), content.as_bytes())
    };
    let found = sources.review_file(&text(
        "model: a\nstorage: {path: /x}\nmax_context_tokens: 9500\n",
    ));
    let found = found.unwrap();
    let keys: Vec<&str> = found.keys.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["model", "storage.path", "max_context_tokens"]);
    assert_eq!(
        found.ignored,
        [
            key("storage.path", 2, ""),
            key("max_context_tokens", 3, "only below 9000")
        ]
    );
    assert!(sources.review_file(&text("modle: a\n")).is_err());
    assert!(
        sources
            .review_file(&text("storage: {lease_seconds: 0}\n"))
            .is_err()
    );
}

#[test]
fn more_patterns_never_show_what_was_hidden() {
    let text = "password=hunter2hunter2 and sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD";
    let hidden = ["hunter2", "abcdefghijklmnop", "0123456789ABCD"];
    for pattern in [
        "(?P<secret>s)k-proj",
        "password=(?P<secret>h)",
        "password",
        "proj-abcdef",
        "(?P<secret>m)nop",
        ".",
        "(?P<secret>)x",
        "\\[REDACTED",
        "=",
    ] {
        let project = json!({ "redaction": { "patterns": [pattern] } }).to_string();
        let rules: RedactionRules = load("", &project).config.redaction;
        assert_eq!(rules.patterns, SEED_PATTERNS);
        assert_eq!(rules.foreign_patterns, [pattern]);
        let redactor = compact_core::redact::Redactor::new(&rules).unwrap();
        let shown = redactor.redact(text, &mut Default::default()).into_owned();
        for word in hidden {
            assert!(!shown.contains(word), "{pattern}: {shown}");
        }
    }
}
