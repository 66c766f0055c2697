//! Prompts that an upstream refuses as too long: made smaller and sent once more, in every shape of refusal.

use axum::response::Response;
use serde_json::{Value, json};

use crate::scene::{Scene, SentRequest, chat_answer, events, json_reply, reply};

/// The upstream takes less than the registry believes.
const LIMIT: usize = 6_000;

fn messages(turns: usize) -> Vec<Value> {
    let turn = |n: usize| {
        [
            json!({"role": "user", "content": format!("Measure run {n}.")}),
            json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(40)}),
        ]
    };
    let mut messages: Vec<Value> = (0..turns).flat_map(turn).collect();
    messages.push(json!({"role": "user", "content": "Go on."}));
    messages
}

fn limited(request: &SentRequest) -> Response {
    let tokens = request.body.len() / 4;
    if tokens <= LIMIT {
        return chat_answer(request);
    }
    let message = format!(
        "This model's maximum context length is {LIMIT} tokens. However, your messages resulted in {tokens} tokens."
    );
    json_reply(
        400,
        &json!({"error": {"message": message, "code": "context_length_exceeded"}}),
    )
}

#[tokio::test]
async fn an_error_is_answered_with_a_smaller_prompt_and_the_limit_is_learned() {
    let scene = Scene::new(100_000, limited).await;
    let body = |n| json!({"model": "gpt-5", "messages": messages(n)}).to_string();
    let first = scene.post("/v1/chat/completions", &[], body(60)).await;
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(scene.sent().len(), 2, "refused once, then smaller");
    // Another session knows the limit from the start.
    let other = json!({"model": "gpt-5", "messages": messages(61)[2..]}).to_string();
    let second = scene.post("/v1/chat/completions", &[], other).await;
    assert_eq!(
        (second.status, scene.sent().len()),
        (200, 3),
        "{}",
        second.text()
    );
    let metrics = scene.get("/metrics").await;
    let counted = "compact_gateway_overflows_total{upstream=\"openai\",outcome=\"retried\"} 1\n";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
}

#[tokio::test]
async fn a_refusal_of_the_smaller_prompt_is_relayed_word_for_word() {
    let refusal = json!({"error": {"message": "prompt is too long", "code": "context_length_exceeded", "n": 1}});
    let again = refusal.clone();
    let scene = Scene::new(20_000, move |_| json_reply(400, &again)).await;
    let body = json!({"model": "gpt-5", "messages": messages(60)}).to_string();
    let answer = scene.post("/v1/chat/completions", &[], body).await;
    assert_eq!((answer.status, answer.json()), (400, refusal));
    assert_eq!(scene.sent().len(), 2);
}

#[tokio::test]
async fn other_errors_are_relayed_at_once() {
    let scene = Scene::new(20_000, chat_answer).await;
    let body = json!({"model": "gpt-5", "messages": messages(3)}).to_string();
    for status in [400, 401, 429, 500, 529] {
        let error = json!({"error": {"message": "no", "n": status}});
        scene.script(json_reply(status, &error));
        let answer = scene.post("/v1/chat/completions", &[], body.clone()).await;
        assert_eq!((answer.status, answer.json()), (status, error));
    }
    assert_eq!(scene.sent().len(), 5);
}

#[tokio::test]
async fn a_history_that_wants_a_short_answer_is_compacted_like_any_other() {
    let scene = Scene::new(100_000, limited).await;
    let body = |n| json!({"model": "gpt-5", "max_tokens": 16, "messages": messages(n)}).to_string();
    let repaired = scene.post("/v1/chat/completions", &[], body(60)).await;
    assert_eq!(repaired.status, 200, "{}", repaired.text());
    assert_eq!(scene.sent().len(), 2, "refused once, then smaller");
    let title = json!({"model": "gpt-5", "max_tokens": 16, "messages": [
        {"role": "system", "content": "Give a title."}, {"role": "user", "content": "hi"},
    ]});
    let beside = scene.post("/v1/chat/completions", &[], title.to_string());
    assert!(!beside.await.headers.contains_key("x-compact-session"));
    let metrics = scene.get("/metrics").await;
    for class in ["main", "probe"] {
        let counted =
            format!("requests_total{{class=\"{class}\",upstream=\"openai\",status=\"200\"}} 1\n");
        assert!(metrics.text().contains(&counted), "{}", metrics.text());
    }
}

fn responses_body(turns: usize) -> String {
    let input: Vec<Value> = messages(turns);
    json!({"model": "gpt-5", "stream": true, "store": false, "input": input}).to_string()
}

fn done() -> Response {
    events(&[
        json!({"type": "response.created", "response": {"id": "r"}}),
        json!({"type": "response.completed", "response": {"id": "r", "usage": {"input_tokens": 3000, "output_tokens": 5}}}),
    ])
}

#[tokio::test]
async fn a_stream_that_fails_after_its_opening_is_tried_again() {
    let scene = Scene::new(10_000, chat_answer).await;
    let error = json!({"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."});
    scene.script(events(&[
        json!({"type": "response.created", "response": {"id": "r"}}),
        json!({"type": "response.in_progress", "response": {"id": "r"}}),
        json!({"type": "response.failed", "response": {"id": "r", "status": "failed", "error": error}}),
    ]));
    scene.script(done());
    let answer = scene.post("/v1/responses", &[], responses_body(22)).await;
    assert!(
        answer.text().contains("response.completed"),
        "{}",
        answer.text()
    );
    assert!(
        !answer.text().contains("response.failed"),
        "{}",
        answer.text()
    );
    let sent = scene.sent();
    assert_eq!(sent.len(), 2);
    assert!(sent[1].body.len() < sent[0].body.len());
}

#[tokio::test]
async fn an_empty_stream_of_a_large_prompt_is_tried_again_and_of_a_small_one_relayed() {
    let scene = Scene::new(10_000, chat_answer).await;
    scene.script(reply(200, "text/event-stream", ""));
    scene.script(done());
    let answer = scene.post("/v1/responses", &[], responses_body(22)).await;
    assert!(
        answer.text().contains("response.completed"),
        "{}",
        answer.text()
    );
    scene.script(reply(200, "text/event-stream", ""));
    let answer = scene
        .post(
            "/v1/responses",
            &[("x-compact-session", "small")],
            responses_body(1),
        )
        .await;
    assert_eq!((answer.status, answer.text()), (200, ""));
    assert_eq!(scene.sent().len(), 3);
}

#[tokio::test]
async fn instructions_that_do_not_fit_are_counted_whole() {
    let scene = Scene::new(20_000, chat_answer).await;
    let mut all = vec![json!({"role": "system", "content": "Heed the rule. ".repeat(10_000)})];
    all.extend(messages(3));
    let body = json!({"model": "gpt-5", "messages": all}).to_string();
    let answer = scene.post("/v1/chat/completions", &[], body).await;
    assert_eq!((answer.status, scene.sent().len()), (400, 0));
    let says = answer.text();
    let tokens = says.split("resulted in ").nth(1).unwrap();
    let tokens: u64 = tokens.split(' ').next().unwrap().parse().unwrap();
    assert!(tokens > 35_000, "{says}");
}
