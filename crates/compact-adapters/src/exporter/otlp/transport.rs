//! One request to a collector, over either transport.
//!
//! A call of gRPC is a POST over HTTP/2 with five bytes before its message and the status behind its
//! answer, so both transports share one HTTP client. Nothing waits for an answer longer than the
//! time limit, retries included.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use reqwest::{Client, Response};

use super::settings::{CollectorProtocol, CollectorSettings, OtlpSignal};

/// How often a request is sent that failed for want of capacity or a connection.
const ATTEMPTS: u32 = 3;

/// The first pause before another attempt; each next one is twice as long.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Transport {
    client: Client,
    protocol: CollectorProtocol,
    timeout: Duration,
    headers: HeaderMap,
    places: CollectorSettings,
}

/// The outcome of a request.
enum SendOutcome {
    Taken,
    /// It may be taken later.
    Busy,
    Refused,
}

impl Transport {
    pub(super) fn new(settings: &CollectorSettings) -> Result<Transport, String> {
        // One provider of cryptography for the process; whoever was first has chosen it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .timeout(settings.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("compact/", env!("CARGO_PKG_VERSION")));
        let builder = match settings.protocol {
            CollectorProtocol::Grpc => builder.http2_prior_knowledge(),
            CollectorProtocol::Http => builder,
        };
        Ok(Transport {
            client: builder.build().map_err(|error| error.to_string())?,
            protocol: settings.protocol,
            timeout: settings.timeout,
            headers: request_headers(settings),
            places: settings.clone(),
        })
    }

    /// Sends a request, if there is one; true when nothing of it was lost.
    pub(super) async fn send(&self, signal: OtlpSignal, message: Option<impl Message>) -> bool {
        let (Some(message), Some(place)) = (message, self.places.signal_url(signal)) else {
            return true;
        };
        let body = self.encode_body(&message);
        let attempts = self.send_with_retries(place, body);
        tokio::time::timeout(self.timeout, attempts)
            .await
            .unwrap_or(false)
    }

    fn encode_body(&self, message: &impl Message) -> Bytes {
        let length = message.encoded_len();
        let mut body = BytesMut::with_capacity(length + 5);
        if self.protocol == CollectorProtocol::Grpc {
            body.put_u8(0);
            body.put_u32(length as u32);
        }
        // It fails only for want of room, and a buffer that grows has room.
        let _ = message.encode(&mut body);
        body.freeze()
    }

    async fn send_with_retries(&self, place: &str, body: Bytes) -> bool {
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            match self.send_once(place, body.clone()).await {
                SendOutcome::Taken => return true,
                SendOutcome::Refused => return false,
                SendOutcome::Busy if attempt == ATTEMPTS => return false,
                SendOutcome::Busy => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        false
    }

    async fn send_once(&self, place: &str, body: Bytes) -> SendOutcome {
        let request = self.client.post(place).headers(self.headers.clone());
        let Ok(response) = request.body(body).send().await else {
            return SendOutcome::Busy;
        };
        let status = response.status().as_u16();
        match (status, self.protocol) {
            (200..300, CollectorProtocol::Http) => SendOutcome::Taken,
            (200, CollectorProtocol::Grpc) => grpc_outcome(response).await,
            (408 | 429 | 502 | 503 | 504, _) => SendOutcome::Busy,
            _ => SendOutcome::Refused,
        }
    }
}

fn request_headers(settings: &CollectorSettings) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let name = HeaderName::try_from(name.as_str());
        if let (Ok(name), Ok(mut value)) = (name, HeaderValue::try_from(value.as_str())) {
            // A key is usually in here.
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    let kind = match settings.protocol {
        CollectorProtocol::Grpc => "application/grpc",
        CollectorProtocol::Http => "application/x-protobuf",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if settings.protocol == CollectorProtocol::Grpc {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    headers
}

/// Returns the status from the trailers, or from the headers of a response without a body.
async fn grpc_outcome(response: Response) -> SendOutcome {
    let status = |headers: &HeaderMap| {
        let status = headers.get("grpc-status")?.to_str().ok()?;
        status.parse::<u32>().ok()
    };
    let mut found = status(response.headers());
    let mut body = http::Response::<reqwest::Body>::from(response).into_body();
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(trailers) = frame.trailers_ref() {
            found = status(trailers).or(found);
        }
    }
    match found {
        Some(0) => SendOutcome::Taken,
        // Cancelled, deadline exceeded, resource exhausted, aborted, out of range, unavailable,
        // data loss: what the protocol says may be tried again.
        Some(1 | 4 | 8 | 10 | 11 | 14 | 15) => SendOutcome::Busy,
        _ => SendOutcome::Refused,
    }
}
