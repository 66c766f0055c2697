//! What all tools share: how they are offered, called and refused.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{compact, expand, recall, remember};
use crate::app::App;
use crate::args::GlobalArgs;
use crate::failure::{Failure, FailureCode};
use crate::report::text::one_line;

/// How Claude Code is asked to put a tool before the model at once.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// The most characters of a name in an answer.
const LONGEST_NAME: usize = 300;

/// The most characters of what is said about a failed call, and of what to do.
const LONGEST_WORDS: usize = 2_000;

/// The arguments of a tool.
pub(super) trait ToolInput: DeserializeOwned + JsonSchema {
    /// The tool's name.
    const NAME: &'static str;
    /// When to use it, for a model.
    const ABOUT: &'static str;
    /// Whether a model should always see it, even where the client has it search for tools: who
    /// does not know that something is missing does not search.
    const AT_HAND: bool = false;
    /// What it gives.
    type ToolOutput: ToolOutput;

    /// What a client may tell its user about the tool.
    fn annotations() -> ToolAnnotations {
        ToolAnnotations::new().read_only(true).open_world(false)
    }

    /// Runs the command of that name.
    fn run_command(self, app: &App, global: &GlobalArgs) -> Result<Self::ToolOutput, Failure>;
}

/// What a tool gives: fields for programs, and the same as text.
pub(super) trait ToolOutput: Serialize + JsonSchema {
    /// For clients that show a model text only.
    fn text(&self) -> String;
}

/// A tool, whatever its arguments.
#[derive(Clone, Copy)]
pub(super) struct ToolEntry {
    /// Its name.
    pub name: &'static str,
    /// What a client is told about it.
    pub describe: fn() -> Tool,
    /// Calls it.
    pub call: fn(JsonObject, &App, &GlobalArgs) -> Result<CallToolResult, Failure>,
}

/// All of them.
pub(super) const TOOLS: [ToolEntry; 4] = [
    tool_entry::<recall::RecallToolInput>(),
    tool_entry::<remember::RememberToolInput>(),
    tool_entry::<expand::ExpandToolInput>(),
    tool_entry::<compact::CompactToolInput>(),
];

const fn tool_entry<A: ToolInput>() -> ToolEntry {
    ToolEntry {
        name: A::NAME,
        describe: describe::<A>,
        call: call_with_json::<A>,
    }
}

fn describe<A: ToolInput>() -> Tool {
    let tool = Tool::new(A::NAME, A::ABOUT, schema::<A>())
        .with_raw_output_schema(schema::<A::ToolOutput>())
        .with_annotations(A::annotations());
    if !A::AT_HAND {
        return tool;
    }
    let mut meta = JsonObject::new();
    meta.insert(ALWAYS_LOAD.to_owned(), Value::Bool(true));
    tool.with_meta(MetaObject(meta))
}

fn call_with_json<A: ToolInput>(
    arguments: JsonObject,
    app: &App,
    global: &GlobalArgs,
) -> Result<CallToolResult, Failure> {
    let ask: A = serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Failure::usage(
            format!("{}: {error}", A::NAME),
            &format!("it takes {}", argument_names(&schema::<A>())),
        )
    })?;
    let reply = ask.run_command(app, global)?;
    let fields = serde_json::to_value(&reply)
        .map_err(|e| Failure::from_error(FailureCode::Unexpected, &e))?;
    let mut result = CallToolResult::structured(fields);
    result.content = vec![ContentBlock::text(reply.text())];
    Ok(result)
}

/// The names of the arguments, those that must be given first.
fn argument_names(schema: &JsonObject) -> String {
    let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(JsonObject::keys);
    let optional = names.map(String::as_str).filter(|n| !required.contains(n));
    let optional: Vec<String> = optional.map(|name| format!("{name} (optional)")).collect();
    let required = required.into_iter().map(str::to_owned);
    required.chain(optional).collect::<Vec<_>>().join(", ")
}

/// The schema of a type, plain enough for every client: no widths of numbers, no names of ours, no
/// nulls.
fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut fields = match schema.to_value() {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    };
    for name in ["$schema", "title", "description"] {
        fields.remove(name);
    }
    fields.values_mut().for_each(simplify);
    Arc::new(fields)
}

fn simplify(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // A property of that name is an object; the keyword is a string, or no value at all.
            fields.retain(|key, value| match key.as_str() {
                "format" => !value.is_string(),
                "default" => !value.is_null(),
                _ => true,
            });
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// A failed call, in words that say what to do.
pub(super) fn failure_result(failure: &Failure) -> CallToolResult {
    let mut text = one_line(failure.message(), LONGEST_WORDS);
    if let Some(advice) = failure.advice() {
        let advice = one_line(&name_arguments(advice), LONGEST_WORDS);
        text = format!("{text}\nhelp: {advice}");
    }
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Advice that names options, in the words of tools: arguments where they have one, else the command.
fn name_arguments(advice: &str) -> String {
    advice.replace("--session-index", "session_index").replace(
        "with --format",
        "on the command line, `compactctl compact --format`",
    )
}

/// A name, which a transcript may have made as long as it likes.
pub(super) fn shorten_name(text: &str) -> String {
    cut(text, LONGEST_NAME)
}

/// A name among our own words, as a quotation of one line: who made the transcript made the name as well.
pub(super) fn quote_name(text: &str) -> String {
    format!("`{}`", one_line(text, 80).replace('`', "'"))
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Reads a command's JSON; it is ours, so it fits.
pub(super) fn parse_json<T: DeserializeOwned>(json: Value) -> Result<T, Failure> {
    serde_json::from_value(json)
        .map_err(|error| Failure::from_error(FailureCode::Unexpected, &error))
}
