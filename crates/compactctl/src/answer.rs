//! What a command gives back: the same facts for programs and for people.

use compact_adapters::config::FileInForce;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::report::text::printable;

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

    /// The same, naming the files of settings that were in force.
    pub fn naming(mut self, files: &[FileInForce]) -> Answer {
        set(&mut self.json, "config_files", files_json(files));
        if !self.human.is_empty() {
            self.human.push_str(&settings_line(files));
        }
        self
    }

    /// The same with another exit code.
    pub fn with_code(mut self, code: u8) -> Answer {
        self.code = code;
        self
    }
}

/// The line of a report that names the files of settings; nothing where there are none.
pub fn settings_line(files: &[FileInForce]) -> String {
    let names: Vec<String> = files.iter().map(FileInForce::to_string).collect();
    let line = format!("  settings  {}", printable(&names.join(", ")));
    match files.is_empty() {
        true => String::new(),
        false => format!("{}\n", line.dimmed()),
    }
}

/// The files of settings for programs.
fn files_json(files: &[FileInForce]) -> Value {
    json!(files.iter().map(located).collect::<Vec<_>>())
}

/// A file of settings by where it really is, for readers who are elsewhere.
pub fn located(file: &FileInForce) -> FileInForce {
    let path = std::path::absolute(&file.path);
    FileInForce {
        path: path.unwrap_or_else(|_| file.path.clone()),
        ..file.clone()
    }
}

/// Sets a field of a JSON object.
pub fn set(json: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(fields) = json.as_object_mut() {
        fields.insert(key.to_owned(), value.into());
    }
}
