//! An HTTP gateway: agents send to it what they would send to their model's provider, and it passes that on,
//! compacted when it must be.
//!
//! Until a history must be compacted, a request is forwarded byte for byte with all of its client's headers.
//! Then only what changed is spliced; the rest stays as the client wrote it, and so does the view between two
//! compactions, so that providers' caches keep hitting. Streams pass chunk by chunk. Whatever fails here, the
//! original goes out. What is compacted, when and how, is the engine's to decide: this crate is a door and
//! only translates.
//!
//! [`router`] is the whole service, to be merged with others; [`serve`] listens with it.

mod access;
mod allowance;
mod augment;
mod body;
mod cache_watch;
mod class;
mod compaction;
mod event_stream;
mod exchange;
mod header;
mod identity;
mod limit;
mod live;
mod lookup;
mod metric;
mod nudge;
mod patience;
mod preflight;
mod received;
mod refusal;
mod relay;
mod route;
mod server;
mod settings;
mod upstream;
mod usage;
mod weight;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use compact::Compact;
use compact::event::{CacheMiss, EventKind, EventScope, EventSink};
use compact::token::Tokens;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

pub use access::{NewKey, check_key_name, make_key, make_private_path};
pub use server::{ServeError, listen, serve};
pub use settings::{GatewaySettings, SettingsError};

use allowance::SpentAllowances;
use limit::LearnedLimits;
use live::LiveSessions;
use metric::GatewayMetrics;
use preflight::{EnginePlaces, OwnFailure};
use upstream::UpstreamClient;

/// How Prometheus wants its text announced.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A gateway: the engine, the servers behind it, and the sessions that pass through.
pub struct Gateway {
    settings: RwLock<Arc<GatewaySettings>>,
    allowances: SpentAllowances,
    client: UpstreamClient,
    sessions: LiveSessions,
    limits: LearnedLimits,
    places: EnginePlaces,
    /// How much longer than a store a model of ours may be silent, which summarizes or embeds.
    model_patience: Duration,
    metrics: Arc<GatewayMetrics>,
    sink: Arc<dyn EventSink>,
    is_draining: AtomicBool,
}

impl Gateway {
    /// Makes a gateway; it connects to nothing before the first request.
    pub fn new(compact: Compact, settings: GatewaySettings) -> Result<Gateway, SettingsError> {
        Ok(Gateway {
            client: UpstreamClient::new()?,
            sink: compact.sink()?,
            model_patience: model_patience(&compact),
            sessions: LiveSessions::new(compact, &settings),
            limits: LearnedLimits::new(),
            places: EnginePlaces::new(),
            metrics: Arc::new(GatewayMetrics::new()),
            is_draining: AtomicBool::new(false),
            allowances: SpentAllowances::default(),
            settings: RwLock::new(Arc::new(settings)),
        })
    }

    /// Makes `/readyz` say that no new requests should come; those that come are still answered.
    pub fn begin_draining(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Counts the requests that were passed on or answered.
    pub fn request_count(&self) -> u64 {
        self.metrics.answer_count()
    }

    /// Lets a person in who looks at pages beside the gateway's own; returns what the names of their sessions begin with.
    pub fn admit_browser(&self, headers: &HeaderMap) -> Result<String, BrowserRefusal> {
        let admitted = access::admit_browser(&self.settings(), headers);
        let admitted = admitted.map_err(|error| BrowserRefusal {
            status: error.status(),
            reason: error.to_string(),
        });
        Ok(admitted?.tenant.scope())
    }

    /// Returns the settings that it runs with; a request keeps those that it began with.
    pub fn settings(&self) -> Arc<GatewaySettings> {
        let settings = self.settings.read();
        Arc::clone(&settings.unwrap_or_else(PoisonError::into_inner))
    }

    /// Uses other settings from the next request on. What sessions may take in memory, and where it listens, stay as they
    /// were.
    pub fn replace_settings(&self, settings: GatewaySettings) {
        let mut current = self
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(settings);
    }
}

/// Returns how long the models of the engine may take, where it has any.
fn model_patience(compact: &Compact) -> Duration {
    let config = compact.config();
    // One whose key is missing answers nothing, and each request says so.
    let summarizer = compact.summarizer(None).ok().flatten().map(|_| {
        let limits = &config.summarizer;
        limits.timeout_seconds + limits.connect_timeout_seconds
    });
    let embedder = compact
        .embedder()
        .map(|_| config.embeddings.timeout_seconds);
    let longest = summarizer.into_iter().chain(embedder).fold(0.0, f64::max);
    Duration::try_from_secs_f64(longest).unwrap_or_default()
}

/// Why a person who looks is turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserRefusal {
    /// The status that says it.
    pub status: StatusCode,
    /// The same in words.
    pub reason: String,
}

/// Returns the service: the gateway's own pages, and everything else passed on.
pub fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(answer_ready))
        .route("/metrics", get(answer_metrics))
        .fallback(answer_request)
        .with_state(gateway)
}

/// Returns what answers new connections once the gateway was told to stop.
fn draining_router(gateway: Arc<Gateway>) -> Router {
    let refuse = async || (StatusCode::SERVICE_UNAVAILABLE, "draining\n");
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(answer_ready))
        .fallback(refuse)
        .with_state(gateway)
}

/// Returns the service below a path, such as one that only its client knows; there is nothing beside it.
pub fn router_below(path: &str, gateway: Arc<Gateway>) -> Router {
    Router::new().nest(path, router(gateway))
}

async fn answer_ready(State(gateway): State<Arc<Gateway>>) -> (StatusCode, &'static str) {
    match gateway.is_draining.load(Ordering::Relaxed) {
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        false => (StatusCode::OK, "ready\n"),
    }
}

async fn answer_metrics(State(gateway): State<Arc<Gateway>>, headers: HeaderMap) -> Response {
    if let Err(error) = access::admit(&gateway.settings(), &headers) {
        return (error.status(), format!("{error}\n")).into_response();
    }
    gateway.note_session_count();
    match gateway.metrics.render() {
        Ok(text) => ([(CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn answer_request(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    exchange::answer(&gateway, request).await
}

impl Gateway {
    /// Counts a failure of ours after which a request goes out as it came, and says so.
    fn note_failure(&self, failure: &OwnFailure) {
        self.metrics.count_failure(failure.reason);
        let scope = EventScope {
            session_id: failure.session.clone().unwrap_or_default(),
            model: failure.model.clone(),
            ..EventScope::default()
        };
        let failed = EventKind::FailedOpen {
            reason: failure.reason.to_owned(),
            detail: failure.detail.clone(),
        };
        let now = self.sessions.compact().clock().timestamp();
        self.sink.emit(&scope.event(failed, &now));
    }

    /// Returns how long a request waits for the engine without a sign of life.
    fn patience(&self) -> Duration {
        self.settings().store_timeout + self.model_patience
    }

    /// Says what a session's request should have found in the provider's cache and did not.
    fn note_miss(&self, session: &str, model: Option<&str>, miss: CacheMiss) {
        let scope = EventScope {
            session_id: session.to_owned(),
            model: model.map(str::to_owned),
            tokens: miss.expected_tokens,
            ..EventScope::default()
        };
        let now = self.sessions.compact().clock().timestamp();
        self.sink
            .emit(&scope.event(EventKind::CacheMissed(miss), &now));
    }

    /// Says that a client was told of more tokens than its provider reported.
    pub(crate) fn note_nudge(&self, session: &str, reported: Tokens, shown: Tokens) {
        self.metrics.count_nudge();
        let scope = EventScope {
            session_id: session.to_owned(),
            ..EventScope::default()
        };
        let nudged = EventKind::ClientNudged {
            reported_tokens: reported,
            shown_tokens: shown,
        };
        let now = self.sessions.compact().clock().timestamp();
        self.sink.emit(&scope.event(nudged, &now));
    }

    fn note_session_count(&self) {
        let count = i64::try_from(self.sessions.count()).unwrap_or(i64::MAX);
        self.metrics.sessions.set(count);
    }
}
