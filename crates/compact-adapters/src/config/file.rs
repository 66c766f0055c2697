//! A configuration file as keys with their lines. JSON is read as the YAML that it is.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::field::{is_section, join};
use super::{ConfigError, Problem};

/// Sections of other programs' files whose keys some profiles know (S1-150).
pub(super) const OLD_SECTIONS: [&str; 2] = ["context", "ai"];

/// A key of a file with its value.
pub(super) struct Line {
    pub(super) path: String,
    pub(super) value: Value,
    pub(super) number: u64,
}

/// Every key of the file, in order.
pub(super) fn read(path: &Path) -> Result<Vec<Line>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let node = serde_saphyr::from_str(&text).map_err(|e| ConfigError::Syntax {
        path: path.to_owned(),
        line: e.location().map(|l| l.line()).filter(|n| *n > 0),
        message: first_line(&e),
    })?;
    let mut lines = Vec::new();
    match node {
        Node::Leaf(Value::Null) => {}
        Node::Leaf(_) => return Err(no_keys(path)),
        Node::Map(keys) => flatten("", keys, &mut lines),
    }
    Ok(lines)
}

fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned()
}

fn no_keys(path: &Path) -> ConfigError {
    let message = format!("{} holds no keys: write `key: value` lines", path.display());
    ConfigError::Invalid(vec![Problem {
        path: String::new(),
        message,
    }])
}

/// A section's keys become keys of their own; anything else stays one value.
fn flatten(section: &str, keys: Vec<(String, u64, Node)>, out: &mut Vec<Line>) {
    for (key, number, node) in keys {
        let path = join(section, &key);
        match node {
            Node::Map(keys) if is_section(&path) || OLD_SECTIONS.contains(&path.as_str()) => {
                flatten(&path, keys, out);
            }
            Node::Leaf(Value::Null) if is_section(&path) => {}
            node => out.push(Line {
                path,
                value: node.into_value(),
                number,
            }),
        }
    }
}

/// What a document may hold; keys know their lines.
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
