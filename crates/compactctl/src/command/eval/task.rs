//! Scripted agents with the whole context and with a compacted one.

use std::fmt::Write;

use compact_eval::compaction::Engine;
use compact_eval::interval::average;
use compact_eval::plot;
use compact_eval::task::{self, Line};
use serde_json::json;

use super::interval_cells;
use crate::args::{Eval, Global};
use crate::command::sheet::Findings;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::number::percent;
use crate::report::table::{Column, Table};

/// Runs every kind of task at every budget.
pub fn run(args: &Eval, engine: &Engine, global: &Global) -> Result<Findings, Failure> {
    let _progress = Progress::over_bytes(global, usize::MAX, "playing");
    let lines = task::run(engine, args.seeds, &args.budgets)?;
    let rows = lines.iter().map(cells);
    Ok(Findings {
        json: json!(lines),
        human: tell(&lines),
        csv: csv(&lines),
        html: plot::page("Tasks of scripted agents", &plot::table(HEAD, rows)),
    })
}

const HEAD: [&str; 7] = [
    "task",
    "budget",
    "whole",
    "compacted",
    "",
    "in window",
    "recall",
];

fn tell(lines: &[Line]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([text, number, number, number, text, number, number]);
    table.row(HEAD.map(str::to_owned));
    lines.iter().for_each(|line| table.row(cells(line)));
    let mut out = table.render();
    let mut budgets: Vec<f64> = lines.iter().map(|line| line.budget).collect();
    budgets.sort_by(f64::total_cmp);
    budgets.dedup();
    for budget in budgets {
        let mine = || lines.iter().filter(|line| line.budget == budget);
        let tasks: usize = mine().map(|line| line.tasks).sum();
        let of = |of: fn(&Line) -> f64| average(mine().map(of));
        let _ = writeln!(
            out,
            "{}: of {tasks} tasks {} succeed with the whole context, {} compacted, {} with recall",
            percent(budget),
            percent(of(|line| line.whole.mean)),
            percent(of(|line| line.compacted.mean)),
            percent(of(|line| line.recalled.mean)),
        );
    }
    out
}

fn cells(line: &Line) -> [String; 7] {
    let [compacted, range] = interval_cells(line.compacted);
    [
        line.kind.as_str().to_owned(),
        percent(line.budget),
        format!("{:.3}", line.whole.mean),
        compacted,
        range,
        format!("{:.3}", line.windowed.mean),
        format!("{:.3}", line.recalled.mean),
    ]
}

fn csv(lines: &[Line]) -> String {
    let mut out =
        "task,budget,tasks,compactions,whole,compacted,low,high,in_window,with_recall\n".to_owned();
    for line in lines {
        let c = line.compacted;
        let _ = writeln!(
            out,
            "{},{},{},{},{:.4},{:.4},{:.4},{:.4},{:.4},{:.4}",
            line.kind.as_str(),
            line.budget,
            line.tasks,
            line.compactions,
            line.whole.mean,
            c.mean,
            c.low,
            c.high,
            line.windowed.mean,
            line.recalled.mean
        );
    }
    out
}
