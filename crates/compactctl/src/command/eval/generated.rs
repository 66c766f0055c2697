//! Generated sessions against their answer keys.

use std::fmt::Write;

use compact_eval::compaction::Engine;
use compact_eval::generated::{self, Arc, Check, Line};
use compact_eval::plot;
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
    })
}

/// The check in words.
fn name(check: Check) -> String {
    match check {
        Check::ConstraintVerbatim => "live rules, word for word".to_owned(),
        Check::SupersededAbsent => "replaced rules absent".to_owned(),
        Check::DoneNotOpen => "done work not shown as open".to_owned(),
        Check::OpenShown => "open work shown".to_owned(),
        Check::Fact(kind, part) => format!("{part:?} {kind:?} facts").to_lowercase(),
    }
}

fn tell(lines: &[Line], seeds: u64) -> String {
    let mut out = String::new();
    for arc in Arc::ALL {
        let _ = writeln!(out, "{} {seeds} generated sessions", arc.as_str().bold());
        let [text, number] = [Column::left(), Column::right()];
        let mut table = Table::new([number, text, number, text, number]);
        table.row(["budget", "check", "share", "", "asked"].map(str::to_owned));
        for line in lines.iter().filter(|line| line.arc == arc) {
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
        let _ = writeln!(body, "<h2>{}</h2>", arc.as_str());
        let rows = lines.iter().filter(|line| line.arc == arc).map(|line| {
            let [budget, check, mean, range, count] = cells(line);
            [check, budget, mean, range, count]
        });
        body.push_str(&plot::table(
            ["check", "budget", "share", "95 %", "asked"],
            rows,
        ));
    }
    plot::page("Generated sessions against their answer keys", &body)
}
