//! What an agent said so far, as its provider's own JSON.

use bytes::Bytes;
use compact_formats::{Format, ParsedTranscript, TranscriptScope};
use serde_json::Value;

use crate::error::Error;

/// A whole history: a request body, a list of messages, or a parsed transcript.
///
/// ```
/// use compact::{History, format::Format};
/// use serde_json::json;
///
/// let messages = vec![json!({"role": "user", "content": "Hello"})];
/// let of_messages = History::from(&messages);
/// let of_body = History::from(r#"{"model": "gpt-5", "messages": []}"#).in_format(Format::OpenAiChat);
/// ```
#[derive(Debug)]
pub struct History {
    content: HistoryContent,
    format: Option<Format>,
}

#[derive(Debug)]
enum HistoryContent {
    Bytes(Bytes),
    Parsed(Box<ParsedTranscript>),
}

impl History {
    /// Sets the format, if it cannot be detected from the content.
    #[must_use]
    pub fn in_format(mut self, format: Format) -> History {
        self.format = Some(format);
        self
    }

    /// Parses the history; fails if it cannot be read.
    pub(crate) fn parse(self) -> Result<ParsedTranscript, Error> {
        match self.content {
            HistoryContent::Bytes(bytes) => Ok(compact_formats::parse(
                bytes,
                self.format,
                TranscriptScope::Live,
            )?),
            HistoryContent::Parsed(parsed) => Ok(*parsed),
        }
    }

    fn from_bytes(bytes: impl Into<Bytes>) -> History {
        History {
            content: HistoryContent::Bytes(bytes.into()),
            format: None,
        }
    }
}

impl From<Bytes> for History {
    fn from(body: Bytes) -> History {
        History::from_bytes(body)
    }
}

impl From<String> for History {
    fn from(body: String) -> History {
        History::from_bytes(body)
    }
}

impl From<&str> for History {
    fn from(body: &str) -> History {
        History::from_bytes(body.to_owned())
    }
}

impl From<&Value> for History {
    fn from(body: &Value) -> History {
        History::from_bytes(body.to_string())
    }
}

impl From<&[Value]> for History {
    fn from(messages: &[Value]) -> History {
        let messages: Vec<String> = messages.iter().map(Value::to_string).collect();
        History::from_bytes(format!("[{}]", messages.join(",")))
    }
}

impl From<&Vec<Value>> for History {
    fn from(messages: &Vec<Value>) -> History {
        History::from(messages.as_slice())
    }
}

impl From<ParsedTranscript> for History {
    fn from(parsed: ParsedTranscript) -> History {
        History {
            content: HistoryContent::Parsed(Box::new(parsed)),
            format: None,
        }
    }
}
