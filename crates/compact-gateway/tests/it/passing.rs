//! What passes through: bytes, headers, streams, both ways.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::timeout;

use crate::scene::{Scene, chat_answer, client, json_reply, open_stream, reply};

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_request_arrives_byte_for_byte_with_its_headers() {
    let scene = Scene::new(128_000, chat_answer).await;
    let body = "{ \"model\":\"gpt-5\",\n \"messages\" : [ {\"role\":\"user\",\"content\":\"h\\u0069\"} ],\"x\":1.0e2 }";
    let headers = [
        ("authorization", "Bearer sk-client"),
        ("x-stainless-lang", "python"),
        ("user-agent", "agent/1.0"),
        ("x-compact-session", "mine"),
    ];
    let answer = scene.post("/v1/chat/completions?a=b", &headers, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent = scene.last_sent();
    assert_eq!(sent.body, body);
    assert_eq!(sent.method, "POST");
    assert_eq!(sent.target, "/v1/chat/completions?a=b");
    let of = |name: &str| sent.headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(of("authorization"), Some("Bearer sk-client"));
    assert_eq!(of("x-stainless-lang"), Some("python"));
    assert_eq!(of("user-agent"), Some("agent/1.0"));
    assert_eq!(of("content-length"), Some(&*body.len().to_string()));
    assert_eq!(of("x-compact-session"), None);
    assert_eq!(answer.headers["x-compact-session"], "mine");
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "Done.");
}

#[tokio::test]
async fn what_no_model_is_asked_passes_as_it_is() {
    let scene = Scene::new(128_000, chat_answer).await;
    scene.script(json_reply(418, &json!({"data": []})));
    let answer = scene.get("/v1/models?limit=2").await;
    assert_eq!((answer.status, answer.json()), (418, json!({"data": []})));
    assert_eq!(scene.last_sent().target, "/v1/models?limit=2");
    scene.script(json_reply(200, &json!({"input_tokens": 9})));
    let counted = scene
        .post("/v1/messages/count_tokens", &[], "not even JSON")
        .await;
    assert_eq!(counted.json(), json!({"input_tokens": 9}));
    assert_eq!(scene.last_sent().body, "not even JSON");
}

#[tokio::test]
async fn a_stream_passes_chunk_by_chunk() {
    let scene = Scene::new(128_000, chat_answer).await;
    let (sender, stream) = open_stream();
    scene.script(stream);
    let body = r#"{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let request = client()
        .post(format!("{}/v1/chat/completions", scene.url))
        .body(body);
    let asked = tokio::spawn(request.send());
    for n in 0..3 {
        sender
            .send(Ok(format!("data: {{\"n\":{n}}}\n\n").into()))
            .await
            .unwrap();
        if n == 0 {
            continue;
        }
    }
    let mut answer = timeout(SOON, asked).await.unwrap().unwrap().unwrap();
    let mut got = String::new();
    while !got.contains("\"n\":2") {
        let chunk = timeout(SOON, answer.chunk())
            .await
            .expect("nothing waits for the end")
            .unwrap();
        got += std::str::from_utf8(&chunk.expect("the stream is open")).unwrap();
    }
    sender
        .send(Ok(Bytes::from("data: [DONE]\n\n")))
        .await
        .unwrap();
    drop(sender);
    let last = timeout(SOON, answer.bytes()).await.unwrap().unwrap();
    assert_eq!(last, "data: [DONE]\n\n");
}

#[tokio::test]
async fn an_upstream_hears_when_the_client_leaves() {
    let scene = Scene::new(128_000, chat_answer).await;
    let (sender, stream) = open_stream();
    scene.script(stream);
    let body = r#"{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let request = client()
        .post(format!("{}/v1/chat/completions", scene.url))
        .body(body);
    let asked = tokio::spawn(request.send());
    sender.send(Ok(Bytes::from("data: {}\n\n"))).await.unwrap();
    let answer = timeout(SOON, asked).await.unwrap().unwrap().unwrap();
    drop(answer);
    timeout(SOON, sender.closed())
        .await
        .expect("the upstream's stream is given up");
}

#[tokio::test]
async fn a_slow_client_slows_the_upstream_down() {
    let scene = Scene::new(128_000, chat_answer).await;
    let (sender, stream) = open_stream();
    scene.script(stream);
    let body = r#"{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let request = client()
        .post(format!("{}/v1/chat/completions", scene.url))
        .body(body);
    let asked = tokio::spawn(request.send());
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    let mut sent = 0;
    // Nobody reads: buffers of sockets fill up, and then nothing more is taken.
    while let Ok(Ok(())) = timeout(Duration::from_millis(500), sender.send(Ok(chunk.clone()))).await
    {
        sent += 1;
        assert!(sent < 200, "the gateway holds the stream in memory");
    }
    drop(asked);
}

#[tokio::test]
async fn named_upstreams_stand_side_by_side() {
    let other = Scene::new(128_000, chat_answer).await;
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let url = other.url.clone();
    let scene = Scene::with(
        compact,
        |config| config.upstreams = vec![format!("other={url}")],
        chat_answer,
    )
    .await;
    scene.post("/other/v1/embeddings", &[], "{}").await;
    assert_eq!(
        (scene.sent().len(), other.last_sent().target.as_str()),
        (0, "/v1/embeddings")
    );
}

#[tokio::test]
async fn the_gateway_tells_how_it_is_and_lets_answers_end_when_it_stops() {
    let mut scene = Scene::new(128_000, chat_answer).await;
    assert_eq!(scene.get("/healthz").await.text(), "ok\n");
    assert_eq!(scene.get("/readyz").await.text(), "ready\n");
    let (sender, stream) = open_stream();
    scene.script(stream);
    let body = r#"{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let asked = tokio::spawn(
        client()
            .post(format!("{}/v1/chat/completions", scene.url))
            .body(body)
            .send(),
    );
    sender.send(Ok(Bytes::from("data: {}\n\n"))).await.unwrap();
    let answer = timeout(SOON, asked).await.unwrap().unwrap().unwrap();
    let metrics = scene.get("/metrics").await;
    assert!(
        metrics.text().contains("compact_gateway_in_flight 1\n"),
        "{}",
        metrics.text()
    );
    let url = scene.url.clone();
    let stopping = tokio::spawn(async move { scene.stop().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let probe = async |path: &str| {
        let sent = client().get(format!("{url}{path}")).send();
        timeout(SOON, sent)
            .await
            .unwrap()
            .unwrap()
            .status()
            .as_u16()
    };
    assert_eq!(probe("/readyz").await, 503, "who asks hears of the stop");
    assert_eq!(probe("/healthz").await, 200);
    assert_eq!(probe("/v1/models").await, 503, "nothing new is begun");
    sender
        .send(Ok(Bytes::from("data: [DONE]\n\n")))
        .await
        .unwrap();
    drop(sender);
    let body = timeout(SOON, answer.bytes()).await.unwrap().unwrap();
    assert_eq!(body, "data: {}\n\ndata: [DONE]\n\n");
    assert_eq!(
        timeout(SOON, stopping).await.unwrap().unwrap(),
        0,
        "nothing was cut off"
    );
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_an_error_in_the_providers_shape() {
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let gone = |config: &mut compact::config::GatewayConfig| {
        config.anthropic_url = "http://127.0.0.1:9".to_owned()
    };
    let scene = Scene::with(compact, gone, chat_answer).await;
    let answer = scene
        .post("/v1/messages", &[], r#"{"model":"m","messages":[]}"#)
        .await;
    let error = json!({"type": "api_error", "message": "cannot reach the upstream anthropic"});
    assert_eq!(
        (answer.status, answer.json()),
        (502, json!({"type": "error", "error": error}))
    );
}

#[tokio::test]
async fn a_packed_request_stays_packed() {
    let scene = Scene::new(128_000, chat_answer).await;
    let body = br#"{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}"#;
    let packed = zstd::encode_all(&body[..], 1).unwrap();
    scene
        .post(
            "/v1/chat/completions",
            &[("content-encoding", "zstd")],
            packed.clone(),
        )
        .await;
    let sent = scene.last_sent();
    assert_eq!(sent.body, packed);
    assert_eq!(sent.headers["content-encoding"], "zstd");
    scene.script(reply(200, "text/plain", "x"));
    scene
        .post(
            "/v1/chat/completions",
            &[("content-encoding", "zstd")],
            "not zstd",
        )
        .await;
    assert_eq!(scene.last_sent().body, "not zstd");
}

#[tokio::test]
async fn a_key_reaches_its_upstreams_and_spends_what_it_may() {
    let key = compact_gateway::make_key("team").unwrap();
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let setting = format!("{} upstreams=openai tokens_a_day=50", key.setting);
    let scene = Scene::with(compact, |config| config.keys = vec![setting], chat_answer).await;
    let body =
        json!({"model": "gpt-5", "messages": [{"role": "user", "content": "a b c ".repeat(50)}]});
    let ask = async |target: &str| {
        let headers = [("x-compact-key", key.key.as_str())];
        scene.post(target, &headers, body.to_string()).await
    };
    assert_eq!(
        ask("/v1/messages").await.status,
        403,
        "it is not its upstream"
    );
    assert_eq!(ask("/v1/chat/completions").await.status, 200);
    let refused = ask("/v1/chat/completions").await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.headers["x-should-retry"], "false");
    let error = &refused.json()["error"];
    assert_eq!(error["type"], "rate_limit_error");
    assert!(error["message"].as_str().unwrap().contains("00:00 UTC"));
    assert_eq!(scene.sent().len(), 1);
}

/// Nobody spends more by asking for no report, by leaving before it comes, or by asking at another path.
#[tokio::test]
async fn what_is_not_reported_counts_by_its_size() {
    let key = compact_gateway::make_key("team").unwrap();
    let compact = compact::Compact::builder().in_memory().build().unwrap();
    let setting = format!("{} tokens_a_day=50", key.setting);
    let words = "a b c ".repeat(50);
    let history = json!({"model": "gpt-5", "messages": [{"role": "user", "content": words}]});
    let probe = json!({"model": "gpt-5", "max_tokens": 5, "messages": history["messages"]});
    let embedded = r#"{"data":[],"usage":{"prompt_tokens":60,"total_tokens":60}}"#;
    let said = r#"{"choices":[{"message":{"role":"assistant","content":"hi"}}]}"#;
    let rows = [
        ("/v1/chat/completions", history.to_string(), said, 429),
        ("/v1/chat/completions", probe.to_string(), said, 429),
        ("/v1/embeddings", history.to_string(), embedded, 429),
        // What is no question to a model costs what is reported, and here nothing is.
        ("/v1/files", words, "{}", 200),
    ];
    for (target, body, answer, then) in rows {
        let keys = vec![setting.clone()];
        let scene = Scene::with(
            compact.clone(),
            |config| config.keys = keys,
            move |_| reply(200, "application/json", answer),
        )
        .await;
        let headers = [("x-compact-key", key.key.as_str())];
        let first = scene.post(target, &headers, body.clone()).await;
        assert_eq!(first.status, 200, "{target}");
        let second = scene.post(target, &headers, body).await;
        assert_eq!(second.status, then, "{target}");
    }
}
