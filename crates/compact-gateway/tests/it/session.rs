//! Sessions: found, kept apart, compacted when they must be, and their views frozen.

use compact::Compact;
use serde_json::{Value, json};

use crate::scene::{Scene, SentRequest, chat_answer};

const WINDOW: u64 = 4_000;

/// What opens a summary.
const SUMMARY: &str = "<COMPACT-SUMMARY";

fn turn(n: usize, topic: &str) -> [Value; 2] {
    [
        json!({"role": "user", "content": format!("Measure run {n} of {topic}.")}),
        json!({"role": "assistant", "content": format!("Run {n} of {topic} took {n} ms and wrote out/{topic}_{n}.csv. ").repeat(12)}),
    ]
}

fn history(turns: usize, topic: &str) -> Vec<Value> {
    let mut messages: Vec<Value> = (0..turns).flat_map(|n| turn(n, topic)).collect();
    messages.push(turn(turns, topic)[0].clone());
    messages
}

fn body(messages: &[Value]) -> String {
    json!({"model": "gpt-5", "messages": messages}).to_string()
}

/// The messages of a request as their own bytes.
fn message_bytes(request: &SentRequest) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Body {
        messages: Vec<Box<serde_json::value::RawValue>>,
    }
    let body: Body = serde_json::from_slice(&request.body).unwrap();
    body.messages
        .iter()
        .map(|message| message.get().to_owned())
        .collect()
}

async fn run_session(scene: &Scene, turns: usize, topic: &str, headers: &[(&str, &str)]) {
    for n in 0..turns {
        let answer = scene
            .post("/v1/chat/completions", headers, body(&history(n, topic)))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[tokio::test]
async fn a_long_task_stays_within_the_window_and_its_view_is_frozen() {
    let scene = Scene::new(WINDOW, chat_answer).await;
    run_session(&scene, 70, "parser", &[("x-compact-session", "long")]).await;
    let sent = scene.sent();
    let mut views = 0;
    for (n, request) in sent.iter().enumerate() {
        assert!(
            request.body.len() / 4 < WINDOW as usize,
            "request {n} is {} bytes",
            request.body.len()
        );
        let original = body(&history(n, "parser"));
        if request.body != original {
            views += 1;
        }
    }
    assert!(views > 50, "{views} of {} are views", sent.len());
    // Between two compactions each request begins with what the one before sent.
    let mut breaks = 0;
    for pair in sent.windows(2) {
        let (before, after) = (message_bytes(&pair[0]), message_bytes(&pair[1]));
        breaks += usize::from(after.get(..before.len()) != Some(&*before));
    }
    assert!((1..=12).contains(&breaks), "{breaks} breaks");
    let restored = scene.compact.restore("long").await.unwrap();
    assert!(restored.exact);
    let metrics = scene.get("/metrics").await;
    assert!(
        metrics
            .text()
            .contains("compact_gateway_compactions_total{cause=\"preflight\"}"),
        "{}",
        metrics.text()
    );
    assert!(
        !metrics.text().contains("failed_open_total{"),
        "{}",
        metrics.text()
    );
}

#[tokio::test]
async fn a_session_that_stands_before_a_compaction_is_gone_on_with_under_its_name() {
    let scene = Scene::new(WINDOW, chat_answer).await;
    run_session(&scene, 40, "parser", &[("x-compact-session", "long")]).await;
    let records = scene.compact.session_records("long").await.unwrap();
    let first = records[0].receipt_id.as_str();
    let branch = "long~before-1";
    let branched = scene.compact.branch_before("long", first, branch);
    branched.await.unwrap();
    let held = scene.compact.restore(branch).await.unwrap().bytes;
    let mut request: Value = serde_json::from_slice(&held).unwrap();
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "Done."}));
    messages.push(json!({"role": "user", "content": "Go on from here."}));
    let headers = [("x-compact-session", branch)];
    let answer = scene
        .post("/v1/chat/completions", &headers, request.to_string())
        .await;
    assert_eq!(answer.headers["x-compact-session"], branch);
    let records = scene.compact.session_records(branch).await.unwrap();
    assert_eq!(
        records.len(),
        2,
        "what it held, and the compaction that was due"
    );
}

#[tokio::test]
async fn histories_without_names_are_told_apart_by_what_they_say() {
    let scene = Scene::new(WINDOW, chat_answer).await;
    for n in 0..25 {
        for topic in ["parser", "lexer"] {
            scene
                .post("/v1/chat/completions", &[], body(&history(n, topic)))
                .await;
        }
    }
    for request in scene.sent() {
        let text = std::str::from_utf8(&request.body).unwrap();
        assert!(
            !(text.contains("of parser") && text.contains("of lexer")),
            "two sessions are mixed"
        );
        assert!(request.body.len() / 4 < WINDOW as usize);
    }
}

#[tokio::test]
async fn two_gateways_on_one_store_are_one_system_for_a_history_without_a_name() {
    let compact = Compact::builder().in_memory().window(WINDOW);
    let compact = compact.build().unwrap();
    let scenes = [
        Scene::with(compact.clone(), |_| {}, chat_answer).await,
        Scene::with(compact.clone(), |_| {}, chat_answer).await,
    ];
    let mut sent: Vec<SentRequest> = Vec::new();
    for n in 0..60 {
        // A connection may stay for some requests before the next one has its turn.
        let scene = &scenes[n / 3 % 2];
        let answer = scene
            .post("/v1/chat/completions", &[], body(&history(n, "parser")))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        sent.push(scene.last_sent());
    }
    let catalog = compact.manager().unwrap().catalog().clone();
    let sessions = catalog.sessions().await.unwrap();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let goes_on = |pair: &[SentRequest]| {
        let (before, after) = (message_bytes(&pair[0]), message_bytes(&pair[1]));
        after.starts_with(&before)
    };
    let breaks = sent.windows(2).filter(|pair| !goes_on(pair)).count();
    let records = catalog
        .session_records(&sessions[0].session_id)
        .await
        .unwrap();
    assert!(records.len() > 1, "{}", records.len());
    assert_eq!(breaks, records.len(), "a view is the same through both");
}

#[tokio::test]
async fn tenants_never_meet() {
    let (one, two) = (
        compact_gateway::make_key("one").unwrap(),
        compact_gateway::make_key("two").unwrap(),
    );
    let compact = Compact::builder()
        .in_memory()
        .window(WINDOW)
        .build()
        .unwrap();
    let keys = vec![one.setting, two.setting];
    let scene = Scene::with(compact, |config| config.keys = keys, chat_answer).await;
    let answer = scene
        .post("/v1/chat/completions", &[], body(&history(1, "x")))
        .await;
    assert_eq!(answer.status, 401);
    assert_eq!(scene.sent().len(), 0);
    for key in [&one.key, &two.key] {
        let headers = [
            ("x-compact-key", key.as_str()),
            ("x-compact-session", "same"),
        ];
        run_session(&scene, 22, "parser", &headers).await;
        let unnamed = [("x-compact-key", key.as_str())];
        run_session(&scene, 22, "parser", &unnamed).await;
    }
    for request in scene.sent() {
        assert!(request.headers.get("x-compact-key").is_none());
    }
    let sessions = scene
        .compact
        .manager()
        .unwrap()
        .catalog()
        .sessions()
        .await
        .unwrap();
    let names: Vec<String> = sessions
        .into_iter()
        .map(|session| session.session_id)
        .collect();
    for scope in ["one/", "two/"] {
        let own = names.iter().filter(|name| name.starts_with(scope)).count();
        assert_eq!(own, 2, "{names:?}");
    }
    assert_eq!(names.len(), 4, "{names:?}");
}

#[tokio::test]
async fn another_history_under_one_name_is_a_line_of_its_own() {
    let scene = Scene::new(WINDOW, chat_answer).await;
    let headers = [("x-claude-code-session-id", "s1")];
    for n in 0..40 {
        scene
            .post(
                "/v1/chat/completions",
                &headers,
                body(&history(n, "parser")),
            )
            .await;
        let probe = body(&history(0, &format!("title {n}")));
        scene.post("/v1/chat/completions", &headers, probe).await;
    }
    let sent = scene.sent();
    let views: Vec<_> = sent.iter().step_by(2).map(message_bytes).collect();
    let is_broken = |pair: &&[Vec<String>]| !pair[1].starts_with(&pair[0]);
    let breaks = views.windows(2).filter(is_broken).count();
    assert!(
        breaks <= 6,
        "{breaks} breaks: the other history takes the view away"
    );
}

#[tokio::test]
async fn what_does_not_fit_is_refused_as_the_provider_would() {
    let scene = Scene::new(2_000, chat_answer).await;
    let system = json!({"role": "system", "content": "Never touch the ledger. ".repeat(900)});
    let messages = [system, json!({"role": "user", "content": "hi"})];
    let answer = scene
        .post("/v1/chat/completions", &[], body(&messages))
        .await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.json()["error"]["code"], "context_length_exceeded");
    assert_eq!(scene.sent().len(), 0);
}

#[tokio::test]
async fn what_we_cannot_read_goes_out_as_it_came() {
    let (sender, events) = std::sync::mpsc::channel();
    let compact = Compact::builder().in_memory();
    let compact = compact.events(move |event| drop(sender.send(json!(event))));
    let scene = Scene::with(compact.build().unwrap(), |_| {}, chat_answer).await;
    let body = r#"{"model":"gpt-5","messages":"what?"}"#;
    assert_eq!(
        scene.post("/v1/chat/completions", &[], body).await.status,
        200
    );
    assert_eq!(scene.last_sent().body, body);
    let metrics = scene.get("/metrics").await;
    let counted = "compact_gateway_failed_open_total{reason=\"unreadable\"} 1\n";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
    let event = events
        .try_iter()
        .find(|event| event["event"] == "compact.failed_open");
    let event = event.expect("an event says so");
    assert_eq!(
        (&event["reason"], &event["severity"]),
        (&json!("unreadable"), &json!("high"))
    );
}

/// A body with members on both sides of its messages.
fn large_body(messages: &[Value]) -> String {
    let list = Value::from(messages);
    format!(r#"{{"model":"gpt-5","messages":{list},"user":"somebody"}}"#)
}

fn large_turn(n: usize, topic: &str) -> [Value; 2] {
    let [asked, said] = turn(n, topic);
    let listing = format!("{n}: let {topic}_{n} = rows.get({n})?; ").repeat(120);
    [
        asked,
        json!({"role": "assistant", "content": format!("{}{listing}", said["content"])}),
    ]
}

/// The histories that a client with two conversations sends: they grow in turn, one is rewound and one is edited at its
/// beginning, and both go on.
fn large_histories() -> Vec<Vec<Value>> {
    let mut histories = Vec::new();
    let mut conversations = [("parser", Vec::new()), ("lexer", Vec::new())];
    for n in 0..44 {
        for (topic, history) in &mut conversations {
            match (n, *topic) {
                (30, "parser") => history.truncate(history.len() - 6),
                (36, "lexer") => {
                    history[0] = json!({"role": "user", "content": "Measure run 0 again."});
                }
                _ => {}
            }
            let [asked, said] = large_turn(n, topic);
            history.push(asked);
            histories.push(history.clone());
            history.push(said);
        }
    }
    histories
}

/// Sends them all, and returns them with what was made of each.
async fn send_large(scene: &Scene, headers: &[(&str, &str)]) -> Vec<(Vec<Value>, String)> {
    let histories = large_histories();
    for history in &histories {
        let body = large_body(history);
        let answer = scene.post("/v1/chat/completions", headers, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let text = |request: SentRequest| String::from_utf8(request.body.to_vec()).unwrap();
    let sent = scene.sent().into_iter().map(text);
    histories.into_iter().zip(sent).collect()
}

/// Two histories under one name, and two without a name: what is known of a large request is not read again, and what
/// is sent is made of the request that came.
#[tokio::test]
async fn a_large_view_is_made_of_the_request_that_came() {
    for headers in [&[][..], &[("x-compact-session", "large")]] {
        let scene = Scene::new(20_000, chat_answer).await;
        let (mut views, mut breaks) = (0, 0);
        let mut before = [String::new(), String::new()];
        for (n, (history, sent)) in send_large(&scene, headers).await.into_iter().enumerate() {
            let other = ["lexer", "parser"][n % 2];
            assert!(!sent.contains(other), "request {n} is mixed");
            let body: Value = serde_json::from_str(&sent).unwrap();
            let is_view = sent.contains(SUMMARY);
            views += usize::from(is_view);
            assert!(is_view || sent == large_body(&history), "request {n}");
            // What was edited is seen as it is now, and what was taken back is not seen.
            assert!(
                n < 72 || n % 2 == 0 || sent.contains("run 0 again"),
                "request {n}"
            );
            let last = body["messages"].as_array().unwrap().last().cloned();
            assert_eq!(last.as_ref(), history.last(), "request {n}");
            let (opening, _) = sent.rsplit_once(r#"{"role":"user""#).unwrap();
            breaks += usize::from(!opening.starts_with(&before[n % 2]));
            before[n % 2] = opening.to_owned();
        }
        assert!(views > 40, "{views} views");
        assert!(breaks < 20, "{breaks} breaks");
        let metrics = scene.get("/metrics").await;
        assert!(
            !metrics.text().contains("failed_open_total{"),
            "{}",
            metrics.text()
        );
    }
}
