//! A real model on a real server with a real limit.
//!
//! `cargo xtask test` installs the server and names its Python in `COMPACT_WIRE_PYTHON`. Without
//! that the test has nothing to ask and says so, except on a build server, where nothing may be left
//! out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test reports by panicking"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use compact_adapters::llm::{Endpoint, HttpSummarizer, RequestMode, SummarizerWire};
use compact_core::event::{Event, EventKind};
use compact_core::message::{Entry, Role};
use compact_core::policy::Policy;
use compact_core::redact::Redactor;
use compact_core::token::{Chars4, Tokens};
use compact_core::wire::WireRules;
use compact_runtime::manager::Preflight;
use compact_runtime::port::archive::MemoryArchive;
use compact_runtime::port::catalog::MemoryCatalog;
use compact_runtime::port::event::EventSink;
use compact_runtime::{Manager, Session};
use serde_json::{Value, json};

const WINDOW: u64 = 1024;
/// How many times its window the conversation is to be.
const TIMES: u64 = 3;
/// Compactions after which the model is no longer waited for to write a summary that is whole.
const PATIENCE: u64 = 8;

/// The server, which ends when its input does.
struct Server {
    process: Child,
    url: String,
    http: reqwest::Client,
}

impl Server {
    fn start(python: &str) -> Server {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/wire/serve.py");
        let mut process = Command::new(python)
            .args([script, &WINDOW.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        lines.read_line(&mut address).unwrap();
        assert!(!address.is_empty(), "the server did not start");
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The server hangs up on a connection that waits for some seconds, which it does while a
        // summary is written: each request has its own.
        let http = reqwest::Client::builder().pool_max_idle_per_host(0);
        Server {
            process,
            url: format!("http://{}/v1", address.trim()),
            http: http.build().unwrap(),
        }
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.http.post(format!("{}/{path}", self.url)).json(body);
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap())
    }

    /// What a text costs this model.
    async fn tokens(&self, text: &str) -> u64 {
        let body = json!({"content": text});
        let (_, answer) = self.post("../tokenize", &body).await;
        answer["tokens"].as_array().unwrap().len() as u64
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Default)]
struct Fallbacks(Mutex<Vec<String>>);

impl EventSink for Fallbacks {
    fn emit(&self, event: &Event) {
        if let EventKind::Fallback { reason, .. } = &event.kind {
            self.0.lock().unwrap().push(reason.clone());
        }
    }
}

fn manager(server: &Server) -> (Manager, Arc<Fallbacks>) {
    let fallbacks = Arc::new(Fallbacks::default());
    let summarizer = HttpSummarizer {
        wire: SummarizerWire::Chat,
        endpoint: Endpoint::new(&server.url, None),
        model: Some("smollm2".to_owned()),
        // One small request for each summary: a thread reads some hundred tokens in a second.
        window: Some(Tokens(WINDOW * 3 / 4)),
        manner: RequestMode::Standalone,
        most_requests: 1,
    };
    // The model's tokens are smaller than four characters, so the trigger comes early.
    let policy = Policy {
        trigger_pct: 0.7,
        hard_cap_buffer: 128,
        keep_recent_turns: 2,
        ..Policy::default()
    };
    let redactor = Arc::new(Redactor::new(&Default::default()).unwrap());
    let catalog = Arc::new(MemoryCatalog::default());
    let manager = Manager::new(catalog, Arc::new(Chars4), redactor, Tokens(WINDOW))
        .with_archive(Some(Arc::new(MemoryArchive::default())))
        .with_sink(fallbacks.clone())
        .with_policy(policy)
        .with_summarizer(Some(Arc::new(summarizer)));
    (manager, fallbacks)
}

/// What somebody says about the `i`-th of many machines.
fn report(i: u64) -> Entry {
    let (port, build, disk) = (8000 + i, 500 + i * 7, 40 + i * 3 % 50);
    let text = format!(
        "The machine node-{i} in rack R{rack} answers on port {port} again. Build {build} runs there since \
         this morning, and the disk is {disk} percent full. Ticket OPS-{ticket} asks us to move its database \
         to node-{next} before Friday, and Mira wants the old backups of node-{i} kept until the audit is over. \
         The backup job wrote /var/backups/node-{i}.tar and failed once with error E{error:04}; the second run \
         went well. The load was low, the network quiet, and nobody else has complained about it since. Please \
         note this down, and tell me in one sentence what is to be done about node-{i}.",
        rack = i % 4,
        ticket = 100 + i,
        next = i + 1,
        error = i * 13,
    );
    Entry::from_text(format!("u{i}"), Role::User, text)
}

fn messages(made: &Preflight, session: &Session) -> Vec<Value> {
    let entries = made.view.shown_entries(session.state().history());
    let message = |e: &Entry| json!({"role": e.role.as_str(), "content": e.plain_text()});
    entries.iter().map(message).collect()
}

#[tokio::test]
async fn a_long_conversation_with_a_real_model_never_overflows() {
    let Ok(python) = std::env::var("COMPACT_WIRE_PYTHON") else {
        let ci = std::env::var("CI").unwrap_or_default();
        assert!(
            matches!(&*ci, "" | "0" | "false"),
            "COMPACT_WIRE_PYTHON is not set: run `cargo xtask test`"
        );
        eprintln!("no model was asked: `cargo xtask test` sets COMPACT_WIRE_PYTHON");
        return;
    };
    let started = Instant::now();
    let server = Server::start(&python);
    let (manager, fallbacks) = manager(&server);
    let session = Session::new(Arc::new(manager), "nodes", &WireRules::LENIENT);
    let mut session = session.without_background();
    let system = "You are an operator's assistant. Answer in one short sentence.";
    session
        .append([Entry::from_text("s", Role::System, system)])
        .unwrap();

    let (mut said, mut compactions, mut told, mut after) = (0, 0u64, 0, None);
    let mut cached = Vec::new();
    for i in 0.. {
        session.append([report(i)]).unwrap();
        let made = session.preflight().await.unwrap();
        if let Some(receipt) = &made.receipt {
            compactions += 1;
            told += u64::from(
                receipt
                    .prose
                    .as_ref()
                    .is_some_and(|p| p.prose_tokens > Tokens(0)),
            );
        }
        let body = json!({"model": "smollm2", "messages": messages(&made, &session), "max_tokens": 12,
            "temperature": 0, "seed": 7, "cache_prompt": true});
        let (status, answer) = server.post("chat/completions", &body).await;
        assert_eq!(status, 200, "call {i}: {answer}");
        let usage = |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let prompt = usage("/usage/prompt_tokens");
        // The call after the first one with a new view finds that view in the server's cache.
        if let (Some(frozen), None) = (after.take(), &made.receipt) {
            cached.push((usage("/usage/prompt_tokens_details/cached_tokens"), frozen));
        }
        after = made.receipt.is_some().then_some(prompt);
        let reply = answer["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_default();
        session
            .append([Entry::from_text(
                format!("a{i}"),
                Role::Assistant,
                format!("Noted. {reply}"),
            )])
            .unwrap();
        said += server.tokens(&report(i).plain_text()).await + server.tokens(reply).await;
        // So small a model often talks until it is cut off, and then the ledger speaks; how often
        // differs from processor to processor, and with every word of the view.
        let heard = told >= 1 || compactions >= PATIENCE;
        if said >= TIMES * WINDOW && compactions >= 3 && heard {
            break;
        }
        assert!(
            started.elapsed() < Duration::from_secs(900),
            "call {i}: {said} tokens were said, {told} of {compactions} summaries have the model's words"
        );
    }
    eprintln!(
        "{said} tokens in a window of {WINDOW}: {compactions} compactions, {told} with the model's words, \
         cached/frozen {cached:?}, fallbacks {:?}, {:.0} s",
        fallbacks.0.lock().unwrap(),
        started.elapsed().as_secs_f64()
    );
    assert!(!cached.is_empty());
    for (cached, frozen) in cached {
        assert!(
            cached * 10 >= frozen * 9,
            "{cached} of {frozen} tokens came from the cache"
        );
    }
}
