//! Secrets of many kinds, planted in a transcript, must cross no boundary; ordinary text must.

#![allow(clippy::panic, reason = "a test reports by panicking")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use compact_adapters::archive::ObjectArchive;
use compact_adapters::catalog::SqliteCatalog;
use compact_adapters::recall::SqliteIndex;
use compact_core::event::Event;
use compact_core::message::EntryKind;
use compact_core::redact::{RedactionBoundary, RedactionCounts, RedactionRules};
use compact_core::token::{Chars4, Tokens};
use compact_formats::TranscriptScope;
use compact_runtime::host::{CharCount, HookMemory, find_loss, must_keep, still_known};
use compact_runtime::manager::{ArchiveMode, CompactionRequest, RequestOutcome};
use compact_runtime::port::event::{EventSink, RedactingSink};
use compact_runtime::port::summarizer::{ScriptedAnswer, ScriptedSummarizer};
use compact_runtime::recall::RecallQuery;
use compact_runtime::{Manager, Recall};
use serde_json::{Value, json};

#[path = "../../../compact-core/src/redact/testdata/planted.rs"]
#[allow(dead_code, reason = "what is harmless is tested beside the rules")]
mod planted;

use planted::{PlantedSecret, planted_secrets};

/// Every kind twice.
fn secrets() -> Vec<PlantedSecret> {
    [1, 2].into_iter().flat_map(planted_secrets).collect()
}

/// A body of a chat in which every secret stands once, in a place of its own kind.
fn transcript(secrets: &[PlantedSecret]) -> Bytes {
    let mut messages = vec![
        json!({"role": "system", "content": "You keep services running."}),
        json!({"role": "user", "content": "Rotate every credential of the zebra service."}),
    ];
    for (n, secret) in secrets.iter().enumerate() {
        let planted = &secret.text;
        match n % 5 {
            0 => messages.push(json!({"role": "user", "content":
                format!("For step {n} use {planted} and nothing else.")})),
            1 => messages.push(json!({"role": "assistant", "content":
                format!("Step {n} found this:\n\n```sh\n{planted}\n```\n")})),
            _ => messages.extend(exchange(n, planted)),
        }
    }
    messages.push(json!({"role": "user", "content": "Now restart the zebra service."}));
    let body = json!({"model": "gpt-5", "messages": messages});
    Bytes::from(serde_json::to_vec(&body).unwrap())
}

/// A call whose arguments or result hold the secret: as text, in JSON, or in JSON within JSON.
fn exchange(n: usize, planted: &str) -> [Value; 2] {
    let inner = json!({"content": planted}).to_string();
    let (arguments, result) = match n % 5 {
        2 => (
            json!({"path": ".env"}),
            format!("{n}\tHOST=zebra\n{n}\t{planted}\n"),
        ),
        3 => (json!({"text": planted}), "written".to_owned()),
        _ => (json!({"body": inner}), json!({"echo": inner}).to_string()),
    };
    [
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("c{n}"),
            "type": "function", "function": {"name": "run", "arguments": arguments.to_string()}}]}),
        json!({"role": "tool", "tool_call_id": format!("c{n}"), "content": result}),
    ]
}

/// The kinds whose value, or a line of it, a text shows.
fn shown<'s>(secrets: &'s [PlantedSecret], text: &str) -> Vec<&'s str> {
    let is_shown = |value: &str| {
        let lines = value.lines().filter(|line| !line.starts_with("-----"));
        lines.into_iter().any(|line| text.contains(line))
    };
    let seen = secrets.iter().filter(|secret| is_shown(&secret.value));
    seen.map(|secret| secret.kind.as_str()).collect()
}

#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl EventSink for Heard {
    fn emit(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

struct Scene {
    manager: Manager,
    recall: Recall,
    heard: Arc<Heard>,
    asked: Arc<ScriptedSummarizer>,
    folder: tempfile::TempDir,
}

fn scene(rules: &RedactionRules, answer: &str) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let heard = Arc::new(Heard::default());
    let asked = Arc::new(ScriptedSummarizer::new([ScriptedAnswer::Says(
        answer.to_owned(),
    )]));
    let archive = Arc::new(ObjectArchive::open(folder.path()).unwrap());
    let catalog = Arc::new(SqliteCatalog::open(&folder.path().join("catalog.db")).unwrap());
    let at = |boundary| Arc::new(rules.redactor(boundary).unwrap());
    Scene {
        recall: Recall {
            archive: archive.clone(),
            catalog: catalog.clone(),
            index: Arc::new(SqliteIndex::open(&folder.path().join("recall.db")).unwrap()),
            redactor: at(RedactionBoundary::Summary),
        },
        manager: Manager::new(
            catalog,
            Arc::new(Chars4),
            at(RedactionBoundary::Summary),
            Tokens(40_000),
        )
        .with_archive(Some(archive))
        .with_archive_mode(match rules.sinks.archive {
            true => ArchiveMode::Redacted(at(RedactionBoundary::Archive)),
            false => ArchiveMode::Exact,
        })
        .with_sink(Arc::new(RedactingSink::new(
            at(RedactionBoundary::Export),
            Arc::clone(&heard) as Arc<dyn EventSink>,
        )))
        .with_summarizer(Some(asked.clone())),
        heard,
        asked,
        folder,
    }
}

impl Scene {
    /// Compacts a body; the summary that its view shows.
    async fn compact(&self, body: &Bytes, note: &str) -> String {
        let parsed = compact_formats::parse(body.clone(), None, TranscriptScope::Live).unwrap();
        let request = CompactionRequest::from_transcript(&parsed, body.clone())
            .with_session("zebra")
            .with_budget(Tokens(4_000))
            .with_note(note);
        let RequestOutcome::Done(commit) = self.manager.compact(&request).await.unwrap() else {
            panic!("nothing was compacted");
        };
        let entries = commit.compaction.view.shown_entries(&parsed.conversation);
        let summary = entries
            .iter()
            .find(|e| matches!(e.meta.kind, EntryKind::Summary { .. }));
        summary.unwrap().plain_text()
    }

    /// Everything that a model was asked.
    fn prompts(&self) -> String {
        let asked = self.asked.asked_questions();
        let body = |q: &compact_runtime::port::summarizer::ModelQuestion| {
            let conversation = q.conversation.clone().unwrap_or_default();
            format!(
                "{}\n{}\n{}",
                q.system,
                q.prompt,
                String::from_utf8_lossy(&conversation)
            )
        };
        asked.iter().map(body).collect::<Vec<_>>().join("\n")
    }

    fn events(&self) -> String {
        serde_json::to_string(&*self.heard.0.lock().unwrap()).unwrap()
    }

    /// Everything archived, unpacked.
    async fn archived(&self) -> String {
        let archive = self.manager.archive().unwrap();
        let mut all = String::new();
        for pack in archive.list().await.unwrap() {
            let bytes = archive.get(&pack).await.unwrap();
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
        all
    }

    /// The bytes of a database.
    fn database(&self, name: &str) -> String {
        let read = |file: PathBuf| std::fs::read(file).unwrap_or_default();
        let folder = self.folder.path();
        let bytes = [
            read(folder.join(name)),
            read(folder.join(format!("{name}-wal"))),
        ]
        .concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn found(&self, words: &str) -> String {
        let query = RecallQuery {
            text: words,
            limit: 50,
            ..RecallQuery::default()
        };
        let answer = self.recall.search(&query).await.unwrap();
        assert!(!answer.hits.is_empty());
        serde_json::to_string(&answer).unwrap()
    }
}

#[tokio::test]
async fn no_planted_secret_crosses_a_boundary() {
    let secrets = secrets();
    let kinds: std::collections::BTreeSet<_> = secrets.iter().map(|s| &s.kind).collect();
    assert!(kinds.len() >= 160 && secrets.len() >= 2 * kinds.len());
    // A model that repeats what it should never have seen, and a person who says too much.
    let said: Vec<&str> = secrets
        .iter()
        .step_by(10)
        .map(|s| s.text.as_str())
        .collect();
    let answer = format!("The zebra service was rotated with {}.", said.join(" and "));
    let body = transcript(&secrets);
    let mut rules = RedactionRules::default();
    rules.sinks.archive = true;
    let scene = scene(&rules, &answer);
    let summary = scene.compact(&body, &format!("keep {}", said[0])).await;
    scene.recall.update_index().await.unwrap();
    let found = [
        scene.found("zebra HOST").await,
        scene.found("key step use").await,
    ]
    .concat();
    assert_eq!(
        shown(&secrets, std::str::from_utf8(&body).unwrap()).len(),
        secrets.len()
    );
    for (place, text) in [
        ("a prompt", scene.prompts()),
        ("the summary", summary),
        ("an event", scene.events()),
        ("the archive", scene.archived().await),
        ("the catalog", scene.database("catalog.db")),
        ("the recall index", scene.database("recall.db")),
        ("what recall gives", found),
    ] {
        assert!(text.len() > 100, "{place} is empty");
        assert_eq!(shown(&secrets, &text), Vec::<&str>::new(), "{place}");
    }
}

/// The archive is raw unless it is asked not to be; nothing else changes with that.
#[tokio::test]
async fn a_raw_archive_leaks_through_nothing_that_is_built_on_it() {
    let secrets = secrets();
    let body = transcript(&secrets);
    let scene = scene(&RedactionRules::default(), "Everything was rotated.");
    let summary = scene.compact(&body, "keep the names").await;
    scene.recall.update_index().await.unwrap();
    assert_eq!(
        shown(&secrets, &scene.archived().await).len(),
        secrets.len()
    );
    let found = scene.found("step use nothing else").await;
    for text in [
        summary,
        scene.prompts(),
        scene.events(),
        found,
        scene.database("recall.db"),
    ] {
        assert_eq!(shown(&secrets, &text), Vec::<&str>::new());
    }
}

/// What hooks tell an agent, and what is kept of its session between two calls: the ledger of the raw
/// transcript, drawn without a manager.
#[test]
fn no_planted_secret_is_told_by_a_hook() {
    let secrets = secrets();
    let redactor = RedactionRules::default()
        .redactor(RedactionBoundary::Summary)
        .unwrap();
    let mut memory = HookMemory::default();
    memory.read_more(&transcript(&secrets), &redactor).unwrap();
    let kept = serde_json::to_string(&memory).unwrap();
    assert_eq!(shown(&secrets, &kept), Vec::<&str>::new(), "what is kept");
    for most in [1_000, 6_000, 60_000].map(CharCount) {
        let texts = [
            must_keep(&memory.ledger, most),
            still_known(&memory.ledger, "/archive", most),
            find_loss(&memory.ledger, "", "/archive", most).text,
        ];
        for text in texts.map(Option::unwrap) {
            let told = redactor
                .redact(&text, &mut RedactionCounts::new())
                .into_owned();
            assert!(told.len() > 100, "nothing is told");
            assert_eq!(shown(&secrets, &told), Vec::<&str>::new(), "{most:?}");
        }
    }
}

/// Lines that people and programs wrote here: sources, documents, lists of versions.
fn ordinary_lines() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<PathBuf> = [
        "Cargo.lock",
        "ARCHITECTURE.md",
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "compact.example.yaml",
    ]
    .map(|name| root.join(name))
    .to_vec();
    for folder in ["crates", "docs", "examples", "python", "xtask"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    let texts = files
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok());
    let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| !line.trim().is_empty()).collect()
}

/// Source files below a folder, but for those that are about secrets.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let name = path.strip_prefix(&root).unwrap_or(&path);
        let name = format!("/{}", name.to_string_lossy());
        let about_secrets = ["redact", "secret", "tests", "/target", "/llm/"];
        if about_secrets.iter().any(|word| name.contains(word)) && !path.ends_with("it") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if [".rs", ".md", ".toml", ".py"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            files.push(path);
        }
    }
}

#[test]
fn at_most_one_ordinary_line_in_a_thousand_is_redacted() {
    let lines = ordinary_lines();
    assert!(lines.len() >= 10_000, "{} lines", lines.len());
    // Personal data is guessed with less certainty, and only where text leaves the process.
    for (boundary, most) in [
        (RedactionBoundary::Summary, 0.001),
        (RedactionBoundary::Export, 0.01),
    ] {
        let redactor = RedactionRules::default().redactor(boundary).unwrap();
        let changed = lines.iter().filter_map(|line| {
            let out = redactor.redact(line, &mut RedactionCounts::new());
            (out != line.as_str()).then(|| out.into_owned())
        });
        let changed: Vec<String> = changed.collect();
        let share = changed.len() as f64 / lines.len() as f64;
        let sample: Vec<&String> = changed.iter().take(20).collect();
        assert!(
            share <= most,
            "{boundary:?}: {share:.4} of {}: {sample:#?}",
            lines.len()
        );
        println!(
            "{boundary:?}: {} of {} ordinary lines",
            changed.len(),
            lines.len()
        );
    }
}
