//! No file of a project whatsoever changes a value that projects may not change.

use compact_adapters::config::{
    Allowance, ConfigFile, ConfigSources, Field, FieldKind, FileRole, LoadedConfig, all_fields,
    find_allowance,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names that only some profiles know, and what else a file may try.
const OTHER_KEYS: [&str; 12] = [
    "enabled",
    "summarizer_model",
    "compaction_threshold",
    "context_restart_threshold",
    "context_limit",
    "protected_turns",
    "policy.summarizer_model",
    "context.enabled",
    "ai.summarizer_model",
    "window_limit",
    "storage",
    "redaction",
];

fn text() -> impl Strategy<Value = Value> {
    let wild = [
        "x",
        "http://127.0.0.1:9/v1",
        "postgres://u@127.0.0.1:9/d",
        "AWS_SECRET_ACCESS_KEY",
        "../../etc",
        "(?s).+",
        "(?P<secret>s)k-",
        "gpt-4o",
        "gemini-2.5-pro",
        "",
    ];
    prop_oneof![
        proptest::sample::select(wild.to_vec()).prop_map(Value::from),
        "[a-z./:]{0,300}".prop_map(Value::from),
    ]
}

/// Values of a kind, in range and out of it.
fn of_kind(kind: &FieldKind) -> BoxedStrategy<Value> {
    match kind {
        FieldKind::Bool => any::<bool>().prop_map(Value::from).boxed(),
        FieldKind::Integer => prop_oneof![0..100u64, 0..5_000_000u64]
            .prop_map(Value::from)
            .boxed(),
        FieldKind::Number => prop_oneof![0.01..1.0f64, -1.0..700.0f64]
            .prop_map(Value::from)
            .boxed(),
        FieldKind::Text => text().boxed(),
        FieldKind::Choice(names) => proptest::sample::select(names.clone())
            .prop_map(Value::from)
            .boxed(),
        FieldKind::List(item) => proptest::collection::vec(of_kind(item), 0..40)
            .prop_map(Value::from)
            .boxed(),
    }
}

/// Mostly a value that the key takes.
fn value(field: &Field) -> BoxedStrategy<Value> {
    prop_oneof![
        20 => of_kind(&field.kind),
        1 => Just(Value::Null),
        1 => text(),
    ]
    .boxed()
}

/// A key with a value: one of the schema, or one that is tried anyway.
fn pair() -> impl Strategy<Value = (String, Value)> {
    let known = proptest::sample::select(all_fields().to_vec())
        .prop_flat_map(|field| (Just(field.path.clone()), value(&field)));
    let other = (
        proptest::sample::select(OTHER_KEYS.to_vec()).prop_map(str::to_owned),
        prop_oneof![
            text(),
            any::<bool>().prop_map(Value::from),
            Just(json!(0.5))
        ],
    );
    prop_oneof![12 => known, 1 => other]
}

/// A file as JSON, in sections or with dotted keys.
fn file(keys: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    (proptest::collection::vec(pair(), keys), any::<bool>()).prop_map(|(pairs, is_flat)| {
        let mut root = Map::new();
        for (path, value) in pairs {
            match is_flat {
                true => drop(root.insert(path, value)),
                false => insert(&mut root, &path, value),
            }
        }
        Value::Object(root).to_string()
    })
}

fn insert(map: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(map.insert(path.to_owned(), value)),
        Some((section, rest)) => {
            let entry = map.entry(section).or_insert_with(|| json!({}));
            if let Value::Object(section) = entry {
                insert(section, rest, value);
            }
        }
    }
}

/// The value that a key ends up with.
fn found<'l>(loaded: &'l LoadedConfig, path: &str) -> &'l Value {
    let mut values = loaded.values.iter();
    &values.find(|value| value.path == path).unwrap().value
}

/// Why the value of a key with a project's file is not one that the project may have chosen.
fn fault(path: &str, before: &Value, after: &Value) -> Option<&'static str> {
    let number = |value: &Value| value.as_f64();
    let is_fine = match find_allowance(path) {
        _ if before == after => true,
        None => false,
        Some(_) if after.is_null() => false,
        Some(Allowance::Any) => true,
        Some(Allowance::Share) => number(after).is_some_and(|share| (0.1..=1.0).contains(&share)),
        Some(Allowance::Smaller) => before.is_null() || number(after) < number(before),
        Some(Allowance::SmallerTo(least)) => {
            after.as_u64() >= Some(least) && (before.is_null() || number(after) < number(before))
        }
        Some(Allowance::LargerTo(most)) => {
            let is_larger = before.is_null() || number(after) > number(before);
            is_larger && after.as_u64().is_some_and(|after| after <= most)
        }
        Some(Allowance::OneOf(names)) => names.iter().any(|name| after == name),
        Some(Allowance::On) => after == true,
        Some(Allowance::Added | Allowance::AddedRare) => {
            let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
            after.starts_with(before)
        }
        Some(Allowance::AddedOf(names)) => {
            let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
            let mut added = after.iter().skip(before.len());
            after.starts_with(before) && added.all(|item| names.iter().any(|name| item == name))
        }
    };
    (!is_fine).then_some("changed by a project")
}

/// Loads the user's file alone and with the project's above it; `None` where one of them is broken.
fn load(user: &str, project: &str) -> Option<(LoadedConfig, LoadedConfig)> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, role| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        ConfigFile { path, role }
    };
    let alone = ConfigSources {
        files: vec![file("config.json", user, FileRole::User)],
        ..ConfigSources::default()
    };
    let mut both = alone.clone();
    both.files
        .push(file("compact.json", project, FileRole::Project));
    Some((alone.load().ok()?, both.load().ok()?))
}

/// How often it is tried.
fn trials() -> u32 {
    let trials = std::env::var("COMPACT_TRIALS").ok();
    trials.and_then(|text| text.parse().ok()).unwrap_or(256)
}

/// Both files are random, over every key of the schema; `COMPACT_TRIALS` says how often.
#[test]
fn no_project_changes_what_it_may_not() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: trials(),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let compared = std::cell::Cell::new(0u32);
    let changed = std::cell::Cell::new(0u32);
    let files = (file(0..4), file(1..12));
    let outcome = runner.run(&files, |(user, project)| {
        let Some((alone, both)) = load(&user, &project) else {
            return Ok(());
        };
        compared.set(compared.get() + 1);
        changed.set(changed.get() + u32::from(alone.config != both.config));
        for field in all_fields() {
            let path = field.path.as_str();
            let (before, after) = (found(&alone, path), found(&both, path));
            let fault = fault(path, before, after);
            prop_assert!(
                fault.is_none(),
                "{path}: {before} became {after}: {fault:?}"
            );
        }
        // What programs use says the same as what `config show` prints.
        prop_assert_eq!(&alone.config.storage, &both.config.storage);
        prop_assert_eq!(&alone.config.summarizer, &both.config.summarizer);
        prop_assert_eq!(&alone.config.embeddings, &both.config.embeddings);
        prop_assert_eq!(&alone.config.telemetry, &both.config.telemetry);
        let (own, rules) = (&alone.config.redaction, &both.config.redaction);
        prop_assert_eq!((&own.allow, &own.patterns), (&rules.allow, &rules.patterns));
        let model = both.config.model.as_deref();
        let window = compact_core::window::Window::for_model(
            alone
                .config
                .max_context_tokens
                .map(compact_core::token::Tokens),
            model,
        );
        prop_assert!(both.config.window(None).tokens <= window.tokens);
        Ok(())
    });
    println!(
        "{} pairs of files, {} of them whole, {} projects changed something",
        trials(),
        compared.get(),
        changed.get()
    );
    outcome.unwrap();
    // Pairs that are never whole would prove nothing.
    assert!(compared.get() >= trials() / 20, "{}", compared.get());
    assert!(changed.get() >= trials() / 100, "{}", changed.get());
}
