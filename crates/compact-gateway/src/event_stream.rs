//! Streams of events that are written on while they pass: cut into whole events, and handed to the client one by one.
//!
//! What is not changed keeps its bytes. A slow client slows down whoever writes, and one that leaves ends it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame};
use memchr::memchr;
use serde_json::Value;
use tokio::sync::mpsc;

/// The longest event that is looked at; what is longer passes in pieces.
const LONGEST_EVENT: usize = 16 << 20;

/// Cuts chunks into events.
#[derive(Default)]
pub(crate) struct EventSplitter {
    held: BytesMut,
    /// How far the bytes held were searched for an end.
    searched: usize,
}

impl EventSplitter {
    /// Takes the next bytes.
    pub(crate) fn add_chunk(&mut self, chunk: &[u8]) {
        self.held.extend_from_slice(chunk);
    }

    /// Returns the next whole event with the blank line behind it.
    pub(crate) fn take_event(&mut self) -> Option<Bytes> {
        while let Some(at) = memchr(b'\n', self.held.get(self.searched..)?) {
            let after = self.searched + at + 1;
            let rest = self.held.get(after..)?;
            let blank = match rest {
                [b'\n', ..] => 1,
                [b'\r', b'\n', ..] => 2,
                // The line break that ends the event may be in the next chunk.
                [] | [b'\r'] => return self.take_overlong(),
                _ => {
                    self.searched = after;
                    continue;
                }
            };
            self.searched = 0;
            return Some(self.held.split_to(after + blank).freeze());
        }
        self.take_overlong()
    }

    fn take_overlong(&mut self) -> Option<Bytes> {
        (self.held.len() > LONGEST_EVENT).then(|| self.take_rest())
    }

    /// Returns what no blank line ended.
    pub(crate) fn take_rest(&mut self) -> Bytes {
        self.searched = 0;
        self.held.split().freeze()
    }
}

/// Returns the JSON of an event; `None` where its data is something else.
pub(crate) fn read_event(event: &[u8]) -> Option<Value> {
    let mut lines = event.split(|byte| *byte == b'\n');
    let data = lines.find_map(|line| line.strip_prefix(b"data:"))?;
    serde_json::from_slice(data.trim_ascii()).ok()
}

/// Writes an event, with its name before it where the provider's have one.
pub(crate) fn write_event(value: &Value) -> Bytes {
    match value.get("type").and_then(Value::as_str) {
        Some(name) => format!("event: {name}\ndata: {value}\n\n").into(),
        None => format!("data: {value}\n\n").into(),
    }
}

/// A body whose chunks somebody sends one by one.
pub(crate) struct WrittenBody(mpsc::Receiver<Result<Bytes, hyper::Error>>);

/// Makes a body and the sender of its chunks. A body whose sender is gone has ended.
pub(crate) fn open_body() -> (mpsc::Sender<Result<Bytes, hyper::Error>>, WrittenBody) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, WrittenBody(receiver))
}

impl HttpBody for WrittenBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let chunk = self.0.poll_recv(context);
        chunk.map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

/// Returns the text at a JSON pointer; an empty one where none is.
pub(crate) fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// Returns the list at a JSON pointer; an empty one where none is.
pub(crate) fn list_at<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}

/// Returns the number that an event or a part says it has.
pub(crate) fn index_of(value: &Value) -> Option<u64> {
    value.get("index")?.as_u64()
}

/// Returns whether a value says that it is of a type.
pub(crate) fn is_of_type(value: &Value, name: &str) -> bool {
    text_at(value, "/type") == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_the_stream_is_cut() {
        let stream =
            "event: a\ndata: {\"type\":\"a\"}\n\ndata: [1]\r\n\r\n: note\n\ndata: [DONE]\n\nrest";
        for size in [1, 2, 3, 7, 100] {
            let mut splitter = EventSplitter::default();
            let mut events = Vec::new();
            for chunk in stream.as_bytes().chunks(size) {
                splitter.add_chunk(chunk);
                while let Some(event) = splitter.take_event() {
                    events.push(event);
                }
            }
            let whole: Vec<&[u8]> = events.iter().map(|event| &**event).collect();
            let expected: [&[u8]; 4] = [
                b"event: a\ndata: {\"type\":\"a\"}\n\n",
                b"data: [1]\r\n\r\n",
                b": note\n\n",
                b"data: [DONE]\n\n",
            ];
            assert_eq!(whole, expected, "{size}");
            assert_eq!(splitter.take_rest(), "rest");
            assert_eq!(write_event(&read_event(&events[0]).unwrap()), events[0]);
            assert_eq!(read_event(&events[3]), None);
        }
    }
}
