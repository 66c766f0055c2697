//! The keys of the configuration, read off its JSON Schema: path, kind, default, description.

use std::fmt;
use std::sync::LazyLock;

use serde_json::Value;

use super::Config;

/// One key.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its dotted path, e.g. `policy.trigger_pct`.
    pub path: String,
    /// What values it takes.
    pub kind: Kind,
    /// Whether it may be unset (`null`).
    pub optional: bool,
    /// What it means.
    pub description: String,
    /// Its value in the default profile.
    pub default: Value,
}

/// What values a key takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number from zero up.
    Integer,
    /// Any number.
    Number,
    /// Text.
    Text,
    /// One of these names.
    Choice(Vec<String>),
    /// A list of values of one kind.
    List(Box<Kind>),
}

static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let schema = Config::schema();
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut fields = Vec::new();
    collect(&schema, &schema, &defaults, "", &mut fields);
    fields
});

/// Every key, in the order of the types.
pub fn fields() -> &'static [Field] {
    &FIELDS
}

/// The key at a path.
pub(super) fn field(path: &str) -> Option<&'static Field> {
    fields().iter().find(|field| field.path == path)
}

/// True for a group of keys such as `policy`; the root is one too.
pub(super) fn is_section(path: &str) -> bool {
    path.is_empty()
        || fields()
            .iter()
            .any(|f| parent_paths(&f.path).any(|p| p == path))
}

/// `a.b.c` → `a.b`, `a`.
pub(super) fn parent_paths(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |p| Some(p.rsplit_once('.')?.0)).skip(1)
}

/// The path of a key within a section.
pub(super) fn join(section: &str, key: &str) -> String {
    if section.is_empty() {
        key.to_owned()
    } else {
        format!("{section}.{key}")
    }
}

fn collect(root: &Value, schema: &Value, defaults: &Value, path: &str, out: &mut Vec<Field>) {
    let Some(properties) = resolved(root, schema)
        .get("properties")
        .and_then(Value::as_object)
    else {
        return;
    };
    for (key, property) in properties {
        let path = join(path, key);
        let default = defaults.get(key).cloned().unwrap_or_default();
        let Some((kind, optional)) = kind(root, property) else {
            collect(root, property, &default, &path, out);
            continue;
        };
        let text = |schema: &Value| {
            schema
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let description = text(property)
            .or_else(|| text(resolved(root, property)))
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

fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    reference
        .and_then(|r| root.pointer(r.strip_prefix('#')?))
        .unwrap_or(schema)
}

/// The kind of a leaf and whether it may be null; `None` for a section.
fn kind(root: &Value, schema: &Value) -> Option<(Kind, bool)> {
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
        let is_null = |s: &&Value| s.get("type").is_some_and(|t| t == "null");
        let kinds = options.iter().filter(|s| !is_null(s));
        return kinds
            .filter_map(|s| kind(root, s))
            .next()
            .map(|(kind, _)| (kind, true));
    }
    let schema = resolved(root, schema);
    if let Some(names) = choices(schema) {
        return Some((Kind::Choice(names), false));
    }
    let types: Vec<&str> = match schema.get("type")? {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let kind = match *types.iter().find(|t| **t != "null")? {
        "boolean" => Kind::Bool,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "string" => Kind::Text,
        "array" => Kind::List(Box::new(kind(root, schema.get("items")?)?.0)),
        _ => return None,
    };
    Some((kind, types.contains(&"null")))
}

fn choices(schema: &Value) -> Option<Vec<String>> {
    let text = |v: &Value| v.as_str().map(str::to_owned);
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        return names.iter().map(text).collect();
    }
    let variants = schema.get("oneOf").and_then(Value::as_array)?;
    let names = variants
        .iter()
        .flat_map(|variant| match variant.get("const") {
            Some(name) => vec![text(name)],
            None => choices(variant)
                .unwrap_or_default()
                .into_iter()
                .map(Some)
                .collect(),
        });
    names.collect()
}

impl Kind {
    /// True when a value is of this kind.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Bool, Value::Bool(_)) | (Kind::Number, Value::Number(_)) => true,
            (Kind::Integer, Value::Number(n)) => n.as_u64().is_some(),
            (Kind::Text, Value::String(_)) => true,
            (Kind::Choice(names), Value::String(name)) => names.contains(name),
            (Kind::List(item), Value::Array(values)) => values.iter().all(|v| item.accepts(v)),
            _ => false,
        }
    }

    /// Reads a value from text, as variables and flags have it. Lists are written `a,b` or as JSON.
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        match self {
            Kind::Bool => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true.into()),
                "false" | "0" | "no" | "off" => Some(false.into()),
                _ => None,
            },
            Kind::Integer => text.replace('_', "").parse::<u64>().ok().map(Value::from),
            Kind::Number => text
                .parse::<f64>()
                .ok()
                .filter(|n| n.is_finite())
                .map(Value::from),
            Kind::Text | Kind::Choice(_) => Some(text.into()),
            Kind::List(_) if text.trim_start().starts_with('[') => serde_json::from_str(text).ok(),
            Kind::List(item) => {
                let items = text.split(',').map(str::trim).filter(|t| !t.is_empty());
                items.map(|t| item.parse(t)).collect()
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bool => f.write_str("true or false"),
            Kind::Integer => f.write_str("a whole number"),
            Kind::Number => f.write_str("a number"),
            Kind::Text => f.write_str("text"),
            Kind::Choice(names) => write!(f, "one of {}", names.join(", ")),
            Kind::List(item) => match &**item {
                Kind::Text => f.write_str("a list of texts"),
                Kind::Choice(names) => write!(f, "a list of {}", names.join(", ")),
                item => write!(f, "a list, each {item}"),
            },
        }
    }
}
