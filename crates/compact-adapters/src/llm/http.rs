//! One request over HTTP, with time limits, and retries where they may help.
//!
//! The time limit covers everything, retries included: whoever waits for a summary waits no longer
//! than was configured. What a server says about an error is shortened, and never holds the key.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use compact_formats::overflow::{self, OverflowSign};
use compact_runtime::port::summarizer::SummarizerError;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response};
use serde_json::Value;

use super::ApiKey;

/// The server of a model, and how long it may take.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The address that paths are appended to, e.g. `https://api.openai.com/v1`.
    pub url: String,
    /// The key, if it needs one.
    pub key: Option<ApiKey>,
    /// The longest that an answer may take, retries included.
    pub timeout: Duration,
    /// The longest that connecting may take.
    pub connect_timeout: Duration,
    /// How often a request is repeated if the server is overloaded or the connection fails.
    pub retries: u32,
    client: OnceLock<Client>,
}

/// The parts of a request that are the same for every body of a wire.
pub(super) struct RequestTarget<'a> {
    pub(super) path: &'a str,
    pub(super) headers: &'a [(&'static str, &'static str)],
    pub(super) key: KeyHeader,
}

/// The header that carries the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyHeader {
    Bearer,
    XApiKey,
}

/// The largest answer that is read: no summary is a hundredth of it.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The most that is told of a server's own words.
const MAX_MESSAGE_CHARS: usize = 300;
/// What the first pause before a retry is drawn from; each next one is twice as long.
const PAUSE: Duration = Duration::from_millis(400);

impl Endpoint {
    /// Returns an endpoint with the usual patience.
    pub fn new(url: impl Into<String>, key: Option<ApiKey>) -> Endpoint {
        Endpoint {
            url: url.into(),
            key,
            timeout: super::TIMEOUT,
            connect_timeout: super::CONNECT_TIMEOUT,
            retries: 2,
            client: OnceLock::new(),
        }
    }

    fn client(&self) -> Result<&Client, SummarizerError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // One provider of cryptography for the process; whoever was first has chosen it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(self.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("compact/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                SummarizerError::Setup(format!(
                    "cannot create an HTTP client: {}",
                    error_chain(&error)
                ))
            })?;
        Ok(self.client.get_or_init(|| client))
    }

    fn url_for(&self, path: &str) -> String {
        format!("{}/{path}", self.url.trim_end_matches('/'))
    }

    /// Returns a server's words: one line, not long, without the key.
    fn clean_message(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = match &self.key {
            Some(key) => key.scrub(&line),
            None => line,
        };
        line.chars().take(MAX_MESSAGE_CHARS).collect()
    }
}

/// Posts a body; fields that this server does not take are left out or renamed, as it asks.
pub(super) async fn post_adapting(
    endpoint: &Endpoint,
    call: &RequestTarget<'_>,
    mut body: Value,
) -> Result<Value, SummarizerError> {
    for _ in 0..OPTIONAL.len() {
        match post_json(endpoint, call, &body).await {
            Err(SummarizerError::Rejected {
                status: 400 | 422,
                message,
            }) if adapt_body(&mut body, &message) => {}
            result => return result,
        }
    }
    post_json(endpoint, call, &body).await
}

/// Fields that some models refuse, each with the name that they take instead, if there is one.
const OPTIONAL: [(&str, Option<&str>); 5] = [
    ("max_tokens", Some("max_completion_tokens")),
    ("temperature", None),
    ("seed", None),
    ("reasoning_effort", None),
    ("reasoning", None),
];

/// Changes the field that a refusal complains about; false when there is none.
fn adapt_body(body: &mut Value, message: &str) -> bool {
    let named = |field: &str, end: &str| {
        message.contains(&format!("'{field}{end}")) || message.contains(&format!("`{field}{end}"))
    };
    let refused = |field: &str| ["'", "`", "."].iter().any(|end| named(field, end));
    let Some(fields) = body.as_object_mut() else {
        return false;
    };
    for (field, instead) in OPTIONAL {
        let applies = instead.is_none_or(|other| message.contains(other));
        if applies
            && refused(field)
            && let Some(value) = fields.remove(field)
        {
            if let Some(other) = instead {
                fields.insert(other.to_owned(), value);
            }
            return true;
        }
    }
    false
}

/// Posts a body and reads the answer as JSON.
pub(super) async fn post_json(
    endpoint: &Endpoint,
    call: &RequestTarget<'_>,
    body: &Value,
) -> Result<Value, SummarizerError> {
    let work = post_with_retries(endpoint, call, body);
    match tokio::time::timeout(endpoint.timeout, work).await {
        Ok(result) => result,
        Err(_) => Err(SummarizerError::Timeout(endpoint.timeout)),
    }
}

/// An attempt that failed, and whether another may succeed.
struct FailedAttempt {
    error: SummarizerError,
    retry: Retry,
}

enum Retry {
    Never,
    Soon,
    After(Duration),
}

async fn post_with_retries(
    endpoint: &Endpoint,
    call: &RequestTarget<'_>,
    body: &Value,
) -> Result<Value, SummarizerError> {
    let started = Instant::now();
    let mut pause = PAUSE;
    for attempt in 1.. {
        let failed = match post_once(endpoint, call, body, attempt).await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        let wait = match failed.retry {
            Retry::Never => return Err(failed.error),
            Retry::Soon => add_jitter(pause),
            Retry::After(wait) => wait + add_jitter(PAUSE),
        };
        // A server that asks for more patience than there is gets none.
        if attempt > endpoint.retries || started.elapsed() + wait >= endpoint.timeout {
            return Err(failed.error);
        }
        tokio::time::sleep(wait).await;
        pause *= 2;
    }
    Err(SummarizerError::Timeout(endpoint.timeout))
}

/// Shortens a pause by up to half at random, so that many clients do not retry at once.
fn add_jitter(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64() / 2.0)
}

async fn post_once(
    endpoint: &Endpoint,
    call: &RequestTarget<'_>,
    body: &Value,
    attempt: u32,
) -> Result<Value, FailedAttempt> {
    let never = |error| FailedAttempt {
        error,
        retry: Retry::Never,
    };
    let client = endpoint.client().map_err(never)?;
    let mut request = client.post(endpoint.url_for(call.path)).json(body);
    for (name, value) in call.headers {
        request = request.header(*name, *value);
    }
    if let Some(key) = &endpoint.key {
        request = match call.key {
            KeyHeader::Bearer => request.bearer_auth(key.expose()),
            KeyHeader::XApiKey => request.header("x-api-key", key.expose()),
        };
    }
    let response = request
        .send()
        .await
        .map_err(|e| unsent_failure(endpoint, &e))?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = read_response(response)
        .await
        .map_err(|error| FailedAttempt {
            error,
            retry: Retry::Soon,
        })?;
    if (200..300).contains(&status) {
        return parse_response(&headers, &bytes).map_err(never);
    }
    Err(refused_failure(endpoint, status, &headers, &bytes, attempt))
}

fn unsent_failure(endpoint: &Endpoint, error: &reqwest::Error) -> FailedAttempt {
    let reason = endpoint.clean_message(&error_chain(error));
    let place = endpoint.url.clone();
    let (error, retry) = if error.is_builder() {
        (
            SummarizerError::Setup(format!("{place}: {reason}")),
            Retry::Never,
        )
    } else if error.is_connect() || error.is_timeout() {
        (SummarizerError::Unreachable { place, reason }, Retry::Soon)
    } else {
        (SummarizerError::Interrupted(reason), Retry::Soon)
    };
    FailedAttempt { error, retry }
}

async fn read_response(mut response: Response) -> Result<Vec<u8>, SummarizerError> {
    let interrupted = |error: reqwest::Error| SummarizerError::Interrupted(error_chain(&error));
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(interrupted)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_ANSWER_BYTES {
            return Err(super::malformed_answer("it is larger than 16 MiB"));
        }
    }
    Ok(bytes)
}

fn parse_response(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, SummarizerError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(super::malformed_answer("status 200 with an empty body"));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|_| {
        let kind = headers.get("content-type").and_then(|t| t.to_str().ok());
        super::malformed_answer(&format!(
            "it is {}, not JSON",
            kind.unwrap_or("of an unknown type")
        ))
    })?;
    // Some servers report an error with status 200.
    match value.get("error").filter(|e| !e.is_null()) {
        Some(_) => Err(super::malformed_answer(
            "status 200 with an error in the body",
        )),
        None => Ok(value),
    }
}

fn refused_failure(
    endpoint: &Endpoint,
    status: u16,
    headers: &HeaderMap,
    bytes: &[u8],
    attempts: u32,
) -> FailedAttempt {
    let kind = headers.get("content-type").and_then(|t| t.to_str().ok());
    let message = endpoint.clean_message(&error_message(bytes));
    let overflow = overflow::find_in_response(status, kind, bytes);
    if let Some(overflow) = overflow.filter(|o| o.sign == OverflowSign::Said) {
        let limit = overflow.limit;
        return FailedAttempt {
            error: SummarizerError::TooLong { limit, message },
            retry: Retry::Never,
        };
    }
    match status {
        408 | 425 | 429 | 500..=599 => FailedAttempt {
            error: SummarizerError::Overloaded {
                status,
                attempts,
                message,
            },
            retry: retry_delay(headers).map_or(Retry::Soon, Retry::After),
        },
        _ => FailedAttempt {
            error: SummarizerError::Rejected { status, message },
            retry: Retry::Never,
        },
    }
}

/// Returns what a server says is wrong, in whichever field it says so.
fn error_message(bytes: &[u8]) -> String {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let told = ["/error/message", "/message", "/detail", "/error"]
        .iter()
        .find_map(|pointer| value.pointer(pointer)?.as_str());
    told.map_or_else(
        || String::from_utf8_lossy(bytes).into_owned(),
        str::to_owned,
    )
}

/// Returns how long a server asks to wait, in seconds or milliseconds.
fn retry_delay(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms")
        .map(|ms| ms / 1000.0)
        .or_else(|| number(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns an error with everything that caused it.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
