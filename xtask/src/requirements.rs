//! `docs/requirements.md`: which tests hold what the founding documents ask for.
//!
//! `docs/requirements.txt` lists every number with a few words, and `docs/requirements.toml` says which
//! tests hold it. A test that is not there is a mistake, as is a number that is not on the list, and
//! one without test or reason in a document that is marked complete. Names of tests and comments carry no
//! numbers (`tidy` sees to that).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::shell;

const LIST: &str = "docs/requirements.txt";
const MAP: &str = "docs/requirements.toml";
const PAGE: &str = "docs/requirements.md";

/// A document and a number in it, as `S3-12`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequirementId {
    document: String,
    number: u32,
}

impl std::fmt::Display for RequirementId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.document, self.number)
    }
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IndexedRequirement {
    title: String,
    /// Why no test is needed, by its key.
    reason: Option<String>,
}

/// Everything the list says.
#[derive(Debug, Default)]
struct RequirementIndex {
    items: BTreeMap<RequirementId, IndexedRequirement>,
    reasons: BTreeMap<String, String>,
    complete: Vec<String>,
    headings: BTreeMap<String, String>,
}

/// A test function and the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TestPath {
    file: String,
    name: String,
}

/// The numbers that the map gives to the tests of each file.
type TestMap = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// The tests of each number.
type TestsById = BTreeMap<RequirementId, Vec<TestPath>>;

/// Writes `docs/requirements.md`.
pub(crate) fn write() -> Result<()> {
    fs::write(shell::repo_root().join(PAGE), build_page()?).context(PAGE)
}

/// Checks the page, the map and the numbers.
pub(crate) fn check() -> Result<String> {
    let expected = build_page()?;
    let found = fs::read_to_string(shell::repo_root().join(PAGE)).unwrap_or_default();
    if found != expected {
        bail!("{PAGE} is out of date: run `cargo xtask docs`");
    }
    Ok("every requirement has a test or a reason, and every test of the map exists".into())
}

fn build_page() -> Result<String> {
    let root = shell::repo_root();
    let list = parse_list(&fs::read_to_string(root.join(LIST)).context(LIST)?)?;
    let map: TestMap =
        toml::from_str(&fs::read_to_string(root.join(MAP)).context(MAP)?).context(MAP)?;
    check_tests_exist(&root, &map)?;
    let tests = tests_by_id(&map)?;
    check_numbers(&list, &tests)?;
    Ok(render_page(&list, &tests))
}

fn parse_list(text: &str) -> Result<RequirementIndex> {
    let mut list = RequirementIndex::default();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let parsed = match line.chars().next() {
            None => Some(()),
            Some('#') => parse_heading(line, &mut list),
            Some('@') => parse_reason(line, &mut list),
            Some('=') => {
                let documents = line.trim_start_matches('=').split_whitespace();
                list.complete.extend(documents.map(str::to_owned));
                Some(())
            }
            Some(_) => parse_item(line, &mut list),
        };
        parsed.with_context(|| format!("{LIST}:{}: cannot read `{line}`", at + 1))?;
    }
    Ok(list)
}

/// Parses a heading: `## S3: words` names a document; any other `#` is a comment.
fn parse_heading(line: &str, list: &mut RequirementIndex) -> Option<()> {
    if let Some((document, words)) = line.strip_prefix("## ").and_then(|l| l.split_once(": ")) {
        list.headings.insert(document.to_owned(), words.to_owned());
    }
    Some(())
}

fn parse_reason(line: &str, list: &mut RequirementIndex) -> Option<()> {
    let (key, words) = line.strip_prefix('@')?.split_once(char::is_whitespace)?;
    list.reasons.insert(key.to_owned(), words.trim().to_owned());
    Some(())
}

/// Parses an item such as `S1-22..27 @key words`.
fn parse_item(line: &str, list: &mut RequirementIndex) -> Option<()> {
    let (ids, rest) = line.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    let (reason, title) = match rest.strip_prefix('@') {
        Some(rest) => {
            let (key, title) = rest.split_once(char::is_whitespace)?;
            list.reasons.get(key)?;
            (Some(key.to_owned()), title.trim())
        }
        None => (None, rest),
    };
    for id in parse_ids(ids)? {
        let item = IndexedRequirement {
            title: title.to_owned(),
            reason: reason.clone(),
        };
        list.items.insert(id, item).is_none().then_some(())?;
    }
    Some(())
}

/// Reads `S1-22`, or a range as `S1-22..27`.
fn parse_ids(text: &str) -> Option<Vec<RequirementId>> {
    let (document, numbers) = text.split_once('-')?;
    let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
    let id = |number| RequirementId {
        document: document.to_owned(),
        number,
    };
    let ids: Vec<_> = (first.parse().ok()?..=last.parse().ok()?).map(id).collect();
    (!ids.is_empty()).then_some(ids)
}

/// Fails on tests of the map that no file has.
fn check_tests_exist(root: &Path, map: &TestMap) -> Result<()> {
    let mut missing = Vec::new();
    for (file, tests) in map {
        let text = fs::read_to_string(root.join(file))
            .with_context(|| format!("{MAP} names {file}: move its tests in the map as well"))?;
        let there = test_names(&text);
        let gone = tests.keys().filter(|name| !there.contains(name.as_str()));
        missing.extend(gone.map(|name| format!("{MAP}: there is no test `{name}` in {file}")));
    }
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    Ok(())
}

/// Returns the names of the tests of a file: Rust's have an attribute, Python's a prefix, and JavaScript's are sentences.
fn test_names(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        let signature = line.strip_prefix("async ").unwrap_or(line);
        let rust = signature.strip_prefix("fn ").filter(|_| is_test);
        let python = signature
            .strip_prefix("def ")
            .filter(|name| name.starts_with("test_"));
        let sentence = line.strip_prefix("test(\"");
        if let Some((name, _)) = sentence.and_then(|rest| rest.split_once('"')) {
            names.insert(name);
        }
        if let Some((name, _)) = rust.or(python).and_then(|rest| rest.split_once('(')) {
            names.insert(name);
        }
        let is_above = line.starts_with("#[") || line.starts_with("//");
        is_test = (is_test && is_above)
            || line.starts_with("#[test]")
            || line.starts_with("#[tokio::test");
    }
    names
}

fn tests_by_id(map: &TestMap) -> Result<TestsById> {
    let mut by_id = TestsById::new();
    for (file, tests) in map {
        for (name, numbers) in tests {
            for text in numbers {
                let ids = parse_ids(text)
                    .with_context(|| format!("{MAP}: cannot read `{text}` of `{name}`"))?;
                for id in ids {
                    by_id.entry(id).or_default().push(TestPath {
                        file: file.clone(),
                        name: name.clone(),
                    });
                }
            }
        }
    }
    Ok(by_id)
}

/// Fails on numbers that nobody asked for, and on open ones where none may be.
fn check_numbers(list: &RequirementIndex, tests: &TestsById) -> Result<()> {
    let mut wrong: Vec<String> = Vec::new();
    for (id, paths) in tests.iter().filter(|(id, _)| !list.items.contains_key(id)) {
        for TestPath { file, name } in paths {
            wrong.push(format!(
                "{MAP}: {id} of `{name}` in {file} is not in {LIST}"
            ));
        }
    }
    for id in open_ids(list, tests).filter(|id| list.complete.contains(&id.document)) {
        wrong.push(format!("{id} has neither a test nor a reason in {LIST}"));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

fn open_ids<'a>(
    list: &'a RequirementIndex,
    tests: &'a TestsById,
) -> impl Iterator<Item = &'a RequirementId> {
    let open = |(id, item): &(&RequirementId, &IndexedRequirement)| {
        item.reason.is_none() && !tests.contains_key(id)
    };
    list.items.iter().filter(open).map(|(id, _)| id)
}

fn render_page(list: &RequirementIndex, tests: &TestsById) -> String {
    let mut out = String::from(
        "# What was asked for, and which tests hold it\n\n\
         <!-- Generated from requirements.txt and requirements.toml by `cargo xtask docs`. -->\n\n\
         Five documents founded this project; every demand in them has a number. \
         C are the points on which the documents contradict each other.\n\n",
    );
    let _ = writeln!(
        out,
        "| | asked for | held by a test | not, with a reason | open |\n|---|---|---|---|---|"
    );
    for (document, words) in &list.headings {
        let of = |id: &&RequirementId| id.document == *document;
        let all = list.items.keys().filter(of).count();
        let held = list
            .items
            .keys()
            .filter(of)
            .filter(|id| tests.contains_key(id))
            .count();
        let open = open_ids(list, tests).filter(of).count();
        let _ = writeln!(
            out,
            "| {document}: {words} | {all} | {held} | {} | {open} |",
            all - held - open
        );
    }
    for (document, words) in &list.headings {
        render_section(&mut out, document, words, list, tests);
    }
    out
}

fn render_section(
    out: &mut String,
    document: &str,
    words: &str,
    list: &RequirementIndex,
    tests: &TestsById,
) {
    let _ = writeln!(
        out,
        "\n## {document}: {words}\n\n| | what | held by |\n|---|---|---|"
    );
    for (id, item) in list.items.iter().filter(|(id, _)| id.document == document) {
        let by = match (tests.get(id), &item.reason) {
            (Some(paths), _) => {
                let tests: Vec<String> = paths.iter().map(describe_test).collect();
                tests.join("<br>")
            }
            (None, Some(key)) => format!("*{}*", list.reasons.get(key).map_or("", String::as_str)),
            (None, None) => "**open**".to_owned(),
        };
        let _ = writeln!(out, "| {id} | {} | {by} |", item.title);
    }
}

/// Returns what a test says, and where it is.
fn describe_test(test: &TestPath) -> String {
    format!("{} ({})", test.name.replace('_', " "), test.file)
}
