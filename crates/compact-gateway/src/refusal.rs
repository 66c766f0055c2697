//! Errors of the gateway's own, each in the shape that the client's provider gives its errors.

use axum::body::Body;
use axum::response::Response;
use compact::format::validate::Provider;
use compact::token::Tokens;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

/// Says that sending the same again is of no use; clients of Anthropic obey it.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// How an answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// As one document.
    Whole,
    /// As events, as they come.
    Events,
}

/// A prompt that no view brings within its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong {
    pub(crate) tokens: Tokens,
    pub(crate) window: Tokens,
}

/// Returns an error in words.
pub(crate) fn refuse(provider: Provider, status: StatusCode, message: &str) -> Response {
    let value = error_value(provider, status, message, None);
    let mut answer = json_answer(status, &value);
    if status == StatusCode::TOO_MANY_REQUESTS {
        let never = HeaderValue::from_static("false");
        answer.headers_mut().insert(SHOULD_RETRY, never);
    }
    answer
}

/// Returns the error of a provider whose window is too small for a prompt.
pub(crate) fn refuse_overflow(provider: Provider, form: AnswerForm, too_long: TooLong) -> Response {
    let TooLong { tokens, window } = too_long;
    let (tokens, window) = (tokens.0, window.0);
    let message = match provider {
        Provider::Anthropic => format!("prompt is too long: {tokens} tokens > {window} maximum"),
        Provider::Gemini => format!(
            "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        ),
        Provider::OpenAiChat | Provider::OpenAiResponses => format!(
            "This model's maximum context length is {window} tokens. However, your messages resulted \
             in {tokens} tokens. Please reduce the length of the messages."
        ),
    };
    let status = StatusCode::BAD_REQUEST;
    let code = Some("context_length_exceeded");
    if provider == Provider::OpenAiResponses && form == AnswerForm::Events {
        return failed_response(&message);
    }
    let mut answer = json_answer(status, &error_value(provider, status, &message, code));
    answer
        .headers_mut()
        .insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    answer
}

/// Returns a stream of Responses that fails at once, as the provider's own does.
fn failed_response(message: &str) -> Response {
    let error = json!({"code": "context_length_exceeded", "message": message});
    let response =
        json!({"id": "resp_compact", "object": "response", "status": "failed", "error": error});
    let event = json!({"type": "response.failed", "sequence_number": 0, "response": response});
    let mut answer = Response::new(Body::from(format!(
        "event: response.failed\ndata: {event}\n\n"
    )));
    let kind = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

fn error_value(provider: Provider, status: StatusCode, message: &str, code: Option<&str>) -> Value {
    let kind = match status.as_u16() {
        401 | 403 => "authentication_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    match provider {
        Provider::Anthropic => {
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Provider::Gemini => {
            let name = match status.as_u16() {
                401 | 403 => "PERMISSION_DENIED",
                429 => "RESOURCE_EXHAUSTED",
                400..=499 => "INVALID_ARGUMENT",
                _ => "UNAVAILABLE",
            };
            json!({"error": {"code": status.as_u16(), "message": message, "status": name}})
        }
        Provider::OpenAiChat | Provider::OpenAiResponses => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
    }
}

/// Returns an answer of JSON.
pub(crate) fn json_answer(status: StatusCode, value: &Value) -> Response {
    let mut answer = Response::new(Body::from(value.to_string()));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

#[cfg(test)]
mod tests {
    use compact::format::overflow;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn an_overflow_reads_as_the_providers_own() {
        let too_long = TooLong {
            tokens: Tokens(213_462),
            window: Tokens(200_000),
        };
        for provider in Provider::ALL {
            for form in [AnswerForm::Whole, AnswerForm::Events] {
                let answer = refuse_overflow(provider, form, too_long);
                let status = answer.status().as_u16();
                let kind = answer.headers().get(CONTENT_TYPE).cloned().unwrap();
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                let found = overflow::find_in_response(status, kind.to_str().ok(), &body);
                let found = found.expect("clients recognise it, as we do");
                assert_eq!(found.limit, Some(Tokens(200_000)), "{provider} {form:?}");
            }
        }
    }
}
