//! Probes: needles of answers, looked for in what each method keeps.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use compact_eval::compaction::EvalEngine;
use compact_eval::probe::{
    ProbeBudget, ProbeError, ProbeMean, ProbeResult, ProbeSet, aggregate_probes, measure_probes,
};
use serde_json::json;

use crate::args::{EvalArgs, GlobalArgs};
use crate::command::results::{ResultDocuments, quote_csv};
use crate::failure::{Failure, FailureCode};
use crate::progress::TerminalProgress;
use crate::report::number::{format_count, format_percent};
use crate::report::plot;
use crate::report::table::{Column, Table};

/// Measures a folder of probes: at the sizes that it records, or at the budgets that were asked for.
pub(super) fn run(
    folder: &Path,
    args: &EvalArgs,
    engine: &EvalEngine,
    global: &GlobalArgs,
) -> Result<ResultDocuments, Failure> {
    let data = args.data.as_deref().unwrap_or(folder);
    let set = ProbeSet::read(folder, data)?;
    let _progress = TerminalProgress::over_bytes(global, usize::MAX, "measuring");
    let budgets: Vec<ProbeBudget> = match args.budgets.as_slice() {
        [] => vec![ProbeBudget::Recorded],
        shares => shares.iter().copied().map(ProbeBudget::Share).collect(),
    };
    let rows = measure_probes(&set, &args.methods, &budgets, engine);
    let means = aggregate_probes(&rows);
    let title = "Needles of answers that are still there";
    let body = plot::html_table(HEAD, means.iter().map(cells));
    Ok(ResultDocuments {
        json: json!({"means": means, "sessions": rows}),
        human: render_tables(&set, &means),
        csv: csv(&rows),
        html: plot::html_page(title, &body),
        code: 0,
    })
}

const HEAD: [&str; 5] = ["method", "budget", "mean", "sessions", "kinds"];

fn render_tables(set: &ProbeSet, means: &[ProbeMean]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([text, number, number, text, text]);
    table.add_row(HEAD.map(str::to_owned));
    means.iter().for_each(|mean| table.add_row(cells(mean)));
    let probes: usize = set.sessions.iter().map(|s| s.probes.len()).sum();
    format!(
        "{} on {}\n{}",
        format_count(probes as u64, "probe", "probes"),
        format_count(set.sessions.len() as u64, "session", "sessions"),
        table.render()
    )
}

fn cells(mean: &ProbeMean) -> [String; 5] {
    [
        mean.method.to_string(),
        budget_cell(mean.budget),
        format!("{:.3}", mean.score),
        format_shares(&mean.sessions),
        format_shares(&mean.kinds),
    ]
}

fn budget_cell(budget: ProbeBudget) -> String {
    match budget {
        ProbeBudget::Recorded => "as recorded".to_owned(),
        ProbeBudget::Share(share) => format_percent(share),
    }
}

fn format_shares(shares: &BTreeMap<String, f64>) -> String {
    let shares = shares
        .iter()
        .map(|(name, share)| format!("{name} {share:.2}"));
    shares.collect::<Vec<_>>().join("  ")
}

fn csv(rows: &[ProbeResult]) -> String {
    let mut out = "method,budget,session,allowed,kept,score\n".to_owned();
    for row in rows {
        let kept = row.kept.map_or_else(String::new, |kept| kept.to_string());
        let _ = writeln!(
            out,
            "{},{},{},{},{kept},{:.4}",
            row.method,
            budget_cell(row.budget),
            quote_csv(&row.session),
            row.allowed,
            row.score
        );
    }
    out
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Failure {
        Failure::from_error(FailureCode::Input, &error)
            .help("docs/eval.md says what a folder of probes holds; --data names the folder of its transcripts")
    }
}
