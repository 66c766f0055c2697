//! One request, from its client to its upstream and back.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use compact::format::usage::ReportedUsage;
use compact::format::validate::Provider;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, UPGRADE};
use http::{HeaderMap, Method, StatusCode};
use tokio::time::Instant;

use crate::Gateway;
use crate::access::{self, AccessError, Admission};
use crate::body::{self, BodyError};
use crate::cache_watch::SentPrompt;
use crate::class::RequestClass;
use crate::header;
use crate::live::LiveSession;
use crate::preflight::{ModelRequest, PlannedAction, PlannedRequest, RequestPlan, SessionTurn};
use crate::received::{AnswerEnd, AnswerReport, AnswerWatch, InFlight, ReceivedAnswer, Scrutiny};
use crate::refusal;
use crate::relay::{self, LookupTurn, SummaryProof};
use crate::route::{self, Endpoint, Route};
use crate::settings::GatewaySettings;
use crate::upstream::UpstreamError;
use crate::usage::UsageReader;

/// A request that goes out as it came, or nearly so.
struct Outgoing {
    route: Route,
    method: Method,
    headers: HeaderMap,
    in_flight: InFlight,
    /// What opens the names of its tenant's sessions.
    scope: String,
    /// Whether its key may spend only so much.
    is_limited: bool,
}

/// Answers a request.
pub(crate) async fn answer(gateway: &Arc<Gateway>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let settings = gateway.settings();
    access::move_query_key(&settings, &mut head.headers, head.uri.query());
    let mut route = route::find_route(&settings, &head.method, &head.uri, &head.headers);
    let admission = match admit_request(gateway, &settings, &route, &head.headers) {
        Ok(admission) => admission,
        Err(error) => return refuse_access(&route, error),
    };
    if head.method == Method::TRACE {
        // A server that follows it sends back what it was sent, keys and all.
        let status = StatusCode::METHOD_NOT_ALLOWED;
        return refusal::refuse(route.provider, status, "the gateway passes no TRACE on");
    }
    if head.headers.contains_key(UPGRADE) {
        // Whoever asks for a socket goes on with plain requests when it hears this.
        let status = StatusCode::UPGRADE_REQUIRED;
        return refusal::refuse(route.provider, status, "the gateway speaks plain HTTP");
    }
    let mut headers = header::forwarded_headers(&head.headers);
    if let Err(error) = access::replace_keys(&settings, &mut headers, &mut route) {
        return refuse_access(&route, error);
    }
    let outgoing = Outgoing {
        method: head.method,
        headers,
        in_flight: InFlight::new(&gateway.metrics.in_flight),
        scope: admission.tenant.scope(),
        is_limited: admission.grant.daily_tokens.is_some(),
        route,
    };
    match outgoing.route.endpoint {
        Endpoint::Model(_) | Endpoint::Compact => {
            let read = body::read_body(&head.headers, body, settings.max_body).await;
            match read {
                Ok(body) => {
                    let came = head.headers;
                    answer_model(gateway, outgoing, admission, &came, body).await
                }
                Err(error) => refuse_body(&outgoing.route, &error),
            }
        }
        Endpoint::Other => pass_request(gateway, outgoing, body).await,
    }
}

/// Lets a request in that may go where it is going.
fn admit_request(
    gateway: &Gateway,
    settings: &GatewaySettings,
    route: &Route,
    headers: &HeaderMap,
) -> Result<Admission, AccessError> {
    let admission = access::admit(settings, headers)?;
    admission.check_upstream(&route.upstream)?;
    let now = gateway.sessions.compact().clock().timestamp();
    match gateway.allowances.is_spent(&admission, &now) {
        true => Err(AccessError::Spent),
        false => Ok(admission),
    }
}

/// Passes a request on without a look at it. What its answer reports counts for a key that may spend only so much:
/// embeddings and older kinds of completions cost tokens, too.
async fn pass_request(gateway: &Arc<Gateway>, outgoing: Outgoing, body: Body) -> Response {
    let (body, slowness) = body::limit_time(body);
    let answer = match send(gateway, &outgoing, outgoing.headers.clone(), body).await {
        Ok(answer) => answer,
        Err(_) if slowness.is_made() => {
            count_answer(gateway, &outgoing, "other", 408);
            return refuse_body(&outgoing.route, &BodyError::TooSlow);
        }
        Err(error) => return refuse_unreachable(gateway, &outgoing, "other", &error),
    };
    count_answer(gateway, &outgoing, "other", answer.status());
    let watch = AnswerWatch::new(outgoing.in_flight);
    if !outgoing.is_limited {
        return answer.into_response(watch);
    }
    let reader = UsageReader::new(outgoing.route.endpoint.provider(), answer.headers());
    let (gateway, scope) = (Arc::clone(gateway), outgoing.scope);
    let upstream = outgoing.route.upstream.name.clone();
    let deliver = move |report: AnswerReport| {
        if report.usage.is_some() {
            count_report(&gateway, &upstream, &scope, 0, &report);
        }
    };
    answer.into_response(watch.with_report(reader, Box::new(deliver)))
}

/// Answers a request to a model.
async fn answer_model(
    gateway: &Arc<Gateway>,
    mut outgoing: Outgoing,
    admission: Admission,
    came: &HeaderMap,
    body: Bytes,
) -> Response {
    let endpoint = outgoing.route.endpoint;
    let request = ModelRequest {
        endpoint,
        tenant: admission.tenant,
        provider: endpoint.provider(),
        upstream: Arc::clone(&outgoing.route.upstream),
        target: outgoing.route.target.clone(),
        headers: came.clone(),
        plain: body.clone(),
    };
    let began = Instant::now();
    let planned = gateway.plan_request(request).await;
    gateway.metrics.note_preflight(began.elapsed());
    let PlannedRequest {
        request,
        written,
        plan,
    } = planned;
    let RequestPlan {
        class,
        form,
        action,
    } = plan;
    let (provider, size) = (request.provider, request.plain.len());
    if written.is_some() {
        outgoing.headers.remove(CONTENT_ENCODING);
    }
    let body = written.unwrap_or(body);
    match action {
        PlannedAction::Pass => send_unwatched(gateway, outgoing, class.name(), body, size).await,
        PlannedAction::PassAfterFailure(failure) => {
            gateway.note_failure(&failure);
            match failure.retry {
                Some(turn) => send_turn(gateway, outgoing, request, class, turn, body).await,
                None => send_unwatched(gateway, outgoing, class.name(), body, size).await,
            }
        }
        PlannedAction::Send(turn) => send_turn(gateway, outgoing, request, class, turn, body).await,
        PlannedAction::Answer(answer) => {
            gateway.metrics.count_compaction("agent");
            count_answer(gateway, &outgoing, class.name(), 200);
            answer
        }
        PlannedAction::Augment(proof, ours) => {
            gateway.metrics.count_compaction("agent");
            send_augmented(gateway, outgoing, provider, proof, ours, body).await
        }
        PlannedAction::Refuse(too_long) => {
            count_answer(gateway, &outgoing, class.name(), 400);
            refusal::refuse_overflow(provider, form, too_long)
        }
    }
}

/// Sends a request as it came, of so many bytes unpacked; its answer is nobody's but the client's.
async fn send_unwatched(
    gateway: &Arc<Gateway>,
    outgoing: Outgoing,
    class: &'static str,
    body: Bytes,
    sent: usize,
) -> Response {
    match send(gateway, &outgoing, outgoing.headers.clone(), body.into()).await {
        Ok(answer) => {
            count_answer(gateway, &outgoing, class, answer.status());
            let reader = UsageReader::new(outgoing.route.endpoint.provider(), answer.headers());
            let (gateway, scope) = (Arc::clone(gateway), outgoing.scope);
            let upstream = outgoing.route.upstream.name.clone();
            let watch = AnswerWatch::new(outgoing.in_flight);
            if !is_answered(&answer) {
                return answer.into_response(watch);
            }
            let deliver = move |report: AnswerReport| {
                count_report(&gateway, &upstream, &scope, sent, &report);
            };
            answer.into_response(watch.with_report(reader, Box::new(deliver)))
        }
        Err(error) => refuse_unreachable(gateway, &outgoing, class, &error),
    }
}

/// Asks the model for a summary and adds what it lost; the engine's own goes out where the model gives none.
async fn send_augmented(
    gateway: &Arc<Gateway>,
    mut outgoing: Outgoing,
    provider: Provider,
    proof: SummaryProof,
    ours: Response,
    body: Bytes,
) -> Response {
    let size = body.len();
    // What is added to must be read.
    outgoing.headers.remove(ACCEPT_ENCODING);
    let sent = send(gateway, &outgoing, outgoing.headers.clone(), body.into()).await;
    let class = "compaction";
    let mut answer = match sent {
        Ok(answer) if (200..300).contains(&answer.status()) => answer,
        _ => {
            count_answer(gateway, &outgoing, class, 200);
            return ours;
        }
    };
    if answer.find_overflow(Scrutiny::Opening).await.is_some() {
        let name = &outgoing.route.upstream.name;
        gateway.metrics.count_overflow(name, "answered");
        count_answer(gateway, &outgoing, class, 200);
        return ours;
    }
    count_answer(gateway, &outgoing, class, answer.status());
    let reader = UsageReader::new(provider, answer.headers());
    let (counting, scope) = (Arc::clone(gateway), outgoing.scope);
    let upstream = outgoing.route.upstream.name.clone();
    let deliver = move |report: AnswerReport| {
        count_report(&counting, &upstream, &scope, size, &report);
    };
    let watch = AnswerWatch::new(outgoing.in_flight).with_report(reader, Box::new(deliver));
    relay::relay_summary(Arc::clone(gateway), provider, answer, proof, watch).await
}

/// Sends a request of a session, once more and smaller if it is refused as too long, and reads what its answer
/// reports.
async fn send_turn(
    gateway: &Arc<Gateway>,
    outgoing: Outgoing,
    request: ModelRequest,
    class: RequestClass,
    mut turn: SessionTurn,
    body: Bytes,
) -> Response {
    if turn.receipt.is_some() {
        gateway.metrics.count_compaction("preflight");
    }
    let provider = request.provider;
    let plain = request.plain.clone();
    let mut answer = match send_view(gateway, &outgoing, &turn, &body).await {
        Ok(answer) => answer,
        Err(error) => return refuse_unreachable(gateway, &outgoing, class.name(), &error),
    };
    let scrutiny = match turn.is_large {
        true => Scrutiny::Opening,
        false => Scrutiny::Errors,
    };
    let name = outgoing.route.upstream.name.clone();
    if let Some(overflow) = answer.find_overflow(scrutiny).await {
        match gateway.shrink_request(request, &turn, overflow).await {
            Some(smaller) => {
                gateway.metrics.count_overflow(&name, "retried");
                gateway.metrics.count_compaction("overflow");
                turn = smaller;
                answer = match send_view(gateway, &outgoing, &turn, &body).await {
                    Ok(answer) => answer,
                    Err(error) => {
                        return refuse_unreachable(gateway, &outgoing, class.name(), &error);
                    }
                };
            }
            None => gateway.metrics.count_overflow(&name, "relayed"),
        }
    }
    count_answer(gateway, &outgoing, class.name(), answer.status());
    let nudge = turn.nudge.filter(|_| is_answered(&answer));
    let session = turn.live.name.clone();
    let response = relay_turn(gateway, outgoing, provider, turn, plain, answer).await;
    let Some(nudge) = nudge else {
        return response;
    };
    let noting = Arc::clone(gateway);
    let note = move |reported, shown| noting.note_nudge(&session, reported, shown);
    nudge.raise_usage(provider, response, Box::new(note))
}

/// Passes the answer of a session's request on, and its reports to the session.
async fn relay_turn(
    gateway: &Arc<Gateway>,
    outgoing: Outgoing,
    provider: Provider,
    turn: SessionTurn,
    plain: Bytes,
    answer: ReceivedAnswer,
) -> Response {
    let Outgoing {
        route,
        method,
        headers,
        in_flight,
        scope,
        is_limited: _,
    } = outgoing;
    let is_answered = is_answered(&answer);
    let mut watch = AnswerWatch::new(in_flight);
    if is_answered {
        let reader = UsageReader::new(provider, answer.headers());
        let (gateway, live) = (Arc::clone(gateway), Arc::clone(&turn.live));
        let upstream = route.upstream.name.clone();
        let (view, model) = (turn.view.clone(), turn.model.clone());
        let deliver = move |report: AnswerReport| {
            let is_view = view.is_some();
            let body = view.unwrap_or(plain);
            count_report(&gateway, &upstream, &scope, body.len(), &report);
            if let Some(reported) = &report.usage {
                let sent = SentPrompt {
                    is_view,
                    body,
                    model,
                    at: gateway.sessions.compact().clock().now(),
                    usage: reported.usage,
                };
                watch_cache(&gateway, &live, sent);
            }
            deliver_report(live, report.usage, report.end);
        };
        watch = watch.with_report(reader, Box::new(deliver));
    }
    if let (true, true, Some(body)) = (is_answered, turn.offers_lookups, turn.view.clone()) {
        let asking = Arc::clone(gateway);
        let send_again = move |body: Bytes| {
            let (gateway, route) = (Arc::clone(&asking), route.clone());
            let (method, headers) = (method.clone(), readable_headers(&headers));
            let again = async move {
                let client = &gateway.client;
                let sent =
                    client.send(&route.upstream, method, &route.target, headers, body.into());
                sent.await.ok().map(ReceivedAnswer::new)
            };
            Box::pin(again) as Pin<Box<dyn Future<Output = _> + Send>>
        };
        let lookups = LookupTurn {
            gateway: Arc::clone(gateway),
            provider,
            session: turn.live.name.clone(),
            receipt: turn.receipt,
            body,
            send_again: Box::new(send_again),
        };
        return lookups.relay_answer(answer, watch).await;
    }
    let mut response = answer.into_response(watch);
    let headers = response.headers_mut();
    headers.insert(header::SESSION, header::own_value(&turn.live.name));
    if let Some(receipt) = &turn.receipt {
        headers.insert(header::RECEIPT, header::own_value(receipt));
    }
    response
}

/// Counts what an answer reports, for everybody and for its key; where it reports nothing, the key is charged by the bytes
/// that were sent and answered, so that nobody spends more by asking for no report.
fn count_report(
    gateway: &Gateway,
    upstream: &str,
    scope: &str,
    sent: usize,
    report: &AnswerReport,
) {
    let now = gateway.sessions.compact().clock().timestamp();
    let Some(reported) = &report.usage else {
        let bytes = sent.saturating_add(report.size);
        return gateway.allowances.add_bytes(scope, &now, bytes);
    };
    let usage = &reported.usage;
    for (kind, tokens) in [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cache_read", usage.cache_read_tokens),
        ("cache_write", usage.cache_creation_tokens),
    ] {
        gateway.metrics.count_usage(upstream, kind, tokens);
    }
    gateway.allowances.add(scope, &now, reported);
}

fn is_answered(answer: &ReceivedAnswer) -> bool {
    (200..300).contains(&answer.status())
}

/// Notes what was sent, and says what its provider's cache missed.
fn watch_cache(gateway: &Gateway, live: &LiveSession, sent: SentPrompt) {
    let policy = &gateway.sessions.compact().config().policy;
    let model = sent.model.clone();
    if let Some(miss) = live.note_sent(sent, policy.economy.cache_seconds()) {
        gateway.note_miss(&live.name, model.as_deref(), miss);
    }
}

/// Hands a report to its session, now or before its next request.
fn deliver_report(live: Arc<LiveSession>, report: Option<ReportedUsage>, end: AnswerEnd) {
    // An answer that was cut may have had a report to come.
    if report.is_none() && end == AnswerEnd::Cut {
        return;
    }
    live.note_report(report);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            let mut session = live.session.lock().await;
            live.deliver_report(&mut session);
        });
    }
}

/// Returns the headers of a request whose answer must be read, and whose body is ours.
fn readable_headers(headers: &HeaderMap) -> HeaderMap {
    let mut readable = headers.clone();
    readable.remove(ACCEPT_ENCODING);
    readable.remove(CONTENT_ENCODING);
    readable
}

async fn send_view(
    gateway: &Gateway,
    outgoing: &Outgoing,
    turn: &SessionTurn,
    body: &Bytes,
) -> Result<ReceivedAnswer, UpstreamError> {
    let mut headers = outgoing.headers.clone();
    let body = match &turn.view {
        Some(view) => {
            headers.remove(CONTENT_ENCODING);
            if turn.offers_lookups || turn.nudge.is_some() {
                headers = readable_headers(&headers);
            }
            view.clone()
        }
        None => body.clone(),
    };
    send(gateway, outgoing, headers, body.into()).await
}

async fn send(
    gateway: &Gateway,
    outgoing: &Outgoing,
    headers: HeaderMap,
    body: Body,
) -> Result<ReceivedAnswer, UpstreamError> {
    let route = &outgoing.route;
    let method = outgoing.method.clone();
    let sent = gateway
        .client
        .send(&route.upstream, method, &route.target, headers, body);
    sent.await.map(ReceivedAnswer::new)
}

fn count_answer(gateway: &Gateway, outgoing: &Outgoing, class: &'static str, status: u16) {
    let upstream = &outgoing.route.upstream.name;
    gateway.metrics.count_answer(class, upstream, status);
}

fn refuse_unreachable(
    gateway: &Gateway,
    outgoing: &Outgoing,
    class: &'static str,
    error: &UpstreamError,
) -> Response {
    let (status, message) = match error {
        UpstreamError::Target => (StatusCode::BAD_REQUEST, error.to_string()),
        UpstreamError::Switched => (StatusCode::BAD_GATEWAY, error.to_string()),
        UpstreamError::Unreachable(_) => {
            let name = &outgoing.route.upstream.name;
            (StatusCode::BAD_GATEWAY, format!("{error} {name}"))
        }
    };
    count_answer(gateway, outgoing, class, status.as_u16());
    refusal::refuse(outgoing.route.provider, status, &message)
}

fn refuse_access(route: &Route, error: AccessError) -> Response {
    refusal::refuse(route.provider, error.status(), &error.to_string())
}

fn refuse_body(route: &Route, error: &BodyError) -> Response {
    let status = match error {
        BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        BodyError::Broken => StatusCode::BAD_REQUEST,
    };
    refusal::refuse(route.provider, status, &error.to_string())
}
