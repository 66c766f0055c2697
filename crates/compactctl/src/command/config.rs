//! `config`: write, check, show and trust the configuration.

use std::path::{Path, PathBuf};

use compact::config::{
    Config as Settings, ConfigSources, EffectiveValue, FileReview, FileText, IgnoredKey,
    LoadedConfig, TrustStore, find_allowance, starter_file,
};
use compact::redact::{RedactionCounts, RedactionRules, Redactor};
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use crate::answer::{CommandAnswer, set_field};
use crate::app::{config_sources, load_config};
use crate::args::{ConfigCommand, GlobalArgs};
use crate::failure::{Failure, FailureCode};
use crate::output::{self, OutputTarget};
use crate::report::number::format_count;
use crate::report::table::{Column, Table};
use crate::report::text::{one_line, printable};

/// Runs what was asked of the configuration.
pub(super) fn run(command: &ConfigCommand, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    match command {
        ConfigCommand::Init { file, force } => init(file, *force),
        ConfigCommand::Check { file: None } => check(&load_config(global)?),
        ConfigCommand::Check { file: Some(file) } => {
            check_project_file(file, &config_sources(global, None))
        }
        ConfigCommand::Trust { file } => trust(file.as_deref(), &config_sources(global, None)),
        ConfigCommand::Distrust { file } => {
            distrust(file.as_deref(), &config_sources(global, None))
        }
        ConfigCommand::Schema => Ok(schema()),
        ConfigCommand::Show => load_config(global).map(|loaded| show(&loaded)),
    }
}

fn init(file: &Path, force: bool) -> Result<CommandAnswer, Failure> {
    if file.exists() && !force {
        return Err(Failure::usage(
            format!("{} already exists", file.display()),
            "--force replaces it",
        ));
    }
    let content = starter_file();
    let written = FileText::from_written(file, content.as_bytes());
    let payload = OutputTarget::open(file, None)?.write(content.clone().into_bytes())?;
    let mut json = json!({ "file": file });
    if payload.is_some() {
        set_field(&mut json, "content", content);
        return Ok(CommandAnswer::new(json, String::new()).with_payload(payload));
    }
    let trusted = trust_store().and_then(|store| record_trust(&store, &written));
    set_field(&mut json, "trusted", trusted.is_ok());
    if let Err(failure) = &trusted {
        output::print_stderr(&format!(
            "warning: it is not trusted: {}\n",
            failure.message()
        ));
    }
    let human = format!(
        "wrote {}; every key is commented out: remove the # of those that you want to set\n",
        file.display()
    );
    Ok(CommandAnswer::new(json, human))
}

fn check(loaded: &LoadedConfig) -> Result<CommandAnswer, Failure> {
    let mut warnings = loaded.warnings.clone();
    warnings.extend(check_gateway(&loaded.config)?);
    let json = json!({ "ok": true, "warnings": warnings });
    let mut human = format!("{}\n", "valid".green().bold());
    if loaded.files.is_empty() {
        human.push_str("  no file, defaults and environment\n");
    }
    for warning in &warnings {
        human.push_str(&format!("{} {}\n", "warning:".yellow(), printable(warning)));
    }
    Ok(CommandAnswer::new(json, human).with_settings_files(&loaded.files))
}

/// Fails where `serve` would refuse the settings; warns of a variable that may be set only where it runs.
#[cfg(feature = "gateway")]
fn check_gateway(config: &Settings) -> Result<Option<String>, Failure> {
    use compact_gateway::{GatewaySettings, SettingsError};
    match GatewaySettings::from_config(&config.gateway) {
        Ok(_) => Ok(None),
        Err(error @ SettingsError::MissingVariable(_)) => Ok(Some(error.to_string())),
        Err(error) => Err(super::serve::describe_bad_settings(&error)),
    }
}

/// Nothing to check: `serve` is not part of this build.
#[cfg(not(feature = "gateway"))]
fn check_gateway(_config: &Settings) -> Result<Option<String>, Failure> {
    Ok(None)
}

/// What a file may decide as a project's.
fn check_project_file(file: &Path, sources: &ConfigSources) -> Result<CommandAnswer, Failure> {
    let text = read_config_file(file)?;
    let survey = sources.review_file(&text)?;
    let trusted = TrustStore::of_user().is_some_and(|store| store.trusts(&text));
    let mut json = survey_json(&text, &survey);
    set_field(&mut json, "ok", true);
    set_field(&mut json, "trusted", trusted);
    let shown = file.display();
    let mut human = format!("{} {shown}\n", "valid".green().bold());
    human.push_str(&render_refused_keys(&survey.ignored));
    human.push_str(match (survey.ignored.is_empty(), trusted) {
        (true, _) => "  a project may set all of it\n",
        (false, true) => "  the file is trusted, so they apply\n",
        (false, false) => "  they are ignored until `compactctl config trust` is run for it\n",
    });
    Ok(CommandAnswer::new(json, human))
}

/// The keys that a project's file may not set, one line each.
fn render_refused_keys(ignored: &[IgnoredKey]) -> String {
    if ignored.is_empty() {
        return String::new();
    }
    let keys = ignored
        .iter()
        .map(|key| format!("    {}\n", printable(&key.to_string())));
    let keys: String = keys.collect();
    format!("  a project may not set by itself:\n{keys}")
}

fn trust(file: Option<&Path>, sources: &ConfigSources) -> Result<CommandAnswer, Failure> {
    let text = read_config_file(&project_file(file, sources)?)?;
    // What nobody could use is not trusted either, and what is shown is what was read.
    let survey = sources.review_file(&text)?;
    record_trust(&trust_store()?, &text)?;
    let mut human = format!(
        "{} {}\n",
        "trusted".green().bold(),
        printable(&text.path().display().to_string())
    );
    human.push_str(&render_trusted_settings(&survey));
    human.push_str("  this holds until the file changes or you run `compactctl config distrust`\n");
    let mut json = survey_json(&text, &survey);
    set_field(&mut json, "trusted", true);
    Ok(CommandAnswer::new(json, human))
}

/// What a file sets that no project may set by itself.
fn render_trusted_settings(survey: &FileReview) -> String {
    if survey.ignored.is_empty() {
        return "  it sets nothing that a project may not set by itself\n".to_owned();
    }
    let mut table = Table::new([Column::left(), Column::left().style(Style::new().bold())]);
    for ignored in &survey.ignored {
        let value = survey.keys.iter().find(|(key, _)| *key == ignored.key);
        let value = value.map_or_else(String::new, |(_, value)| format_value(value));
        table.add_row([
            format!("{} (line {})", printable(&ignored.key), ignored.line),
            one_line(&value, 60),
        ]);
    }
    format!("  it now decides\n{}", table.render())
}

fn distrust(file: Option<&Path>, sources: &ConfigSources) -> Result<CommandAnswer, Failure> {
    let file = project_file(file, sources)?;
    let forgotten = trust_store()?.forget(&file);
    let forgotten = forgotten.map_err(|error| trust_record_failure(&file, &error))?;
    let shown = printable(&file.display().to_string());
    let human = match forgotten {
        true => format!("{} {shown}\n", "trusted no longer:".yellow().bold()),
        false => format!("{shown} was not trusted\n"),
    };
    let json = json!({ "file": to_absolute(&file), "trusted": false, "changed": forgotten });
    Ok(CommandAnswer::new(json, human))
}

/// The file that was named, or the one in the working directory.
fn project_file(file: Option<&Path>, sources: &ConfigSources) -> Result<PathBuf, Failure> {
    let found = file.or_else(|| sources.project_file());
    found.map(Path::to_owned).ok_or_else(|| {
        Failure::usage(
            "there is no compact.yaml, compact.yml or compact.json in the working directory",
            "name the file",
        )
    })
}

fn read_config_file(file: &Path) -> Result<FileText, Failure> {
    FileText::read_regular(file).map_err(|error| {
        Failure::from_error(FailureCode::Usage, &error)
            .with_context(&format!("cannot read {}", file.display()))
            .help("name a file that exists and can be read")
    })
}

fn trust_store() -> Result<TrustStore, Failure> {
    TrustStore::of_user().ok_or_else(|| {
        Failure::usage(
            "cannot find the user's configuration directory",
            "set HOME or XDG_CONFIG_HOME",
        )
    })
}

fn record_trust(store: &TrustStore, text: &FileText) -> Result<(), Failure> {
    let done = store.record(text);
    done.map_err(|error| trust_record_failure(text.path(), &error))
}

fn trust_record_failure(file: &Path, error: &std::io::Error) -> Failure {
    Failure::from_error(FailureCode::Unexpected, error)
        .with_context(&format!(
            "cannot record whether {} is trusted",
            file.display()
        ))
        .help("check the folder `compact` of your configuration directory")
}

fn to_absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

fn survey_json(text: &FileText, survey: &FileReview) -> Value {
    let is_refused = |key: &str| survey.ignored.iter().any(|ignored| ignored.key == key);
    let keys = survey.keys.iter().map(
        |(key, value)| json!({ "key": key, "value": value, "project_may_set": !is_refused(key) }),
    );
    json!({
        "file": to_absolute(text.path()),
        "blake3": text.hash(),
        "keys": keys.collect::<Vec<_>>(),
        "ignored": survey.ignored,
    })
}

fn schema() -> CommandAnswer {
    let schema = Settings::schema();
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n";
    CommandAnswer::new(schema, String::new()).with_payload(Some(text.into_bytes()))
}

fn show(loaded: &LoadedConfig) -> CommandAnswer {
    let json = json!({
        "values": loaded.values.iter().map(value_json).collect::<Vec<_>>(),
        "warnings": loaded.warnings,
    });
    let dim = Style::new().dimmed();
    let mut table = Table::new([
        Column::left(),
        Column::left().style(Style::new().bold()),
        Column::left().style(dim),
        Column::left().style(dim),
    ]);
    for effective in &loaded.values {
        table.add_row([
            effective.path.clone(),
            one_line(&format_value(&shown_value(effective)), 40),
            effective.origin.layer().to_owned(),
            effective.origin.to_string(),
        ]);
    }
    let set = loaded
        .values
        .iter()
        .filter(|v| v.origin != compact::config::ValueOrigin::Default);
    let mut human = format!(
        "{}\n  {} set, the rest by default\n",
        table.render(),
        format_count(set.count() as u64, "key is", "keys are"),
    );
    for file in loaded.files.iter().filter(|file| !file.ignored.is_empty()) {
        let path = printable(&file.path.display().to_string());
        human.push_str(&format!("  {} in {path}\n", "ignored".yellow().bold()));
        for key in &file.ignored {
            human.push_str(&format!("    {}\n", printable(&key.to_string())));
        }
    }
    CommandAnswer::new(json, human).with_settings_files(&loaded.files)
}

/// A setting's value without the secrets that should not be in it, such as the password of an address.
fn shown_value(effective: &EffectiveValue) -> Value {
    let mut value = effective.value.clone();
    if let Ok(redactor) = Redactor::new(&RedactionRules::default()) {
        redactor.redact_value(&mut value, &mut RedactionCounts::new());
    }
    value
}

fn value_json(effective: &EffectiveValue) -> Value {
    json!({
        "path": effective.path,
        "value": shown_value(effective),
        "source": effective.origin.to_string(),
        "layer": effective.origin.layer(),
        "project_may_set": find_allowance(&effective.path).is_some(),
    })
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
