//! What a command gives back: the same facts for programs and for people.

use serde_json::Value;

/// The result of a command.
#[derive(Debug, Default)]
pub struct Answer {
    /// For programs: the one document that `--json` prints.
    pub json: Value,
    /// For people, with styles that the terminal may drop.
    pub human: String,
    /// Bytes that belong on stdout; the words then go to stderr.
    pub payload: Option<Vec<u8>>,
    /// The exit code.
    pub code: u8,
    /// Whether something was archived that the recall index does not know yet.
    pub archived: bool,
}

impl Answer {
    /// An answer of a command that did what it was asked.
    pub fn new(json: Value, human: String) -> Answer {
        Answer {
            json,
            human,
            ..Answer::default()
        }
    }

    /// The same with bytes for stdout.
    pub fn with_payload(mut self, payload: Option<Vec<u8>>) -> Answer {
        self.payload = payload;
        self
    }

    /// The same, of a command that archived something.
    pub fn having_archived(mut self) -> Answer {
        self.archived = true;
        self
    }

    /// The same with another exit code.
    pub fn with_code(mut self, code: u8) -> Answer {
        self.code = code;
        self
    }
}

/// Sets a field of a JSON object.
pub fn set(json: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(fields) = json.as_object_mut() {
        fields.insert(key.to_owned(), value.into());
    }
}
