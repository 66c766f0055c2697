//! Laying sources over each other, key by key, and remembering who had the last word.
//!
//! What a file that nobody trusts may not decide is left out here and told (`project` has the list), so
//! whoever uses a configuration need not know where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use compact_core::profile::{KeyStatus, Profile};
use serde::Serialize;
use serde_json::{Map, Value};

use super::field::{Field, FieldKind, all_fields, find_field, is_section, parent_paths};
use super::file::{KeyLine, OLD_SECTIONS};
use super::source::{BORROWED, PREFIX, RESERVED};
use super::{
    Config, ConfigError, ConfigFile, ConfigProblem, ConfigSources, FileRole, FileText, file,
    project, validate,
};

/// The layer that set a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueOrigin {
    /// Not set anywhere: the default.
    Default,
    /// Set by the profile.
    Profile(Profile),
    /// A line of a file.
    File {
        /// The file that sets it.
        path: PathBuf,
        /// The line in the file, counted from 1.
        line: u64,
        /// Whose file it is.
        role: FileRole,
    },
    /// Set by the environment variable of this name.
    Env(String),
    /// Set by the command-line flag of this name.
    Flag(String),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrigin::Default => f.write_str("default"),
            ValueOrigin::Profile(profile) => write!(f, "profile {profile}"),
            ValueOrigin::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
            ValueOrigin::Env(name) | ValueOrigin::Flag(name) => f.write_str(name),
        }
    }
}

impl ValueOrigin {
    /// Returns the layer that it belongs to, as a word.
    pub fn layer(&self) -> &'static str {
        match self {
            ValueOrigin::Default => "default",
            ValueOrigin::Profile(_) => "profile",
            ValueOrigin::File { role, .. } => role.as_str(),
            ValueOrigin::Env(_) => "env",
            ValueOrigin::Flag(_) => "flag",
        }
    }

    /// Returns the name for a message: `compact.yaml`, `COMPACT_MODEL`, `--model`.
    fn short_name(&self) -> String {
        match self {
            ValueOrigin::File { path, .. } => path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
            other => other.to_string(),
        }
    }

    /// Returns where exactly, when the name does not say it all.
    fn location_suffix(&self) -> String {
        match self {
            ValueOrigin::File { .. } => format!(" ({self})"),
            _ => String::new(),
        }
    }
}

/// A key with its value and who set it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectiveValue {
    /// The key's dotted path.
    pub path: String,
    /// The value in force.
    pub value: Value,
    /// The layer that set it.
    pub origin: ValueOrigin,
}

/// A configuration that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedConfig {
    /// The merged configuration.
    pub config: Config,
    /// Every key with its value and who set it, in the order of the reference.
    pub values: Vec<EffectiveValue>,
    /// What was accepted and has no effect.
    pub warnings: Vec<String>,
    /// The files that were read, the weakest first.
    pub files: Vec<LoadedFile>,
}

/// The keys that decide how much room a view has, and what must stay in it.
const ROOM_KEYS: [&str; 8] = [
    WINDOW,
    "policy.trigger_pct",
    "policy.target_of_trigger",
    "policy.target_tokens",
    "policy.hard_cap_buffer",
    "policy.roles_never_prune",
    "policy.protected_patterns",
    "policy.protected_flag",
];

impl LoadedConfig {
    /// Returns which files set how much room a view has and what must stay, such as `policy.protected_patterns
    /// (compact.yaml:2)`: for whoever is told that something does not fit and did not write them.
    pub fn room_settings(&self) -> Vec<String> {
        let is_room = |value: &&EffectiveValue| {
            ROOM_KEYS.contains(&&*value.path) && matches!(value.origin, ValueOrigin::File { .. })
        };
        let set = self.values.iter().filter(is_room);
        set.map(|value| format!("{} ({})", value.path, value.origin))
            .collect()
    }
}

/// A file that has its part in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadedFile {
    /// The file in force.
    pub path: PathBuf,
    /// Whether it is the user's, the project's or a named file.
    pub role: FileRole,
    /// Whether it may decide everything.
    pub trusted: bool,
    /// What it set in vain.
    pub ignored: Vec<IgnoredKey>,
}

/// A key that a file may not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IgnoredKey {
    /// The key as the file has it.
    pub key: String,
    /// The line of the key, counted from 1.
    pub line: u64,
    /// What would be accepted; empty where nothing would be.
    pub reason: String,
}

/// The keys that a file sets, and those that no project may set by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct FileReview {
    /// Every key with its value, in order.
    pub keys: Vec<(String, Value)>,
    /// The keys that are ignored until the file is trusted.
    pub ignored: Vec<IgnoredKey>,
}

impl fmt::Display for IgnoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IgnoredKey { key, line, reason } = self;
        let key: String = key.chars().filter(|c| !c.is_control()).collect();
        match reason.as_str() {
            "" => write!(f, "{key} (line {line})"),
            reason => write!(f, "{key} (line {line}: {reason})"),
        }
    }
}

impl fmt::Display for LoadedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, role) = (self.path.display(), self.role.as_str());
        match (self.role, self.trusted) {
            (FileRole::Named, _) | (FileRole::User, true) => write!(f, "{path} ({role})"),
            (_, true) => write!(f, "{path} ({role}, trusted)"),
            (_, false) => write!(f, "{path} ({role}, limited)"),
        }
    }
}

impl LoadedFile {
    /// Returns what the file set in vain, and how it would not be in vain.
    fn warning(&self) -> Option<String> {
        let ignored: Vec<String> = self.ignored.iter().map(IgnoredKey::to_string).collect();
        let (path, keys) = (self.path.display(), ignored.join(", "));
        let (cause, help) = match self.role {
            FileRole::User => (
                "other users may write to it, so these keys are ignored",
                "remove that permission (chown, chmod o-w), or name the file with --config",
            ),
            _ => (
                "a project may not set these keys, and they are ignored",
                "read the file, then run `compactctl config trust` to apply them",
            ),
        };
        (!ignored.is_empty()).then(|| format!("{path}: {cause}: {keys}; {help}"))
    }
}

/// A key that a source sets, before anybody knows whether it exists.
struct SourceSetting {
    path: String,
    value: Value,
    origin: ValueOrigin,
    /// The place in the list of files of the one that sets it and is not trusted.
    limited_by: Option<usize>,
}

/// The meaning of a key under a profile.
enum KeyMeaning {
    /// The key at this path.
    Key(String),
    /// A switch that sets the key at this path to what turns it off.
    Switch { path: &'static str, off: f64 },
    /// Nothing, with a warning.
    Deprecated(String),
    /// Something under another profile.
    Elsewhere(ConfigProblem),
    /// A key that does not exist.
    Unknown(ConfigProblem),
}

/// Decides the size of the window.
const WINDOW: &str = "max_context_tokens";

/// Decides what is hidden.
const PATTERNS: &str = "redaction.patterns";

/// What becomes of a project's file that nobody trusts and that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProjectFault {
    /// It is reported, and nothing is loaded.
    Reported,
    /// It is left out with a warning.
    LeftOut,
}

impl ConfigSources {
    /// Lays the sources over each other and checks every key; all problems are reported at once.
    pub fn load(&self) -> Result<LoadedConfig, ConfigError> {
        self.load_with(&read_config_file, ProjectFault::Reported)
    }

    /// The same for whoever can do without the project's file: one that nobody trusts and that is wrong is
    /// left out with a warning, so that no repository can stop them. What it may have wanted to hide is
    /// hidden as far as a project may ask for it.
    pub fn load_without_faulty_project(&self) -> Result<LoadedConfig, ConfigError> {
        self.load_with(&read_config_file, ProjectFault::LeftOut)
    }

    /// As much of the configuration as can be used, and what is wrong with the rest. A project's file that
    /// nobody trusts has no say in how exact an archive is, and none by being wrong. Any other file that is wrong is
    /// left out, the project's before the user's, and then the archive is redacted too: it may have said so.
    pub fn load_usable(&self) -> Result<(LoadedConfig, Option<ConfigError>), ConfigError> {
        let fault = match self.load() {
            Ok(loaded) => return Ok((loaded, None)),
            Err(fault) => fault,
        };
        if let Ok(loaded) = self.load_without_faulty_project() {
            return Ok((loaded, Some(fault)));
        }
        let is_place =
            |name: &str, value: &str| name == "COMPACT_STORAGE_PATH" && !value.is_empty();
        let env = self
            .env
            .iter()
            .filter(|(name, value)| is_place(name, value));
        let place = ConfigSources {
            env: env.cloned().collect(),
            ..ConfigSources::default()
        };
        let without_project = self.clone().without_project();
        let without_files = self.clone().without_files();
        let mut loaded = without_project
            .load()
            .or_else(|_| without_files.load())
            .or_else(|_| place.load())?;
        loaded.config.redaction = loaded.config.redaction.strictest();
        Ok((loaded, Some(fault)))
    }

    /// Returns what a file would decide above the user's own, as it was read.
    pub fn review_file(&self, text: &FileText) -> Result<FileReview, ConfigError> {
        let under = |role| {
            let own = self.files.iter().filter(|file| file.role == FileRole::User);
            let surveyed = ConfigFile {
                path: text.path().to_owned(),
                role,
            };
            let sources = ConfigSources {
                files: own.cloned().chain([surveyed]).collect(),
                ..ConfigSources::default()
            };
            let read = |file: &ConfigFile| match file.role {
                FileRole::User => read_config_file(file),
                _ => Ok(text.clone()),
            };
            sources.load_with(&read, ProjectFault::Reported)
        };
        under(FileRole::Named)?;
        let limited = under(FileRole::Project)?;
        let ignored = limited.files.into_iter().next_back();
        Ok(FileReview {
            keys: file::parse(text)?
                .into_iter()
                .filter(|line| !is_empty_section(&line.path, &line.value))
                .map(|line| (line.path, line.value))
                .collect(),
            ignored: ignored.map(|file| file.ignored).unwrap_or_default(),
        })
    }

    fn load_with(
        &self,
        read: &ReadFile<'_>,
        fault: ProjectFault,
    ) -> Result<LoadedConfig, ConfigError> {
        let is_optional = |file: &LoadedFile| {
            fault == ProjectFault::LeftOut && file.role == FileRole::Project && !file.trusted
        };
        let (mut files, mut left_out) = (Vec::new(), None);
        for file in &self.files {
            let (loaded, lines) = self.read_file(file, read);
            match lines {
                Ok(lines) => files.push(FileSettings { loaded, lines }),
                Err(wrong) if is_optional(&loaded) => left_out = Some((loaded.path, wrong)),
                Err(wrong) => return Err(wrong),
            }
        }
        let optional = files.iter().position(|file| is_optional(&file.loaded));
        let (path, wrong) = match (left_out, self.merge(&files), optional) {
            (Some(left_out), ..) => left_out,
            (None, Err(wrong), Some(at)) => (files.remove(at).loaded.path, wrong),
            (None, done, _) => return done,
        };
        let mut loaded = self.merge(&files)?;
        let path = path.display();
        let warning = format!("{path} is ignored: {wrong}; mend it, or remove it");
        loaded.warnings.push(warning);
        loaded.config.redaction = loaded.config.redaction.strictest_where_shown();
        Ok(loaded)
    }

    /// Lays the settings of files, the weakest first, and everything else over each other.
    fn merge(&self, files: &[FileSettings]) -> Result<LoadedConfig, ConfigError> {
        let mut warnings = self.notes.clone();
        let mut settings = Vec::new();
        for (at, file) in files.iter().enumerate() {
            let limited_by = (!file.loaded.trusted).then_some(at);
            settings.extend(file.source_settings(limited_by));
        }
        settings.extend(self.variables_and_flags(&mut warnings));
        let profile = chosen_profile(&settings)?.unwrap_or(self.fallback_profile);
        let files = files.iter().map(|file| file.loaded.clone()).collect();
        let mut merge = Merge::new(profile, files, warnings);
        settings
            .into_iter()
            .for_each(|setting| merge.apply(setting));
        merge.finish()
    }

    /// Reads a file once: whose it is and whether it is trusted, and what it sets.
    fn read_file(
        &self,
        file: &ConfigFile,
        read: &ReadFile<'_>,
    ) -> (LoadedFile, Result<Vec<KeyLine>, ConfigError>) {
        let text = read(file);
        let trusts = |text: &FileText| self.trusts_file(file.role, text);
        let loaded = LoadedFile {
            path: file.path.clone(),
            role: file.role,
            trusted: text.as_ref().is_ok_and(trusts),
            ignored: Vec::new(),
        };
        (loaded, text.and_then(|text| file::parse(&text)))
    }

    fn trusts_file(&self, role: FileRole, text: &FileText) -> bool {
        match role {
            FileRole::Named => true,
            FileRole::User => !text.may_be_written_by_others(),
            FileRole::Project => self.trust.as_ref().is_some_and(|store| store.trusts(text)),
        }
    }

    /// Returns what variables and flags set, weakest first.
    fn variables_and_flags(&self, warnings: &mut Vec<String>) -> Vec<SourceSetting> {
        let mut settings: Vec<SourceSetting> =
            self.env.iter().filter_map(borrowed_setting).collect();
        for (name, text) in &self.env {
            settings.extend(variable_setting(name, text, warnings));
        }
        settings.extend(self.flags.iter().map(|flag| SourceSetting {
            path: flag.path.clone(),
            value: flag.value.clone(),
            origin: ValueOrigin::Flag(flag.name.clone()),
            limited_by: None,
        }));
        settings
    }
}

/// A file as it was read.
struct FileSettings {
    loaded: LoadedFile,
    lines: Vec<KeyLine>,
}

impl FileSettings {
    /// Returns what it sets.
    fn source_settings(&self, limited_by: Option<usize>) -> impl Iterator<Item = SourceSetting> {
        self.lines.iter().map(move |line| SourceSetting {
            origin: ValueOrigin::File {
                path: self.loaded.path.clone(),
                line: line.number,
                role: self.loaded.role,
            },
            path: line.path.clone(),
            value: line.value.clone(),
            limited_by,
        })
    }
}

/// A function that reads a file.
type ReadFile<'a> = dyn Fn(&ConfigFile) -> Result<FileText, ConfigError> + 'a;

/// Reads a file; one that nobody named must be a regular one.
fn read_config_file(file: &ConfigFile) -> Result<FileText, ConfigError> {
    let text = match file.role {
        FileRole::Named => FileText::read(&file.path),
        FileRole::User => FileText::read_regular(&file.path),
        FileRole::Project => FileText::read_own(&file.path),
    };
    text.map_err(|source| ConfigError::Unreadable {
        path: file.path.clone(),
        source,
    })
}

/// Whoever has made as many mistakes mends these first.
const MOST_PROBLEMS: usize = 50;

/// The values so far, and what came of the rest.
struct Merge {
    profile: Profile,
    values: BTreeMap<String, EffectiveValue>,
    files: Vec<LoadedFile>,
    warnings: Vec<String>,
    problems: Vec<ConfigProblem>,
    /// A window that a project wants and nobody before it set.
    window_limit: Option<u64>,
    /// How many patterns are the user's, where a project added some.
    own_patterns: Option<usize>,
}

impl Merge {
    fn new(profile: Profile, files: Vec<LoadedFile>, warnings: Vec<String>) -> Merge {
        Merge {
            values: default_values(profile),
            problems: Vec::new(),
            window_limit: None,
            own_patterns: None,
            profile,
            files,
            warnings,
        }
    }

    /// Lays one setting over what there is.
    fn apply(&mut self, setting: SourceSetting) {
        if self.problems.len() >= MOST_PROBLEMS {
            return;
        }
        if is_empty_section(&setting.path, &setting.value) {
            // Whoever may set everything may also leave everything in a section as it is.
            if let Some(file) = setting.limited_by {
                self.ignore(file, &setting, project::UNSET.to_owned());
            }
            return;
        }
        let meaning = setting.meaning(self.profile);
        if let (Some(file), Some(reason)) = (setting.limited_by, meaning.refusal(self.profile)) {
            return self.ignore(file, &setting, reason);
        }
        let found = match meaning {
            KeyMeaning::Key(path) => setting.typed_value(&path).map(|value| Some((path, value))),
            KeyMeaning::Switch { path, off } => {
                let value = setting.switch_value(off);
                value.map(|value| value.map(|value| (path.to_owned(), value)))
            }
            KeyMeaning::Deprecated(warning) => return self.warnings.push(warning),
            KeyMeaning::Elsewhere(problem) | KeyMeaning::Unknown(problem) => Err(problem),
        };
        match found {
            Ok(Some((path, value))) => self.set(path, value, setting),
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
    }

    fn set(&mut self, path: String, value: Value, setting: SourceSetting) {
        let current = self.values.get(&path).map(|found| found.value.clone());
        let current = current.unwrap_or_default();
        let permitted = match setting.limited_by {
            None => Ok(value),
            Some(_) => project::permit_value(&path, &value, &current),
        };
        let value = match (permitted, setting.limited_by) {
            (Ok(value), _) => value,
            (Err(reason), Some(file)) => return self.ignore(file, &setting, reason),
            (Err(_), None) => return,
        };
        if path == WINDOW {
            let is_limit = setting.limited_by.is_some() && current.is_null();
            self.window_limit = value.as_u64().filter(|_| is_limit);
        }
        if path == PATTERNS {
            let own = current.as_array().map_or(0, Vec::len);
            let before = self.own_patterns.unwrap_or(own);
            self.own_patterns = setting.limited_by.map(|_| before);
        }
        let origin = setting.origin;
        let effective = EffectiveValue {
            path: path.clone(),
            value,
            origin,
        };
        self.values.insert(path, effective);
    }

    fn ignore(&mut self, file: usize, setting: &SourceSetting, reason: String) {
        let line = match setting.origin {
            ValueOrigin::File { line, .. } => line,
            _ => 0,
        };
        if let Some(file) = self.files.get_mut(file) {
            file.ignored.push(IgnoredKey {
                key: setting.path.clone(),
                line,
                reason,
            });
        }
    }

    /// Returns the configuration, if nothing is wrong with it.
    fn finish(mut self) -> Result<LoadedConfig, ConfigError> {
        if !self.problems.is_empty() {
            return Err(ConfigError::Invalid(self.problems));
        }
        let mut config = build_config(&self.values)?;
        validate::check(&config, &self.values)?;
        if self.window_limit.is_some() {
            config.max_context_tokens = None;
            config.window_limit = self.window_limit;
        }
        if let Some(own) = self.own_patterns {
            let patterns = &mut config.redaction.patterns;
            config.redaction.foreign_patterns = patterns.split_off(own.min(patterns.len()));
        }
        // A variable that a key names is known, whatever it is called.
        let named = self.values.values().filter(|v| v.path.ends_with("_env"));
        let named: Vec<String> = named
            .filter_map(|v| Some(unknown_variable_warning(v.value.as_str()?)))
            .collect();
        let is_known = |warning: &String| named.iter().any(|known| warning.starts_with(known));
        self.warnings.retain(|warning| !is_known(warning));
        self.warnings
            .extend(self.files.iter().filter_map(LoadedFile::warning));
        let in_order = all_fields().iter();
        Ok(LoadedConfig {
            config,
            values: in_order
                .filter_map(|f| self.values.remove(&f.path))
                .collect(),
            warnings: self.warnings,
            files: self.files,
        })
    }
}

/// Returns true for a section that a file has without a key in it, which reads as `null`.
fn is_empty_section(path: &str, value: &Value) -> bool {
    value.is_null() && is_section(path)
}

/// Returns the key that another program's variable sets; an empty one sets nothing.
fn borrowed_setting((name, text): &(String, String)) -> Option<SourceSetting> {
    let (_, path) = BORROWED.iter().find(|(theirs, _)| theirs == name)?;
    (!text.is_empty()).then(|| SourceSetting {
        path: (*path).to_owned(),
        value: text.as_str().into(),
        origin: ValueOrigin::Env(name.clone()),
        limited_by: None,
    })
}

/// Returns the key that a variable sets: `COMPACT_POLICY_TRIGGER_PCT`, or `COMPACT_TRIGGER_PCT` for short.
fn variable_setting(name: &str, text: &str, warnings: &mut Vec<String>) -> Option<SourceSetting> {
    let key = name
        .strip_prefix(PREFIX)
        .filter(|_| !RESERVED.contains(&name))?;
    let setting = |path: String| SourceSetting {
        path,
        value: text.into(),
        origin: ValueOrigin::Env(name.to_owned()),
        limited_by: None,
    };
    let named = all_fields()
        .iter()
        .find(|f| variable_names(f).any(|n| n == name));
    if let Some(field) = named {
        return Some(setting(field.path.clone()));
    }
    let lower = key.to_ascii_lowercase();
    if is_known_to_a_profile(&lower) {
        return Some(setting(lower));
    }
    let all: Vec<String> = all_fields().iter().flat_map(variable_names).collect();
    let hint =
        closest_name(name, all.iter().map(String::as_str)).map(|n| format!(", did you mean {n}?"));
    warnings.push(unknown_variable_warning(name) + &hint.unwrap_or_default());
    None
}

fn is_known_to_a_profile(key: &str) -> bool {
    let mut profiles = Profile::ALL.iter();
    profiles.any(|profile| profile.key_status(key) != KeyStatus::Unknown)
}

fn unknown_variable_warning(name: &str) -> String {
    format!("unknown variable {name} is ignored")
}

/// Returns the variables that set a key; keys of `policy` have a short one.
pub(super) fn variable_names(field: &Field) -> impl Iterator<Item = String> {
    let name = |path: &str| format!("{PREFIX}{}", path.replace('.', "_").to_ascii_uppercase());
    let short = field.path.strip_prefix("policy.").map(name);
    std::iter::once(name(&field.path)).chain(short)
}

/// Returns the profile that somebody names who may.
fn chosen_profile(settings: &[SourceSetting]) -> Result<Option<Profile>, ConfigError> {
    let decides = |s: &&SourceSetting| s.path == "profile" && s.limited_by.is_none();
    let Some(last) = settings.iter().rev().find(decides) else {
        return Ok(None);
    };
    let value = last
        .typed_value("profile")
        .map_err(|problem| ConfigError::Invalid(vec![problem]))?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Defaults under the profile's values.
fn default_values(profile: Profile) -> BTreeMap<String, EffectiveValue> {
    let policy = serde_json::to_value(profile.policy()).unwrap_or_default();
    let of_profile = |f: &Field| {
        if f.path == "profile" {
            return Some(profile.as_str().into());
        }
        let place = f.path.strip_prefix("policy")?.replace('.', "/");
        policy.pointer(&place).cloned()
    };
    let effective = |f: &Field| {
        let value = of_profile(f).unwrap_or_else(|| f.default.clone());
        let origin = if value == f.default {
            ValueOrigin::Default
        } else {
            ValueOrigin::Profile(profile)
        };
        (
            f.path.clone(),
            EffectiveValue {
                path: f.path.clone(),
                value,
                origin,
            },
        )
    };
    all_fields().iter().map(effective).collect()
}

fn build_config(values: &BTreeMap<String, EffectiveValue>) -> Result<Config, ConfigError> {
    let mut root = Map::new();
    for effective in values.values() {
        insert_at_path(&mut root, &effective.path, effective.value.clone());
    }
    // The kinds were checked key by key; what is left is a number or a text that its type refuses.
    serde_json::from_value(Value::Object(root)).map_err(|e| {
        let culprits = values.values();
        let culprits =
            culprits.filter_map(|value| Some(value_problem(value, &type_error_of(value)?)));
        let problems: Vec<ConfigProblem> = culprits.collect();
        ConfigError::Invalid(match problems.is_empty() {
            false => problems,
            true => vec![ConfigProblem {
                path: String::new(),
                message: e.to_string(),
            }],
        })
    })
}

/// Returns why a value is none of its key's type, if it is none.
fn type_error_of(effective: &EffectiveValue) -> Option<String> {
    let mut root = Map::new();
    insert_at_path(&mut root, &effective.path, effective.value.clone());
    let refused = serde_json::from_value::<Config>(Value::Object(root)).err()?;
    Some(refused.to_string())
}

fn insert_at_path(map: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(map.insert(path.to_owned(), value)),
        Some((section, rest)) => {
            let entry = map.entry(section).or_insert_with(|| Map::new().into());
            if let Value::Object(section) = entry {
                insert_at_path(section, rest, value);
            }
        }
    }
}

impl KeyMeaning {
    /// Returns why a file that is not trusted may not say it, if it may not.
    fn refusal(&self, profile: Profile) -> Option<String> {
        let path = match self {
            KeyMeaning::Key(path) => path.as_str(),
            KeyMeaning::Switch { path, .. } => path,
            KeyMeaning::Elsewhere(_) => return Some(format!("not a key of profile {profile}")),
            KeyMeaning::Deprecated(_) | KeyMeaning::Unknown(_) => return None,
        };
        project::find_allowance(path).is_none().then(String::new)
    }
}

impl SourceSetting {
    /// Returns what the key means.
    fn meaning(&self, profile: Profile) -> KeyMeaning {
        if find_field(&self.path).is_some() {
            return KeyMeaning::Key(self.path.clone());
        }
        let key = match self.path.split_once('.') {
            Some((section, key)) if section == "policy" || OLD_SECTIONS.contains(&section) => key,
            _ => &self.path,
        };
        match profile.key_status(key) {
            KeyStatus::Alias(path) => KeyMeaning::Key(path.to_owned()),
            KeyStatus::Switch { path, off } => KeyMeaning::Switch { path, off },
            KeyStatus::Deprecated => {
                let place = self.origin.short_name();
                KeyMeaning::Deprecated(format!(
                    "'{key}' in {place} is deprecated in profile {profile} and has no effect"
                ))
            }
            // The words that users of this profile have been told to expect.
            KeyStatus::Removed => KeyMeaning::Elsewhere(self.problem(format!(
                "Unknown field '{key}' in {}",
                self.origin.short_name()
            ))),
            KeyStatus::Unknown if is_known_to_a_profile(key) => {
                KeyMeaning::Elsewhere(self.unknown_key_problem())
            }
            KeyStatus::Unknown => KeyMeaning::Unknown(self.unknown_key_problem()),
        }
    }

    /// Returns the value that switches the key off for `false`, and none for `true`.
    fn switch_value(&self, off: f64) -> Result<Option<Value>, ConfigProblem> {
        let on = match &self.value {
            Value::Bool(on) => Some(*on),
            Value::String(text) => FieldKind::Bool.parse(text).and_then(|v| v.as_bool()),
            _ => None,
        };
        let Some(on) = on else {
            let (name, found) = (self.origin.short_name(), describe_value(&self.value));
            let expected = &FieldKind::Bool;
            return Err(self.problem(format!(
                "{} in {name}: expected {expected}, found {found}",
                self.path
            )));
        };
        Ok((!on).then(|| off.into()))
    }

    fn unknown_key_problem(&self) -> ConfigProblem {
        if is_section(&self.path) {
            let found = describe_value(&self.value);
            return self.problem(format!(
                "{} in {}: expected a section of keys, found {found}",
                self.path,
                self.origin.short_name()
            ));
        }
        let hint = suggest_key(&self.path).map(|s| format!(", did you mean '{s}'?"));
        let hint = hint.unwrap_or_default();
        self.problem(format!(
            "unknown field '{}' in {}{hint}",
            self.path,
            self.origin.short_name()
        ))
    }

    /// Returns the value as the kind of the key at `path`; text from variables and flags is read first.
    fn typed_value(&self, path: &str) -> Result<Value, ConfigProblem> {
        let Some(field) = find_field(path) else {
            return Err(self.unknown_key_problem());
        };
        let from_text = !matches!(self.origin, ValueOrigin::File { .. });
        let value = match &self.value {
            Value::String(text) if from_text && field.optional && text.is_empty() => {
                Some(Value::Null)
            }
            Value::String(text) if from_text => field.kind.parse(text),
            value => Some(value.clone()),
        };
        let fits = |v: &Value| field.kind.accepts(v) || (v.is_null() && field.optional);
        value.filter(fits).ok_or_else(|| {
            let found = describe_value(&self.value);
            let expected = &field.kind;
            self.problem(format!(
                "{} in {}: expected {expected}, found {found}",
                self.path,
                self.origin.short_name()
            ))
        })
    }

    fn problem(&self, message: String) -> ConfigProblem {
        ConfigProblem {
            path: self.path.clone(),
            message: message + &self.origin.location_suffix(),
        }
    }
}

/// Returns a problem with the value that a key ended up with.
pub(super) fn value_problem(effective: &EffectiveValue, message: &str) -> ConfigProblem {
    let EffectiveValue {
        path,
        value,
        origin,
    } = effective;
    let message = format!(
        "{path} in {}: {message}, found {}{}",
        origin.short_name(),
        describe_value(value),
        origin.location_suffix()
    );
    ConfigProblem {
        path: path.clone(),
        message,
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format!("'{}'", without_password(text)),
        Value::Array(_) => format!("the list {value}"),
        Value::Object(_) => "a section".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the key that was probably meant: a sibling by its name, else the same name elsewhere.
fn suggest_key(path: &str) -> Option<String> {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let with_sections =
        |f: &'static Field| std::iter::once(f.path.as_str()).chain(parent_paths(&f.path));
    let names: Vec<&str> = all_fields().iter().flat_map(with_sections).collect();
    let sibling = |name: &'static str| match name.rsplit_once('.') {
        Some((parent, last)) => (parent == section).then_some(last),
        None => section.is_empty().then_some(name),
    };
    if let Some(near) = closest_name(key, names.iter().copied().filter_map(sibling)) {
        return Some(near.to_owned());
    }
    names
        .into_iter()
        .find(|n| n.rsplit('.').next() == Some(key))
        .map(str::to_owned)
}

/// Returns the name that a slip of the fingers would turn into `typed`.
fn closest_name<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let scored = names.map(|name| (strsim::jaro_winkler(typed, name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.85).then_some(best.1)
}

/// Returns an address without the password that should not be in it: messages end up in logs.
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
