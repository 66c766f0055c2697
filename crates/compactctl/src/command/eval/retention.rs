//! Future-reference retention on transcripts: every method at every cut and budget.

use std::fmt::Write;

use compact::replay::entity::MinDigits;
use compact_eval::compaction::EvalEngine;
use compact_eval::dataset::{Dataset, DatasetError};
use compact_eval::interval::Interval;
use compact_eval::method::Method;
use compact_eval::report::{self, MeasuredDatasets, MethodResult};
use compact_eval::retention::{CutPoints, RetentionOptions, measure_dataset};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::args::{EvalArgs, GlobalArgs};
use crate::command::results::{ResultDocuments, quote_csv};
use crate::failure::{Failure, FailureCode};
use crate::output;
use crate::progress::TerminalProgress;
use crate::report::number::{format_count, format_percent, group_digits};
use crate::report::plot::{self, Axis, Chart, Series, Stroke};
use crate::report::table::{Column, Table};

/// Measures every dataset.
pub(super) fn run(
    args: &EvalArgs,
    engine: &EvalEngine,
    global: &GlobalArgs,
) -> Result<ResultDocuments, Failure> {
    let options = options(args);
    let mut measured: MeasuredDatasets = Vec::new();
    let mut heads = Vec::new();
    for path in &args.paths {
        let _progress = TerminalProgress::over_bytes(global, usize::MAX, "measuring");
        let dataset = Dataset::read(path, args.min_tokens, args.min_digits.map(MinDigits))?;
        if !global.quiet && !dataset.skipped.is_empty() {
            let skipped = format_count(dataset.skipped.len() as u64, "file", "files");
            output::print_stderr(&format!(
                "note: {skipped} of {} cannot be read as transcripts\n",
                dataset.name
            ));
        }
        heads.push(dataset_head(&dataset));
        let rows = measure_dataset(&dataset, &options, engine);
        measured.push((dataset.name, rows));
    }
    let lines = report::aggregate_results(&measured);
    Ok(ResultDocuments {
        json: json!(lines),
        human: render_datasets(&heads, &measured, &lines),
        csv: to_csv(&lines),
        html: html_page(&lines),
        code: 0,
    })
}

fn options(args: &EvalArgs) -> RetentionOptions {
    RetentionOptions {
        cuts: if args.real {
            CutPoints::Real
        } else {
            CutPoints::Shares {
                at: args.cuts.clone(),
                budgets: args.budget_shares().to_vec(),
            }
        },
        methods: args.methods.clone(),
        least_budget: args.min_budget,
    }
}

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Failure {
        Failure::from_error(FailureCode::Input, &error)
            .help("pass a transcript, or a folder of transcripts")
    }
}

fn dataset_head(dataset: &Dataset) -> String {
    format!(
        "{} {}, {} tokens",
        dataset.name.bold(),
        format_count(dataset.sessions.len() as u64, "session", "sessions"),
        group_digits(dataset.total_tokens() as u64)
    )
}

fn render_datasets(
    heads: &[String],
    measured: &MeasuredDatasets,
    lines: &[MethodResult],
) -> String {
    let mut out = String::new();
    let names = measured.iter().map(|(name, _)| name.as_str());
    let heads = heads.iter().map(String::as_str);
    let all = (measured.len() > 1).then_some((report::ALL_DATASETS, "mean over datasets"));
    for (name, head) in names.zip(heads).chain(all) {
        let mine: Vec<&MethodResult> = lines.iter().filter(|line| line.dataset == name).collect();
        out.push_str(&format!("{head}\n"));
        out.push_str(&match mine.is_empty() {
            true => "  no cut of it counts: too short, or too little is needed again\n".to_owned(),
            false => text_table(&mine),
        });
        out.push('\n');
    }
    out + "strict: named by the agent after the cut, by nobody before it. bound: with its context.\n\
           Each with its 95 % interval over sessions; tokens are characters by four.\n"
}

fn text_table(lines: &[&MethodResult]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([number, text, number, text, number, text, number, number]);
    let head = [
        "budget", "method", "strict", "", "bound", "", "cuts", "failed",
    ];
    table.add_row(head.map(str::to_owned));
    for line in lines {
        table.add_row([
            budget_label(line),
            line.method.to_string(),
            mean_cell(line.strict),
            range_cell(line.strict),
            mean_cell(line.bound),
            range_cell(line.bound),
            group_digits(line.cuts as u64),
            faults(line),
        ]);
    }
    table.render()
}

fn budget_label(line: &MethodResult) -> String {
    line.budget
        .map_or_else(|| "real".to_owned(), format_percent)
}

fn mean_cell(interval: Option<Interval>) -> String {
    interval.map_or_else(|| "-".to_owned(), |i| format!("{:.3}", i.mean))
}

fn range_cell(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |i| format!("{:.2}-{:.2}", i.low, i.high))
}

/// Nothing where all went well.
fn faults(line: &MethodResult) -> String {
    match (line.failed, line.over_budget) {
        (0, 0) => String::new(),
        (failed, 0) => failed.to_string(),
        (failed, over) => format!("{failed}, {over} over"),
    }
}

fn html_page(lines: &[MethodResult]) -> String {
    let mut names: Vec<&str> = lines.iter().map(|line| line.dataset.as_str()).collect();
    names.dedup();
    // What holds for all comes first.
    names.sort_by_key(|name| *name != report::ALL_DATASETS);
    let mut body = String::new();
    for name in names {
        let mine: Vec<&MethodResult> = lines.iter().filter(|line| line.dataset == name).collect();
        body.push_str(&format!("<h2>{}</h2>\n", plot::escape(name)));
        for (title, of) in [
            (
                "strict: still there",
                (|l: &MethodResult| l.strict) as IntervalField,
            ),
            ("bound: still there with its context", |l| l.bound),
        ] {
            body.push_str(&chart(title, &mine, of).map_or_else(String::new, |c| c.to_svg()));
        }
        body.push_str(&html_table(&mine));
    }
    plot::html_page("Retention of what the agent named next", &body)
}

type IntervalField = fn(&MethodResult) -> Option<Interval>;

/// One curve per method over the budgets; none where there is one budget only.
fn chart(title: &str, lines: &[&MethodResult], of: IntervalField) -> Option<Chart> {
    let series = Method::ALL.into_iter().filter_map(|method| {
        let mine = lines.iter().filter(|line| line.method == method);
        let found: Vec<(f64, Interval)> = mine.filter_map(|l| Some((l.budget?, of(l)?))).collect();
        (found.len() > 1).then(|| Series {
            name: method.to_string(),
            points: found.iter().map(|(x, i)| (x * 100.0, i.mean)).collect(),
            band: match method {
                Method::Compact => found.iter().map(|(_, i)| (i.low, i.high)).collect(),
                _ => Vec::new(),
            },
            stroke: match method {
                Method::Oracle => Stroke::Dashed,
                _ => Stroke::Solid,
            },
        })
    });
    let series: Vec<Series> = series.collect();
    (!series.is_empty()).then(|| Chart {
        title: title.to_owned(),
        x: Axis {
            label: "budget, % of the prefix".to_owned(),
            range: None,
        },
        y: Axis {
            label: "share".to_owned(),
            range: Some((0.0, 1.0)),
        },
        series,
    })
}

fn html_table(lines: &[&MethodResult]) -> String {
    let head = [
        "method", "budget", "strict", "95 %", "bound", "95 %", "all", "cuts", "sessions",
    ];
    let rows = lines.iter().map(|line| {
        [
            line.method.to_string(),
            budget_label(line),
            mean_cell(line.strict),
            range_cell(line.strict),
            mean_cell(line.bound),
            range_cell(line.bound),
            mean_cell(line.all),
            line.cuts.to_string(),
            line.sessions.to_string(),
        ]
    });
    plot::html_table(head, rows)
}

/// The lines as CSV, with a header.
fn to_csv(lines: &[MethodResult]) -> String {
    let mut out = String::from(
        "dataset,method,budget,sessions,cuts,failed,over_budget,tokens,\
         strict,strict_low,strict_high,bound,bound_low,bound_high,all,all_low,all_high\n",
    );
    for line in lines {
        let budget = line
            .budget
            .map_or_else(|| "real".to_owned(), |b| b.to_string());
        let _ = write!(
            out,
            "{},{},{budget},{},{},{},{},{:.0}",
            quote_csv(&line.dataset),
            line.method,
            line.sessions,
            line.cuts,
            line.failed,
            line.over_budget,
            line.tokens,
        );
        for interval in [line.strict, line.bound, line.all] {
            match interval {
                Some(i) => {
                    let _ = write!(out, ",{:.4},{:.4},{:.4}", i.mean, i.low, i.high);
                }
                None => out.push_str(",,,"),
            }
        }
        out.push('\n');
    }
    out
}
