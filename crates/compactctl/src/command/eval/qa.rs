//! Evidence for questions about long conversations.

use std::fmt::Write;
use std::path::Path;

use compact_eval::compaction::EvalEngine;
use compact_eval::interval::Interval;
use compact_eval::qa::{self, QaResult};
use serde_json::json;

use super::interval_cells;
use crate::args::EvalArgs;
use crate::command::results::ResultDocuments;
use crate::failure::{Failure, FailureCode};
use crate::input::InputSource;
use crate::report::number::{format_count, format_percent};
use crate::report::plot;
use crate::report::table::{Column, Table};

/// Measures the conversations of a file.
pub(super) fn run(
    file: &Path,
    args: &EvalArgs,
    engine: &EvalEngine,
) -> Result<ResultDocuments, Failure> {
    let source = InputSource::read(file)?;
    let conversations = qa::read_conversations(&source.bytes).map_err(|error| {
        Failure::from_error(FailureCode::Input, &error)
            .with_context(&source.name)
            .help("expected LoCoMo's JSON: a list of objects with `conversation` and `qa`")
    })?;
    let lines = qa::measure_methods(&conversations, &args.methods, args.budget_shares(), engine);
    let head = ["method", "budget", "evidence", "95 %", "answer", "95 %"];
    let rows = || lines.iter().map(cells);
    Ok(ResultDocuments {
        json: json!(lines),
        human: render_table(&source.name, &lines),
        csv: csv(&lines),
        html: plot::html_page("Evidence for questions", &plot::html_table(head, rows())),
        code: 0,
    })
}

fn render_table(name: &str, lines: &[QaResult]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([text, number, number, text, number, text]);
    table.add_row(["method", "budget", "evidence", "", "answer", ""].map(str::to_owned));
    lines.iter().for_each(|line| table.add_row(cells(line)));
    let questions = lines.first().map_or(0, |line| line.questions);
    format!(
        "{name}: {} with evidence\n{}evidence: turns that are there word for word. \
         answer: all its words are there.\n",
        format_count(questions as u64, "question", "questions"),
        table.render()
    )
}

fn cells(line: &QaResult) -> [String; 6] {
    let of = |interval: Option<Interval>| {
        interval.map_or_else(|| ["-".to_owned(), String::new()], interval_cells)
    };
    let ([evidence, evidence_range], [answer, answer_range]) = (of(line.evidence), of(line.answer));
    [
        line.method.to_string(),
        format_percent(line.budget),
        evidence,
        evidence_range,
        answer,
        answer_range,
    ]
}

fn csv(lines: &[QaResult]) -> String {
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
