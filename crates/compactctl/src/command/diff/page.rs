//! A comparison for a terminal, for Markdown and as a web page.

use std::fmt::Write;

use owo_colors::OwoColorize;

use super::{DiffEntry, SessionDiff};
use crate::report::compaction::render_token_bars;
use crate::report::number::{format_count, group_digits};
use crate::report::text::fit;
use crate::report::{COLUMNS, Charset};

/// How many entries of a kind a terminal shows; the other forms show all.
const SHOWN: usize = 20;

/// For a terminal.
pub(super) fn text(comparison: &SessionDiff, charset: Charset) -> String {
    let [before, after] = &comparison.names;
    let mut out = format!("{} {before}\n{} {after}\n\n", "---".red(), "+++".green());
    out.push_str(&render_token_bars(
        comparison.before,
        comparison.after,
        charset,
    ));
    let _ = writeln!(
        out,
        "\n  {}\n",
        render_totals(comparison, charset.separator())
    );
    for item in comparison.removed.iter().take(SHOWN) {
        let _ = writeln!(out, "{}", text_row('-', item).red());
    }
    push_rest(&mut out, comparison.removed.len(), "removed");
    for item in comparison.added.iter().take(SHOWN) {
        let sign = if item.replaces.is_some() { '~' } else { '+' };
        let _ = writeln!(out, "{}", text_row(sign, item).green());
    }
    push_rest(&mut out, comparison.added.len(), "added");
    out
}

fn text_row(sign: char, item: &DiffEntry) -> String {
    let head = format!(
        "{sign} {:<9} {:>8}  ",
        item.role,
        group_digits(item.tokens.0)
    );
    format!("{head}{}", fit(&item.says, COLUMNS - head.len()))
}

fn push_rest(out: &mut String, all: usize, what: &str) {
    if all > SHOWN {
        let _ = writeln!(out, "  ... and {} more {what}", all - SHOWN);
    }
}

fn render_totals(comparison: &SessionDiff, dot: &str) -> String {
    [
        format!("{} removed", group_digits(comparison.removed.len() as u64)),
        format!("{} kept", group_digits(comparison.kept as u64)),
        format!("{} added", group_digits(comparison.added.len() as u64)),
    ]
    .join(dot)
}

/// For a pull request or a note.
pub(super) fn markdown(comparison: &SessionDiff) -> String {
    let [before, after] = &comparison.names;
    let mut out = format!(
        "# {} → {}\n\n{} → {} tokens · {}\n",
        escape_markdown(before),
        escape_markdown(after),
        group_digits(comparison.before.0),
        group_digits(comparison.after.0),
        render_totals(comparison, " · "),
    );
    for (title, items) in [
        ("Removed", &comparison.removed),
        ("Added", &comparison.added),
    ] {
        if items.is_empty() {
            continue;
        }
        let _ = write!(
            out,
            "\n## {title}\n\n| # | role | tokens | begins |\n|--:|---|--:|---|\n"
        );
        for item in items {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                item.index,
                item.role,
                group_digits(item.tokens.0),
                escape_markdown(&item.says),
            );
        }
    }
    out
}

/// Text in a table cell stays text.
fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1c2128;background:#fff}h1{font-size:1.3rem}table{border-collapse:collapse;width:100%}\
td,th{padding:.25rem .5rem;text-align:left;vertical-align:top;border-bottom:1px solid #d0d7de}\
td.n{text-align:right;font-variant-numeric:tabular-nums}.bar{height:.8rem;background:#d0d7de;border-radius:.4rem}\
.bar div{height:100%;background:#2da44e;border-radius:.4rem}.removed td:first-child{color:#cf222e}\
.added td:first-child{color:#1a7f37}@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}\
td,th{border-color:#30363d}.bar{background:#30363d}}";

/// A page that needs nothing else.
pub(super) fn html(comparison: &SessionDiff) -> String {
    let [before, after] = comparison.names.each_ref().map(|name| escape_html(name));
    let share = comparison.after.0 as f64 / comparison.before.0.max(1) as f64;
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{before} → {after}</title><style>{STYLE}</style></head>\n<body>\n\
         <h1>{before} → {after}</h1>\n<p>{} → {} · {}</p>\n\
         <div class=\"bar\"><div style=\"width:{:.1}%\"></div></div>\n",
        group_digits(comparison.before.0),
        format_count(comparison.after.0, "token", "tokens"),
        render_totals(comparison, " · "),
        share.clamp(0.0, 1.0) * 100.0,
    );
    for (title, class, items) in [
        ("Removed", "removed", &comparison.removed),
        ("Added", "added", &comparison.added),
    ] {
        let _ = writeln!(
            out,
            "<h2>{title}</h2>\n<table class=\"{class}\">\n\
             <tr><th>#</th><th>role</th><th>tokens</th><th>begins</th></tr>"
        );
        items.iter().for_each(|item| out.push_str(&html_row(item)));
        out.push_str("</table>\n");
    }
    out + "</body></html>\n"
}

fn html_row(item: &DiffEntry) -> String {
    format!(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
        item.index,
        item.role,
        group_digits(item.tokens.0),
        escape_html(&item.says),
    )
}

pub(super) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
