//! The keys of the configuration, read off its JSON Schema: path, kind, default, description.

use std::fmt;
use std::sync::LazyLock;

use serde_json::Value;

use super::Config;

/// A key of the configuration, as the schema describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its dotted path, e.g. `policy.trigger_pct`.
    pub path: String,
    /// What values it takes.
    pub kind: FieldKind,
    /// Whether it may be unset (`null`).
    pub optional: bool,
    /// The doc comment of the setting.
    pub description: String,
    /// Its value in the default profile.
    pub default: Value,
}

/// The type of a key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// `true` or `false`.
    Bool,
    /// A whole number from zero up.
    Integer,
    /// A number with or without a fraction.
    Number,
    /// Any text.
    Text,
    /// One of these names.
    Choice(Vec<String>),
    /// A list of values of one kind.
    List(Box<FieldKind>),
}

static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let schema = Config::schema();
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut fields = Vec::new();
    collect_fields(&schema, &schema, &defaults, "", &mut fields);
    fields
});

/// Returns every key, in the order of the types.
pub fn all_fields() -> &'static [Field] {
    &FIELDS
}

/// Returns the key at a path.
pub(super) fn find_field(path: &str) -> Option<&'static Field> {
    all_fields().iter().find(|field| field.path == path)
}

/// Returns true for a group of keys such as `policy`; the root is one too.
pub(super) fn is_section(path: &str) -> bool {
    path.is_empty()
        || all_fields()
            .iter()
            .any(|f| parent_paths(&f.path).any(|p| p == path))
}

/// Returns the paths of the sections around a key: for `a.b.c`, `a.b` and `a`.
pub(super) fn parent_paths(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |p| Some(p.rsplit_once('.')?.0)).skip(1)
}

/// Returns the path of a key within a section.
pub(super) fn join_path(section: &str, key: &str) -> String {
    if section.is_empty() {
        key.to_owned()
    } else {
        format!("{section}.{key}")
    }
}

fn collect_fields(
    root: &Value,
    schema: &Value,
    defaults: &Value,
    path: &str,
    out: &mut Vec<Field>,
) {
    let Some(properties) = resolve_reference(root, schema)
        .get("properties")
        .and_then(Value::as_object)
    else {
        return;
    };
    for (key, property) in properties {
        let path = join_path(path, key);
        let default = defaults.get(key).cloned().unwrap_or_default();
        let Some((kind, optional)) = leaf_kind(root, property) else {
            collect_fields(root, property, &default, &path, out);
            continue;
        };
        let text = |schema: &Value| {
            schema
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let description = text(property)
            .or_else(|| text(resolve_reference(root, property)))
            .unwrap_or_default();
        out.push(Field {
            path,
            kind,
            optional,
            description: one_line(&description),
            default,
        });
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn resolve_reference<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    reference
        .and_then(|r| root.pointer(r.strip_prefix('#')?))
        .unwrap_or(schema)
}

/// Returns the kind of a leaf and whether it may be null; `None` for a section.
fn leaf_kind(root: &Value, schema: &Value) -> Option<(FieldKind, bool)> {
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
        let is_null = |s: &&Value| s.get("type").is_some_and(|t| t == "null");
        let kinds = options.iter().filter(|s| !is_null(s));
        return kinds
            .filter_map(|s| leaf_kind(root, s))
            .next()
            .map(|(kind, _)| (kind, true));
    }
    let schema = resolve_reference(root, schema);
    if let Some(names) = choice_names(schema) {
        return Some((FieldKind::Choice(names), false));
    }
    let types: Vec<&str> = match schema.get("type")? {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let kind = match *types.iter().find(|t| **t != "null")? {
        "boolean" => FieldKind::Bool,
        "integer" => FieldKind::Integer,
        "number" => FieldKind::Number,
        "string" => FieldKind::Text,
        "array" => FieldKind::List(Box::new(leaf_kind(root, schema.get("items")?)?.0)),
        _ => return None,
    };
    Some((kind, types.contains(&"null")))
}

fn choice_names(schema: &Value) -> Option<Vec<String>> {
    let text = |v: &Value| v.as_str().map(str::to_owned);
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        return names.iter().map(text).collect();
    }
    let variants = schema.get("oneOf").and_then(Value::as_array)?;
    let names = variants
        .iter()
        .flat_map(|variant| match variant.get("const") {
            Some(name) => vec![text(name)],
            None => choice_names(variant)
                .unwrap_or_default()
                .into_iter()
                .map(Some)
                .collect(),
        });
    names.collect()
}

impl FieldKind {
    /// Returns whether a value is of this kind.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (FieldKind::Bool, Value::Bool(_)) | (FieldKind::Number, Value::Number(_)) => true,
            (FieldKind::Integer, Value::Number(n)) => n.as_u64().is_some(),
            (FieldKind::Text, Value::String(_)) => true,
            (FieldKind::Choice(names), Value::String(name)) => names.contains(name),
            (FieldKind::List(item), Value::Array(values)) => values.iter().all(|v| item.accepts(v)),
            _ => false,
        }
    }

    /// Reads a value from text, as variables and flags have it. Lists are written `a,b` or as JSON.
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        match self {
            FieldKind::Bool => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true.into()),
                "false" | "0" | "no" | "off" => Some(false.into()),
                _ => None,
            },
            FieldKind::Integer => text.replace('_', "").parse::<u64>().ok().map(Value::from),
            FieldKind::Number => text
                .parse::<f64>()
                .ok()
                .filter(|n| n.is_finite())
                .map(Value::from),
            FieldKind::Text | FieldKind::Choice(_) => Some(text.into()),
            FieldKind::List(_) if text.trim_start().starts_with('[') => {
                serde_json::from_str(text).ok()
            }
            FieldKind::List(item) => {
                let items = text.split(',').map(str::trim).filter(|t| !t.is_empty());
                items.map(|t| item.parse(t)).collect()
            }
        }
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldKind::Bool => f.write_str("true or false"),
            FieldKind::Integer => f.write_str("a whole number"),
            FieldKind::Number => f.write_str("a number"),
            FieldKind::Text => f.write_str("text"),
            FieldKind::Choice(names) => write!(f, "one of {}", names.join(", ")),
            FieldKind::List(item) => match &**item {
                FieldKind::Text => f.write_str("a list of texts"),
                FieldKind::Choice(names) => write!(f, "a list of {}", names.join(", ")),
                item => write!(f, "a list, each {item}"),
            },
        }
    }
}
