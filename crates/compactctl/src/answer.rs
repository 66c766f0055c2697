//! What a command gives back: the same facts for programs and for people.

use compact::config::LoadedFile;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::report::text::printable;

/// The result of a command.
#[derive(Debug, Default)]
pub(crate) struct CommandAnswer {
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

impl CommandAnswer {
    /// An answer of a command that did what it was asked.
    pub(crate) fn new(json: Value, human: String) -> CommandAnswer {
        CommandAnswer {
            json,
            human,
            ..CommandAnswer::default()
        }
    }

    /// The same with bytes for stdout.
    pub(crate) fn with_payload(mut self, payload: Option<Vec<u8>>) -> CommandAnswer {
        self.payload = payload;
        self
    }

    /// The same, of a command that archived something.
    pub(crate) fn having_archived(mut self) -> CommandAnswer {
        self.archived = true;
        self
    }

    /// The same, naming the files of settings that were in force.
    pub(crate) fn with_settings_files(mut self, files: &[LoadedFile]) -> CommandAnswer {
        set_field(&mut self.json, "config_files", settings_files_json(files));
        if !self.human.is_empty() {
            self.human.push_str(&settings_line(files));
        }
        self
    }

    /// The same with another exit code.
    pub(crate) fn with_code(mut self, code: u8) -> CommandAnswer {
        self.code = code;
        self
    }
}

/// The line of a report that names the files of settings; nothing where there are none.
pub(crate) fn settings_line(files: &[LoadedFile]) -> String {
    let names: Vec<String> = files.iter().map(LoadedFile::to_string).collect();
    let line = format!("  settings  {}", printable(&names.join(", ")));
    match files.is_empty() {
        true => String::new(),
        false => format!("{}\n", line.dimmed()),
    }
}

/// The files of settings for programs.
fn settings_files_json(files: &[LoadedFile]) -> Value {
    json!(files.iter().map(with_absolute_path).collect::<Vec<_>>())
}

/// A file of settings by where it really is, for readers who are elsewhere.
pub(crate) fn with_absolute_path(file: &LoadedFile) -> LoadedFile {
    let path = std::path::absolute(&file.path);
    LoadedFile {
        path: path.unwrap_or_else(|_| file.path.clone()),
        ..file.clone()
    }
}

/// Sets a field of a JSON object.
pub(crate) fn set_field(json: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(fields) = json.as_object_mut() {
        fields.insert(key.to_owned(), value.into());
    }
}
