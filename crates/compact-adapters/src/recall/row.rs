//! What every database stores alike: names of closed sets, and what is compressed.

use std::cell::RefCell;
use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zstd::bulk::{Compressor, Decompressor};

/// A frame that claims more is read piece by piece.
const MAX_TEXT: u64 = 64 << 20;

/// Fast rather than small: texts are read one by one and often.
const LEVEL: i32 = 3;

thread_local! {
    /// Making one takes longer than compressing a short text with it.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Returns bytes as a frame.
pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|made| {
        let compressor = match made {
            Some(compressor) => compressor,
            None => made.insert(Compressor::new(LEVEL)?),
        };
        compressor.compress(bytes)
    })
}

/// Returns the bytes of a frame, in one piece if it records its length, as ours do.
pub(super) fn decompress(frame: &[u8]) -> io::Result<Vec<u8>> {
    let size = match zstd::zstd_safe::get_frame_content_size(frame) {
        Ok(Some(size)) if size <= MAX_TEXT => size as usize,
        _ => return zstd::decode_all(frame),
    };
    DECOMPRESSOR.with_borrow_mut(|made| {
        let decompressor = match made {
            Some(decompressor) => decompressor,
            None => made.insert(Decompressor::new()?),
        };
        decompressor.decompress(frame, size)
    })
}

/// Returns a role or a voice as its serialized name.
pub(super) fn serialized_name(value: impl Serialize) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// Returns what [`serialized_name`] wrote.
pub(super) fn parse_name<T: DeserializeOwned>(name: &str) -> serde_json::Result<T> {
    serde_json::from_value(name.into())
}
