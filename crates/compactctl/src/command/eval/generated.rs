//! Generated sessions against their answer keys.

use std::fmt::Write;

use compact_eval::compaction::Engine;
use compact_eval::generated::{self, Arc, Check, Line};
use compact_eval::plot::{self, Axis, Chart, Series};
use owo_colors::OwoColorize;
use serde_json::json;

use super::interval_cells;
use crate::args::{Eval, Global};
use crate::command::sheet::Findings;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::number::{grouped, percent};
use crate::report::table::{Column, Table};

/// Checks every kind of session at every budget.
pub fn run(args: &Eval, engine: &Engine, global: &Global) -> Result<Findings, Failure> {
    let _progress = Progress::over_bytes(global, usize::MAX, "measuring");
    let lines = generated::run(engine, args.seeds, &args.budgets)?;
    Ok(Findings {
        json: json!(lines),
        human: tell(&lines, args.seeds),
        csv: csv(&lines),
        html: page(&lines),
        code: 0,
    })
}

/// The check in words.
fn name(check: Check) -> String {
    match check {
        Check::ConstraintVerbatim => "live rules, word for word".to_owned(),
        Check::SupersededAbsent => "replaced rules absent".to_owned(),
        Check::DoneNotOpen => "done work not shown as open".to_owned(),
        Check::OpenShown => "open work shown".to_owned(),
        Check::Fact(kind) => format!("{kind:?} facts").to_lowercase(),
        Check::Tenth(tenth) => format!("facts from {} to {} %", tenth * 10, tenth * 10 + 10),
    }
}

fn tell(lines: &[Line], seeds: u64) -> String {
    let mut out = String::new();
    for arc in Arc::ALL {
        let _ = writeln!(out, "{} {seeds} generated sessions", arc.as_str().bold());
        let [text, number] = [Column::left(), Column::right()];
        let mut table = Table::new([number, text, number, text, number]);
        table.row(["budget", "check", "share", "", "asked"].map(str::to_owned));
        let mine = lines.iter().filter(|line| line.arc == arc);
        // Where facts stood is a curve of the page.
        for line in mine.filter(|line| !matches!(line.check, Check::Tenth(_))) {
            table.row(cells(line));
        }
        out.push_str(&table.render());
        out.push('\n');
    }
    out
}

fn cells(line: &Line) -> [String; 5] {
    let [mean, range] = interval_cells(line.passed);
    let count = grouped(line.count as u64);
    [percent(line.budget), name(line.check), mean, range, count]
}

fn csv(lines: &[Line]) -> String {
    let mut out = "arc,budget,check,asked,share,low,high\n".to_owned();
    for line in lines {
        let p = line.passed;
        let _ = writeln!(
            out,
            "{},{},\"{}\",{},{:.4},{:.4},{:.4}",
            line.arc.as_str(),
            line.budget,
            name(line.check),
            line.count,
            p.mean,
            p.low,
            p.high
        );
    }
    out
}

fn page(lines: &[Line]) -> String {
    let mut body = String::new();
    for arc in Arc::ALL {
        let mine: Vec<&Line> = lines.iter().filter(|line| line.arc == arc).collect();
        let _ = writeln!(
            body,
            "<h2>{}</h2>\n{}",
            arc.as_str(),
            positions(&mine).svg()
        );
        let rows = mine.iter().map(|line| {
            let [budget, check, mean, range, count] = cells(line);
            [check, budget, mean, range, count]
        });
        let head = ["check", "budget", "share", "95 %", "asked"];
        body.push_str(&plot::table(head, rows));
    }
    plot::page("Generated sessions against their answer keys", &body)
}

/// Facts by where they stood, one curve per budget.
fn positions(lines: &[&Line]) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    for line in lines {
        let Check::Tenth(tenth) = line.check else {
            continue;
        };
        let name = format!("budget {}", percent(line.budget));
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
