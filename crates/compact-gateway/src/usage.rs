//! Reads what an upstream reports while its answer passes: nothing is held back, and what cannot be read is
//! left alone.

use std::io::{self, Write};

use compact::format::usage::{ReportedUsage, UsageSource};
use compact::format::validate::Provider;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use memchr::{memchr, memmem};
use serde_json::Value;

/// The longest document or line that is read.
const LONGEST: usize = 16 << 20;

/// Looks for reports in the bytes of an answer.
pub(crate) struct UsageReader {
    source: UsageSource,
    form: ReportForm,
    unpacker: Unpacker,
    /// The document, or the line that is not complete yet.
    held: Vec<u8>,
    /// Whether what is held became too long to be read.
    is_overlong: bool,
    found: Option<ReportedUsage>,
}

/// How an answer carries its reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportForm {
    /// In one document.
    Document,
    /// In lines of events.
    Lines,
}

/// What turns an answer's bytes into text.
enum Unpacker {
    Plain,
    Gzip(Box<flate2::write::GzDecoder<BoundedText>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, BoundedText>>),
    /// An encoding that is not known, or that did not hold.
    None,
}

/// What a chunk unpacks to; an upstream may pack much into little.
#[derive(Default)]
struct BoundedText(Vec<u8>);

impl Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl UsageReader {
    /// Reads answers of a provider with these headers.
    pub(crate) fn new(provider: Provider, headers: &HeaderMap) -> UsageReader {
        UsageReader {
            source: usage_source(provider),
            form: match is_event_stream(headers) {
                true => ReportForm::Lines,
                false => ReportForm::Document,
            },
            unpacker: Unpacker::new(headers),
            held: Vec::new(),
            is_overlong: false,
            found: None,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn read_chunk(&mut self, chunk: &[u8]) {
        let mut unpacker = std::mem::replace(&mut self.unpacker, Unpacker::None);
        if let Some(text) = unpacker.unpack(chunk) {
            match self.form {
                ReportForm::Document => self.hold(&text),
                ReportForm::Lines => self.read_lines(&text),
            }
            self.unpacker = unpacker;
        }
    }

    /// Returns what was reported, once the answer has ended.
    pub(crate) fn finish(mut self) -> Option<ReportedUsage> {
        if !self.is_overlong {
            let held = std::mem::take(&mut self.held);
            match self.form {
                ReportForm::Document => self.read_json(&held),
                ReportForm::Lines => self.read_line(&held),
            }
        }
        self.found
    }

    fn read_lines(&mut self, mut text: &[u8]) {
        while let Some(end) = memchr(b'\n', text) {
            let (line, rest) = text.split_at(end);
            text = rest.get(1..).unwrap_or_default();
            if self.held.is_empty() && !self.is_overlong {
                self.read_line(line);
                continue;
            }
            self.hold(line);
            let whole = std::mem::take(&mut self.held);
            if !std::mem::take(&mut self.is_overlong) {
                self.read_line(&whole);
            }
        }
        self.hold(text);
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.held.len() + bytes.len() > LONGEST {
            self.held = Vec::new();
            self.is_overlong = true;
        } else if !self.is_overlong {
            self.held.extend_from_slice(bytes);
        }
    }

    fn read_line(&mut self, line: &[u8]) {
        if let Some(json) = line.strip_prefix(b"data:") {
            self.read_json(json);
        }
    }

    fn read_json(&mut self, json: &[u8]) {
        if !may_report(json) {
            return;
        }
        match serde_json::from_slice(json.trim_ascii()) {
            Ok(Value::Array(parts)) => parts.iter().for_each(|part| self.take_report(part)),
            Ok(value) => self.take_report(&value),
            Err(_) => {}
        }
    }

    fn take_report(&mut self, value: &Value) {
        let Some(later) = self.source.read(value) else {
            return;
        };
        self.found = Some(match self.found {
            Some(report) => report.updated(later),
            None => later,
        });
    }
}

/// Returns whether there may be a report in this text: few events have one, and this is told in a fraction of the time.
pub(crate) fn may_report(text: &[u8]) -> bool {
    memmem::find(text, b"\"usage").is_some()
}

/// Returns how a provider reports.
pub(crate) fn usage_source(provider: Provider) -> UsageSource {
    match provider {
        Provider::OpenAiChat => UsageSource::OpenAiChat,
        Provider::OpenAiResponses => UsageSource::OpenAiResponses,
        Provider::Anthropic => UsageSource::Anthropic,
        Provider::Gemini => UsageSource::Gemini,
    }
}

/// Returns whether an answer is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
}

impl Unpacker {
    fn new(headers: &HeaderMap) -> Unpacker {
        match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
            None | Some(b"identity") => Unpacker::Plain,
            Some(b"gzip") => {
                let decoder = flate2::write::GzDecoder::new(BoundedText::default());
                Unpacker::Gzip(Box::new(decoder))
            }
            Some(b"zstd") => zstd::stream::write::Decoder::new(BoundedText::default())
                .map_or(Unpacker::None, |decoder| Unpacker::Zstd(Box::new(decoder))),
            Some(_) => Unpacker::None,
        }
    }

    /// Returns the text of the next bytes; `None` once it cannot be told.
    fn unpack<'c>(&mut self, chunk: &'c [u8]) -> Option<std::borrow::Cow<'c, [u8]>> {
        let unpacked = match self {
            Unpacker::Plain => return Some(chunk.into()),
            Unpacker::Gzip(decoder) => {
                decoder.write_all(chunk).ok()?;
                decoder.flush().ok()?;
                std::mem::take(decoder.get_mut()).0
            }
            Unpacker::Zstd(decoder) => {
                decoder.write_all(chunk).ok()?;
                decoder.flush().ok()?;
                std::mem::take(decoder.get_mut()).0
            }
            Unpacker::None => return None,
        };
        Some(unpacked.into())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    const STREAM: &str = "event: message_start\n\
        data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":90,\"output_tokens\":1}}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hi\"}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n";

    fn tokens(mut reader: UsageReader, bytes: &[u8], size: usize) -> Option<(u64, u64)> {
        bytes
            .chunks(size)
            .for_each(|chunk| reader.read_chunk(chunk));
        let usage = reader.finish()?.usage;
        Some((usage.prompt_tokens().0, usage.output_tokens))
    }

    #[test]
    fn reports_are_read_however_the_stream_is_cut() {
        let events = headers(&[(CONTENT_TYPE, "text/event-stream; charset=utf-8")]);
        for size in [1, 7, 64, 10_000] {
            let reader = UsageReader::new(Provider::Anthropic, &events);
            assert_eq!(
                tokens(reader, STREAM.as_bytes(), size),
                Some((95, 7)),
                "{size}"
            );
        }
    }

    #[test]
    fn packed_answers_are_read_too() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(STREAM.as_bytes()).unwrap();
        let packed = encoder.finish().unwrap();
        let packed_headers = headers(&[
            (CONTENT_TYPE, "text/event-stream"),
            (CONTENT_ENCODING, "gzip"),
        ]);
        let reader = UsageReader::new(Provider::Anthropic, &packed_headers);
        assert_eq!(tokens(reader, &packed, 11), Some((95, 7)));
        let unknown = headers(&[(CONTENT_ENCODING, "br")]);
        let reader = UsageReader::new(Provider::Anthropic, &unknown);
        assert_eq!(tokens(reader, &packed, 11), None);
    }

    #[test]
    fn an_answer_that_unpacks_to_more_than_is_read_is_given_up() {
        let zeros = vec![b' '; 256 << 20];
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&zeros).unwrap();
        for (name, bomb) in [
            ("gzip", gzip.finish().unwrap()),
            ("zstd", zstd::encode_all(&*zeros, 1).unwrap()),
        ] {
            let mut unpacker = Unpacker::new(&headers(&[(CONTENT_ENCODING, name)]));
            assert!(unpacker.unpack(&bomb).is_none(), "{name}");
            let room = match unpacker {
                Unpacker::Gzip(mut decoder) => decoder.get_mut().0.capacity(),
                Unpacker::Zstd(mut decoder) => decoder.get_mut().0.capacity(),
                Unpacker::Plain | Unpacker::None => 0,
            };
            assert!((1..=2 * LONGEST).contains(&room), "{name}: {room}");
        }
    }

    #[test]
    fn a_document_is_read_at_its_end() {
        let json = headers(&[(CONTENT_TYPE, "application/json")]);
        let body = br#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}"#;
        let reader = UsageReader::new(Provider::OpenAiChat, &json);
        assert_eq!(tokens(reader, body, 5), Some((12, 3)));
        let list = br#"[{"usageMetadata":{"promptTokenCount":4}},{"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":2}}]"#;
        let reader = UsageReader::new(Provider::Gemini, &json);
        assert_eq!(tokens(reader, list, 9), Some((4, 2)));
    }
}
