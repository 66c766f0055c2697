//! `config`: write, check and show the configuration.

use std::path::Path;

use compact_adapters::config::{Config as Settings, EXAMPLE, Effective, Loaded};
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use crate::answer::{Answer, set};
use crate::args::{Config, Global};
use crate::failure::Failure;
use crate::output::Target;
use crate::report::number::count;
use crate::report::table::{Column, Table};
use crate::report::text::one_line;
use crate::world::load_config;

/// Runs what was asked of the configuration.
pub fn run(command: &Config, global: &Global) -> Result<Answer, Failure> {
    match command {
        Config::Init { file, force } => init(file, *force),
        Config::Check => load_config(global).map(|loaded| check(&loaded)),
        Config::Schema => Ok(schema()),
        Config::Show => load_config(global).map(|loaded| show(&loaded)),
    }
}

fn init(file: &Path, force: bool) -> Result<Answer, Failure> {
    if file.exists() && !force {
        return Err(Failure::usage(
            format!("{} is there already", file.display()),
            "--force replaces it",
        ));
    }
    let payload = Target::open(file, None)?.write(EXAMPLE.as_bytes().to_vec())?;
    let mut json = json!({ "file": file });
    if payload.is_some() {
        set(&mut json, "content", EXAMPLE);
    }
    let human = match payload {
        Some(_) => String::new(),
        None => format!("wrote {}\n", file.display()),
    };
    Ok(Answer::new(json, human).with_payload(payload))
}

fn check(loaded: &Loaded) -> Answer {
    let json = json!({
        "ok": true,
        "file": loaded.file,
        "warnings": loaded.warnings,
    });
    let place = loaded.file.as_ref().map_or_else(
        || "no file, defaults and environment".to_owned(),
        |file| file.display().to_string(),
    );
    let mut human = format!("{} {place}\n", "valid".green().bold());
    for warning in &loaded.warnings {
        human.push_str(&format!("{} {warning}\n", "warning:".yellow()));
    }
    Answer::new(json, human)
}

fn schema() -> Answer {
    let schema = Settings::schema();
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n";
    Answer::new(schema, String::new()).with_payload(Some(text.into_bytes()))
}

fn show(loaded: &Loaded) -> Answer {
    let json = json!({
        "file": loaded.file,
        "values": loaded.values.iter().map(value_json).collect::<Vec<_>>(),
        "warnings": loaded.warnings,
    });
    let mut table = Table::new([
        Column::left(),
        Column::left().style(Style::new().bold()),
        Column::left().style(Style::new().dimmed()),
    ]);
    for effective in &loaded.values {
        table.row([
            effective.path.clone(),
            one_line(&spelled(&effective.value), 40),
            effective.origin.to_string(),
        ]);
    }
    let set = loaded
        .values
        .iter()
        .filter(|v| v.origin != compact_adapters::config::Origin::Default);
    let human = format!(
        "{}\n  {} set, the rest by default\n",
        table.render(),
        count(set.count() as u64, "key is", "keys are"),
    );
    Answer::new(json, human)
}

fn value_json(effective: &Effective) -> Value {
    json!({
        "path": effective.path,
        "value": effective.value,
        "source": effective.origin.to_string(),
    })
}

fn spelled(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
