//! Who is let in, and who may change something.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::{Extension, Router};
use compact::Compact;
use compact_dashboard::{ActionMode, Dashboard, HostRule, Viewer, router};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::scene::{HOST, Scene, body_text, compact_session, engine, get, post, turns};

#[tokio::test]
async fn names_of_other_machines_are_refused() {
    let scene = Scene::new(ActionMode::Allowed);
    for host in ["evil.example", "10.0.0.7:8790", "127.0.0.1.evil.example"] {
        let request = Request::get("/").header("host", host);
        let answer = scene.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{host}");
    }
    for host in [HOST, "localhost:1", "[::1]:8790"] {
        let request = Request::get("/").header("host", host);
        let answer = scene.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::OK, "{host}");
    }
}

#[tokio::test]
async fn what_changes_something_needs_our_origin_and_our_token() {
    let scene = Scene::new(ActionMode::Allowed);
    let receipt = compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let token = scene.token("/session?name=runs").await;
    let form = |token: &str| {
        let fields = [("token", token), ("name", "runs"), ("receipt", &receipt)];
        post("/do/verify", &fields)
    };
    let answer = scene.send(form(&token)).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let wrong = scene.send(form("0123")).await;
    assert_eq!(wrong.status(), StatusCode::FORBIDDEN);
    for origin in [
        None,
        Some("null"),
        Some("http://evil.example"),
        Some("http://127.0.0.1:1"),
    ] {
        let mut request = form(&token);
        request.headers_mut().remove("origin");
        if let Some(origin) = origin {
            let origin = origin.parse().unwrap();
            request.headers_mut().insert("origin", origin);
        }
        let answer = scene.send(request).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{origin:?}");
    }
}

#[tokio::test]
async fn pages_that_only_show_have_no_forms_and_take_none() {
    let scene = Scene::new(ActionMode::ReadOnly);
    let receipt = compact_session(&scene.compact, "runs", &turns(40, "")).await;
    let page = scene.page("/session?name=runs").await;
    assert!(!page.contains("method=\"post\""), "{page}");
    let fields = [
        ("token", ""),
        ("name", "runs"),
        ("receipt", receipt.as_str()),
    ];
    let answer = scene.send(post("/do/verify", &fields)).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn every_answer_says_what_its_page_may_load() {
    let scene = Scene::new(ActionMode::Allowed);
    for path in [
        "/",
        "/session?name=none",
        "/asset/style.css",
        "/asset/none",
        "/nowhere",
    ] {
        let answer = scene.send(get(path)).await;
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        assert!(
            policy.starts_with("default-src 'self';"),
            "{path}: {policy}"
        );
        assert_eq!(
            answer.headers()["x-content-type-options"],
            "nosniff",
            "{path}"
        );
        let text = body_text(answer).await;
        assert!(
            !text.contains("<script>") && !text.contains(" style="),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_tenant_sees_its_own_sessions_only() {
    let compact = engine();
    let other = compact_session(&compact, "bob/runs", &turns(40, "secretive")).await;
    compact_session(&compact, "alice/runs", &turns(40, "plain")).await;
    let dashboard = Dashboard::new(compact, "/dashboard", ActionMode::Allowed, HostRule::Any);
    let viewer = Viewer {
        scope: "alice/".to_owned(),
    };
    let service = router(Arc::new(dashboard.unwrap())).layer(Extension(viewer));
    let ask = async |path: String| {
        let answer = service.clone().oneshot(get(&path)).await.unwrap();
        (answer.status(), body_text(answer).await)
    };
    let (status, list) = ask("/dashboard/".to_owned()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        list.contains("alice/runs") && !list.contains("bob"),
        "{list}"
    );
    let (_, found) = ask("/dashboard/?q=secretive".to_owned()).await;
    assert!(!found.contains("bob"), "{found}");
    let unknown = |page: &str| page.contains("Nothing archived says");
    for words in ["plain+secretive", "plain+unicorn"] {
        let (_, found) = ask(format!("/dashboard/?q={words}")).await;
        assert!(
            !unknown(&found),
            "what others say is told by {words}: {found}"
        );
    }
    for path in [
        "/dashboard/session?name=bob%2Fruns".to_owned(),
        format!("/dashboard/compaction?name=bob%2Fruns&receipt={other}"),
        format!("/dashboard/compaction?name=alice%2Fruns&receipt={other}"),
        format!("/dashboard/entry?pointer={other}%230"),
        "/dashboard/original?name=bob%2Fruns".to_owned(),
    ] {
        let (status, text) = ask(path.clone()).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {text}");
    }
}

#[tokio::test]
async fn pages_that_only_show_lead_to_no_chat() {
    let dashboard = Dashboard::new(engine(), "", ActionMode::ReadOnly, HostRule::Loopback);
    let dashboard = dashboard.unwrap().with_chat(engine(), None);
    let answer = router(Arc::new(dashboard)).oneshot(get("/")).await.unwrap();
    let list = body_text(answer).await;
    assert!(!list.contains("href=\"/chat\""), "{list}");
}

#[tokio::test]
async fn a_tenants_page_follows_its_own_chat_and_no_others() {
    let dashboard = Dashboard::new(engine(), "", ActionMode::Allowed, HostRule::Loopback);
    let dashboard = Arc::new(dashboard.unwrap().with_chat(engine(), None));
    let service = |scope: &str| {
        let scope = scope.to_owned();
        router(Arc::clone(&dashboard)).layer(Extension(Viewer { scope }))
    };
    let page = service("bob/").oneshot(get("/chat")).await.unwrap();
    let page = body_text(page).await;
    let (_, token) = page.split_once("name=\"token\" value=\"").unwrap();
    let token = token.split_once('"').unwrap().0;
    let say = async |scope: &str| {
        let session = format!("{scope}chat");
        let fields = [
            ("token", token),
            ("session", session.as_str()),
            ("words", "Hello."),
        ];
        let answer = service(scope).oneshot(post("/chat/send", &fields)).await;
        assert_eq!(answer.unwrap().status(), StatusCode::SEE_OTHER);
    };
    let stream = service("alice/").oneshot(get("/live?seen=0")).await;
    let mut events = stream.unwrap().into_body();
    say("bob/").await;
    let wait = Duration::from_millis(1_600);
    assert!(
        timeout(wait, events.frame()).await.is_err(),
        "what another one says is told"
    );
    let list = service("alice/").oneshot(get("/")).await.unwrap();
    assert!(body_text(list).await.contains("/live?seen=0"));
    say("alice/").await;
    assert!(timeout(wait, events.frame()).await.is_ok());
}

/// A dashboard as a tenant sees it.
fn service_of(scope: &str, compact: Compact) -> Router {
    let dashboard = Dashboard::new(compact, "", ActionMode::Allowed, HostRule::Loopback);
    let scope = scope.to_owned();
    router(Arc::new(dashboard.unwrap())).layer(Extension(Viewer { scope }))
}

#[tokio::test]
async fn a_tenant_is_told_what_its_new_sessions_are_called() {
    let compact = engine();
    let receipt = compact_session(&compact, "alice/runs", &turns(40, "")).await;
    let service = service_of("alice/", compact);
    let ask = async |request| body_text(service.clone().oneshot(request).await.unwrap()).await;
    let page = ask(get("/session?name=alice%2Fruns")).await;
    let (_, token) = page.split_once("name=\"token\" value=\"").unwrap();
    let token = token.split_once('"').unwrap().0;
    let fields = [
        ("token", token),
        ("name", "alice/runs"),
        ("receipt", receipt.as_str()),
        ("new", "zz"),
    ];
    let told = ask(post("/do/start", &fields)).await;
    assert!(told.contains("begins with “alice/”"), "{told}");
}

#[tokio::test]
async fn a_tenants_pages_are_told_of_its_own_sessions_alone() {
    let compact = engine();
    compact_session(&compact, "alice/runs", &turns(40, "")).await;
    let service = service_of("alice/", compact.clone());
    let answer = service.oneshot(get("/live?seen=0")).await.unwrap();
    let mut events = answer.into_body();
    let heard = async |events: &mut Body| {
        let waited = timeout(Duration::from_millis(1_600), events.frame()).await;
        waited.is_ok()
    };
    assert!(!heard(&mut events).await);
    compact_session(&compact, "bob/runs", &turns(40, "")).await;
    assert!(!heard(&mut events).await, "what another one does is told");
    compact_session(&compact, "alice/more", &turns(41, "")).await;
    assert!(heard(&mut events).await);
}
