//! Pages about sessions: what filled a window, what each compaction kept, cut and left to its summary, and the way back.
//!
//! A page is a function from what the engine says to HTML; nothing is decided here. Pages are rendered whole by the
//! server and work without a script; `live` tells the script when to fetch one again. Whatever a transcript says is
//! text: it is escaped by the templates, isolated from the page's direction of writing, and never part of a script, a
//! style or an address that is not encoded.
//!
//! [`router`] is the whole service. Who may see it is decided in front of it ([`Viewer`]), whether a request comes from a
//! page of its own in `guard`.

mod action;
mod asset;
mod chat;
mod comparison;
mod composition;
mod digest;
mod guard;
mod live;
mod notice;
mod page;
mod text;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::{any, get, post};
use compact::Compact;
use compact::summarizer::Summarizer;
use http::StatusCode;
use tokio::net::TcpListener;

pub use guard::Viewer;

use chat::ChatRooms;
use digest::DigestCache;
use guard::FormToken;
use live::ChangeSignal;
use notice::NoticeBoard;

/// What the pages show, and what they may do.
pub struct Dashboard {
    compact: Compact,
    base: String,
    actions: ActionMode,
    hosts: HostRule,
    token: FormToken,
    digests: DigestCache,
    changes: ChangeSignal,
    notices: NoticeBoard,
    chats: Option<ChatRooms>,
}

/// Whether pages may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionMode {
    /// They only show.
    ReadOnly,
    /// They also compact, undo, pin and start sessions.
    Allowed,
}

/// The hosts that a request may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRule {
    /// Names of this machine: another one was made to point here.
    Loopback,
    /// Any: a key lets people in.
    Any,
}

impl Dashboard {
    /// Makes a dashboard whose pages stand below `base`, such as `/dashboard`, or at the root where it is empty; `None` if
    /// the system has no randomness.
    pub fn new(
        compact: Compact,
        base: &str,
        actions: ActionMode,
        hosts: HostRule,
    ) -> Option<Dashboard> {
        Some(Dashboard {
            compact,
            base: base.to_owned(),
            actions,
            hosts,
            token: FormToken::new()?,
            digests: DigestCache::default(),
            changes: ChangeSignal::default(),
            notices: NoticeBoard::default(),
            chats: None,
        })
    }

    /// Adds a page to talk in, whose sessions are reset by this engine's settings: those of the profile `hard-reset`. A
    /// scripted model answers where none is given.
    #[must_use]
    pub fn with_chat(mut self, engine: Compact, model: Option<Arc<dyn Summarizer>>) -> Dashboard {
        self.chats = Some(ChatRooms::new(engine, model, self.changes.clone()));
        self
    }

    /// Ends what keeps pages up to date, so that a server can come to its end.
    pub fn close(&self) {
        self.changes.close();
    }

    /// Returns the address of a page.
    fn link(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// Answers requests until `stop` completes and what was begun has ended.
pub async fn serve(
    dashboard: Arc<Dashboard>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let service = router(Arc::clone(&dashboard));
    let stopped = async move {
        stop.await;
        dashboard.close();
    };
    axum::serve(listener, service)
        .with_graceful_shutdown(stopped)
        .await
}

/// Returns the service.
///
/// ```
/// # fn main() -> Result<(), compact::Error> {
/// use std::sync::Arc;
///
/// use compact_dashboard::{ActionMode, Dashboard, HostRule, router};
///
/// let compact = compact::Compact::builder().in_memory().build()?;
/// let dashboard = Dashboard::new(compact, "", ActionMode::ReadOnly, HostRule::Loopback);
/// let service: axum::Router = router(Arc::new(dashboard.unwrap()));
/// # Ok(())
/// # }
/// ```
pub fn router(dashboard: Arc<Dashboard>) -> Router {
    let at = |path: &str| dashboard.link(path);
    let pages = Router::new()
        .route(&at("/"), get(page::list::show))
        .route(&at("/session"), get(page::session::show))
        .route(&at("/compaction"), get(page::compaction::show))
        .route(&at("/entry"), get(page::entry::show))
        .route(&at("/original"), get(page::original::download))
        .route(&at("/new"), get(page::start::show))
        .route(&at("/carried"), get(page::start::download))
        .route(&at("/ledger"), get(page::ledger::show))
        .route(&at("/money"), get(page::money::show))
        .route(&at("/chat"), get(page::chat::show))
        .route(&at("/chat/{action}"), post(page::chat::act))
        .route(&at("/do/{action}"), post(action::perform))
        .route(&at("/live"), get(live::stream))
        .route(&at("/asset/{name}"), get(asset::serve))
        // The guard shows it as a page.
        .route(&at("/{*other}"), any(async || StatusCode::NOT_FOUND));
    let home = at("/");
    let pages = match dashboard.base.as_str() {
        "" => pages,
        base => pages.route(base, get(async move || Redirect::to(&home))),
    };
    let guarded = from_fn_with_state(Arc::clone(&dashboard), guard::check);
    pages.layer(guarded).with_state(dashboard)
}
