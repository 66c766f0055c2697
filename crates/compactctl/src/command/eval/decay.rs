//! Many successive compactions against one.

use std::fmt::Write;

use compact_eval::compaction::EvalEngine;
use compact_eval::decay::{self, DecayResult};
use serde_json::json;

use super::interval_cells;
use crate::args::{EvalArgs, GlobalArgs};
use crate::command::results::ResultDocuments;
use crate::failure::Failure;
use crate::progress::TerminalProgress;
use crate::report::number::{format_percent, group_digits};
use crate::report::plot;
use crate::report::table::{Column, Table};

/// How many parts a session is played in: enough for twenty compactions at any usual budget.
const PARTS: usize = 32;

/// Compares on every kind of session at every budget.
pub(super) fn run(
    args: &EvalArgs,
    engine: &EvalEngine,
    global: &GlobalArgs,
) -> Result<ResultDocuments, Failure> {
    let _progress = TerminalProgress::over_bytes(global, usize::MAX, "measuring");
    let lines = decay::compare_compactions(engine, args.seeds, args.budget_shares(), PARTS)?;
    let title = "Facts of the first tenth, after many compactions and after one";
    let head = HEAD.map(|(name, _)| name);
    let rows = lines.iter().map(cells);
    Ok(ResultDocuments {
        json: json!(lines),
        human: render_table(&lines),
        csv: csv(&lines),
        html: plot::html_page(title, &plot::html_table(head, rows)),
        code: 0,
    })
}

const HEAD: [(&str, ColumnMaker); 9] = [
    ("sessions", Column::left),
    ("budget", Column::right),
    ("compactions", Column::right),
    ("facts", Column::right),
    ("once", Column::right),
    ("", Column::left),
    ("successive", Column::right),
    ("", Column::left),
    ("ratio", Column::right),
];

type ColumnMaker = fn() -> Column;

fn render_table(lines: &[DecayResult]) -> String {
    let mut table = Table::new(HEAD.map(|(_, column)| column()));
    table.add_row(HEAD.map(|(name, _)| name.to_owned()));
    lines.iter().for_each(|line| table.add_row(cells(line)));
    format!(
        "Facts of the first tenth of a session, after one compaction of the whole and after many\n{}",
        table.render()
    )
}

fn cells(line: &DecayResult) -> [String; 9] {
    let [once, once_range] = interval_cells(line.once);
    let [successive, successive_range] = interval_cells(line.successive);
    [
        line.arc.as_str().to_owned(),
        format_percent(line.budget),
        format!(">= {}", line.compactions),
        group_digits(line.facts as u64),
        once,
        once_range,
        successive,
        successive_range,
        format!("{:.3}", line.ratio),
    ]
}

fn csv(lines: &[DecayResult]) -> String {
    let mut out = "arc,budget,compactions,facts,once,successive,ratio\n".to_owned();
    for line in lines {
        let _ = writeln!(
            out,
            "{},{},{},{},{:.4},{:.4},{:.4}",
            line.arc.as_str(),
            line.budget,
            line.compactions,
            line.facts,
            line.once.mean,
            line.successive.mean,
            line.ratio
        );
    }
    out
}
