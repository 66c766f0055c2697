//! Clients that mean no good.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::scene::{Scene, chat_answer};

async fn send_raw(scene: &Scene, bytes: &[u8]) -> String {
    let address = scene.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let _ = timeout(Duration::from_secs(5), read).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn no_header_and_no_target_leads_anywhere_else() {
    let scene = Scene::new(128_000, chat_answer).await;
    for request in [
        "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example\r\nX-Compact-Upstream: http://evil.example\r\nConnection: close\r\n\r\n",
        "GET //evil.example/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    ] {
        let answer = send_raw(&scene, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let targets: Vec<String> = scene.sent().into_iter().map(|sent| sent.target).collect();
    assert_eq!(targets, ["/latest", "/v1/models", "//evil.example/x"]);
    let host = scene.sent()[0].headers["host"].to_str().unwrap().to_owned();
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    let rebound = "GET /v1/models HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n";
    assert!(
        send_raw(&scene, rebound.as_bytes())
            .await
            .starts_with("HTTP/1.1 403")
    );
}

#[tokio::test]
async fn a_body_with_two_lengths_is_refused_and_none_hides_another_request() {
    let scene = Scene::new(128_000, chat_answer).await;
    let two = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}GET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n";
    assert!(
        send_raw(&scene, two.as_bytes())
            .await
            .starts_with("HTTP/1.1 400")
    );
    let both = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n";
    send_raw(&scene, both.as_bytes()).await;
    assert!(
        scene
            .sent()
            .iter()
            .all(|sent| !sent.target.contains("hidden")),
        "{:?}",
        scene.sent()
    );
    for sent in scene.sent() {
        assert!(sent.headers.get("transfer-encoding").is_none());
    }
}

#[tokio::test]
async fn too_large_is_refused_before_it_is_read() {
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let scene = Scene::with(compact, |config| config.max_body_mb = 1, chat_answer).await;
    let huge = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 99999999\r\n\r\n{";
    let answer = send_raw(&scene, huge.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("gateway.max_body_mb"),
        "{answer}"
    );
    let answer = scene.post("/v1/messages", &[], vec![b' '; 1 << 21]).await;
    assert_eq!(answer.status, 413);
    assert_eq!(scene.sent().len(), 0);
}

#[tokio::test]
async fn deep_nesting_and_bombs_do_no_harm() {
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let scene = Scene::with(compact, |config| config.max_body_mb = 8, chat_answer).await;
    let deep = format!(
        r#"{{"model":"gpt-5","messages":{}{}}}"#,
        "[".repeat(2 << 20),
        "]".repeat(2 << 20)
    );
    assert_eq!(
        scene.post("/v1/chat/completions", &[], deep).await.status,
        200
    );
    let within = format!(
        r#"{{"messages":[{{"role":"user","content":{}1{}}}]}}"#,
        "[".repeat(1 << 20),
        "]".repeat(1 << 20)
    );
    for target in [
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/responses",
        "/v1beta/models/g:generateContent",
    ] {
        assert_eq!(
            scene.post(target, &[], within.clone()).await.status,
            200,
            "{target}"
        );
    }
    let bomb = zstd::encode_all(&vec![b' '; 64 << 20][..], 1).unwrap();
    let answer = scene
        .post(
            "/v1/chat/completions",
            &[("content-encoding", "zstd")],
            bomb.clone(),
        )
        .await;
    assert_eq!(
        (answer.status, scene.last_sent().body.len()),
        (200, bomb.len()),
        "it passes as it came"
    );
    assert_eq!(scene.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn more_messages_than_memory_is_there_for_pass_as_they_came() {
    let compact = compact::Compact::builder().in_memory().window(2_000);
    let few = |config: &mut compact::config::GatewayConfig| config.max_session_mb = 64;
    let scene = Scene::with(compact.build().unwrap(), few, chat_answer).await;
    let body = |messages: String| format!(r#"{{"model":"gpt-5","messages":[{messages}]}}"#);
    let message = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let tiny = body(vec![message("1"); 60_000].join(","));
    let answer = scene.post("/v1/chat/completions", &[], tiny.clone()).await;
    assert_eq!(answer.status, 200);
    assert!(scene.last_sent().body == tiny, "it went on as it came");
    let long = body(vec![message(&"a { b } ".repeat(2_500)); 90].join(","));
    assert!(long.len() > tiny.len() / 2);
    scene.post("/v1/chat/completions", &[], long.clone()).await;
    assert!(scene.last_sent().body.len() < long.len() / 2, "a view");
    let metrics = scene.get("/metrics").await;
    let counted = r#"failed_open_total{reason="too_many_parts"} 1"#;
    assert!(metrics.text().contains(counted), "{}", metrics.text());
}

#[tokio::test]
async fn no_key_is_in_an_answer_or_a_metric() {
    let key = compact_gateway::make_key("team").unwrap();
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let setting = key.setting.clone();
    let scene = Scene::with(compact, |config| config.keys = vec![setting], chat_answer).await;
    let body =
        json!({"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let bearer = format!("Bearer {}", key.key);
    let wrong = scene
        .post(
            "/v1/chat/completions",
            &[("authorization", &bearer)],
            body.clone(),
        )
        .await;
    assert_eq!(wrong.status, 401, "the upstream has no key of its own");
    let headers = [
        ("x-compact-key", key.key.as_str()),
        ("authorization", "Bearer sk-provider-secret"),
    ];
    let answer = scene.post("/v1/chat/completions", &headers, body).await;
    assert_eq!(answer.status, 200);
    let metrics = crate::scene::client()
        .get(format!("{}/metrics", scene.url))
        .header("x-compact-key", &key.key);
    let metrics = metrics.send().await.unwrap().text().await.unwrap();
    for text in [wrong.text(), answer.text(), &metrics] {
        assert!(
            !text.contains(&key.key) && !text.contains("sk-provider-secret"),
            "{text}"
        );
    }
    assert!(
        metrics.contains("compact_gateway_requests_total"),
        "{metrics}"
    );
    assert_eq!(scene.get("/metrics").await.status, 401);
}

#[tokio::test]
async fn a_head_that_drips_is_cut_off_and_others_are_served_meanwhile() {
    let scene = Scene::new(128_000, chat_answer).await;
    let address = scene.url.strip_prefix("http://").unwrap().to_owned();
    let mut dripping = Vec::new();
    for _ in 0..32 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"POST /v1/messages HT").await.unwrap();
        dripping.push(stream);
    }
    assert_eq!(scene.get("/healthz").await.status, 200);
    for mut stream in dripping {
        let mut answer = Vec::new();
        // It takes 15 seconds, more where the machine is busy.
        let ended = timeout(Duration::from_secs(240), stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "it is still open");
    }
    assert_eq!(scene.sent().len(), 0);
}

#[tokio::test]
async fn bombs_of_every_packing_pass_as_they_came_and_are_not_unpacked() {
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let scene = Scene::with(compact, |config| config.max_body_mb = 1, chat_answer).await;
    let zeros = vec![b' '; 32 << 20];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &zeros).unwrap();
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut deflate, &zeros).unwrap();
    for (packing, bomb) in [
        ("gzip", gzip.finish().unwrap()),
        ("deflate", deflate.finish().unwrap()),
    ] {
        let headers = [("content-encoding", packing)];
        let answer = scene.post("/v1/messages", &headers, bomb.clone()).await;
        assert_eq!(
            (answer.status, scene.last_sent().body.len()),
            (200, bomb.len())
        );
    }
}

/// Takes what is logged of events.
#[derive(Default)]
struct EventLog(std::sync::Mutex<String>);

impl compact::event::EventSink for EventLog {
    fn emit(&self, event: &compact::event::Event) {
        let line = serde_json::to_string(event).unwrap();
        self.0.lock().unwrap().push_str(&line);
    }
}

#[tokio::test]
async fn no_key_is_in_a_log_line() {
    let log = std::sync::Arc::new(EventLog::default());
    let compact = compact::Compact::builder().in_memory().window(2_000);
    let compact = compact.event_sink(log.clone()).build().unwrap();
    let scene = Scene::with(compact, |_| {}, chat_answer).await;
    let secret = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz";
    let bearer = format!("Bearer {secret}");
    let headers = [("authorization", &*bearer), ("x-api-key", secret)];
    let words = "Look at the rows of the ledger again. ".repeat(400);
    let long = json!([
        {"role": "user", "content": words}, {"role": "assistant", "content": words},
        {"role": "user", "content": "Go on."},
    ]);
    for body in [
        json!({"model": "gpt-5", "messages": long}).to_string(),
        "no JSON at all".to_owned(),
    ] {
        scene.post("/v1/chat/completions", &headers, body).await;
    }
    let lines = log.0.lock().unwrap().clone();
    assert!(!lines.is_empty(), "something was logged");
    assert!(!lines.contains(secret), "{lines}");
}

/// Answers each connection with the same bytes, and returns its address.
async fn start_raw_upstream(answer: &'static [u8]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(answer).await;
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn what_an_upstream_says_of_its_answer_cannot_move_where_the_next_one_begins() {
    let chunked: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let switched: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    for (answer, status) in [(chunked, "HTTP/1.1 200"), (switched, "HTTP/1.1 502")] {
        let compact = compact::Compact::builder().in_memory().build().unwrap();
        let url = start_raw_upstream(answer).await;
        let scene = Scene::with(compact, |config| config.openai_url = url, chat_answer).await;
        let asked = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answers = send_raw(&scene, asked.as_bytes())
            .await
            .to_ascii_lowercase();
        assert!(
            answers.starts_with(&status.to_ascii_lowercase()),
            "{answers}"
        );
        assert!(!answers.contains("content-length: 50"), "{answers}");
        assert_eq!(answers.matches("http/1.1 ").count(), 2, "{answers}");
        assert!(answers.ends_with("ok\n"), "{answers}");
    }
}

/// A gateway with a key for one tenant, and a key of its own for Gemini's server.
async fn keyed_scene(grant: &str) -> (Scene, compact_gateway::NewKey) {
    let key = compact_gateway::make_key("one").unwrap();
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let line = format!("{}{grant}", key.setting);
    let scene = Scene::with(compact, |config| config.keys = vec![line], chat_answer).await;
    (scene, key)
}

#[tokio::test]
async fn a_key_of_the_gateway_in_a_path_goes_nowhere() {
    let (scene, key) = keyed_scene("").await;
    let admitted = [("x-compact-key", &*key.key)];
    let hidden = key.key.replace("cgw_", "%63gw%5F");
    for path in [&*key.key, &*hidden] {
        let answer = scene
            .post(&format!("/v1/{path}/models"), &admitted, "{}")
            .await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(!answer.text().contains(&key.key));
    }
    assert!(scene.sent().is_empty());
}

#[tokio::test]
async fn a_key_of_the_gateway_in_the_query_admits_and_stays_here() {
    let (scene, key) = keyed_scene("").await;
    let sends = [("x-goog-api-key", "AIza-of-the-client")];
    let target = |query: &str| format!("/v1beta/models/g:generateContent?{query}");
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    let wrong = scene.post(&target("key=cgw_00"), &[], body).await;
    assert_eq!(wrong.status, 401);
    let kept = format!("alt=json&key={}", key.key);
    let answer = scene.post(&target(&kept), &[], body).await;
    assert_eq!(
        answer.status,
        401,
        "the upstream has no key: {}",
        answer.text()
    );
    assert!(scene.sent().is_empty());
    let both = [sends[0], ("x-compact-key", &*key.key)];
    assert_eq!(scene.post(&target(&kept), &both, body).await.status, 200);
    let sent = scene.last_sent();
    assert_eq!(sent.target, target("alt=json"));
    assert_eq!(sent.headers["x-goog-api-key"], "AIza-of-the-client");
}

#[tokio::test]
async fn a_spent_key_hears_so_in_its_providers_words_on_every_path() {
    let (scene, key) = keyed_scene(" tokens_a_day=1").await;
    let headers = [
        ("x-compact-key", &*key.key),
        ("anthropic-version", "2023-06-01"),
    ];
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(
        scene
            .post("/v1/chat/completions", &headers, body)
            .await
            .status,
        200
    );
    let answer = scene
        .post("/v1/messages/count_tokens", &headers, body)
        .await;
    assert_eq!(answer.status, 429);
    let error = answer.json();
    let found = [&error["type"], &error["error"]["type"]];
    assert_eq!(found, ["error", "rate_limit_error"]);
}

/// A server that follows TRACE sends back what it was sent, and that may be a key that its client does not know.
#[tokio::test]
async fn a_request_that_would_be_sent_back_is_not_passed_on() {
    let scene = Scene::new(128_000, chat_answer).await;
    let trace = "TRACE /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = send_raw(&scene, trace.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(scene.sent().is_empty());
}
