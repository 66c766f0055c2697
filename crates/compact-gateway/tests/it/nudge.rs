//! Clients that are told what their own histories would have cost, because their users asked for that.

use std::sync::{Arc, Mutex};

use axum::response::Response;
use compact::Compact;
use compact::event::{Event, EventKind, EventSink};
use serde_json::json;

use crate::scene::{Answer, Scene, SentRequest, chat_answer, events, long_dialogue};

const WINDOW: u64 = 4_000;

/// Takes what clients were told.
#[derive(Default)]
struct NudgeLog(Mutex<Vec<(u64, u64)>>);

impl EventSink for NudgeLog {
    fn emit(&self, event: &Event) {
        if let EventKind::ClientNudged {
            reported_tokens,
            shown_tokens,
        } = event.kind
        {
            self.0
                .lock()
                .unwrap()
                .push((reported_tokens.0, shown_tokens.0));
        }
    }
}

async fn open_scene(
    nudge_clients: bool,
    answer: impl Fn(&SentRequest) -> Response + Send + Sync + 'static,
) -> (Scene, Arc<NudgeLog>) {
    let log = Arc::new(NudgeLog::default());
    let compact = Compact::builder().in_memory().window(WINDOW);
    let compact = compact.event_sink(log.clone()).build().unwrap();
    let change = |config: &mut compact::config::GatewayConfig| config.nudge_clients = nudge_clients;
    (Scene::with(compact, change, answer).await, log)
}

fn message_events(sent: &SentRequest) -> Response {
    let usage = json!({"input_tokens": 100, "cache_read_input_tokens": sent.body.len() / 4 - 100, "output_tokens": 1});
    events(&[
        json!({"type": "message_start", "message": {"role": "assistant", "usage": usage}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
    ])
}

fn prompt_of(answer: &Answer) -> u64 {
    match answer.headers["content-type"].as_bytes() {
        b"text/event-stream" => {
            let usage = &answer.events()[0]["message"]["usage"];
            let count = |name: &str| usage[name].as_u64().unwrap();
            count("input_tokens") + count("cache_read_input_tokens")
        }
        _ => answer.json()["usage"]["prompt_tokens"].as_u64().unwrap(),
    }
}

/// Sends a history of so many turns, and returns what came back, what was sent on, and what came.
async fn ask(scene: &Scene, target: &str, turns: usize) -> (Answer, usize, usize) {
    let mut messages = long_dialogue(turns);
    messages.push(json!({"role": "user", "content": "Go on."}));
    let body = json!({"model": "claude-sonnet-4-5", "max_tokens": 9_000, "messages": messages})
        .to_string();
    let headers = [("x-compact-session", target), ("accept-encoding", "gzip")];
    let answer = scene.post(target, &headers, body.clone()).await;
    (answer, scene.last_sent().body.len(), body.len())
}

#[tokio::test]
async fn what_is_reported_passes_as_it_is_unless_somebody_asked() {
    let (scene, log) = open_scene(false, chat_answer).await;
    let (answer, sent, came) = ask(&scene, "/v1/chat/completions", 40).await;
    assert!(sent < came, "a view was sent");
    assert_eq!(prompt_of(&answer), (sent / 4) as u64);
    assert_eq!(log.0.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_nudged_client_hears_what_its_own_history_would_have_cost() {
    for (target, answers) in [
        (
            "/v1/chat/completions",
            chat_answer as fn(&SentRequest) -> Response,
        ),
        ("/v1/messages", message_events),
    ] {
        let (scene, log) = open_scene(true, answers).await;
        let (answer, sent, came) = ask(&scene, target, 1).await;
        assert_eq!(
            (sent, prompt_of(&answer)),
            (came, (came / 4) as u64),
            "as it is"
        );
        let (answer, sent, came) = ask(&scene, target, 40).await;
        let (reported, shown) = ((sent / 4) as u64, prompt_of(&answer));
        // A token that was rounded off is so many of the history's.
        let rounded = came.div_ceil(sent) as u64;
        assert!(
            shown.abs_diff((came / 4) as u64) <= rounded,
            "{shown} for {came} bytes"
        );
        assert_eq!(*log.0.lock().unwrap(), [(reported, shown)]);
        assert!(
            !scene.last_sent().headers.contains_key("accept-encoding"),
            "it must be read"
        );
        assert!(answer.text().contains("Done."), "{}", answer.text());
        let metrics = scene.get("/metrics").await;
        assert!(metrics.text().contains("compact_gateway_nudges_total 1"));
        // What was counted is what was reported.
        let kind = if target.ends_with("messages") {
            "cache_read"
        } else {
            "input"
        };
        let upstream = if target.ends_with("messages") {
            "anthropic"
        } else {
            "openai"
        };
        let counted = format!("usage_tokens_total{{upstream=\"{upstream}\",kind=\"{kind}\"}} ");
        let line = metrics
            .text()
            .lines()
            .find_map(|line| line.split_once(&counted).map(|(_, n)| n.to_owned()));
        assert!(line.unwrap().parse::<u64>().unwrap() < 2 * WINDOW);
    }
}

#[tokio::test]
async fn an_error_and_a_stream_without_a_report_are_no_nudge() {
    let (scene, log) = open_scene(true, chat_answer).await;
    let silent = json!({"choices": [{"index": 0, "delta": {"content": "Done."}}]});
    scene.script(events(std::slice::from_ref(&silent)));
    let (answer, _, _) = ask(&scene, "/v1/chat/completions", 40).await;
    assert_eq!(answer.events(), [silent]);
    let error = json!({"error": {"message": "overloaded", "usage": {"prompt_tokens": 5}}});
    scene.script(crate::scene::json_reply(529, &error));
    let (answer, _, _) = ask(&scene, "/v1/chat/completions", 41).await;
    assert_eq!((answer.status, answer.json()), (529, error));
    assert_eq!(log.0.lock().unwrap().len(), 0);
}
