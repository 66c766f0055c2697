//! Models that look things up: their clients see what they say and nothing of the calls.

use compact::config::GatewayConfig;
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use crate::scene::{Scene, SentRequest, client, events, json_reply, open_stream};

async fn offering(
    otherwise: impl Fn(&SentRequest) -> axum::response::Response + Send + Sync + 'static,
) -> Scene {
    let compact = compact::Compact::builder().in_memory().window(6_000);
    let change = |config: &mut GatewayConfig| config.offer_recall = true;
    Scene::with(compact.build().unwrap(), change, otherwise).await
}

/// A history that does not fit, with a fact early on that no summary of this size holds by chance alone.
fn history(turns: usize) -> Vec<Value> {
    let turn = |n: usize| {
        [
            json!({"role": "user", "content": format!("Measure run {n} of the parser.")}),
            json!({"role": "assistant", "content": format!("Run {n} took {n} ms; the metrics of it are served on port {}. ", 9000 + n).repeat(20)}),
        ]
    };
    let mut messages: Vec<Value> = (0..turns).flat_map(turn).collect();
    messages.push(json!({"role": "user", "content": "Which port had run 3?"}));
    messages
}

fn tool(provider: &str) -> Value {
    match provider {
        "anthropic" => json!([{"name": "Read", "input_schema": {"type": "object"}}]),
        _ => {
            json!([{"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}}])
        }
    }
}

fn claude_body(stream: bool) -> String {
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 9_000, "stream": stream,
        "tools": tool("anthropic"), "messages": history(60),
    })
    .to_string()
}

fn chat_body(stream: bool) -> String {
    json!({"model": "gpt-4o", "stream": stream, "tools": tool("chat"), "messages": history(60)})
        .to_string()
}

fn block(index: u64, block: &Value, delta: &Value) -> [Value; 3] {
    [
        json!({"type": "content_block_start", "index": index, "content_block": block}),
        json!({"type": "content_block_delta", "index": index, "delta": delta}),
        json!({"type": "content_block_stop", "index": index}),
    ]
}

fn spoken(index: u64, text: &str) -> [Value; 3] {
    block(
        index,
        &json!({"type": "text", "text": ""}),
        &json!({"type": "text_delta", "text": text}),
    )
}

fn called(index: u64, name: &str, arguments: &str) -> [Value; 3] {
    let start =
        json!({"type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": {}});
    block(
        index,
        &start,
        &json!({"type": "input_json_delta", "partial_json": arguments}),
    )
}

fn message(blocks: &[[Value; 3]], reason: &str) -> Vec<Value> {
    let mut values = vec![
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 7}}}),
    ];
    values.extend(blocks.concat());
    values.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}));
    values.push(json!({"type": "message_stop"}));
    values
}

fn body_of(sent: &SentRequest) -> Value {
    serde_json::from_slice(&sent.body).unwrap()
}

/// Says what the model was answered, and that our tools stand behind the client's.
fn check_follow_up(scene: &Scene) -> String {
    let sent = scene.sent();
    let asked = sent.last_chunk().map(|asked| asked.each_ref().map(body_of));
    let [first, second] = asked.expect("the model was asked twice");
    let tools = serde_json::to_string(&first["tools"]).unwrap();
    assert!(
        tools.contains("\"Read\"") && tools.contains("compact_expand"),
        "{tools}"
    );
    assert_eq!(first["tools"], second["tools"]);
    let before = first["messages"].as_array().unwrap();
    let after = second["messages"].as_array().unwrap();
    assert_eq!(after[..before.len()], before[..], "the prefix is the same");
    serde_json::to_string(&after[before.len()..]).unwrap()
}

#[tokio::test]
async fn a_look_up_in_a_stream_is_answered_out_of_sight() {
    let scene = offering(|_| events(&message(&[spoken(0, "It was 9003.")], "end_turn"))).await;
    let asks = [
        spoken(0, "Let me look."),
        called(1, "compact_recall", "{\"query\":\"port metrics run 3\"}"),
    ];
    scene.script(events(&message(&asks, "tool_use")));
    let answer = scene
        .post(
            "/v1/messages",
            &[("x-compact-session", "s1")],
            claude_body(true),
        )
        .await;
    let expected = message(
        &[spoken(0, "Let me look."), spoken(1, "It was 9003.")],
        "end_turn",
    );
    assert_eq!(answer.events(), expected);
    let answered = check_follow_up(&scene);
    assert!(
        answered.contains("toolu_compact_recall") && answered.contains("9003"),
        "{answered}"
    );
    let metrics = scene.get("/metrics").await;
    assert!(
        metrics.text().contains("lookups_total 1"),
        "{}",
        metrics.text()
    );
}

#[tokio::test]
async fn a_whole_answer_is_made_of_what_was_said_before_and_after() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let scene = offering(move |_| {
        json_reply(
            200,
            &json!({"content": [text("It was 9003.")], "stop_reason": "end_turn", "usage": {}}),
        )
    })
    .await;
    let call = json!({"type": "tool_use", "id": "t1", "name": "compact_recall", "input": {"query": "port metrics run 3"}});
    let asks =
        json!({"content": [text("Let me look."), call], "stop_reason": "tool_use", "usage": {}});
    scene.script(json_reply(200, &asks));
    let answer = scene.post("/v1/messages", &[], claude_body(false)).await;
    assert_eq!(
        answer.json()["content"],
        json!([text("Let me look."), text("It was 9003.")])
    );
    assert!(check_follow_up(&scene).contains("9003"));
}

fn chunk(delta: &Value, reason: &Value) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

#[tokio::test]
async fn completions_are_answered_alike_streamed_and_whole() {
    let function =
        json!({"name": "compact_recall", "arguments": "{\"query\":\"port metrics run 3\"}"});
    let whole = |message: Value, reason: &str| json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": {"prompt_tokens": 9}});
    let scene = offering(move |sent| match body_of(sent)["stream"].as_bool() {
        Some(true) => events(&[
            chunk(
                &json!({"role": "assistant", "content": "It was 9003."}),
                &Value::Null,
            ),
            chunk(&json!({}), &json!("stop")),
        ]),
        _ => json_reply(
            200,
            &whole(
                json!({"role": "assistant", "content": "It was 9003."}),
                "stop",
            ),
        ),
    })
    .await;
    let mut part = json!({"index": 0, "id": "c1", "type": "function", "function": function});
    scene.script(events(&[
        chunk(
            &json!({"role": "assistant", "content": "Let me look. "}),
            &Value::Null,
        ),
        chunk(&json!({"tool_calls": [part]}), &Value::Null),
        chunk(&json!({}), &json!("tool_calls")),
    ]));
    let answer = scene
        .post("/v1/chat/completions", &[], chat_body(true))
        .await;
    let content: Vec<Value> = answer
        .events()
        .iter()
        .map(|value| value["choices"][0]["delta"]["content"].clone())
        .collect();
    assert_eq!(
        content,
        [json!("Let me look. "), json!("It was 9003."), Value::Null]
    );
    assert!(!answer.text().contains("tool_calls") && check_follow_up(&scene).contains("9003"));

    part.as_object_mut().unwrap().remove("index");
    let asks = json!({"role": "assistant", "content": "Let me look. ", "tool_calls": [part]});
    scene.script(json_reply(200, &whole(asks, "tool_calls")));
    let answer = scene
        .post("/v1/chat/completions", &[], chat_body(false))
        .await;
    let message = &answer.json()["choices"][0]["message"];
    assert_eq!(
        *message,
        json!({"role": "assistant", "content": "Let me look. It was 9003."})
    );
    assert!(check_follow_up(&scene).contains("9003"));
}

#[tokio::test]
async fn a_call_of_the_clients_beside_ours_is_to_be_made_again() {
    let again = || {
        events(&message(
            &[called(0, "Read", "{\"path\":\"a\"}")],
            "tool_use",
        ))
    };
    let scene = offering(move |_| again()).await;
    let asks = [
        called(0, "Read", "{\"path\":\"a\"}"),
        called(1, "compact_recall", "{\"query\":\"port\"}"),
    ];
    scene.script(events(&message(&asks, "tool_use")));
    let answer = scene.post("/v1/messages", &[], claude_body(true)).await;
    assert_eq!(
        answer.events(),
        message(&[called(0, "Read", "{\"path\":\"a\"}")], "tool_use")
    );
    assert!(check_follow_up(&scene).contains("Call it again"));
}

#[tokio::test]
async fn text_passes_before_the_answer_ends() {
    let scene = offering(|_| events(&message(&[spoken(0, "x")], "end_turn"))).await;
    let (sender, stream) = open_stream();
    scene.script(stream);
    let request = client()
        .post(format!("{}/v1/messages", scene.url))
        .body(claude_body(true));
    let sending = async {
        for value in &message(&[spoken(0, "Early words.")], "end_turn")[..3] {
            let line = format!("data: {value}\n\n");
            sender.send(Ok(line.into())).await.unwrap();
        }
    };
    let (response, ()) = tokio::join!(request.send(), sending);
    let mut response = response.unwrap();
    let mut got = String::new();
    while !got.contains("Early words.") {
        let chunk = timeout(Duration::from_secs(20), response.chunk()).await;
        let chunk = chunk.expect("nothing is held back").unwrap();
        got.push_str(std::str::from_utf8(&chunk.expect("the stream is open")).unwrap());
    }
    drop(sender);
}

#[tokio::test]
async fn nothing_is_offered_before_a_compaction_nor_looked_up_in_another_session() {
    let scene = offering(|_| events(&message(&[spoken(0, "Done.")], "end_turn"))).await;
    let short = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 9_000, "stream": true, "tools": tool("anthropic"),
        "messages": [{"role": "user", "content": "Hello."}],
    })
    .to_string();
    scene.post("/v1/messages", &[], short.clone()).await;
    assert_eq!(scene.last_sent().body, short, "byte for byte");

    let first = scene
        .post(
            "/v1/messages",
            &[("x-compact-session", "mine")],
            claude_body(true),
        )
        .await;
    let receipt = first.headers["x-compact-receipt"]
        .to_str()
        .unwrap()
        .to_owned();
    let pointer = json!({"pointer": format!("{receipt}#1")}).to_string();
    let asks = || {
        events(&message(
            &[called(0, "compact_expand", &pointer)],
            "tool_use",
        ))
    };
    let mut other = history(60);
    other[0] = json!({"role": "user", "content": "Something else entirely."});
    let other = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 9_000, "stream": true, "tools": tool("anthropic"), "messages": other,
    });
    for (session, body, is_found) in [
        ("mine", claude_body(true), true),
        ("theirs", other.to_string(), false),
    ] {
        scene.script(asks());
        scene
            .post("/v1/messages", &[("x-compact-session", session)], body)
            .await;
        let answered = check_follow_up(&scene);
        assert_eq!(
            answered.contains("Measure run 0") || answered.contains("Run 0 took"),
            is_found,
            "{answered}"
        );
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_asked_again_ends_in_an_error_of_its_shape() {
    let scene = offering(|_| json_reply(500, &json!({"error": "down"}))).await;
    scene.script(events(&message(
        &[called(0, "compact_recall", "{}")],
        "tool_use",
    )));
    let answer = scene.post("/v1/messages", &[], claude_body(true)).await;
    assert_eq!(
        answer.events().last().unwrap()["type"],
        "error",
        "{}",
        answer.text()
    );
}
