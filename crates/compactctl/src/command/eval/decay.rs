//! Many successive compactions against one.

use std::fmt::Write;

use compact_eval::compaction::Engine;
use compact_eval::decay::{self, Line};
use compact_eval::plot;
use serde_json::json;

use super::interval_cells;
use crate::args::{Eval, Global};
use crate::command::sheet::Findings;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::number::{grouped, percent};
use crate::report::table::{Column, Table};

/// How many parts a session is played in: enough for ten compactions at any usual budget.
const PARTS: usize = 16;

/// Compares on every kind of session at every budget.
pub fn run(args: &Eval, engine: &Engine, global: &Global) -> Result<Findings, Failure> {
    let _progress = Progress::over_bytes(global, usize::MAX, "measuring");
    let lines = decay::run(engine, args.seeds, &args.budgets, PARTS)?;
    let title = "Facts of the first tenth, after many compactions and after one";
    let head = HEAD.map(|(name, _)| name);
    let rows = lines.iter().map(cells);
    Ok(Findings {
        json: json!(lines),
        human: tell(&lines),
        csv: csv(&lines),
        html: plot::page(title, &plot::table(head, rows)),
        code: 0,
    })
}

const HEAD: [(&str, Column0); 9] = [
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

type Column0 = fn() -> Column;

fn tell(lines: &[Line]) -> String {
    let mut table = Table::new(HEAD.map(|(_, column)| column()));
    table.row(HEAD.map(|(name, _)| name.to_owned()));
    lines.iter().for_each(|line| table.row(cells(line)));
    format!(
        "Facts of the first tenth of a session, after one compaction of the whole and after many\n{}",
        table.render()
    )
}

fn cells(line: &Line) -> [String; 9] {
    let [once, once_range] = interval_cells(line.once);
    let [successive, successive_range] = interval_cells(line.successive);
    [
        line.arc.as_str().to_owned(),
        percent(line.budget),
        format!(">= {}", line.compactions),
        grouped(line.facts as u64),
        once,
        once_range,
        successive,
        successive_range,
        format!("{:.3}", line.ratio),
    ]
}

fn csv(lines: &[Line]) -> String {
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
