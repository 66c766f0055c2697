//! The types of events for those who read them in TypeScript, drawn from the schema of [`Event`].
//!
//! The test compares `docs/events.d.ts`; `cargo xtask docs` lets it write the file. `tests/dashboard` has the compiler judge
//! it with events of the real program.

use expect_test::expect_file;
use schemars::generate::SchemaSettings;

use super::*;

const HEAD: &str = "\
// The events of Compact as JSON: compactions, resets, hooks and runs (docs/observability.md).
// Written by `cargo xtask docs` from the types of the program.

/** One event. `event` tells its kind: `if (event.event === \"context_compacted\") event.tokens_after`. */
export type CompactEvent = EventBase & EventKind;

/** The name of a kind of event. */
export type EventName = CompactEvent[\"event\"];

/** The events of one kind: `EventOf<\"run_finished\">`. */
export type EventOf<Name extends EventName> = Extract<CompactEvent, { event: Name }>;
";

#[test]
fn the_types_are_up_to_date() {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Event>();
    let mut out = HEAD.to_owned();
    for (name, definition) in schema.as_value()["$defs"].as_object().unwrap() {
        let (comment, kind) = (comment_of(definition, ""), render(definition, ""));
        let space = if kind.starts_with('\n') { "" } else { " " };
        out += &format!("\n{comment}export type {name} ={space}{kind};\n");
    }
    println!("where docs/events.d.ts differs, `cargo xtask docs` writes it again");
    expect_file!["../../../../docs/events.d.ts"].assert_eq(&out);
}

/// Returns a schema as a type; what it has beside each other holds together.
fn render(schema: &Value, indent: &str) -> String {
    let mut parts = Vec::new();
    if let Some(properties) = schema["properties"].as_object() {
        parts.push(render_object(schema, properties, indent));
    } else if let Some(constant) = schema.get("const") {
        parts.push(constant.to_string());
    } else if let Some(kind) = schema.get("type") {
        parts.push(render_kind(kind));
    }
    if let Some(target) = schema["$ref"].as_str() {
        parts.push(target.rsplit('/').next().unwrap().to_owned());
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[key].as_array() {
            parts.push(render_choices(choices, !parts.is_empty(), indent));
        }
    }
    parts.join(" & ")
}

fn render_kind(kind: &Value) -> String {
    let one = |kind: &Value| match kind.as_str().unwrap() {
        "integer" => "number".to_owned(),
        plain => plain.to_owned(),
    };
    match kind.as_array() {
        Some(kinds) => kinds.iter().map(one).collect::<Vec<_>>().join(" | "),
        None => one(kind),
    }
}

fn render_choices(choices: &[Value], is_part: bool, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let is_long = choices
        .iter()
        .any(|choice| choice.get("properties").is_some());
    let rendered: Vec<String> = choices
        .iter()
        .map(|choice| match is_long {
            true => {
                let comment = comment_of(choice, &inner);
                format!("\n{comment}{inner}| {}", render(choice, &inner))
            }
            false => render(choice, indent),
        })
        .collect();
    let joined = rendered.join(if is_long { "" } else { " | " });
    match is_part {
        true => format!("({joined})"),
        false => joined,
    }
}

fn render_object(schema: &Value, properties: &Map<String, Value>, indent: &str) -> String {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let inner = format!("{indent}  ");
    let mut out = "{\n".to_owned();
    // A reset's events are named by `type`, as their founding document has it, and by `event`, as all are.
    let name = properties
        .get("type")
        .filter(|_| !properties.contains_key("event"));
    if let Some(name) = name {
        out += &format!("{inner}event: {};\n", name["const"]);
    }
    for (property, schema) in properties {
        out += &comment_of(schema, &inner);
        let kind = render(schema, &inner);
        out += &match required.contains(&property.as_str()) {
            true => format!("{inner}{property}: {kind};\n"),
            // What may be missing is never null.
            false => format!("{inner}{property}?: {};\n", kind.replace(" | null", "")),
        };
    }
    out + indent + "}"
}

fn comment_of(schema: &Value, indent: &str) -> String {
    let words = schema["description"].as_str();
    words.map_or_else(String::new, |words| {
        format!("{indent}/** {} */\n", words.replace('\n', " "))
    })
}
