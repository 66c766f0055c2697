//! The answer keys of the example sessions, in windows of their own size.

use std::fmt::Write;

use compact_eval::answer_key::{self, AnswerKeyResult, PlayMode};
use compact_eval::compaction::EvalEngine;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::command::results::ResultDocuments;
use crate::failure::{Failure, FailureCode};
use crate::progress::TerminalProgress;
use crate::report::number::{format_percent, group_digits};
use crate::report::plot;
use crate::report::table::{Column, Table};

/// The share of each key that must be found.
const FLOOR: f64 = 0.9;

const HEAD: [&str; 6] = ["session", "told", "window", "view", "facts", "found"];

/// Looks for the facts of every example.
pub(super) fn run(engine: &EvalEngine, global: &GlobalArgs) -> Result<ResultDocuments, Failure> {
    let _progress = TerminalProgress::over_bytes(global, usize::MAX, "playing");
    let keys = answer_key::score_examples(engine)?;
    Ok(ResultDocuments {
        json: json!(keys),
        human: render_table(&keys),
        csv: csv(&keys),
        html: plot::html_page(
            "Examples in their own windows",
            &plot::html_table(HEAD, keys.iter().map(cells)),
        ),
        code: match keys.iter().all(|found| found.found_share() >= FLOOR) {
            true => 0,
            false => FailureCode::Check as u8,
        },
    })
}

fn manner_label(found: &AnswerKeyResult) -> &'static str {
    match found.manner {
        PlayMode::Played => "call by call",
        PlayMode::AtOnce => "at once",
    }
}

fn cells(found: &AnswerKeyResult) -> [String; 6] {
    [
        found.session.to_owned(),
        manner_label(found).to_owned(),
        group_digits(found.window),
        group_digits(found.shown),
        group_digits(found.asked as u64),
        format_percent(found.found_share()),
    ]
}

fn render_table(keys: &[AnswerKeyResult]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([text, text, number, number, number, number]);
    table.add_row(HEAD.map(str::to_owned));
    keys.iter().for_each(|found| table.add_row(cells(found)));
    let mut out = table.render();
    let short = keys
        .iter()
        .filter(|found| found.found_share() < FLOOR)
        .count();
    let verdict = match short {
        0 => format!("each keeps at least {} of its facts", format_percent(FLOOR)),
        n => format!(
            "{n} of {} keep LESS than the {} promised",
            keys.len(),
            format_percent(FLOOR)
        ),
    };
    let _ = writeln!(out, "{verdict}");
    out
}

fn csv(keys: &[AnswerKeyResult]) -> String {
    let mut out = "session,told,window,view,facts,found\n".to_owned();
    for f in keys {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{}",
            f.session,
            manner_label(f),
            f.window,
            f.shown,
            f.asked,
            f.found
        );
    }
    out
}
