//! Listening: connections within bounds of time, and an end that lets answers finish.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::{Gateway, draining_router};

/// How long the head of a request may take; a client that sends it byte by byte is cut off.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// The most connections at a time; others wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;
/// The most connections at a time that ask how it is while it drains.
const MOST_PROBES: usize = 64;
/// How long to wait when no connection can be accepted, for want of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listening failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Answers requests with `router` until `stop` completes; then answers that were begun may end, within
/// `gateway.drain_seconds`, and new requests hear that it is draining. Returns how many were cut off.
pub async fn serve(
    gateway: &Arc<Gateway>,
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
) -> usize {
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut stop = pin!(stop);
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = async { (place.await, listener.accept().await) } => accepted,
        };
        match accepted {
            (Ok(place), Ok((stream, _))) => {
                let _ = stream.set_nodelay(true);
                let connection = connections.watch(serve_connection(stream, router.clone()));
                tokio::spawn(async move {
                    let _place = place;
                    // What goes wrong with a connection is its client's to notice.
                    let _ = connection.await;
                });
            }
            _ => sleep(ACCEPT_PAUSE).await,
        }
    }
    gateway.begin_draining();
    let open = || MOST_CONNECTIONS - places.available_permits();
    let ended = timeout(gateway.settings().drain_time, connections.shutdown());
    tokio::select! {
        ended = ended => ended.map_or_else(|_| open(), |()| 0),
        () = answer_probes(listener, draining_router(Arc::clone(gateway))) => 0,
    }
}

/// Tells whoever asks that the gateway is draining, for as long as answers pass: a server before it that found nobody
/// would not know a stop from a crash.
async fn answer_probes(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(MOST_PROBES));
    loop {
        let place = Arc::clone(&places).acquire_owned();
        match (place.await, listener.accept().await) {
            (Ok(place), Ok((stream, _))) => {
                let connection = serve_connection(stream, router.clone());
                tokio::spawn(async move {
                    let _place = place;
                    let _ = timeout(HEAD_TIMEOUT, connection).await;
                });
            }
            _ => sleep(ACCEPT_PAUSE).await,
        }
    }
}

type Connection = http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>>;

fn serve_connection(stream: TcpStream, router: Router) -> Connection {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}

/// Opens the address that the settings name.
pub async fn listen(gateway: &Gateway) -> Result<TcpListener, ServeError> {
    let address = gateway.settings().listen;
    TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })
}
