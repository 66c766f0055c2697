//! Summaries that a model writes for an agent: what they lost is added before they end.

use compact::config::{CompactionAnswer, GatewayConfig};
use http::Method;
use serde_json::{Value, json};

use crate::scene::{
    Answer, RULE, Scene, SentRequest, chat_answer, events, json_reply, long_dialogue, reply,
};

/// What the model writes: a summary that lost the rule.
const WRITTEN: &str = "<summary>\nRuns were measured.\n</summary>";

/// Where an event of Anthropic's has its text.
const MESSAGE_TEXT: &str = "/delta/text";

async fn augmenting(
    otherwise: impl Fn(&SentRequest) -> axum::response::Response + Send + Sync + 'static,
) -> Scene {
    let compact = compact::Compact::builder().in_memory().window(40_000);
    let change = |config: &mut GatewayConfig| config.answer_compaction = CompactionAnswer::Augment;
    Scene::with(compact.build().unwrap(), change, otherwise).await
}

fn claude_body(stream: bool) -> String {
    let mut messages = long_dialogue(12);
    let question = "Your task is to create a detailed summary of the conversation so far, paying close attention to …";
    messages.push(json!({"role": "user", "content": [{"type": "text", "text": question}]}));
    json!({"model": "claude-sonnet-4-5", "max_tokens": 20000, "stream": stream, "messages": messages})
        .to_string()
}

const CLAUDE: [(&str, &str); 2] = [
    ("x-claude-code-session-id", "s1"),
    ("accept-encoding", "gzip"),
];

fn message_events() -> axum::response::Response {
    let (first, second) = WRITTEN.split_at(20);
    let delta = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 5}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        delta(first),
        delta(second),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ])
}

/// What an answer says, delta by delta.
fn texts(answer: &Answer, pointer: &str) -> String {
    let events = answer.events();
    let texts = events
        .iter()
        .filter_map(|event| event.pointer(pointer)?.as_str());
    texts.collect()
}

#[tokio::test]
async fn what_a_streamed_summary_lost_is_added_and_the_session_goes_on() {
    let scene = augmenting(|_| message_events()).await;
    let body = claude_body(true);
    let answer = scene.post("/v1/messages", &CLAUDE, body.clone()).await;
    let sent = scene.last_sent();
    assert_eq!(sent.body, body, "the model is asked as the agent asks");
    assert_eq!(
        sent.headers.get("accept-encoding"),
        None,
        "what is added to must be read"
    );
    let text = texts(&answer, MESSAGE_TEXT);
    assert!(text.starts_with(WRITTEN) && text.contains(RULE), "{text}");
    assert!(
        answer
            .text()
            .trim_end()
            .ends_with("{\"type\":\"message_stop\"}")
    );
    let receipt = answer.headers["x-compact-receipt"].to_str().unwrap();
    assert!(text.contains(receipt), "{text}");
    let metrics = scene.get("/metrics").await;
    let usage = "usage_tokens_total{upstream=\"anthropic\",kind=\"output\"} 9";
    assert!(metrics.text().contains(usage), "{}", metrics.text());

    // The next history opens with the summary, under another session header or none.
    scene.script(json_reply(200, &json!({"content": [], "usage": {}})));
    let next = json!({"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": [
        {"role": "user", "content": format!("This session is continued.\n{text}\nGo on.")},
    ]});
    let answer = scene.post("/v1/messages", &[], next.to_string()).await;
    assert_eq!(answer.headers["x-compact-session"], "s1");
}

#[tokio::test]
async fn a_whole_summary_gets_it_too_and_one_that_has_all_gets_nothing() {
    let scene = augmenting(|_| {
        json_reply(
            200,
            &json!({"content": [{"type": "text", "text": WRITTEN}], "usage": {}}),
        )
    })
    .await;
    let answer = scene
        .post("/v1/messages", &CLAUDE, claude_body(false))
        .await;
    let text = answer.json()["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.starts_with(WRITTEN) && text.contains(RULE), "{text}");

    let everything: String = long_dialogue(12)
        .iter()
        .map(|message| format!("{}\n", message["content"].as_str().unwrap()))
        .collect();
    let whole = json!({"content": [{"type": "text", "text": everything}], "usage": {}});
    scene.script(json_reply(200, &whole));
    let answer = scene
        .post("/v1/messages", &CLAUDE, claude_body(false))
        .await;
    assert_eq!(answer.json(), whole);
}

#[tokio::test]
async fn where_the_model_gives_none_the_engine_does() {
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}});
    let failures: [fn(&Value) -> axum::response::Response; 3] = [
        |refusal| json_reply(400, refusal),
        |_| reply(529, "text/plain", "overloaded"),
        |_| events(&[]),
    ];
    let scene = augmenting(chat_answer).await;
    for fail in failures {
        scene.script(fail(&refusal));
        let answer = scene.post("/v1/messages", &CLAUDE, claude_body(true)).await;
        assert_eq!(answer.status, 200);
        let text = texts(&answer, MESSAGE_TEXT);
        assert!(
            text.starts_with("<summary>\n<COMPACT-SUMMARY") && text.contains(RULE),
            "{text}"
        );
    }
}

#[tokio::test]
async fn codex_gemini_and_opencode_get_it_in_their_own_shapes() {
    let item = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Measured."}]});
    let scene = augmenting(move |sent| match &*sent.target {
        target if target.ends_with("/responses") => events(&[
            json!({"type": "response.created", "response": {}}),
            json!({"type": "response.output_text.delta", "item_id": "m", "delta": "Measured."}),
            json!({"type": "response.output_item.done", "item": item}),
            json!({"type": "response.completed", "response": {"output": [item]}}),
        ]),
        target if target.contains("GenerateContent") => events(&[json!({"candidates": [
            {"content": {"parts": [{"text": "<state_snapshot>Measured.</state_snapshot>"}]}, "finishReason": "STOP"},
        ]})]),
        _ => events(&[
            json!({"choices": [{"index": 0, "delta": {"content": "Measured."}, "finish_reason": null}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        ]),
    })
    .await;
    let mut input = long_dialogue(12);
    input.push(json!({"role": "user", "content": "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary …"}));
    let body = json!({"model": "gpt-5", "stream": true, "store": false, "input": input});
    let answer = scene
        .post("/v1/responses", &[("session-id", "c1")], body.to_string())
        .await;
    assert_eq!(
        answer.text().matches(RULE).count(),
        2,
        "in the item and in the whole: {}",
        answer.text()
    );

    let contents: Vec<Value> = long_dialogue(12)
        .iter()
        .map(|message| {
            let role = if message["role"] == "user" {
                "user"
            } else {
                "model"
            };
            json!({"role": role, "parts": [{"text": message["content"]}]})
        })
        .collect();
    let instruction = json!({"parts": [{"text": "Write a <state_snapshot> of the history."}]});
    let body = json!({"contents": contents, "systemInstruction": instruction});
    let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    let answer = scene.post(path, &[], body.to_string()).await;
    assert!(answer.text().contains(RULE), "{}", answer.text());

    let mut messages = long_dialogue(12);
    messages.push(json!({"role": "user", "content": "Provide a detailed prompt for continuing our conversation above."}));
    let body = json!({"model": "gpt-5", "stream": true, "messages": messages});
    let answer = scene
        .post(
            "/v1/chat/completions",
            &[("x-session-id", "o1")],
            body.to_string(),
        )
        .await;
    let content = texts(&answer, "/choices/0/delta/content");
    assert!(
        content.starts_with("Measured.") && content.contains(RULE),
        "{content}"
    );
    assert_eq!(scene.last_sent().method, Method::POST);

    // What only its provider can read cannot be added to: the engine answers.
    let asked = scene.sent().len();
    let mut input = long_dialogue(12);
    input.push(json!({"type": "compaction_trigger"}));
    let body = json!({"model": "gpt-5", "stream": true, "store": false, "input": input});
    let answer = scene
        .post("/v1/responses", &[("session-id", "c2")], body.to_string())
        .await;
    assert!(answer.text().contains("compact1:") && answer.text().contains(RULE));
    assert_eq!(scene.sent().len(), asked, "no model was asked");
}
