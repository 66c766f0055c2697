//! `config`: write, check, show and trust the configuration.

use std::path::{Path, PathBuf};

use compact_adapters::config::{
    Config as Settings, EXAMPLE, Effective, FileText, IgnoredKey, Loaded, Sources, Survey,
    TrustStore, allowance,
};
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use crate::answer::{Answer, set};
use crate::args::{Config, Global};
use crate::failure::{Code, Failure};
use crate::output::{self, Target};
use crate::report::number::count;
use crate::report::table::{Column, Table};
use crate::report::text::{one_line, printable};
use crate::world::{load_config, sources};

/// Runs what was asked of the configuration.
pub fn run(command: &Config, global: &Global) -> Result<Answer, Failure> {
    match command {
        Config::Init { file, force } => init(file, *force),
        Config::Check { file: None } => load_config(global).map(|loaded| check(&loaded)),
        Config::Check { file: Some(file) } => check_file(file, &sources(global, None)),
        Config::Trust { file } => trust(file.as_deref(), &sources(global, None)),
        Config::Distrust { file } => distrust(file.as_deref(), &sources(global, None)),
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
        return Ok(Answer::new(json, String::new()).with_payload(payload));
    }
    let written = FileText::written(file, EXAMPLE.as_bytes());
    let trusted = trust_store().and_then(|store| recorded(&store, &written));
    set(&mut json, "trusted", trusted.is_ok());
    if let Err(failure) = &trusted {
        output::aside(&format!(
            "warning: it is not trusted: {}\n",
            failure.message()
        ));
    }
    let human = format!(
        "wrote {}; it sets every key, so delete what your own file is to decide\n",
        file.display()
    );
    Ok(Answer::new(json, human))
}

fn check(loaded: &Loaded) -> Answer {
    let json = json!({ "ok": true, "warnings": loaded.warnings });
    let mut human = format!("{}\n", "valid".green().bold());
    if loaded.files.is_empty() {
        human.push_str("  no file, defaults and environment\n");
    }
    for warning in &loaded.warnings {
        human.push_str(&format!("{} {}\n", "warning:".yellow(), printable(warning)));
    }
    Answer::new(json, human).naming(&loaded.files)
}

/// What a file may decide as a project's.
fn check_file(file: &Path, sources: &Sources) -> Result<Answer, Failure> {
    let text = read(file)?;
    let survey = sources.survey(&text)?;
    let trusted = TrustStore::of_user().is_some_and(|store| store.trusts(&text));
    let mut json = survey_json(&text, &survey);
    set(&mut json, "ok", true);
    set(&mut json, "trusted", trusted);
    let shown = file.display();
    let mut human = format!("{} {shown}\n", "valid".green().bold());
    human.push_str(&refused_keys(&survey.ignored));
    human.push_str(match (survey.ignored.is_empty(), trusted) {
        (true, _) => "  a project may set all of it\n",
        (false, true) => "  the file is trusted, so they apply\n",
        (false, false) => "  they are ignored until `compactctl config trust` is run for it\n",
    });
    Ok(Answer::new(json, human))
}

/// The keys that a project's file may not set, one line each.
fn refused_keys(ignored: &[IgnoredKey]) -> String {
    if ignored.is_empty() {
        return String::new();
    }
    let keys = ignored
        .iter()
        .map(|key| format!("    {}\n", printable(&key.to_string())));
    let keys: String = keys.collect();
    format!("  a project may not set by itself:\n{keys}")
}

fn trust(file: Option<&Path>, sources: &Sources) -> Result<Answer, Failure> {
    let text = read(&project_file(file, sources)?)?;
    // What nobody could use is not trusted either, and what is shown is what was read.
    let survey = sources.survey(&text)?;
    recorded(&trust_store()?, &text)?;
    let mut human = format!(
        "{} {}\n",
        "trusted".green().bold(),
        printable(&text.path().display().to_string())
    );
    human.push_str(&settings_of(&survey));
    human.push_str("  a change of the file ends this, and `compactctl config distrust` does\n");
    let mut json = survey_json(&text, &survey);
    set(&mut json, "trusted", true);
    Ok(Answer::new(json, human))
}

/// What a file sets that no project may set by itself.
fn settings_of(survey: &Survey) -> String {
    if survey.ignored.is_empty() {
        return "  it sets nothing that a project may not set by itself\n".to_owned();
    }
    let mut table = Table::new([Column::left(), Column::left().style(Style::new().bold())]);
    for ignored in &survey.ignored {
        let value = survey.keys.iter().find(|(key, _)| *key == ignored.key);
        let value = value.map_or_else(String::new, |(_, value)| spelled(value));
        table.row([
            format!("{} (line {})", printable(&ignored.key), ignored.line),
            one_line(&value, 60),
        ]);
    }
    format!("  it now decides\n{}", table.render())
}

fn distrust(file: Option<&Path>, sources: &Sources) -> Result<Answer, Failure> {
    let file = project_file(file, sources)?;
    let forgotten = trust_store()?.forget(&file);
    let forgotten = forgotten.map_err(|error| not_recorded(&file, &error))?;
    let shown = printable(&file.display().to_string());
    let human = match forgotten {
        true => format!("{} {shown}\n", "trusted no longer:".yellow().bold()),
        false => format!("{shown} was not trusted\n"),
    };
    let json = json!({ "file": absolute(&file), "trusted": false, "changed": forgotten });
    Ok(Answer::new(json, human))
}

/// The file that was named, or the one in the working directory.
fn project_file(file: Option<&Path>, sources: &Sources) -> Result<PathBuf, Failure> {
    let found = file.or_else(|| sources.project_file());
    found.map(Path::to_owned).ok_or_else(|| {
        Failure::usage(
            "there is no compact.yaml, compact.yml or compact.json in the working directory",
            "name the file",
        )
    })
}

fn read(file: &Path) -> Result<FileText, Failure> {
    FileText::read_regular(file).map_err(|error| {
        Failure::of(Code::Usage, &error)
            .about(&format!("cannot read {}", file.display()))
            .help("name a file that is there and can be read")
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

fn recorded(store: &TrustStore, text: &FileText) -> Result<(), Failure> {
    let done = store.record(text);
    done.map_err(|error| not_recorded(text.path(), &error))
}

fn not_recorded(file: &Path, error: &std::io::Error) -> Failure {
    Failure::of(Code::Unexpected, error)
        .about(&format!(
            "cannot record that {} is trusted or not",
            file.display()
        ))
        .help("check the folder `compact` of your configuration directory")
}

fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

fn survey_json(text: &FileText, survey: &Survey) -> Value {
    let is_refused = |key: &str| survey.ignored.iter().any(|ignored| ignored.key == key);
    let keys = survey.keys.iter().map(
        |(key, value)| json!({ "key": key, "value": value, "project_may_set": !is_refused(key) }),
    );
    json!({
        "file": absolute(text.path()),
        "blake3": text.hash(),
        "keys": keys.collect::<Vec<_>>(),
        "ignored": survey.ignored,
    })
}

fn schema() -> Answer {
    let schema = Settings::schema();
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n";
    Answer::new(schema, String::new()).with_payload(Some(text.into_bytes()))
}

fn show(loaded: &Loaded) -> Answer {
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
        table.row([
            effective.path.clone(),
            one_line(&spelled(&effective.value), 40),
            effective.origin.layer().to_owned(),
            effective.origin.to_string(),
        ]);
    }
    let set = loaded
        .values
        .iter()
        .filter(|v| v.origin != compact_adapters::config::Origin::Default);
    let mut human = format!(
        "{}\n  {} set, the rest by default\n",
        table.render(),
        count(set.count() as u64, "key is", "keys are"),
    );
    for file in loaded.files.iter().filter(|file| !file.ignored.is_empty()) {
        let path = printable(&file.path.display().to_string());
        human.push_str(&format!("  {} in {path}\n", "ignored".yellow().bold()));
        for key in &file.ignored {
            human.push_str(&format!("    {}\n", printable(&key.to_string())));
        }
    }
    Answer::new(json, human).naming(&loaded.files)
}

fn value_json(effective: &Effective) -> Value {
    json!({
        "path": effective.path,
        "value": effective.value,
        "source": effective.origin.to_string(),
        "layer": effective.origin.layer(),
        "project_may_set": allowance(&effective.path).is_some(),
    })
}

fn spelled(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
