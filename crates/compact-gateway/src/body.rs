//! Bodies of requests: read whole within bounds of size and time, and unpacked within the same bounds; or passed on as
//! they come, within the same bounds of time.

use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep, sleep, timeout, timeout_at};

use crate::header;

/// How long a client may send nothing while its body is awaited.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a whole body may take.
const WHOLE_BODY: Duration = Duration::from_secs(300);

/// A body that is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// It is larger than `gateway.max_body_mb`.
    #[error("the request is larger than gateway.max_body_mb")]
    TooLarge,
    /// The client stopped sending, or sends too slowly.
    #[error("the request's body did not arrive in time")]
    TooSlow,
    /// The client hung up, or broke the protocol.
    #[error("the request's body ended early")]
    Broken,
}

/// Reads a body whole.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    mut body: Body,
    most: usize,
) -> Result<Bytes, BodyError> {
    let length = header::header_text(headers, &CONTENT_LENGTH);
    let length = length.and_then(|text| text.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(BodyError::TooLarge);
    }
    let end = Instant::now() + WHOLE_BODY;
    let mut read = BytesMut::new();
    loop {
        let next = timeout_at(end, timeout(SILENCE, body.frame())).await;
        let Ok(Ok(next)) = next else {
            return Err(BodyError::TooSlow);
        };
        let Some(frame) = next else {
            return Ok(read.freeze());
        };
        let Ok(chunk) = frame.map_err(|_| BodyError::Broken)?.into_data() else {
            continue;
        };
        if read.len() + chunk.len() > most {
            return Err(BodyError::TooLarge);
        }
        if read.is_empty() {
            // Only what arrives takes room: a length alone proves nothing.
            read.reserve(length.unwrap_or(0).min(1 << 20).max(chunk.len()));
        }
        read.extend_from_slice(&chunk);
    }
}

/// Whether a client was too slow with a body that is passed on as it comes.
#[derive(Clone, Default)]
pub(crate) struct SlownessNote(Arc<AtomicBool>);

impl SlownessNote {
    /// Returns whether the body was cut off.
    pub(crate) fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Passes a body on as it comes, and cuts it off where one that is read whole would be refused.
pub(crate) fn limit_time(body: Body) -> (Body, SlownessNote) {
    let note = SlownessNote::default();
    let timed = TimedBody {
        body,
        silence: Box::pin(sleep(SILENCE)),
        end: Box::pin(sleep(WHOLE_BODY)),
        is_awaited: false,
        note: note.clone(),
    };
    (Body::new(timed), note)
}

/// A body whose client may pause only for so long, and take only so long.
struct TimedBody {
    body: Body,
    silence: Pin<Box<Sleep>>,
    end: Pin<Box<Sleep>>,
    /// Whether the client is waited for: a slow upstream is no fault of it.
    is_awaited: bool,
    note: SlownessNote,
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.is_awaited = false;
            return Poll::Ready(frame);
        }
        if !std::mem::replace(&mut self.is_awaited, true) {
            self.silence.as_mut().reset(Instant::now() + SILENCE);
        }
        if self.end.as_mut().poll(context).is_pending() {
            ready!(self.silence.as_mut().poll(context));
        }
        self.note.0.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(axum::Error::new(BodyError::TooSlow))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}

/// Returns a body as plain JSON; `None` for an encoding that is not known or does not hold, or for more than
/// `most` bytes of it.
pub(crate) fn unpack_body(headers: &HeaderMap, body: &Bytes, most: usize) -> Option<Bytes> {
    let encoding = headers.get(CONTENT_ENCODING);
    match encoding.map(|value| value.as_bytes()) {
        None | Some(b"identity") => Some(body.clone()),
        Some(b"gzip") => read_bounded(flate2::read::MultiGzDecoder::new(&**body), most),
        Some(b"deflate") => read_bounded(flate2::read::ZlibDecoder::new(&**body), most),
        Some(b"zstd") => read_bounded(zstd::stream::read::Decoder::new(&**body).ok()?, most),
        Some(_) => None,
    }
}

fn read_bounded(reader: impl Read, most: usize) -> Option<Bytes> {
    let limit = u64::try_from(most).ok()?.saturating_add(1);
    let mut unpacked = Vec::new();
    reader.take(limit).read_to_end(&mut unpacked).ok()?;
    (unpacked.len() <= most).then(|| unpacked.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::HeaderValue;

    use super::*;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().into()
    }

    fn encoded_as(name: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(name))])
    }

    #[test]
    fn packed_bodies_are_unpacked_within_the_bound() {
        let plain = Bytes::from_static(b"{\"messages\":[]}");
        let zstd = Bytes::from(zstd::encode_all(&*plain, 1).unwrap());
        let unpack = |name, body: &Bytes| unpack_body(&encoded_as(name), body, 100);
        assert_eq!(unpack("gzip", &gzip(&plain)), Some(plain.clone()));
        assert_eq!(unpack("zstd", &zstd), Some(plain.clone()));
        assert_eq!(unpack("identity", &plain), Some(plain.clone()));
        assert_eq!(unpack("br", &plain), None);
        assert_eq!(unpack("gzip", &plain), None);
    }

    /// A body of so many chunks, each after a pause.
    fn paused_body(pause: Duration, chunks: usize) -> Body {
        let stream = futures::stream::unfold(chunks, move |left| async move {
            let left = left.checked_sub(1)?;
            sleep(pause).await;
            Some((Ok::<_, BodyError>(Bytes::from_static(b"x")), left))
        });
        Body::from_stream(stream)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_passed_on_has_the_time_of_one_that_is_read() {
        let seconds = Duration::from_secs;
        for (pause, chunks, takes) in [
            (seconds(31), 1, None),
            (seconds(29), 11, None),
            (seconds(29), 10, Some(10)),
        ] {
            let (body, note) = limit_time(paused_body(pause, chunks));
            let passed = body.collect().await.ok().map(|all| all.to_bytes().len());
            assert_eq!(
                (passed, note.is_made()),
                (takes, takes.is_none()),
                "{pause:?}"
            );
            let read = read_body(&HeaderMap::new(), paused_body(pause, chunks), 100).await;
            assert_eq!(read.ok().map(|all| all.len()), takes, "{pause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pauses_of_an_upstream_are_not_its_clients() {
        let (mut body, note) = limit_time(paused_body(Duration::from_secs(1), 2));
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        sleep(Duration::from_secs(40)).await;
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        assert!(!note.is_made());
    }

    #[test]
    fn a_bomb_ends_at_the_bound() {
        let bomb = gzip(&vec![b' '; 10 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(unpack_body(&encoded_as("gzip"), &bomb, 1 << 20), None);
    }
}
