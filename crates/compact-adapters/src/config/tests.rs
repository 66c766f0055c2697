use std::collections::BTreeSet;
use std::fs;

use compact_core::message::Role;
use compact_core::policy::{KeepRecent, OnSummaryFailure};
use compact_core::redact::{PiiClass, SEED_PATTERNS, Sinks};
use compact_core::summarize::Style;
use compact_core::window::WindowSource;
use compact_core::wire::Placement;
use expect_test::expect_file;
use tempfile::TempDir;

use super::*;

/// A file called `name` in a folder of its own, and the sources that read it.
fn written(name: &str, text: &str) -> (TempDir, ConfigSources) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, ConfigSources::from_file(path))
}

fn load(text: &str) -> Config {
    let (_folder, sources) = written("compact.yaml", text);
    sources.load().unwrap().config
}

/// The error, with the folder taken out of it.
fn error_in(name: &str, text: &str) -> String {
    let (folder, sources) = written(name, text);
    let error = sources.load().unwrap_err().to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

fn error(text: &str) -> String {
    error_in("compact.yaml", text)
}

fn with_env(text: &str, env: &[(&str, &str)]) -> Result<LoadedConfig, ConfigError> {
    let (_folder, mut sources) = written("compact.yaml", text);
    sources.env = env
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    sources.load()
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let config = ConfigSources::default().load().unwrap().config;
    assert_eq!(config, Config::default());
    let policy = &config.policy;
    assert_eq!((policy.trigger_pct, policy.hard_cap_buffer), (0.85, 1024));
    assert_eq!(
        (policy.keep_recent_turns, policy.keep_tool_io_pairs),
        (6, 4)
    );
    assert_eq!(policy.roles_never_prune, [Role::System, Role::Developer]);
    assert_eq!(
        (policy.protected_flag.as_str(), policy.strategy),
        ("protected", Style::TaskState)
    );
    assert_eq!(config.telemetry.exporter, ExporterKind::Console);
    assert_eq!(
        (config.storage.adapter, &config.storage.path),
        (StorageAdapter::Fs, &None)
    );
    assert!(config.redaction.enabled);
    assert_eq!(config.redaction.patterns, SEED_PATTERNS);
    assert_eq!(
        config.redaction.pii_deny,
        PiiClass::ALL.into_iter().collect()
    );
    assert_eq!(config.window(None).tokens.0, 128_000);
}

#[test]
fn the_example_loads_and_differs_from_the_defaults_where_it_says_so() {
    let example = load(EXAMPLE);
    let mut expected = Config {
        model: Some("gpt-5-reasoning".into()),
        max_context_tokens: Some(128_000),
        ..Config::default()
    };
    expected.policy.hard_cap_buffer = 1500;
    expected.storage.path = Some("./.compact/archive".into());
    assert_eq!(example, expected);
}

/// The lines of a starter file that are keys, set.
fn uncommented(text: &str) -> String {
    let behind_mark = text.lines().filter_map(|line| line.strip_prefix('#'));
    // Words stand one space behind the mark, keys none or as many as their section indents them.
    let is_key = |line: &&str| !line.starts_with(' ') || line.starts_with("  ");
    let keys = behind_mark.filter(is_key);
    keys.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_starter_file_sets_nothing_and_shows_every_default() {
    let starter = starter_file();
    let (_folder, sources) = written("compact.yaml", &starter);
    let loaded = sources.load().unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let text = FileText::read(&sources.files[0].path).unwrap();
    assert_eq!(file::parse(&text).unwrap().len(), 0);
    let (_folder, sources) = written("compact.yaml", &uncommented(&starter));
    assert_eq!(sources.load().unwrap().config, Config::default());
    let text = FileText::read(&sources.files[0].path).unwrap();
    let lines = file::parse(&text).unwrap();
    let shown: Vec<&str> = lines.iter().map(|line| line.path.as_str()).collect();
    let keys: Vec<&str> = all_fields().iter().map(|f| f.path.as_str()).collect();
    assert_eq!(shown, keys);
}

#[test]
fn the_example_shows_every_key_in_the_order_of_the_reference() {
    let (_folder, sources) = written("compact.yaml", EXAMPLE);
    let text = FileText::read(&sources.files[0].path).unwrap();
    let lines = file::parse(&text).unwrap();
    let shown: Vec<&str> = lines.iter().map(|line| line.path.as_str()).collect();
    let keys: Vec<&str> = all_fields().iter().map(|f| f.path.as_str()).collect();
    assert_eq!(shown, keys);
}

/// Nobody finds an exporter or a store that the example does not name.
#[test]
fn the_example_names_every_choice_beside_its_key() {
    let (_folder, sources) = written("compact.yaml", EXAMPLE);
    let text = FileText::read(&sources.files[0].path).unwrap();
    let lines: Vec<&str> = EXAMPLE.lines().collect();
    for key in file::parse(&text).unwrap() {
        let mut fields = all_fields().iter();
        let field = fields.find(|field| field.path == key.path).unwrap();
        let FieldKind::Choice(choices) = &field.kind else {
            continue;
        };
        let (above, from_key) = lines.split_at(key.number as usize - 1);
        let comment = above.iter().rev();
        let comment = comment.take_while(|line| line.trim_start().starts_with('#'));
        let beside: String = comment.chain(from_key.first()).copied().collect();
        for choice in choices {
            let path = &key.path;
            assert!(
                beside.contains(choice),
                "compact.example.yaml does not name `{choice}` beside {path}"
            );
        }
    }
}

#[test]
fn yaml_and_json_say_the_same() {
    let yaml = load("model: gpt-4o\npolicy:\n  trigger_pct: 0.7\n  roles_never_prune: [system]\n");
    let json = "{\n\t\"model\": \"gpt-4o\",\n\t\"policy\": {\"trigger_pct\": 0.7, \"roles_never_prune\": [\"system\"]}\n}\n";
    let (_folder, sources) = written("compact.json", json);
    assert_eq!(sources.load().unwrap().config, yaml);
    assert_eq!(yaml.policy.roles_never_prune, [Role::System]);
    assert_eq!(yaml.window(None).source, WindowSource::Registry("gpt-4o"));
    assert_eq!(
        yaml.window(Some("gpt-4.1")).source,
        WindowSource::Registry("gpt-4o")
    );
}

#[test]
fn toml_says_the_same_and_names_its_lines() {
    let yaml = load("model: gpt-4o\npolicy:\n  trigger_pct: 0.7\n  roles_never_prune: [system]\n");
    let toml =
        "model = \"gpt-4o\"\n[policy]\ntrigger_pct = 0.7\nroles_never_prune = [\"system\"]\n";
    let (_folder, sources) = written("compact.toml", toml);
    assert_eq!(sources.load().unwrap().config, yaml);
    let wrong = |text| error_in("compact.toml", text);
    assert!(wrong("model = \"a\"\n\n[policy]\ntriger_pct = 0.7\n").contains("compact.toml:4"));
    assert!(wrong("model = \"a\"\n[policy\n").contains("compact.toml:2 is not valid TOML"));
    assert!(wrong("max_context_tokens = inf\n").contains("max_context_tokens"));
}

#[test]
fn a_model_for_summaries_is_used_or_refused() {
    let old = "[ai]\nsummarizer_model = \"claude-sonnet-4-5\"\n";
    let alone = format!("profile = \"hard-reset\"\n{old}");
    let found = error_in("settings.toml", &alone);
    assert!(found.contains("set summarizer.kind too"), "{found}");
    let (_folder, sources) = written(
        "settings.toml",
        &format!("profile = \"hard-reset\"\n[summarizer]\nkind = \"anthropic\"\n{old}"),
    );
    let built = sources.load().unwrap().config.summarizer.build().unwrap();
    assert_eq!(built.model.as_deref(), Some("claude-sonnet-4-5"));
}

#[test]
fn a_trigger_in_per_cent_is_refused() {
    let found = error_in("compact.yaml", "policy: {trigger_pct: 85}\n");
    assert!(
        found.contains("a share of the window such as 0.85"),
        "{found}"
    );
}

#[test]
fn empty_files_and_sections_change_nothing() {
    for text in [
        "",
        "\n",
        "# nothing\n",
        "policy:\n",
        "policy:\nstorage:\n  archive:\n",
        "{}",
    ] {
        assert_eq!(load(text), Config::default(), "{text:?}");
    }
}

#[test]
fn variables_change_single_keys() {
    let file = "policy:\n  trigger_pct: 0.7\n  keep_recent_turns: 9\n";
    let env = [
        ("COMPACT_POLICY_TRIGGER_PCT", "0.8"),
        ("COMPACT_STORAGE_PATH", "/data"),
        ("COMPACT_ROLES_NEVER_PRUNE", "system, tool"),
        ("COMPACT_REDACTION_PATTERNS", r#"["a,b"]"#),
        ("COMPACT_REDACTION_ENABLED", "off"),
        ("COMPACT_MAX_CONTEXT_TOKENS", "200_000"),
        ("COMPACT_STRATEGY", "brief"),
        ("HOME", "/root"),
    ];
    let config = with_env(file, &env).unwrap().config;
    assert_eq!(config.policy.trigger_pct, 0.8);
    assert_eq!(config.policy.keep_recent_turns, 9);
    assert_eq!(config.policy.roles_never_prune, [Role::System, Role::Tool]);
    assert_eq!(config.policy.strategy, Style::Brief);
    assert_eq!(config.storage.path, Some("/data".into()));
    assert_eq!(config.redaction.patterns, ["a,b"]);
    assert!(!config.redaction.enabled);
    assert_eq!(config.max_context_tokens, Some(200_000));
}

#[test]
fn short_variables_work_and_bad_ones_are_named() {
    let pct = |name| {
        with_env("", &[(name, "0.8")])
            .unwrap()
            .config
            .policy
            .trigger_pct
    };
    assert_eq!(
        (
            pct("COMPACT_TRIGGER_PCT"),
            pct("COMPACT_POLICY_TRIGGER_PCT")
        ),
        (0.8, 0.8)
    );
    let error = |name, text| with_env("", &[(name, text)]).unwrap_err().to_string();
    assert_eq!(
        error("COMPACT_TRIGGER_PCT", "high"),
        "policy.trigger_pct in COMPACT_TRIGGER_PCT: expected a number, found 'high'"
    );
    assert_eq!(
        error("COMPACT_TRIGGER_PCT", "-1"),
        "policy.trigger_pct in COMPACT_TRIGGER_PCT: must be a share of the window such as 0.85, greater than 0 and at most 2 (above 1.0 means never), found -1.0"
    );
    let warnings = with_env(
        "",
        &[("COMPACT_TRIGER_PCT", "0.8"), ("COMPACT_CONFIG", "x")],
    )
    .unwrap()
    .warnings;
    assert_eq!(
        warnings,
        ["unknown variable COMPACT_TRIGER_PCT is ignored, did you mean COMPACT_TRIGGER_PCT?"]
    );
    let key = [
        ("COMPACT_STORAGE_ARCHIVE_KEY_ENV", "COMPACT_KEY"),
        ("COMPACT_KEY", "0f"),
    ];
    assert_eq!(with_env("", &key).unwrap().warnings, Vec::<String>::new());
}

#[test]
fn an_empty_variable_unsets_an_optional_key() {
    let config = with_env("model: x\n", &[("COMPACT_MODEL", "")])
        .unwrap()
        .config;
    assert_eq!(config.model, None);
}

#[test]
fn the_later_source_wins_and_is_named() {
    let (folder, mut sources) = written(
        "compact.yaml",
        "profile: hard-reset\nmodel: a\npolicy:\n  keep_recent_turns: 3\n",
    );
    sources.env = vec![
        ("COMPACT_MODEL".into(), "b".into()),
        ("COMPACT_PRUNE".into(), "fifo".into()),
    ];
    let sources = sources.with_flags([
        ConfigFlag::new("--model", "model", "c"),
        ConfigFlag::new("--window", "max_context_tokens", 9_000),
    ]);
    let loaded = sources.load().unwrap();
    let shown = |path: &str| {
        let found = loaded.values.iter().find(|v| v.path == path).unwrap();
        let origin = found
            .origin
            .to_string()
            .replace(&format!("{}/", folder.path().display()), "");
        format!("{} ({origin})", found.value)
    };
    assert_eq!(shown("model"), "\"c\" (--model)");
    assert_eq!(shown("max_context_tokens"), "9000 (--window)");
    assert_eq!(shown("policy.prune"), "\"fifo\" (COMPACT_PRUNE)");
    assert_eq!(shown("policy.keep_recent_turns"), "3 (compact.yaml:4)");
    assert_eq!(shown("policy.trigger_pct"), "0.8 (profile hard-reset)");
    assert_eq!(shown("policy.hard_cap_buffer"), "1024 (default)");
    assert_eq!(loaded.values.len(), all_fields().len());
    let file = LoadedFile {
        path: sources.files[0].path.clone(),
        role: FileRole::Named,
        trusted: true,
        ignored: Vec::new(),
    };
    assert_eq!(loaded.files, [file]);
}

#[test]
fn a_profile_sets_values_that_a_file_may_change() {
    let config = load("policy:\n  placement: user_message\nprofile: hard-reset\n");
    assert_eq!(config.policy.trigger_pct, 0.8);
    assert!(!config.policy.trigger_inclusive);
    assert_eq!(config.policy.placement, Placement::UserMessage);
    assert_eq!(config.policy.keep_recent, KeepRecent::None);
    assert_eq!(config.policy.on_summary_failure, OnSummaryFailure::Fail);
}

#[test]
fn unknown_keys_are_errors_with_the_likely_name() {
    for (text, message) in [
        (
            "model: x\npolicy:\n  trigger_pc: 0.8\n",
            "unknown field 'policy.trigger_pc' in compact.yaml, did you mean 'trigger_pct'? (compact.yaml:3)",
        ),
        (
            "modle: x\n",
            "unknown field 'modle' in compact.yaml, did you mean 'model'? (compact.yaml:1)",
        ),
        (
            "polcy:\n  trigger_pct: 0.8\n",
            "unknown field 'polcy' in compact.yaml, did you mean 'policy'? (compact.yaml:1)",
        ),
        (
            "trigger_pct: 0.8\n",
            "unknown field 'trigger_pct' in compact.yaml, did you mean 'policy.trigger_pct'? (compact.yaml:1)",
        ),
        (
            "redaction:\n  sinks:\n    archiv: true\n",
            "unknown field 'redaction.sinks.archiv' in compact.yaml, did you mean 'archive'? (compact.yaml:3)",
        ),
        (
            "zebra: 1\n",
            "unknown field 'zebra' in compact.yaml (compact.yaml:1)",
        ),
    ] {
        assert_eq!(error(text), message);
    }
}

#[test]
fn wrong_values_are_named_with_what_was_expected() {
    for (text, message) in [
        (
            "policy:\n  trigger_pct: high\n",
            "policy.trigger_pct in compact.yaml: expected a number, found 'high' (compact.yaml:2)",
        ),
        (
            "policy:\n  trigger_pct: true\n",
            "policy.trigger_pct in compact.yaml: expected a number, found true (compact.yaml:2)",
        ),
        (
            "policy:\n  trigger_pct:\n",
            "policy.trigger_pct in compact.yaml: expected a number, found nothing (compact.yaml:2)",
        ),
        (
            "policy:\n  keep_recent_turns: -1\n",
            "policy.keep_recent_turns in compact.yaml: expected a whole number, found -1 (compact.yaml:2)",
        ),
        (
            "policy:\n  keep_recent_turns: 1.5\n",
            "policy.keep_recent_turns in compact.yaml: expected a whole number, found 1.5 (compact.yaml:2)",
        ),
        (
            "policy: 5\n",
            "policy in compact.yaml: expected a section of keys, found 5 (compact.yaml:1)",
        ),
        (
            "model: [a]\n",
            "model in compact.yaml: expected text, found the list [\"a\"] (compact.yaml:1)",
        ),
        (
            "profile: rollin\n",
            "profile in compact.yaml: expected one of rolling, hard-reset, checkpoint-restart, checkpoint-restart-delta, native-archive, found 'rollin' (compact.yaml:1)",
        ),
        (
            "telemetry:\n  exporter: oltp\n",
            "telemetry.exporter in compact.yaml: expected one of console, otlp, custom, none, found 'oltp' (compact.yaml:2)",
        ),
        (
            "redaction:\n  patterns: x\n",
            "redaction.patterns in compact.yaml: expected a list of texts, found 'x' (compact.yaml:2)",
        ),
        (
            "- a\n",
            "compact.yaml holds no keys: write `key: value` lines",
        ),
    ] {
        assert_eq!(error(text), message);
    }
}

#[test]
fn values_out_of_range_are_named() {
    for (text, message) in [
        (
            "policy: {trigger_pct: -0.5}",
            "policy.trigger_pct in compact.yaml: must be a share of the window such as 0.85, greater than 0 and at most 2 (above 1.0 means never), found -0.5 (compact.yaml:1)",
        ),
        (
            "policy: {soft_pct: 0.9}",
            "policy.soft_pct in compact.yaml: must be greater than 0 and at most policy.trigger_pct, found 0.9 (compact.yaml:1)",
        ),
        (
            "max_context_tokens: 0",
            "max_context_tokens in compact.yaml: must be at least 1, found 0 (compact.yaml:1)",
        ),
        (
            "max_context_tokens: 1000
policy: {hard_cap_buffer: 1000}",
            "policy.hard_cap_buffer in compact.yaml: must be smaller than max_context_tokens, found 1000 (compact.yaml:2)",
        ),
        (
            "storage: {adapter: none}",
            "storage.adapter in compact.yaml: an archive is required: choose a store, or set storage.archive.required to false, found 'none' (compact.yaml:1)",
        ),
        (
            "redaction: {patterns: ['(']}",
            "redaction.patterns[0]: the pattern `(` cannot be used: unclosed group",
        ),
    ] {
        let found = error(text);
        assert!(found.lines().any(|line| line == message), "{found}");
    }
    assert!(
        error("policy: {protected_patterns: ['(']}")
            .starts_with("policy.protected_patterns: '(' is not a regular expression")
    );
    assert_eq!(
        load("max_context_tokens: 1000").policy.hard_cap_buffer,
        1024
    );
    assert_eq!(
        load("storage: {adapter: none, archive: {required: false}}")
            .storage
            .adapter,
        StorageAdapter::None
    );
}

#[test]
fn every_problem_is_reported() {
    let problems = error("modle: x\npolicy:\n  trigger_pct: high\n");
    assert_eq!(problems.lines().count(), 2, "{problems}");
}

#[test]
fn a_ratio_above_one_means_never() {
    assert_eq!(load("policy: {trigger_pct: 1.1}").policy.trigger_pct, 1.1);
}

#[test]
fn removed_keys_are_unknown_in_their_profile() {
    for key in ["context_restart_threshold", "context_limit"] {
        let found = error_in("mala.yaml", &format!("profile: native-archive\n{key}: 1\n"));
        assert_eq!(
            found,
            format!("Unknown field '{key}' in mala.yaml (mala.yaml:2)")
        );
    }
}

#[test]
fn a_file_without_the_removed_keys_is_in_order() {
    let (_folder, sources) = written("mala.yaml", "profile: native-archive\n");
    let loaded = sources.load().unwrap();
    assert_eq!(loaded.config.policy, Profile::NativeArchive.policy());
    assert_eq!(loaded.warnings, [""; 0]);
}

#[test]
fn deprecated_keys_are_accepted_with_a_warning() {
    let (_folder, sources) = written(
        "compact.yaml",
        "profile: hard-reset\nprotected_turns: 2\ncooldown_seconds: 60\n",
    );
    let loaded = sources.load().unwrap();
    assert_eq!(loaded.config.policy, Profile::HardReset.policy());
    assert_eq!(
        loaded.warnings,
        [
            "'protected_turns' in compact.yaml is deprecated in profile hard-reset and has no effect",
            "'cooldown_seconds' in compact.yaml is deprecated in profile hard-reset and has no effect",
        ]
    );
    assert!(error("cooldown_seconds: 60\n").starts_with("unknown field 'cooldown_seconds'"));
}

#[test]
fn the_sections_of_old_files_are_read() {
    let (_folder, sources) = written(
        "compact.yaml",
        "profile: hard-reset\ncontext:\n  enabled: true\n  compaction_threshold: 0.7\n  \
         protected_turns: 2\n  cooldown_seconds: 60\n",
    );
    let loaded = sources.load().unwrap();
    assert_eq!(loaded.config.policy.trigger_pct, 0.7);
    assert_eq!(loaded.warnings.len(), 2);
}

#[test]
fn the_default_threshold_is_four_fifths() {
    assert_eq!(load("profile: hard-reset\n").policy.trigger_pct, 0.80);
}

#[test]
fn a_session_that_is_not_enabled_never_triggers() {
    let off = load("profile: hard-reset\nenabled: false\n");
    assert_eq!(off.policy.trigger_pct, 1.1);
    let env = [("COMPACT_PROFILE", "hard-reset"), ("COMPACT_ENABLED", "no")];
    assert_eq!(with_env("", &env).unwrap().config.policy.trigger_pct, 1.1);
    assert_eq!(
        error("profile: hard-reset\nenabled: maybe\n"),
        "enabled in compact.yaml: expected true or false, found 'maybe' (compact.yaml:2)"
    );
    assert!(error("enabled: false\n").starts_with("unknown field 'enabled'"));
}

#[test]
fn vt_session_dir_is_where_transcripts_go_unless_our_own_name_says_otherwise() {
    let transcripts =
        |text: &str, env: &[(&str, &str)]| with_env(text, env).unwrap().config.storage.transcripts;
    assert_eq!(transcripts("", &[]), None);
    let theirs = ("VT_SESSION_DIR", "/their/sessions");
    let ours = ("COMPACT_STORAGE_TRANSCRIPTS", "/our/sessions");
    let file = "storage:\n  transcripts: /file/sessions\n";
    assert_eq!(transcripts("", &[theirs]), Some("/their/sessions".into()));
    assert_eq!(transcripts(file, &[theirs]), Some("/their/sessions".into()));
    for env in [[ours, theirs], [theirs, ours]] {
        assert_eq!(transcripts(file, &env), Some("/our/sessions".into()));
    }
    assert_eq!(
        transcripts(file, &[("VT_SESSION_DIR", "")]),
        Some("/file/sessions".into())
    );
    let loaded = with_env("", &[theirs]).unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn old_names_mean_the_trigger_in_their_profile() {
    let hard_reset = load("profile: hard-reset\ncompaction_threshold: 0.6\n");
    assert_eq!(hard_reset.policy.trigger_pct, 0.6);
    let restart = load(
        "profile: checkpoint-restart\ncontext_restart_threshold: 0.95\ncontext_limit: 150000\n",
    );
    assert_eq!(
        (restart.policy.trigger_pct, restart.max_context_tokens),
        (0.95, Some(150_000))
    );
    let found = error("profile: checkpoint-restart\ncontext_restart_threshold: soon\n");
    assert_eq!(
        found,
        "context_restart_threshold in compact.yaml: expected a number, found 'soon' (compact.yaml:2)"
    );
    let profile = [
        ("COMPACT_PROFILE", "hard-reset"),
        ("COMPACT_COMPACTION_THRESHOLD", "0.5"),
    ];
    assert_eq!(
        with_env("", &profile).unwrap().config.policy.trigger_pct,
        0.5
    );
}

#[test]
fn broken_files_are_named_with_the_line() {
    let found = error("model: x\npolicy: [1, 2\nfoo: }\n");
    assert!(
        found.starts_with("compact.yaml:") && found.contains("is not valid YAML or JSON"),
        "{found}"
    );
    let found = error("model: x\nmodel: y\n");
    assert!(
        found.starts_with("compact.yaml:2 is not valid YAML or JSON"),
        "{found}"
    );
    let missing = ConfigSources::from_file("no/such/file.yaml");
    assert!(
        missing
            .load()
            .unwrap_err()
            .to_string()
            .starts_with("no/such/file.yaml cannot be read")
    );
}

#[test]
fn a_folder_is_searched_for_yaml_before_json() {
    let folder = tempfile::tempdir().unwrap();
    let found = || {
        let mut sources = ConfigSources::default();
        sources.search_folder(folder.path(), "compact", FileRole::Project);
        let files = sources.files.into_iter();
        let names = files.map(|f| f.path.strip_prefix(folder.path()).unwrap().to_owned());
        (names.collect::<Vec<_>>(), sources.notes.len())
    };
    assert_eq!(found(), (Vec::new(), 0));
    let names = ["compact.json", "compact.yml", "compact.yaml"];
    for (others, name) in names.into_iter().enumerate() {
        fs::write(folder.path().join(name), "").unwrap();
        assert_eq!(found(), (vec![name.into()], others));
    }
}

#[test]
fn a_file_that_is_asked_for_is_taken_as_it_is() {
    let sources = ConfigSources::discover(Some("conf/mine.yaml".into()));
    let named = ConfigFile {
        path: "conf/mine.yaml".into(),
        role: FileRole::Named,
    };
    assert_eq!(sources.files.last(), Some(&named));
    assert!(!sources.env.is_empty());
}

#[test]
fn sinks_are_set_one_by_one() {
    let config = load("redaction: {sinks: {archive: true}, pii_deny: [email]}");
    assert_eq!(
        config.redaction.sinks,
        Sinks {
            archive: true,
            ..Sinks::default()
        }
    );
    assert_eq!(config.redaction.pii_deny, BTreeSet::from([PiiClass::Email]));
}

#[test]
fn every_key_is_described_and_has_a_variable_of_its_own() {
    let mut names = BTreeSet::new();
    for field in all_fields() {
        assert!(!field.description.is_empty(), "{}", field.path);
        assert!(
            field.kind.accepts(&field.default) || field.default.is_null() && field.optional,
            "{}",
            field.path
        );
        for name in layer::variable_names(field) {
            assert!(names.insert(name.clone()), "{name}");
        }
    }
}

#[test]
fn the_reference_is_up_to_date() {
    println!("where docs/config.md differs, `cargo xtask docs` writes it again");
    expect_file!["../../../../docs/config.md"].assert_eq(&reference_markdown());
}

#[test]
fn the_schema_knows_every_section() {
    let schema = Config::schema();
    let sections: Vec<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        sections,
        [
            "model",
            "max_context_tokens",
            "profile",
            "estimator",
            "policy",
            "summarizer",
            "embeddings",
            "telemetry",
            "storage",
            "redaction",
            "gateway"
        ]
    );
    assert_eq!(schema["additionalProperties"], false);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_loader_panic(text in "[a-z:\\-\\[\\]{}\"'\n #&*!|>%@`0-9.]{0,200}") {
        let (_folder, sources) = written("compact.yaml", &text);
        let _ = sources.load();
    }
}

#[test]
fn no_model_is_asked_unless_one_is_chosen() {
    let config = with_env("", &[]).unwrap().config;
    assert!(config.summarizer.build().is_none() && config.embeddings.build().is_none());
    let file = "summarizer:\n  kind: openai\n  url: http://localhost:9/v1\n  model: small\n";
    let built = with_env(file, &[])
        .unwrap()
        .config
        .summarizer
        .build()
        .unwrap();
    assert_eq!(built.model.as_deref(), Some("small"));
    let old = "profile: hard-reset\nsummarizer_model: other\nsummarizer: {kind: openai}\n";
    let old = with_env(old, &[]).unwrap();
    assert_eq!(old.config.summarizer.model.as_deref(), Some("other"));
}

#[test]
fn a_model_that_cannot_be_reached_is_told_by_its_key() {
    let error = |file| with_env(file, &[]).unwrap_err().to_string();
    assert!(error("summarizer:\n  url: ftp://x\n").starts_with("summarizer.url in "));
    assert!(error("summarizer:\n  timeout_seconds: 0\n").contains("must be greater than 0"));
    assert!(error("embeddings:\n  kind: openai\n").contains("needs embeddings.model"));
    assert!(error("summarizer:\n  kind: oracle\n").contains("summarizer.kind"));
    assert!(error("summarizer:\n  api_key: sk-1\n").contains("unknown field"));
}

#[test]
fn a_fallback_profile_rules_where_nobody_names_one() {
    let sources = ConfigSources::default().with_fallback_profile(Profile::CheckpointRestart);
    let config = sources.load().unwrap().config;
    assert_eq!(config.profile, Profile::CheckpointRestart);
    assert_eq!(config.policy, Profile::CheckpointRestart.policy());
    let flag = ConfigFlag::new("--profile", "profile", Profile::HardReset.as_str());
    let named = sources.with_flags([flag]).load().unwrap().config;
    assert_eq!(named.profile, Profile::HardReset);
    assert_eq!(named.policy, Profile::HardReset.policy());
}
