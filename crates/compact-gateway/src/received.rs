//! An upstream's answer: looked at before its first byte goes out, where that may still change what is sent,
//! and passed on chunk by chunk.
//!
//! A prompt that is too long is refused with an error, within a stream that began well, or with a stream that
//! ends before it began. What is held back to see that are events that say nothing yet.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use compact::format::overflow::{self, Overflow};
use compact::format::usage::ReportedUsage;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::response::Parts;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::Value;
use tokio::time::timeout;

use crate::body::unpack_body;
use crate::header;
use crate::usage::{UsageReader, is_event_stream};

/// The largest error that is looked at.
const LARGEST_ERROR: usize = 1 << 20;
/// How much of a stream is held back at most, and how long.
const MOST_HELD: usize = 1 << 18;
const LONGEST_HOLD: Duration = Duration::from_millis(500);

/// Events that open a stream before anything is known of its answer.
const OPENING_EVENTS: [&str; 4] = [
    "response.created",
    "response.in_progress",
    "response.queued",
    "ping",
];

/// An answer of which some may have been read already.
pub(crate) struct ReceivedAnswer {
    head: Parts,
    read: VecDeque<Bytes>,
    rest: Option<Incoming>,
}

/// How closely an answer is looked at before it is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scrutiny {
    /// Errors, and streams that end before they begin.
    Errors,
    /// Also what follows the events that open a stream.
    Opening,
}

impl ReceivedAnswer {
    pub(crate) fn new(response: http::Response<Incoming>) -> ReceivedAnswer {
        let (head, body) = response.into_parts();
        ReceivedAnswer {
            head,
            read: VecDeque::new(),
            rest: Some(body),
        }
    }

    /// Returns the status.
    pub(crate) fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    /// Returns the headers.
    pub(crate) fn headers(&self) -> &http::HeaderMap {
        &self.head.headers
    }

    /// Finds out whether the upstream refuses the prompt as too long; reads no more than that needs.
    pub(crate) async fn find_overflow(&mut self, scrutiny: Scrutiny) -> Option<Overflow> {
        if !self.head.status.is_success() {
            self.read_up_to(LARGEST_ERROR).await;
            return self.overflow_in_read();
        }
        if !is_event_stream(&self.head.headers) || self.head.headers.contains_key(CONTENT_ENCODING)
        {
            return None;
        }
        self.read_next().await;
        if scrutiny == Scrutiny::Opening {
            let opening = async {
                while self.rest.is_some() && self.is_opening() {
                    self.read_next().await;
                }
            };
            // What was read stays read if the time is up.
            let _ = timeout(LONGEST_HOLD, opening).await;
        }
        match self.rest.is_none() || !self.is_opening() {
            true => self.overflow_in_read(),
            false => None,
        }
    }

    async fn read_up_to(&mut self, most: usize) {
        while self.rest.is_some() && self.read_length() < most {
            self.read_next().await;
        }
    }

    /// Reads a chunk; notes the end. Nothing is lost when it is given up.
    async fn read_next(&mut self) {
        let Some(body) = &mut self.rest else {
            return;
        };
        match body.frame().await {
            Some(Ok(frame)) => self.read.extend(frame.into_data().ok()),
            // What broke off is passed on as far as it came; so is the end of its connection.
            Some(Err(_)) | None => self.rest = None,
        }
    }

    /// Returns the next chunk, of what was read already and then of what comes; `None` at the end.
    pub(crate) async fn next_chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        loop {
            if let Some(chunk) = self.read.pop_front() {
                return Ok(Some(chunk));
            }
            let Some(body) = &mut self.rest else {
                return Ok(None);
            };
            match body.frame().await {
                Some(frame) => self.read.extend(frame?.into_data().ok()),
                None => self.rest = None,
            }
        }
    }

    /// Reads an answer whole, as far as it comes.
    pub(crate) async fn read_whole(&mut self, watch: &mut AnswerWatch) -> Bytes {
        let mut whole = BytesMut::new();
        while let Ok(Some(chunk)) = self.next_chunk().await {
            watch.read_chunk(&chunk);
            whole.extend_from_slice(&chunk);
        }
        watch.end(AnswerEnd::Complete);
        whole.freeze()
    }

    fn read_length(&self) -> usize {
        self.read.iter().map(Bytes::len).sum()
    }

    fn read_text(&self) -> Bytes {
        match self.read.len() {
            1 => self.read.front().cloned().unwrap_or_default(),
            _ => self.read.iter().flatten().copied().collect(),
        }
    }

    /// Returns whether what was read is only the opening of a stream.
    fn is_opening(&self) -> bool {
        if self.read_length() > MOST_HELD {
            return false;
        }
        let text = self.read_text();
        let text = String::from_utf8_lossy(&text);
        let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let mut events = whole.lines().filter_map(|line| line.strip_prefix("data:"));
        events.all(|data| {
            let event: Option<Value> = serde_json::from_str(data.trim()).ok();
            let kind = event.as_ref().and_then(|event| event.get("type")?.as_str());
            kind.is_some_and(|kind| OPENING_EVENTS.contains(&kind))
        })
    }

    fn overflow_in_read(&self) -> Option<Overflow> {
        let kind = self.head.headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|value| value.to_str().ok());
        let text = unpack_body(&self.head.headers, &self.read_text(), LARGEST_ERROR)?;
        overflow::find_in_response(self.status(), kind, &text)
    }

    /// Passes the answer on as it comes; `watch` hears of what it reports and of its end.
    pub(crate) fn into_response(self, watch: AnswerWatch) -> Response {
        let mut response = self.open_response();
        *response.body_mut() = Body::new(PassingBody {
            read: self.read,
            rest: self.rest,
            watch,
        });
        response
    }

    /// Returns the head of the answer as the client gets it.
    pub(crate) fn open_response(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.head.status;
        *response.headers_mut() = header::returned_headers(&self.head.headers);
        response
    }
}

/// Who is interested in an answer while it passes.
pub(crate) struct AnswerWatch {
    reader: Option<UsageReader>,
    report: Option<ReportDelivery>,
    size: usize,
    /// Held until the answer has passed.
    _in_flight: Option<InFlight>,
}

/// Takes what is known of an answer that has ended.
pub(crate) type ReportDelivery = Box<dyn FnOnce(AnswerReport) + Send>;

/// What is known of an answer that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerReport {
    /// What it reported.
    pub(crate) usage: Option<ReportedUsage>,
    pub(crate) end: AnswerEnd,
    /// The bytes that passed.
    pub(crate) size: usize,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// Its last byte passed.
    Complete,
    /// The client left, or the upstream broke off.
    Cut,
}

/// Counts a request for as long as it is answered.
pub(crate) struct InFlight(Gauge);

impl InFlight {
    pub(crate) fn new(gauge: &Gauge) -> InFlight {
        gauge.inc();
        InFlight(gauge.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl AnswerWatch {
    /// Watches for the end alone.
    pub(crate) fn new(in_flight: InFlight) -> AnswerWatch {
        AnswerWatch {
            _in_flight: Some(in_flight),
            ..AnswerWatch::unwatched()
        }
    }

    /// Watches for nothing: an answer that only we read.
    pub(crate) fn unwatched() -> AnswerWatch {
        AnswerWatch {
            reader: None,
            report: None,
            size: 0,
            _in_flight: None,
        }
    }

    /// Also reads what is reported.
    pub(crate) fn with_report(self, reader: UsageReader, report: ReportDelivery) -> AnswerWatch {
        AnswerWatch {
            reader: Some(reader),
            report: Some(report),
            ..self
        }
    }

    /// Reads a chunk in passing.
    pub(crate) fn read_chunk(&mut self, chunk: &[u8]) {
        self.size = self.size.saturating_add(chunk.len());
        if let Some(reader) = &mut self.reader {
            reader.read_chunk(chunk);
        }
    }

    /// Hands over what was reported.
    pub(crate) fn end(&mut self, end: AnswerEnd) {
        if let (Some(reader), Some(report)) = (self.reader.take(), self.report.take()) {
            report(AnswerReport {
                usage: reader.finish(),
                end,
                size: self.size,
            });
        }
    }
}

/// The body of an answer on its way to the client.
struct PassingBody {
    read: VecDeque<Bytes>,
    rest: Option<Incoming>,
    watch: AnswerWatch,
}

impl HttpBody for PassingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(chunk) = self.read.pop_front() {
            self.watch.read_chunk(&chunk);
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        let polled = match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        };
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(chunk) = frame.data_ref() {
                    self.watch.read_chunk(chunk);
                }
                // With a known length nobody asks for the end again.
                if self.rest.as_ref().is_some_and(HttpBody::is_end_stream) {
                    self.watch.end(AnswerEnd::Complete);
                }
            }
            Poll::Ready(Some(Err(_))) => self.watch.end(AnswerEnd::Cut),
            Poll::Ready(None) => self.watch.end(AnswerEnd::Complete),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read: u64 = self.read.iter().map(|chunk| chunk.len() as u64).sum();
        let rest = self
            .rest
            .as_ref()
            .map_or(SizeHint::with_exact(0), HttpBody::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(read + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(read + upper);
        }
        hint
    }
}

impl Drop for PassingBody {
    fn drop(&mut self) {
        self.watch.end(AnswerEnd::Cut);
    }
}
