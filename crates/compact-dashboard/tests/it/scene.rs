//! A dashboard over sessions in memory, and requests as a browser sends them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use compact::Compact;
use compact::store::Attempt;
use compact_dashboard::{ActionMode, Dashboard, HostRule, router};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The host that requests name.
pub(crate) const HOST: &str = "127.0.0.1:8790";

/// Returns so many turns of a conversation.
pub(crate) fn turns(count: usize, words: &str) -> Vec<Value> {
    let turn = |n: usize| {
        [
            json!({"role": "user", "content": format!("Measure run {n}. {words}")}),
            json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
        ]
    };
    (0..count).flat_map(turn).collect()
}

/// Compacts a session, and returns its receipt.
pub(crate) async fn compact_session(
    compact: &Compact,
    name: &str,
    messages: &Vec<Value>,
) -> String {
    let prompt = compact.session(name).compact(messages, None).await.unwrap();
    prompt.receipt().unwrap().receipt_id.clone()
}

pub(crate) fn engine() -> Compact {
    let builder = Compact::builder().in_memory().window(20_000);
    builder.build().unwrap()
}

/// A dashboard at the root, and what it answers.
pub(crate) struct Scene {
    pub(crate) compact: Compact,
    service: Router,
}

impl Scene {
    pub(crate) fn new(actions: ActionMode) -> Scene {
        Scene::over(engine(), actions)
    }

    /// The same over what an engine has on record.
    pub(crate) fn over(compact: Compact, actions: ActionMode) -> Scene {
        let dashboard = Dashboard::new(compact.clone(), "", actions, HostRule::Loopback).unwrap();
        let service = router(Arc::new(dashboard));
        Scene { compact, service }
    }

    /// The same with a page to talk in.
    pub(crate) fn with_chat() -> Scene {
        let compact = engine();
        let actions = ActionMode::Allowed;
        let dashboard = Dashboard::new(compact.clone(), "", actions, HostRule::Loopback).unwrap();
        let service = router(Arc::new(dashboard.with_chat(compact.clone(), None)));
        Scene { compact, service }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.service.clone().oneshot(request).await.unwrap()
    }

    /// Fetches a page that must be there.
    pub(crate) async fn page(&self, path: &str) -> String {
        let answer = self.send(get(path)).await;
        let status = answer.status();
        let text = body_text(answer).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        text
    }

    /// Records that a compaction of a session failed just now.
    pub(crate) async fn fail_attempt(&self, session: &str) {
        let attempt = Attempt {
            at: self.compact.clock().timestamp(),
            turn: String::new(),
            outcome: "insufficient".to_owned(),
            tokens: 9_000,
        };
        let store = self.compact.store_to_write().unwrap();
        let saved = store.catalog.save_attempt(session, &attempt);
        saved.await.unwrap();
    }

    /// Returns the token that the forms of a page carry.
    pub(crate) async fn token(&self, path: &str) -> String {
        let page = self.page(path).await;
        let (_, rest) = page.split_once("name=\"token\" value=\"").expect("a form");
        rest.split_once('"').unwrap().0.to_owned()
    }
}

pub(crate) fn get(path: &str) -> Request<Body> {
    let request = Request::get(path).header("host", HOST);
    request.body(Body::empty()).unwrap()
}

/// A form as a page of ours sends it.
pub(crate) fn post(path: &str, fields: &[(&str, &str)]) -> Request<Body> {
    let encode = |text: &str| {
        text.replace('%', "%25")
            .replace('&', "%26")
            .replace(' ', "+")
    };
    let fields = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", encode(value)));
    Request::post(path)
        .header("host", HOST)
        .header("origin", format!("http://{HOST}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(fields.collect::<Vec<_>>().join("&")))
        .unwrap()
}

pub(crate) async fn body_text(answer: Response<Body>) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}
