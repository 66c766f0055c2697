//! `cargo xtask tidy`: how the code reads, in numbers, and the names that it must not have.
//!
//! The limits are what well-kept Rust workspaces have (one word in 32–47 % of the names of functions,
//! 14–16 % of types that share a name, nine in ten functions within 20–26 lines). Tests are left out.
//! What fails is said with its file and line.

mod module;
mod python;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::shell;
use source::{SourceFile, read_sources};

const ONE_WORD_PERCENT: f64 = 45.0;
const SHARED_TYPE_PERCENT: f64 = 15.0;
const LENGTH_P90: usize = 24;
/// May only be raised.
const LEAST_DOCTESTS: usize = 25;

/// Words for what an agent or a person said. A function or type that is about anything else has a name for
/// what that is: `encode_messages` and not `tell`.
const SPEECH: [&str; 11] = [
    "told", "untold", "tell", "tells", "say", "says", "saying", "said", "hear", "hears", "heard",
];
/// Names that may have such a word, because somebody literally said it.
const LITERAL_SPEECH: [&str; 4] = ["is_said", "keep_last_saying", "says_same", "says_the_same"];

/// Names of modules that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = [
    "util", "utils", "common", "helper", "helpers", "misc", "shared",
];
/// Endings of a second generation beside the first.
const GENERATIONS: [&str; 2] = ["_v2", "_inner"];

/// One row of the table.
struct TidyMeasure {
    name: &'static str,
    value: String,
    limit: String,
}

/// Prints the table, then fails with everything that is wrong.
pub(crate) fn run() -> Result<()> {
    let (measures, problems) = inspect_sources()?;
    for TidyMeasure { name, value, limit } in &measures {
        println!("{name:44} {value:>10}   {limit}");
    }
    fail_on(&problems)?;
    println!("the code is tidy");
    Ok(())
}

/// Checks the sources like [`run`], and returns the measures in one line.
pub(crate) fn check() -> Result<String> {
    let (measures, problems) = inspect_sources()?;
    fail_on(&problems)?;
    let said = |m: &TidyMeasure| format!("{} {}", m.name, m.value);
    Ok(measures.iter().map(said).collect::<Vec<_>>().join(", "))
}

fn fail_on(problems: &[String]) -> Result<()> {
    if !problems.is_empty() {
        bail!("the code is not tidy\n  {}", problems.join("\n  "));
    }
    Ok(())
}

fn inspect_sources() -> Result<(Vec<TidyMeasure>, Vec<String>)> {
    let root = shell::repo_root();
    let files = read_sources(&root)?;
    let document = "ARCHITECTURE.md";
    let document = fs::read_to_string(root.join(document)).context(document)?;
    let mut problems = module::module_problems(&files, &document);
    for file in &files {
        problems.extend(name_problems(file));
        problems.extend(number_problems(file));
    }
    problems.extend(twin_types(&files));
    problems.extend(python::name_problems(&root)?);
    let (measures, over) = measure_sources(&files);
    problems.extend(over);
    Ok((measures, problems))
}

fn measure_sources(files: &[SourceFile]) -> (Vec<TidyMeasure>, Vec<String>) {
    let functions: Vec<_> = files.iter().flat_map(SourceFile::functions).collect();
    let one_word = functions.iter().filter(|f| !f.name.contains('_')).count();
    let one_word = percent(one_word, functions.len());
    let mut lengths: Vec<usize> = functions.iter().filter_map(|f| f.length).collect();
    lengths.sort_unstable();
    let p90 = lengths.get(lengths.len() * 9 / 10).copied().unwrap_or(0);
    let shared = shared_type_percent(files);
    let doctests = files.iter().map(count_doctests).sum::<usize>();
    let rows = [
        (
            "functions with one word for a name",
            format!("{one_word:.1} %"),
            format!("at most {ONE_WORD_PERCENT} %"),
            one_word <= ONE_WORD_PERCENT,
        ),
        (
            "types that share their name",
            format!("{shared:.1} %"),
            format!("at most {SHARED_TYPE_PERCENT} %"),
            shared <= SHARED_TYPE_PERCENT,
        ),
        (
            "lines of a function, nine in ten",
            p90.to_string(),
            format!("at most {LENGTH_P90}"),
            p90 <= LENGTH_P90,
        ),
        (
            "doctests",
            doctests.to_string(),
            format!("at least {LEAST_DOCTESTS}"),
            doctests >= LEAST_DOCTESTS,
        ),
    ];
    let over = rows.iter().filter(|(.., holds)| !holds);
    let over = over.map(|(name, value, limit, _)| format!("{name}: {value}, but {limit}"));
    let over = over.collect();
    let measure = |(name, value, limit, _)| TidyMeasure { name, value, limit };
    (rows.into_iter().map(measure).collect(), over)
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Returns the places of each name of a type.
fn types_by_name(files: &[SourceFile]) -> BTreeMap<&str, Vec<(&SourceFile, usize)>> {
    let mut types: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for file in files {
        for found in file.types() {
            types
                .entry(found.name)
                .or_default()
                .push((file, found.line));
        }
    }
    types
}

fn shared_type_percent(files: &[SourceFile]) -> f64 {
    let types = types_by_name(files);
    let all = types.values().map(Vec::len).sum();
    let shared = types.values().map(Vec::len).filter(|n| *n > 1).sum();
    percent(shared, all)
}

/// Types of one crate with the same name. Two of which only one is compiled are in one file.
fn twin_types(files: &[SourceFile]) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, places) in types_by_name(files) {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for (file, line) in places {
            match seen.insert(&file.package, &file.path) {
                Some(other) if other != file.path => problems.push(format!(
                    "{}:{line}: type `{name}` is in {other} as well",
                    file.path
                )),
                _ => {}
            }
        }
    }
    problems
}

/// Modules and functions whose names are ruled out.
fn name_problems(file: &SourceFile) -> Vec<String> {
    let mut problems = Vec::new();
    let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    for part in stem.split('/') {
        if EMPTY_NAMES.contains(&part) || GENERATIONS.iter().any(|end| part.ends_with(end)) {
            problems.push(format!(
                "{}:1: `{part}` says nothing about what is inside",
                file.path
            ));
        }
    }
    for function in file.functions() {
        let (name, path, line) = (function.name, &file.path, function.line);
        problems.extend(speech_problem(path, line, name));
        if GENERATIONS.iter().any(|end| name.ends_with(end)) {
            problems.push(format!(
                "{path}:{line}: `{name}`: a second generation replaces the first"
            ));
        }
    }
    let types = file.types();
    let speech = |t: &source::SourceType<'_>| speech_problem(&file.path, t.line, t.name);
    problems.extend(types.iter().filter_map(speech));
    problems
}

/// Returns what is wrong with a name that is about speech, unless somebody literally said it.
fn speech_problem(path: &str, line: usize, name: &str) -> Option<String> {
    let is_speech = name_words(name)
        .iter()
        .any(|word| SPEECH.contains(&&**word));
    let is_banned = is_speech && !LITERAL_SPEECH.contains(&name);
    is_banned.then(|| format!("{path}:{line}: `{name}` is for what an agent or a person said"))
}

/// Returns the words of a name in lower case, written `in_snake_case` or `InCamelCase`.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c != '_') {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Numbers of requirements in comments, which belong into docs/requirements.toml.
fn number_problems(file: &SourceFile) -> Vec<String> {
    // This file and its neighbour are about such numbers.
    if file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let numbered = file.comments.iter().filter(|c| has_number(&c.text));
    numbered
        .map(|c| {
            format!(
                "{}:{}: the number of a requirement belongs into docs/requirements.toml",
                file.path, c.line
            )
        })
        .collect()
}

fn has_number(comment: &str) -> bool {
    let mut words = comment.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.any(|word| {
        let parts = word.split_once('-');
        parts.is_some_and(|(document, number)| {
            matches!(document, "S0" | "S1" | "S2" | "S3" | "S4" | "C")
                && !number.is_empty()
                && number.chars().all(|c| c.is_ascii_digit())
        })
    })
}

/// Blocks of code in doc comments that a test runs.
fn count_doctests(file: &SourceFile) -> usize {
    let mut is_open = false;
    let mut count = 0;
    for comment in &file.comments {
        let doc = comment.text.strip_prefix("///");
        let doc = doc.or_else(|| comment.text.strip_prefix("//!"));
        let Some(info) = doc.and_then(|text| text.trim().strip_prefix("```")) else {
            continue;
        };
        if !is_open
            && matches!(
                info,
                "" | "rust" | "no_run" | "rust,no_run" | "should_panic"
            )
        {
            count += 1;
        }
        is_open = !is_open;
    }
    count
}
