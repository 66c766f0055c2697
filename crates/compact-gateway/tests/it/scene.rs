//! A gateway with an upstream that answers as a test says, and remembers what it was sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use compact::Compact;
use compact::config::GatewayConfig;
use compact_gateway::{Gateway, GatewaySettings, router, serve};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// A request as the upstream got it.
#[derive(Clone, Debug)]
pub(crate) struct SentRequest {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What the upstream does with a request.
pub(crate) type Script = dyn Fn(&SentRequest) -> Response + Send + Sync;

#[derive(Clone)]
struct Upstream {
    sent: Arc<Mutex<Vec<SentRequest>>>,
    scripted: Arc<Mutex<VecDeque<Response>>>,
    otherwise: Arc<Script>,
}

/// A gateway and its upstream, both listening.
pub(crate) struct Scene {
    pub(crate) url: String,
    pub(crate) compact: Compact,
    upstream: Upstream,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<usize>>,
}

impl Scene {
    /// A gateway with an engine in memory and a window of so many tokens.
    pub(crate) async fn new(
        window: u64,
        otherwise: impl Fn(&SentRequest) -> Response + Send + Sync + 'static,
    ) -> Scene {
        let compact = Compact::builder().in_memory().window(window);
        Scene::with(compact.build().unwrap(), |_| {}, otherwise).await
    }

    pub(crate) async fn with(
        compact: Compact,
        change: impl FnOnce(&mut GatewayConfig),
        otherwise: impl Fn(&SentRequest) -> Response + Send + Sync + 'static,
    ) -> Scene {
        let upstream = Upstream {
            sent: Arc::default(),
            scripted: Arc::default(),
            otherwise: Arc::new(otherwise),
        };
        let address = start_upstream(upstream.clone()).await;
        let base = format!("http://{address}");
        let mut config = GatewayConfig {
            listen: "127.0.0.1:0".to_owned(),
            openai_url: base.clone(),
            anthropic_url: base.clone(),
            gemini_url: base,
            drain_seconds: 5,
            ..GatewayConfig::default()
        };
        change(&mut config);
        let settings = GatewaySettings::from_config(&config).unwrap();
        let gateway = Arc::new(Gateway::new(compact.clone(), settings).unwrap());
        let listener = compact_gateway::listen(&gateway).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let app = router(Arc::clone(&gateway));
            serve(&gateway, listener, app, async {
                stopped.await.unwrap_or(())
            })
            .await
        });
        Scene {
            url,
            compact,
            upstream,
            stop: Some(stop),
            served: Some(served),
        }
    }

    /// Answers the next request this way, before what is answered otherwise.
    pub(crate) fn script(&self, answer: Response) {
        self.upstream.scripted.lock().unwrap().push_back(answer);
    }

    /// Returns what the upstream got so far.
    pub(crate) fn sent(&self) -> Vec<SentRequest> {
        self.upstream.sent.lock().unwrap().clone()
    }

    pub(crate) fn last_sent(&self) -> SentRequest {
        self.sent().pop().expect("something was sent")
    }

    /// Tells the gateway to stop; returns how many answers were cut off.
    pub(crate) async fn stop(&mut self) -> usize {
        let _ = self.stop.take().unwrap().send(());
        self.served.take().unwrap().await.unwrap()
    }

    pub(crate) async fn post(
        &self,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let request = client()
            .post(format!("{}{target}", self.url))
            .body(body.into());
        let request = headers
            .iter()
            .fold(request, |r, (name, value)| r.header(*name, *value));
        Answer::read(
            request
                .header("content-type", "application/json")
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        Answer::read(
            client()
                .get(format!("{}{target}", self.url))
                .send()
                .await
                .unwrap(),
        )
        .await
    }
}

/// An answer as the client got it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    async fn read(response: reqwest::Response) -> Answer {
        Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.bytes().await.unwrap(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the data of its events, as far as it is JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok())
            .collect()
    }
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn start_upstream(upstream: Upstream) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer).with_state(upstream);
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn answer(State(upstream): State<Upstream>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Response::new(Body::empty());
    };
    let sent = SentRequest {
        method: head.method,
        target: head.uri.to_string(),
        headers: head.headers,
        body: body.to_bytes(),
    };
    upstream.sent.lock().unwrap().push(sent.clone());
    let scripted = upstream.scripted.lock().unwrap().pop_front();
    scripted.unwrap_or_else(|| (upstream.otherwise)(&sent))
}

pub(crate) fn reply(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
        .headers_mut()
        .insert("content-type", kind.parse().unwrap());
    response
}

pub(crate) fn json_reply(status: u16, value: &Value) -> Response {
    reply(status, "application/json", value.to_string())
}

pub(crate) fn events(values: &[Value]) -> Response {
    let text: String = values
        .iter()
        .map(|value| format!("data: {value}\n\n"))
        .collect();
    reply(200, "text/event-stream", text)
}

/// A stream whose chunks a test sends one by one.
pub(crate) fn open_stream() -> (mpsc::Sender<Result<Bytes, std::io::Error>>, Response) {
    let (sender, receiver) = mpsc::channel(4);
    let stream = futures::stream::unfold(receiver, async |mut receiver| {
        let next = receiver.recv().await?;
        Some((next, receiver))
    });
    (
        sender,
        reply(200, "text/event-stream", Body::from_stream(stream)),
    )
}

/// A chat completion that reports what a prompt of these bytes would cost.
pub(crate) fn chat_answer(request: &SentRequest) -> Response {
    let tokens = request.body.len() / 4;
    json_reply(
        200,
        &json!({
            "choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 2},
        }),
    )
}

/// What the user demands at the beginning of a `long_dialogue`.
pub(crate) const RULE: &str =
    "Never drop the column ledger_rows.amount_legacy before the September close.";

/// Returns so many turns of a user and a model that measure something.
pub(crate) fn long_dialogue(turns: usize) -> Vec<Value> {
    let turn = |n: usize| {
        let rule = if n == 0 { RULE } else { "" };
        [
            json!({"role": "user", "content": format!("Measure run {n}. {rule}")}),
            json!({"role": "assistant", "content": format!("Run {n} took {n} ms and wrote out/run_{n}.csv. ").repeat(20)}),
        ]
    };
    (0..turns).flat_map(turn).collect()
}
