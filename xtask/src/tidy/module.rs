//! Which module of a crate may use which: `ARCHITECTURE.md` has the list, the sources have the truth.
//!
//! An edge that the list lacks, one that nothing uses any more, and a circle all fail. A few edges close
//! circles that are not worth a module more; they are listed here with the reason, and the list may
//! only shrink.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{SourceFile, identifier, line_at};

/// The crates whose modules are checked.
const PACKAGES: [&str; 2] = ["compact-core", "compact-runtime"];

/// Edges that close a circle: crate, from, to, and why.
const CLOSING_EDGES: &[(&str, &str, &str, &str)] = &[
    (
        "compact-core",
        "message",
        "usage",
        "an entry carries the usage that its provider reported",
    ),
    (
        "compact-runtime",
        "port",
        "recall",
        "the conformance suite of an index makes terms as the search does",
    ),
];

/// The modules that each module uses, with the first place where it does.
type ModuleGraph = BTreeMap<String, BTreeMap<String, String>>;

/// Compares the modules of core and runtime with the document, and looks for circles.
pub(super) fn module_problems(files: &[SourceFile], document: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for package in PACKAGES {
        let graph = read_graph(files.iter().filter(|f| f.package == package));
        problems.extend(compare_edges(package, &graph, document));
        problems.extend(circle_problems(package, graph));
    }
    problems
}

fn read_graph<'a>(files: impl Iterator<Item = &'a SourceFile> + Clone) -> ModuleGraph {
    let modules: BTreeSet<&str> = files.clone().filter_map(SourceFile::top_module).collect();
    let mut graph = ModuleGraph::new();
    for file in files {
        let Some(from) = file.top_module() else {
            continue;
        };
        let uses = graph.entry(from.to_owned()).or_default();
        for (at, path) in file.code.match_indices("crate::") {
            let rest = file.code.get(at + path.len()..).unwrap_or_default();
            for to in first_names(rest) {
                if to != from && modules.contains(to) {
                    let place = || format!("{}:{}", file.path, line_at(&file.code, at));
                    uses.entry(to.to_owned()).or_insert_with(place);
                }
            }
        }
    }
    graph
}

/// Returns the modules that a path after `crate::` begins with: one, or those of `{a::B, c}`.
fn first_names(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![identifier(rest)];
    };
    let mut depth = 0_usize;
    let mut names = vec![identifier(group.trim_start())];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let next = group.get(at + 1..).unwrap_or_default();
                names.push(identifier(next.trim_start()));
            }
            _ => {}
        }
    }
    names
}

/// Reads the block of a crate in the document: lines as `assemble: clip message`.
fn read_listed(package: &str, document: &str) -> BTreeMap<String, BTreeSet<String>> {
    let opening = format!("```modules {package}\n");
    let block = document.split_once(&opening).map_or("", |(_, b)| b);
    let block = block.split("```").next().unwrap_or_default();
    let lines = block.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(from, to)| {
            let to = to.split_whitespace().map(str::to_owned);
            (from.trim().to_owned(), to.collect())
        })
        .collect()
}

fn compare_edges(package: &str, graph: &ModuleGraph, document: &str) -> Vec<String> {
    let listed = read_listed(package, document);
    let mut problems = Vec::new();
    for (from, uses) in graph {
        let allowed = listed.get(from);
        for (to, place) in uses {
            if !allowed.is_some_and(|allowed| allowed.contains(to)) {
                problems.push(format!(
                    "{place}: `{from}` uses `{to}`, which ARCHITECTURE.md does not list for {package}"
                ));
            }
        }
    }
    for (from, allowed) in &listed {
        let uses = graph.get(from);
        for to in allowed {
            if !uses.is_some_and(|uses| uses.contains_key(to)) {
                problems.push(format!(
                    "ARCHITECTURE.md: `{from}` of {package} does not use `{to}`; remove it from the list"
                ));
            }
        }
    }
    problems
}

fn circle_problems(package: &str, mut graph: ModuleGraph) -> Vec<String> {
    let mut problems = Vec::new();
    for (_, from, to, _) in CLOSING_EDGES.iter().filter(|edge| edge.0 == package) {
        let closes = reaches(&graph, to, from);
        let removed = graph.get_mut(*from).and_then(|uses| uses.remove(*to));
        if removed.is_none() || !closes {
            problems.push(format!(
                "xtask/src/tidy/module.rs: `{from}` → `{to}` of {package} closes no circle any more; remove it"
            ));
        }
    }
    for (from, uses) in &graph {
        for (to, place) in uses.iter().filter(|(to, _)| reaches(&graph, to, from)) {
            problems.push(format!(
                "{place}: `{from}` → `{to}` is part of a circle of modules in {package}"
            ));
        }
    }
    problems
}

/// Returns true if a module uses another, directly or by way of others.
fn reaches(graph: &ModuleGraph, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(module) = waiting.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            let uses = graph.get(module).into_iter().flat_map(BTreeMap::keys);
            waiting.extend(uses.map(String::as_str));
        }
    }
    false
}

#[cfg(test)]
pub(super) fn edges(files: &[SourceFile]) -> Vec<(String, String)> {
    let graph = read_graph(files.iter());
    let pairs = graph
        .iter()
        .flat_map(|(from, uses)| uses.keys().map(|to| (from.clone(), to.clone())));
    pairs.collect()
}
