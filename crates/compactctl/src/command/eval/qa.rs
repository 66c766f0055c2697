//! Evidence for questions about long conversations.

use std::fmt::Write;
use std::path::Path;

use compact_eval::compaction::Engine;
use compact_eval::interval::Interval;
use compact_eval::plot;
use compact_eval::qa::{self, Line};
use serde_json::json;

use super::interval_cells;
use crate::args::Eval;
use crate::command::sheet::Findings;
use crate::failure::{Code, Failure};
use crate::input::Source;
use crate::report::number::{count, percent};
use crate::report::table::{Column, Table};

/// Measures the conversations of a file.
pub fn run(file: &Path, args: &Eval, engine: &Engine) -> Result<Findings, Failure> {
    let source = Source::read(file)?;
    let conversations = qa::read(&source.bytes).map_err(|error| {
        Failure::of(Code::Input, &error)
            .about(&source.name)
            .help("expected LoCoMo's JSON: a list of objects with `conversation` and `qa`")
    })?;
    let lines = qa::measure(&conversations, &args.methods, &args.budgets, engine);
    let head = ["method", "budget", "evidence", "95 %", "answer", "95 %"];
    let rows = || lines.iter().map(cells);
    Ok(Findings {
        json: json!(lines),
        human: tell(&source.name, &lines),
        csv: csv(&lines),
        html: plot::page("Evidence for questions", &plot::table(head, rows())),
        code: 0,
    })
}

fn tell(name: &str, lines: &[Line]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([text, number, number, text, number, text]);
    table.row(["method", "budget", "evidence", "", "answer", ""].map(str::to_owned));
    lines.iter().for_each(|line| table.row(cells(line)));
    let questions = lines.first().map_or(0, |line| line.questions);
    format!(
        "{name}: {} with evidence\n{}evidence: turns that are there word for word. \
         answer: all its words are there.\n",
        count(questions as u64, "question", "questions"),
        table.render()
    )
}

fn cells(line: &Line) -> [String; 6] {
    let of = |interval: Option<Interval>| {
        interval.map_or_else(|| ["-".to_owned(), String::new()], interval_cells)
    };
    let ([evidence, evidence_range], [answer, answer_range]) = (of(line.evidence), of(line.answer));
    [
        line.method.to_string(),
        percent(line.budget),
        evidence,
        evidence_range,
        answer,
        answer_range,
    ]
}

fn csv(lines: &[Line]) -> String {
    let mut out = "method,budget,questions,evidence,answer\n".to_owned();
    let cell = |i: Option<Interval>| i.map_or_else(String::new, |i| format!("{:.4}", i.mean));
    for line in lines {
        let _ = writeln!(
            out,
            "{},{},{},{},{}",
            line.method,
            line.budget,
            line.questions,
            cell(line.evidence),
            cell(line.answer)
        );
    }
    out
}
