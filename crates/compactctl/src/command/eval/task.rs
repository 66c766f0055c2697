//! Scripted agents with the whole context and with a compacted one.

use std::fmt::Write;

use compact_eval::compaction::EvalEngine;
use compact_eval::interval::mean_or_zero;
use compact_eval::task::{self, TaskResult};
use serde_json::json;

use super::interval_cells;
use crate::args::{EvalArgs, GlobalArgs};
use crate::command::results::ResultDocuments;
use crate::failure::{Failure, FailureCode};
use crate::progress::TerminalProgress;
use crate::report::number::format_percent;
use crate::report::plot;
use crate::report::table::{Column, Table};

/// Runs every kind of task at every budget.
pub(super) fn run(
    args: &EvalArgs,
    engine: &EvalEngine,
    global: &GlobalArgs,
) -> Result<ResultDocuments, Failure> {
    let _progress = TerminalProgress::over_bytes(global, usize::MAX, "playing");
    let lines = task::run_trials(engine, args.seeds, args.budget_shares())?;
    let rows = lines.iter().map(cells);
    Ok(ResultDocuments {
        json: json!(lines),
        human: render_table(&lines),
        csv: csv(&lines),
        html: plot::html_page("Tasks of scripted agents", &plot::html_table(HEAD, rows)),
        code: match totals_by_budget(&lines).iter().all(BudgetTotals::holds) {
            true => 0,
            false => FailureCode::Check as u8,
        },
    })
}

/// What must succeed in a window of a share of the session, next to the whole context.
const FLOORS: [(f64, f64); 2] = [(0.1, 0.90), (0.2, 0.97)];

/// All kinds of tasks at one budget.
struct BudgetTotals {
    budget: f64,
    tasks: usize,
    whole: f64,
    compacted: f64,
    windowed: f64,
    recalled: f64,
}

impl BudgetTotals {
    fn at_budget(budget: f64, lines: &[TaskResult]) -> BudgetTotals {
        let mine = || lines.iter().filter(|line| line.budget == budget);
        let mean = |of: fn(&TaskResult) -> f64| mean_or_zero(mine().map(of));
        BudgetTotals {
            budget,
            tasks: mine().map(|line| line.tasks).sum(),
            whole: mean(|line| line.whole.mean),
            compacted: mean(|line| line.compacted.mean),
            windowed: mean(|line| line.windowed.mean),
            recalled: mean(|line| line.recalled.mean),
        }
    }

    /// The share of the whole that must succeed in window, if one is promised at this budget.
    fn floor(&self) -> Option<f64> {
        let mut floors = FLOORS.iter();
        let found = floors.find(|(budget, _)| (budget - self.budget).abs() < 1e-9);
        found.map(|(_, floor)| *floor)
    }

    fn holds(&self) -> bool {
        let floor = self.floor().unwrap_or_default();
        self.windowed + 1e-9 >= floor * self.whole
    }

    fn verdict(&self) -> String {
        match self.floor() {
            None => String::new(),
            Some(floor) if self.holds() => {
                format!(" (at least {} promised)", format_percent(floor))
            }
            Some(floor) => format!(" (LESS than the {} promised)", format_percent(floor)),
        }
    }
}

fn totals_by_budget(lines: &[TaskResult]) -> Vec<BudgetTotals> {
    let mut budgets: Vec<f64> = lines.iter().map(|line| line.budget).collect();
    budgets.sort_by(f64::total_cmp);
    budgets.dedup();
    budgets
        .into_iter()
        .map(|b| BudgetTotals::at_budget(b, lines))
        .collect()
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

fn render_table(lines: &[TaskResult]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([text, number, number, number, text, number, number]);
    table.add_row(HEAD.map(str::to_owned));
    lines.iter().for_each(|line| table.add_row(cells(line)));
    let mut out = table.render();
    for sum in totals_by_budget(lines) {
        let _ = writeln!(
            out,
            "{}: of {} tasks {} succeed with the whole context, {} compacted, {} in window{}, {} with recall",
            format_percent(sum.budget),
            sum.tasks,
            format_percent(sum.whole),
            format_percent(sum.compacted),
            format_percent(sum.windowed),
            sum.verdict(),
            format_percent(sum.recalled),
        );
    }
    out
}

fn cells(line: &TaskResult) -> [String; 7] {
    let [compacted, range] = interval_cells(line.compacted);
    [
        line.kind.as_str().to_owned(),
        format_percent(line.budget),
        format!("{:.3}", line.whole.mean),
        compacted,
        range,
        format!("{:.3}", line.windowed.mean),
        format!("{:.3}", line.recalled.mean),
    ]
}

fn csv(lines: &[TaskResult]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_successes_in_window_than_promised_fail() {
        let sum = |budget, windowed| BudgetTotals {
            budget,
            tasks: 40,
            whole: 1.0,
            compacted: 1.0,
            windowed,
            recalled: 1.0,
        };
        assert!(sum(0.2, 0.97).holds() && !sum(0.2, 0.96).holds());
        assert!(sum(0.1, 0.90).holds() && !sum(0.1, 0.89).holds());
        assert!(sum(0.05, 0.1).holds(), "nothing is promised there");
        assert_eq!(sum(0.1, 0.5).verdict(), " (LESS than the 90.0 % promised)");
    }
}
