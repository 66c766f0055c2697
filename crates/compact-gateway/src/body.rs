//! Bodies of requests: read whole within bounds of size and time, and unpacked within the same bounds.

use std::io::Read;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout, timeout_at};

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

    #[test]
    fn a_bomb_ends_at_the_bound() {
        let bomb = gzip(&vec![b' '; 10 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(unpack_body(&encoded_as("gzip"), &bomb, 1 << 20), None);
    }
}
