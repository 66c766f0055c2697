//! A compaction at a glance: how much smaller, what stayed, what is proved.

use compact::receipt::Receipt;
use compact::token::Tokens;
use owo_colors::{OwoColorize, Style};

use super::bar::bar;
use super::number::{format_count, format_percent, format_share, group_digits};
use super::table::{Column, Table};
use super::text::fit;
use super::{COLUMNS, Charset};

const BAR: usize = 40;
/// Lines of the summary that a report shows.
const PREVIEW: usize = 8;

/// Two bars on one scale.
pub(crate) fn render_token_bars(before: Tokens, after: Tokens, charset: Charset) -> String {
    let share = |tokens: Tokens| tokens.0 as f64 / before.0.max(1) as f64;
    let saved = 1.0 - share(after);
    let width = group_digits(before.0).len();
    format!(
        "  before  {}  {:>width$}\n  after   {}  {:>width$}  {}\n",
        bar(share(before), BAR, charset).dimmed(),
        group_digits(before.0),
        bar(share(after), BAR, charset).green(),
        group_digits(after.0),
        format!("-{}", format_percent(saved)).green().bold(),
    )
}

/// What stayed, what was summarized, what is proved: one row each.
pub(crate) fn receipt_table(receipt: &Receipt, charset: Charset) -> Table<2> {
    let mut table = Table::new([Column::left().style(Style::new().bold()), Column::left()]);
    table.add_row(["kept".to_owned(), describe_kept(receipt, charset)]);
    table.add_row(["summarized".to_owned(), describe_summary(receipt)]);
    table.add_row(["retention".to_owned(), describe_retention(receipt)]);
    for note in &receipt.notes {
        table.add_row(["note".to_owned(), note.to_string()]);
    }
    table
}

fn describe_kept(receipt: &Receipt, charset: Charset) -> String {
    let kept = &receipt.kept;
    let mut parts = vec![
        format!("{} pinned", group_digits(kept.pinned)),
        format_count(kept.recent_turns, "turn", "turns"),
        format_count(kept.tool_pairs, "tool exchange", "tool exchanges"),
    ];
    if kept.clipped > 0 {
        parts.push(format!("{} cut to fit", group_digits(kept.clipped)));
    }
    parts.join(charset.separator())
}

fn describe_summary(receipt: &Receipt) -> String {
    format!(
        "{} into summary v{} of {} ({})",
        format_count(receipt.pruned_count, "entry", "entries"),
        receipt.summary_version,
        format_count(receipt.summary_tokens.0, "token", "tokens"),
        style_name(receipt),
    )
}

fn style_name(receipt: &Receipt) -> String {
    let name = serde_json::to_value(receipt.style).unwrap_or_default();
    name.as_str().unwrap_or_default().replace('_', " ")
}

fn describe_retention(receipt: &Receipt) -> String {
    let r = &receipt.retention;
    if r.anchors == 0 {
        return "unknown: nothing was recognised in what was dropped".to_owned();
    }
    let mut parts = vec![format!("{} in view", group_digits(r.kept))];
    for (number, what) in [
        (r.recoverable, "in the archive"),
        (r.redacted, "redacted"),
        (r.lost, "lost"),
    ] {
        if number > 0 {
            parts.push(format!("{} {what}", group_digits(number)));
        }
    }
    format!(
        "{} of {} facts: {}",
        format_share(r.score),
        group_digits(r.anchors),
        parts.join(", ")
    )
}

/// The first lines of a summary, quoted.
pub(crate) fn preview(summary: &str, charset: Charset) -> String {
    let lines: Vec<&str> = summary
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let mut out = format!("  {}\n", "the summary begins".bold());
    for line in lines.iter().take(PREVIEW) {
        let line = fit(&super::text::printable(line), COLUMNS - 4);
        out.push_str(&format!("  {}{}\n", charset.quote_mark().dimmed(), line));
    }
    if lines.len() > PREVIEW {
        let more = format!("... {} more lines", lines.len() - PREVIEW);
        out.push_str(&format!(
            "  {}{}\n",
            charset.quote_mark().dimmed(),
            more.dimmed()
        ));
    }
    out
}
