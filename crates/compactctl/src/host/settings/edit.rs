//! Our entries in an agent's JSON, put in and taken out without touching what stands around them.

use std::path::Path;

use compact::hook::HookAgent;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};

use super::SettingsError;

const PLUGIN: &str = include_str!("../../../templates/opencode.js");

const VIEW_PLUGIN: &str = include_str!("../../../templates/claude-code/view.ts");

/// The variable that lets Claude Code load plugins with code; early access.
pub(super) const SWITCH: &str = "CLAUDE_CODE_ENABLE_FUNCTION_HOOKS";

/// What some editors begin a file with; it stays where it is.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The moments that an agent is asked to call us at, each with what it must match.
fn hook_events(agent: HookAgent) -> &'static [(&'static str, Option<&'static str>)] {
    match agent {
        HookAgent::ClaudeCode | HookAgent::Codex => &[
            ("PreCompact", None),
            ("PostCompact", None),
            ("SessionStart", Some("compact")),
            ("UserPromptSubmit", None),
        ],
        HookAgent::GeminiCli => &[("PreCompress", None), ("BeforeAgent", None)],
        HookAgent::OpenCode => &[],
    }
}

/// How long the agent waits for us, in its own unit.
fn timeout(agent: HookAgent) -> &'static str {
    match agent {
        HookAgent::GeminiCli => "30000",
        _ => "30",
    }
}

/// The text with our hooks; those of an earlier installation are replaced where they stand.
pub(super) fn insert_hooks(
    agent: HookAgent,
    path: &Path,
    text: &str,
    command: &str,
) -> Result<String, SettingsError> {
    let (mark, text) = split_mark(text);
    let root = parse(agent, path, text)?;
    let all = root.object_value_or_create();
    let all = all.ok_or_else(|| shape_error(path, "the file", "an object"))?;
    let hooks = all.object_value_or_create("hooks");
    let hooks = hooks.ok_or_else(|| shape_error(path, "hooks", "an object"))?;
    let command = format!("{command} hook --agent {agent}");
    for (event, matcher) in hook_events(agent) {
        let list = hooks.array_value_or_create(event);
        let list = list.ok_or_else(|| shape_error(path, &format!("hooks.{event}"), "a list"))?;
        let ours = list.elements().into_iter().filter(|e| is_ours(e, agent));
        let (same, other): (Vec<_>, Vec<_>) =
            ours.partition(|element| command_of(element).as_ref() == Some(&command));
        other.into_iter().for_each(CstNode::remove);
        if same.is_empty() {
            list.append(hook_entry(agent, *matcher, &command));
        }
    }
    Ok(format!("{mark}{root}"))
}

/// The text without our hooks, and without the lists that only held them.
pub(super) fn remove_hooks(
    agent: HookAgent,
    path: &Path,
    text: &str,
) -> Result<String, SettingsError> {
    let (mark, json) = split_mark(text);
    let root = parse(agent, path, json)?;
    let Some(hooks) = root
        .object_value()
        .and_then(|all| all.object_value("hooks"))
    else {
        return Ok(text.to_owned());
    };
    let mut removed = false;
    for (event, _) in hook_events(agent) {
        let Some(list) = hooks.array_value(event) else {
            continue;
        };
        let ours: Vec<CstNode> = list
            .elements()
            .into_iter()
            .filter(|e| is_ours(e, agent))
            .collect();
        if ours.is_empty() {
            continue;
        }
        removed = true;
        ours.into_iter().for_each(CstNode::remove);
        if list.elements().is_empty()
            && let Some(property) = hooks.get(event)
        {
            property.remove();
        }
    }
    if removed
        && hooks.properties().is_empty()
        && let Some(property) = root.object_value().and_then(|all| all.get("hooks"))
    {
        property.remove();
    }
    Ok(format!("{mark}{root}"))
}

/// The mark at the beginning of a text, if there is one, and the rest.
fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(text.len() - text.trim_start_matches(BYTE_ORDER_MARK).len())
}

/// The plugin for an agent that takes code instead of commands.
pub(super) fn render_plugin(command: &str) -> String {
    insert_command(PLUGIN, command)
}

/// The code of the plugin that asks for a view.
pub(super) fn render_view_plugin(command: &str) -> String {
    insert_command(VIEW_PLUGIN, command)
}

fn insert_command(template: &str, command: &str) -> String {
    let command = command.trim_matches('\'');
    let command = serde_json::Value::from(command).to_string();
    template.replacen("COMPACTCTL", &command, 1)
}

/// The settings of Claude Code with the switch that lets it load our plugin.
pub(super) fn insert_switch(path: &Path, text: &str) -> Result<String, SettingsError> {
    if has_switch(text) {
        return Ok(text.to_owned());
    }
    let (mark, json) = split_mark(text);
    let root = parse(HookAgent::ClaudeCode, path, json)?;
    let all = root.object_value_or_create();
    let all = all.ok_or_else(|| shape_error(path, "the file", "an object"))?;
    let variables = all.object_value_or_create("env");
    let variables = variables.ok_or_else(|| shape_error(path, "env", "an object"))?;
    if let Some(other) = variables.get(SWITCH) {
        other.remove();
    }
    variables.append(SWITCH, CstInputValue::String("1".to_owned()));
    Ok(format!("{mark}{root}"))
}

/// The settings without it, and without the object that only held it.
pub(super) fn remove_switch(path: &Path, text: &str) -> Result<String, SettingsError> {
    let (mark, json) = split_mark(text);
    let root = parse(HookAgent::ClaudeCode, path, json)?;
    let Some(all) = root.object_value() else {
        return Ok(text.to_owned());
    };
    let Some(variables) = all.object_value("env") else {
        return Ok(text.to_owned());
    };
    if let Some(property) = variables.get(SWITCH) {
        property.remove();
    }
    if variables.properties().is_empty()
        && let Some(property) = all.get("env")
    {
        property.remove();
    }
    Ok(format!("{mark}{root}"))
}

/// Whether settings of Claude Code let it load our plugin.
pub(super) fn has_switch(text: &str) -> bool {
    let (_, json) = split_mark(text);
    let root: Option<serde_json::Value> = serde_json::from_str(json).ok();
    let switch = root.as_ref().and_then(|root| root.get("env")?.get(SWITCH));
    switch.and_then(serde_json::Value::as_str) == Some("1")
}

/// Whether a file is that plugin, of whichever version.
pub(super) fn is_plugin(text: &str) -> bool {
    text.starts_with("// Written by `compactctl hook install")
}

fn parse(agent: HookAgent, path: &Path, text: &str) -> Result<CstRootNode, SettingsError> {
    let lenient = agent == HookAgent::GeminiCli;
    let options = ParseOptions {
        allow_comments: lenient,
        allow_trailing_commas: lenient,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    CstRootNode::parse(text, &options).map_err(|error| SettingsError::Broken {
        path: path.to_owned(),
        line: error.line_display(),
        column: error.column_display(),
        message: error.kind().to_string().to_lowercase(),
    })
}

fn shape_error(path: &Path, field: &str, expected: &'static str) -> SettingsError {
    SettingsError::Shape {
        path: path.to_owned(),
        field: field.to_owned(),
        expected,
    }
}

fn hook_entry(agent: HookAgent, matcher: Option<&str>, command: &str) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let hook = CstInputValue::Object(vec![
        ("type".to_owned(), text("command")),
        ("command".to_owned(), text(command)),
        (
            "timeout".to_owned(),
            CstInputValue::Number(timeout(agent).to_owned()),
        ),
    ]);
    let matcher = matcher.map(|matcher| ("matcher".to_owned(), text(matcher)));
    let hooks = ("hooks".to_owned(), CstInputValue::Array(vec![hook]));
    CstInputValue::Object(matcher.into_iter().chain([hooks]).collect())
}

/// Ours is an entry with one command, and the command is ours.
fn is_ours(element: &CstNode, agent: HookAgent) -> bool {
    let end = format!(" hook --agent {agent}");
    command_of(element).is_some_and(|command| command.ends_with(&end))
}

fn command_of(element: &CstNode) -> Option<String> {
    let hooks = element.as_object()?.array_value("hooks")?.elements();
    let [only] = hooks.as_slice() else {
        return None;
    };
    let hook: CstObject = only.as_object()?;
    let command = hook.get("command")?.value()?;
    command.as_string_lit()?.decoded_value().ok()
}
