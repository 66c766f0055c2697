//! Usage as it would have been without a gateway, for clients whose users asked for that (`gateway.nudge_clients`).
//!
//! What a provider reports is what a view cost. A client that hears only that never compacts: what it keeps and sends grows
//! for as long as it works. A nudged one is told what its own history would have cost, at the rate of the tokens that were
//! reported, and compacts when it would have compacted by itself. Numbers change in their places and nothing else does; what
//! the gateway counts, and what a session knows, stays what was reported.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use compact::format::validate::Provider;
use compact::token::Tokens;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::{Body as HttpBody, Frame};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::event_stream::EventSplitter;
use crate::usage::{is_event_stream, may_report, usage_source};

/// How much longer a client's history is than what was sent of it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nudge {
    came: usize,
    sent: usize,
}

/// Hears once what was reported, and what the client is told.
pub(crate) type NudgeNote = Box<dyn FnOnce(Tokens, Tokens) + Send>;

impl Nudge {
    /// Returns the nudge for a client that sent more than was sent on.
    pub(crate) fn new(came: usize, sent: usize) -> Option<Nudge> {
        (came > sent && sent > 0).then_some(Nudge { came, sent })
    }

    /// Returns the tokens that the client's history has more than the prompt that was reported.
    fn hidden_tokens(self, reported: u64) -> u64 {
        let hidden = (self.came - self.sent) as u128 * u128::from(reported) / self.sent as u128;
        u64::try_from(hidden).unwrap_or(u64::MAX)
    }

    /// Raises what an answer reports, while it passes.
    pub(crate) fn raise_usage(
        self,
        provider: Provider,
        answer: Response,
        note: NudgeNote,
    ) -> Response {
        if answer.headers().contains_key(CONTENT_ENCODING) {
            return answer;
        }
        let raiser = UsageRaiser {
            provider,
            nudge: self,
            hidden: None,
            note: Some(note),
        };
        let is_stream = is_event_stream(answer.headers());
        let mut raised = answer.map(|came| {
            Body::new(RaisedBody {
                came: Some(came),
                splitter: EventSplitter::default(),
                is_stream,
                raiser,
            })
        });
        raised.headers_mut().remove(CONTENT_LENGTH);
        raised
    }
}

/// Raises the counts of prompts in an answer.
struct UsageRaiser {
    provider: Provider,
    nudge: Nudge,
    /// What is added to each count, once one was reported.
    hidden: Option<u64>,
    note: Option<NudgeNote>,
}

impl UsageRaiser {
    /// Returns an event or a document with its report raised; everything else keeps its bytes.
    fn raise_text(&mut self, text: Bytes) -> Bytes {
        if !may_report(&text) {
            return text;
        }
        self.write_raised(&text).map_or(text, Bytes::from)
    }

    fn write_raised(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let json = find_json(text)?;
        let value: Value = serde_json::from_str(json).ok()?;
        let reported = usage_source(self.provider).read(&value)?.usage;
        let hidden = self.hidden_tokens(reported.prompt_tokens())?;
        let mut written = Vec::with_capacity(text.len() + 16);
        let mut copied = 0;
        for number in self.find_counts(json) {
            // A number is a part of the text that it was read from.
            let start = number.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
            let raised = number.parse::<u64>().ok()?.saturating_add(hidden);
            written.extend_from_slice(text.get(copied..start)?);
            written.extend_from_slice(raised.to_string().as_bytes());
            copied = start + number.len();
        }
        written.extend_from_slice(text.get(copied..)?);
        Some(written)
    }

    /// Returns what is added to each count of an answer; events may report the same prompt again, or only what was answered.
    fn hidden_tokens(&mut self, reported: Tokens) -> Option<u64> {
        if self.hidden.is_none() && reported.0 > 0 {
            let hidden = self.nudge.hidden_tokens(reported.0);
            if let Some(note) = self.note.take() {
                note(reported, Tokens(reported.0.saturating_add(hidden)));
            }
            self.hidden = Some(hidden);
        }
        self.hidden
    }

    /// Finds the counts that a prompt is part of, in the order in which they stand.
    fn find_counts<'j>(&self, json: &'j str) -> Vec<&'j str> {
        let (places, names): (&[&[&str]], &[&str]) = match self.provider {
            Provider::Anthropic => (&[&["message", "usage"], &["usage"]], &["input_tokens"]),
            Provider::OpenAiChat => (&[&["usage"]], &["prompt_tokens", "total_tokens"]),
            Provider::OpenAiResponses => (
                &[&["response", "usage"], &["usage"]],
                &["input_tokens", "total_tokens"],
            ),
            Provider::Gemini => (
                &[&["usageMetadata"]],
                &["promptTokenCount", "totalTokenCount"],
            ),
        };
        let objects = places.iter().filter_map(|place| {
            let mut names = place.iter();
            names.try_fold(json, |within, name| find_member(within, name))
        });
        let mut counts: Vec<&str> = objects
            .flat_map(|object| names.iter().filter_map(|name| find_member(object, name)))
            .collect();
        counts.sort_by_key(|count| count.as_ptr().addr());
        counts
    }
}

/// Returns the JSON of a document, or of the data of an event.
fn find_json(text: &[u8]) -> Option<&str> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let data = lines.find_map(|line| line.strip_prefix(b"data:"));
    std::str::from_utf8(data.unwrap_or(text)).ok()
}

/// Returns a member of an object as it is written there.
fn find_member<'j>(object: &'j str, name: &str) -> Option<&'j str> {
    let members: BTreeMap<Cow<'_, str>, &'j RawValue> = serde_json::from_str(object).ok()?;
    members.get(name).map(|member| member.get())
}

/// The body of an answer whose reports are raised on its way to the client.
struct RaisedBody {
    /// None once it has ended.
    came: Option<Body>,
    splitter: EventSplitter,
    /// Whether its events pass one by one; a document is held until it is whole.
    is_stream: bool,
    raiser: UsageRaiser,
}

impl HttpBody for RaisedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            let whole = self.is_stream.then(|| self.splitter.take_event());
            if let Some(event) = whole.flatten() {
                return Poll::Ready(Some(Ok(Frame::data(self.raiser.raise_text(event)))));
            }
            let Some(came) = &mut self.came else {
                return Poll::Ready(None);
            };
            match ready!(Pin::new(came).poll_frame(context)) {
                Some(Ok(frame)) => self
                    .splitter
                    .add_chunk(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.came = None;
                    let rest = self.splitter.take_rest();
                    if !rest.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(self.raiser.raise_text(rest)))));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Returns what a client gets that sent four times what was sent on, and what was noted.
    fn raise(provider: Provider, texts: &[&str]) -> (Vec<String>, Vec<(u64, u64)>) {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&noted);
        let mut raiser = UsageRaiser {
            provider,
            nudge: Nudge::new(4_000, 1_000).unwrap(),
            hidden: None,
            note: Some(Box::new(move |reported, shown| {
                note.lock().unwrap().push((reported.0, shown.0));
            })),
        };
        let raised = texts.iter().map(|text| {
            let raised = raiser.raise_text(Bytes::copy_from_slice(text.as_bytes()));
            String::from_utf8(raised.to_vec()).unwrap()
        });
        let raised = raised.collect();
        let noted = noted.lock().unwrap().clone();
        (raised, noted)
    }

    #[test]
    fn numbers_of_the_prompt_are_raised_and_nothing_else_changes() {
        let start = "event: message_start\ndata: {\"type\": \"message_start\", \"message\":{\"usage\":{\"input_tokens\":5 ,\"cache_read_input_tokens\":95,\"output_tokens\":1}}}\n\n";
        let delta = "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"\\\"usage\\\": 7\"}}\n\n";
        let end = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":40}}\n\n";
        let (raised, noted) = raise(Provider::Anthropic, &[start, delta, end]);
        let expected = start.replace("\"input_tokens\":5 ", "\"input_tokens\":305 ");
        assert_eq!(raised, [&*expected, delta, end]);
        assert_eq!(noted, [(100, 400)]);
    }

    #[test]
    fn every_provider_is_raised_in_its_own_shape() {
        for (provider, came, goes) in [
            (
                Provider::OpenAiChat,
                r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":2,"total_tokens":102}}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":400,"completion_tokens":2,"total_tokens":402}}"#,
            ),
            (
                Provider::OpenAiResponses,
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":90},"output_tokens":2,"total_tokens":102}}}"#,
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":400,"input_tokens_details":{"cached_tokens":90},"output_tokens":2,"total_tokens":402}}}"#,
            ),
            (
                Provider::Gemini,
                r#"{"candidates":[],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":102}}"#,
                r#"{"candidates":[],"usageMetadata":{"promptTokenCount":400,"totalTokenCount":402}}"#,
            ),
        ] {
            let (raised, noted) = raise(provider, &[came]);
            assert_eq!((&*raised[0], &*noted), (goes, &[(100, 400)][..]));
        }
    }

    #[test]
    fn what_cannot_be_raised_passes_as_it_came() {
        for text in [
            "data: {\"usage\"",
            "{\"usage\":{\"prompt_tokens\":\"many\"}}",
            "\"usage\"",
        ] {
            let (raised, noted) = raise(Provider::OpenAiChat, &[text]);
            assert_eq!((&*raised[0], noted.len()), (text, 0));
        }
        assert_eq!(Nudge::new(10, 10), None);
        assert_eq!(Nudge::new(10, 0), None);
    }
}
