//! A configuration file as keys with their lines: YAML, JSON, which is read as the YAML that it is, or
//! TOML, by the file's name.
//!
//! A file is read once: what is parsed is what was hashed, whatever becomes of it meanwhile. One that
//! nobody named may be anything that a repository can hold, so it is opened without waiting for it and
//! must be a regular file; none may be larger than any configuration is.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use toml::de::{DeTable, DeValue};

use super::field::{is_section, join_path};
use super::trust::may_be_written_by_others;
use super::{ConfigError, ConfigProblem};

/// Sections of other programs' files whose keys some profiles know.
pub(super) const OLD_SECTIONS: [&str; 2] = ["context", "ai"];

/// A key of a file with its value.
pub(super) struct KeyLine {
    pub(super) path: String,
    pub(super) value: Value,
    pub(super) number: u64,
}

/// The most bytes that are read.
const MOST_BYTES: u64 = 1 << 20;

/// The most keys, values and items, aliases written out: many times what there is to set.
const MOST_NODES: usize = 20_000;

/// What some editors begin a file with.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The content of a file at the time it was read.
#[derive(Clone, Debug)]
pub struct FileText {
    path: PathBuf,
    bytes: Vec<u8>,
    is_shared: bool,
}

impl FileText {
    /// Reads a file that somebody named; it may be a pipe.
    pub fn read(path: &Path) -> io::Result<FileText> {
        FileText::read_limited(path, File::open(path)?)
    }

    /// Reads a file that was found; a pipe or a device is refused at once.
    pub fn read_regular(path: &Path) -> io::Result<FileText> {
        let file = open_at_once(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        FileText::read_limited(path, file)
    }

    /// Reads a file that a project brings along, as one that was found. A link that leads out of its folder is refused: what is
    /// wrong with a file is told in its own words, and those of another one are not the project's to show.
    pub fn read_own(path: &Path) -> io::Result<FileText> {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize()?;
        if !path.canonicalize()?.starts_with(folder) {
            return Err(io::Error::other(
                "it is a link that leads out of its folder; name the file itself with --config",
            ));
        }
        FileText::read_regular(path)
    }

    fn read_limited(path: &Path, file: File) -> io::Result<FileText> {
        let is_shared = may_be_written_by_others(&file.metadata()?);
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("it is larger than 1 MiB"));
        }
        Ok(FileText {
            path: path.to_owned(),
            bytes,
            is_shared,
        })
    }

    /// Returns what somebody just wrote into a file.
    pub fn from_written(path: &Path, bytes: &[u8]) -> FileText {
        FileText {
            path: path.to_owned(),
            bytes: bytes.to_vec(),
            is_shared: false,
        }
    }

    /// Returns where it was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what it held.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the hash of what it held.
    pub fn hash(&self) -> String {
        blake3::hash(&self.bytes).to_hex().to_string()
    }

    /// Returns whether somebody other than its user could have written it.
    pub(super) fn may_be_written_by_others(&self) -> bool {
        self.is_shared
    }
}

/// Opens a file without waiting for whoever writes into it.
fn open_at_once(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY)
            .bits()
            .cast_signed(),
    );
    options.open(path)
}

/// Returns every key of the file, in order.
pub(super) fn parse(file: &FileText) -> Result<Vec<KeyLine>, ConfigError> {
    let path = file.path();
    let syntax = |line, message| ConfigError::Syntax {
        path: path.to_owned(),
        line,
        message,
    };
    let text = std::str::from_utf8(file.bytes()).map_err(|e| syntax(None, e.to_string()))?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    if path.extension().is_some_and(|name| name == "toml") {
        let mut lines = Vec::new();
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map(|span| line_of(text, span.start));
            syntax(line, error.message().to_owned())
        })?;
        flatten_section("", toml_keys(text, table.into_inner()), &mut lines);
        return Ok(lines);
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MOST_NODES },
    };
    let node = serde_saphyr::from_str_with_options(text, options).map_err(|e| {
        let line = e.location().map(|l| l.line()).filter(|n| *n > 0);
        syntax(line, first_line(&e))
    })?;
    let mut lines = Vec::new();
    match node {
        Node::Leaf(Value::Null) => {}
        Node::Leaf(_) => return Err(no_keys_error(path)),
        Node::Map(keys) => flatten_section("", keys, &mut lines),
    }
    Ok(lines)
}

/// Returns the keys of a TOML table in the order in which they stand.
fn toml_keys(text: &str, table: DeTable<'_>) -> Vec<(String, u64, Node)> {
    let mut keys: Vec<_> = table
        .into_iter()
        .map(|(key, value)| {
            let line = line_of(text, key.span().start);
            (
                key.into_inner().into_owned(),
                line,
                toml_node(text, value.into_inner()),
            )
        })
        .collect();
    keys.sort_by_key(|(_, line, _)| *line);
    keys
}

fn toml_node(text: &str, value: DeValue<'_>) -> Node {
    match value {
        DeValue::Table(table) => Node::Map(toml_keys(text, table)),
        DeValue::Array(items) => {
            let items = items
                .into_iter()
                .map(|item| toml_node(text, item.into_inner()));
            Node::Leaf(items.map(Node::into_value).collect::<Vec<_>>().into())
        }
        DeValue::Boolean(value) => Node::Leaf(value.into()),
        DeValue::String(value) => Node::Leaf(value.into_owned().into()),
        DeValue::Integer(value) => Node::Leaf(parsed_number(value.as_str())),
        DeValue::Float(value) => Node::Leaf(parsed_number(value.as_str())),
        DeValue::Datetime(value) => Node::Leaf(value.to_string().into()),
    }
}

/// Returns a number as JSON has it; one that JSON has not stays text, and is refused as such.
fn parsed_number(text: &str) -> Value {
    let plain = text.replace('_', "");
    serde_json::from_str(plain.trim_start_matches('+')).unwrap_or_else(|_| text.into())
}

/// Returns the line of a byte, counted from 1.
fn line_of(text: &str, at: usize) -> u64 {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned()
}

fn no_keys_error(path: &Path) -> ConfigError {
    let message = format!("{} holds no keys: write `key: value` lines", path.display());
    ConfigError::Invalid(vec![ConfigProblem {
        path: String::new(),
        message,
    }])
}

/// Flattens the keys of a section into paths; any other value stays one value.
fn flatten_section(section: &str, keys: Vec<(String, u64, Node)>, out: &mut Vec<KeyLine>) {
    for (key, number, node) in keys {
        let path = join_path(section, &key);
        match node {
            Node::Map(keys) if is_section(&path) || OLD_SECTIONS.contains(&path.as_str()) => {
                flatten_section(&path, keys, out);
            }
            node => out.push(KeyLine {
                path,
                value: node.into_value(),
                number,
            }),
        }
    }
}

/// A node of a parsed document; keys know their lines.
enum Node {
    Leaf(Value),
    Map(Vec<(String, u64, Node)>),
}

impl Node {
    fn into_value(self) -> Value {
        match self {
            Node::Leaf(value) => value,
            Node::Map(keys) => keys
                .into_iter()
                .map(|(k, _, node)| (k, node.into_value()))
                .collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }
    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        let number = serde_json::Number::from_f64(value);
        Ok(Node::Leaf(
            number.map_or_else(|| value.to_string().into(), Value::Number),
        ))
    }
    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut values = Vec::new();
        while let Some(node) = seq.next_element::<Node>()? {
            values.push(node.into_value());
        }
        Ok(Node::Leaf(values.into()))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut keys = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            keys.push((key.value, key.referenced.line(), map.next_value()?));
        }
        Ok(Node::Map(keys))
    }
}
