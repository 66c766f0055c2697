//! Generated sessions against their answer keys.

use std::fmt::Write;

use compact_eval::compaction::EvalEngine;
use compact_eval::fact_check::{self, CheckResult, Scenario, ViewCheck};
use owo_colors::OwoColorize;
use serde_json::json;

use super::interval_cells;
use crate::args::{EvalArgs, GlobalArgs};
use crate::command::results::ResultDocuments;
use crate::failure::Failure;
use crate::progress::TerminalProgress;
use crate::report::number::{format_percent, group_digits};
use crate::report::plot::{self, Axis, Chart, Series};
use crate::report::table::{Column, Table};

/// Checks every kind of session at every budget.
pub(super) fn run(
    args: &EvalArgs,
    engine: &EvalEngine,
    global: &GlobalArgs,
) -> Result<ResultDocuments, Failure> {
    let _progress = TerminalProgress::over_bytes(global, usize::MAX, "measuring");
    let lines = fact_check::run_checks(engine, args.seeds, args.budget_shares())?;
    Ok(ResultDocuments {
        json: json!(lines),
        human: render_tables(&lines, args.seeds),
        csv: csv(&lines),
        html: html_page(&lines),
        code: 0,
    })
}

/// The check in words.
fn check_label(check: ViewCheck) -> String {
    match check {
        ViewCheck::ConstraintVerbatim => "live rules, word for word".to_owned(),
        ViewCheck::SupersededAbsent => "replaced rules absent".to_owned(),
        ViewCheck::DoneNotOpen => "done work not shown as open".to_owned(),
        ViewCheck::OpenShown => "open work shown".to_owned(),
        ViewCheck::Fact(kind) => format!("{kind:?} facts").to_lowercase(),
        ViewCheck::Tenth(tenth) => format!("facts from {} to {} %", tenth * 10, tenth * 10 + 10),
    }
}

fn render_tables(lines: &[CheckResult], seeds: u64) -> String {
    let mut out = String::new();
    for arc in Scenario::ALL {
        let _ = writeln!(out, "{} {seeds} generated sessions", arc.as_str().bold());
        let [text, number] = [Column::left(), Column::right()];
        let mut table = Table::new([number, text, number, text, number]);
        table.add_row(["budget", "check", "share", "", "asked"].map(str::to_owned));
        let mine = lines.iter().filter(|line| line.arc == arc);
        // Where facts stood is a curve of the page.
        for line in mine.filter(|line| !matches!(line.check, ViewCheck::Tenth(_))) {
            table.add_row(cells(line));
        }
        out.push_str(&table.render());
        out.push('\n');
    }
    out
}

fn cells(line: &CheckResult) -> [String; 5] {
    let [mean, range] = interval_cells(line.passed);
    let count = group_digits(line.count as u64);
    [
        format_percent(line.budget),
        check_label(line.check),
        mean,
        range,
        count,
    ]
}

fn csv(lines: &[CheckResult]) -> String {
    let mut out = "arc,budget,check,asked,share,low,high\n".to_owned();
    for line in lines {
        let p = line.passed;
        let _ = writeln!(
            out,
            "{},{},\"{}\",{},{:.4},{:.4},{:.4}",
            line.arc.as_str(),
            line.budget,
            check_label(line.check),
            line.count,
            p.mean,
            p.low,
            p.high
        );
    }
    out
}

fn html_page(lines: &[CheckResult]) -> String {
    let mut body = String::new();
    for arc in Scenario::ALL {
        let mine: Vec<&CheckResult> = lines.iter().filter(|line| line.arc == arc).collect();
        let _ = writeln!(
            body,
            "<h2>{}</h2>\n{}",
            arc.as_str(),
            position_chart(&mine).to_svg()
        );
        let rows = mine.iter().map(|line| {
            let [budget, check, mean, range, count] = cells(line);
            [check, budget, mean, range, count]
        });
        let head = ["check", "budget", "share", "95 %", "asked"];
        body.push_str(&plot::html_table(head, rows));
    }
    plot::html_page("Generated sessions against their answer keys", &body)
}

/// Facts by where they stood, one curve per budget.
fn position_chart(lines: &[&CheckResult]) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    for line in lines {
        let ViewCheck::Tenth(tenth) = line.check else {
            continue;
        };
        let name = format!("budget {}", format_percent(line.budget));
        let point = (f64::from(tenth) * 10.0 + 5.0, line.passed.mean);
        match series.iter_mut().find(|s| s.name == name) {
            Some(known) => known.points.push(point),
            None => series.push(Series {
                name,
                points: vec![point],
                ..Series::default()
            }),
        }
    }
    let axis = |label: &str, range| Axis {
        label: label.to_owned(),
        range: Some(range),
    };
    Chart {
        title: "Facts still in the view, by where they stood".to_owned(),
        x: axis("depth in the session, %", (0.0, 100.0)),
        y: axis("share", (0.0, 1.0)),
        series,
    }
}
