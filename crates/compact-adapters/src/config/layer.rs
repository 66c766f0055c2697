//! Laying sources over each other, key by key, and remembering who had the last word.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use compact_core::profile::{KeyStatus, Profile};
use serde::Serialize;
use serde_json::{Map, Value};

use super::field::{Field, Kind, field, fields, is_section, parent_paths};
use super::file::OLD_SECTIONS;
use super::source::{BORROWED, PREFIX, RESERVED};
use super::{Config, ConfigError, Problem, Sources, file, validate};

/// Who set a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Nobody.
    Default,
    /// The profile.
    Profile(Profile),
    /// A line of the file.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// An environment variable.
    Env(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Profile(profile) => write!(f, "profile {profile}"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Env(name) | Origin::Flag(name) => f.write_str(name),
        }
    }
}

impl Origin {
    /// The name for a message: `compact.yaml`, `COMPACT_MODEL`, `--model`.
    fn name(&self) -> String {
        match self {
            Origin::File { path, .. } => path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
            other => other.to_string(),
        }
    }

    /// Where exactly, when the name does not say it all.
    fn place(&self) -> String {
        match self {
            Origin::File { .. } => format!(" ({self})"),
            _ => String::new(),
        }
    }
}

/// A key with its value and who set it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effective {
    /// The key's dotted path.
    pub path: String,
    /// Its value.
    pub value: Value,
    /// Who set it.
    pub origin: Origin,
}

/// A configuration that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Every key with its value and who set it, in the order of the reference.
    pub values: Vec<Effective>,
    /// What was accepted and has no effect.
    pub warnings: Vec<String>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

/// A key that a source sets, before anybody knows whether it exists.
struct Setting {
    path: String,
    value: Value,
    origin: Origin,
}

impl Sources {
    /// Lays the sources over each other and checks every key; all problems are reported at once.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        let mut warnings = Vec::new();
        let settings = self.settings(&mut warnings)?;
        let profile = profile_of(&settings)?;
        let mut values = defaults(profile);
        let mut problems = Vec::new();
        for setting in settings {
            match setting.resolve(profile, &mut warnings) {
                Ok(Some(value)) => drop(values.insert(value.path.clone(), value)),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(ConfigError::Invalid(problems));
        }
        let config = assemble(&values)?;
        validate::check(&config, &values)?;
        // A variable that a key names is known, whatever it is called.
        let named = values.values().filter(|v| v.path.ends_with("_env"));
        let named: Vec<String> = named
            .filter_map(|v| Some(ignored(v.value.as_str()?)))
            .collect();
        warnings.retain(|warning| !named.iter().any(|known| warning.starts_with(known)));
        let values = fields()
            .iter()
            .filter_map(|f| values.remove(&f.path))
            .collect();
        Ok(Loaded {
            config,
            values,
            warnings,
            file: self.file.clone(),
        })
    }

    /// What every source sets, weakest first.
    fn settings(&self, warnings: &mut Vec<String>) -> Result<Vec<Setting>, ConfigError> {
        let mut settings = Vec::new();
        if let Some(path) = &self.file {
            settings.extend(file::read(path)?.into_iter().map(|line| Setting {
                origin: Origin::File {
                    path: path.clone(),
                    line: line.number,
                },
                path: line.path,
                value: line.value,
            }));
        }
        settings.extend(self.env.iter().filter_map(borrowed));
        for (name, text) in &self.env {
            settings.extend(variable(name, text, warnings));
        }
        settings.extend(self.flags.iter().map(|flag| Setting {
            path: flag.path.clone(),
            value: flag.value.clone(),
            origin: Origin::Flag(flag.name.clone()),
        }));
        Ok(settings)
    }
}

/// The key that another program's variable sets; an empty one sets nothing.
fn borrowed((name, text): &(String, String)) -> Option<Setting> {
    let (_, path) = BORROWED.iter().find(|(theirs, _)| theirs == name)?;
    (!text.is_empty()).then(|| Setting {
        path: (*path).to_owned(),
        value: text.as_str().into(),
        origin: Origin::Env(name.clone()),
    })
}

/// The key that a variable sets: `COMPACT_POLICY_TRIGGER_PCT`, or `COMPACT_TRIGGER_PCT` for short.
fn variable(name: &str, text: &str, warnings: &mut Vec<String>) -> Option<Setting> {
    let key = name
        .strip_prefix(PREFIX)
        .filter(|_| !RESERVED.contains(&name))?;
    let setting = |path: String| Setting {
        path,
        value: text.into(),
        origin: Origin::Env(name.to_owned()),
    };
    let named = fields()
        .iter()
        .find(|f| variable_names(f).any(|n| n == name));
    if let Some(field) = named {
        return Some(setting(field.path.clone()));
    }
    let lower = key.to_ascii_lowercase();
    if Profile::ALL
        .iter()
        .any(|p| p.key_status(&lower) != KeyStatus::Unknown)
    {
        return Some(setting(lower));
    }
    let all: Vec<String> = fields().iter().flat_map(variable_names).collect();
    let hint =
        closest(name, all.iter().map(String::as_str)).map(|n| format!(", did you mean {n}?"));
    warnings.push(ignored(name) + &hint.unwrap_or_default());
    None
}

fn ignored(name: &str) -> String {
    format!("unknown variable {name} is ignored")
}

/// The variables that set a key; keys of `policy` have a short one.
pub(super) fn variable_names(field: &Field) -> impl Iterator<Item = String> {
    let name = |path: &str| format!("{PREFIX}{}", path.replace('.', "_").to_ascii_uppercase());
    let short = field.path.strip_prefix("policy.").map(name);
    std::iter::once(name(&field.path)).chain(short)
}

fn profile_of(settings: &[Setting]) -> Result<Profile, ConfigError> {
    let Some(last) = settings.iter().rev().find(|s| s.path == "profile") else {
        return Ok(Profile::default());
    };
    let value = last
        .typed("profile")
        .map_err(|problem| ConfigError::Invalid(vec![problem]))?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Defaults under the profile's values.
fn defaults(profile: Profile) -> BTreeMap<String, Effective> {
    let policy = serde_json::to_value(profile.policy()).unwrap_or_default();
    let of_profile = |f: &Field| {
        let place = f.path.strip_prefix("policy")?.replace('.', "/");
        policy.pointer(&place).cloned()
    };
    let effective = |f: &Field| {
        let value = of_profile(f).unwrap_or_else(|| f.default.clone());
        let origin = if value == f.default {
            Origin::Default
        } else {
            Origin::Profile(profile)
        };
        (
            f.path.clone(),
            Effective {
                path: f.path.clone(),
                value,
                origin,
            },
        )
    };
    fields().iter().map(effective).collect()
}

fn assemble(values: &BTreeMap<String, Effective>) -> Result<Config, ConfigError> {
    let mut root = Map::new();
    for effective in values.values() {
        insert(&mut root, &effective.path, effective.value.clone());
    }
    // The kinds were checked key by key; what is left is a number too large for its type.
    serde_json::from_value(Value::Object(root)).map_err(|e| {
        ConfigError::Invalid(vec![Problem {
            path: String::new(),
            message: e.to_string(),
        }])
    })
}

fn insert(map: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(map.insert(path.to_owned(), value)),
        Some((section, rest)) => {
            let entry = map.entry(section).or_insert_with(|| Map::new().into());
            if let Value::Object(section) = entry {
                insert(section, rest, value);
            }
        }
    }
}

impl Setting {
    /// The key's value; `None` for a key that is accepted and ignored.
    fn resolve(
        self,
        profile: Profile,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Effective>, Problem> {
        if field(&self.path).is_some() {
            let value = self.typed(&self.path)?;
            return Ok(Some(Effective {
                path: self.path,
                value,
                origin: self.origin,
            }));
        }
        let key = match self.path.split_once('.') {
            Some((section, key)) if section == "policy" || OLD_SECTIONS.contains(&section) => key,
            _ => &self.path,
        };
        match profile.key_status(key) {
            KeyStatus::Alias(path) => {
                let value = self.typed(path)?;
                Ok(Some(Effective {
                    path: path.to_owned(),
                    value,
                    origin: self.origin,
                }))
            }
            KeyStatus::Switch { path, off } => Ok(self.switch(path, off)?),
            KeyStatus::Deprecated => {
                let place = self.origin.name();
                warnings.push(format!(
                    "'{key}' in {place} is deprecated in profile {profile} and has no effect"
                ));
                Ok(None)
            }
            // The words that users of this profile have been told to expect (S0-86).
            KeyStatus::Removed => {
                Err(self.problem(format!("Unknown field '{key}' in {}", self.origin.name())))
            }
            KeyStatus::Unknown => Err(self.unknown()),
        }
    }

    /// `false` sets the key at `path` to what turns it off; `true` leaves it as it is.
    fn switch(self, path: &str, off: f64) -> Result<Option<Effective>, Problem> {
        let on = match &self.value {
            Value::Bool(on) => Some(*on),
            Value::String(text) => Kind::Bool.parse(text).and_then(|v| v.as_bool()),
            _ => None,
        };
        let Some(on) = on else {
            let (name, found) = (self.origin.name(), describe(&self.value));
            let expected = &Kind::Bool;
            return Err(self.problem(format!(
                "{} in {name}: expected {expected}, found {found}",
                self.path
            )));
        };
        Ok((!on).then(|| Effective {
            path: path.to_owned(),
            value: off.into(),
            origin: self.origin,
        }))
    }

    fn unknown(&self) -> Problem {
        if is_section(&self.path) {
            let found = describe(&self.value);
            return self.problem(format!(
                "{} in {}: expected a section of keys, found {found}",
                self.path,
                self.origin.name()
            ));
        }
        let hint = suggestion(&self.path).map(|s| format!(", did you mean '{s}'?"));
        let hint = hint.unwrap_or_default();
        self.problem(format!(
            "unknown field '{}' in {}{hint}",
            self.path,
            self.origin.name()
        ))
    }

    /// The value as the kind of the key at `path`; text from variables and flags is read first.
    fn typed(&self, path: &str) -> Result<Value, Problem> {
        let Some(field) = field(path) else {
            return Err(self.unknown());
        };
        let from_text = !matches!(self.origin, Origin::File { .. });
        let value = match &self.value {
            Value::String(text) if from_text && field.optional && text.is_empty() => {
                Some(Value::Null)
            }
            Value::String(text) if from_text => field.kind.parse(text),
            value => Some(value.clone()),
        };
        let fits = |v: &Value| field.kind.accepts(v) || (v.is_null() && field.optional);
        value.filter(fits).ok_or_else(|| {
            let found = describe(&self.value);
            let expected = &field.kind;
            self.problem(format!(
                "{} in {}: expected {expected}, found {found}",
                self.path,
                self.origin.name()
            ))
        })
    }

    fn problem(&self, message: String) -> Problem {
        Problem {
            path: self.path.clone(),
            message: message + &self.origin.place(),
        }
    }
}

/// A problem with the value that a key ended up with.
pub(super) fn misfit(effective: &Effective, message: &str) -> Problem {
    let Effective {
        path,
        value,
        origin,
    } = effective;
    let message = format!(
        "{path} in {}: {message}, found {}{}",
        origin.name(),
        describe(value),
        origin.place()
    );
    Problem {
        path: path.clone(),
        message,
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format!("'{}'", without_password(text)),
        Value::Array(_) => format!("the list {value}"),
        Value::Object(_) => "a section".to_owned(),
        other => other.to_string(),
    }
}

/// The key that was probably meant: a sibling by its name, else the same name elsewhere.
fn suggestion(path: &str) -> Option<String> {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let with_sections =
        |f: &'static Field| std::iter::once(f.path.as_str()).chain(parent_paths(&f.path));
    let names: Vec<&str> = fields().iter().flat_map(with_sections).collect();
    let sibling = |name: &'static str| match name.rsplit_once('.') {
        Some((parent, last)) => (parent == section).then_some(last),
        None => section.is_empty().then_some(name),
    };
    if let Some(near) = closest(key, names.iter().copied().filter_map(sibling)) {
        return Some(near.to_owned());
    }
    names
        .into_iter()
        .find(|n| n.rsplit('.').next() == Some(key))
        .map(str::to_owned)
}

/// The name that a slip of the fingers would turn into `typed`.
fn closest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let scored = names.map(|name| (strsim::jaro_winkler(typed, name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.85).then_some(best.1)
}

/// An address without the password that should not be in it: messages end up in logs.
fn without_password(text: &str) -> String {
    let found = text.split_once("://").and_then(|(scheme, rest)| {
        let (user, host) = rest.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        Some(format!("{scheme}://{name}:…@{host}"))
    });
    let query = text
        .find("password=")
        .and_then(|at| text.split_at_checked(at));
    match (found, query) {
        (Some(shown), _) => shown,
        (None, Some((before, _))) => format!("{before}password=…"),
        (None, None) => text.to_owned(),
    }
}
