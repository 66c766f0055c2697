mod fault;
mod server;

use bytes::Bytes;
use compact_core::prompt::AnswerFinish;
use compact_runtime::port::embedder;
use compact_runtime::port::summarizer::conformance::{self, sample_question};

use super::*;
use server::{Act, Server};

const WIRES: [SummarizerWire; 5] = [
    SummarizerWire::Chat,
    SummarizerWire::Responses,
    SummarizerWire::Anthropic,
    SummarizerWire::OpenAiCompaction,
    SummarizerWire::AnthropicCompaction,
];

/// Less than the half minute that a server asks for in some tests.
const PATIENCE: Duration = Duration::from_secs(20);

fn says(text: &str) -> Act {
    Act::Says(text.to_owned())
}

fn refuses(status: u16, message: &str) -> Act {
    Act::Answers(
        status,
        "",
        json!({"error": {"message": message}}).to_string(),
    )
}

/// A summarizer that waits as long as a busy machine may take.
fn summarizer(wire: SummarizerWire, server: &Server) -> HttpSummarizer {
    let mut endpoint = Endpoint::new(&server.url, Some(ApiKey::new("sk-very-secret")));
    endpoint.timeout = PATIENCE;
    HttpSummarizer {
        wire,
        endpoint,
        model: Some("m".to_owned()),
        window: None,
        manner: RequestMode::Standalone,
        most_requests: 8,
    }
}

#[tokio::test]
async fn every_wire_conforms() {
    for wire in WIRES {
        let server = Server::start([says("the port is 8080")]).await;
        conformance::suite(&summarizer(wire, &server)).await;
    }
}

#[tokio::test]
async fn embeddings_conform_and_keep_their_order() {
    let server = Server::start([says("")]).await;
    let embedder = HttpEmbedder {
        endpoint: Endpoint::new(&server.url, None),
        model: "e".to_owned(),
    };
    embedder::conformance::suite(&embedder).await;
    use embedder::Embedder;
    let vectors = embedder.embed(&["a".to_owned(), "bbb".to_owned()]).await;
    assert_eq!(vectors.unwrap(), [[1.0, 1.0], [3.0, 1.0]]);
    assert!(!server.heard()[0].head.contains("authorization"));
}

#[tokio::test]
async fn requests_ask_for_the_least_random_answer_and_have_no_tools() {
    for (wire, expected) in [
        (
            SummarizerWire::Chat,
            json!({"model": "m", "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "P"}],
            "max_tokens": 9, "temperature": 0, "seed": 7}),
        ),
        (
            SummarizerWire::Responses,
            json!({"model": "m", "instructions": "S", "input": [{"role": "user", "content": "P"}],
            "max_output_tokens": 9, "temperature": 0, "store": false}),
        ),
        (
            SummarizerWire::Anthropic,
            json!({"model": "m", "system": "S", "messages": [{"role": "user", "content": "P"}],
            "max_tokens": 9, "temperature": 0}),
        ),
    ] {
        let server = Server::start([says("fine")]).await;
        let question = ModelQuestion {
            system: "S".into(),
            prompt: "P".into(),
            limit: Tokens(9),
            model: Some("session's".into()),
            ..sample_question()
        };
        let answer = summarizer(wire, &server).answer(&question).await.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.finish),
            ("fine", AnswerFinish::Complete)
        );
        assert_eq!(
            (answer.prompt_tokens, answer.cached_tokens),
            (Some(10), Some(4)),
            "{wire:?}"
        );
        let heard = &server.heard()[0];
        assert_eq!(heard.json(), expected);
        let key = match wire {
            SummarizerWire::Anthropic => "x-api-key: sk-very-secret",
            _ => "authorization: Bearer sk-very-secret",
        };
        assert!(heard.head.contains(key), "{}", heard.head);
    }
}

#[tokio::test]
async fn its_own_model_counts_and_else_the_sessions() {
    let server = Server::start([says("fine")]).await;
    let own = summarizer(SummarizerWire::Chat, &server);
    own.answer(&sample_question()).await.unwrap();
    let borrowed = HttpSummarizer {
        model: None,
        ..summarizer(SummarizerWire::Chat, &server)
    };
    borrowed.answer(&sample_question()).await.unwrap();
    let asked: Vec<Value> = server
        .heard()
        .iter()
        .map(|h| h.json()["model"].clone())
        .collect();
    assert_eq!(asked, ["m", "session-model"]);
    assert!(
        server
            .heard()
            .iter()
            .all(|h| h.json().get("tools").is_none())
    );
    let nobody = ModelQuestion {
        model: None,
        ..sample_question()
    };
    let error = borrowed.answer(&nobody).await.unwrap_err().to_string();
    assert!(error.contains("summarizer.model"), "{error}");
}

#[tokio::test]
async fn a_key_is_never_told() {
    let server = Server::start([refuses(
        401,
        "Incorrect API key provided: sk-very-secret. Go away.",
    )])
    .await;
    let summarizer = summarizer(SummarizerWire::Chat, &server);
    assert!(!format!("{summarizer:?}").contains("very-secret"));
    let error = summarizer.answer(&sample_question()).await.unwrap_err();
    let told = format!("{error} {error:?} {}", error.kind());
    assert!(
        told.contains("401") && !told.contains("very-secret"),
        "{told}"
    );
    assert_eq!(server.heard().len(), 1, "a wrong key is not tried again");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start([says("stolen")]).await;
    let to = format!("location: {}/chat/completions\r\n", elsewhere.url);
    let server = Server::start([Act::Answers(
        307,
        Box::leak(to.into_boxed_str()),
        String::new(),
    )])
    .await;
    let error = summarizer(SummarizerWire::Chat, &server)
        .answer(&sample_question())
        .await
        .unwrap_err();
    assert!(
        matches!(error, SummarizerError::Rejected { status: 307, .. }),
        "{error}"
    );
    assert!(elsewhere.heard().is_empty());
}

#[tokio::test]
async fn a_field_that_a_model_refuses_is_renamed_or_left_out() {
    let server = Server::start([
        refuses(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        refuses(400, "Unsupported value: 'temperature' does not support 0 with this model."),
        says("fine"),
    ])
    .await;
    summarizer(SummarizerWire::Chat, &server)
        .answer(&sample_question())
        .await
        .unwrap();
    let body = server.heard().last().unwrap().json();
    assert_eq!(body["max_completion_tokens"], 64);
    assert!(body.get("max_tokens").is_none() && body.get("temperature").is_none());
    let server = Server::start([refuses(400, "messages must not be empty")]).await;
    summarizer(SummarizerWire::Chat, &server)
        .answer(&sample_question())
        .await
        .unwrap_err();
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn a_model_that_thinks_first_is_asked_in_the_fields_that_it_takes() {
    for (wire, expected) in [
        (
            SummarizerWire::Chat,
            json!({"model": "gpt-5", "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "P"}],
            "max_completion_tokens": 4105, "reasoning_effort": "low"}),
        ),
        (
            SummarizerWire::Responses,
            json!({"model": "gpt-5", "instructions": "S", "input": [{"role": "user", "content": "P"}],
            "max_output_tokens": 4105, "reasoning": {"effort": "low"}, "store": false}),
        ),
    ] {
        let picky = refuses(
            400,
            "Unsupported value: 'reasoning.effort' does not support 'low'",
        );
        let server = Server::start([says("fine"), picky, says("fine")]).await;
        let thinking = HttpSummarizer {
            model: Some("gpt-5".to_owned()),
            ..summarizer(wire, &server)
        };
        let question = ModelQuestion {
            system: "S".into(),
            prompt: "P".into(),
            limit: Tokens(9),
            ..sample_question()
        };
        thinking.answer(&question).await.unwrap();
        assert_eq!(server.heard()[0].json(), expected);
        if wire == SummarizerWire::Responses {
            thinking.answer(&question).await.unwrap();
            assert!(server.heard()[2].json().get("reasoning").is_none());
        }
    }
}

#[test]
fn a_word_that_is_no_key_does_not_garble_what_a_server_says() {
    let said = "unknown model: ask for another";
    assert_eq!(ApiKey::new("k").scrub(said), said);
    assert_eq!(
        ApiKey::new("sk-very-secret").scrub("sk-very-secret?"),
        "[key]?"
    );
}

fn going_on(body: &Value) -> ModelQuestion {
    ModelQuestion {
        system: String::new(),
        prompt: "Summarize.".into(),
        conversation: Some(Bytes::from(body.to_string())),
        ..sample_question()
    }
}

#[tokio::test]
async fn a_cache_aligned_request_keeps_the_conversation_and_appends_the_instruction() {
    for (wire, list, forbids) in [
        (SummarizerWire::Chat, "messages", true),
        (SummarizerWire::Responses, "input", true),
        (SummarizerWire::Anthropic, "messages", false),
    ] {
        let server = Server::start([says("fine")]).await;
        let messages =
            json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]);
        let mut body =
            json!({"model": "theirs", "stream": true, "tools": [{"name": "ls"}], "top_p": 0.5});
        set_field(&mut body, list, messages.clone());
        let asked = summarizer(wire, &server);
        asked.answer(&going_on(&body)).await.unwrap();
        let sent = server.heard()[0].json();
        let sent_messages = sent[list].as_array().unwrap();
        assert_eq!(sent_messages[..2], *messages.as_array().unwrap());
        assert_eq!(
            sent_messages[2],
            json!({"role": "user", "content": "Summarize."})
        );
        assert_eq!(
            (&sent["tools"], &sent["top_p"]),
            (&body["tools"], &body["top_p"])
        );
        assert_eq!(sent.get("tool_choice").is_some(), forbids, "{wire:?}");
        assert!(sent.get("stream").is_none());
    }
}

#[tokio::test]
async fn a_conversation_that_waits_for_results_is_not_gone_on_from() {
    let server = Server::start([says("fine")]).await;
    let open = json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]});
    let error = summarizer(SummarizerWire::Chat, &server)
        .answer(&going_on(&open))
        .await
        .unwrap_err();
    assert!(matches!(error, SummarizerError::Unsuitable(_)), "{error}");
    assert!(server.heard().is_empty());
}

#[tokio::test]
async fn the_providers_own_compaction_is_read_out_as_text() {
    let server = Server::start([says("told")]).await;
    let body =
        json!({"model": "x", "instructions": "I", "input": [{"role": "user", "content": "hi"}]});
    let answer = summarizer(SummarizerWire::OpenAiCompaction, &server)
        .answer(&going_on(&body))
        .await
        .unwrap();
    assert_eq!(answer.text, "told");
    let heard = server.heard();
    assert!(heard[0].head.starts_with("POST /v1/responses/compact "));
    assert_eq!(
        heard[0].json(),
        json!({"model": "m", "input": body["input"], "instructions": "I"})
    );
    assert_eq!(heard[1].json()["input"][0]["encrypted_content"], "sealed");

    let body = json!({"messages": [{"role": "user", "content": "hi"}], "context_management": {}, "max_tokens": 1});
    let answer = summarizer(SummarizerWire::AnthropicCompaction, &server)
        .answer(&going_on(&body))
        .await
        .unwrap();
    assert_eq!(answer.text, "told");
    let sent = server.heard().pop().unwrap();
    assert!(sent.head.contains("anthropic-beta: compact-2026-09-04"));
    assert_eq!(
        sent.json()["compaction"],
        json!({"type": "summarize", "instructions": "Summarize."})
    );
    assert!(sent.json().get("context_management").is_none());
}

#[test]
fn a_summarizer_says_what_it_is() {
    let of = |wire, manner| HttpSummarizer {
        wire,
        endpoint: Endpoint::new("http://localhost", None),
        model: Some("gpt-4o-mini".to_owned()),
        window: None,
        manner,
        most_requests: 0,
    };
    let about = of(SummarizerWire::Chat, RequestMode::Standalone).describe();
    assert_eq!(about.name, "openai gpt-4o-mini");
    assert_eq!(
        (about.window, about.continues),
        (Some(Tokens(128_000)), None)
    );
    assert_eq!(
        of(SummarizerWire::Chat, RequestMode::CacheAligned)
            .describe()
            .continues,
        Some("openai-chat")
    );
    assert_eq!(
        of(SummarizerWire::AnthropicCompaction, RequestMode::Standalone)
            .describe()
            .continues,
        Some("anthropic")
    );
}
