//! `docs/requirements.md`: which tests hold what the founding documents ask for.
//!
//! `docs/requirements.txt` lists every number with a few words; the numbers that tests carry are read
//! off their names and the comments above them. A number in a test that is not on the list is a
//! mistake, and so is one without test or reason in a document that is said to be complete.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell;

const LIST: &str = "docs/requirements.txt";
const PAGE: &str = "docs/requirements.md";
/// Where tests are looked for.
const SOURCES: [&str; 4] = ["crates", "xtask/src", "tests/python", "tests/agents"];

/// A document and a number in it, as `S3-12`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequirementId(String, u32);

impl std::fmt::Display for RequirementId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
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

/// Whether a number stands alone or ends a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberReach {
    Alone,
    Through,
}

/// The tests of each number.
type TestsById = BTreeMap<RequirementId, Vec<String>>;

/// Writes the page.
pub(crate) fn write() -> Result<()> {
    fs::write(shell::repo_root().join(PAGE), build_page()?).context(PAGE)
}

/// Checks the page and the numbers.
pub(crate) fn check() -> Result<String> {
    let expected = build_page()?;
    let found = fs::read_to_string(shell::repo_root().join(PAGE)).unwrap_or_default();
    if found != expected {
        bail!("{PAGE} is out of date: run `cargo xtask docs`");
    }
    Ok("every number that a test carries is one that was asked for".into())
}

fn build_page() -> Result<String> {
    let root = shell::repo_root();
    let list = parse(&fs::read_to_string(root.join(LIST)).context(LIST)?)?;
    let tests = find_tests(&root)?;
    check_numbers(&list, &tests)?;
    Ok(render_page(&list, &tests))
}

fn parse(text: &str) -> Result<RequirementIndex> {
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

/// `## S3: words` names a document; any other `#` is a comment.
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

/// `S1-22..27 @key words`.
fn parse_item(line: &str, list: &mut RequirementIndex) -> Option<()> {
    let (ids, rest) = line.split_once(char::is_whitespace)?;
    let (document, numbers) = ids.split_once('-')?;
    let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
    let rest = rest.trim();
    let (reason, title) = match rest.strip_prefix('@') {
        Some(rest) => {
            let (key, title) = rest.split_once(char::is_whitespace)?;
            list.reasons.get(key)?;
            (Some(key.to_owned()), title.trim())
        }
        None => (None, rest),
    };
    for number in first.parse().ok()?..=last.parse().ok()? {
        let item = IndexedRequirement {
            title: title.to_owned(),
            reason: reason.clone(),
        };
        let before = list
            .items
            .insert(RequirementId(document.to_owned(), number), item);
        before.is_none().then_some(())?;
    }
    Some(())
}

fn find_tests(root: &Path) -> Result<TestsById> {
    let mut tests = TestsById::new();
    for folder in SOURCES {
        for file in source_files(&root.join(folder))? {
            let text = fs::read_to_string(&file)?;
            let place = file.strip_prefix(root).unwrap_or(&file);
            let is_python = file.extension().is_some_and(|e| e == "py");
            let found = if is_python {
                numbered_python_tests(&text)
            } else {
                numbered_tests(&text)
            };
            for (name, ids) in found {
                for id in ids {
                    let test = format!("{name} ({})", place.display());
                    tests.entry(id).or_default().push(test);
                }
            }
        }
    }
    Ok(tests)
}

fn source_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The tests of a file that carry numbers.
fn numbered_tests(text: &str) -> Vec<(String, Vec<RequirementId>)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let above = || {
            let before = lines.iter().take(at).rev();
            before.take_while(|l| l.starts_with("#[") || l.starts_with("///"))
        };
        let is_test = above().any(|l| l.starts_with("#[test]") || l.starts_with("#[tokio::test"));
        if !is_test {
            continue;
        }
        let mut ids = ids_in_name(name);
        ids.extend(
            above()
                .copied()
                .filter(|l| l.starts_with("///"))
                .flat_map(ids_in_comment),
        );
        if !ids.is_empty() {
            found.push((name.to_owned(), ids));
        }
    }
    found
}

/// The tests of a Python file that carry numbers in their names.
fn numbered_python_tests(text: &str) -> Vec<(String, Vec<RequirementId>)> {
    let name = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let (name, _) = line.strip_prefix("def test_")?.split_once('(')?;
        let ids = ids_in_name(name);
        (!ids.is_empty()).then(|| (format!("test_{name}"), ids))
    };
    text.lines().filter_map(name).collect()
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?
        .split_once('(')
        .map(|(name, _)| name)
}

/// `s3_1_s3_2_c_7_words` and `s1_132_to_s1_144_words`.
fn ids_in_name(name: &str) -> Vec<RequirementId> {
    let mut ids: Vec<RequirementId> = Vec::new();
    let mut words = name.split('_');
    let mut reach = NumberReach::Alone;
    while let Some(word) = words.next() {
        if word == "to" && !ids.is_empty() {
            reach = NumberReach::Through;
            continue;
        }
        let Some(id) = document_name(word)
            .zip(words.next())
            .and_then(|(d, n)| Some(RequirementId(d, n.parse().ok()?)))
        else {
            break;
        };
        push_ids(&mut ids, &id, reach);
        reach = NumberReach::Alone;
    }
    ids
}

/// `S3-1, C-7` and `S2-138 … S2-150`.
fn ids_in_comment(line: &str) -> Vec<RequirementId> {
    let mut ids = Vec::new();
    let mut reach = NumberReach::Alone;
    for word in line.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let id = word.split_once('-').and_then(|(d, n)| {
            Some(RequirementId(
                document_name(&d.to_lowercase())?,
                n.parse().ok()?,
            ))
        });
        match id {
            Some(id) => push_ids(&mut ids, &id, reach),
            None if word.is_empty() && line.contains('…') => {
                reach = NumberReach::Through;
                continue;
            }
            None => {}
        }
        reach = NumberReach::Alone;
    }
    ids
}

/// Adds a number, or all from the last one through it.
fn push_ids(ids: &mut Vec<RequirementId>, id: &RequirementId, reach: NumberReach) {
    let last = ids
        .last()
        .filter(|last| reach == NumberReach::Through && last.0 == id.0);
    let from = last.map_or(id.1, |last| last.1 + 1);
    ids.extend((from..=id.1).map(|n| RequirementId(id.0.clone(), n)));
}

fn document_name(word: &str) -> Option<String> {
    let is_one = matches!(word, "s0" | "s1" | "s2" | "s3" | "s4" | "c");
    is_one.then(|| word.to_uppercase())
}

/// Fails on numbers that nobody asked for, and on open ones where none may be.
fn check_numbers(list: &RequirementIndex, tests: &TestsById) -> Result<()> {
    let mut wrong: Vec<String> = Vec::new();
    for (id, names) in tests.iter().filter(|(id, _)| !list.items.contains_key(id)) {
        wrong.push(format!("{id} of {} is not in {LIST}", names.join(", ")));
    }
    for id in open_ids(list, tests).filter(|id| list.complete.contains(&id.0)) {
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
         <!-- Generated from requirements.txt and the names of the tests by `cargo xtask docs`. -->\n\n\
         Five documents founded this project; every demand in them has a number. A test that holds one \
         carries its number. C are the points on which the documents contradict each other.\n\n",
    );
    let _ = writeln!(
        out,
        "| | asked for | held by a test | not, with a reason | open |\n|---|---|---|---|---|"
    );
    for (document, words) in &list.headings {
        let of = |id: &&RequirementId| id.0 == *document;
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
    for (id, item) in list.items.iter().filter(|(id, _)| id.0 == document) {
        let by = match (tests.get(id), &item.reason) {
            (Some(names), _) => {
                let mut names: Vec<String> = names.iter().map(|n| display_test(n)).collect();
                names.dedup();
                names.join("<br>")
            }
            (None, Some(key)) => format!("*{}*", list.reasons.get(key).map_or("", String::as_str)),
            (None, None) => "**open**".to_owned(),
        };
        let _ = writeln!(out, "| {id} | {} | {by} |", item.title);
    }
}

/// A test without the numbers in its name, and where it is.
fn display_test(test: &str) -> String {
    let (name, place) = test.split_once(' ').unwrap_or((test, ""));
    let is_number = |word: &&str| {
        document_name(word).is_some() || *word == "to" || word.chars().all(|c| c.is_ascii_digit())
    };
    let words: Vec<&str> = name.split('_').skip_while(is_number).collect();
    format!("{} {place}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[RequirementId]) -> Vec<String> {
        ids.iter().map(RequirementId::to_string).collect()
    }

    #[test]
    fn numbers_are_read_off_names_and_comments() {
        assert_eq!(
            ids(&ids_in_name("s3_1_s3_2_c_7_turns_add_up")),
            ["S3-1", "S3-2", "C-7"]
        );
        assert_eq!(
            ids(&ids_in_name("s1_2_to_s1_4_s2_9_the_table")),
            ["S1-2", "S1-3", "S1-4", "S2-9"]
        );
        assert_eq!(ids(&ids_in_name("a_name_without_s3_1")), [""; 0]);
        assert_eq!(ids(&ids_in_comment("/// S2-5, C-3.")), ["S2-5", "C-3"]);
        assert_eq!(
            ids(&ids_in_comment("/// The schema of S2-138 … S2-140.")),
            ["S2-138", "S2-139", "S2-140"]
        );
    }

    #[test]
    fn only_tests_count() {
        let text = "/// S2-1.\nfn s3_1_plain() {}\n\n/// S2-2.\n#[test]\nfn s3_2_held() {}\n\n#[tokio::test]\nasync fn s3_3_awaited() {}\n";
        let found: Vec<_> = numbered_tests(text)
            .into_iter()
            .map(|(name, found)| (name, ids(&found)))
            .collect();
        let expected = [
            ("s3_2_held", vec!["S3-2", "S2-2"]),
            ("s3_3_awaited", vec!["S3-3"]),
        ];
        let expected: Vec<_> = expected
            .map(|(name, ids)| {
                (
                    name.to_owned(),
                    ids.into_iter().map(str::to_owned).collect(),
                )
            })
            .into();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_unknown_number_and_an_open_one_are_mistakes() {
        let list = parse("@host theirs\n= S3\n## S3: usage\nS3-1..2 counted\nS3-3 @host a file\n")
            .unwrap();
        let held = |numbers: &[u32]| -> TestsById {
            let tests = numbers
                .iter()
                .map(|n| (RequirementId("S3".into(), *n), vec!["t (f)".to_owned()]));
            tests.collect()
        };
        assert!(check_numbers(&list, &held(&[1, 2])).is_ok());
        let open = check_numbers(&list, &held(&[1])).unwrap_err().to_string();
        assert!(open.contains("S3-2 has neither"), "{open}");
        let unknown = check_numbers(&list, &held(&[1, 2, 9]))
            .unwrap_err()
            .to_string();
        assert!(unknown.contains("S3-9 of t (f) is not in"), "{unknown}");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for text in ["S3-x words\n", "S3-1 @nobody words\n", "S3-1 a\nS3-1 b\n"] {
            assert!(
                parse(text)
                    .unwrap_err()
                    .to_string()
                    .contains("requirements.txt:"),
                "{text}"
            );
        }
    }
}
