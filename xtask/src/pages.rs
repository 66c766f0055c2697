//! The documents as a site: every page is in the table of contents, and every link within the repository leads somewhere.
//!
//! What stands outside of `docs` is not part of the site, so a page names it by its address on the web. Those are not asked: a
//! check that needs a network fails for reasons of its own.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::shell;

/// The table of contents, which `mdbook` reads.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Fails on a page that the table of contents lacks, and on a link to a file that does not exist.
pub(crate) fn check() -> Result<String> {
    let root = shell::repo_root();
    let files = shell::output("git", &["ls-files", "*.md"])?;
    let contents = read(&root, CONTENTS)?;
    let listed = link_targets(&contents);
    let mut wrong = Vec::new();
    let mut links = 0;
    for file in files.lines() {
        let page = file.strip_prefix("docs/");
        if page.is_some_and(|page| page != "SUMMARY.md" && !listed.contains(&page)) {
            wrong.push(format!("{CONTENTS} lacks {file}"));
        }
        let text = read(&root, file)?;
        let folder = root.join(file);
        let folder = folder.parent().unwrap_or(&root);
        let targets = link_targets(&text);
        links += targets.len();
        let dead = targets
            .iter()
            .filter(|target| !folder.join(target).exists());
        wrong.extend(dead.map(|target| format!("{file} links to {target}, which does not exist")));
        let outside = targets
            .iter()
            .filter(|target| page.is_some_and(|page| leaves_site(page, target)));
        wrong.extend(outside.map(|target| format!("{file} links to {target}, which no site has")));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n  "));
    }
    Ok(format!(
        "{} pages, {links} links between files",
        files.lines().count()
    ))
}

fn read(root: &Path, file: &str) -> Result<String> {
    std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
}

/// Returns whether a link of a page leads out of the folder of the site.
fn leaves_site(page: &str, target: &str) -> bool {
    let depth = page.matches('/').count();
    target.split('/').take_while(|part| *part == "..").count() > depth
}

/// The files that a page links to, without the place in them.
fn link_targets(page: &str) -> Vec<&str> {
    let mut inside_code = false;
    let prose = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        inside_code ^= is_fence;
        !inside_code && !is_fence
    });
    let links = prose.flat_map(|line| line.split("](").skip(1));
    let targets = links.filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets
        .filter(|target| !target.is_empty() && !target.contains(':'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{leaves_site, link_targets};

    #[test]
    fn a_link_out_of_the_site_is_one_above_the_page() {
        assert!(leaves_site("a.md", "../README.md"));
        assert!(leaves_site("deep/a.md", "../../README.md"));
        assert!(!leaves_site("deep/a.md", "../b.md") && !leaves_site("a.md", "deep/b.md"));
    }

    #[test]
    fn links_between_files_are_found_and_code_is_not_read() {
        let page = "[a](a.md), [b](../b.md#part) and [web](https://example.org/x)\n```\n[c](c.md)\n```\n[here](#part)";
        assert_eq!(link_targets(page), ["a.md", "../b.md"]);
    }
}
