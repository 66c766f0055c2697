//! Reading transcripts: a file or stdin, whole, and never without a name in the error.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use compact::format::{Format, ParsedTranscript, TranscriptScope};

use crate::failure::{Failure, FailureCode};
use crate::output;
use crate::report::number;

/// Files above this size are announced before they are read.
const LARGE: u64 = 1 << 30;

/// Bytes with the name they came under.
#[derive(Clone, Debug)]
pub(crate) struct InputSource {
    /// For messages.
    pub name: String,
    /// The file, when it is one.
    pub path: Option<PathBuf>,
    /// The bytes.
    pub bytes: Bytes,
}

impl InputSource {
    /// Reads a file, or stdin for `-`.
    pub(crate) fn read(path: &Path) -> Result<InputSource, Failure> {
        if path == Path::new("-") {
            let bytes =
                read_to_end(io::stdin().lock()).map_err(|e| unreadable_input("stdin", &e))?;
            return Ok(InputSource {
                name: "stdin".to_owned(),
                path: None,
                bytes,
            });
        }
        let name = path.display().to_string();
        let bytes = read_file(path, &name).map_err(|e| unreadable_input(&name, &e))?;
        Ok(InputSource {
            name,
            path: Some(path.to_owned()),
            bytes,
        })
    }

    /// One session of a file that holds many; without an index, the file as it is.
    pub(crate) fn select_session(self, index: Option<usize>) -> Result<InputSource, Failure> {
        let Some(index) = index else { return Ok(self) };
        let slices = compact::format::sessions(&self.bytes, None)
            .map_err(|error| Failure::from(error).with_context(&self.name))?;
        let Some(slice) = slices.get(index) else {
            let last = slices.len().saturating_sub(1);
            return Err(Failure::usage(
                format!("{}: there is no session {index}", self.name),
                &format!("pass --session-index 0 to {last}"),
            ));
        };
        Ok(InputSource {
            name: format!("{} #{index}", self.name),
            bytes: self.bytes.slice(slice.span.clone()),
            ..self
        })
    }

    /// Parses the bytes; an error names the file, the line and the field.
    pub(crate) fn parse(
        &self,
        format: Option<Format>,
        scope: TranscriptScope,
    ) -> Result<ParsedTranscript, Failure> {
        compact::format::parse(self.bytes.clone(), format, scope)
            .map_err(|error| Failure::from(error).with_context(&self.name))
    }
}

fn read_file(path: &Path, name: &str) -> io::Result<Bytes> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a directory, not a file",
        ));
    }
    if found.len() > LARGE {
        let size = number::format_bytes(found.len());
        output::print_stderr(&format!("note: reading all {size} of {name} into memory\n"));
    }
    read_to_end(file)
}

fn read_to_end(mut reader: impl Read) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

fn unreadable_input(name: &str, error: &io::Error) -> Failure {
    Failure::from_error(FailureCode::Input, error)
        .with_context(&format!("cannot read {name}"))
        .help("pass a transcript file, or - for stdin")
}
