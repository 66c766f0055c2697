use serde_json::json;

use super::*;

/// One answer per line with the provider it is from, and the numbers in it.
const REFUSALS: &str = include_str!("refusals.jsonl");

/// What providers refuse for other reasons.
const OTHERS: &str = include_str!("others.jsonl");

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn found_in(line: &Value) -> Option<Overflow> {
    let status = line["status"].as_u64().unwrap() as u16;
    find_in_response(
        status,
        Some("application/json"),
        line["body"].to_string().as_bytes(),
    )
}

#[test]
fn every_refusal_is_recognised_with_its_numbers() {
    for line in lines(REFUSALS) {
        let number = |key: &str| line[key].as_u64().map(Tokens);
        let expected = Overflow {
            tokens: number("tokens"),
            limit: number("limit"),
            sign: OverflowSign::Said,
        };
        assert_eq!(found_in(&line), Some(expected), "{line}");
    }
}

#[test]
fn no_other_error_is_taken_for_one() {
    for line in lines(OTHERS) {
        assert_eq!(found_in(&line), None, "{line}");
    }
    assert_eq!(find_in_response(400, None, b""), None);
    assert_eq!(find_in_response(400, None, &[0xff, 0xfe]), None);
}

#[test]
fn a_refusal_in_plain_text_is_recognised() {
    let found = find_in_response(
        400,
        Some("text/plain"),
        b"prompt is too long: 10 tokens > 5 maximum",
    );
    let numbers = found.map(|o| (o.tokens, o.limit));
    assert_eq!(numbers, Some((Some(Tokens(10)), Some(Tokens(5)))));
    assert!(
        find_in_response(
            413,
            Some("text/html"),
            b"<h1>413 Request Entity Too Large</h1>"
        )
        .is_some()
    );
}

#[test]
fn an_answer_that_went_well_may_say_it_too() {
    let stream = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"model_context_window_exceeded\"},\"usage\":{\"output_tokens\":3}}\n\n";
    let failed = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}}\n\n";
    let late = "data: {\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 10 tokens > 5 maximum\"}}\n\n";
    for body in [stream, failed, late] {
        let found = find_in_response(200, Some("text/event-stream"), body.as_bytes());
        assert_eq!(found.map(|o| o.sign), Some(OverflowSign::Said), "{body}");
    }
    let result = json!({"type": "result", "is_error": true, "result": "Prompt is too long"});
    assert!(find_in_event(&result).is_some());
    let message =
        json!({"type": "message", "stop_reason": "model_context_window_exceeded", "content": []});
    assert!(find_in_response(200, None, message.to_string().as_bytes()).is_some());
}

#[test]
fn a_model_that_talks_of_it_has_not_overflowed() {
    let talk = json!({"choices": [{"message": {"content": "prompt is too long: 10 tokens > 5 maximum"}}], "error": null});
    assert_eq!(
        find_in_response(200, None, talk.to_string().as_bytes()),
        None
    );
    let stream = format!("data: {talk}\n\ndata: [DONE]\n\n");
    assert_eq!(
        find_in_response(200, Some("text/event-stream"), stream.as_bytes()),
        None
    );
    let result = json!({"type": "result", "is_error": false, "result": "Prompt is too long"});
    assert_eq!(find_in_event(&result), None);
}

#[test]
fn a_stream_without_events_is_a_silent_sign() {
    for body in ["", "\n\n", ": keep-alive\n\n"] {
        let found = find_in_response(
            200,
            Some("text/event-stream; charset=utf-8"),
            body.as_bytes(),
        );
        assert_eq!(
            found.map(|o| o.sign),
            Some(OverflowSign::Silent),
            "{body:?}"
        );
    }
    assert_eq!(
        find_in_response(200, Some("text/event-stream"), b"data: [DONE]\n\n"),
        None
    );
    assert_eq!(find_in_response(204, None, b""), None);
}

proptest::proptest! {
    #[test]
    fn no_body_breaks_the_reader(status in 0_u16..700, body in proptest::collection::vec(proptest::num::u8::ANY, 0..200), text in "[a-z0-9 {}\":,\\[\\]]{0,80}") {
        let _ = find_in_response(status, Some("text/event-stream"), &body);
        let _ = find_in_response(status, None, text.as_bytes());
    }
}
